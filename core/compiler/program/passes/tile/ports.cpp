// What a chain reads from and leaves outside of itself, and how the device takes parts of it.
#include <algorithm>
#include <numeric>
#include <ranges>

#include "core/compiler/program/passes/schedule/described.h"
#include "core/compiler/program/passes/tile/tile_space.h"

namespace candela::program::passes::tile {

namespace {

/// The view in a buffer of its own: `step` elements from one to the next of its innermost dim, and
/// `gap` more elements, of each dim, behind each row.
View laidOut(View view, int64_t step, int64_t gap, bool byColumns) {
  int64_t run = step;
  for (const size_t d : dimsInOrder(view.dims.size(), byColumns) | std::views::reverse) {
    if (!repeats(view, d)) {
      view.strides[d] = run;
      run = (run + gap) * view.dims[d];
    } else if (view.strides[d]) {
      view.strides[d] = run;
    }
  }
  view.offset = 0;
  return view;
}

/// Some row of the function does not take every view: the question below is dear, and most devices
/// need not be asked.
bool hasNarrowRow(const capabilities::Target& target, const Instr& instr) {
  return std::ranges::any_of(target.rows(), [&](const capabilities::Target::Row& entry) {
    const cdl_row_t& row = entry.row;
    return row.kind == instr.kind && row.fn == instr.fn && row.operand_class < CDL_CLASS_AFFINE;
  });
}

/// How the target does the instruction, whose operands lie as their views say.
capabilities::Support supportOf(const Program& program, const Instr& instr,
                                const capabilities::Target& target) {
  capabilities::InstrDesc desc = schedule::described(program, instr);
  schedule::describeLayouts(instr, desc);
  return target.query(desc).support;
}

/// The widest class of this view with which the target still does the instruction as it does it
/// with all views dense; affine where it does not do it then either.
capabilities::OperandClass widestOf(const Program& program, const Instr& work, bool output,
                                    size_t operand, const capabilities::Target& target) {
  using capabilities::OperandClass;
  if (!hasNarrowRow(target, work)) return OperandClass::affine;
  Instr dense = work;
  for (auto* views : {&dense.inputs, &dense.outputs})
    for (View& view : *views) view = laidOut(view, 1, 0, false);
  const capabilities::Support support = supportOf(program, dense, target);
  if (support == capabilities::Support::none) return OperandClass::affine;
  const bool byColumns = !output && liesByColumns(work, operand);
  const auto takes = [&](int64_t step, int64_t gap) {
    Instr wider = dense;
    View& view = (output ? wider.outputs : wider.inputs)[operand];
    view = laidOut(view, step, gap, byColumns);
    return supportOf(program, wider, target) == support;
  };
  if (takes(2, 0)) return OperandClass::affine;
  return takes(1, 1) ? OperandClass::rowStrided : OperandClass::dense;
}

/// The widest class that is taken by each instruction that uses the port, and by each one that
/// follows where it is a result.
capabilities::OperandClass widestOf(const Program& program, const Chain& chain, const Port& port,
                                    const capabilities::Target& target) {
  auto widest = capabilities::OperandClass::affine;
  for (const auto& [l, operand] : port.uses) {
    widest = std::min(widest, widestOf(program, chain.links[l].work, port.output, operand, target));
    if (!port.output || l + 1 == chain.links.size()) continue;
    for (const size_t i : chain.links[l + 1].fromBefore)
      widest = std::min(widest, widestOf(program, chain.links[l + 1].work, false, i, target));
  }
  return widest;
}

} // namespace

bool liesByColumns(const Instr& instr, size_t operand) {
  if (instr.kind != CDL_KIND_MATMUL || operand != 1) return false;
  const View& view = instr.inputs[1];
  return view.strides[1] == 1 && view.strides[2] > 1 && view.dims[1] > 1;
}

std::vector<size_t> dimsInOrder(size_t rank, bool byColumns) {
  std::vector<size_t> dims(rank);
  std::iota(dims.begin(), dims.end(), size_t{0});
  if (byColumns) std::swap(dims[rank - 2], dims[rank - 1]);
  return dims;
}

std::vector<Port> portsOf(const Program& program, const Chain& chain, const Machine& machine,
                          bool hasSums) {
  std::vector<Port> ports;
  for (size_t l = 0; l < chain.links.size(); ++l) {
    const Link& link = chain.links[l];
    for (size_t i = 0; i < link.work.inputs.size(); ++i) {
      if (std::ranges::find(link.fromBefore, i) != link.fromBefore.end()) continue;
      const View& view = link.work.inputs[i];
      const auto same = std::ranges::find_if(ports, [&](const Port& port) {
        return port.view.buffer == view.buffer && port.view.elem == view.elem &&
               port.view.offset == view.offset && port.view.dims == view.dims &&
               port.view.strides == view.strides && port.view.layout == view.layout &&
               port.byColumns == liesByColumns(link.work, i) && port.map == link.inputs[i];
      });
      if (same != ports.end())
        same->uses.emplace_back(l, i);
      else
        ports.push_back({.view = view,
                         .map = link.inputs[i],
                         .uses = {{l, i}},
                         .byColumns = liesByColumns(link.work, i)});
    }
  }
  for (size_t l = 0; l < chain.links.size(); ++l) {
    const Link& link = chain.links[l];
    const bool isLast = l + 1 == chain.links.size();
    if (!isLast && !link.leaves) continue;
    const bool isInSums = hasSums && isSum(link.work);
    for (size_t i = 0; i < link.work.outputs.size(); ++i)
      ports.push_back(
          {link.work.outputs[i], link.outputs[i], {{l, i}}, true, link.work.inout, isInSums});
  }
  for (Port& port : ports) port.order = dimsInOrder(port.view.dims.size(), port.byColumns);
  if (machine.target)
    for (Port& port : ports) port.widest = widestOf(program, chain, port, *machine.target);
  return ports;
}

uint64_t compactBytes(const View& view, const std::vector<Range>& region) {
  uint64_t count = 1;
  for (size_t d = 0; d < region.size(); ++d)
    if (!repeats(view, d)) count *= static_cast<uint64_t>(region[d].size());
  return elemBytes(view.elem, count);
}

} // namespace candela::program::passes::tile
