// candela bench: how fast a model is, and where the time goes.
#include <sys/resource.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <thread>

#include "tools/candela/bench/in_flight.h"
#include "tools/candela/commands/peak.h"
#include "tools/candela/run/run.h"
#include "tools/candela/support/assumed.h"
#include "tools/candela/support/profile.h"

namespace candela::tool {
namespace {

constexpr const char* kFooter = R"(Examples:
  candela bench mobilenet.onnx --backend cpu --dim N=1
  candela bench mobilenet.onnx --backend npu_sim --dim N=1 --assume-int8
  candela bench mobilenet.onnx --backend cpu --dim N=1 --threads 1,2 --seconds 5 --json bench.json
  candela bench mobilenet.onnx --backend acme:0,acme:1 --dim N=1 --in-flight 4 --trace trace.json
  candela bench mobilenet.onnx --devices acme:0,acme:1 --dim N=1 --in-flight 4

Latencies are of whole runs, without a profile; the table is of further runs, the shortest time
of each instruction. The peak is measured: what registers alone allow. GFLOP/s counts the
multiply-accumulates of the model, two each.

With --in-flight so many requests are kept in flight, each with outputs of its own, which are
compared with those of a single run. --backend names the devices that the model is divided over:
they work on different requests at the same time. --devices names those that get a copy of the model each. The picture shows which
request each device worked on; --trace writes all of it.)";

struct Arguments {
  RunOptions run;
  InFlightOptions inFlight;
  std::string devices;
  std::vector<std::string> inputs;
  std::string threads;
  double seconds = 1;
  int repeat = 0; ///< 0: as long as `seconds` allow
  int rows = 20;
};

/// The runs of one number of threads.
struct MeasuredRuns {
  int threads = 1;
  double compileMs = 0;
  std::vector<double> latenciesMs; ///< rising
  Peak peak;
  Json report; ///< candela.placement/1
  std::vector<InstrTime> instrs;

  double quantile(double part) const {
    const double last = static_cast<double>(latenciesMs.size() - 1);
    return latenciesMs[static_cast<size_t>(std::ceil(part * last))];
  }
  double macs() const {
    double sum = 0;
    for (const Json& count : report.value("macs", Json::object())) sum += count.get<double>();
    return sum;
  }
  uint64_t instrCount() const {
    uint64_t sum = 0;
    for (const Json& partition : report.value("partitions", Json::array()))
      sum += partition.value("instructions", uint64_t(0));
    return sum;
  }
  double gflops() const { return 2e-6 * macs() / latenciesMs.front(); }
  double instrMs() const {
    double sum = 0;
    for (const InstrTime& time : instrs) sum += time.ms;
    return sum;
  }
  double peakOf(const InstrTime& time) const { return time.isInteger() ? peak.int8 : peak.f32; }
  /// Of the latency, the part that the multiplications would take at the peak of their types.
  double peakShare() const {
    double atPeak = 0;
    for (const InstrTime& time : instrs)
      atPeak += 2e-6 * static_cast<double>(time.macs) / peakOf(time);
    return atPeak / latenciesMs.front();
  }
};

std::vector<int> parseThreads(const std::string& text) {
  if (text.empty()) return {0};
  std::vector<int> counts;
  for (const std::string& part : splitList(text)) {
    int count = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), count);
    if (error != std::errc() || end != part.data() + part.size() || count < 1 || count > 4096)
      fail(kBadInput, "--threads {}: '{}' is not a number of 1 to 4096", text, part);
    counts.push_back(count);
  }
  return counts;
}

