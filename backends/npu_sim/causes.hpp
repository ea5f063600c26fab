// Which cycles of a program belong to which layer, and what each of them was spent on: the path of
// instructions that the end of the program hangs on. Both cover every cycle once, so that the
// causes of a layer are its cycles.
#pragma once

#include "compile.hpp"

#include "simulator/timing/schedule.h"

#include <array>
#include <cstdint>
#include <map>
#include <vector>

namespace npu_sim {

/// What was under way on the path; taking it away shortens the program by so much at most.
enum class Cause : uint8_t {
  kProducts, ///< the array multiplied, as many cycles as a full one needs for the products
  kUnused,   ///< the array multiplied with rows or columns that the layer's shape leaves empty
  kFill,     ///< the array was filled with weights, or emptied
  kRequant,  ///< sums were scaled and written
  kVector,   ///< the vector engine
  kScatter,  ///< a transfer that puts single bytes into another order, one in a cycle
  kLoad,     ///< a load: its setup and its port into the scratchpad
  kStore,    ///< a store, likewise
  kDram,     ///< a transfer that the memory served later than its port could take
  kBank,     ///< an instruction that others kept from a bank of the scratchpad
  kControl   ///< nothing: the next instruction was not sent yet, or its token not seen
};
inline constexpr int kCauses = 11;
const char* causeName(Cause cause);
/// Cycles by static_cast<size_t>(Cause).
using CauseCycles = std::array<int64_t, kCauses>;

/// What the array did in a layer, in its cycles.
struct ArrayWork {
  int64_t busy = 0;     ///< in which it had an instruction
  int64_t passes = 0;   ///< in which rows of activations went through
  int64_t products = 0; ///< that its products take at least
};
/// Parts kFill as the layer's work is parted; the sum stays what it is.
void partArray(const ArrayWork& work, CauseCycles& causes);

/// Of one program, from its instructions in the order of their ends.
class CycleCauses {
public:
  /// An instruction of an engine, not of control.
  void add(const npu::InstructionTime& time);
  /// The cycles from where the last ones ended to `to` are this layer's; none where they are.
  void own(uint32_t layer, int64_t to);
  /// Those from `from` on that were owned since the last call are this layer's instead.
  void takeOver(uint32_t layer, int64_t from);

  /// Cycles by layer and cause, of a program that ended at `end`, all of whose cycles are owned.
  /// All of the array's are kFill.
  std::vector<CauseCycles> byLayer(size_t layers, int64_t end) const;

private:
  struct Step {
    uint32_t sequence = 0;
    int32_t before = -1;  ///< the one of the same engine of the same core, in steps_
    int64_t awaited = -1; ///< sequence of the post of another core; -1: none
    int64_t start = 0, done = 0;
    int64_t bank = 0, dram = 0; ///< within
    bool isScattered = false;   ///< kScatter in the place of kLoad and kStore
    uint8_t engine = 0, afterCount = 0;
    std::array<uint32_t, npu::kMostAfter> after{};
  };
  struct Span {
    int64_t from = 0, to = 0;
    uint32_t what = 0; ///< a layer, or a cause
  };
  void pushOwned(const Span& span);
  int32_t latestBefore(const Step& step) const;
  int32_t placeOf(uint32_t sequence) const;
  std::vector<Span> path(int64_t end) const;

  std::vector<Step> steps_;                               ///< by sequence
  std::map<std::pair<uint8_t, uint8_t>, int32_t> lastOf_; ///< by core and engine
  std::vector<Span> owned_;                               ///< one after the other, without gaps
  size_t sinceTaken_ = 0; ///< the first of owned_ that takeOver may change
};

} // namespace npu_sim
