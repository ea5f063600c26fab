#include "core/compiler/graph/custom.h"

#include <algorithm>
#include <bit>

#include "candela/cdl.h"
#include "core/compiler/graph/checks.h"
#include "core/compiler/graph/loop.h"
#include "core/compiler/graph/ops/common.h"
#include "core/support/text/scan.h"

namespace candela::graph {

namespace {

constexpr std::string_view kPrefix = "attr";

/// Nullopt: no attribute of an instruction.
std::optional<uint16_t> idOf(std::string_view name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  const auto number = text::parseNumber<int64_t>(name.substr(kPrefix.size()));
  if (!number || *number < CDL_CUSTOM_ATTR_FIRST || *number > UINT16_MAX) return std::nullopt;
  const auto id = static_cast<uint16_t>(*number);
  return instrAttrName(id) == name ? std::optional(id) : std::nullopt; // one spelling
}

bool fits(const Attr& attr) {
  if (const auto* values = std::get_if<std::vector<int64_t>>(&attr))
    return !values->empty() && values->size() <= 8;
  return std::holds_alternative<int64_t>(attr) || std::holds_alternative<double>(attr);
}

Status checkInstrAttrs(const Node& node) {
  int given = 0;
  for (const auto& [name, attr] : node.attrs) {
    if (node.info().attr(name)) continue;
    if (!idOf(name)) return node.fail("custom_c1", name);
    if (!fits(attr)) return node.fail("custom_c2", name);
    ++given;
  }
  return given <= CDL_MAX_CUSTOM_ATTRS ? Status::ok()
                                       : node.fail("custom_c3", given, CDL_MAX_CUSTOM_ATTRS);
}

} // namespace

std::string instrAttrName(uint16_t id) { return fmt::format("{}{}", kPrefix, id); }

std::vector<InstrAttr> instrAttrs(const Node& node) {
  std::vector<InstrAttr> all;
  for (const auto& [name, attr] : node.attrs) {
    const auto id = node.info().attr(name) ? std::nullopt : idOf(name);
    if (!id) continue;
    if (const auto* values = std::get_if<std::vector<int64_t>>(&attr))
      all.push_back({*id, 3, *values});
    else if (const double* real = std::get_if<double>(&attr))
      all.push_back({*id, 2, {std::bit_cast<int64_t>(*real)}});
    else
      all.push_back({*id, 1, {std::get<int64_t>(attr)}});
  }
  std::ranges::sort(all, {}, &InstrAttr::id);
  return all;
}

std::string shownOp(const Node& node) {
  return node.kind == OpKind::Custom ? node.stringAttr("op") : std::string(opName(node.kind));
}

uint8_t instrAttrType(const Node& node, uint16_t id) {
  if (node.kind != OpKind::Custom) return cdl_attr_facts(id)->type;
  const std::vector<InstrAttr> all = instrAttrs(node);
  const auto found = std::ranges::find(all, id, &InstrAttr::id);
  CDL_CHECK(found != all.end(), "{} has no attribute {}", node.userName(), id);
  return found->type;
}

Result<Node*> addCustom(Graph& graph, std::vector<Value*> operands, Attrs attrs,
                        std::shared_ptr<Graph> body, std::vector<TensorType> types,
                        Provenance provenance) {
  Node* node = graph.addNodeUnchecked(OpKind::Custom, std::move(operands), std::move(attrs),
                                      std::move(provenance), std::move(types));
  node->body = std::move(body);
  auto inferred = inferTypes(*node);
  Status status = inferred ? verifyBody(*node) : inferred.status();
  if (status) return node;
  graph.erase(node);
  return status;
}

Result<Types> inferCustom(const Node& node) {
  CDL_TRY(checkInstrAttrs(node));
  const auto& operands = node.operands();
  for (size_t i = 0; i < operands.size(); ++i)
    if (!operands[i])
      return badModel("{} '{}': operand {} is missing", opName(node.kind), node.userName(), i);
  Types types;
  if (!node.body) {
    for (size_t i = 0; i < node.results().size(); ++i) {
      types.push_back(node.result(i)->type);
      if (types[i].elem == Elem::none) return node.fail("custom_c6", i);
    }
    return types;
  }
  const auto& inputs = node.body->inputs();
  if (inputs.size() != operands.size())
    return node.fail("custom_c4", inputs.size(), operands.size());
  for (size_t i = 0; i < operands.size(); ++i)
    if (!agrees(inputs[i]->type, operands[i]->type))
      return node.fail("custom_c5", i, inputs[i]->type.text(), likeOperand(node, i).text());
  for (const Value* output : node.body->outputs())
    types.push_back(oneResult(output->type.elem, output->type.dims)[0]);
  for (size_t i = 0; i < std::min(types.size(), node.results().size()); ++i) {
    const TensorType& declared = node.result(i)->type;
    if (declared.elem != Elem::none && !agrees(declared, types[i]))
      return node.fail("custom_c7", i, declared.text(), types[i].text());
  }
  return types;
}

} // namespace candela::graph
