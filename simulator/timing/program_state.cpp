#include "simulator/timing/program_state.h"

#include "simulator/error.h"

namespace candela::npu {
namespace {

constexpr size_t kMaxLoops = 4;

} // namespace

Outcome ProgramState::apply(const Insn& insn) {
  const auto& v = insn.values;
  switch (insn.op) {
  case Op::kLoop: {
    const int64_t end = pc_ + 1 + v[field::loop::kLength];
    const auto limit = static_cast<int64_t>(loops_.empty() ? end_ : loops_.back().end);
    if (end > limit || loops_.size() == kMaxLoops)
      return error("a loop that ends at {}, what it lies in at {}; they nest up to {}", end, limit,
                   kMaxLoops);
    loops_.push_back({pc_ + 1, static_cast<uint32_t>(end), v[field::loop::kCount]});
    break;
  }
  case Op::kMovi:
  case Op::kAddi: {
    int32_t& x = index_[static_cast<size_t>(v[field::movi::kX])];
    const auto value = static_cast<uint32_t>(v[field::movi::kValue]);
    x = static_cast<int32_t>(insn.op == Op::kMovi ? value : static_cast<uint32_t>(x) + value);
    index_[0] = 0;
    break;
  }
  case Op::kSetd:
    descriptors_[static_cast<size_t>(v[field::setd::kD])]
                [static_cast<size_t>(v[field::setd::kWord])] =
                    static_cast<uint64_t>(v[field::setd::kValue]);
    break;
  default: break;
  }
  return {};
}

void ProgramState::advance() {
  ++pc_;
  while (!loops_.empty() && pc_ == loops_.back().end) {
    if (--loops_.back().left > 0) {
      pc_ = loops_.back().begin;
      break;
    }
    loops_.pop_back();
  }
}

Result<Operation> ProgramState::operation(const Insn& insn) const {
  const OpInfo& info = *opInfo(static_cast<uint64_t>(insn.op));
  static constexpr DescriptorBits kNone{};
  Insn sent = insn;
  const DescriptorBits* d = &kNone;
  const DescriptorBits* second = &kNone;
  for (size_t i = 0; i < info.fields.size(); ++i) {
    const FieldInfo& field = info.fields[i];
    if (field.kind == FieldKind::kIndex)
      sent.values[i - 1] += index_[static_cast<size_t>(insn.values[i])];
    if (field.kind == FieldKind::kDescriptor)
      (field.name == "d" ? d : second) = &descriptors_[static_cast<size_t>(insn.values[i])];
  }
  return operationOf(sent, *d, *second);
}

} // namespace candela::npu
