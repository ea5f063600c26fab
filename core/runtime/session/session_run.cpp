#include <cstdlib>
#include <cstring>

#include "core/runtime/session/image_runner.h"
#include "core/runtime/session/session.h"

namespace candela::runtime::session {

Status Session::bindStates(const std::vector<std::string>& texts) {
  CDL_TRY(bundle::addStates(bundle_, texts));
  return initStates();
}

/// Whether the step that writes a state does so in the buffer in which it reads it.
bool Session::isInPlace(const bundle::BundleState& state) const {
  const uint32_t value = bundle_.outputs[state.output];
  if (!isComputed_[value]) return false;
  const auto [step, output] = producer_[value];
  const bundle::BundleStep& writer = bundle_.steps[step];
  const auto* image =
      reinterpret_cast<const cdl_image_t*>(bundle_.partitions[writer.partition].image.data());
  for (const Port& port : portsOf(image))
    if (port.isBoth() && port.output == output)
      return writer.inputs[port.input] == bundle_.inputs[state.input];
  return false;
}

/// Each state lies where the step that writes it writes to: once where that updates it in place,
/// else twice, one room to be read while the other is written.
Status Session::initStates() {
  const auto inPlace = [&](const bundle::BundleState& state) { return isInPlace(state); };
  return states_.init(bundle_, inPlace, [&](const bundle::BundleState& state) -> Result<Room> {
    const uint32_t value = bundle_.outputs[state.output];
    Room room;
    if (isComputed_[value]) {
      const auto [step, output] = producer_[value];
      CDL_ASSIGN(room, runnerOf(step).allocateOutput(output, Visibility::host));
    } else {
      CDL_ASSIGN(room.bytes, Bytes::allocate(bundle_.values[value].sizeBytes()));
      room.at = BufferRef::onHost(room.bytes.data());
    }
    room.at.isState = true;
    return room;
  });
}

Status Session::readStates(BufferRefs to) {
  if (to.size() != bundle_.states.size())
    return badArgument("{} places for states were given, the model has {}", to.size(),
                       bundle_.states.size());
  const std::unique_lock turn = states_.takeTurn();
  RunStats stats;
  for (size_t s = 0; s < to.size(); ++s) {
    const States::Held& held = states_.held()[s];
    CDL_TRY(transfers_.move(held.nowAt, to[s], valueBytes_[held.value], stats));
  }
  return Status::ok();
}

namespace {

/// Bytes that somebody is about to write.
Result<Bytes> unfilled(uint64_t size) {
  constexpr uint64_t kPages = uint64_t(1) << 26; // from here on they come from the system, as zeros
  if (size == 0 || size >= kPages) return Bytes::allocate(size);
  void* data = std::aligned_alloc(64, (size + 63) / 64 * 64);
  if (!data) return failure(Code::out_of_memory, "cannot allocate {} bytes", size);
  return Bytes::wrap(data, size, std::shared_ptr<void>(data, std::free));
}

} // namespace

Result<std::vector<Tensor>> Session::run(std::span<const Tensor> inputs, RunStats* stats) {
  if (inputs.size() != bundle_.inputs.size())
    return badArgument("{} inputs were given, the model has {}", inputs.size(),
                       bundle_.inputs.size());
  std::unique_lock turn = states_.takeTurn();
  std::vector<Tensor> values(bundle_.values.size());
  for (size_t v = 0; v < values.size(); ++v)
    if (const bundle::BundleValue& value = bundle_.values[v]; value.constant != bundle::kNoConstant)
      values[v] = {value.elem, value.dims, bundle_.constants[value.constant].bytes};
  std::vector<BufferRef> in;
  for (size_t i = 0; i < inputs.size(); ++i) {
    values[bundle_.inputs[i]] = inputs[i];
    in.push_back(BufferRef::onHost(inputs[i].bytes.data()));
  }
  for (const States::Held& held : states_.held())
    if (Tensor& input = values[bundle_.inputs[held.state.input]]; input.elem == Elem::none) {
      input = held.now;
      in[held.state.input] = {};
    }
  for (const uint32_t v : bundle_.inputs) CDL_TRY(bundle_.values[v].checkInput(values[v]));

  std::vector<Tensor> outputs;
  std::vector<BufferRef> out;
  for (size_t o = 0; o < bundle_.outputs.size(); ++o) {
    const bundle::BundleValue& value = bundle_.values[bundle_.outputs[o]];
    // of an input, a constant, or an output before that is the same value
    Bytes& bytes = values[rootOf(o)].bytes;
    const bool isComputed = isComputed_[rootOf(o)];
    if (isComputed && !bytes.data()) {
      CDL_ASSIGN(bytes, unfilled(value.sizeBytes()).context(fmt::format("value '{}'", value.name)));
    }
    outputs.push_back({value.elem, value.dims, bytes});
    out.push_back(BufferRef::onHost(isComputed ? bytes.mutableData() : nullptr));
  }
  for (const States::Held& held : states_.held()) {
    outputs[held.state.output].bytes = held.next.bytes;
    out[held.state.output] = {};
  }
  CDL_TRY(runPlaced(std::move(turn), in, out, nullptr, stats));
  return outputs;
}

Status Session::runAt(BufferRefs inputs, BufferRefs outputs, RunControl* control, RunStats* stats) {
  if (inputs.size() != bundle_.inputs.size() || outputs.size() != bundle_.outputs.size())
    return badArgument("{} inputs and {} outputs were given, the model has {} and {}",
                       inputs.size(), outputs.size(), bundle_.inputs.size(),
                       bundle_.outputs.size());
  return runPlaced(states_.takeTurn(), inputs, outputs, control, stats);
}

Status Session::runPlaced(std::unique_lock<std::mutex> turn, BufferRefs inputs, BufferRefs outputs,
                          RunControl* control, RunStats* stats) {
  CDL_ASSIGN(std::unique_ptr<Run> run, place(std::move(turn), inputs, outputs, control));
  for (size_t stage = 0; stage < stages_.size(); ++stage) CDL_TRY(runStage(*run, stage));
  RunStats counted;
  CDL_TRY(end(std::move(run), &counted));
  if (stats) *stats = counted;
  return Status::ok();
}

Result<std::unique_ptr<Session::Run>> Session::begin(BufferRefs inputs, BufferRefs outputs,
                                                     RunControl* control) {
  return place(states_.takeTurn(), inputs, outputs, control);
}

Result<std::unique_ptr<Session::Run>> Session::place(std::unique_lock<std::mutex> turn,
                                                     BufferRefs inputs, BufferRefs outputs,
                                                     RunControl* control) {
  std::unique_ptr<Run> run = takeRun();
  run->turn = std::move(turn);
  run->control = control;
  run->stats = {};
  run->outputs.assign(outputs.begin(), outputs.end());
  for (Run::StepState& step : run->steps) step.context = {{}, control};
  CDL_TRY(placeInputs(*run, inputs));
  CDL_TRY(placeValues(*run, inputs, outputs));
  return run;
}

std::unique_ptr<Session::Run> Session::takeRun() {
  std::unique_ptr<Run> run = runs_.take();
  if (run) return run;
  run = std::make_unique<Run>();
  run->rooms.resize(bundle_.values.size());
  run->hostRooms.resize(bundle_.values.size());
  run->at.resize(bundle_.values.size());
  run->steps.resize(bundle_.steps.size());
  for (size_t v = 0; v < bundle_.values.size(); ++v)
    if (const uint32_t constant = bundle_.values[v].constant; constant != bundle::kNoConstant)
      run->at[v] = BufferRef::onHost(bundle_.constants[constant].bytes.data());
  return run;
}

/// Where the step that computes a value writes it to, unless it is wanted elsewhere. A device of
/// limited memory was planned without room for values between its partitions.
Result<BufferRef> Session::roomOf(Run& run, uint32_t value) const {
  const auto [step, output] = producer_[value];
  const std::shared_ptr<plugin::Device> device = runnerOf(step).device();
  if (device && device->target().spaces().front().space.capacity_bytes > 0)
    return roomOnHost(run, value);
  Room& room = run.rooms[value];
  if (room.at.isNowhere()) {
    const bool isReadThere = !isReadElsewhere_[value] && device && reader_[value] == device;
    const Visibility visibility = isReadThere ? Visibility::device : Visibility::host;
    CDL_ASSIGN(room, runnerOf(step)
                         .allocateOutput(output, visibility)
                         .context(fmt::format("value '{}'", bundle_.values[value].name)));
  }
  return room.at;
}

Result<BufferRef> Session::roomOnHost(Run& run, uint32_t value) const {
  Room& room = run.hostRooms[value];
  if (room.at.isNowhere()) {
    CDL_ASSIGN(room.bytes, unfilled(valueBytes_[value])
                               .context(fmt::format("value '{}'", bundle_.values[value].name)));
    room.at = BufferRef::onHost(room.bytes.data());
  }
  return room.at;
}

/// Whether the caller's memory for an output is nobody else's: then it may be written while inputs
/// are still read.
bool Session::isFree(size_t output, BufferRefs inputs, BufferRefs outputs) const {
  const BufferRef& at = outputs[output];
  const uint64_t bytes = valueBytes_[bundle_.outputs[output]];
  for (size_t i = 0; i < inputs.size(); ++i)
    if (overlap(at, bytes, inputs[i], valueBytes_[bundle_.inputs[i]])) return false;
  for (size_t o = 0; o < outputs.size(); ++o) {
    const bool isSame = outputs[o].isSame(at) && rootOf(o) == rootOf(output);
    if (!isSame && overlap(at, bytes, outputs[o], valueBytes_[bundle_.outputs[o]])) return false;
  }
  return true;
}

/// Whether everybody sees a computed value there: the step that writes it and those that read it.
bool Session::isWithinReach(uint32_t value, const BufferRef& at) const {
  if (at.host) return true;
  const bool isRead = isReadElsewhere_[value] || reader_[value];
  const bool isReadThere = !isReadElsewhere_[value] && reader_[value] == at.device;
  return runnerOf(producer_[value].step).device() == at.device && (!isRead || isReadThere);
}

/// Inputs lie where the caller has them, states in their rooms; what lies on a device that others
/// read it from is brought to the host first.
Status Session::placeInputs(Run& run, BufferRefs inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) run.at[bundle_.inputs[i]] = inputs[i];
  for (const States::Held& held : states_.held()) {
    BufferRef& now = run.at[bundle_.inputs[held.state.input]];
    if (now.isNowhere()) now = held.nowAt;
  }
  for (const uint32_t v : bundle_.inputs) {
    const BufferRef given = run.at[v];
    const bool isHidden = given.memory && !given.host;
    const bool isReadThere = !isReadElsewhere_[v] && (!reader_[v] || reader_[v] == given.device);
    if (!isHidden || isReadThere) continue;
    CDL_ASSIGN(run.at[v], roomOnHost(run, v));
    CDL_TRY(transfers_.move(given, run.at[v], valueBytes_[v], run.stats));
  }
  return Status::ok();
}