MeasuredRuns measure(const Arguments& arguments, int threads, Console& console) {
  RunOptions options = arguments.run;
  // How many really run: what no backend takes is one.
  if (threads && !options.model.passThreads(threads, console)) threads = 1;
  if (!threads && options.model.isSoftAlone()) threads = static_cast<int>(sdk::threads());
  if (!threads) threads = options.model.threadsOption().value_or(1);
  if (!threads) threads = static_cast<int>(std::max(std::thread::hardware_concurrency(), 1u));
  Session session = openSession(options);
  MeasuredRuns measured;
  measured.threads = threads;
  measured.compileMs = session.compileMs;
  measured.report = session.report;
  measured.peak = measurePeak(threads);
  Progress progress("measuring");
  std::vector<double> warmUp;
  Results results;
  measured.latenciesMs.reserve(1 << 20); // growing would be a part of what is measured
  const auto runFor = [&](double seconds, int atLeast, int count, const char* stage,
                          const auto& after) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; count ? i < count : i < atLeast || millisecondsSince(start) < 1e3 * seconds;
         ++i) {
      after();
      progress.update(stage,
                      count ? double(i) / count : millisecondsSince(start) / (1e3 * seconds));
    }
  };
  try {
    session.run(warmUp, results, false);
    runFor(arguments.seconds, 3, arguments.repeat, "latency",
           [&] { session.run(measured.latenciesMs, results, false); });
    session.model.profile(true);
    ProfileSum profile;
    runFor(arguments.seconds / 2, 3, std::min(arguments.repeat, 20), "profile", [&] {
      session.run(warmUp, results, false);
      profile.add(session.model.traceJson());
    });
    measured.instrs = profile.instrs(session.report);
  } catch (const sdk::Error& error) {
    failWith(error, options.model.path);
  }
  // Before and after: the machine may have been busy.
  const Peak after = measurePeak(threads);
  measured.peak.f32 = std::max(measured.peak.f32, after.f32);
  measured.peak.int8 = std::max(measured.peak.int8, after.int8);
  std::sort(measured.latenciesMs.begin(), measured.latenciesMs.end());
  return measured;
}

std::string percentText(double part) { return fmt::format("{:>7.1f} %", 100 * part); }

/// A rate that may not be known.
std::string rateText(double rate) {
  return rate > 0 ? fmt::format("{:>8.1f}", rate) : fmt::format("{:>8}", "-");
}

void printInstrs(const MeasuredRuns& measured, int rows, Console& console) {
  std::vector<const InstrTime*> order;
  for (const InstrTime& time : measured.instrs) order.push_back(&time);
  if (rows)
    std::stable_sort(order.begin(), order.end(),
                     [](const auto* a, const auto* b) { return a->ms > b->ms; });
  const size_t shown = rows ? std::min(order.size(), static_cast<size_t>(rows)) : order.size();
  Table table({"node", "op", "instruction", "type", fmt::format("{:>9}", "ms"),
               fmt::format("{:>9}", "share"), fmt::format("{:>8}", "GFLOP/s"),
               fmt::format("{:>9}", "of peak"), fmt::format("{:>9}", "bytes")});
  double rest = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    const InstrTime& time = *order[i];
    if (i >= shown) {
      rest += time.ms;
      continue;
    }
    const double gflops = time.gflops();
    table.add({time.node, time.op, fmt::format("{} [{}]", time.kind, time.instr), time.type,
               fmt::format("{:>9.4f}", time.ms), percentText(time.ms / measured.instrMs()),
               rateText(gflops),
               gflops > 0 ? percentText(gflops / measured.peakOf(time)) : fmt::format("{:>9}", "-"),
               fmt::format("{:>9}", bytesText(time.bytes))});
  }
  console.printText(table.text());
  if (shown < order.size())
    console.print("  and {} more instructions: {:.3f} ms; all of them: --rows 0\n",
                  order.size() - shown, rest);
}

struct OpTotal {
  std::string op, kind;
  uint64_t count = 0, macs = 0;
  double ms = 0;
};

