#include "blob.hpp"

#include "../version.hpp"
#include "digest.hpp"

#include <algorithm>
#include <cstring>

namespace cpu {

namespace {

constexpr char kMagic[4] = {'C', 'C', 'P', 'U'};
constexpr uint64_t kMaxScratch = uint64_t(1) << 40;
constexpr uint64_t kMaxUnits = uint64_t(1) << 48; // times a number of threads it does not overflow
constexpr const char* kSections[4] = {"calls", "arguments", "constants", "code"};

cdl::Status damaged(const std::string& text) {
  return cdl::error(CDL_BAD_MODEL, "stored executable is damaged: " + text);
}

cdl::Status unfit(const std::string& text) {
  return cdl::error(CDL_INCOMPATIBLE, "stored executable " + text);
}

std::string textOf(const char (&field)[48]) {
  return {field, std::find(field, field + sizeof field, '\0')};
}

/// Records with zeros up to a multiple of 64 bytes.
template <class T> std::vector<char> section(const std::vector<T>& records) {
  std::vector<char> bytes(padded(records.size() * sizeof(T)), 0);
  if (!records.empty()) std::memcpy(bytes.data(), records.data(), records.size() * sizeof(T));
  return bytes;
}

/// Bytes of the memory that an argument lies in; 0 where there is no such memory for arguments.
uint64_t roomOf(const cdl_image_t* image, const Binary& binary, const Arg& arg) {
  if (arg.buffer == Arg::kOwn) return binary.ownBytes;
  if (arg.buffer == Arg::kScratch) return binary.scratchBytes;
  if (arg.buffer == 0 || arg.buffer >= image->buffers.count) return 0;
  const cdl_buffer_t& buffer = *cdl_get_buffer(image, arg.buffer);
  return buffer.role == CDL_ROLE_CONSTANT ? 0 : buffer.bytes;
}

bool hasEmptyView(const cdl_image_t* image, const cdl_instr_t& instr) {
  for (uint32_t v = 0; v < uint32_t(instr.inputs) + instr.outputs; ++v) {
    const cdl_view_t& view = *cdl_get_view(image, instr.first_view + v);
    if (std::find(view.dims, view.dims + view.rank, 0) != view.dims + view.rank) return true;
  }
  return false;
}

/// Whether an argument begins inside of its memory, whatever the loops around its instruction stand
/// at.
bool isInside(const cdl_image_t* image, const cdl_instr_t& instr, const Arg& arg, uint64_t room) {
  __int128 low = arg.offset, high = arg.offset;
  int depth = instr.loop && cdl_get_loop(image, instr.loop)->parent ? 1 : 0;
  for (uint32_t l = instr.loop; l; l = cdl_get_loop(image, l)->parent, --depth) {
    const __int128 way = __int128(arg.perLoop[depth]) * (cdl_get_loop(image, l)->trip - 1);
    (way < 0 ? low : high) += way;
  }
  // What has no elements may lie at the end.
  return low >= 0 && (high < room || (high == room && hasEmptyView(image, instr)));
}

/// What calls and arguments say of each other, of the sections and of the image.
cdl::Status checkTables(const cdl_image_t* image, const Binary& binary) {
  uint32_t last = 1, args = 0;
  // Calls follow their instructions, but for those of a group, whose bands interleave them.
  const auto isOutOfOrder = [&](uint32_t instr) {
    const uint32_t group = cdl_get_instr(image, instr)->group;
    return instr < last && (group == 0 || group != cdl_get_instr(image, last)->group);
  };
  for (const Call& call : binary.calls) {
    if (call.instr == 0 || call.instr >= image->instrs.count || isOutOfOrder(call.instr) ||
        call.kernel >= binary.kernels || call.firstArg > args ||
        call.args > binary.args.size() - call.firstArg)
      return damaged("a call that its tables do not hold");
    last = call.instr;
    args = std::max(args, call.firstArg + call.args);
    uint64_t most = 0;
    for (uint32_t a = call.firstArg; a < call.firstArg + call.args; ++a) {
      const Arg& arg = binary.args[a];
      const uint64_t room = roomOf(image, binary, arg);
      if (!isInside(image, *cdl_get_instr(image, call.instr), arg, room))
        return damaged("an argument in buffer " + std::to_string(arg.buffer) + " at " +
                       std::to_string(arg.offset) + ", which has " + std::to_string(room) +
                       " bytes");
      most = std::max(most, room);
    }
    // Each unit writes elements of its own, and the smallest have four bits.
    const auto ends =
        __int128(call.first) + __int128(call.stride) * (__int128(call.turns) - 1) + call.units;
    if (call.units == 0 || call.turns == 0 || ends > __int128(kMaxUnits) ||
        call.turns > kMaxUnits / call.units)
      return damaged("a call of units " + std::to_string(call.first) +
                     " and on that there are not");
    if (call.allUnits() / 2 > most)
      return damaged("a call of " + std::to_string(call.allUnits()) + " units on " +
                     std::to_string(most) + " bytes");
  }
  return args == binary.args.size() ? cdl::ok() : damaged("arguments of no call");
}

} // namespace

uint64_t digestOf(BlobHeader header) {
  header.digest = 0;
  return digest(&header, sizeof header);
}

cdl::Status toBlob(const cdl_image_t* image, const Binary& binary, const cdl::Writer& to) {
  BlobHeader h{};
  std::copy_n(kMagic, 4, h.magic);
  h.format = kFormat;
  const std::string madeBy = std::string("cpu ") + kVersion + " with " + binary.compiler;
  madeBy.copy(h.madeBy, sizeof h.madeBy - 1);
  std::copy_n(image->hash, 32, h.image);
  h.scratchBytes = binary.scratchBytes;
  h.tier = static_cast<uint32_t>(binary.tier);
  h.kernels = binary.kernels;
  h.calls = static_cast<uint32_t>(binary.calls.size());
  h.args = static_cast<uint32_t>(binary.args.size());
  const std::vector<char> calls = section(binary.calls), args = section(binary.args);
  const std::pair<const char*, uint64_t> parts[4] = {{calls.data(), calls.size()},
                                                     {args.data(), args.size()},
                                                     {binary.own, binary.ownBytes},
                                                     {binary.code, binary.codeBytes}};
  h.size = sizeof h;
  for (int i = 0; i < 4; ++i) {
    h.sections[i] = {parts[i].second, digest(parts[i].first, parts[i].second)};
    h.size += parts[i].second;
  }
  h.digest = digestOf(h);
  cdl::Status status = to.write(&h, sizeof h);
  for (const auto& [data, bytes] : parts)
    if (status.isOk() && bytes) status = to.write(data, bytes);
  return status;
}

cdl::Status fromBlob(const cdl_image_t* image, const void* blob, uint64_t size, Binary& binary) {
  const char* bytes = static_cast<const char*>(blob);
  BlobHeader h;
  if (reinterpret_cast<uintptr_t>(bytes) % 64)
    return cdl::error(CDL_INVALID_ARGUMENT, "stored executable is not aligned");
  if (size < sizeof h) return damaged(std::to_string(size) + " bytes are shorter than its header");
  std::memcpy(&h, bytes, sizeof h);
  if (std::memcmp(h.magic, kMagic, 4) != 0) return damaged("it does not begin with CCPU");
  if (h.format != kFormat)
    return unfit("has format " + std::to_string(h.format) + " and was made by " + textOf(h.madeBy) +
                 "; this is cpu " + kVersion + ", which reads format " + std::to_string(kFormat) +
                 ": compile the model again");
  if (digestOf(h) != h.digest) return damaged("its header does not have its checksum");
  if (h.size != size)
    return damaged(std::to_string(size) + " bytes, its header says " + std::to_string(h.size));
  if (h.tier < 1 || h.tier > allIsas().size())
    return unfit("is for instruction set " + std::to_string(h.tier) + ", which this cpu " +
                 kVersion + " does not know");
  if (std::memcmp(h.image, image->hash, 32) != 0) return unfit("was made for another Program");
  const Isa& isa = isaOf(static_cast<Tier>(h.tier));
  if (const std::string missing = missingFeatures(isa.tier); !missing.empty())
    return unfit(std::string("was made for ") + isa.name + "; this machine lacks " + missing +
                 ": compile the model again");

  const char* parts[4];
  uint64_t at = sizeof h;
  for (int i = 0; i < 4; ++i) {
    const BlobHeader::Section& s = h.sections[i];
    if (s.bytes > size - at || s.bytes % 64)
      return damaged(std::string("its ") + kSections[i] + " leave it");
    if (digest(bytes + at, s.bytes) != s.digest)
      return damaged(std::string("its ") + kSections[i] + ", " + std::to_string(s.bytes) +
                     " bytes at " + std::to_string(at) + ", do not have their checksum");
    parts[i] = bytes + at;
    at += s.bytes;
  }
  // The checksums hold, but anybody can compute them: the tables are checked. What the code does
  // with its arguments is beyond any check, so whoever can forge a blob can run code of his own
  // here.
  if (at != size || padded(uint64_t(h.calls) * sizeof(Call)) != h.sections[0].bytes ||
      padded(uint64_t(h.args) * sizeof(Arg)) != h.sections[1].bytes ||
      h.scratchBytes > kMaxScratch || h.scratchBytes % 64)
    return damaged("its sections do not have the size of what they hold");
  binary.tier = isa.tier;
  binary.compiler = textOf(h.madeBy);
  binary.compiler.erase(0, std::min(binary.compiler.find(" with ") + 6, binary.compiler.size()));
  binary.scratchBytes = h.scratchBytes;
  binary.kernels = h.kernels;
  binary.calls.resize(h.calls), binary.args.resize(h.args);
  if (h.calls) std::memcpy(binary.calls.data(), parts[0], h.calls * sizeof(Call));
  if (h.args) std::memcpy(binary.args.data(), parts[1], h.args * sizeof(Arg));
  binary.own = parts[2];
  binary.ownBytes = h.sections[2].bytes;
  binary.code = parts[3];
  binary.codeBytes = h.sections[3].bytes;
  return checkTables(image, binary);
}

} // namespace cpu
