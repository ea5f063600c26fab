#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/support/status.h"

namespace candela::conformance {

class Port;

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
  enum class Outcome : uint8_t {
    passed = 0,
    failed = 1,
    unsupported = 2, ///< the backend does not claim it
    xfail = 3,       ///< failed, as was expected
    emulated = 4,    ///< claimed EMULATED: the SDK would run it, which says nothing of the backend
    mistrusted = 5,  ///< right within bounds that are too wide to say much; counts for nothing
  };
  std::string name = {}; ///< the address: "onnx:test_add"; stable
  Outcome outcome = Outcome::failed;
  bool rawPassed = false;  ///< passed without its shape operands frozen
  std::string reason = {}; ///< of what did not pass
  /// What failed is run again: in the same way each time, or not.
  enum class Again : uint8_t { unknown, same, otherwise };
  Again again = Again::unknown;
  bool isLate = false; ///< its time was over
  Work work = {};
  double milliseconds = 0;
  /// of a network: what went where, a line per op and place
  std::vector<std::string> placement = {};

  static CaseResult passed() { return {.outcome = Outcome::passed}; }
  static CaseResult unsupported(std::string why) {
    return {.outcome = Outcome::unsupported, .reason = std::move(why)};
  }
  bool isUnsteady() const { return again == Again::otherwise; }
  /// passed, or failed with the message.
  static CaseResult of(const Status& status) {
    return {.outcome = status ? Outcome::passed : Outcome::failed, .reason = status.message()};
  }
};

/// How much of the suite: a smoke per row; a fixed pairwise sample; the whole product.
enum class Size : uint8_t { quick, full, nightly };

/// What cases there are. The same selection gives the same cases in the same order on every machine
/// and backend.
struct Selection {
  Size size = Size::full;
  uint64_t seed = 1;
  std::string onnxData; ///< folder of the ONNX node tests
  /// lower every op to the 13 primitives first, where a graph is compiled
  bool toPrimitives = false;
  std::string failures; ///< folder where reduced failures go; empty: nowhere. Changes no case
};

/// One case. `run` is called in a worker process, with the port that lives there; it fills all of a
/// result but the name and the time.
struct Case {
  std::string address; ///< "primitives:binary/add_f32:shape=17x3;data=corners"
  std::function<CaseResult(Port&)> run;
};

} // namespace candela::conformance
