#include <cstring>

#include "core/runtime/image_runner.h"
#include "core/runtime/shortage.h"
#include "core/soft/soft.h"

namespace candela::runtime {
namespace {

using Arenas = std::vector<Bytes>; ///< per space

/// A whole Program on the host. Each execution has an arena of its own, kept for the next one.
class SoftRunner : public ImageRunner<Arenas> {
public:
  explicit SoftRunner(const BundlePartition& partition) : ImageRunner(partition), executions_(executions(image_)) {
    support_.assign(image_->instrs.count, target::Support::native);
  }

  Status prepare(const Bundle& bundle, const BundlePartition& partition) {
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
  Result<std::unique_ptr<Arenas>> makeContext() override {
    auto arenas = std::make_unique<Arenas>(image_->spaces.count);
    for (uint32_t s = 1; s < image_->spaces.count; ++s) {
      CDL_ASSIGN((*arenas)[s], Bytes::allocate(arenaBytes(s)).context(valuesText(image_, s)));
    }
    return arenas;
  }

  Status runWith(Arenas& arenas, std::span<const Tensor> inputs, std::span<Tensor> outputs, RunStats& stats) override {
    std::vector<void*> buffers(image_->buffers.count, nullptr);
    size_t nextIn = 0, nextOut = 0;
    for (uint32_t b = 1; b < image_->buffers.count; ++b) {
      const cdl_buffer_t& buffer = *cdl_get_buffer(image_, b);
      switch (buffer.role) {
      case CDL_ROLE_INPUT: buffers[b] = const_cast<std::byte*>(inputs[nextIn++].bytes.data()); break;
      case CDL_ROLE_OUTPUT: buffers[b] = outputs[nextOut++].bytes.mutableData(); break;
      case CDL_ROLE_INOUT:
        std::memcpy(outputs[nextOut].bytes.mutableData(), inputs[nextIn++].bytes.data(), buffer.bytes);
        buffers[b] = outputs[nextOut++].bytes.mutableData();
        break;
      case CDL_ROLE_TEMP: buffers[b] = arenas[buffer.space].mutableData() + buffer.offset; break;
      default: buffers[b] = fixed_[b].mutableData();
      }
    }
    stats.hostInstrs += executions_;
    if (!tracesInstrs()) return callSlot("soft", soft::runAll, image_, buffers.data());
    int64_t loops[CDL_MAX_LOOP_NESTING] = {};
    for (uint32_t i = 1; i < image_->instrs.count; i = cdl_next_instr(image_, i, loops))
      CDL_TRY(timed(i, target::Support::none,
                    [&] { return callSlot("soft", soft::run, image_, i, loops, buffers.data()); }));
    return Status::ok();
  }

  uint64_t executions_;
  std::vector<Bytes> fixed_; ///< per image buffer: constants and states, shared by all executions
};

} // namespace

Result<std::unique_ptr<Runner>> makeSoftRunner(const Bundle& bundle, const BundlePartition& partition) {
  auto runner = std::make_unique<SoftRunner>(partition);
  CDL_TRY(runner->prepare(bundle, partition));
  return std::unique_ptr<Runner>(std::move(runner));
}

} // namespace candela::runtime
