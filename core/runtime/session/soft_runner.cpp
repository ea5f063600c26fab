#include <cstring>

#include "core/runtime/session/image_runner.h"
#include "core/runtime/session/shortage.h"
#include "core/runtime/session/workers.h"

namespace candela::runtime::session {
namespace {

/// What one execution needs; kept for the next one.
struct Memory : InFlight {
  std::unique_lock<std::mutex> turn;       ///< of a Program with state
  std::unique_lock<std::mutex> deviceTurn; ///< of none: the host keeps everything
  std::vector<Bytes> arenas;               ///< per space
  /// per image buffer: of inputs and outputs that lie where elements are not aligned
  std::vector<Bytes> own;
  std::vector<void*> buffers; ///< per image buffer
};

bool isAligned(const std::byte* data) {
  return reinterpret_cast<uintptr_t>(data) % alignof(std::max_align_t) == 0;
}

/// A whole Program on the host. Inputs and outputs are used where they lie.
class SoftRunner : public ImageRunner<Memory> {
public:
  explicit SoftRunner(const bundle::BundlePartition& partition)
      : ImageRunner(partition), executions_(bundle::executions(image_)) {
    support_.assign(image_->instrs.count, capabilities::Support::native);
  }

  Status prepare(const bundle::Bundle& bundle, const bundle::BundlePartition& partition) {
    CDL_TRY(readConstants(bundle, partition));
    fixed_.resize(image_->buffers.count);
    for (uint32_t b = 1; b < image_->buffers.count; ++b) {
      const cdl_buffer_t& buffer = *cdl_get_buffer(image_, b);
      if (buffer.role == CDL_ROLE_CONSTANT) fixed_[b] = constants_[buffer.constant];
      if (buffer.role != CDL_ROLE_STATE) continue;
      hasState_ = true;
      CDL_ASSIGN(fixed_[b], Bytes::allocate(buffer.bytes));
    }
    return Status::ok();
  }

private:
  Result<std::unique_ptr<Memory>> makeContext() override {
    auto memory = std::make_unique<Memory>();
    memory->arenas.resize(image_->spaces.count);
    for (uint32_t s = 1; s < image_->spaces.count; ++s) {
      CDL_ASSIGN(memory->arenas[s], Bytes::allocate(arenaBytes(s)).context(valuesText(image_, s)));
    }
    memory->own.resize(image_->buffers.count);
    memory->buffers.assign(image_->buffers.count, nullptr);
    for (uint32_t b = 1; b < image_->buffers.count; ++b) {
      const cdl_buffer_t& buffer = *cdl_get_buffer(image_, b);
      if (buffer.role == CDL_ROLE_TEMP)
        memory->buffers[b] = memory->arenas[buffer.space].mutableData() + buffer.offset;
      else
        memory->buffers[b] = fixed_[b].mutableData(); // inputs and outputs: by each run
    }
    return memory;
  }

  /// The bytes of a port where they lie, or where this execution has room for them.
  Result<std::byte*> place(Memory& memory, const Port& port, std::byte* data) {
    const uint64_t bytes = cdl_get_buffer(image_, port.buffer)->bytes;
    if (isAligned(data) && data) return data;
    Bytes& own = memory.own[port.buffer];
    if (!own.data()) {
      CDL_ASSIGN(own, Bytes::allocate(bytes));
    }
    return own.mutableData();
  }

  Status begin(Memory& memory, BufferRefs inputs, BufferRefs outputs, Waits,
               RunContext& run) override {
    for (const Port& port : ports_) {
      const std::byte* given = port.isInput() ? inputs[port.input].host : nullptr;
      // which is only read
      std::byte* data = port.isOutput() ? outputs[port.output].host : const_cast<std::byte*>(given);
      CDL_ASSIGN(std::byte* const placed, place(memory, port, data));
      memory.buffers[port.buffer] = placed;
      const uint64_t bytes = cdl_get_buffer(image_, port.buffer)->bytes;
      if (given && given != placed && bytes) std::memcpy(placed, given, bytes);
    }
    CDL_TRY(compute(memory.buffers.data(), run.stats));
    for (const Port& port : ports_) {
      if (!port.isOutput()) continue;
      const uint64_t bytes = cdl_get_buffer(image_, port.buffer)->bytes;
      std::byte* const wanted = outputs[port.output].host;
      const void* const placed = memory.buffers[port.buffer];
      if (wanted != placed && bytes) std::memcpy(wanted, placed, bytes);
    }
    return Status::ok();
  }
  Status end(Memory&, RunContext&) override { return Status::ok(); }

  Status compute(void* const* buffers, RunStats& stats) {
    stats.hostInstrs += executions_;
    const host_executor::Workers workers = processWorkers();
    if (!tracesInstrs())
      return plugin::callSlot("soft", host_executor::runAll, image_, buffers, &workers);
    int64_t loops[CDL_MAX_LOOP_NESTING] = {};
    for (uint32_t i = 1; i < image_->instrs.count; i = cdl_next_instr(image_, i, loops))
      CDL_TRY(timed(i, capabilities::Support::none, [&] {
        return plugin::callSlot("soft", host_executor::run, image_, i, loops, buffers, &workers);
      }));
    return Status::ok();
  }

  uint64_t executions_;
  std::vector<Bytes> fixed_; ///< per image buffer: constants and states, shared by all executions
};

} // namespace

Result<std::unique_ptr<Runner>> makeSoftRunner(const bundle::Bundle& bundle,
                                               const bundle::BundlePartition& partition) {
  auto runner = std::make_unique<SoftRunner>(partition);
  CDL_TRY(runner->prepare(bundle, partition));
  return std::unique_ptr<Runner>(std::move(runner));
}

} // namespace candela::runtime::session
