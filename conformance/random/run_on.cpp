#include "conformance/random/run_on.h"

#include <algorithm>

#include "conformance/port.h"
#include "conformance/random/reduce.h"
#include "core/compiler/driver/pipeline.h"

namespace candela::conformance::random {

Executor executorOn(Port& port, bool toPrimitives) {
  Executor executor{port.backend() + (toPrimitives ? " --to-primitives" : ""), {}};
  if (port.isReference()) {
    executor.run = [](const Recipe& recipe, Work&) -> Result<std::vector<Tensor>> {
      CDL_ASSIGN(const graph::Graph graph, recipe.build());
      return reference::run(graph, recipe.inputs());
    };
    return executor;
  }
  driver::CompileOptions options;
  options.toPrimitives = toPrimitives;
  executor.run = [&port, options](const Recipe& recipe, Work& work) -> Result<std::vector<Tensor>> {
    CDL_ASSIGN(graph::Graph graph, recipe.build());
    CDL_ASSIGN(const auto devices, port.devices());
    CDL_ASSIGN(const auto session, driver::compile(std::move(graph), "fuzz", devices, options));
    for (const runtime::bundle::NodePlacement& node : session->bundle().placement)
      work += {1, node.cls == runtime::bundle::NodePlacement::Class::native, node.macs,
               node.nativeMacs};
    return session->run(recipe.inputs());
  };
  return executor;
}

Result<Executor> executorOf(const std::string& name) {
  const std::string backend = name.substr(0, name.find(' '));
  runtime::plugin::Options options;
  if (backend == "cpu") options.emplace("threads", "1");
  if (const size_t isa = name.find(" --isa "); isa != std::string::npos)
    options.emplace("isa", name.substr(isa + 7));
  const auto port = std::make_shared<Port>(backend, options);
  CDL_TRY(port->devices().status());
  Executor executor = executorOn(*port, name.find(" --to-primitives") != std::string::npos);
  executor.name = name;
  // What runs goes on using the port, which is kept for it.
  const auto run = executor.run;
  executor.run = [port, run](const Recipe& recipe, Work& work) { return run(recipe, work); };
  return executor;
}

Result<Expected> expect(const Recipe& recipe) {
  return expect(recipe, [](const graph::Graph& graph, std::span<const judge::Interval> inputs) {
    return judge::analyze(graph, inputs, driver::hostTarget());
  });
}

Result<Expected> expect(const Recipe& recipe, const Analysis& analysis) {
  CDL_ASSIGN(const graph::Graph graph, recipe.build());
  const std::vector<Tensor> inputs = recipe.inputs();
  Expected expected;
  CDL_ASSIGN(expected.outputs, reference::run(graph, inputs));
  std::vector<judge::Interval> intervals;
  for (const Tensor& input : inputs) {
    CDL_ASSIGN(judge::Interval interval, judge::Interval::of(input));
    intervals.push_back(std::move(interval));
  }
  CDL_ASSIGN(expected.intervals, analysis(graph, intervals));
  return expected;
}

Finding judge(const Recipe& recipe, const Expected& expected, const Executor& executor,
              Work* work) {
  Work uncounted;
  const auto got = executor.run(recipe, work ? *work : uncounted);
  if (!got)
    return {got.status().code() == Code::unsupported ? Finding::Kind::refused
                                                     : Finding::Kind::failed,
            got.status().message()};
  if (got->size() != expected.intervals.size())
    return {Finding::Kind::failed,
            fmt::format("{} outputs, expected {}", got->size(), expected.intervals.size())};
  for (size_t i = 0; i < got->size(); ++i)
    if (const std::string text = judge::outside(expected.intervals[i], (*got)[i]); !text.empty())
      return {Finding::Kind::wrong, fmt::format("output y{}: {}", recipe.outputs[i], text)};
  return {};
}

bool mayRefuse(const Recipe& recipe) {
  for (const bool toPrimitives : {false, true}) {
    driver::CompileOptions options;
    options.toPrimitives = toPrimitives;
    auto graph = recipe.build();
    if (!graph) continue;
    const auto alone = driver::compile(std::move(*graph), "fuzz", {}, options);
    if (!alone && alone.status().code() == Code::unsupported) return true;
  }
  return false;
}

Result<std::string> writeWhole(const Recipe& recipe, const Expected& expected,
                               const std::string& folder, const std::string& backend) {
  double width = 0;
  for (const judge::Interval& interval : expected.intervals)
    width = std::max(width, interval.width());
  return writeCase(recipe, expected.outputs, width, folder, backend);
}

Result<Reduced> writeReduced(const Recipe& recipe, Finding::Kind kind,
                             const std::function<Finding(const Recipe&, const Expected&)>& judge,
                             const std::string& folder, const std::string& backend, int limit) {
  const auto fails = [&](const Recipe& candidate) {
    const auto expected = expect(candidate);
    return expected && judge(candidate, *expected).kind == kind;
  };
  Reduced reduced{reduce(recipe, fails, limit), {}, {}};
  CDL_ASSIGN(const Expected expected, expect(reduced.recipe));
  reduced.finding = judge(reduced.recipe, expected);
  CDL_ASSIGN(reduced.command, writeWhole(reduced.recipe, expected, folder, backend));
  return reduced;
}

} // namespace candela::conformance::random
