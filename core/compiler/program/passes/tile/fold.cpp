#include "core/compiler/program/passes/tile/fold.h"

#include <algorithm>
#include <optional>

namespace candela::program::passes::tile {

namespace {

/// The one operand that reads a buffer that `writer` alone writes; nullptr: there is another use.
View* onlyReader(Program& program, uint32_t buffer, size_t writer) {
  View* found = nullptr;
  for (size_t i = 0; i < program.instrs.size(); ++i) {
    for (const View& view : program.instrs[i].outputs)
      if (view.buffer == buffer && i != writer) return nullptr;
    for (View& view : program.instrs[i].inputs) {
      if (view.buffer != buffer) continue;
      if (found || i <= writer) return nullptr;
      found = &view;
    }
  }
  return found;
}

/// The view of the copy's operand that has what `reader` sees of its result; nullopt: there is
/// none.
std::optional<View> throughCopy(const Instr& copy, const View& reader) {
  const View &from = copy.inputs[0], &to = copy.outputs[0];
  if (reader.elem != to.elem || from.elem != to.elem || reader.offset != to.offset ||
      reader.count() != to.count())
    return std::nullopt;
  View view = reader;
  view.buffer = from.buffer;
  view.offset = from.offset;
  for (size_t d = 0; d < view.dims.size(); ++d) {
    if (view.dims[d] == 1) {
      view.strides[d] = 0;
      continue;
    }
    // The dim of the copy that this one is a part of: the largest step that goes into its own.
    size_t of = to.dims.size();
    for (size_t c = 0; c < to.dims.size(); ++c) {
      const int64_t step = to.strides[c];
      const bool holds = to.dims[c] > 1 && step > 0 && view.strides[d] % step == 0 &&
                         view.strides[d] / step * (view.dims[d] - 1) < to.dims[c] &&
                         view.strides[d] > 0;
      if (holds && (of == to.dims.size() || step > to.strides[of])) of = c;
    }
    if (of == to.dims.size()) return std::nullopt;
    view.strides[d] = from.strides[of] * (view.strides[d] / to.strides[of]);
  }
  return view;
}

/// Whether each dim steps over all that lies within it, so that no two indices share an element.
bool isNested(const View& view) {
  std::vector<std::pair<int64_t, int64_t>> dims;
  for (size_t d = 0; d < view.dims.size(); ++d)
    if (view.dims[d] > 1) dims.emplace_back(view.strides[d], view.dims[d]);
  std::ranges::sort(dims);
  int64_t within = 1;
  for (const auto& [stride, extent] : dims) {
    if (stride < within) return false;
    within = stride * extent;
  }
  return true;
}

} // namespace

void foldInputCopies(Program& program) {
  std::vector<bool> isFolded(program.instrs.size(), false);
  for (size_t i = 0; i < program.instrs.size(); ++i) {
    const Instr& copy = program.instrs[i];
    if (copy.kind != CDL_KIND_COPY || copy.loop != kNone || copy.inputs.size() != 1 ||
        copy.outputs.size() != 1)
      continue;
    const Buffer& from = program.buffers[copy.inputs[0].buffer];
    const uint32_t to = copy.outputs[0].buffer;
    if (from.role != Role::input || program.buffers[to].role != Role::temp ||
        program.buffers[to].halo)
      continue;
    if (!isNested(copy.outputs[0])) continue;
    View* const reader = onlyReader(program, to, i);
    if (!reader || !isNested(*reader)) continue;
    const std::optional<View> view = throughCopy(copy, *reader);
    if (!view) continue;
    *reader = *view;
    isFolded[i] = true;
  }
  std::vector<uint32_t> index(program.instrs.size(), kNone);
  std::vector<Instr> kept;
  for (size_t i = 0; i < program.instrs.size(); ++i) {
    if (isFolded[i]) continue;
    index[i] = static_cast<uint32_t>(kept.size());
    kept.push_back(std::move(program.instrs[i]));
  }
  for (Instr& instr : kept) {
    std::vector<uint32_t> waits;
    for (const uint32_t wait : instr.waits)
      if (index[wait] != kNone) waits.push_back(index[wait]);
    instr.waits = std::move(waits);
  }
  program.instrs = std::move(kept);
}

} // namespace candela::program::passes::tile
