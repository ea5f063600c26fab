#include "core/compiler/export/tosa/ops.h"

#include <algorithm>

#include "core/compiler/export/tosa/export_tosa.h"

namespace candela::exporter::tosa {
namespace {

using Write = void (*)(FunctionWriter&, const graph::Node&);

struct TosaEntry {
  graph::OpKind kind;
  Write write;
  std::string_view form;
};

constexpr TosaEntry kTosaEntries[] = {
#define CANDELA_EXPORT(Kind, function, form) {graph::OpKind::Kind, function, form},
#include "core/compiler/export/tosa/ops.inc"
#undef CANDELA_EXPORT
};

} // namespace

void writeOp(FunctionWriter& w, const graph::Node& node) {
  const auto* entry = std::ranges::find(kTosaEntries, node.kind, &TosaEntry::kind);
  if (entry != std::end(kTosaEntries)) return entry->write(w, node);
  if (!node.info().has(graph::kTraitElementwise)) refuse("TOSA has no operator for it");
  w.bind(node.result(), elementwise(w, node.kind, w.operandsOf(node)));
}

std::string_view formOf(graph::OpKind kind) {
  const auto* entry = std::ranges::find(kTosaEntries, kind, &TosaEntry::kind);
  if (entry != std::end(kTosaEntries)) return entry->form;
  return graph::opInfo(kind).has(graph::kTraitElementwise) ? elementwiseForm(kind) : "refused";
}

} // namespace candela::exporter::tosa
