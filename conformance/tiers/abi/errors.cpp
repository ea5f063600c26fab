// Messages: within their buffer, ended, and without one.
#include "conformance/tiers/abi/abi.h"

namespace candela::conformance::tiers::abi {
namespace {

using Failing = Result<cdl_code_t> (*)(Port&, cdl_error_t*);

Result<cdl_code_t> query(Port& port, cdl_error_t* error) {
  CDL_ASSIGN(const cdl_backend_query_fn query, port.query());
  return query(nullptr, nullptr, error);
}
Result<cdl_code_t> open(Port& port, cdl_error_t* error) {
  CDL_TRY(port.opens());
  CDL_ASSIGN(const cdl_plugin_t table, tableOf(port));
  const cdl_host_t host = plainHost();
  cdl_device_t* device = nullptr;
  return table.device_open(&host, UINT32_MAX, nullptr, 0, &device, error);
}
Result<cdl_code_t> memory(Port& port, cdl_error_t* error) {
  CDL_ASSIGN(const auto device, RawDevice::open(port));
  cdl_memory_t* memory = nullptr;
  return device->table.memory_create(device->handle, UINT32_MAX, 64, 64, &memory, error);
}
Result<cdl_code_t> read(Port& port, cdl_error_t* error) {
  CDL_ASSIGN(const auto device, RawDevice::open(port));
  CDL_ASSIGN(cdl_queue_t * queue, device->queue());
  CDL_ASSIGN(cdl_memory_t * memory, device->memory(queue, "12345678"));
  char byte = 0;
  return device->table.queue_read(queue, memory, 1 << 20, &byte, 1, error);
}
Result<cdl_code_t> door(Port& port, cdl_error_t* error) {
  CDL_ASSIGN(const auto device, RawDevice::open(port));
  CDL_ASSIGN(cdl_queue_t * queue, device->queue());
  if (!device->compiles()) return device->table.run(queue, nullptr, 1, 1, nullptr, nullptr, error);
  cdl_executable_t* executable = nullptr;
  return device->table.compile(device->handle, nullptr, nullptr, &executable, nullptr, error);
}

/// What a call is given to report its error in: nothing (capacity UINT32_MAX), a record without
/// text (UINT32_MAX - 1), or one with so many bytes for its text.
Check failsInto(Failing call, uint32_t capacity) {
  return [=](Port& port) -> Outcome {
    Said said(capacity > 4096 ? 0 : capacity);
    cdl_error_t without{nullptr, 64, 0};
    cdl_error_t* error = said.error();
    if (capacity == UINT32_MAX) error = nullptr;
    if (capacity == UINT32_MAX - 1) error = &without;
    CDL_ASSIGN(const cdl_code_t code, call(port, error));
    if (code == CDL_OK) return wrong("a call that cannot succeed did");
    if (code > CDL_MISMATCH) return wrong("{}", nameOf(code));
    if (error == &without && without.text) return wrong("the pointer to the text was changed");
    CDL_TRY(said.whole());
    if (error == said.error() && capacity > 1 && said.text().empty())
      return wrong("{} without a message", nameOf(code));
    return CaseResult::passed();
  };
}

} // namespace

std::vector<Named> errorChecks() {
  std::vector<Named> checks;
  const std::pair<const char*, Failing> calls[] = {{"query", query},
                                                   {"device_open", open},
                                                   {"memory_create", memory},
                                                   {"queue_read", read},
                                                   {"door", door}};
  for (const auto& [name, call] : calls) {
    checks.push_back({fmt::format("errors/{}:buffer=null", name), failsInto(call, UINT32_MAX)});
    checks.push_back(
        {fmt::format("errors/{}:buffer=no_text", name), failsInto(call, UINT32_MAX - 1)});
    for (uint32_t capacity : {0, 1, 2, 8, 256})
      checks.push_back(
          {fmt::format("errors/{}:buffer={}", name, capacity), failsInto(call, capacity)});
  }
  return checks;
}

} // namespace candela::conformance::tiers::abi
