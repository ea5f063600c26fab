#include <cstring>

#include "core/runtime/image_walk.h"
#include "core/runtime/session.h"
#include "core/soft/soft.h"

namespace candela::runtime {
namespace {

/// A whole Program on the host. Each execution has an arena of its own, kept for the next one.
class SoftRunner : public Runner {
public:
  SoftRunner(const Bundle& bundle, const BundlePartition& partition) : bytes_(partition.image) {
    const cdl_image_t* image = this->image();
    support_.assign(image->instrs.count, target::Support::native);
    addresses_.assign(image->buffers.count, nullptr);
    for (uint32_t b = 1; b < image->buffers.count; ++b) {
      const cdl_buffer_t& buffer = *cdl_get_buffer(image, b);
      if (buffer.role == CDL_ROLE_STATE) {
        states_.push_back(std::vector<std::byte>(buffer.bytes + 64));
        addresses_[b] =
            reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(states_.back().data()) + 63) & ~uintptr_t(63));
      }
      if (buffer.role != CDL_ROLE_CONSTANT) continue;
      const cdl_constant_t& constant = *cdl_get_constant(image, buffer.constant);
      if (constant.form == 1) {
        const std::vector<std::byte> splat = splatBytes(constant);
        constants_.push_back(Bytes::copyOf(splat.data(), splat.size()));
      } else {
        const Bytes& payload = bundle.constants[partition.constants[buffer.constant - 1]].bytes;
        // soft reads elements in place, so a mapped payload must be aligned for them.
        constants_.push_back(
            reinterpret_cast<uintptr_t>(payload.data()) % 16 ? Bytes::copyOf(payload.data(), payload.size()) : payload);
      }
      addresses_[b] = const_cast<std::byte*>(constants_.back().data());
    }
    arenaSizes_.assign(image->spaces.count, 0);
    for (uint32_t s = 1; s < image->spaces.count; ++s) arenaSizes_[s] = arenaBytes(image, s);
  }

  Status run(std::span<const Tensor> inputs, std::span<Tensor> outputs, RunStats& stats) override {
    const cdl_image_t* image = this->image();
    // State persists across executions, so executions of such a program take turns.
    std::unique_lock<std::mutex> turn(stateMutex_, std::defer_lock);
    if (!states_.empty()) turn.lock();
    CDL_ASSIGN(std::vector<Bytes> arenas, acquire());
    std::vector<void*> buffers = addresses_;
    size_t nextIn = 0, nextOut = 0;
    for (uint32_t b = 1; b < image->buffers.count; ++b) {
      const cdl_buffer_t& buffer = *cdl_get_buffer(image, b);
      switch (buffer.role) {
      case CDL_ROLE_INPUT: buffers[b] = const_cast<std::byte*>(inputs[nextIn++].bytes.data()); break;
      case CDL_ROLE_OUTPUT: buffers[b] = outputs[nextOut++].bytes.mutableData(); break;
      case CDL_ROLE_INOUT:
        std::memcpy(outputs[nextOut].bytes.mutableData(), inputs[nextIn++].bytes.data(), buffer.bytes);
        buffers[b] = outputs[nextOut++].bytes.mutableData();
        break;
      case CDL_ROLE_TEMP: buffers[b] = arenas[buffer.space].mutableData() + buffer.offset; break;
      default: break;
      }
    }
    ErrorBuffer error;
    Status status = walkImage(
        image, [](uint32_t) { return false; },
        [&](uint32_t first, uint32_t count, const LoopValues& loops) -> Status {
          for (uint32_t i = first; i < first + count; ++i)
            if (const cdl_code_t code = soft::run(image, i, loops.values, buffers.data(), error.get()); code != CDL_OK)
              return error.status(code, "soft");
          stats.hostInstrs += count;
          return Status::ok();
        });
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(arenas));
    return status;
  }

  const std::vector<target::Support>& support() const override { return support_; }

private:
  const cdl_image_t* image() const { return reinterpret_cast<const cdl_image_t*>(bytes_.data()); }

  Result<std::vector<Bytes>> acquire() {
    {
      const std::lock_guard lock(mutex_);
      if (!free_.empty()) {
        std::vector<Bytes> arenas = std::move(free_.back());
        free_.pop_back();
        return arenas;
      }
    }
    std::vector<Bytes> arenas;
    for (uint64_t size : arenaSizes_) {
      CDL_ASSIGN(Bytes arena, Bytes::allocate(size));
      arenas.push_back(std::move(arena));
    }
    return arenas;
  }

  Bytes bytes_;
  std::vector<target::Support> support_;
  std::vector<Bytes> constants_;
  std::vector<std::vector<std::byte>> states_;
  std::mutex stateMutex_;
  std::vector<void*> addresses_;
  std::vector<uint64_t> arenaSizes_;
  std::mutex mutex_;
  std::vector<std::vector<Bytes>> free_;
};

} // namespace

std::unique_ptr<Runner> makeSoftRunner(const Bundle& bundle, const BundlePartition& partition) {
  return std::make_unique<SoftRunner>(bundle, partition);
}

} // namespace candela::runtime
