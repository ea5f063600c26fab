#pragma once

#include <cstdint>
#include <string_view>

namespace candela::npu {

enum class Counter : uint8_t;
struct CounterInfo {
  std::string_view name;
  Counter id;
  bool isTiming; ///< counted only by a model that has time
};
struct RegisterInfo {
  std::string_view name;
  uint32_t offset; ///< bytes
  uint32_t count;  ///< registers of 4 bytes from there on
  bool isWritable; ///< by the driver
  bool isProgram;  ///< the instruction config may write it
};

#include "simulator/isa/generated/registers.inc"

} // namespace candela::npu
