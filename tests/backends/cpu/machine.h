#pragma once

#include <gtest/gtest.h>

#include <sys/mman.h>

#include "core/compiler/program/image.h"
#include "core/runtime/plugin/plugin.h"

/// The cpu plugin through its table, on memory whose neighbours fault.
namespace candela::test {

/// Memory of the device between two pages that nobody may touch.
class Fenced {
public:
  Fenced(std::shared_ptr<runtime::plugin::Device> device, uint64_t bytes)
      : room_((bytes + kPage - 1) / kPage * kPage) {
    auto memory = device->allocate(0, room_ + 3 * kPage, 64);
    if (!memory) ADD_FAILURE() << memory.status().message();
    memory_ = *memory;
    const auto base = reinterpret_cast<uintptr_t>(memory_->mapped());
    first_ = ((base + kPage - 1) / kPage * kPage) - base + kPage;
    protect(PROT_NONE);
  }
  ~Fenced() { protect(PROT_READ | PROT_WRITE); }
  Fenced(const Fenced&) = delete;
  Fenced& operator=(const Fenced&) = delete;

  uint64_t room() const { return room_; }
  /// So many bytes that end at the last one before the fence, or begin at the first one behind it.
  cdl_binding_t bind(uint64_t bytes, bool atEnd) const {
    return {memory_->handle(), first_ + (atEnd ? room_ - bytes : 0), bytes};
  }
  char* at(const cdl_binding_t& binding) const {
    return static_cast<char*>(memory_->mapped()) + binding.offset;
  }

private:
  static constexpr uint64_t kPage = 4096;
  void protect(int how) {
    char* first = static_cast<char*>(memory_->mapped()) + first_;
    if (mprotect(first - kPage, kPage, how) != 0 || mprotect(first + room_, kPage, how) != 0)
      ADD_FAILURE() << "mprotect failed";
  }
  std::shared_ptr<runtime::plugin::DeviceMemory> memory_;
  uint64_t room_, first_ = 0;
};

/// What one execution needs; used again by the next one.
class Ground {
public:
  explicit Ground(std::shared_ptr<runtime::plugin::Device> device) : device_(std::move(device)) {
    auto queue = device_->createQueue();
    if (!queue) ADD_FAILURE() << queue.status().message();
    queue_ = *queue;
  }
  runtime::plugin::Queue& queue() { return *queue_; }
  /// Number `index` of them, with room for so many bytes.
  Fenced& fenced(size_t index, uint64_t bytes) {
    if (index >= fenced_.size()) fenced_.resize(index + 1);
    if (!fenced_[index] || fenced_[index]->room() < bytes)
      fenced_[index] = std::make_unique<Fenced>(device_, std::max<uint64_t>(bytes * 2, 1 << 16));
    return *fenced_[index];
  }

private:
  std::shared_ptr<runtime::plugin::Device> device_;
  std::shared_ptr<runtime::plugin::Queue> queue_;
  std::vector<std::unique_ptr<Fenced>> fenced_;
};

/// A Program on its way through the door: image, executable, executions.
class Compiled {
public:
  using Contents = std::vector<std::vector<char>>; ///< per buffer of the Program; empty: undefined

  Compiled(std::shared_ptr<runtime::plugin::Device> device, const program::Program& program)
      : device_(std::move(device)), program_(aligned(program)), image_(program::toImage(program_)) {
    std::vector<const void*> constants{nullptr};
    for (const program::Constant& constant : program.constants) {
      auto tensor = constant.payload.materialize({constant.payload.count()});
      if (!tensor) ADD_FAILURE() << tensor.status().message();
      payloads_.push_back(*tensor);
      constants.push_back(payloads_.back().bytes.data());
    }
    runtime::plugin::ErrorBuffer error;
    cdl_refusal_t refusal = {CDL_HEADER(cdl_refusal_t), 0, 0};
    code_ = device_->table().compile(device_->handle(), image(), constants.data(), &executable_,
                                     &refusal, error.get());
    text_ = error.get()->text;
    refused_ = refusal.instr;
  }
  ~Compiled() {
    if (executable_) device_->table().executable_destroy(device_->handle(), executable_);
  }
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;

  const cdl_image_t* image() const { return reinterpret_cast<const cdl_image_t*>(image_.data()); }
  cdl_code_t code() const { return code_; }
  const std::string& text() const { return text_; }
  uint32_t refused() const { return refused_; } ///< counted from 1

