#include <cstdlib>
#include <cstring>

#include "core/runtime/session/session.h"

namespace candela::runtime::session {

Status Session::bindStates(const std::vector<std::string>& texts) {
  CDL_TRY(bundle::addStates(bundle_, texts));
  return initStates();
}

/// Each state lies where the step that writes it writes to, twice: one room is read while the other
/// is written.
Status Session::initStates() {
  residents_.clear();
  return states_.init(bundle_, [&](const bundle::BundleState& state) -> Result<Bytes> {
    const uint32_t value = bundle_.outputs[state.output];
    Resident resident;
    Bytes room;
    for (const bundle::BundleStep& step : bundle_.steps)
      for (size_t i = 0; step.kind != bundle::StepKind::copy && i < step.outputs.size(); ++i)
        if (step.outputs[i] == value) {
          CDL_ASSIGN(room, runners_[step.partition]->allocateOutput(i, resident));
        }
    if (!room.data()) {
      CDL_ASSIGN(room, Bytes::allocate(bundle_.values[value].sizeBytes()));
    }
    residents_[room.data()] = resident;
    return room;
  });
}

namespace {

bool overlap(const std::byte* a, uint64_t aBytes, const std::byte* b, uint64_t bBytes) {
  return a && b && aBytes && bBytes && a < b + bBytes && b < a + aBytes;
}

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
  const auto turn = states_.takeTurn();
  std::vector<Tensor> values(bundle_.values.size());
  for (size_t v = 0; v < values.size(); ++v)
    if (const bundle::BundleValue& value = bundle_.values[v]; value.constant != bundle::kNoConstant)
      values[v] = {value.elem, value.dims, bundle_.constants[value.constant].bytes};
  for (size_t i = 0; i < inputs.size(); ++i) values[bundle_.inputs[i]] = inputs[i];
  for (const States::Held& held : states_.held())
    if (Tensor& input = values[bundle_.inputs[held.state.input]]; input.elem == Elem::none)
      input = held.now;

