// Instructions of a Program as instructions of the NPU, one function for each kind.
#pragma once

#include "../codegen/program_image.hpp"
#include "../codegen/walk.hpp"

namespace npu_sim {

/// The bytes of the operand, one of the walk, that the box touches.
Access accessOf(const DeviceView& o, const Box& box, int operand, bool write);

/// What a node of the model costs, all of its tiles together: bytes by DMA, and products.
struct Costs {
  std::string node;
  uint64_t weights = 0, tables = 0, loaded = 0, stored = 0, macs = 0;
  uint64_t peak = 0;        ///< the most bytes alive in the scratchpad at one of its instructions
  uint64_t floatMacs = 0;   ///< those of `macs` that are of bf16
  uint64_t tiledTables = 0; ///< that the copies of the Program are of: `tables` has records instead
};

/// What the lowerings share while they go through one Program.
struct LoweringState {
  ProgramImage& image;
  Stream& stream;
  const npu::Configuration& configuration;
  /// The end of the scratchpad belongs to the compiler: records of requant and tables, one behind
  /// the other, the oldest ones overwritten.
  int64_t recordsAt = 0, recordsBytes = 0;
  struct Held {
    int64_t begin = 0, end = 0;   ///< addresses
    std::vector<std::byte> bytes; ///< empty: not known
  };
  struct Core {
    std::vector<Held> held{};
    int64_t next = 0; ///< where the next ones go, relative
    /// the load channel that comes next for what is scattered
    int scatterTurn = 0;
    bool isBeforeProducts = true; ///< nothing has been multiplied yet
    /// the half of the accumulators that comes next
    int accumulatorTurn = 0;
  };
  std::vector<Core> cores{1}; ///< at least the one at hand
  size_t core = 0;
  /// of the copy at hand, beside the bytes that it moves
  std::vector<Access> order{};
  /// by node, in the order in which they come first
  std::vector<Costs> costs{};
  std::map<std::string, size_t> costsOf{};

  /// What follows belongs to this node.
  void begin(uint32_t instr, const std::string& node);
  Costs& here() { return costs[at]; }
  /// What follows is this core's.
  void onCore(size_t number) {
    core = number;
    stream.onCore(number);
  }
  Core& own() { return cores[core]; }
  const Core& own() const { return cores[core]; }
  size_t at = 0;

  /// A record for each channel lies in the scratchpad from the address that it returns on; loads
  /// them unless they do.
  int64_t records(const std::vector<std::byte>& bytes);
  /// A place among the records for what is no constant, until they have been gone round once.
  int64_t room(int64_t bytes);
};

/// Lowers a COPY between DRAM and scratchpad, or within the scratchpad.
void lowerCopy(LoweringState& l, const DeviceView& from, const DeviceView& to);
/// Writes `bits` of one element into all of them.
void lowerFill(LoweringState& l, const DeviceView& to, uint64_t bits);

/// Lowers a CONV2D or MATMUL with what follows it: a residual or a pool, then a table, where the
/// device does all in one pass. Returns how many instructions that are, with the product.
uint32_t lowerProduct(LoweringState& l, const cdl::Op& op);

/// Lowers CONVERT, BINARY, COMPARE, RESCALE and TABLE: on the vector engine.
void lowerElementwise(LoweringState& l, const cdl::Op& op);
/// Lowers y = fn(a, b) over views of y's dims, all in the scratchpad.
void lowerBinary(LoweringState& l, npu::BinaryFn fn, const DeviceView& a, const DeviceView& b,
                 const DeviceView& y);
/// The device's function of a CDL_BINARY_*; throws Refusal for those that it has not.
npu::BinaryFn binaryOf(uint16_t fn);
/// The windows of a pool: height and width of each number.
struct PoolWindow {
  std::array<int64_t, 2> kernel{1, 1}, stride{1, 1}, pad{0, 0};
};
void lowerReduce(LoweringState& l, const cdl::Op& op);
void lowerPool(LoweringState& l, const cdl::Op& op);

/// The numbers of a RESCALE where they are the same for all elements.
struct Scale {
  int32_t aMult = 0, bMult = 0, aShift = 0, bShift = 0, shift = 0, zero = 0, low = 0, high = 0;
};
/// Throws Refusal for multipliers, shifts and zero points that the device does not have for
/// operands and a result of these types.
void checkScale(const Scale& scale, uint8_t a, uint8_t b, uint8_t y);
npu::DescriptorValues rescaleValues(const Scale& scale, npu::Type out);

} // namespace npu_sim