  /// The contents of all buffers afterwards. `atEnd`: they end at their fence, else they begin
  /// there.
  Contents execute(Ground& ground, const Contents& before, bool atEnd) const {
    const size_t count = program_.buffers.size();
    std::vector<cdl_binding_t> bindings(count + 1);
    std::vector<Fenced*> memory;
    for (size_t b = 0; b < count; ++b) {
      const uint64_t bytes = program_.buffers[b].bytes;
      memory.push_back(&ground.fenced(b, bytes));
      bindings[b + 1] = memory[b]->bind(bytes, atEnd);
      char* at = memory[b]->at(bindings[b + 1]);
      if (program_.buffers[b].role == program::Role::constant)
        std::memcpy(at, payloads_[program_.buffers[b].constant].bytes.data(), bytes);
      else if (before[b].empty())
        std::memset(at, 0xa5, bytes);
      else
        std::memcpy(at, before[b].data(), bytes);
    }
    const uint64_t scratch = device_->table().executable_scratch(executable_);
    bindings.push_back(ground.fenced(count, scratch).bind((scratch + 63) / 64 * 64, atEnd));
    std::memset(ground.fenced(count, scratch).at(bindings.back()), 0xa5, scratch);
    const cdl_bindings_t bound = {CDL_HEADER(cdl_bindings_t),
                                  static_cast<uint32_t>(bindings.size()), 0, bindings.data()};
    runtime::plugin::ErrorBuffer error;
    const cdl_code_t code = device_->table().execute(ground.queue().handle(), executable_, &bound,
                                                     nullptr, 0, {nullptr, 0}, error.get());
    EXPECT_EQ(code, CDL_OK) << error.get()->text;
    Contents after;
    for (size_t b = 0; b < count; ++b) {
      const char* at = memory[b]->at(bindings[b + 1]);
      after.emplace_back(at, at + program_.buffers[b].bytes);
    }
    return after;
  }

private:
  /// Buffers that end at a fence are aligned as their sizes are, but no less than what lies in
  /// them.
  static program::Program aligned(program::Program program) {
    std::vector<uint64_t> needed(program.buffers.size(), 1);
    for (const program::Instr& instr : program.instrs)
      for (const auto* views : {&instr.inputs, &instr.outputs})
        for (const program::View& view : *views)
          if (view.buffer != program::kNone)
            needed[view.buffer] = std::max<uint64_t>(needed[view.buffer], elemBits(view.elem) / 8);
    for (size_t b = 0; b < needed.size(); ++b) {
      program::Buffer& buffer = program.buffers[b];
      const uint64_t lowest = std::max(buffer.bytes & -buffer.bytes, needed[b]);
      buffer.alignment = static_cast<uint32_t>(std::min<uint64_t>(buffer.alignment, lowest));
    }
    return program;
  }

  std::shared_ptr<runtime::plugin::Device> device_;
  const program::Program program_;
  Bytes image_;
  std::vector<Tensor> payloads_;
  cdl_executable_t* executable_ = nullptr;
  cdl_code_t code_ = CDL_OK;
  std::string text_;
  uint32_t refused_ = 0;
};

/// The tiers that this machine has, lowest first; a device of each with so many threads.
inline const std::vector<std::string>& tiers() {
  static const std::vector<std::string> found = [] {
    std::vector<std::string> names;
    const auto plugin = runtime::plugin::findPlugin(PLUGIN_cpu);
    if (!plugin) ADD_FAILURE() << plugin.status().message();
    for (const char* isa : {"x86-64-v3", "avxvnni", "avx512", "avx512vnni", "avx512bf16", "amx"})
      if (plugin && (*plugin)->open(0, {{"isa", isa}})) names.push_back(isa);
    return names;
  }();
  return found;
}
inline std::shared_ptr<runtime::plugin::Device> openCpu(const std::string& isa, int threads) {
  const auto plugin = runtime::plugin::findPlugin(PLUGIN_cpu);
  if (!plugin) return nullptr;
  auto device = (*plugin)->open(0, {{"isa", isa}, {"threads", std::to_string(threads)}});
  if (!device) ADD_FAILURE() << device.status().message();
  return device ? *device : nullptr;
}

} // namespace candela::test
