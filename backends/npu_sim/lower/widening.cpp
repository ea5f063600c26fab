#include "widening.hpp"

namespace npu_sim {

namespace {

struct Reader {
  uint32_t instr = 0;
  uint32_t input = 0;
};

bool isWidening(const ProgramImage& image, const cdl::Op& op) {
  if (op.kind() != cdl::Kind::Convert || op.fn() != CDL_CONVERT_TRUNC) return false;
  const DeviceView from = image.input(op, 0);
  const DeviceView to = image.output(op);
  const bool isNarrow = from.elem == CDL_I8 || from.elem == CDL_U8 || from.elem == CDL_I16;
  const bool isWidening = to.elem == CDL_I32 ? isNarrow : from.elem == CDL_BF16;
  return isWidening && (to.elem == CDL_I32 || to.elem == CDL_F32) && from.isLocal() && to.isLocal();
}

/// Whether the engine computes the same where this input is narrower. A sum is one of runs then: of
/// windows it is one of i32, or of floats.
bool takesNarrow(const ProgramImage& image, const cdl::Op& op, uint32_t input) {
  switch (op.kind()) {
  case cdl::Kind::Binary: return true;
  case cdl::Kind::Rescale: return input == 0 && op.inputs() <= 5;
  case cdl::Kind::Reduce: {
    const DeviceView x = image.input(op, 0);
    const bool isRun = x.strides[1] == 1 || x.dims[1] == 1;
    return op.fn() == CDL_REDUCE_SUM && (isRun || x.elem == CDL_F32);
  }
  default: return false;
  }
}

bool overlaps(const Access& a, const Access& b) {
  return a.memory == b.memory && a.begin < b.end && b.begin < a.end;
}

/// Whether an instruction from `first` to `last` writes bytes of the scratchpad that are read.
bool isOverwritten(const ProgramImage& image, const Access& read, uint32_t first, uint32_t last) {
  for (uint32_t i = first; i <= last; ++i) {
    const cdl::Op op = image.op(i);
    for (uint32_t v = 0; v < op.instr().outputs; ++v)
      if (overlaps(image.output(op, v).access(true), read)) return true;
  }
  return false;
}

/// The part of `from` that `view` is of `to`: both step alike.
DeviceView partOf(const DeviceView& from, const DeviceView& to, const DeviceView& view) {
  DeviceView part = view;
  part.at = from.at + (view.at - to.at) / to.bytes * from.bytes;
  part.bytes = from.bytes;
  part.elem = from.elem;
  part.buffer = from.buffer;
  return part;
}

/// Left out where every reader takes the operand itself, and where that still stands there when the
/// last of them reads.
bool leaveOut(ProgramImage& image, const cdl::Op& op) {
  const DeviceView from = image.input(op, 0);
  const DeviceView to = image.output(op);
  if (!stepsAlike(from, to) || to.elements() == 0) return false;
  const auto reads = image.readsOf(op.index(), to.buffer);
  if (!reads || reads->empty()) return false;
  std::vector<Reader> readers;
  for (const uint32_t instr : *reads) {
    const cdl::Op reader = image.op(instr);
    for (uint32_t v = 0; v < reader.inputs(); ++v) {
      if (image.input(reader, v).buffer != to.buffer) continue;
      if (!takesNarrow(image, reader, v)) return false;
      readers.push_back({instr, v});
    }
  }
  if (isOverwritten(image, from.access(false), op.index() + 1, reads->back())) return false;
  for (const auto& [instr, input] : readers)
    image.readInstead(instr, input, partOf(from, to, image.input(image.op(instr), input)));
  return true;
}

} // namespace

std::set<uint32_t> leaveOutWidenings(ProgramImage& image) {
  std::set<uint32_t> unneeded;
  for (uint32_t i = 1; i < image.instrs(); ++i) {
    const cdl::Op op = image.op(i);
    if (isWidening(image, op) && leaveOut(image, op)) unneeded.insert(i);
  }
  return unneeded;
}

} // namespace npu_sim
