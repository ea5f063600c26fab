#include "conformance/mutants/soft_port.h"

#include <candela/backend.hpp>

#include "conformance/mutants/fault.h"
#include "core/runtime/host_executor/soft.h"

namespace candela::conformance::mutants {
namespace {

/// For how many threads instructions are cut: the interface does not say what the host has.
constexpr uint32_t kThreads = 4;
/// Fine enough that the suite's small cases are cut too.
constexpr int64_t kPartSteps = 64;

/// What is the same behind both interfaces: memory, queues and negotiation are the comfort layer's,
/// instructions and capabilities soft's own, the fault comes on top.
template <class Base> class SoftDevice : public Base {
public:
  SoftDevice() : Base("soft", "0.1.0") {
    this->describe("the portable executor, as a plugin");
    this->option("fault", "a fault to have: `candela conform --mutants` lists them", "string", "");
    this->option("door", "how it takes Programs", "run|compile", "run");
    this->option("spaces", "how many memory spaces it has", "1|2", "1");
    this->claim(cdl::Profile::FP32);
  }

  cdl::Status open(uint32_t) override {
    const std::string name = this->options().get("fault");
    if (!name.empty() && !(fault_ = findFault(name)))
      return cdl::error(CDL_INVALID_ARGUMENT, "there is no fault '" + name + "'");
    table_ = runtime::host_executor::capabilities();
    rows_.assign(table_.rows, table_.rows + table_.row_count);
    if (this->options().get("spaces") == "2" || (fault_ && fault_->hasTwoSpaces)) addSpace();
    if (fault_ && fault_->capabilities) fault_->capabilities(table_, rows_);
    if (table_.rows) {
      table_.rows = rows_.data();
      table_.row_count = static_cast<uint32_t>(rows_.size());
    }
    return cdl::ok();
  }

  const cdl_capabilities_t* claims() const { return &table_; }

  /// Queues of its own, as far as the comfort layer is concerned: they can be cancelled.
  std::unique_ptr<cdl::Queue> queueCreate() override { return std::make_unique<cdl::Queue>(this); }

  /// Instruction i, with buffers where the image has them, and a record of it where one is wanted.
  cdl::Status timedInstr(const cdl_image_t* image, uint32_t i, const int64_t* loops,
                         const std::vector<Room>& rooms, cdl::Timings* timings) {
    const uint64_t start = timings ? cdl::Timings::now() : 0;
    cdl::Status status = runInstr(image, i, loops, rooms);
    if (timings && status.isOk()) timings->add(i, start, cdl::Timings::now());
    return status;
  }

private:
  /// A second one, which is as good as the first. The comfort layer has to know of both.
  void addSpace() {
    spaces_.assign(2, table_.spaces[0]);
    spaceNames_ = {table_.space_names[0], "beside"};
    for (const char* name : spaceNames_)
      this->space(name, spaces_[0].flags, spaces_[0].capacity_bytes, spaces_[0].alignment);
    table_.spaces = spaces_.data();
    table_.space_names = spaceNames_.data();
    table_.space_count = static_cast<uint32_t>(spaces_.size());
  }

  cdl::Status runInstr(const cdl_image_t* image, uint32_t i, const int64_t* loops,
                       const std::vector<Room>& rooms) {
    char message[512] = "";
    cdl_code_t code = CDL_OK;
    const Subject* subject = fault_ && fault_->run ? fault_->subject : nullptr;
    if (subject && (subject->kind == 0 || subject->kind == cdl_get_instr(image, i)->kind)) {
      Mutation mutation(image, i, loops, rooms, memory_);
      code = fault_->run(mutation);
      if (code == CDL_OK) mutation.commit();
      if (code != CDL_OK) return cdl::error(code, mutation.message);
      return cdl::ok();
    }
    std::vector<void*> addresses;
    for (const Room& room : rooms) addresses.push_back(room.address);
    cdl_error_t error{message, sizeof message, 0};
    const runtime::host_executor::Workers workers{&this->host(), kThreads, kPartSteps};
    code = runtime::host_executor::run(image, i, loops, addresses.data(), &workers, &error);
    return code == CDL_OK ? cdl::ok() : cdl::error(code, message);
  }

  const Fault* fault_ = nullptr;
  FaultMemory memory_;
  cdl_capabilities_t table_{};
  std::vector<cdl_row_t> rows_;
  std::vector<cdl_space_t> spaces_; ///< where there is more than soft's one
  std::vector<const char*> spaceNames_;
};

/// The primitive API.
class SoftPort : public SoftDevice<cdl::PrimitiveBackend> {};

cdl::Status runInstrs(cdl_queue_t* queue, const cdl_image_t* image, uint32_t first, uint32_t count,
                      const int64_t loops[CDL_MAX_LOOP_NESTING], const cdl_bindings_t* bindings) {
  if (cdl::Status status = cdl::checkInstrs(image, first, count); !status.isOk()) return status;
  auto* port = static_cast<SoftPort*>(reinterpret_cast<cdl::Queue*>(queue)->backend());
  const cdl::Bindings buffers(*port, image, bindings);
  std::vector<Room> rooms(image->buffers.count);
  for (uint32_t b = 1; b < rooms.size(); ++b) {
    const cdl_binding_t& binding = bindings->buffers[b];
    rooms[b].bytes = cdl_get_buffer(image, b)->bytes;
    rooms[b].address = buffers.address(b, rooms[b].bytes);
    rooms[b].before = binding.offset;
    rooms[b].behind =
        reinterpret_cast<cdl::Memory*>(binding.memory)->bytes - binding.offset - rooms[b].bytes;
  }
  cdl::Timings* timings = reinterpret_cast<cdl::Queue*>(queue)->timings.get();
  for (uint32_t i = first; i - first < count; ++i)
    if (cdl::Status status = port->timedInstr(image, i, loops, rooms, timings); !status.isOk())
      return status;
  return cdl::ok();
}

/// The program API: what is compiled is the image.
class SoftCompiler : public SoftDevice<cdl::ProgramBackend> {
public:
  class Program : public cdl::Executable {
  public:
    Program(SoftCompiler& device, const cdl_image_t* image) : device_(device), image_(image) {}
    cdl::Status execute(const cdl::Addresses& buffers) override {
      std::vector<Room> rooms(image_->buffers.count);
      for (uint32_t b = 1; b < rooms.size(); ++b) {
        rooms[b].bytes = cdl_get_buffer(image_, b)->bytes;
        rooms[b].address = buffers.address(b, rooms[b].bytes);
      }
      return cdl::forEachInstr(image_, [&](uint32_t i, const int64_t* loops) {
        return device_.timedInstr(image_, i, loops, rooms, buffers.timings());
      });
    }

