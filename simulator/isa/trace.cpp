#include "simulator/isa/trace.h"

#include <fmt/format.h>

#include "simulator/isa/isa.h"

namespace candela::npu {
namespace {

template <typename Text> std::string line(bool hasTime, Text text) {
  std::string all;
  for (int i = 0; i < trace::kCount; ++i) {
    if (kTraceFields[i].isTiming && !hasTime) continue;
    if (!all.empty()) all += ',';
    all += text(i);
  }
  return all + '\n';
}

} // namespace

std::string traceHeader(bool hasTime) {
  return line(hasTime, [](int i) { return kTraceFields[i].name; });
}

std::string traceLine(const RetireRecord& record, bool hasTime) {
  return line(hasTime, [&](int i) -> std::string {
    const uint64_t value = record[static_cast<size_t>(i)];
    switch (kTraceFields[i].kind) {
    case TraceKind::kEngine: return std::string(engineName(static_cast<int>(value)));
    case TraceKind::kOpcode: return std::string(opInfo(value)->name);
    case TraceKind::kHex: return fmt::format("{:08x}", value);
    case TraceKind::kUint: break;
    }
    return fmt::format("{}", value);
  });
}

} // namespace candela::npu
