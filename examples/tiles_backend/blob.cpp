// Stored streams: what a blob is made of, and what is checked before any of it is believed.
#include "engine.hpp"

#include <candela/backend/stored.hpp>

#include <algorithm>

namespace tiles {

namespace {

// of all that stands in stream.hpp: raise it with every change there
constexpr uint32_t kFormat = 1;

/// Whether the engine stays inside of its memory, whatever the stream says.
class Check {
public:
  Check(const cdl_image_t* image, const Stream& stream) : image_(image), stream_(stream) {}

  bool holds(const Job& job) {
    if (job.instr == 0 || job.instr >= image_->instrs.count || job.rank < 1 ||
        job.rank > CDL_MAX_RANK || (job.width != kSide && job.width != kLanes) || job.span < 1 ||
        job.first > stream_.commands.size() || job.count > stream_.commands.size() - job.first)
      return false;
    instr_ = cdl_get_instr(image_, job.instr);
    elements_ = 1;
    for (uint32_t d = 0; d < job.rank; ++d) {
      if (job.dims[d] < 0 || job.dims[d] > CDL_MAX_DIM || elements_ > CDL_MAX_ELEMENTS)
        return false;
      elements_ *= job.dims[d];
    }
    // Each job ends by storing its elements, so that none is larger than a buffer.
    if (job.count == 0 || stream_.commands[job.first + job.count - 1].op != Opcode::STORE)
      return false;
    return std::all_of(stream_.commands.begin() + job.first,
                       stream_.commands.begin() + job.first + job.count,
                       [&](const Command& command) { return holds(job, command); });
  }

private:
  static constexpr int64_t kMost = int64_t(1) << 31; // of what is multiplied by a dim

  bool holds(const Job& job, const Command& c) const {
    const auto isRegister = [&](uint8_t reg) { return reg < stream_.registers; };
    if (c.op >= Opcode::COUNT || !isRegister(c.to) || c.inputs > 6 ||
        !std::all_of(c.in, c.in + 6, isRegister) || c.left[0] > 63 || c.left[1] > 63)
      return false;
    if (c.op == Opcode::MULTIPLY)
      return c.index < stream_.products.size() && holds(job, stream_.products[c.index]);
    if (c.op != Opcode::LOAD && c.op != Opcode::STORE) return true;
    if (c.index >= stream_.tensors.size()) return false;
    const Tensor& t = stream_.tensors[c.index];
    if (c.op == Opcode::STORE &&
        (t.buffer == kOwn || elements_ > int64_t(bytesOf(t.buffer)) || isReadOnly(t.buffer)))
      return false;
    return reaches(t, job.dims, t.strides, job.rank);
  }

  bool holds(const Job& job, const Product& p) const {
    const int64_t* numbers[] = {p.kernel, p.extent, p.stride, p.dilation, p.pad};
    for (const int64_t* n : numbers)
      for (int d = 0; d < 2; ++d)
        if (n[d] < (n == p.kernel) || n[d] > kMost || job.dims[1 + d] > kMost) return false;
    if (job.rank != 4 || job.width != kSide || job.dims[3] != p.columns || p.channels < 0 ||
        p.channels > kMost || p.kernel[0] * p.kernel[1] > kMost)
      return false;
    const int64_t* s = p.w.strides;
    const bool isPacked = s[1] != kSide * s[2];
    const int64_t of[] = {job.dims[0], p.channels, p.extent[0], p.extent[1]};
    const int64_t by[] = {job.dims[0],
                          isPacked ? p.panels() : 1,
                          isPacked ? kSide : p.columns,
                          p.channels,
                          p.kernel[0],
                          p.kernel[1]};
    return reaches(p.x, of, p.x.strides, 4) && reaches(p.w, by, s, 6);
  }

  /// Bytes of a buffer that commands may walk.
  uint64_t bytesOf(uint32_t buffer) const {
    if (buffer == kOwn) return stream_.own.size();
    if (buffer == 0 || buffer >= image_->buffers.count) return 0;
    return cdl_get_buffer(image_, buffer)->role == CDL_ROLE_CONSTANT
               ? 0
               : cdl_get_buffer(image_, buffer)->bytes;
  }
  bool isReadOnly(uint32_t buffer) const {
    return cdl_get_buffer(image_, buffer)->role == CDL_ROLE_INPUT;
  }

  /// Whether all elements of these dims lie in the tensor's buffer, wherever the loops around the
  /// instruction stand.
  bool reaches(const Tensor& t, const int64_t* dims, const int64_t* strides, uint32_t rank) const {
    if (!elemBytes(t.elem)) return false;
    __int128 low = t.offset, high = t.offset;
    const auto add = [&](int64_t count, int64_t step) {
      (step < 0 ? low : high) += __int128(count - 1) * step;
    };
    for (uint32_t d = 0; d < rank; ++d) {
      if (dims[d] == 0) return true;
      add(dims[d], strides[d]);
    }
    for (uint32_t l = instr_->loop; l; l = cdl_get_loop(image_, l)->parent) {
      const cdl_loop_t& loop = *cdl_get_loop(image_, l);
      add(int64_t(loop.trip), t.loops[loop.parent ? 1 : 0]);
    }
    return low >= 0 && high < __int128(bytesOf(t.buffer) / uint64_t(elemBytes(t.elem)));
  }

  const cdl_image_t* image_;
  const Stream& stream_;
  const cdl_instr_t* instr_ = nullptr; // of the job
  int64_t elements_ = 0;
};

} // namespace

cdl::Status Engine::save(const cdl::Writer& to) const {
  const std::vector<uint64_t> registers{stream_.registers};
  cdl::StoredWriter stored(kMadeBy, kFormat, image_);
  stored.add(registers);
  stored.add(stream_.jobs);
  stored.add(stream_.commands);
  stored.add(stream_.tensors);
  stored.add(stream_.products);
  stored.add(stream_.own);
  return stored.write(to);
}

cdl::Status loadStream(const cdl_image_t* image, const void* blob, uint64_t size,
                       uint64_t localBytes, Stream& stream) {
  std::vector<uint64_t> registers;
  cdl::StoredReader stored;
  cdl::Status status = stored.open(kMadeBy, kFormat, image, blob, size);
  const auto read = [&](auto& records) {
    if (status.isOk()) status = stored.read(records);
  };
  read(registers), read(stream.jobs), read(stream.commands), read(stream.tensors),
      read(stream.products);
  read(stream.own);
  if (!status.isOk()) return status;
  stream.registers = registers.empty() ? 0 : registers[0];
  if (stream.registers > 256) return cdl::damaged(cdl::text(stream.registers, " registers"));
  if (stream.localBytes() > localBytes)
    return cdl::unfit(cdl::text("needs ", stream.localBytes() / 1024,
                                " KiB of local memory, this device has ", localBytes / 1024));
  Check check(image, stream);
  uint32_t last = 0;
  for (const Job& job : stream.jobs) {
    if (job.instr < last || !check.holds(job))
      return cdl::damaged(cdl::text("a job of instruction ", job.instr));
    last = job.instr;
  }
  return cdl::ok();
}

} // namespace tiles