  private:
    SoftCompiler& device_;
    const cdl_image_t* image_;
  };

  cdl::Status compile(const cdl_image_t* image, const void* const*,
                      std::unique_ptr<cdl::Executable>& executable) override {
    executable = std::make_unique<Program>(*this, image);
    return cdl::ok();
  }
};

template <class Device> const cdl_capabilities_t* capabilitiesOf(cdl_device_t* device) noexcept {
  return static_cast<Device*>(cdl::detail::Slots::of(device))->claims();
}

template <class Device>
cdl_code_t query(const cdl_host_t* host, cdl_plugin_t* out, cdl_error_t* error) {
  const cdl_code_t code = cdl::detail::Entry<Device>::query(host, out, error);
  if (code != CDL_OK) return code;
  out->device_capabilities = capabilitiesOf<Device>;
  if constexpr (std::is_same_v<Device, SoftPort>) out->run = cdl::detail::Slot<runInstrs>::call;
  return CDL_OK;
}

const Fault* tableFault = nullptr;
bool tableCompiles = false;

cdl_code_t faultyQuery(const cdl_host_t* host, cdl_plugin_t* out, cdl_error_t* error) {
  const cdl_code_t code = (tableCompiles ? query<SoftCompiler> : query<SoftPort>)(host, out, error);
  if (code == CDL_OK && tableFault && tableFault->table) tableFault->table(*out);
  return code;
}

} // namespace

cdl_code_t softQuery(const cdl_host_t* host, cdl_plugin_t* out, cdl_error_t* error) {
  return query<SoftPort>(host, out, error);
}

cdl_backend_query_fn softQueryFor(const std::map<std::string, std::string>& options) {
  const auto get = [&](const char* name) {
    const auto found = options.find(name);
    return found == options.end() ? std::string() : found->second;
  };
  const Fault* fault = findFault(get("fault"));
  const bool compiles = get("door") == "compile" || (fault && fault->compiles);
  if (!compiles && !(fault && fault->table)) return &softQuery;
  tableFault = fault;
  tableCompiles = compiles;
  return &faultyQuery;
}

} // namespace candela::conformance::mutants