/// Where everything else lies in this run: states in their rooms, outputs where the caller wants
/// them, the rest in rooms of the run.
Status Session::placeValues(Run& run, BufferRefs inputs, BufferRefs outputs) const {
  for (size_t v = 0; v < run.at.size(); ++v)
    if (isComputed_[v]) run.at[v] = {};
  for (const States::Held& held : states_.held()) {
    const uint32_t root = source_[held.value];
    if (isComputed_[root] && run.at[root].isNowhere()) run.at[root] = held.nextAt;
  }
  for (size_t o = 0; o < outputs.size(); ++o) {
    const uint32_t root = rootOf(o);
    const bool isPlaced = !isComputed_[root] || !run.at[root].isNowhere();
    if (isPlaced || outputs[o].isNowhere() || !isWithinReach(root, outputs[o])) continue;
    if (isFree(o, inputs, outputs)) run.at[root] = outputs[o];
  }
  for (uint32_t v = 0; v < run.at.size(); ++v)
    if (isComputed_[v] && run.at[v].isNowhere()) {
      CDL_ASSIGN(run.at[v], roomOf(run, v));
    }
  return Status::ok();
}

Status Session::end(std::unique_ptr<Run> run, RunStats* stats) {
  CDL_TRY(handOver(*run));
  for (const Run::StepState& step : run->steps) run->stats.add(step.context.stats);
  if (stats) stats->add(run->stats);
  states_.advance();
  const std::unique_lock turn = std::move(run->turn);
  // What the caller gave is his again; rooms and constants stay.
  run->outputs.clear();
  for (const uint32_t v : bundle_.inputs) run->at[v] = {};
  for (size_t v = 0; v < run->at.size(); ++v)
    if (isComputed_[v]) run->at[v] = {};
  for (Run::StepState& step : run->steps) {
    step.in.clear();
    step.out.clear();
  }
  runs_.put(std::move(run));
  return Status::ok();
}

