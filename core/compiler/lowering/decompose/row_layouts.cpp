#include "core/compiler/lowering/decompose/row_layouts.h"

#include <algorithm>

#include "core/compiler/lowering/decompose/describe.h"
#include "core/compiler/lowering/decompose/lower.h"

namespace candela::lowering::decompose {

using graph::Graph, graph::Layout, graph::Node, graph::OpKind;

namespace {

/// Constants may be rounded up to whole blocks: packing does that.
bool fitsIn(const Layout& layout, const graph::Value& value) {
  if (layout.isRowMajor() || layout.divides(value.type.shape())) return true;
  Shape rounded = value.type.shape();
  for (size_t i = 0; i < layout.steps.size(); ++i)
    if (const auto& step = layout.steps[i]; step.factor == 0 && step.dim < rounded.size())
      rounded[step.dim] =
          (rounded[step.dim] + layout.stepOf(i) - 1) / layout.stepOf(i) * layout.stepOf(i);
  return value.isConstant() && layout.divides(rounded);
}

/// A block of channels holds no two groups, unless every channel is a group of its own.
bool keepsGroupsWhole(const Node& node, const RowLayouts& option) {
  if ((node.kind != OpKind::Conv && node.kind != OpKind::ConvInteger) || node.intAttr("group") == 1)
    return true;
  const int64_t group = node.intAttr("group");
  const graph::Value &x = *node.operand(0), &y = *node.result();
  const auto whole = [&](const Layout& layout, const graph::Value& value) {
    for (size_t i = 0; i < layout.steps.size(); ++i)
      if (layout.steps[i].dim == 1 && layout.steps[i].factor == 0 &&
          value.type.dim(1) / group % layout.stepOf(i))
        return false;
    return true;
  };
  const bool isDepthwise = group == x.type.dim(1) && group == y.type.dim(1);
  if (isDepthwise) return option.operands[0] == option.result;
  // Of weights, dim 0 counts what dim 1 of the result does.
  const Layout& weights = option.operands[1];
  for (size_t i = 0; i < weights.steps.size(); ++i)
    if (weights.steps[i].dim == 0 && weights.steps[i].factor == 0 &&
        y.type.dim(1) / group % weights.stepOf(i))
      return false;
  return whole(option.operands[0], x) && whole(option.result, y);
}

} // namespace

bool takesOn(Node& node, const capabilities::Target& target, const RowLayouts& layouts) {
  std::vector<std::pair<graph::Value*, Layout>> before;
  const auto set = [&](graph::Value* value, const Layout& layout) {
    if (!value) return;
    before.emplace_back(value, value->type.layout);
    value->type.layout = layout;
  };
  for (size_t i = 0; i < layouts.operands.size(); ++i) set(node.operand(i), layouts.operands[i]);
  set(node.result(), layouts.result);
  const std::vector<NodeInstr> instrs = instructionsOf(node);
  const bool isNative = !instrs.empty() && std::ranges::all_of(instrs, [&](const NodeInstr& instr) {
    return target.query(describe(instr)).support == capabilities::Support::native;
  });
  const bool takes = isNative || endsInProduct(node, target);
  for (size_t i = before.size(); i-- > 0;) before[i].first->type.layout = before[i].second;
  return takes;
}

Layout layoutOf(const capabilities::Target& target, uint16_t index) {
  const cdl_layout_t& record = target.layouts()[index];
  Layout layout;
  layout.pad = static_cast<Layout::Pad>(record.pad_content);
  for (int i = 0; i < record.count && !record.opaque; ++i)
    layout.steps.push_back({record.dim[i], record.factor[i]});
  return layout;
}

std::vector<RowLayouts> layoutsOfRows(Node& node, const capabilities::Target& target) {
  const std::vector<NodeInstr> instrs = instructionsOf(node);
  if (instrs.size() != 1) return {};
  const size_t operands = instrs[0].operands.size();
  std::vector<RowLayouts> found;
  for (const auto& [row, atoms] : target.rows()) {
    if (row.kind != instrs[0].kind || row.fn != instrs[0].fn || row.elem_count != operands + 1)
      continue;
    RowLayouts option{std::vector<Layout>(node.operands().size()),
                      layoutOf(target, row.layouts[operands])};
    bool fits = fitsIn(option.result, *node.result()), isPlainRow = option.result.isRowMajor();
    for (size_t i = 0; i < operands; ++i) {
      // behind the first two the node counts its operands in its own way
      if (row.layouts[i] == 0 || target.layouts()[row.layouts[i]].opaque) continue;
      option.operands[i] = layoutOf(target, row.layouts[i]);
      fits = fits && node.operand(i) && fitsIn(option.operands[i], *node.operand(i));
      isPlainRow = false;
    }
    if (fits && !isPlainRow && keepsGroupsWhole(node, option) && takesOn(node, target, option))
      found.push_back(std::move(option));
  }
  return found;
}

Graph alone(const Node& node) {
  Graph graph;
  std::map<const graph::Value*, graph::Value*> copies;
  for (const graph::Value* operand : node.operands()) {
    if (!operand || copies.count(operand)) continue;
    if (operand->isConstant())
      graph.addCopy(*operand->producer, copies);
    else
      copies[operand] = graph.addInput(operand->name, operand->type);
  }
  const Node* copy = graph.addCopy(node, copies);
  // A node does not know whether a result without users is an output of its graph: all count as
  // used.
  for (size_t i = 0; i < node.results().size(); ++i)
    graph.addOutput(copy->result(i), node.result(i)->name);
  return graph;
}

} // namespace candela::lowering::decompose
