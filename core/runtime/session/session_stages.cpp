// How a run goes through its stages: what each of them waits for, and steps that follow each other
// on one device without the host between them.
#include <algorithm>

#include "core/runtime/session/session.h"

namespace candela::runtime::session {

void RunStats::add(const RunStats& other) {
  nativeInstrs += other.nativeInstrs;
  emulatedInstrs += other.emulatedInstrs;
  hostInstrs += other.hostInstrs;
  stagedBytes += other.stagedBytes;
  stateBytes += other.stateBytes;
  deviceCopies += other.deviceCopies;
  deviceCopiedBytes += other.deviceCopiedBytes;
  streamedBytes += other.streamedBytes;
}

/// Who computes each value and who reads it.
void Session::findReaders() {
  const size_t count = bundle_.values.size();
  producer_.resize(count);
  reader_.resize(count);
  isReadElsewhere_.assign(count, false);
  for (uint32_t s = 0; s < bundle_.steps.size(); ++s) {
    const bundle::BundleStep& step = bundle_.steps[s];
    if (step.kind == bundle::StepKind::copy) continue;
    for (uint32_t o = 0; o < step.outputs.size(); ++o) producer_[step.outputs[o]] = {s, o};
    const std::shared_ptr<plugin::Device> device = runnerOf(s).device();
    for (const uint32_t v : step.inputs) {
      const uint32_t root = source_[v];
      const bool isFirst = !reader_[root];
      if (isFirst) reader_[root] = device;
      if (!device || reader_[root] != device) isReadElsewhere_[root] = true;
    }
  }
}

void Session::findStages() {
  std::vector<uint32_t> stageOf(bundle_.steps.size());
  for (uint32_t s = 0; s < bundle_.steps.size(); ++s) {
    const bundle::BundleStep& step = bundle_.steps[s];
    if (step.kind == bundle::StepKind::copy) continue;
    const std::shared_ptr<plugin::Device> device = runnerOf(s).device();
    const bool continues = !stages_.empty() && stages_.back().device == device;
    if (!continues) stages_.push_back({s, s, device, {}});
    stages_.back().end = s + 1;
    stageOf[s] = static_cast<uint32_t>(stages_.size() - 1);
    for (const uint32_t v : step.inputs) {
      const uint32_t root = source_[v];
      const uint32_t from = isComputed_[root] ? stageOf[producer_[root].step] : stageOf[s];
      if (from != stageOf[s] && !std::ranges::count(stages_.back().after, from))
        stages_.back().after.push_back(from);
    }
  }
}

Status Session::startStep(Run& run, size_t index) {
  const bundle::BundleStep& step = bundle_.steps[index];
  Run::StepState& state = run.steps[index];
  CDL_TRY(state.context.cancelled());
  const std::shared_ptr<plugin::Device> device = runnerOf(index).device();
  state.in.clear();
  state.out.clear();
  state.waits.clear();
  for (const uint32_t v : step.inputs) {
    const uint32_t root = source_[v];
    const BufferRef& at = run.at[root];
    state.in.push_back(at);
    const size_t from = isComputed_[root] ? producer_[root].step : index;
    Run::StepState& producer = run.steps[from];
    if (!producer.inFlight) continue;
    // Only what stays in memory of the device is there when its execution is.
    if (device && at.isOn(device.get()))
      state.waits.push_back(producer.inFlight->done);
    else
      CDL_TRY(finishStep(run, from));
  }
  for (const uint32_t v : step.outputs) state.out.push_back(run.at[v]);
  CDL_ASSIGN(state.inFlight,
             runnerOf(index).start(state.in, state.out, state.waits, state.context));
  return Status::ok();
}

Status Session::finishStep(Run& run, size_t index) {
  Run::StepState& state = run.steps[index];
  return runnerOf(index).finish(std::move(state.inFlight), state.context);
}

Status Session::runStage(Run& run, size_t index) {
  const Stage& stage = stages_[index];
  const auto inStep = [&](size_t step, auto&& body) {
    const bundle::BundlePartition& partition = bundle_.partitions[bundle_.steps[step].partition];
    const Span span("partition", stepNames_[step]);
    if (Trace* trace = Trace::current()) trace->enter(partition.image, partition.backend);
    Status status = body();
    return status ? status : status.context("partition " + stepNames_[step]);
  };
  Status status;
  for (size_t step = stage.first; status && step < stage.end; ++step) {
    if (bundle_.steps[step].kind == bundle::StepKind::copy) continue;
    const bool isLast = !stage.device || step + 1 == stage.end;
    const bool staysInFlight = !isLast && runnerOf(step).holdsEverything();
    status = inStep(step, [&] {
      CDL_TRY(startStep(run, step));
      return staysInFlight ? Status::ok() : finishStep(run, step);
    });
  }
  for (size_t step = stage.first; step < stage.end; ++step) {
    if (!run.steps[step].inFlight) continue;
    if (status)
      status = inStep(step, [&] { return finishStep(run, step); });
    else
      run.steps[step].inFlight = nullptr; // given up
  }
  return status;
}

} // namespace candela::runtime::session
