// candela calibrate-host: how long this machine takes for the steps that a device leaves to it.
#include <algorithm>
#include <fstream>
#include <sstream>

#include "core/support/file.h"
#include "tools/candela/simulate/host_rates.h"
#include "tools/candela/simulate/simulation_files.h"
#include "tools/candela/support/model.h"
#include "tools/candela/support/template.h"

namespace candela::tool {
namespace {

constexpr const char* kFooter = R"(Examples:
  candela calibrate-host --output host.json
  candela simulate bert_int8.onnx --npu gem16 --random 1 --host-rates host.json

Runs graphs of one step each with the portable executor, in two sizes, and fits what a step, a byte
and a product take: the fastest of several runs. Rates are of this machine, of as many threads as
CANDELA_THREADS says, and of what runs beside it: measure on a machine that is idle. The file is
JSON, candela.host_rates/1; simulations that use it tag the host's time `fitted`.)";

/// One kind of step: its op as reports call it, and its graph with the place for a size.
struct HostStep {
  std::string op, graph;
};

std::vector<HostStep> hostSteps() {
  std::vector<HostStep> steps;
  std::istringstream lines{std::string(kHostSteps)};
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("== "))
      steps.push_back({line.substr(3), ""});
    else if (!line.starts_with('#'))
      steps.back().graph += line + "\n";
  }
  return steps;
}

/// A step of one size.
struct MeasuredStep {
  double bytes = 0, macs = 0, ns = 0;
};

/// The fastest of several runs, which others of the machine disturbed least.
double fastestNs(const sdk::Model& model, const std::vector<candela_tensor_t>& in,
                 std::vector<candela_tensor_t>& out) {
  constexpr int kLeastRuns = 5, kMostRuns = 200;
  constexpr double kLeastMs = 20;
  double best = 0, all = 0;
  for (int run = 0; run < kMostRuns && (run < kLeastRuns || all < kLeastMs); ++run) {
    const auto start = std::chrono::steady_clock::now();
    model.run(in, out);
    const double ms = millisecondsSince(start);
    best = run ? std::min(best, ms) : ms;
    all += ms;
  }
  return best * 1e6;
}

MeasuredStep measure(const HostStep& step, const std::string& size) {
  const std::string text = filledTemplate(step.graph, {{"N", size}});
  const sdk::Model model = sdk::Model::compile(text.data(), text.size(), "step.cdl");
  MeasuredStep measured;
  bool isThere = false;
  for (const Json& node : placementReport(model).value("nodes_detail", Json::array())) {
    if (node.value("op", "") != step.op) continue;
    isThere = true;
    measured.bytes = node.value("bytes_in", 0.0) + node.value("bytes_out", 0.0);
    measured.macs = node.value("macs", 0.0);
  }
  if (!isThere) fail(kWorkFailed, "{}: the graph that stands for it has no such step", step.op);
  std::vector<Tensor> tensors;
  for (const auto& ports : {model.inputs(), model.outputs()})
    for (const sdk::Port& port : ports)
      tensors.push_back(check(randomTensor(elemOf(port), port.dims, 1), kWorkFailed));
  const size_t inputs = model.inputs().size();
  std::vector<candela_tensor_t> in, out;
  for (size_t i = 0; i < tensors.size(); ++i) (i < inputs ? in : out).push_back(view(tensors[i]));
  measured.ns = fastestNs(model, in, out);
  return measured;
}

/// A line through both sizes: by products where there are some, else by bytes.
HostRate fitted(const std::string& op, const MeasuredStep& small, const MeasuredStep& large) {
  const bool multiplies = large.macs > 0;
  const double less = multiplies ? small.macs : small.bytes;
  const double more = multiplies ? large.macs : large.bytes;
  const double slope = std::max(0.0, (large.ns - small.ns) / (more - less));
  HostRate rate{op, std::max(0.0, small.ns - slope * less), 0, 0};
  (multiplies ? rate.nsPerMac : rate.nsPerByte) = slope;
  return rate;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

/// What was not measured takes the median of what was: of starts, of bytes, and of products.
HostRate otherOf(const std::vector<HostRate>& rates) {
  std::vector<double> starts, bytes, macs;
  for (const HostRate& rate : rates) {
    starts.push_back(rate.startNs);
    (rate.nsPerMac > 0 ? macs : bytes).push_back(std::max(rate.nsPerMac, rate.nsPerByte));
  }
  return {kOtherOps, median(starts), median(bytes), median(macs)};
}

std::string machineName() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return "unknown";
}

void calibrate(const std::string& output, Console& console) {
  HostRates rates{
      .file = output, .machine = machineName(), .threads = candela_threads(), .rates = {}};
  Table table({"step", "start us", "ns a byte", "ns a product"});
  const std::vector<HostStep> steps = hostSteps();
  {
    Progress progress("measuring");
    for (const HostStep& step : steps) {
      progress.update(step.op,
                      static_cast<double>(rates.rates.size()) / static_cast<double>(steps.size()));
      rates.rates.push_back(fitted(step.op, measure(step, "8"), measure(step, "512")));
    }
  }
  rates.rates.push_back(otherOf(rates.rates));
  for (const HostRate& rate : rates.rates)
    table.add({rate.op, fmt::format("{:.1f}", rate.startNs / 1000),
               fmt::format("{:.4f}", rate.nsPerByte), fmt::format("{:.4f}", rate.nsPerMac)});
  const std::string text = hostRatesJson(rates).dump(1) + "\n";
  check(writeFile(output, text.data(), text.size()), kWorkFailed);
  console.print("{}, {} thread{}\n", rates.machine, rates.threads, rates.threads == 1 ? "" : "s");
  console.printText(table.text());
  console.print("  {}\n", output);
}

} // namespace

void addCalibrateHost(CLI::App& app, Console& console) {
  auto* command = app.add_subcommand(
      "calibrate-host", "Measure how long this machine takes for steps that devices leave to it.");
  auto output = std::make_shared<std::string>();
  command->add_option("--output", *output, "the file to write, for simulate --host-rates")
      ->type_name("FILE.json")
      ->required();
  command->footer(kFooter);
  command->callback([output, &console] { calibrate(*output, console); });
}

} // namespace candela::tool
