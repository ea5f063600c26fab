#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace candela::npu {

/// How a value of the trace reads in text.
enum class TraceKind : uint8_t { kUint, kHex, kEngine, kOpcode };
struct TraceFieldInfo {
  std::string_view name;
  int bits;
  TraceKind kind;
  bool isTiming; ///< known only to a model that has time
};

#include "simulator/isa/generated/trace.inc"

/// One instruction that ended: values by trace::k<Field> (docs/reference/npu_trace.md).
using RetireRecord = std::array<uint64_t, trace::kCount>;

/// Lines of CSV, each with its end: the fields' names, and one record. hasTime: with those of
/// timing.
std::string traceHeader(bool hasTime);
std::string traceLine(const RetireRecord& record, bool hasTime);

} // namespace candela::npu
