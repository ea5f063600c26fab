#pragma once

#include <span>

#include "conformance/port.h"
#include "conformance/suite.h"
#include "core/compiler/program/program.h"

/// What the checks of the tier have in common: the plugin's own objects, without the runtime
/// between.
namespace candela::conformance::tiers::abi {

/// Passed is Status::ok(); what the plugin does not have, missing("slot").
using Outcome = Result<CaseResult>;
using Check = std::function<Outcome(Port&)>;
struct Named {
  std::string name; ///< "query/null_host"
  Check check;
};
std::vector<Named> queryChecks();
std::vector<Named> tableChecks();
std::vector<Named> deviceChecks();
std::vector<Named> capabilityChecks();
std::vector<Named> errorChecks();
std::vector<Named> imageChecks();
std::vector<Named> bindingChecks();
std::vector<Named> executableChecks();
std::vector<Named> serviceChecks();

/// The outcome of a check whose slot the plugin leaves null.
inline CaseResult missing(std::string_view slot) {
  return CaseResult::unsupported(fmt::format("slot {} is null", slot));
}
template <typename... Args> Status wrong(fmt::format_string<Args...> format, Args&&... args) {
  return {Code::mismatch, fmt::format(format, std::forward<Args>(args)...)};
}

/// Bytes whose last one is the last of a page that nobody may touch beyond: what reads or writes
/// further dies.
class PageEnd {
public:
  /// Failure: out_of_memory.
  static Result<PageEnd> of(const void* data, size_t size);
  PageEnd(PageEnd&& other) noexcept;
  PageEnd& operator=(PageEnd&&) = delete;
  ~PageEnd() { release(); }
  void* data() const { return data_; }
  template <typename T> T* as() const { return static_cast<T*>(data_); }
  /// Afterwards any access dies.
  void release();

private:
  PageEnd() = default;
  void* base_ = nullptr;
  size_t mapped_ = 0;
  void* data_ = nullptr;
};

/// A message buffer of some capacity between guard bytes.
class Said {
public:
  explicit Said(uint32_t capacity = 256);
  cdl_error_t* error() { return &error_; }
  std::string text() const;
  /// Nothing was written outside, and the text ends.
  Status whole() const;

private:
  std::string room_;
  uint32_t capacity_;
  cdl_error_t error_;
};

std::string nameOf(cdl_code_t code);
/// That a call was refused by one of these codes, with a message.
Status refusedBy(std::string_view what, cdl_code_t code, const Said& said,
                 std::initializer_list<cdl_code_t> codes);
Status succeeded(std::string_view what, cdl_code_t code, const Said& said);

/// A host that offers nothing.
cdl_host_t plainHost();

/// The table that a host of this version gets.
Result<cdl_plugin_t> tableOf(Port& port);

/// A device of the plugin's, closed at the end with all that was made of it.
class RawDevice {
public:
  static Result<std::unique_ptr<RawDevice>> open(Port& port, const cdl_host_t* host = nullptr);
  /// Of an open device, which it closes.
  RawDevice(const cdl_plugin_t& table, cdl_device_t* device) : table(table), handle(device) {}
  ~RawDevice();
  RawDevice(const RawDevice&) = delete;
  RawDevice& operator=(const RawDevice&) = delete;

  Result<cdl_queue_t*> queue();
  /// Memory with these bytes in it; space 0.
  Result<cdl_memory_t*> memory(cdl_queue_t* queue, const std::string& bytes);
  /// Memory of any space, with undefined content.
  Result<cdl_memory_t*> arena(uint32_t space, uint64_t bytes);
  Result<std::string> read(cdl_queue_t* queue, cdl_memory_t* memory, uint64_t bytes);
  bool compiles() const { return table.compile != nullptr; }
  bool holdsConstants() const { return table.executable_load != nullptr; }

  const cdl_plugin_t table;
  cdl_device_t* const handle;

private:
  std::vector<cdl_queue_t*> queues_;
  std::vector<cdl_memory_t*> memories_;
};

/// A Program of one instruction, y = f(x ...), that the device claims NATIVE.
struct Sample {
  std::string name; ///< "binary_add_f32"
  program::Program program;
};
/// All that are asked about, claimed or not; the same on every machine.
std::span<const Sample> samples();
/// The same for a device that computes on local memories: cut into tiles. Others get it as it is.
Result<const Sample*> inTiles(Port& port, const Sample& sample);
/// The first one that the device claims NATIVE, in tiles; null when there is none.
Result<const Sample*> claimedSample(Port& port);
/// "no instruction is NATIVE".
CaseResult nothingClaimed();

/// A sample on a device: image, bindings, and the call of whichever interface there is.
class Work {
public:
  static Result<std::unique_ptr<Work>> on(RawDevice& device, const Sample& sample,
                                          uint8_t seed = 1);
  ~Work();
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  const cdl_image_t* image() const { return reinterpret_cast<const cdl_image_t*>(image_.data()); }
  cdl_bindings_t bindings() const;
  /// How many instructions there are: more than one where the sample is in tiles.
  uint32_t instrs() const { return image()->instrs.count - 1; }
  /// Which buffer is written.
  uint32_t output() const { return output_; }
  /// run, or execute and a wait, with these bindings.
  cdl_code_t call(const cdl_bindings_t* bindings, Said& said);
  /// What the output holds now.
  Result<std::string> result();
  /// A call with the bindings as they should be, and its result.
  Result<std::string> runWell();

  RawDevice& device;
  cdl_queue_t* queue = nullptr;
  cdl_executable_t* executable = nullptr; ///< of the program API
  std::vector<cdl_binding_t> buffers;
  uint64_t submitted = 0; ///< the queue's timeline

private:
  explicit Work(RawDevice& device) : device(device) {}
  /// Binds a buffer of a local memory at its offset in the arena of that.
  Status bindLocal(const program::Program& program, size_t index,
                   std::map<uint32_t, cdl_memory_t*>& arenas);
  Bytes image_;
  std::vector<std::string> payloads_;
  uint32_t output_ = 0;
};

/// The sample's image, and the payloads of its constants by image index.
Bytes imageOf(const Sample& sample);
Result<std::vector<Bytes>> payloadsOf(const Sample& sample);

} // namespace candela::conformance::tiers::abi
