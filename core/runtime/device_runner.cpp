#include <cstring>
#include <set>

#include "core/runtime/image_walk.h"
#include "core/runtime/session.h"
#include "core/soft/soft.h"

namespace candela::runtime {
namespace {

using MemoryPtr = std::shared_ptr<DeviceMemory>;

/// What one execution needs on the device; kept for the next one.
struct Context {
  std::shared_ptr<Queue> queue;
  std::vector<MemoryPtr> arenas; ///< per space
  std::vector<MemoryPtr> bound;  ///< per image buffer: inputs and outputs
  std::vector<cdl_binding_t> bindings;
  MemoryPtr scratch;
};

/// Runs a Program on a device through either door.
class DeviceRunner : public Runner {
public:
  DeviceRunner(const BundlePartition& partition, std::shared_ptr<Device> device)
      : bytes_(partition.image), device_(std::move(device)) {}

  ~DeviceRunner() override {
    if (executable_) device_->table().executable_destroy(device_->handle(), executable_);
  }

  Status prepare(const Bundle& bundle, const BundlePartition& partition, Refusal* refusal) {
    const cdl_image_t* image = this->image();
    if (image->spaces.count - 1 > device_->target().spaces().size())
      return failure(Code::incompatible, "the program uses {} memory spaces, {} has {}", image->spaces.count - 1,
                     device_->name(), device_->target().spaces().size());
    CDL_TRY(uploadConstants(bundle, partition));
    CDL_TRY(createStates());
    support_.assign(image->instrs.count, target::Support::none);
    for (uint32_t i = 1; i < image->instrs.count; ++i) {
      const target::Answer answer = device_->target().query(describe(image, i));
      support_[i] = answer.support;
      if (answer.support == target::Support::none) {
        const cdl_instr_t* instr = cdl_get_instr(image, i);
        if (refusal) *refusal = {i, answer.reason, answer.detail};
        return failure(Code::refused, "{}: instruction {} of kind {} is in no row: {}", device_->name(), i, instr->kind,
                       answer.detail);
      }
    }
    if (device_->compiles()) return compile(bundle, partition, refusal);
    return Status::ok();
  }

  Status run(std::span<const Tensor> inputs, std::span<Tensor> outputs, RunStats& stats) override {
    std::unique_lock<std::mutex> turn(stateMutex_, std::defer_lock);
    if (hasState_) turn.lock();
    CDL_ASSIGN(std::unique_ptr<Context> context, acquire());
    Status status = runWith(*context, inputs, outputs, stats);
    // After a failure the queue may be in any state: it is not used again.
    if (status) {
      const std::lock_guard lock(mutex_);
      free_.push_back(std::move(context));
    }
    return status;
  }

  const std::vector<target::Support>& support() const override { return support_; }

  Result<Bytes> save() override {
    if (!executable_ || !device_->table().executable_save) return Bytes();
    std::vector<std::byte> blob;
    const cdl_writer_t writer{&blob, [](void* context, const void* data, uint64_t size) -> int {
                                auto& out = *static_cast<std::vector<std::byte>*>(context);
                                const auto* bytes = static_cast<const std::byte*>(data);
                                out.insert(out.end(), bytes, bytes + size);
                                return 1;
                              }};
    ErrorBuffer error;
    CDL_TRY(error.status(device_->table().executable_save(executable_, &writer, error.get()), device_->name()));
    return Bytes::copyOf(blob.data(), blob.size());
  }

private:
  const cdl_image_t* image() const { return reinterpret_cast<const cdl_image_t*>(bytes_.data()); }

  Status uploadConstants(const Bundle& bundle, const BundlePartition& partition) {
    const cdl_image_t* image = this->image();
    fixed_.resize(image->buffers.count);
    hostConstants_.resize(image->constants.count);
    for (uint32_t c = 1; c < image->constants.count; ++c) {
      const cdl_constant_t& constant = *cdl_get_constant(image, c);
      if (constant.form == 1) {
        const std::vector<std::byte> splat = splatBytes(constant);
        hostConstants_[c] = Bytes::copyOf(splat.data(), splat.size());
      } else {
        hostConstants_[c] = bundle.constants[partition.constants[c - 1]].bytes;
      }
    }
    for (uint32_t b = 1; b < image->buffers.count; ++b) {
      const cdl_buffer_t& buffer = *cdl_get_buffer(image, b);
      if (buffer.role != CDL_ROLE_CONSTANT) continue;
      CDL_ASSIGN(fixed_[b], device_->upload(hostConstants_[buffer.constant], buffer.space - 1, buffer.alignment));
    }
    return Status::ok();
  }

