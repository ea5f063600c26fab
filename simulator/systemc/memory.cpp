#include "simulator/systemc/memory.h"

namespace candela::npu {
namespace {

void copy(const tlm::tlm_generic_payload& payload, std::byte* memory) {
  if (payload.is_read())
    std::memcpy(payload.get_data_ptr(), memory, payload.get_data_length());
  else
    std::memcpy(memory, payload.get_data_ptr(), payload.get_data_length());
}

} // namespace

DramMemory::DramMemory(sc_core::sc_module_name name, const Configuration& configuration)
    : sc_module(name), socket("socket"), clock_(configuration[key::kClockMhz]),
      dram_(configuration) {
  socket.register_b_transport(this, &DramMemory::transport);
  socket.register_transport_dbg(this, &DramMemory::debug);
}

void DramMemory::reset(const Configuration& configuration) {
  clock_ = CycleClock(configuration[key::kClockMhz]);
  clock_.beginAt(sc_core::sc_time_stamp());
  dram_ = Dram(configuration);
  map_.clear();
}

void DramMemory::transport(tlm::tlm_generic_payload& payload, sc_core::sc_time& delay) {
  const sc_core::sc_time now = sc_core::sc_time_stamp();
  const int64_t cycle = clock_.cycleOf(now + delay);
  const auto* extension = payload.get_extension<AccessExtension>();
  if (!payload.is_read() && !payload.is_write()) {
    if (extension && extension->isDrain) delay = clock_.timeOf(dram_.drain(cycle)) - now;
    return payload.set_response_status(tlm::TLM_OK_RESPONSE);
  }
  const unsigned bytes = payload.get_data_length();
  if (payload.get_byte_enable_ptr())
    return payload.set_response_status(tlm::TLM_BYTE_ENABLE_ERROR_RESPONSE);
  if (payload.get_streaming_width() < bytes)
    return payload.set_response_status(tlm::TLM_BURST_ERROR_RESPONSE);
  std::byte* const memory = map_.find(payload.get_address(), bytes);
  if (!memory || bytes == 0) return payload.set_response_status(tlm::TLM_ADDRESS_ERROR_RESPONSE);
  copy(payload, memory);
  const int requester = extension ? extension->requester : Dram::kOther;
  delay = clock_.timeOf(
              dram_.access(cycle, payload.get_address(), bytes, payload.is_write(), requester)) -
          now;
  payload.set_response_status(tlm::TLM_OK_RESPONSE);
}

unsigned DramMemory::debug(tlm::tlm_generic_payload& payload) {
  std::byte* const memory = map_.find(payload.get_address(), payload.get_data_length());
  if (!memory || (!payload.is_read() && !payload.is_write())) return 0;
  copy(payload, memory);
  return payload.get_data_length();
}

} // namespace candela::npu
