#include "core/compiler/program/passes/tile/borders.h"

#include <algorithm>

namespace candela::program::passes::tile {

namespace {

/// The content of a buffer among the elements that it has with its border.
struct Content {
  Elem elem = Elem::none;
  std::vector<int64_t> dims, lo, whole; ///< `whole`: with the border
  bool isKnown() const { return !whole.empty(); }
  bool holds(int64_t element) const {
    for (size_t d = dims.size(); d-- > 0;) {
      const int64_t at = element % whole[d] - lo[d];
      if (at < 0 || at >= dims[d]) return false;
      element /= whole[d];
    }
    return true;
  }
};

/// The content of a buffer, from a view of all of it; unknown where there is none.
Content contentOf(const Program& program, uint32_t buffer) {
  const Halo& halo = *program.buffers[buffer].halo;
  for (const Instr& instr : program.instrs)
    for (const auto* views : {&instr.inputs, &instr.outputs})
      for (const View& view : *views) {
        if (view.buffer != buffer || view.dims.size() != halo.lo.size() || view.elem != halo.elem)
          continue;
        Content content{view.elem, view.dims, {halo.lo.begin(), halo.lo.end()}, view.dims};
        int64_t first = 0, count = 1;
        for (size_t d = view.dims.size(); d-- > 0;) {
          content.whole[d] += halo.lo[d] + halo.hi[d];
          first += halo.lo[d] * count;
          count *= content.whole[d];
        }
        const bool isAll =
            elemBytes(view.elem, static_cast<uint64_t>(count)) == program.buffers[buffer].bytes;
        if (isAll && view.offset == first && view.strides == denseStrides(content.whole))
          return content;
      }
  return {};
}

/// Whether a view has an element of the content.
bool meets(const View& view, const Content& content) {
  std::vector<int64_t> at(view.dims.size(), 0);
  for (;;) {
    int64_t element = view.offset;
    for (size_t d = 0; d < at.size(); ++d) element += at[d] * view.strides[d];
    if (content.holds(element)) return true;
    size_t d = at.size();
    while (d-- > 0 && ++at[d] == view.dims[d]) at[d] = 0;
    if (d == SIZE_MAX) return false;
  }
}

} // namespace

void dropBorders(Program& program) {
  for (uint32_t b = 0; b < program.buffers.size(); ++b) {
    Buffer& buffer = program.buffers[b];
    if (buffer.role != Role::temp || !buffer.halo) continue;
    const Content content = contentOf(program, b);
    if (!content.isKnown()) continue;
    std::erase_if(program.instrs, [&](const Instr& instr) {
      return instr.kind == CDL_KIND_FILL && instr.outputs[0].buffer == b &&
             instr.outputs[0].elem == content.elem && instr.outputs[0].count() > 0 &&
             !meets(instr.outputs[0], content);
    });
    buffer.halo.reset();
  }
}

} // namespace candela::program::passes::tile
