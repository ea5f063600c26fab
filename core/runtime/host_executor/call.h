// One instruction on its way through soft: its operands, attributes and errors.
#pragma once

#include "candela/backend/status.hpp"
#include "core/runtime/host_executor/operand.h"
#include "core/runtime/host_executor/soft.h"

namespace candela::runtime::host_executor {

/// What every kind's function gets. The check of images saw to the numbers of operands, their
/// shapes, attributes and functions; what is left to refuse are types and values.
struct Call {
  const cdl_image_t* image;
  const cdl_instr_t* instr;
  const int64_t* loopValues; // null: all 0
  void* const* buffers;
  const Workers* workers; // null: none

  /// Inputs that are operands of the kind; those after them are read by the epilogue alone.
  uint32_t operands() const { return cdl_operand_count(image, instr); }
  /// Operand i of the kind, or an absent one when the instruction has fewer.
  Operand input(uint32_t i) const { return i < operands() ? view(i) : Operand{}; }
  /// Input i, an operand or one of the epilogue's views.
  Operand view(uint32_t i) const { return resolve(*cdl_get_input(image, instr, i)); }
  Operand output(uint32_t i = 0) const { return resolve(*cdl_get_output(image, instr, i)); }
  int64_t attr(uint16_t id, int64_t otherwise) const {
    return *cdl_attr_values(image, instr, id, &otherwise);
  }

  /// "<kind> '<node>': <text>".
  cdl::Status fail(cdl_code_t code, const std::string& text) const;
  /// The error for element types that no row holds.
  cdl::Status failElems() const;

private:
  Operand resolve(const cdl_view_t& view) const;
};

/// The kinds. All operand classes; see docs/reference/primitives.md for their meaning. runBlockOp:
/// CONVERT BINARY COMPARE SELECT UNARY.
using RunKind = cdl::Status(const Call& call);
RunKind runCopy, runFill, runBlockOp, runElementwise, runGather, runScatter, runReduce,
    runArgReduce, runMatmul, runRescale, runTable, runSort, runSoftmax, runNorm, runScaledMatmul;

/// Whether MATMUL runs these operands with sums of type `acc`.
bool hasProduct(uint8_t a, uint8_t b, uint8_t acc);

} // namespace candela::runtime::host_executor
