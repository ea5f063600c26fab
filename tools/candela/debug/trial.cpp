#include "tools/candela/debug/trial.h"

#include <bit>
#include <cstring>

#include "conformance/mutants/soft_port.h"
#include "conformance/port.h"
#include "core/compiler/driver/pipeline.h"
#include "tools/candela/debug/child.h"
#include "tools/candela/support/backend_options.h"
#include "tools/candela/support/model.h"

namespace candela::tool {
namespace {

using program::Role;
using Kind = Finding::Kind;

// ---- A plugin that compiles nothing

cdl_backend_query_fn realQuery = nullptr;

cdl_code_t pretendToCompile(cdl_device_t*, const cdl_image_t*, const void* const*,
                            cdl_executable_t** executable, cdl_refusal_t*, cdl_error_t*) {
  static char nothing;
  *executable = reinterpret_cast<cdl_executable_t*>(&nothing);
  return CDL_OK;
}

cdl_code_t planningQuery(const cdl_host_t* host, cdl_plugin_t* out, cdl_error_t* error) {
  const cdl_code_t code = realQuery(host, out, error);
  if (code != CDL_OK) return code;
  if (out->compile) out->compile = pretendToCompile;
  out->executable_support = nullptr;
  out->executable_scratch = nullptr;
  out->executable_save = nullptr;
  out->executable_load = nullptr;
  // Constants are uploaded, by a queue that may be what hangs.
  out->queue_write = [](cdl_queue_t*, cdl_memory_t*, uint64_t, const void*, uint64_t,
                        cdl_error_t*) { return cdl_code_t(CDL_OK); };
  out->queue_signal = [](cdl_queue_t*, uint64_t, cdl_error_t*) { return cdl_code_t(CDL_OK); };
  out->queue_wait = [](cdl_queue_t*, uint64_t, uint64_t, cdl_error_t*) {
    return cdl_code_t(CDL_OK);
  };
  out->executable_destroy = [](cdl_device_t*, cdl_executable_t*) {};
  return CDL_OK;
}

// ---- Running

/// Inputs that are others in every float, where there are floats.
std::vector<Tensor> otherInputs(const Trial& trial) {
  std::vector<Tensor> others = trial.inputs;
  for (uint32_t b = 0, next = 0; b < trial.program.buffers.size(); ++b) {
    const Role role = trial.program.buffers[b].role;
    if (role != Role::input && role != Role::inout) continue;
    Tensor& tensor = others[next++];
    const Elem elem = trial.program.contentType(b).first;
    if (isWritten(trial.program, b) || !isFloat(elem) || elemBits(elem) < 8) continue;
    const uint64_t size = static_cast<uint64_t>(elemBits(elem)) / 8, bytes = tensor.bytes.size();
    if (bytes <= size) continue;
    // each takes its neighbour's place
    Bytes turned = Bytes::copyOf(tensor.bytes.data() + size, bytes - size);
    Bytes whole = Bytes::copyOf(tensor.bytes.data(), bytes);
    std::memcpy(whole.mutableData(), turned.data(), turned.size());
    std::memcpy(whole.mutableData() + turned.size(), tensor.bytes.data(), size);
    tensor.bytes = whole;
  }
  return others;
}

bool equalBytes(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  for (size_t i = 0; i < a.size(); ++i)
    if (a[i].bytes.size() != b[i].bytes.size() ||
        (a[i].bytes.size() &&
         std::memcmp(a[i].bytes.data(), b[i].bytes.data(), a[i].bytes.size()) != 0))
      return false;
  return true;
}

Finding failed(const Status& status) {
  Finding finding{Kind::failed, status.message()};
  finding.phase = Pulse::Phase(pulse().phase.load());
  return finding;
}

/// What has results in it, of what the INOUT buffers hold: the rest are operands.
std::vector<Tensor> resultsOf(const program::Program& program,
                              const std::vector<Tensor>& contents) {
  std::vector<Tensor> results;
  for (uint32_t b = 0, next = 0; b < program.buffers.size(); ++b) {
    if (program.buffers[b].role != Role::inout) continue;
    if (isWritten(program, b)) results.push_back(contents[next]);
    ++next;
  }
  return results;
}

/// Run after run on the same bytes, the second one on others: whether that shows in the third.
Finding repeat(const Trial& trial, const Question& question, runtime::session::Session& session,
               const std::vector<Tensor>& got) {
  const std::vector<Tensor> others = otherInputs(trial);
  const bool hasOthers = !equalBytes(others, trial.inputs);
  for (int run = 2; run <= question.times; ++run) {
    enter(Pulse::running);
    const bool isOther = run == 2 && hasOthers && question.times > 2;
    const auto again = session.run(isOther ? others : trial.inputs);
    if (!again) return failed(again.status());
    const bool isSame =
        isOther ? equalBytes(resultsOf(trial.program, *again), resultsOf(trial.program, got))
                : equalBytes(*again, got);
    if (isOther != isSame) continue;
    Finding finding;
    enter(Pulse::judging);
    if (isOther) {
      const auto want = oracle(trial.program, others, question.byReference);
      if (!want || equalBytes(*want, *again)) continue;
      finding.kind = Kind::stale;
      finding.text = "run 2 has other inputs and gives what run 1 gave";
      finding.verdict = judge(trial.program, others, *again, *want, true);
    } else {
      finding.kind = Kind::unstable;
      finding.text = fmt::format("run {} gives other bytes than run 1", run);
      finding.verdict = judge(trial.program, trial.inputs, *again, got, true);
    }
    return finding;
  }
  return {};
}

} // namespace

std::shared_ptr<runtime::plugin::Device> BackendSpec::open(bool planOnly) const {
  runtime::plugin::Options all;
  for (const std::string& text : options) {
    const Binding option = parseBinding("--option", text);
    all[option.name.substr(option.name.find('.') + 1)] = option.value; // npos + 1 is 0
  }
  runtime::plugin::FoundDevice found;
  if (name == "soft")
    found.plugin =
        check(runtime::plugin::Plugin::fromQuery(conformance::mutants::softQueryFor(all), name));
  else
    found = check(runtime::plugin::findDevice(name));
  if (planOnly) {
    conformance::Port port(name, all);
    realQuery = check(port.query());
    found.plugin = check(runtime::plugin::Plugin::fromQuery(planningQuery, name));
  }
  return check(found.open(optionsOf(options, found)));
}

std::string_view kindName(Finding::Kind kind) {
  switch (kind) {
  case Kind::none: return "right";
  case Kind::wrong: return "outside";
  case Kind::stray: return "stray";
  case Kind::unstable: return "unstable";
  case Kind::stale: return "stale";
  case Kind::differs: return "differs";
  case Kind::failed: return "failed";
  case Kind::died: return "died";
  default: return "hung";
  }
}

Finding endOf(const Answer& answer) {
  Finding finding;
  finding.kind = answer.late ? Kind::late : Kind::died;
  finding.text = answer.text;
  finding.phase = answer.phase;
  return finding;
}

bool Finding::isLike(const Finding& other) const {
  return kind == other.kind && (kind != Kind::died || text == other.text);
}

std::string Finding::summary() const {
  static constexpr const char* kPhases[] = {"while the device is opened", "while it is compiled",
                                            "while it runs", "after its run"};
  switch (kind) {
  case Kind::failed: return text;
  case Kind::died:
  case Kind::late: return fmt::format("{} {}", text, kPhases[phase]);
  case Kind::unstable:
  case Kind::stale: return text;
  default: return "";
  }
}

namespace {

// A double as it is, infinities too.
Json bitsOf(double value) { return std::bit_cast<uint64_t>(value); }
double doubleOf(const Json& bits) { return std::bit_cast<double>(bits.get<uint64_t>()); }

} // namespace

std::string toWire(const Finding& f) {
  const Verdict& v = f.verdict;
  return Json::array({f.kind,
                      f.text,
                      f.phase,
                      v.partition,
                      v.instr,
                      v.backend,
                      v.name,
                      v.node,
                      v.op,
                      v.kind,
                      v.types,
                      v.elements,
                      v.different,
                      v.outside,
                      bitsOf(v.largest),
                      v.where,
                      v.expected,
                      v.found,
                      bitsOf(v.difference),
                      bitsOf(v.bound),
                      v.stray,
                      v.worst,
                      v.judged})
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

Finding fromWire(const std::string& text) {
  const Json json = Json::parse(text);
  Finding f;
  Verdict& v = f.verdict;
  size_t next = 0;
  const auto take = [&](auto& to) {
    to = json[next++].get<std::remove_reference_t<decltype(to)>>();
  };
  const auto takeReal = [&](double& to) { to = doubleOf(json[next++]); };
  take(f.kind), take(f.text), take(f.phase), take(v.partition), take(v.instr), take(v.backend),
      take(v.name);
  take(v.node), take(v.op), take(v.kind), take(v.types), take(v.elements), take(v.different),
      take(v.outside);
  takeReal(v.largest), take(v.where), take(v.expected), take(v.found), takeReal(v.difference),
      takeReal(v.bound);
  take(v.stray), take(v.worst), take(v.judged);
  return f;
}

Finding examine(const Trial& trial, const Question& question,
                const std::shared_ptr<runtime::plugin::Device>& device,
                const std::shared_ptr<runtime::plugin::Device>& against,
                std::vector<Tensor>* results) {
  enter(Pulse::compiling);
  const auto session = driver::compileProgram(trial.program, "trial", device);
  if (!session) return failed(session.status());
  enter(Pulse::running);
  const auto got = (*session)->run(trial.inputs);
  if (!got) return failed(got.status());
  if (results) *results = *got;
  if (Finding finding = question.times > 1 ? repeat(trial, question, **session, *got) : Finding();
      finding.isFault())
    return finding;
  Finding finding;
  if (question.against) { // null: the host
    enter(Pulse::compiling);
    const auto other = driver::compileProgram(trial.program, "trial", against);
    if (!other) return failed(other.status().context("--against"));
    enter(Pulse::running);
    const auto want = (*other)->run(trial.inputs);
    if (!want) return failed(want.status().context("--against"));
    enter(Pulse::judging);
    finding.verdict = judge(trial.program, trial.inputs, *got, *want, question.exact);
    if (!finding.verdict.passed()) finding.kind = Kind::differs;
    return finding;
  }
  enter(Pulse::judging);
  std::vector<Tensor> want;
  const bool isJudged = std::ranges::none_of(trial.program.instrs, [](const program::Instr& instr) {
    return instr.kind == CDL_KIND_CUSTOM;
  });
  if (trial.want && !question.byReference)
    want = *trial.want;
  else if (!isJudged)
    want = *got; // no oracle knows the ops of plugins
  else
    want = check(oracle(trial.program, trial.inputs, question.byReference), kWorkFailed);
  finding.verdict = judge(trial.program, trial.inputs, *got, want);
  finding.verdict.judged = isJudged;
  if (finding.verdict.outside)
    finding.kind = Kind::wrong;
  else if (!finding.verdict.stray.empty())
    finding.kind = Kind::stray;
  return finding;
}

Finding ask(const Trial& trial, const Question& question) {
  Answer answer;
  try {
    answer = inChild(
        [&] {
          std::shared_ptr<runtime::plugin::Device> against;
          const auto device = question.backend.isHost() ? nullptr : question.backend.open();
          if (question.against && !question.against->isHost()) against = question.against->open();
          return toWire(examine(trial, question, device, against));
        },
        question.limitSeconds);
  } catch (const Failure&) {
    return {};
  } // the oracle does not run it
  if (answer.arrived) return fromWire(answer.text);
  return endOf(answer);
}

bool isSound(const Trial& trial) {
  if (!program::verify(trial.program)) return false;
  size_t next = 0;
  for (const program::Buffer& buffer : trial.program.buffers) {
    if (buffer.role != Role::input && buffer.role != Role::inout) continue;
    if (next == trial.inputs.size() || trial.inputs[next++].bytes.size() != buffer.bytes)
      return false;
  }
  return next == trial.inputs.size();
}

} // namespace candela::tool
