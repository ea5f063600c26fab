#include "core/compiler/export/onnx/ops.h"

#include <algorithm>

#include "core/compiler/export/onnx/export_onnx.h"

namespace candela::exporter::onnx {
namespace {

using graph::OpKind;
using Write = void (*)(GraphWriter&, const graph::Node&);

struct Entry {
  OpKind kind;
  Write write;
  std::string_view form;
};

constexpr Entry kEntries[] = {
#define CANDELA_EXPORT(Kind, function, form) {OpKind::Kind, function, form},
#include "core/compiler/export/onnx/ops.inc"
#undef CANDELA_EXPORT
};

onnx_io::Attribute attributeOf(const graph::Attr& attr) {
  if (const auto* whole = std::get_if<int64_t>(&attr)) return *whole;
  if (const auto* real = std::get_if<double>(&attr)) return static_cast<float>(*real);
  if (const auto* wholes = std::get_if<std::vector<int64_t>>(&attr)) return *wholes;
  if (const auto* elem = std::get_if<Elem>(&attr)) return static_cast<int64_t>(elemToOnnx(*elem));
  if (const auto* reals = std::get_if<std::vector<double>>(&attr))
    return std::vector<float>(reals->begin(), reals->end());
  return std::get<std::string>(attr);
}

} // namespace

Attributes attributesOf(const graph::Node& node) {
  Attributes attributes;
  for (const auto& [name, attr] : node.attrs) attributes[name] = attributeOf(attr);
  return attributes;
}

Term namedOp(GraphWriter& w, const graph::Node& node, const Terms& operands) {
  std::vector<graph::TensorType> types;
  for (const graph::Value* result : node.results()) types.push_back(result->type);
  return w.makeSeveral(std::string(node.info().onnx), operands, types, attributesOf(node))[0];
}

void writeOp(GraphWriter& w, const graph::Node& node) {
  const auto* entry = std::ranges::find(kEntries, node.kind, &Entry::kind);
  if (entry != std::end(kEntries)) return entry->write(w, node);
  if (node.info().has(graph::kTraitElementwise))
    return w.bind(node.result(), elementwise(w, node.kind, w.operandsOf(node)));
  if (node.info().onnx.empty()) refuse("ONNX has no operator for it");
  std::vector<graph::TensorType> types;
  for (const graph::Value* result : node.results()) types.push_back(result->type);
  const Terms results =
      w.makeSeveral(std::string(node.info().onnx), w.operandsOf(node), types, attributesOf(node));
  for (size_t i = 0; i < results.size(); ++i) w.bind(node.result(i), results[i]);
}

std::string_view formOf(OpKind kind) {
  const auto* entry = std::ranges::find(kEntries, kind, &Entry::kind);
  if (entry != std::end(kEntries)) return entry->form;
  return graph::opInfo(kind).has(graph::kTraitElementwise) ? elementwiseForm(kind)
                                                           : graph::opInfo(kind).onnx;
}

} // namespace candela::exporter::onnx
