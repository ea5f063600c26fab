#include "core/compiler/lowering/decompose/row_layouts.h"
#include "core/compiler/lowering/partition/partition.h"

namespace candela::lowering::partition {

using graph::Graph, graph::Node;

Assessment assess(const Node& node, const capabilities::Target& target,
                  const decompose::LowerOptions& options) {
  if (decompose::isAlias(node)) return {Verdict::claimed, CDL_REASON_NONE, ""};
  capabilities::Answer answer = decompose::ask(node, target, options);
  Assessment result{Verdict::no, answer.reason, std::move(answer.detail)};
  // The host's rows are emulation by definition: whoever does it natively comes first.
  if (answer.support != capabilities::Support::none) {
    const bool native = answer.support == capabilities::Support::native && !target.isHost();
    result.verdict = native ? Verdict::claimed : Verdict::lowersEmulated;
    return result;
  }
  Graph graph = decompose::alone(node);
  if (Status status = decompose::lower(graph, target, options); !status) {
    // What a part of it lacks; not whose part, as nodes that are alike share a verdict.
    std::string lacks = status.message();
    if (const size_t at = lacks.rfind(decompose::kCannotDoIt); at != std::string::npos)
      lacks.erase(0, at + decompose::kCannotDoIt.size());
    const bool isNear = answer.reason != CDL_REASON_NO_ROW && answer.reason != CDL_REASON_PROFILE;
    result.detail = isNear && result.detail != lacks
                        ? fmt::format("{}; nor by parts: {}", result.detail, lacks)
                        : lacks;
    return result;
  }
  Verdict verdict = target.isHost() ? Verdict::lowersEmulated : Verdict::lowersNative;
  bool moves = false;
  for (const auto& part : graph.nodes()) {
    if (decompose::isAlias(*part)) continue;
    moves = true;
    if (decompose::ask(*part, target, options).support != capabilities::Support::native)
      verdict = Verdict::lowersEmulated;
  }
  // What lowers to nothing may still have to be copied out, in a type that the target must know
  // then.
  if (!moves) {
    capabilities::InstrDesc copy;
    copy.kind = CDL_KIND_COPY;
    const Elem elem = node.result()->type.elem;
    copy.operands = {{elem, {node.result()->type.count()}}, {elem, {node.result()->type.count()}}};
    const capabilities::Answer copied = target.query(copy);
    if (copied.support == capabilities::Support::none)
      return {Verdict::no, copied.reason, copied.detail};
    if (copied.support == capabilities::Support::emulated) verdict = Verdict::lowersEmulated;
  }
  result.verdict = verdict;
  return result;
}

} // namespace candela::lowering::partition
