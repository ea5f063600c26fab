#pragma once

#include <map>
#include <string>

#include "core/runtime/control_flow/value.h"

/// What a model does between its static Graphs: steps over slots. Only a run knows which branch is
/// taken, how often a loop turns, how long a sequence is.
namespace candela::runtime::control_flow {

using SlotId = uint32_t;
inline constexpr SlotId kNoSlot = UINT32_MAX;

/// Where a value lies during a run. A body's slots are written anew in every turn; what a body
/// reads of the blocks around it are the same slots.
struct Slot {
  enum class Kind : uint8_t {
    typed,  ///< a tensor of this elem and these dims
    tensor, ///< a tensor of a shape that only a run knows; elem may be none
    sequence,
    optional, ///< any of these, or nothing
  };
  std::string name; ///< unique in the flow
  Kind kind = Kind::tensor;
  Elem elem = Elem::none;
  Shape dims;          ///< of a model's input of unknown shape: -1 where a dim is open
  bool ranked = false; ///< whether such an input has dims at all

  bool isTyped() const { return kind == Kind::typed; }
  /// Whether a tensor may stand in it.
  bool accepts(const Tensor& tensor) const;
  std::string typeText() const;
};

enum class StepKind : uint8_t {
  unit,   ///< runs unit `unit` on the inputs
  branch, ///< inputs: the condition; blocks: then, else. The outputs are the taken block's results
  /// inputs: trip count and condition (either may be kNoSlot), initial values. blocks: the body,
  /// whose params are the turn's number, the condition and the carried values, whose results are
  /// the next condition, the next carried values and an element for every scan output. outputs: the
  /// last carried values, then scan outputs, stacked along dim 0.
  loop,
  construct, ///< a sequence of the inputs
  insert,    ///< inputs: sequence, tensor, position (may be kNoSlot: the end)
  erase,     ///< inputs: sequence, position (may be kNoSlot: the last)
  at,        ///< inputs: sequence, position
  length,    ///< of a sequence, i64
  has,       ///< whether the input is not nothing, bool
  get,       ///< the input, which must not be nothing
  stack,     ///< tensors of one type along a new dim 0
  fail,      ///< ends the run with `why`: what stands where a branch cannot be what the model says
};
const char* stepName(StepKind kind);

struct Step;

struct Block {
  std::vector<SlotId> params;  ///< of a loop's body
  std::vector<SlotId> results; ///< kNoSlot: nothing
  std::vector<Step> steps;
};

struct Step {
  StepKind kind = StepKind::unit;
  std::string node; ///< the model's node, for messages
  uint32_t unit = 0;
  std::string why;          ///< of fail, with the nodes' names
  bool unsupported = false; ///< of fail: the model is right
  std::vector<SlotId> inputs, outputs;
  std::vector<Block> blocks;
};

struct Constant {
  SlotId slot = kNoSlot;
  Tensor tensor;
};

struct Flow {
  std::vector<Slot> slots;
  std::vector<Constant> constants; ///< in their slots from the start
  std::vector<SlotId> inputs, outputs;
  std::vector<std::string> outputNames;
  Block main;

  /// A slot whose name is made unique.
  SlotId addSlot(Slot slot);
  /// One line per step, bodies indented, as `candela inspect` shows it.
  std::string text() const;

private:
  std::map<std::string, int, std::less<>> names_; ///< how often each was asked for
};

struct Ports {
  size_t inputs = 0, outputs = 0;
};
/// What must hold of a flow that comes from a file: slots that are there, as many inputs, outputs
/// and blocks as the kinds of steps have, units with those ports.
Status verify(const Flow& flow, std::span<const Ports> units);

/// A part of the model that was compiled, or is compiled once its shapes are known. Any thread.
class Unit {
public:
  virtual ~Unit() = default;
  virtual Result<std::vector<Value>> run(std::span<const Value> inputs) = 0;
};

/// More turns than this the LOOP steps of one run do not make: each is work of microseconds at
/// least, so that it would take minutes. Nor do the scan outputs of one step take more bytes.
inline constexpr int64_t kMostTurns = int64_t(1) << 22;
inline constexpr uint64_t kMostScanned = uint64_t(1) << 33;

/// Runs the steps in order on inputs of the slots' kinds. Failures name the node: what a unit says;
/// a position outside its sequence; a condition that is no scalar of bool; a loop that would not
/// end within kMostTurns; scan elements of different types. Any thread, as far as the units allow.
Result<std::vector<Value>> run(const Flow& flow, std::span<const std::unique_ptr<Unit>> units,
                               std::span<const Value> inputs);

} // namespace candela::runtime::control_flow
