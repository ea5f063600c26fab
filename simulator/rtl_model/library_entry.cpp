// The functions of a library that RtlLibrary makes; compiled there, with Verilator's class.
#include "Vcdl_npu.h"
#include "simulator/rtl_model/verilated_top.h"

extern "C" candela::npu::RtlTop* candela_rtl_make(int seed) {
  return new candela::npu::VerilatedTop<Vcdl_npu>(seed);
}
extern "C" uint64_t candela_rtl_pins_bytes() { return sizeof(candela::npu::RtlPins); }
