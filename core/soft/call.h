// One instruction on its way through soft: its operands, attributes and errors.
#pragma once

#include "core/soft/operand.h"

namespace candela::soft {

/// What every kind's function gets. Without buffers an instruction is only checked: its function
/// returns OK or the error before it touches any memory.
struct Call {
  const cdl_image_t* image;
  const cdl_instr_t* instr;
  const int64_t* loopValues; // null: all 0
  void* const* buffers;      // null: check only
  cdl_error_t* error;

  bool checkOnly() const { return buffers == nullptr; }
  /// Inputs that are operands of the kind; those after them are read by the epilogue alone.
  uint32_t operands() const { return cdl_operand_count(image, instr); }
  /// Operand i of the kind, or an absent one when the instruction has fewer.
  Operand input(uint32_t i) const { return i < operands() ? view(i) : Operand{}; }
  /// Input i, an operand or one of the epilogue's views; absent when there is none.
  Operand view(uint32_t i) const;
  Operand output() const;
  int64_t attr(uint16_t id, int64_t otherwise) const;
  double floatAttr(uint16_t id, double otherwise) const;

  /// Writes "<kind> '<node>': <text>" and returns `code`.
  cdl_code_t fail(cdl_code_t code, const char* format, ...) const __attribute__((format(printf, 3, 4)));
  /// The error for element types that no row holds.
  cdl_code_t failElems() const;

private:
  Operand resolve(const cdl_view_t& view) const;
};

const char* kindName(uint16_t kind);

/// The kinds. All operand classes; see docs/reference/primitives.md for their meaning.
cdl_code_t runCopy(const Call& call);
cdl_code_t runFill(const Call& call);
cdl_code_t runBlockOp(const Call& call); // CONVERT BINARY COMPARE SELECT UNARY
cdl_code_t runElementwise(const Call& call);
cdl_code_t runGather(const Call& call);
cdl_code_t runScatter(const Call& call);
cdl_code_t runReduce(const Call& call);
cdl_code_t runArgReduce(const Call& call);
cdl_code_t runMatmul(const Call& call);
cdl_code_t runRescale(const Call& call);
cdl_code_t runTable(const Call& call);
cdl_code_t runSoftmax(const Call& call);
cdl_code_t runNorm(const Call& call);

} // namespace candela::soft
