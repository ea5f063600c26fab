#include <algorithm>

#include "core/compiler/graph/checks.h"
#include "core/compiler/graph/loop.h"

namespace candela::graph {
namespace {

class Verifier {
public:
  explicit Verifier(const Graph& graph) : graph_(graph) {}

  Status run() {
    for (const Value* input : graph_.inputs()) {
      if (input->producer) return badModel("input '{}' has a producer", input->name);
      CDL_TRY(define(input));
    }
    for (const auto& node : graph_.nodes()) CDL_TRY(check(*node));
    if (graph_.outputs().size() != graph_.outputNames().size())
      return badModel("{} outputs but {} output names", graph_.outputs().size(),
                      graph_.outputNames().size());
    for (const Value* output : graph_.outputs())
      if (!uses_.count(output)) return badModel("an output of the graph is not defined in it");
    for (const auto& [value, uses] : uses_)
      if (static_cast<size_t>(uses) != value->users().size())
        return badModel("value '{}' is used {} times but lists {} users", value->name, uses,
                        value->users().size());
    return Status::ok();
  }

private:
  Status define(const Value* value) {
    CDL_TRY(checkType(value->type, value->name));
    if (graph_.find(value->name) != value)
      return badModel("value '{}' is not found by its name", value->name);
    if (!uses_.try_emplace(value, 0).second)
      return badModel("value '{}' is defined twice", value->name);
    return Status::ok();
  }

  Status check(const Node& node) {
    for (const Value* operand : node.operands()) {
      if (!operand) continue;
      if (!uses_.count(operand))
        return badModel("{}: operand '{}' is used before it is defined", nodeText(node),
                        operand->name);
      ++uses_[operand];
    }
    CDL_ASSIGN(const std::vector<TensorType> types, inferTypes(node));
    const auto& results = node.info().results;
    const auto required = std::count_if(results.begin(), results.end(),
                                        [](const OperandInfo& info) { return !info.optional; });
    const size_t count = node.results().size();
    CDL_TRY(verifyBody(node));
    if (count < static_cast<size_t>(required) || count > types.size())
      return badModel("{}: {} results, expected {} to {}", nodeText(node), count, required,
                      types.size());
    for (size_t i = 0; i < count; ++i) {
      const Value* value = node.results()[i];
      if (!agrees(value->type, types[i]))
        return badModel("{}: result '{}' is {} but should be {}", nodeText(node), value->name,
                        value->type.text(), types[i].text());
      if (value->producer != &node || value->resultIndex != static_cast<int>(i))
        return badModel("{}: result '{}' names another producer", nodeText(node), value->name);
      CDL_TRY(define(value));
    }
    return Status::ok();
  }

  const Graph& graph_;
  std::map<const Value*, int> uses_; ///< of the values that are defined
};

} // namespace

Status verify(const Graph& graph) { return Verifier(graph).run(); }

} // namespace candela::graph