  /// State persists across executions, zero before the first one, so executions of such a program take turns.
  Status createStates() {
    const cdl_image_t* image = this->image();
    for (uint32_t b = 1; b < image->buffers.count; ++b) {
      const cdl_buffer_t& buffer = *cdl_get_buffer(image, b);
      if (buffer.role != CDL_ROLE_STATE) continue;
      hasState_ = true;
      CDL_ASSIGN(fixed_[b], device_->allocate(buffer.space - 1, buffer.bytes, buffer.alignment));
      CDL_ASSIGN(Bytes zero, Bytes::allocate(buffer.bytes));
      CDL_ASSIGN(std::shared_ptr<Queue> queue, device_->createQueue());
      CDL_TRY(queue->write(*fixed_[b], 0, zero.data(), zero.size()));
      CDL_TRY(queue->drain());
    }
    return Status::ok();
  }

  Status compile(const Bundle&, const BundlePartition& partition, Refusal* refusal) {
    const cdl_plugin_t& table = device_->table();
    ErrorBuffer error;
    if (partition.executable.size() && table.executable_load) {
      const cdl_code_t code = table.executable_load(device_->handle(), image(), partition.executable.data(),
                                                    partition.executable.size(), &executable_, error.get());
      if (code == CDL_OK) return Status::ok();
      executable_ = nullptr; // made by another version or for another device: compile again
    }
    std::vector<const void*> payloads;
    for (const Bytes& bytes : hostConstants_) payloads.push_back(bytes.data());
    cdl_refusal_t refused{};
    refused.header = CDL_HEADER(cdl_refusal_t);
    const cdl_code_t code =
        table.compile(device_->handle(), image(), payloads.data(), &executable_, &refused, error.get());
    if (code != CDL_OK) {
      executable_ = nullptr;
      const Status status = error.status(code, device_->name());
      if (refusal) *refusal = {refused.instr, static_cast<uint16_t>(refused.reason), status.message()};
      return status;
    }
    if (!executable_) return failure(Code::internal, "{}: compile succeeded without an executable", device_->name());
    if (table.executable_support) {
      std::vector<uint8_t> support(support_.size(), CDL_SUPPORT_NONE);
      CDL_TRY(error.status(
          table.executable_support(executable_, support.data(), static_cast<uint32_t>(support.size()), error.get()),
          device_->name()));
      for (size_t i = 1; i < support.size(); ++i)
        if (support[i] != CDL_SUPPORT_NATIVE) support_[i] = target::Support::emulated;
    }
    return Status::ok();
  }

  Result<std::unique_ptr<Context>> acquire() {
    {
      const std::lock_guard lock(mutex_);
      if (!free_.empty()) {
        std::unique_ptr<Context> context = std::move(free_.back());
        free_.pop_back();
        return context;
      }
    }
    const cdl_image_t* image = this->image();
    auto context = std::make_unique<Context>();
    CDL_ASSIGN(context->queue, device_->createQueue());
    context->arenas.resize(image->spaces.count);
    for (uint32_t s = 1; s < image->spaces.count; ++s) {
      const uint64_t bytes = arenaBytes(image, s);
      if (!bytes) continue;
      CDL_ASSIGN(context->arenas[s], device_->allocate(s - 1, bytes, cdl_get_space(image, s)->alignment));
    }
    context->bound.resize(image->buffers.count);
    context->bindings.resize(image->buffers.count);
    for (uint32_t b = 1; b < image->buffers.count; ++b) {
      const cdl_buffer_t& buffer = *cdl_get_buffer(image, b);
      if (buffer.role == CDL_ROLE_TEMP) {
        cdl_memory_t* arena = context->arenas[buffer.space] ? context->arenas[buffer.space]->handle() : nullptr;
        context->bindings[b] = {arena, buffer.offset, buffer.bytes};
        continue;
      }
      context->bound[b] = fixed_[b];
      if (!context->bound[b]) {
        CDL_ASSIGN(context->bound[b], device_->allocate(buffer.space - 1, buffer.bytes, buffer.alignment));
      }
      context->bindings[b] = {context->bound[b]->handle(), 0, buffer.bytes};
    }
    if (executable_ && device_->table().executable_scratch) {
      const uint64_t bytes = device_->table().executable_scratch(executable_);
      if (bytes) {
        CDL_ASSIGN(context->scratch, device_->allocate(0, bytes, 64));
        context->bindings.push_back({context->scratch->handle(), 0, bytes});
      }
    }
    return context;
  }

  Status runWith(Context& context, std::span<const Tensor> inputs, std::span<Tensor> outputs, RunStats& stats) {
    const cdl_image_t* image = this->image();
    size_t nextIn = 0;
    for (uint32_t b = 1; b < image->buffers.count; ++b) {
      const cdl_buffer_t& buffer = *cdl_get_buffer(image, b);
      if (buffer.role == CDL_ROLE_INPUT || buffer.role == CDL_ROLE_INOUT)
        CDL_TRY(context.queue->write(*context.bound[b], 0, inputs[nextIn++].bytes.data(), buffer.bytes));
    }
    cdl_bindings_t bindings{};
    bindings.header = CDL_HEADER(cdl_bindings_t);
    bindings.count = static_cast<uint32_t>(context.bindings.size());
    bindings.buffers = context.bindings.data();
    CDL_TRY(executable_ ? execute(context, bindings, stats) : interpret(context, bindings, stats));
    size_t nextOut = 0;
    for (uint32_t b = 1; b < image->buffers.count; ++b) {
      const cdl_buffer_t& buffer = *cdl_get_buffer(image, b);
      if (buffer.role == CDL_ROLE_OUTPUT || buffer.role == CDL_ROLE_INOUT)
        CDL_TRY(context.queue->read(*context.bound[b], 0, outputs[nextOut++].bytes.mutableData(), buffer.bytes));
    }
    return context.queue->drain();
  }

