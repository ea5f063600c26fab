// A model that goes on from what it answered: --state and --steps of `candela run`.
#include "tools/candela/run/steps.h"

#include <algorithm>

namespace candela::tool {
namespace {

/// States of so many elements are read after each step: what was said, not what is remembered.
constexpr int64_t kMostSaid = 16;

size_t placeOf(const std::vector<sdk::Port>& ports, const std::string& name) {
  return static_cast<size_t>(std::ranges::find(ports, name, &sdk::Port::name) - ports.begin());
}

/// What the steps begin with, by the names of inputs.
struct Beginning {
  std::map<std::string, Tensor> states;
  double ms = 0;
  int64_t tokens = 0; ///< elements of the largest state of integers that was given
  std::map<std::string, std::vector<int64_t>> said; ///< states of few integers, by output
};

/// One run of what files give to states, whose shapes need not be those of the steps: a prompt of
/// many tokens is another model than a token.
Beginning runPrompt(const RunOptions& options) {
  RunOptions plain = options;
  plain.model.states.clear();
  plain.zeroed = options.model.states;
  const Session session = openSession(plain);
  Beginning begun;
  std::vector<double> latencies;
  Results results;
  session.run(latencies, results); // the first one makes its memory
  session.run(latencies, results);
  begun.ms = latencies.back();
  for (const auto& [input, output] : statesOf(options.model.states, session)) {
    const Tensor& given = session.inputs[placeOf(session.inputPorts, input)];
    if (options.inputFiles.count(input) && isInteger(given.elem))
      begun.tokens = std::max(begun.tokens, given.count());
    const Tensor& left = results.outputs[placeOf(session.outputPorts, output)];
    if (isInteger(left.elem) && left.count() <= kMostSaid) begun.said[output] = left.toInts();
    begun.states[input] = left;
  }
  return begun;
}

/// The model of one step, which goes on from there.
Session openStep(const RunOptions& options, const Beginning& begun) {
  RunOptions step = options;
  const bool hasShapes = endsWith(options.model.path, ".cdl");
  for (const auto& [input, tensor] : begun.states) {
    step.inputFiles.erase(input);
    if (!hasShapes)
      step.model.shapes.push_back(fmt::format("{}={}", input, shapeText(tensor.dims)));
  }
  Session session = openSession(step);
  for (const auto& [input, tensor] : begun.states)
    session.inputs[placeOf(session.inputPorts, input)] = tensor;
  return session;
}

bool beginsWithFiles(const RunOptions& options) {
  const auto isGiven = [&](const std::string& text) {
    return std::ranges::any_of(options.inputFiles, [&](const auto& file) {
      return text.starts_with(file.first + "=") || text.find('*') != std::string::npos;
    });
  };
  return std::ranges::any_of(options.model.states, isGiven);
}

} // namespace

Steps runSteps(const RunOptions& options, int count) {
  std::optional<Beginning> begun;
  if (beginsWithFiles(options)) begun = runPrompt(options);
  Steps steps{begun ? openStep(options, *begun) : openSession(options)};
  if (begun) steps.promptMs = begun->ms;
  if (begun) steps.promptTokens = begun->tokens;
  if (begun) steps.said = begun->said;
  Session& session = steps.session;
  if (session.states.empty())
    fail(kBadInput, "--steps needs --state, or a bundle that was compiled with it");
  std::vector<size_t> said;
  for (size_t i = 0; i < session.outputPorts.size(); ++i) {
    const sdk::Port& port = session.outputPorts[i];
    const bool isFew = port.isKnown() && elementCount(port.dims).value_or(0) <= kMostSaid;
    if (isFew && session.states.count(port.name) && isInteger(elemOf(port))) said.push_back(i);
  }
  const auto note = [&](const std::string& name, const Tensor& tensor) {
    std::vector<int64_t>& all = steps.said[name];
    const std::vector<int64_t> values = tensor.toInts();
    all.insert(all.end(), values.begin(), values.end());
  };
  Progress progress("running");
  for (int i = 0; i < count; ++i) {
    if (i > 0) session.prepare(0);
    session.run(steps.latencies, steps.results, i + 1 == count, kMostSaid);
    for (const size_t output : said)
      note(session.outputPorts[output].name, steps.results.outputs[output]);
    fmt::memory_buffer stage;
    fmt::format_to(std::back_inserter(stage), "{} of {}", i + 1, count);
    progress.update({stage.data(), stage.size()}, double(i + 1) / count);
  }
  return steps;
}

void printSteps(const Steps& steps, Console& console, Json& report) {
  std::vector<double> sorted = steps.latencies;
  std::ranges::sort(sorted);
  const double median = sorted[sorted.size() / 2];
  const double perSecond = 1000 / median;
  if (steps.promptTokens) {
    const double rate = 1000 * static_cast<double>(steps.promptTokens) / steps.promptMs;
    console.print("prompt   {} tokens in {}   {:.1f} tokens/s\n", steps.promptTokens,
                  timeText(steps.promptMs), rate);
    report["prompt"] = {
        {"tokens", steps.promptTokens}, {"ms", steps.promptMs}, {"tokens_per_second", rate}};
  }
  console.print("steps    {}, each {} (median; shortest {})   {:.1f} tokens/s\n",
                steps.latencies.size(), timeText(median), timeText(sorted[0]), perSecond);
  report["steps"] = {{"count", steps.latencies.size()},
                     {"latency_ms", {{"min", sorted[0]}, {"median", median}}},
                     {"tokens_per_second", perSecond},
                     {"states", Json::object()}};
  for (const auto& [name, values] : steps.said) {
    console.print("  {}  {}\n", name, fmt::join(values, " "));
    report["steps"]["states"][name] = values;
  }
}

} // namespace candela::tool
