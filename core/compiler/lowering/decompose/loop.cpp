#include "core/compiler/graph/loop.h"

#include "core/compiler/lowering/decompose/lower.h"

namespace candela::lowering::decompose {

using graph::Node;

namespace {

/// What a loop carries and the slices of its results are moved to where they belong.
capabilities::Answer askCopy(Elem elem, int64_t count, const capabilities::Target& target) {
  capabilities::InstrDesc copy;
  copy.kind = CDL_KIND_COPY;
  copy.operands = {{elem, {count}}, {elem, {count}}};
  return target.query(copy);
}

} // namespace

capabilities::Answer askBody(const Node& loop, const capabilities::Target& target,
                             const LowerOptions& options) {
  capabilities::Answer worst{capabilities::Support::native, CDL_REASON_NONE, "", -1};
  const auto take = [&](capabilities::Answer answer) {
    if (answer.support < worst.support) worst = std::move(answer);
  };
  for (const graph::Value* result : loop.results())
    if (const int64_t count = result->type.count()) take(askCopy(result->type.elem, count, target));
  for (const auto& node : loop.body->nodes())
    if (!isAlias(*node)) take(ask(*node, target, options));
  return worst;
}

Status lowerBody(const Node& loop, const capabilities::Target& target,
                 const LowerOptions& options) {
  CDL_TRY(lower(*loop.body, target, options).context(fmt::format("loop '{}'", loop.userName())));
  const capabilities::Answer answer = askBody(loop, target, options);
  if (answer.support != capabilities::Support::none) return Status::ok();
  return failure(Code::unsupported, "loop '{}': '{}' cannot do it: {}", loop.userName(),
                 target.name(), answer.detail);
}

} // namespace candela::lowering::decompose
