#include "blob.hpp"

#include <algorithm>
#include <cstring>
#include <zlib.h>

namespace cpu {

namespace {

constexpr char kMagic[4] = {'C', 'C', 'P', 'U'};
constexpr uint32_t kFormat = 1;                  // of the records below and of what kernels expect of their callers
constexpr uint64_t kMaxScratch = uint64_t(1) << 40;

struct Header {
  char magic[4];
  uint32_t format;
  uint64_t size;      // of the whole blob
  uint32_t checksum;  // CRC-32 of what follows this field
  uint32_t tier;
  uint8_t image[32];  // hash of the Program
  uint64_t scratchBytes, ownBytes, objectBytes;
  uint32_t kernels, calls, args, reserved;
};
static_assert(sizeof(Header) == 96);

size_t padded(size_t bytes) { return (bytes + 63) & ~size_t(63); }

uint32_t checksumOf(const char* blob, size_t size) {
  const size_t from = offsetof(Header, checksum) + sizeof(uint32_t);
  return static_cast<uint32_t>(
      crc32_z(0, reinterpret_cast<const unsigned char*>(blob) + from, static_cast<z_size_t>(size - from)));
}

cdl::Status damaged(const std::string& text) { return cdl::error(CDL_BAD_MODEL, "stored executable is damaged: " + text); }

template <class T> void put(std::vector<char>& out, const T* items, size_t count) {
  const size_t at = out.size();
  out.resize(padded(at + count * sizeof(T)), 0);
  if (count) std::memcpy(out.data() + at, items, count * sizeof(T));
}

} // namespace

std::vector<char> toBlob(const cdl_image_t* image, const Binary& binary) {
  Header h{};
  std::copy_n(kMagic, 4, h.magic);
  h.format = kFormat;
  h.tier = static_cast<uint32_t>(binary.tier);
  std::copy_n(image->hash, 32, h.image);
  h.scratchBytes = binary.scratchBytes, h.ownBytes = binary.own.size(), h.objectBytes = binary.object.size();
  h.kernels = binary.kernels;
  h.calls = static_cast<uint32_t>(binary.calls.size()), h.args = static_cast<uint32_t>(binary.args.size());
  std::vector<char> out;
  put(out, &h, 1);
  put(out, binary.calls.data(), binary.calls.size());
  put(out, binary.args.data(), binary.args.size());
  put(out, binary.own.data(), binary.own.size());
  put(out, binary.object.data(), binary.object.size());
  h.size = out.size();
  std::memcpy(out.data(), &h, sizeof h);
  h.checksum = checksumOf(out.data(), out.size());
  std::memcpy(out.data(), &h, sizeof h);
  return out;
}

cdl::Status fromBlob(const cdl_image_t* image, const void* blob, uint64_t size, Binary& binary) {
  const char* bytes = static_cast<const char*>(blob);
  Header h;
  if (size < sizeof h) return damaged(std::to_string(size) + " bytes are shorter than its header");
  std::memcpy(&h, bytes, sizeof h);
  if (std::memcmp(h.magic, kMagic, 4) != 0) return damaged("it does not begin with CCPU");
  if (h.format != kFormat)
    return cdl::error(CDL_INCOMPATIBLE, "stored executable has format " + std::to_string(h.format) +
                                            ", this version of the backend reads " + std::to_string(kFormat) +
                                            ": compile the model again");
  if (h.size != size) return damaged(std::to_string(size) + " bytes, its header says " + std::to_string(h.size));
  if (checksumOf(bytes, size) != h.checksum) return damaged("its checksum does not match");
  if (h.tier < 1 || h.tier > allIsas().size()) return damaged("instruction set " + std::to_string(h.tier));
  const Isa& isa = isaOf(static_cast<Tier>(h.tier));
  const std::vector<const Isa*> here = isasOfThisMachine();
  if (std::find(here.begin(), here.end(), &isa) == here.end())
    return cdl::error(CDL_INCOMPATIBLE, std::string("stored executable is for ") + isa.name + ", this machine has " +
                                            (here.empty() ? "not even x86-64-v3" : here.back()->name));
  if (std::memcmp(h.image, image->hash, 32) != 0)
    return cdl::error(CDL_INCOMPATIBLE, "stored executable was made for another Program");

  // The checksum holds, so this is what toBlob wrote, but a forged one must not lead outside either.
  size_t at = padded(sizeof h);
  const auto section = [&](uint64_t bytesOfIt) -> const char* {
    if (at > size || bytesOfIt > size - at) return nullptr;
    const char* from = bytes + at;
    at = padded(at + bytesOfIt);
    return from;
  };
  const char* calls = section(uint64_t(h.calls) * sizeof(Call));
  const char* args = section(uint64_t(h.args) * sizeof(Arg));
  const char* own = section(h.ownBytes);
  const char* object = section(h.objectBytes);
  if (!calls || !args || !own || !object || h.scratchBytes > kMaxScratch) return damaged("its parts leave the file");
  binary.tier = isa.tier;
  binary.scratchBytes = h.scratchBytes, binary.kernels = h.kernels;
  binary.calls.resize(h.calls), binary.args.resize(h.args);
  if (h.calls) std::memcpy(binary.calls.data(), calls, h.calls * sizeof(Call));
  if (h.args) std::memcpy(binary.args.data(), args, h.args * sizeof(Arg));
  binary.own.assign(own, h.ownBytes);
  binary.object.assign(object, object + h.objectBytes);
  uint32_t last = 1;
  for (const Call& call : binary.calls) {
    if (call.instr < last || call.instr >= image->instrs.count || call.kernel >= h.kernels || call.units > INT64_MAX ||
        call.args > h.args || call.firstArg > h.args - call.args)
      return damaged("a call that its tables do not hold");
    last = call.instr;
  }
  for (const Arg& arg : binary.args) {
    const bool isOwn = arg.buffer == Arg::kOwn, isScratch = arg.buffer == Arg::kScratch;
    if (!isOwn && !isScratch && (arg.buffer == 0 || arg.buffer >= image->buffers.count))
      return damaged("an argument in buffer " + std::to_string(arg.buffer));
  }
  return cdl::ok();
}

} // namespace cpu
