// candela bench --in-flight: many requests at the same time, on copies of a model.
#include "tools/candela/bench/in_flight.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>

#include "candela/async.hpp"
#include "core/runtime/plugin/plugin.h"
#include "core/support/file.h"
#include "tools/candela/bench/timeline_picture.h"

namespace candela::tool {
namespace {

using Clock = std::chrono::steady_clock;

/// One of the requests that are in flight: it has outputs of its own.
struct RequestSlot {
  std::vector<Tensor> outputs;
  std::vector<candela_argument_t> arguments;
  std::optional<sdk::Request> request;
  Clock::time_point submitted;
};

struct RequestFigures {
  std::vector<double> latenciesMs;
  double seconds = 0;
  Json stats; ///< candela.session/1
  Json trace; ///< of the last requests

  double rate() const { return static_cast<double>(latenciesMs.size()) / seconds; }
  double quantile(double part) const {
    const auto last = static_cast<double>(latenciesMs.size() - 1);
    return latenciesMs[static_cast<size_t>(std::ceil(part * last))];
  }
};

/// The texts of --option without those that are for another one of the devices alone.
std::vector<std::string> optionsFor(const std::string& device, const InFlightOptions& options) {
  const auto idOf = [](const std::string& name) {
    const bool isHost = name == "soft" || name == "reference";
    return isHost ? name : check(runtime::plugin::findDevice(name)).id();
  };
  const std::string own = idOf(device);
  std::vector<std::string> kept;
  for (const std::string& text : options.run.model.options) {
    const std::string prefix = text.substr(0, text.find_first_of(".="));
    const auto isOther = [&](const std::string& other) {
      const std::string id = idOf(other);
      const bool isMine = own == prefix || own.starts_with(prefix + ":");
      return !isMine && (id == prefix || id.starts_with(prefix + ":"));
    };
    if (std::ranges::none_of(options.devices, isOther)) kept.push_back(text);
  }
  return kept;
}

/// A copy of the model for each device, the first one with the inputs of the run.
std::vector<Session> openCopies(const InFlightOptions& options) {
  std::vector<Session> copies;
  RunOptions run = options.run;
  if (options.devices.empty()) {
    copies.push_back(openSession(run));
    return copies;
  }
  for (const std::string& device : options.devices) {
    run.model.backends = device;
    run.model.options = optionsFor(device, options);
    copies.push_back(openSession(run));
  }
  return copies;
}

std::vector<RequestSlot> makeSlots(const Session& session, uint32_t count) {
  std::vector<RequestSlot> slots(count);
  for (RequestSlot& slot : slots) {
    slot.outputs.clear();
    for (const sdk::Port& port : session.outputPorts) {
      if (!port.isKnown())
        fail(kBadInput, "--in-flight: the shape of output '{}' follows from a run", port.name);
      slot.outputs.push_back(check(Tensor::zeros(elemOf(port), port.dims)));
    }
    for (const Tensor& tensor : slot.outputs) slot.arguments.push_back(sdk::argument(view(tensor)));
  }
  return slots;
}

/// Keeps as many requests in flight as there are slots, and checks every answer against that of a
/// single run: of one of the copies, since backends round as they like.
class RequestLoop {
public:
  RequestLoop(sdk::Session& session, const std::vector<Session>& copies,
              std::vector<RequestSlot>& slots)
      : session_(session), slots_(slots) {
    for (const Session& copy : copies) expected_.push_back(runAlone(copy));
    for (const Tensor& tensor : copies[0].inputs) inputs_.push_back(sdk::argument(view(tensor)));
  }

  /// Runs until `goesOn` says no, then to the end of what is in flight.
  template <class GoesOn> void run(std::vector<double>& latenciesMs, GoesOn&& goesOn) {
    size_t next = 0;
    for (RequestSlot& slot : slots_) submit(slot);
    while (goesOn(latenciesMs.size())) {
      RequestSlot& slot = slots_[next++ % slots_.size()];
      finish(slot, latenciesMs);
      submit(slot);
    }
    for (size_t i = 0; i < slots_.size(); ++i) finish(slots_[next++ % slots_.size()], latenciesMs);
  }

private:
  void submit(RequestSlot& slot) {
    slot.submitted = Clock::now();
    slot.request = session_.submit(inputs_, slot.arguments);
  }

  void finish(RequestSlot& slot, std::vector<double>& latenciesMs) {
    slot.request->wait();
    latenciesMs.push_back(
        std::chrono::duration<double, std::milli>(Clock::now() - slot.submitted).count());
    const bool isRight = std::ranges::any_of(expected_, [&](const std::vector<Tensor>& outputs) {
      return std::ranges::equal(slot.outputs, outputs, hasSameBytes);
    });
    if (!isRight)
      fail(kWorkFailed, "request {}: its outputs are not those of a single run",
           latenciesMs.size());
  }

