// The functions of a library that RtlLibrary makes; compiled there, with Verilator's class.
#include <exception>

#include "Vcdl_npu.h"
#include "simulator/rtl_model/verilated_top.h"

extern "C" candela::npu::RtlTop* candela_rtl_make(int seed) {
  try {
    return new candela::npu::VerilatedTop<Vcdl_npu>(seed);
  } catch (const std::exception&) { // of the system: memory, threads
    return nullptr;
  }
}
extern "C" uint64_t candela_rtl_pins_bytes() { return sizeof(candela::npu::RtlPins); }