/// Copies what lies elsewhere: first into the rooms of states, then to the caller.
Status Session::handOver(Run& run) {
  for (const States::Held& held : states_.held()) {
    const BufferRef& at = run.at[source_[held.value]];
    if (at.isSame(held.nextAt)) continue;
    const uint64_t bytes = held.next.bytes.size();
    CDL_TRY(transfers_.move(at, held.nextAt, bytes, run.stats));
    run.stats.stateBytes += bytes;
  }
  // An input that is an output too, in memory that another output goes to.
  for (size_t o = 0; o < run.outputs.size(); ++o) {
    const uint32_t root = rootOf(o);
    if (run.outputs[o].isNowhere() || isComputed_[root]) continue;
    for (size_t other = 0; other < run.outputs.size(); ++other) {
      if (!overlap(run.at[root], valueBytes_[root], run.outputs[other],
                   valueBytes_[bundle_.outputs[other]]))
        continue;
      CDL_ASSIGN(const BufferRef saved, roomOnHost(run, root));
      CDL_TRY(transfers_.move(run.at[root], saved, valueBytes_[root], run.stats));
      run.at[root] = saved;
    }
  }
  for (size_t o = 0; o < run.outputs.size(); ++o) {
    const uint32_t root = rootOf(o);
    if (run.outputs[o].isNowhere()) continue;
    CDL_TRY(transfers_.move(run.at[root], run.outputs[o], valueBytes_[root], run.stats)
                .context(fmt::format("output '{}'", bundle_.values[bundle_.outputs[o]].name)));
  }
  return Status::ok();
}

Status Session::save(const std::string& path) const {
  CDL_ASSIGN(const bundle::Bundle bundle, stored());
  return bundle::saveBundle(bundle, path);
}

Result<bundle::Bundle> Session::stored() const {
  bundle::Bundle stored = bundle_;
  stored.constants.clear();
  const auto keep = [&](uint32_t& constant) {
    if (constant == bundle::kNoConstant) return;
    const bundle::BundleConstant& kept = bundle_.constants[constant];
    constant = stored.addConstant(kept.hash, kept.bytes);
  };
  for (bundle::BundleValue& value : stored.values) keep(value.constant);
  for (size_t p = 0; p < runners_.size(); ++p) {
    bundle::BundlePartition& partition = stored.partitions[p];
    CDL_ASSIGN(partition.executable, runners_[p]->save());
    if (partition.executable.size()) partition.constants.clear();
    for (uint32_t& constant : partition.constants) keep(constant);
  }
  return stored;
}

} // namespace candela::runtime::session