  static bool hasSameBytes(const Tensor& a, const Tensor& b) {
    const uint64_t bytes = a.sizeBytes();
    return bytes == 0 || std::memcmp(a.bytes.data(), b.bytes.data(), bytes) == 0;
  }

  /// No outputs where a device fails: then requests are not its to answer.
  static std::vector<Tensor> runAlone(const Session& copy) {
    std::vector<double> ignored;
    try {
      return copy.run(ignored);
    } catch (const sdk::Error&) {
      return {};
    }
  }

  sdk::Session& session_;
  std::vector<RequestSlot>& slots_;
  std::vector<std::vector<Tensor>> expected_; ///< per copy
  std::vector<candela_argument_t> inputs_;
};

RequestFigures measureRequests(const InFlightOptions& options, const std::vector<Session>& copies) {
  std::vector<const sdk::Model*> models;
  for (const Session& copy : copies) models.push_back(&copy.model);
  const sdk::Session::Options sessionOptions{options.inFlight, options.inFlight, true};
  sdk::Session session(models, sessionOptions);
  std::vector<RequestSlot> slots = makeSlots(copies[0], options.inFlight);
  RequestLoop loop(session, copies, slots);
  RequestFigures measured;
  std::vector<double> warmUp;
  loop.run(warmUp, [&](size_t done) { return done < copies.size() * 2; });
  session.traceJson(); // of the warm-up
  Progress progress("measuring");
  const Clock::time_point start = Clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  loop.run(measured.latenciesMs, [&](size_t done) {
    const double part =
        options.repeat ? double(done) / options.repeat : elapsed() / options.seconds;
    progress.update("requests", std::min(part, 1.0));
    return part < 1;
  });
  measured.seconds = elapsed();
  measured.stats = Json::parse(session.statsJson());
  measured.trace = Json::parse(session.traceJson());
  std::ranges::sort(measured.latenciesMs);
  return measured;
}

void printRequests(const InFlightOptions& options, const RequestFigures& m, const Session& first,
                   Console& console) {
  console.print("{}  {}   {} in flight on {} {}\n", console.bold(fileName(options.run.model.path)),
                placementLine(first.report), options.inFlight, m.stats["copies"].size(),
                m.stats["copies"].size() == 1 ? "copy" : "copies");
  console.print("throughput  {} requests/s   latency median {}, p99 {} of {} requests\n",
                console.bold(fmt::format("{:.1f}", m.rate())), timeText(m.quantile(0.5)),
                timeText(m.quantile(0.99)), m.latenciesMs.size());
  console.print("device copies {} ({}), staged through the host {}\n",
                countText(m.stats["device_copies"].get<uint64_t>()),
                bytesText(m.stats["device_copied_bytes"].get<uint64_t>()),
                bytesText(m.stats["staged_bytes"].get<uint64_t>()));
  const uint64_t repeated = m.stats["repeated"].get<uint64_t>();
  if (repeated) console.print("{} repeated on another copy\n", countText(repeated));
  for (const Json& copy : m.stats["copies"])
    if (copy["lost"].get<bool>())
      console.print("{}: lost: {}\n", copy["devices"].get<std::string>(),
                    copy["why"].get<std::string>());
  console.printText(timelinePicture(m.trace));
}

Json toJson(const InFlightOptions& options, const RequestFigures& m) {
  return {{"in_flight", options.inFlight},
          {"throughput", m.rate()},
          {"latency_ms",
           {{"min", m.latenciesMs.front()},
            {"median", m.quantile(0.5)},
            {"p99", m.quantile(0.99)},
            {"requests", m.latenciesMs.size()}}},
          {"session", m.stats}};
}

} // namespace

void benchInFlight(const InFlightOptions& options, Console& console) {
  try {
    const std::vector<Session> copies = openCopies(options);
    const RequestFigures measured = measureRequests(options, copies);
    printRequests(options, measured, copies[0], console);
    if (!options.traceFile.empty()) {
      const std::string text = measured.trace.dump(1);
      check(writeFile(options.traceFile, text.data(), text.size()));
    }
    Json report = console.report("bench");
    report["model"] = options.run.model.path;
    addPlacement(report, copies[0].report, false);
    report.update(toJson(options, measured));
    console.writeJson(report);
  } catch (const sdk::Error& error) {
    failWith(error, options.run.model.path);
  }
}

} // namespace candela::tool