  Status execute(Context& context, const cdl_bindings_t& bindings, RunStats& stats) {
    ErrorBuffer error;
    const uint64_t done = context.queue->next();
    const cdl_timeline_t signal{context.queue->handle(), done};
    CDL_TRY(error.status(
        device_->table().execute(context.queue->handle(), executable_, &bindings, nullptr, 0, signal, error.get()),
        device_->name()));
    for (size_t i = 1; i < support_.size(); ++i)
      ++(support_[i] == target::Support::native ? stats.nativeInstrs : stats.emulatedInstrs);
    return context.queue->wait(done);
  }

  /// Door 1: runs of native instructions go to the backend, what lies between runs in soft.
  Status interpret(Context& context, const cdl_bindings_t& bindings, RunStats& stats) {
    return walkImage(
        image(), [&](uint32_t i) { return support_[i] != support_[i - 1] || support_[i] == target::Support::emulated; },
        [&](uint32_t first, uint32_t count, const LoopValues& loops) -> Status {
          if (support_[first] == target::Support::emulated) {
            ++stats.emulatedInstrs;
            return emulate(context, first, loops, stats);
          }
          stats.nativeInstrs += count;
          ErrorBuffer error;
          return error.status(device_->table().run(context.queue->handle(), image(), first, count, loops.values,
                                                   &bindings, error.get()),
                              device_->name());
        });
  }

  MemoryPtr memoryOf(const Context& context, uint32_t buffer) const {
    const cdl_buffer_t& record = *cdl_get_buffer(image(), buffer);
    return record.role == CDL_ROLE_TEMP ? context.arenas[record.space] : context.bound[buffer];
  }

  Status emulate(Context& context, uint32_t index, const LoopValues& loops, RunStats& stats) {
    const cdl_image_t* image = this->image();
    const cdl_instr_t* instr = cdl_get_instr(image, index);
    CDL_TRY(context.queue->drain());
    std::vector<void*> addresses(image->buffers.count, nullptr);
    std::map<uint32_t, Bytes> staged;
    std::set<uint32_t> written;
    for (uint32_t v = 0; v < uint32_t(instr->inputs) + instr->outputs; ++v) {
      const uint32_t b = cdl_get_view(image, instr->first_view + v)->buffer;
      if (v >= instr->inputs) written.insert(b);
      if (addresses[b]) continue;
      const cdl_binding_t& binding = context.bindings[b];
      const MemoryPtr memory = memoryOf(context, b);
      if (!memory) return failure(Code::internal, "buffer {} has no memory", b);
      if (memory->mapped()) {
        addresses[b] = static_cast<char*>(memory->mapped()) + binding.offset;
        continue;
      }
      CDL_ASSIGN(Bytes bytes, Bytes::allocate(binding.bytes));
      CDL_TRY(context.queue->read(*memory, binding.offset, bytes.mutableData(), binding.bytes));
      stats.stagedBytes += binding.bytes;
      addresses[b] = bytes.mutableData();
      staged[b] = std::move(bytes);
    }
    ErrorBuffer error;
    CDL_TRY(error.status(soft::run(image, index, loops.values, addresses.data(), error.get()), "soft"));
    for (auto& [b, bytes] : staged) {
      if (!written.count(b)) continue;
      CDL_TRY(context.queue->write(*memoryOf(context, b), context.bindings[b].offset, bytes.data(), bytes.size()));
      stats.stagedBytes += bytes.size();
    }
    return Status::ok();
  }

  Bytes bytes_;
  std::shared_ptr<Device> device_;
  cdl_executable_t* executable_ = nullptr;
  std::vector<target::Support> support_;
  std::vector<MemoryPtr> fixed_; ///< per image buffer: constants and states, shared by all executions
  bool hasState_ = false;
  std::mutex stateMutex_;
  std::vector<Bytes> hostConstants_; ///< per image constant
  std::mutex mutex_;
  std::vector<std::unique_ptr<Context>> free_;
};

} // namespace

Result<std::unique_ptr<Runner>> makeDeviceRunner(const Bundle& bundle, const BundlePartition& partition,
                                                 std::shared_ptr<Device> device, Refusal* refusal) {
  auto runner = std::make_unique<DeviceRunner>(partition, std::move(device));
  CDL_TRY(runner->prepare(bundle, partition, refusal));
  return std::unique_ptr<Runner>(std::move(runner));
}

} // namespace candela::runtime
