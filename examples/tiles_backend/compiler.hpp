// The compiler: the Program image in, a command stream out, instruction by instruction.
#pragma once

#include "stream.hpp"

#include <map>

namespace tiles {

/// What ends a compilation: this instruction cannot be done.
struct Refusal {
  uint32_t instr;
  cdl_reason_t reason;
  std::string text;
};

class Compiler {
public:
  Compiler(const cdl_image_t* image, const void* const* constants, uint64_t localBytes)
      : image_(image), constants_(constants), localBytes_(localBytes) {}

  /// Throws a Refusal.
  Stream compile();

  // ---- For the files in commands/.
  const cdl_image_t* image() const { return image_; }
  uint32_t index() const { return index_; }
  const cdl_instr_t& instr() const { return *cdl_get_instr(image_, index_); }
  const cdl_view_t& input(uint32_t i) const { return *cdl_get_input(image_, &instr(), i); }
  const cdl_view_t& output() const { return *cdl_get_output(image_, &instr(), 0); }
  int64_t attr(uint16_t id, int64_t missing, int i = 0) const {
    const cdl_attr_t* a = cdl_find_attr(image_, &instr(), id);
    return a && i < a->count ? a->values[i] : missing;
  }
  [[noreturn]] void refuse(cdl_reason_t reason, const std::string& text) const;

  /// The bytes of a constant, splats written out; null for a view of another buffer.
  const char* constant(const cdl_view_t& view);
  /// Room for a constant of the executable's own; its offset in bytes.
  int64_t reserve(int64_t bytes);
  char* own(int64_t offset) { return stream_.own.data() + offset; }
  /// A view by other dims: dim d is dim order[d] of the view, -1 where it has none.
  Tensor walk(const cdl_view_t& view, const std::vector<int>& order) const;
  /// A constant comes into the executable, as it is and once.
  void place(const cdl_view_t& view, Tensor& tensor);

  /// Begins the job of this instruction over the dims of its result in this order (-1: a dim of 1).
  void begin(const std::vector<int>& order, int64_t width, int64_t span);
  /// The same in any order: what treats all elements alike.
  void beginAll();
  /// Adds a command; the registers in `spent` are free for its result, which this returns.
  uint8_t emit(Command command, const std::vector<uint8_t>& spent = {});
  uint8_t load(const cdl_view_t& view);
  uint8_t splat(uint64_t bits, uint8_t elem);
  void store(const cdl_view_t& view, uint8_t reg);
  uint32_t add(const Product& product) {
    return stream_.products.push_back(product), uint32_t(stream_.products.size() - 1);
  }
  /// The expression of the instruction, after its result came into `acc`; the register of its last
  /// step.
  uint8_t expression(uint8_t acc);
  void release(uint8_t reg) { taken_[reg] = false; }

private:
  uint32_t operand(const cdl_view_t& view);

  const cdl_image_t* image_;
  const void* const* constants_;
  uint64_t localBytes_;
  Stream stream_;
  uint32_t index_ = 0;
  // Of the job that was begun.
  std::vector<int> order_;
  std::vector<bool> taken_;          // by register
  std::map<uint32_t, int64_t> held_; // where buffers of constants lie in stream_.own
  std::vector<char> splat_;          // the last one that was written out
};

// Each turns the Compiler's instruction into a job.
void compileProduct(Compiler& compiler);    // MATMUL, CONV2D
void compileArithmetic(Compiler& compiler); // ELEMENTWISE and what its steps are
void compileMove(Compiler& compiler);       // COPY, FILL
void compileRescale(Compiler& compiler);    // RESCALE
void compileCustom(Compiler& compiler);     // CUSTOM

/// The command of a step, whose operands are in registers.
Command step(Compiler& c, uint16_t kind, uint16_t fn, uint8_t from, uint8_t elem, bool saturate,
             const std::vector<uint8_t>& in);

// The op of our own domain: its function in rows and instructions, what becomes of a node, and what
// it means.
constexpr uint16_t kSoftThreshold = 1; // never another op's: bundles hold it
cdl::Status claimSoftThreshold(const cdl::CustomNode& node, cdl::CustomClaim& claim);
std::string softThresholdAsGraph(const cdl::CustomNode& node);

} // namespace tiles