/// By the model's op and the instruction that it became, the longest first.
std::vector<OpTotal> totalsOf(const MeasuredRuns& measured) {
  std::map<std::pair<std::string, std::string>, OpTotal> totals;
  for (const InstrTime& time : measured.instrs) {
    OpTotal& total = totals[{time.op, time.kind}];
    total.op = time.op;
    total.kind = time.kind;
    ++total.count;
    total.macs += time.macs;
    total.ms += time.ms;
  }
  std::vector<OpTotal> list;
  for (const auto& [key, total] : totals) list.push_back(total);
  std::stable_sort(list.begin(), list.end(),
                   [](const OpTotal& a, const OpTotal& b) { return a.ms > b.ms; });
  return list;
}

void printTotals(const MeasuredRuns& measured, Console& console) {
  Table table({"op", "instruction", fmt::format("{:>5}", "count"), fmt::format("{:>9}", "ms"),
               fmt::format("{:>9}", "share"), fmt::format("{:>8}", "GFLOP/s")});
  for (const OpTotal& total : totalsOf(measured))
    table.add({total.op, total.kind, fmt::format("{:>5}", total.count),
               fmt::format("{:>9.4f}", total.ms), percentText(total.ms / measured.instrMs()),
               rateText(total.ms > 0 ? 2e-6 * static_cast<double>(total.macs) / total.ms : 0)});
  console.printText(table.text());
}

uint64_t peakMemoryBytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

void print(const Arguments& arguments, const MeasuredRuns& m, Console& console) {
  const Json& report = m.report;
  console.print("{}  {}   compiled in {}\n", console.bold(fileName(arguments.run.model.path)),
                placementLine(report), timeText(m.compileMs));
  console.print("{} thread{}: latency  {}   median {}, p99 {} of {} runs\n", m.threads,
                m.threads == 1 ? "" : "s", console.bold(timeText(m.latenciesMs.front())),
                timeText(m.quantile(0.5)), timeText(m.quantile(0.99)), m.latenciesMs.size());
  if (m.macs() > 0)
    console.print("{:.1f} GFLOP/s, {:.1f} % of the peak   ", m.gflops(), 100 * m.peakShare());
  console.print("measured peak  f32 {:.1f} GFLOP/s ({}), int8 {:.1f} ({})\n", m.peak.f32,
                m.peak.f32With, m.peak.int8, m.peak.int8With);
  console.print("{}, live at most {}; the process {}\n", memoryText(report),
                bytesText(report.value("max_live_bytes", uint64_t(0))),
                bytesText(peakMemoryBytes()));
  if (m.instrs.empty()) {
    console.print("{}\n", m.instrCount()
                              ? "no instruction was profiled: the backend keeps no profile"
                              : "no instruction ran: at these dims there is nothing to compute");
    return;
  }
  printInstrs(m, arguments.rows, console);
  printTotals(m, console);
}

Json toJson(const MeasuredRuns& m) {
  Json ops = Json::array(), totals = Json::array();
  for (const InstrTime& time : m.instrs)
    ops.push_back({{"node", time.node},
                   {"op", time.op},
                   {"kind", time.kind},
                   {"type", time.type},
                   {"partition", time.partition},
                   {"instr", time.instr},
                   {"executions", time.executions},
                   {"ms", time.ms},
                   {"share", m.instrMs() > 0 ? time.ms / m.instrMs() : 0},
                   {"macs", time.macs},
                   {"gflops", time.gflops()},
                   {"peak_share", time.gflops() / m.peakOf(time)},
                   {"bytes", time.bytes}});
  for (const OpTotal& total : totalsOf(m))
    totals.push_back({{"op", total.op},
                      {"kind", total.kind},
                      {"count", total.count},
                      {"ms", total.ms},
                      {"macs", total.macs}});
  return {{"threads", m.threads},
          {"compile_ms", m.compileMs},
          {"latency_ms",
           {{"min", m.latenciesMs.front()},
            {"median", m.quantile(0.5)},
            {"p99", m.quantile(0.99)},
            {"runs", m.latenciesMs.size()}}},
          {"gflops", m.gflops()},
          {"peak_share", m.peakShare()},
          {"peak_gflops",
           {{"f32", m.peak.f32},
            {"f32_with", m.peak.f32With},
            {"int8", m.peak.int8},
            {"int8_with", m.peak.int8With}}},
          {"totals", std::move(totals)},
          {"ops", std::move(ops)}};
}

