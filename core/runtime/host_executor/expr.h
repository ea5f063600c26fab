// Expressions: the value of ELEMENTWISE and the epilogue of MATMUL and REDUCE, evaluated block by
// block.
#pragma once

#include "core/runtime/host_executor/block.h"
#include "core/runtime/host_executor/call.h"

namespace candela::runtime::host_executor {

/// An expression bound to its instruction. Not for several threads at once: it holds the values of
/// its steps.
class Expr {
public:
  /// Binds steps first .. end of the instruction's expr. accElem: the type of the accumulator, 0
  /// when there is none.
  cdl::Status bind(const Call& call, uint8_t accElem, uint32_t first, uint32_t end);
  /// All behind the prologue.
  cdl::Status bind(const Call& call, uint8_t accElem);

  /// The views that the steps read, each once; evaluate takes their blocks in this order.
  const Scratch<Operand>& views() const { return views_; }

  /// n <= kBlock elements: `views` and `acc` are dense blocks, `out` is one.
  void evaluate(const void* const* views, const void* acc, void* out, int64_t n);

private:
  struct Source {
    uint8_t from;   // CDL_FROM_*
    uint32_t index; // of the view or the step; of the constant's block
  };
  struct Step {
    BlockOp op;
    int operands;
    Source in[4];
    Scratch<uint64_t> value;
  };
  /// The block of a step's operand.
  const void* blockOf(const Source& source, const void* const* views, const void* acc) const;
  Source bindOperand(const Call& call, const cdl_step_t& step, const cdl_operand_t& operand);

  uint32_t first_ = 0; // step of the instruction's expr
  Scratch<Operand> views_;
  Scratch<uint16_t> viewInputs_; // input index of views_[k]
  Scratch<Step> steps_;
  Scratch<Scratch<uint64_t>> constants_;
};

/// Takes rows of accumulators from MATMUL and REDUCE: through the epilogue, if there is one, into
/// the result.
class Finisher {
public:
  /// accElem: the element type of the rows.
  cdl::Status bind(const Call& call, uint8_t accElem);

  /// n results of the dense block `acc` (of accElem), n <= kBlock, along the result's last dim from
  /// `first` on, at `index` in the outer dims.
  void finish(const int64_t* index, int64_t first, const void* acc, int64_t n);

private:
  Operand result_;
  bool hasExpr_ = false;
  Expr expr_;
  Scratch<BlockReader> readers_;
  Scratch<const void*> pointers_;
  Scratch<uint64_t> scratch_;
};

/// The type of a product's sums: the result's, or what the epilogue reads; 0 where it reads none.
uint8_t accumulatorElem(const Call& call);

} // namespace candela::runtime::host_executor
