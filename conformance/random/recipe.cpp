#include "conformance/random/recipe.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "core/compiler/graph/loop.h"
#include "core/compiler/graph/text.h"
#include "core/support/file.h"

namespace candela::conformance::random {

const Recipe::Leaf* Recipe::leaf(int id) const {
  const auto found = std::ranges::find(leaves, id, &Leaf::id);
  return found == leaves.end() ? nullptr : &*found;
}

namespace {

graph::LoopForm loopForm(const graph::Attrs& attrs) {
  const auto whole = [&](const char* name) { return std::get<int64_t>(attrs.find(name)->second); };
  graph::LoopForm form{whole("trips"),
                       static_cast<size_t>(whole("carried")),
                       static_cast<size_t>(whole("scanned")),
                       {}};
  if (const auto found = attrs.find("backward"); found != attrs.end())
    form.backward = std::get<std::vector<int64_t>>(found->second);
  return form;
}

Result<graph::Node*> addStep(graph::Graph& graph, const Recipe::Step& step,
                             std::vector<graph::Value*> operands) {
  const graph::Provenance name{fmt::format("{}_{}", graph::opName(step.kind), step.results[0])};
  if (step.body)
    return graph::addLoop(graph, loopForm(step.attrs), operands, graph::clone(*step.body), name);
  return graph.addNode(step.kind, std::move(operands), step.attrs, name, nullptr,
                       static_cast<int>(step.results.size()));
}

} // namespace

Result<graph::Graph> Recipe::build() const {
  graph::Graph graph;
  std::map<int, graph::Value*> values{{kAbsent, nullptr}};
  for (const Leaf& leaf : leaves)
    values[leaf.id] = leaf.constant
                          ? graph.addConstant(leaf.tensor)
                          : graph.addInput(fmt::format("x{}", leaf.id),
                                           graph::TensorType(leaf.tensor.elem, leaf.tensor.dims));
  for (const Step& step : steps) {
    std::vector<graph::Value*> operands;
    for (const int id : step.operands) {
      if (!values.count(id)) return badModel("no value {}", id);
      operands.push_back(values.at(id));
    }
    CDL_ASSIGN(graph::Node * node, addStep(graph, step, std::move(operands)));
    for (size_t i = 0; i < step.results.size(); ++i) values[step.results[i]] = node->result(i);
  }
  for (const int id : outputs) {
    if (!values.count(id)) return badModel("no value {}", id);
    graph.addOutput(values.at(id), fmt::format("y{}", id));
  }
  return graph;
}

std::vector<Tensor> Recipe::inputs() const {
  std::vector<Tensor> inputs;
  for (const Leaf& leaf : leaves)
    if (!leaf.constant) inputs.push_back(leaf.tensor);
  return inputs;
}

void Recipe::prune() {
  std::set<int> used(outputs.begin(), outputs.end());
  for (size_t i = steps.size(); i-- > 0;) {
    Step& step = steps[i];
    if (std::ranges::none_of(step.results, [&](int id) { return used.count(id) != 0; })) {
      steps.erase(steps.begin() + static_cast<std::ptrdiff_t>(i));
      continue;
    }
    used.insert(step.operands.begin(), step.operands.end());
  }
  std::erase_if(leaves, [&](const Leaf& leaf) { return used.count(leaf.id) == 0; });
}

uint64_t Recipe::elements() const {
  uint64_t sum = 0;
  for (const Leaf& leaf : leaves) sum += static_cast<uint64_t>(leaf.tensor.count());
  return sum;
}

Result<std::string> writeCase(const Recipe& recipe, std::span<const Tensor> expected, double atol,
                              const std::string& folder, const std::string& backend) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return failure(Code::io, "{}: {}", folder, error.message());
  CDL_ASSIGN(const graph::Graph graph, recipe.build());
  CDL_ASSIGN(const std::string text, graph::print(graph, {.resourceDirectory = folder}));
  CDL_TRY(writeFile(folder + "/model.cdl", text.data(), text.size()));
  std::string line = fmt::format("candela run {}/model.cdl --backend {}", folder, backend);
  const auto tensor = [&](const char* flag, const std::string& name,
                          const Tensor& content) -> Status {
    const std::string path = fmt::format("{}/{}.npy", folder, name);
    line += fmt::format(" {} {}={}", flag, name, path);
    return writeNpy(path, content);
  };
  for (const Recipe::Leaf& leaf : recipe.leaves)
    if (!leaf.constant) CDL_TRY(tensor("--input", fmt::format("x{}", leaf.id), leaf.tensor));
  bool isReal = false;
  for (size_t i = 0; i < expected.size(); ++i) {
    CDL_TRY(tensor("--expect", fmt::format("y{}", recipe.outputs[i]), expected[i]));
    isReal |= isFloat(expected[i].elem);
  }
  if (isReal && std::ranges::all_of(expected, [](const Tensor& t) { return isFloat(t.elem); }))
    line += fmt::format(" --rtol 0 --atol {:.3g}", atol);
  CDL_TRY(writeFile(folder + "/run.sh", line.data(), line.size()));
  return line;
}

} // namespace candela::conformance::random