void bench(Arguments& arguments, Console& console) {
  arguments.run.addInputs(arguments.inputs);
  if (!arguments.run.seed) arguments.run.seed = 1;
  const std::vector<int> counts = parseThreads(arguments.threads);
  if (!arguments.threads.empty()) arguments.run.keepsCompiled = false;
  assumeInt8(arguments.run.model, arguments.run.inputFiles);
  if (arguments.inFlight.inFlight > 0) {
    arguments.inFlight.run = arguments.run;
    if (!arguments.devices.empty()) arguments.inFlight.devices = splitList(arguments.devices);
    arguments.inFlight.seconds = arguments.seconds;
    arguments.inFlight.repeat = arguments.repeat;
    benchInFlight(arguments.inFlight, console);
    return;
  }
  Json report = console.report("bench"), runs = Json::array();
  tellAssumed(arguments.run.model, "times", report, console);
  for (const int threads : counts) {
    const MeasuredRuns measured = measure(arguments, threads, console);
    if (!runs.empty()) console.print("\n");
    print(arguments, measured, console);
    if (runs.empty()) {
      report["model"] = arguments.run.model.path;
      addPlacement(report, measured.report, false);
      report["precision"] =
          arguments.run.model.assumedScheme.empty() ? arguments.run.model.precision : "int8";
      report["peak_memory_bytes"] = peakMemoryBytes();
      report.update(toJson(measured));
    }
    runs.push_back(toJson(measured));
  }
  if (runs.size() > 1) report["runs"] = std::move(runs); // the first one stands at the top too
  console.writeJson(report);
}

} // namespace

void addBench(CLI::App& app, Console& console) {
  auto* command = app.add_subcommand(
      "bench", "Measure a model: latency, memory, and the time of each instruction.");
  auto arguments = std::make_shared<Arguments>();
  Arguments& a = *arguments;
  a.run.model.addTo(command, {".cdl", ".cdb"});
  a.run.model.addAssumeInt8To(command);
  addRepeated(command, "--input", a.inputs, "data for an input: .npy or ONNX .pb", "NAME=FILE");
  addSeedOption(command, a.run.seed, "random data for the other inputs (1)");
  command
      ->add_option("--threads", a.threads,
                   "measure with so many threads of the host and the backends, one after the other")
      ->type_name("N[,M...]");
  command
      ->add_option("--seconds", a.seconds,
                   "how long to measure latency (1); half as long the profile")
      ->type_name("S")
      ->check(numberIn(0, kLongestSeconds));
  command->add_option("--repeat", a.repeat, "measure so many runs instead")
      ->type_name("N")
      ->check(CLI::Range(1, 1000000000));
  command
      ->add_option("--rows", a.rows,
                   "rows of the table, the slowest first (20); 0: all, in their order")
      ->type_name("K")
      ->check(CLI::Range(0, 1000000));
  auto* inFlight = command
                       ->add_option("--in-flight", a.inFlight.inFlight,
                                    "measure throughput with so many requests in flight")
                       ->type_name("N")
                       ->check(CLI::Range(1, 256));
  command
      ->add_option("--devices", a.devices,
                   "with --in-flight: a copy of the model on each, in the place of --backend")
      ->type_name("NAME[,NAME...]")
      ->needs(inFlight);
  command
      ->add_option("--trace", a.inFlight.traceFile,
                   "with --in-flight: write what devices did when, for ui.perfetto.dev")
      ->type_name("FILE")
      ->needs(inFlight);
  addJsonOption(command, console);
  command->footer(kFooter);
  command->callback([arguments, command, &console] {
    arguments->run.keepsCompiled = !saysHowToCompile(command);
    bench(*arguments, console);
  });
}

} // namespace candela::tool
