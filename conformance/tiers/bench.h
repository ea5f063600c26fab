#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <span>

#include "conformance/family.h"
#include "conformance/port.h"

/// What the tiers below the instructions stand on: the slots of the table as they are, with codes
/// and messages judged as they come.
namespace candela::conformance::tiers {

using ByteVector = std::vector<std::byte>;

/// How long a wait for work that was submitted may take.
inline constexpr uint64_t kPatienceNs = 10'000'000'000;

/// Bytes of a page of the host.
inline constexpr uint64_t kPage = 4096;

/// What a slot answered.
struct Reply {
  cdl_code_t code = CDL_OK;
  std::string text;
  bool overrun = false; ///< bytes behind the room for the message were written
};

/// Room for a message, with bytes behind it that nobody may touch.
class MessageRoom {
public:
  MessageRoom();
  cdl_error_t* get() { return &error_; }
  Reply reply(cdl_code_t code) const;

private:
  static constexpr size_t kCapacity = 256, kBehind = 256;
  char text_[kCapacity + kBehind];
  cdl_error_t error_{text_, kCapacity, 0};
};

template <typename Slot, typename... Args> Reply ask(Slot slot, Args... args) {
  MessageRoom room;
  return room.reply(slot(args..., room.get()));
}

/// Ok when the call succeeded.
Status valid(std::string_view who, const Reply& reply);
/// Ok when the call was refused with this code and said why.
Status refused(std::string_view who, cdl_code_t code, const Reply& reply);
/// Ok when these are the expected bytes.
Status same(std::string_view who, std::span<const std::byte> got,
            std::span<const std::byte> expected);

/// Bytes that differ from those of other seeds.
ByteVector pattern(uint64_t bytes, uint64_t seed);

/// All that a capability table says, with what it points to in place of the pointers.
std::string contentOf(const cdl_capabilities_t& table);

/// Calls body(0) .. body(count - 1) at the same time, each on a thread of its own; the first
/// failure counts.
Status onThreads(size_t count, const std::function<Status(size_t)>& body);

class Bench;

/// A queue and the value that its timeline was last told to reach. Used by one thread at a time, as
/// queues are.
class Lane {
public:
  Lane(Bench& bench, cdl_queue_t* queue) : bench_(&bench), queue_(queue) {}
  cdl_queue_t* handle() const { return queue_; }
  Status write(cdl_memory_t* to, uint64_t offset, std::span<const std::byte> bytes);
  Result<ByteVector> read(cdl_memory_t* from, uint64_t offset, uint64_t bytes);
  Status copy(cdl_memory_t* to, uint64_t toOffset, cdl_memory_t* from, uint64_t fromOffset,
              uint64_t bytes);
  Status signal(uint64_t value);
  Status wait(uint64_t value, uint64_t timeoutNs = kPatienceNs);
  uint64_t next() { return ++value_; }
  /// Waits until everything submitted so far is done.
  Status sync();
  /// Memory for executions, which one queue runs one after the other.
  Result<cdl_memory_t*> scratch(uint64_t bytes, uint32_t space = 0);
  /// What is read must be these bytes.
  Status expect(std::string_view who, cdl_memory_t* from, uint64_t offset,
                std::span<const std::byte> bytes);

private:
  Bench* bench_;
  cdl_queue_t* queue_;
  uint64_t value_ = 0;
  struct Scratch {
    cdl_memory_t* memory = nullptr;
    uint64_t bytes = 0;
  };
  std::map<uint32_t, Scratch> scratch_; ///< by space
};

/// A device, and what a case makes on it: destroyed with the bench, queues first. Memory and queues
/// are made and destroyed by any thread.
class Bench {
public:
  Bench(std::shared_ptr<runtime::plugin::Plugin> plugin,
        std::shared_ptr<runtime::plugin::Device> device)
      : plugin_(std::move(plugin)), device_(std::move(device)) {}
  /// Of another device of the plugin, in a case of `main`: what is skipped here is skipped there.
  Bench(Bench& main, std::shared_ptr<runtime::plugin::Device> device)
      : plugin_(main.plugin_), device_(std::move(device)), main_(main.main_) {}
  ~Bench();
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  const cdl_plugin_t& table() const { return device_->table(); }
  cdl_device_t* device() const { return device_->handle(); }
  const std::shared_ptr<runtime::plugin::Plugin>& plugin() const { return plugin_; }
  /// The device as it was opened: which one, and with which options.
  const runtime::plugin::Device& opened() const { return *device_; }
  bool compiles() const { return device_->compiles(); }
  /// The same device, opened once more.
  Result<std::shared_ptr<runtime::plugin::Device>> another() const {
    return plugin_->open(device_->index(), device_->options());
  }
  const capabilities::Target& target() const { return device_->target(); }
  uint64_t alignment(uint32_t space = 0) const;

