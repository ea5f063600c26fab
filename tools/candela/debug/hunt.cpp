#include "tools/candela/debug/hunt.h"

#include <fcntl.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "core/compiler/driver/custom_ops.h"
#include "core/compiler/driver/report.h"
#include "core/support/compare.h"
#include "tools/candela/debug/child.h"
#include "tools/candela/support/backend_options.h"
#include "tools/candela/support/ir_file.h"
#include "tools/candela/support/temporary_file.h"

namespace candela::tool {
namespace {

using Kind = Finding::Kind;

/// The model compiled for these devices, with all that the parts hold in memory: a stored bundle
/// leaves out constants that its executables have. Inputs have the dims of the ports.
std::unique_ptr<runtime::session::Session>
compileFor(const std::vector<std::shared_ptr<runtime::plugin::Device>>& devices,
           const std::vector<sdk::Port>& ports, const ModelOptions& model) {
  if (endsWith(model.path, ".cdl")) {
    Diagnostics diagnostics;
    Ir ir = check(parseIr(check(readText(model.path)), model.path, diagnostics));
    if (auto* program = std::get_if<program::Program>(&ir))
      return check(driver::compileProgram(std::move(*program), model.path,
                                          devices.empty() ? nullptr : devices[0]));
  }
  ImportFlags flags;
  flags.claim = check(driver::claimBy(devices));
  if (!endsWith(model.path, ".cdl")) {
    flags.dims = model.dims;
    for (const sdk::Port& port : ports)
      flags.shapes.push_back(
          fmt::format("{}={}", port.name, port.dims.empty() ? "scalar" : shapeText(port.dims)));
  }
  driver::CompileOptions options;
  options.toPrimitives = model.toPrimitives;
  options.policy = check(lowering::partition::parsePolicy(model.partition));
  options.pinFile = model.pinFile;
  options.precision = check(driver::parsePrecision(model.precision));
  options.progress = [](const char*, double) { enter(Pulse::compiling); };
  return check(driver::compile(readGraph(model.path, flags), model.path, devices, options));
}

std::vector<std::shared_ptr<runtime::plugin::Device>> openAll(const Hunt& hunt,
                                                              bool planOnly = false) {
  enter(Pulse::opening);
  std::vector<std::shared_ptr<runtime::plugin::Device>> devices;
  for (const BackendSpec& backend : hunt.backends) devices.push_back(backend.open(planOnly));
  return devices;
}

/// What the hunt cannot go through instruction by instruction: where a device that compiles whole
/// Programs has its tiles is its own affair.
void checkDevices(const std::vector<std::shared_ptr<runtime::plugin::Device>>& devices) {
  for (const auto& device : devices)
    for (const auto& [name, space] : device->target().spaces())
      if (device->compiles() && (space.flags & CDL_SPACE_LOCAL))
        fail(kBadInput,
             "--backend {}: its executables have '{}', a local memory, for themselves: debug sees "
             "instructions on memory, or on local memory through the primitive API",
             device->id(), name);
}

/// The largest difference of the whole run's outputs from the steps', over the largest value of the
/// output.
double differenceOf(const std::vector<Tensor>& whole, const std::vector<Tensor>& steps) {
  double worst = 0;
  for (size_t i = 0; i < whole.size(); ++i) {
    double largest = 0, difference = 0;
    for (int64_t at = 0; at < steps[i].count(); ++at) {
      const double a = elementAsReal(whole[i], at), b = elementAsReal(steps[i], at);
      if (std::isfinite(b)) largest = std::max(largest, std::abs(b));
      if (a != b && !(std::isnan(a) && std::isnan(b)))
        difference = std::max(difference, std::isfinite(a - b) ? std::abs(a - b) : HUGE_VAL);
    }
    if (difference > 0) worst = std::max(worst, largest > 0 ? difference / largest : HUGE_VAL);
  }
  return worst;
}

bool sameBytes(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  for (size_t i = 0; i < a.size(); ++i)
    if (a[i].bytes.size() &&
        std::memcmp(a[i].bytes.data(), b[i].bytes.data(), a[i].bytes.size()) != 0)
      return false;
  return true;
}

} // namespace

Question Hunt::questionFor(const std::string& plugin) const {
  Question own = question;
  const auto found = byPlugin.find(plugin);
  own.backend = found == byPlugin.end() ? BackendSpec{"soft", {}} : found->second;
  return own;
}

Compiled compileIn(Hunt& hunt, const std::vector<sdk::Port>& inputPorts) {
  const TemporaryFile file;
  const auto compile = [&](bool planOnly) {
    return inChild(
        [&, planOnly] {
          const auto devices = openAll(hunt, planOnly);
          if (!hunt.backends.empty()) checkBackendOptions(hunt.backends[0].options, devices);
          checkDevices(devices);
          enter(Pulse::compiling);
          const auto start = std::chrono::steady_clock::now();
          const auto session = compileFor(devices, inputPorts, hunt.model);
          Json answer = {{"ms", millisecondsSince(start)}, {"names", Json::array()}};
          check(runtime::bundle::saveBundle(session->bundle(), file.path()), kWorkFailed);
          answer["placement"] = Json::parse(driver::placementJson(session->bundle()));
          for (const auto& device : devices) answer["names"].push_back(device->id());
          return answer.dump(-1, ' ', false, Json::error_handler_t::replace);
        },
        hunt.question.limitSeconds);
  };
  Compiled compiled;
  Answer answer = compile(false);
  if (!answer.arrived) {
    compiled.death = endOf(answer);
    answer = compile(true);
    if (!answer.arrived)
      fail(kWorkFailed, "{}: --backend {}: {}, before any instruction", hunt.model.path,
           hunt.model.backends, compiled.death->summary());
  }
  const Json json = Json::parse(answer.text);
  compiled.bundle = check(runtime::bundle::loadBundle(file.path()), kWorkFailed);
  compiled.placement = json["placement"];
  compiled.compileMs = json["ms"];
  for (size_t i = 0; i < hunt.backends.size(); ++i)
    hunt.byPlugin[json["names"][i]] = hunt.backends[i];
  return compiled;
}

std::vector<Finding> stepIn(const Hunt& hunt, Stepper& stepper, bool all, const std::string& name) {
  const TemporaryFile log;
  const Answer answer = inChild(
      [&] {
        std::ofstream out(log.path());
        Stepper::Devices devices;
        for (const auto& device : openAll(hunt)) devices[device->id()] = device;
        std::shared_ptr<runtime::plugin::Device> against;
        if (hunt.question.against && !hunt.question.against->isHost())
          against = hunt.question.against->open();
        Progress progress("checking " + name);
        stepper.run(
            hunt.question, devices, against,
            [&](uint64_t number) {
              const auto place = *stepper.place(number);
              const auto& execution = stepper.tape(place.part).executions()[place.execution];
              progress.update(stepper.program(place.part).instrName(execution.instr),
                              double(number) / double(stepper.executions()));
            },
            [&](const Finding& finding) {
              out << toWire(finding) << '\n' << std::flush;
              return !finding.isFault() || (all && finding.kind != Kind::failed);
            });
        return std::string();
      },
      hunt.question.limitSeconds);
  std::vector<Finding> findings;
  std::ifstream in(log.path());
  for (std::string line; std::getline(in, line);) findings.push_back(fromWire(line));
  const auto place = stepper.place(findings.size());
  if (answer.arrived || !place) return findings;
  Finding& last = findings.emplace_back(endOf(answer));
  last.verdict = describe(stepper.program(place->part),
                          stepper.tape(place->part).executions()[place->execution].instr);
  last.verdict.backend =
      stepper.backend(place->part).empty() ? "soft" : stepper.backend(place->part);
  return findings;
}

WholeRun runWhole(const Hunt& hunt, const runtime::bundle::Bundle& bundle,
                  const std::vector<Tensor>& inputs, const std::vector<Tensor>& steps,
                  double stepSeconds) {
  const Answer answer = inChild(
      [&] {
        const auto devices = openAll(hunt);
        enter(Pulse::compiling);
        const auto session = runtime::session::Session::create(bundle, devices);
        const auto failed = [](const Status& status) {
          return toWire({.kind = Kind::failed,
                         .text = status.message(),
                         .phase = Pulse::Phase(pulse().phase.load())});
        };
        if (!session) return failed(session.status());
        enter(Pulse::running);
        const auto first = (*session)->run(inputs);
        if (!first) return failed(first.status());
        for (int run = 2; run <= hunt.question.times; ++run) {
          enter(Pulse::running);
          const auto again = (*session)->run(inputs);
          if (!again) return failed(again.status());
          if (!sameBytes(*first, *again))
            return toWire({.kind = Kind::unstable,
                           .text = fmt::format("run {} gives other bytes than run 1", run)});
        }
        Finding finding;
        finding.verdict.difference = differenceOf(*first, steps);
        if (finding.verdict.difference > kWholeBound) finding.kind = Kind::wrong;
        return toWire(finding);
      },
      hunt.question.limitSeconds + stepSeconds);
  if (!answer.arrived) return {endOf(answer), 0};
  Finding finding = fromWire(answer.text);
  return {finding, finding.verdict.difference};
}

} // namespace candela::tool
