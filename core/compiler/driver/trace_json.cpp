#include <algorithm>
#include <map>

#include "core/compiler/capabilities/rows.h"
#include "core/compiler/driver/report.h"
#include "core/compiler/driver/steady_json.h"
#include "core/compiler/program/program.h"
#include "core/support/text/shown.h"

namespace candela::driver {
namespace {

using Json = SteadyJson;
using runtime::session::TraceEvent;

/// What an instruction is: its kind, the model's node, what it computes on, operands first, the
/// largest class of those, and the bytes that they name, repeated elements once.
Json describeInstr(const cdl_image_t* image, uint32_t index) {
  const cdl_instr_t* instr = cdl_get_instr(image, index);
  const cdl_provenance_t* origin = cdl_get_provenance(image, instr->provenance);
  const uint32_t views = uint32_t(instr->inputs) + instr->outputs;
  uint64_t bytes = 0;
  Json operands = Json::array();
  auto cls = capabilities::OperandClass::dense;
  for (uint32_t v = 0; v < views; ++v) {
    const cdl_view_t* view = cdl_get_view(image, instr->first_view + v);
    uint64_t count = 1;
    for (uint32_t d = 0; d < view->rank; ++d)
      count *= view->strides[d] ? static_cast<uint64_t>(view->dims[d]) : 1;
    bytes += elemBytes(static_cast<Elem>(view->elem), count);
    const std::span<const int64_t> dims(view->dims, view->rank), strides(view->strides, view->rank);
    operands.push_back(fmt::format("{}[{}]", cdl_elem_name(view->elem), fmt::join(dims, ",")));
    cls = std::max(cls, capabilities::classify(dims, strides));
  }
  return {{"kind", program::kindName(instr->kind)},
          {"function", fnName(instr->kind, instr->fn)},
          {"node", cdl_get_string(image, origin->node)},
          {"op", cdl_get_string(image, origin->op)},
          {"type", cdl_elem_name(views ? cdl_get_view(image, instr->first_view)->elem : 0)},
          {"operands", operands},
          {"class", capabilities::classText(static_cast<unsigned>(cls))},
          {"bytes", bytes}};
}

/// "native" ran on the backend, "emulated" is the host's part in a Program of a backend, "host" has
/// none.
const char* supportText(const TraceEvent& event) {
  if (event.support == capabilities::Support::native) return "native";
  return event.backend.empty() ? "host" : "emulated";
}

/// Tracks of slices that nest. What overlaps without nesting, as on an engine with a pipeline, goes
/// to another track of the same name.
class Tracks {
public:
  explicit Tracks(Json& list) : list_(list) {}

  /// The process and the thread of this slice. Slices come by their beginning, longer ones first.
  std::pair<int, int> place(const std::string& process, const std::string& thread, uint64_t startNs,
                            uint64_t endNs) {
    const auto [at, isNew] = processes_.try_emplace(process, static_cast<int>(processes_.size()));
    if (isNew) tell("process_name", at->second, 0, process);
    for (size_t lane = 0;; ++lane) {
      auto [found, opens] = lanes_.try_emplace({process, thread, lane});
      Lane& track = found->second;
      if (opens) {
        track.tid = threads_++;
        tell("thread_name", at->second, track.tid,
             lane ? fmt::format("{} ({})", thread, lane + 1) : thread);
      }
      while (!track.ends.empty() && track.ends.back() <= startNs) track.ends.pop_back();
      if (!track.ends.empty() && track.ends.back() < endNs) continue;
      track.ends.push_back(endNs);
      return {at->second, track.tid};
    }
  }

private:
  void tell(const char* what, int pid, int tid, const std::string& name) {
    list_.push_back(
        {{"ph", "M"}, {"name", what}, {"pid", pid}, {"tid", tid}, {"args", {{"name", name}}}});
  }
  struct Lane {
    int tid = 0;
    std::vector<uint64_t> ends; ///< of slices that are open, the innermost last
  };
  Json& list_;
  std::map<std::string, int> processes_;
  std::map<std::tuple<std::string, std::string, size_t>, Lane> lanes_;
  int threads_ = 0;
};

/// The process and the thread that an event is drawn in.
std::pair<std::string, std::string> trackOf(const TraceEvent& event, bool onDevice) {
  if (!event.process.empty()) return {event.process, event.thread};
  if (onDevice) return {event.backend, fmt::format("engine {}", event.engine)};
  return {"host", "thread of the run"};
}

} // namespace

std::string traceJson(std::vector<TraceEvent> before, const std::vector<TraceEvent>& run) {
  before.insert(before.end(), run.begin(), run.end());
  std::ranges::stable_sort(before, [](const TraceEvent& a, const TraceEvent& b) {
    return std::pair(a.startNs, b.endNs) < std::pair(b.startNs, a.endNs);
  });
  const uint64_t origin = before.empty() ? 0 : before.front().startNs;
  Json list = Json::array();
  Tracks tracks(list);
  for (const TraceEvent& event : before) {
    const bool onDevice =
        event.instr && event.support == capabilities::Support::native && !event.backend.empty();
    const auto [process, thread] = trackOf(event, onDevice);
    const auto [pid, tid] = tracks.place(process, thread, event.startNs, event.endNs);
    Json args = Json::object();
    std::string name = event.name + (event.of.empty() ? "" : " " + event.of);
    if (event.instr) {
      args = describeInstr(reinterpret_cast<const cdl_image_t*>(event.image.data()), event.instr);
      args.update({{"partition", event.partition},
                   {"instr", event.instr},
                   {"on", event.backend.empty() ? "soft" : event.backend},
                   {"support", supportText(event)},
                   {"clock", event.deviceClock ? "device, moved" : "host"}});
      name = args["node"] == "" ? args["kind"] : args["node"];
    } else {
      args["step"] = event.name;
      if (event.bytes) args["bytes"] = event.bytes;
      if (event.request) args["request"] = event.request;
    }
    list.push_back({{"ph", "X"},
                    {"name", name},
                    {"cat", event.instr ? "instruction" : "step"},
                    {"pid", pid},
                    {"tid", tid},
                    {"ts", double(event.startNs - origin) / 1e3},
                    {"dur", double(event.endNs - event.startNs) / 1e3},
                    {"args", std::move(args)}});
  }
  const Json trace = {{"traceEvents", list}, {"displayTimeUnit", "ms"}};
  return text::shownJson(trace.dump(1, ' ', false, Json::error_handler_t::replace));
}

} // namespace candela::driver
