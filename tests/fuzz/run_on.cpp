#include "tests/fuzz/run_on.h"

#include "core/pipeline/pipeline.h"

namespace candela::fuzz {

Result<Executor> executorOf(const std::string& name) {
  Executor executor{name, {}};
  const std::string backend = name.substr(0, name.find(' '));
  if (backend == "reference") {
    executor.run = [](const Recipe& recipe) -> Result<std::vector<Tensor>> {
      CDL_ASSIGN(const graph::Graph graph, recipe.build());
      return reference::run(graph, recipe.inputs());
    };
    return executor;
  }
  pipeline::CompileOptions options;
  options.toPrimitives = name.find(" --to-primitives") != std::string::npos;
  std::vector<std::shared_ptr<runtime::Device>> devices;
  if (backend != "soft") {
    CDL_ASSIGN(const std::shared_ptr<runtime::Plugin> plugin, runtime::findPlugin(backend));
    runtime::Options pluginOptions;
    if (backend == "cpu") pluginOptions.emplace("threads", "1");
    if (const size_t isa = name.find(" --isa "); isa != std::string::npos)
      pluginOptions.emplace("isa", name.substr(isa + 7));
    CDL_ASSIGN(std::shared_ptr<runtime::Device> device, plugin->open(0, pluginOptions));
    devices.push_back(std::move(device));
  }
  executor.run = [options, devices](const Recipe& recipe) -> Result<std::vector<Tensor>> {
    CDL_ASSIGN(graph::Graph graph, recipe.build());
    CDL_ASSIGN(const auto session, pipeline::compile(std::move(graph), "fuzz", devices, options));
    return session->run(recipe.inputs());
  };
  return executor;
}

Result<Expected> expect(const Recipe& recipe) {
  CDL_ASSIGN(const graph::Graph graph, recipe.build());
  const std::vector<Tensor> inputs = recipe.inputs();
  Expected expected;
  CDL_ASSIGN(expected.outputs, reference::run(graph, inputs));
  std::vector<Interval> intervals;
  for (const Tensor& input : inputs) {
    CDL_ASSIGN(Interval interval, Interval::of(input));
    intervals.push_back(std::move(interval));
  }
  CDL_ASSIGN(expected.intervals, analyze(graph, intervals, pipeline::hostTarget()));
  return expected;
}

Finding judge(const Recipe& recipe, const Expected& expected, const Executor& executor) {
  const auto got = executor.run(recipe);
  if (!got)
    return {got.status().code() == Code::unsupported ? Finding::Kind::refused : Finding::Kind::failed,
            got.status().message()};
  if (got->size() != expected.intervals.size())
    return {Finding::Kind::failed, fmt::format("{} outputs, expected {}", got->size(), expected.intervals.size())};
  for (size_t i = 0; i < got->size(); ++i)
    if (const std::string text = outside(expected.intervals[i], (*got)[i]); !text.empty())
      return {Finding::Kind::wrong, fmt::format("output y{}: {}", recipe.outputs[i], text)};
  return {};
}

} // namespace candela::fuzz
