#include "compiler.hpp"

#include <algorithm>

namespace tiles {

void Compiler::refuse(cdl_reason_t reason, const std::string& text) const {
  const char* node = cdl_get_string(image_, cdl_get_provenance(image_, instr().provenance)->node);
  throw Refusal{
      index_, reason,
      cdl::text(cdl::kindName(instr().kind), *node ? cdl::text(" '", node, "'") : "", ": ", text)};
}

Stream Compiler::compile() {
  for (index_ = 1; index_ < image_->instrs.count; ++index_) {
    switch (instr().kind) {
    case CDL_KIND_MATMUL:
    case CDL_KIND_CONV2D: compileProduct(*this); break;
    case CDL_KIND_COPY:
    case CDL_KIND_FILL: compileMove(*this); break;
    case CDL_KIND_RESCALE: compileRescale(*this); break;
    case CDL_KIND_CUSTOM: compileCustom(*this); break;
    default: compileArithmetic(*this);
    }
    stream_.jobs.back().count = uint32_t(stream_.commands.size()) - stream_.jobs.back().first;
  }
  return std::move(stream_);
}

// ---- Constants

int64_t Compiler::reserve(int64_t bytes) {
  const size_t at = stream_.own.size();
  stream_.own.resize(at + size_t(bytes + 63) / 64 * 64);
  return int64_t(at);
}

const char* Compiler::constant(const cdl_view_t& view) {
  const cdl_buffer_t& buffer = *cdl_get_buffer(image_, view.buffer);
  if (buffer.role != CDL_ROLE_CONSTANT) return nullptr;
  const cdl_constant_t& constant = *cdl_get_constant(image_, buffer.constant);
  if (constant.form == 0) return static_cast<const char*>(constants_[buffer.constant]);
  const size_t size = std::max<size_t>(1, cdl_elem_bits(constant.elem) / 8);
  splat_.resize(constant.bytes / size * size);
  for (size_t at = 0; at < splat_.size(); at += size)
    std::memcpy(splat_.data() + at, &constant.bits, size);
  return splat_.data();
}

// ---- Jobs

Tensor Compiler::walk(const cdl_view_t& view, const std::vector<int>& order) const {
  if (!elemBytes(view.elem))
    refuse(CDL_REASON_DTYPE, cdl::text("lanes hold no ", cdl::elemName(view.elem)));
  if (view.layout) refuse(CDL_REASON_LAYOUT, "only row-major operands are walked");
  Tensor t{view.buffer, view.elem, view.offset, {view.iv_strides[0], view.iv_strides[1]}, {}};
  for (size_t d = 0; d < order.size(); ++d)
    t.strides[d] = order[d] < 0 ? 0 : view.strides[order[d]];
  return t;
}

void Compiler::place(const cdl_view_t& view, Tensor& tensor) {
  const char* data = constant(view);
  if (!data) return;
  const auto [held, isNew] = held_.try_emplace(view.buffer, 0);
  if (isNew) {
    const uint64_t bytes = cdl_get_buffer(image_, view.buffer)->bytes;
    held->second = reserve(int64_t(bytes));
    if (bytes) std::memcpy(own(held->second), data, bytes);
  }
  tensor.buffer = kOwn;
  tensor.offset += held->second / elemBytes(view.elem);
}

uint32_t Compiler::operand(const cdl_view_t& view) {
  stream_.tensors.push_back(walk(view, order_));
  place(view, stream_.tensors.back());
  return uint32_t(stream_.tensors.size() - 1);
}

void Compiler::begin(const std::vector<int>& order, int64_t width, int64_t span) {
  Job job{index_, uint32_t(stream_.commands.size()), 0, uint32_t(order.size()), {}, width, span};
  for (size_t d = 0; d < order.size(); ++d)
    job.dims[d] = order[d] < 0 ? 1 : output().dims[order[d]];
  stream_.jobs.push_back(job);
  order_ = order;
  taken_.clear();
}

void Compiler::beginAll() {
  std::vector<int> order(std::max<size_t>(1, output().rank), -1);
  for (int d = 0; d < output().rank; ++d) order[size_t(d)] = d;
  begin(order, order.back() >= 0 && output().dims[order.back()] > kLanes / 2 ? kLanes : kSide,
        INT64_MAX);
}

uint8_t Compiler::emit(Command command, const std::vector<uint8_t>& spent) {
  const uint64_t room = (localBytes_ - 2 * kPanelBytes) / kRegisterBytes;
  for (uint8_t reg : spent) taken_[reg] = false;
  if (command.op != Opcode::STORE) {
    const auto free = std::find(taken_.begin(), taken_.end(), false);
    command.to = uint8_t(free - taken_.begin());
    if (free == taken_.end()) taken_.push_back(true);
    taken_[command.to] = true;
  }
  if (taken_.size() > room)
    refuse(CDL_REASON_MEMORY, cdl::text("needs ", taken_.size(), " tiles of ", kRegisterBytes,
                                        " bytes at once, local memory has room for ", room,
                                        " beside its panels: give its expression fewer values that "
                                        "wait for each other, or the ",
                                        "device a larger option 'local'"));
  stream_.registers = std::max<uint64_t>(stream_.registers, taken_.size());
  stream_.commands.push_back(command);
  return command.to;
}

uint8_t Compiler::load(const cdl_view_t& view) {
  return emit({.op = Opcode::LOAD, .index = operand(view)});
}

void Compiler::store(const cdl_view_t& view, uint8_t reg) {
  emit({.op = Opcode::STORE, .in = {reg}, .index = operand(view)}, {reg});
}

} // namespace tiles
