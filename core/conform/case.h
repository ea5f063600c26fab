#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/import/script.h"

namespace candela::conform {

/// Where the work of a case went, by the SDK's own count.
struct Work {
  uint64_t nodes = 0, nativeNodes = 0, macs = 0, nativeMacs = 0;
  Work& operator+=(const Work& other) {
    nodes += other.nodes;
    nativeNodes += other.nativeNodes;
    macs += other.macs;
    nativeMacs += other.nativeMacs;
    return *this;
  }
};

struct CaseResult {
  enum class Outcome : uint8_t { passed = 0, failed = 1, unsupported = 2, xfail = 3 };
  std::string name; ///< "onnx:test_add"; stable
  Outcome outcome = Outcome::failed;
  bool rawPassed = false; ///< passed without its shape operands frozen
  std::string reason;     ///< of what did not pass
  Work work = {};
  double milliseconds = 0;
};

struct RunAnswer {
  std::vector<flow::Value> outputs; ///< in the model's order
  Work work;
};
/// Compiles a model for what is judged and runs it on these inputs (the flow's order). Code::unsupported: the backend,
/// or this version, does not have what the graph needs.
using RunCase = std::function<Result<RunAnswer>(import::Script, const std::vector<flow::Value>&)>;

} // namespace candela::conform
