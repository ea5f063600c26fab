// Stored executables: a header that tells whose they are, of which format and Program, and sections
// of records behind it. Include it where ProgramBackend::load and Executable::save are written;
// candela/backend.hpp does not bring it.
#pragma once

#include "candela/backend/doors.hpp"

#include <utility>

namespace cdl {

namespace detail {

struct StoredHeader {
  char magic[4];
  uint32_t format, sections, reserved;
  char madeBy[64]; // name and version
  uint8_t image[32];
  uint64_t size, checksum; // of all bytes, the checksum's own as 0
};
constexpr uint64_t kStoredAlignment = 64;
constexpr char kStoredMagic[4] = {'C', 'D', 'L', 'X'};

constexpr uint64_t padded(uint64_t bytes) {
  return (bytes + kStoredAlignment - 1) / kStoredAlignment * kStoredAlignment;
}
static_assert(sizeof(StoredHeader) == padded(sizeof(StoredHeader)));

/// FNV-1a in words, of the bytes and the zeros that pad them. It tells accidents, not forgers: what
/// it covers is checked all the same.
inline uint64_t addToChecksum(uint64_t sum, const void* data, uint64_t bytes) {
  for (uint64_t at = 0; at < padded(bytes); at += 8) {
    uint64_t word = 0;
    if (at < bytes)
      std::memcpy(&word, static_cast<const char*>(data) + at, bytes - at < 8 ? bytes - at : 8);
    sum = (sum ^ word) * 0x100000001b3;
    sum ^= sum >> 32;
  }
  return sum;
}

} // namespace detail

/// What load returns for bytes that are not what was saved.
inline Status damaged(const std::string& what) {
  return error(CDL_BAD_MODEL,
               "stored executable is damaged: " + what + "; compile the model again");
}
/// What it returns for those of another version, device or Program: "needs ...", "was made ...".
inline Status unfit(const std::string& what) {
  return error(CDL_INCOMPATIBLE, "stored executable " + what + "; compile the model again");
}

/// Writes sections of records, each from a multiple of 64 bytes on. The records are the caller's
/// until write().
class StoredWriter {
public:
  /// `madeBy`: the backend's name, a space, its version. `format`: what stands in the sections;
  /// raise it with every change of it.
  StoredWriter(const std::string& madeBy, uint32_t format, const cdl_image_t* image) {
    std::memcpy(header_.magic, detail::kStoredMagic, sizeof header_.magic);
    madeBy.copy(header_.madeBy, sizeof header_.madeBy - 1);
    std::memcpy(header_.image, image->hash, sizeof header_.image);
    header_.format = format;
  }
  template <class T> void add(const std::vector<T>& records) {
    static_assert(std::is_trivially_copyable_v<T>);
    sections_.push_back({records.data(), records.size() * sizeof(T)});
  }
  Status write(const Writer& to) {
    std::vector<uint64_t> sizes;
    for (const auto& section : sections_) sizes.push_back(section.second);
    header_.sections = static_cast<uint32_t>(sizes.size());
    std::vector<std::pair<const void*, uint64_t>> parts{{&header_, sizeof header_},
                                                        {sizes.data(), sizes.size() * 8}};
    parts.insert(parts.end(), sections_.begin(), sections_.end());
    header_.size = header_.checksum = 0;
    for (const auto& part : parts) header_.size += detail::padded(part.second);
    uint64_t sum = 0;
    for (const auto& part : parts) sum = detail::addToChecksum(sum, part.first, part.second);
    header_.checksum = sum;
    Status status;
    const char zeros[detail::kStoredAlignment] = {};
    for (const auto& [data, bytes] : parts) {
      if (status.isOk() && bytes) status = to.write(data, bytes);
      if (status.isOk() && bytes % sizeof zeros)
        status = to.write(zeros, sizeof zeros - bytes % sizeof zeros);
    }
    return status;
  }

private:
  detail::StoredHeader header_{};
  std::vector<std::pair<const void*, uint64_t>> sections_;
};

/// Reads what a StoredWriter wrote, section by section in its order.
class StoredReader {
public:
  /// Refuses what is damaged or was not made by this backend in this format of this Program, naming
  /// both.
  Status open(const std::string& madeBy, uint32_t format, const cdl_image_t* image,
              const void* blob, uint64_t size) {
    bytes_ = static_cast<const char*>(blob);
    detail::StoredHeader h;
    if (size < sizeof h)
      return damaged(text(size, " bytes are shorter than its header of ", sizeof h));
    std::memcpy(&h, blob, sizeof h);
    if (std::memcmp(h.magic, detail::kStoredMagic, sizeof h.magic) != 0)
      return damaged("it does not begin with CDLX");
    if (h.size != size) return damaged(text(size, " bytes, its header says ", h.size));
    const std::string maker(h.madeBy, std::find(h.madeBy, h.madeBy + sizeof h.madeBy, '\0'));
    const bool isOwn = maker.substr(0, maker.find(' ')) == madeBy.substr(0, madeBy.find(' '));
    if (!isOwn || h.format != format)
      return unfit(text("was made by ", maker, " in format ", h.format, ", this is ", madeBy,
                        ", which reads format ", format));
    if (size % detail::kStoredAlignment != 0 || h.sections > (size - sizeof h) / 8)
      return damaged(text(size, " bytes do not hold its ", h.sections, " sections"));
    const uint64_t said = std::exchange(h.checksum, 0);
    if (detail::addToChecksum(detail::addToChecksum(0, &h, sizeof h), bytes_ + sizeof h,
                              size - sizeof h) != said)
      return damaged("its bytes do not have its checksum");
    sizes_.resize(h.sections);
    if (h.sections) std::memcpy(sizes_.data(), bytes_ + sizeof h, sizes_.size() * 8);
    at_ = sizeof h + detail::padded(sizes_.size() * 8);
    size_ = size;
    if (std::memcmp(h.image, image->hash, sizeof h.image) != 0)
      return unfit("was made of another Program");
    return ok();
  }
  template <class T> Status read(std::vector<T>& records) {
    static_assert(std::is_trivially_copyable_v<T>);
    if (next_ == sizes_.size() || sizes_[next_] % sizeof(T) != 0)
      return damaged(text("section ", next_, " of ", sizes_.size(), " holds no records of ",
                          sizeof(T), " bytes"));
    const uint64_t bytes = sizes_[next_++];
    if (at_ > size_ || bytes > size_ - at_)
      return damaged(text("a section of ", bytes, " bytes leaves it"));
    records.resize(bytes / sizeof(T));
    if (bytes) std::memcpy(records.data(), bytes_ + at_, bytes);
    at_ += detail::padded(bytes);
    return ok();
  }

private:
  const char* bytes_ = nullptr;
  uint64_t at_ = 0, size_ = 0;
  size_t next_ = 0;
  std::vector<uint64_t> sizes_;
};

} // namespace cdl
