#pragma once

#include "core/compiler/program/program.h"

/// Views as elements of their buffers.
namespace candela::conformance::judge {

/// The elements that the view names, in row-major order of its dims; outside of `for`.
inline std::vector<int64_t> elementsOf(const program::View& view) {
  std::vector<int64_t> elements;
  Shape index(view.dims.size(), 0);
  for (const int64_t dim : view.dims)
    if (dim == 0) return elements;
  for (int64_t at = view.offset;;) {
    elements.push_back(at);
    size_t d = index.size();
    for (;; --d) {
      if (d == 0) return elements;
      at += view.strides[d - 1];
      if (++index[d - 1] < view.dims[d - 1]) break;
      at -= view.strides[d - 1] * view.dims[d - 1];
      index[d - 1] = 0;
    }
  }
}

/// The same in all rounds of the loops around the program's first instruction.
inline std::vector<int64_t> elementsOf(const program::Program& program, const program::View& view) {
  program::View all = view;
  size_t depth = 0;
  for (uint32_t l = program.instrs[0].loop; l != program::kNone;
       l = program.loops[l].parent, ++depth)
    all.dims.insert(all.dims.begin(), static_cast<int64_t>(program.loops[l].trip));
  all.strides.insert(all.strides.begin(), view.ivStrides, view.ivStrides + depth);
  return elementsOf(all);
}

/// What the buffer holds when the program begins; empty for one that nothing fills.
inline Result<Bytes> contentOf(const program::Program& program, uint32_t buffer,
                               std::span<const Tensor> inputs) {
  using program::Role;
  size_t next = 0;
  for (uint32_t b = 0; b < buffer; ++b) {
    const Role role = program.buffers[b].role;
    next += role == Role::input || role == Role::inout || role == Role::state;
  }
  const program::Buffer& one = program.buffers[buffer];
  if (one.role == Role::output || one.role == Role::temp) return Bytes();
  if (one.role != Role::constant) return inputs[next].bytes;
  const Payload& payload = program.constants[one.constant].payload;
  CDL_ASSIGN(const Tensor tensor, payload.materialize({payload.count()}));
  return tensor.bytes;
}

} // namespace candela::conformance::judge