  /// alignment 0: what the space declares.
  Result<cdl_memory_t*> create(uint64_t bytes, uint32_t space = 0, uint64_t alignment = 0);
  /// With these bytes in it.
  Result<cdl_memory_t*> createWith(Lane& lane, std::span<const std::byte> bytes);
  /// Memory that stands for bytes of the host in the default space, or `memory` made to stand for
  /// them. A refusal skips the case: a device need not use bytes that lie there.
  Result<cdl_memory_t*> import(std::span<std::byte> bytes, cdl_memory_t* memory = nullptr);
  void destroy(cdl_memory_t* memory);
  Result<Lane> lane();
  void destroy(const Lane& lane);
  /// Unmapped again by whoever mapped. Where a space is not HOST_MAPPED a refusal skips the case.
  Result<std::byte*> map(cdl_memory_t* memory, uint64_t offset, uint64_t bytes, uint32_t space = 0);
  Status unmap(cdl_memory_t* memory, void* pointer);

  /// A new buffer on a new queue takes bytes and gives them back.
  Status usable();

  /// The case says nothing of this backend: return what this gives.
  Status skip(std::string why, bool emulated = false);
  /// What becomes of the case.
  CaseResult result(const Status& status) const;

private:
  std::shared_ptr<runtime::plugin::Plugin> plugin_;
  std::shared_ptr<runtime::plugin::Device> device_;
  std::mutex mutex_;
  std::vector<cdl_memory_t*> memory_;
  std::vector<cdl_queue_t*> queues_;
  std::atomic<CaseResult::Outcome> skipped_ = CaseResult::Outcome::passed;
  Bench* main_ = this; ///< that of the case
};

/// y = x, a Program of one COPY of so many bytes, through the interface that the device has.
/// Several threads submit, each on its own queue.
class Echo {
public:
  static Result<std::unique_ptr<Echo>> make(Bench& bench, uint64_t bytes);
  ~Echo();
  Echo(const Echo&) = delete;
  Echo& operator=(const Echo&) = delete;

  uint64_t bytes() const { return bytes_; }
  const cdl_image_t* image() const { return reinterpret_cast<const cdl_image_t*>(image_.data()); }
  cdl_executable_t* executable() const { return executable_; }
  /// Offsets are multiples of the alignment.
  Status submit(Lane& lane, cdl_memory_t* y, cdl_memory_t* x, uint64_t yOffset = 0,
                uint64_t xOffset = 0);
  /// The program API alone.
  Status execute(Lane& lane, cdl_memory_t* y, cdl_memory_t* x, std::span<const cdl_timeline_t> wait,
                 cdl_timeline_t signal, uint64_t yOffset = 0, uint64_t xOffset = 0);

private:
  explicit Echo(Bench& bench, uint64_t bytes) : bench_(bench), bytes_(bytes) {}
  /// What a Program in tiles has in local memories.
  Status bindLocal(Lane& lane, std::vector<cdl_binding_t>& buffers) const;
  Bench& bench_;
  uint64_t bytes_;
  Bytes image_;
  cdl_executable_t* executable_ = nullptr;
};

using Probe = Status (*)(Bench& bench, const Choice& choice);

/// Cases that are functions, by name, times parameters.
struct Probes {
  std::string stem; ///< "memory:map/"
  std::vector<std::pair<const char*, Probe>> rows;
  std::vector<Axis> axes = {};
  bool ownDevice = false; ///< what they do, a device need not survive: each opens its own
};
std::vector<Case> expand(const Probes& probes, const Selection& selection, const Budget& budget);

/// The families of a tier, each with its share of it, in the order in which they run.
using ProbeFamilies = std::vector<std::pair<Probes, Budget>>;
std::vector<Case> expand(const ProbeFamilies& families, const Selection& selection);

/// A number among the parameters.
uint64_t numberOf(const Choice& choice, std::string_view axis);

} // namespace candela::conformance::tiers