  std::vector<const std::byte*> in;
  for (const uint32_t v : bundle_.inputs) {
    CDL_TRY(bundle_.values[v].checkInput(values[v]));
    in.push_back(values[v].bytes.data());
  }
  std::vector<Tensor> outputs;
  std::vector<std::byte*> out;
  for (size_t o = 0; o < bundle_.outputs.size(); ++o) {
    const bundle::BundleValue& value = bundle_.values[bundle_.outputs[o]];
    // of an input, a constant, or an output before that is the same value
    Bytes& bytes = values[rootOf(o)].bytes;
    const bool isComputed = isComputed_[rootOf(o)];
    if (isComputed && !bytes.data()) {
      CDL_ASSIGN(bytes, unfilled(value.sizeBytes()).context(fmt::format("value '{}'", value.name)));
    }
    outputs.push_back({value.elem, value.dims, bytes});
    out.push_back(isComputed ? bytes.mutableData() : nullptr);
  }
  for (const States::Held& held : states_.held()) {
    outputs[held.state.output].bytes = held.next.bytes;
    out[held.state.output] = nullptr;
  }
  CDL_TRY(runPlaced(in, out, stats));
  return outputs;
}

Status Session::runAt(Inputs inputs, Outputs outputs, RunStats* stats) {
  if (inputs.size() != bundle_.inputs.size() || outputs.size() != bundle_.outputs.size())
    return badArgument("{} inputs and {} outputs were given, the model has {} and {}",
                       inputs.size(), outputs.size(), bundle_.inputs.size(),
                       bundle_.outputs.size());
  const auto turn = states_.takeTurn();
  return runPlaced(inputs, outputs, stats);
}

Status Session::runPlaced(Inputs inputs, Outputs outputs, RunStats* stats) {
  RunStats counted;
  counted.residents = residents_.empty() ? nullptr : &residents_;
  std::unique_ptr<Frame> frame = takeFrame();
  CDL_TRY(placeValues(*frame, inputs, outputs));
  for (size_t step = 0; step < bundle_.steps.size(); ++step)
    if (bundle_.steps[step].kind != bundle::StepKind::copy) CDL_TRY(runStep(*frame, step, counted));
  CDL_TRY(handOver(*frame, outputs, counted));
  frames_.put(std::move(frame));
  states_.advance();
  if (stats) *stats = counted;
  return Status::ok();
}

std::unique_ptr<Session::Frame> Session::takeFrame() {
  std::unique_ptr<Frame> frame = frames_.take();
  if (frame) return frame;
  frame = std::make_unique<Frame>();
  frame->rooms.resize(bundle_.values.size());
  frame->at.assign(bundle_.values.size(), nullptr);
  for (size_t v = 0; v < bundle_.values.size(); ++v)
    if (const uint32_t constant = bundle_.values[v].constant; constant != bundle::kNoConstant)
      // which nobody writes
      frame->at[v] = const_cast<std::byte*>(bundle_.constants[constant].bytes.data());
  return frame;
}

Result<std::byte*> Session::roomOf(Frame& frame, uint32_t value) const {
  Bytes& room = frame.rooms[value];
  if (!room.data()) {
    CDL_ASSIGN(room, unfilled(valueBytes_[value])
                         .context(fmt::format("value '{}'", bundle_.values[value].name)));
  }
  return room.mutableData();
}

/// Whether the caller's memory for an output is nobody else's: then it may be written while inputs
/// are still read.
bool Session::isFree(size_t output, Inputs inputs, Outputs outputs) const {
  const std::byte* const data = outputs[output];
  const uint64_t bytes = valueBytes_[bundle_.outputs[output]];
  for (size_t i = 0; i < inputs.size(); ++i)
    if (overlap(data, bytes, inputs[i], valueBytes_[bundle_.inputs[i]])) return false;
  for (size_t o = 0; o < outputs.size(); ++o) {
    const bool isSame = outputs[o] == data && rootOf(o) == rootOf(output);
    if (!isSame && overlap(data, bytes, outputs[o], valueBytes_[bundle_.outputs[o]])) return false;
  }
  return true;
}

/// Where everything lies in this run: states in their rooms, outputs where the caller wants them,
/// the rest in rooms of the frame.
Status Session::placeValues(Frame& frame, Inputs inputs, Outputs outputs) const {
  for (size_t v = 0; v < frame.at.size(); ++v)
    if (isComputed_[v]) frame.at[v] = nullptr;
  for (size_t i = 0; i < inputs.size(); ++i)
    frame.at[bundle_.inputs[i]] = const_cast<std::byte*>(inputs[i]); // which nobody writes
  for (const States::Held& held : states_.held()) {
    std::byte*& now = frame.at[bundle_.inputs[held.state.input]];
    if (!now) now = const_cast<std::byte*>(held.now.bytes.data());
    const uint32_t root = source_[held.value];
    if (isComputed_[root] && !frame.at[root])
      frame.at[root] = const_cast<std::byte*>(held.next.bytes.data());
  }
  for (size_t o = 0; o < outputs.size(); ++o) {
    std::byte*& at = frame.at[rootOf(o)];
    if (outputs[o] && isComputed_[rootOf(o)] && !at && isFree(o, inputs, outputs)) at = outputs[o];
  }
  for (uint32_t v = 0; v < frame.at.size(); ++v)
    if (isComputed_[v] && !frame.at[v]) {
      CDL_ASSIGN(frame.at[v], roomOf(frame, v));
    }
  return Status::ok();
}

Status Session::runStep(Frame& frame, size_t index, RunStats& stats) {
  const bundle::BundleStep& step = bundle_.steps[index];
  const bundle::BundlePartition& partition = bundle_.partitions[step.partition];
  frame.in.clear();
  frame.out.clear();
  for (const uint32_t v : step.inputs) frame.in.push_back(frame.at[source_[v]]);
  for (const uint32_t v : step.outputs) frame.out.push_back(frame.at[v]);
  const Span span("partition", stepNames_[index]);
  if (Trace* trace = Trace::current()) trace->enter(partition.image, partition.backend);
  Status status = runners_[step.partition]->run(frame.in, frame.out, stats);
  return status ? status : status.context("partition " + stepNames_[index]);
}

/// Copies what lies elsewhere: first into the rooms of states, then to the caller.
Status Session::handOver(Frame& frame, Outputs outputs, RunStats& stats) {
  for (const States::Held& held : states_.held()) {
    const std::byte* at = frame.at[source_[held.value]];
    auto* next = const_cast<std::byte*>(held.next.bytes.data());
    if (at == next) continue;
    if (held.next.bytes.size()) std::memcpy(next, at, held.next.bytes.size());
    stats.stateBytes += held.next.bytes.size();
  }
  // An input that is an output too, in memory that another output goes to.
  for (size_t o = 0; o < outputs.size(); ++o) {
    const uint32_t root = rootOf(o);
    if (!outputs[o] || isComputed_[root]) continue;
    for (size_t other = 0; other < outputs.size(); ++other) {
      if (!overlap(frame.at[root], valueBytes_[root], outputs[other],
                   valueBytes_[bundle_.outputs[other]]))
        continue;
      CDL_ASSIGN(std::byte* const saved, roomOf(frame, root));
      std::memmove(saved, frame.at[root], valueBytes_[root]);
      frame.at[root] = saved;
    }
  }
  for (size_t o = 0; o < outputs.size(); ++o) {
    const std::byte* at = frame.at[rootOf(o)];
    if (outputs[o] && outputs[o] != at && valueBytes_[rootOf(o)])
      std::memcpy(outputs[o], at, valueBytes_[rootOf(o)]);
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
