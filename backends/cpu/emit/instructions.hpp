// Which instructions the backend takes, and the emitter of each kind.
#pragma once

#include "arithmetic.hpp"
#include "lowering.hpp"

namespace cpu {

/// Emits the calls of instruction `index`. False: this form is beyond the emitters, and nothing was
/// emitted; `why` says what.
bool emitInstruction(Lowering& lowering, uint32_t index, std::string& why);

// One emitter per family, each in a file of its own. They return false as emitInstruction does.
// elementwise kinds, COPY, FILL
bool emitMapped(Lowering& lowering, const cdl_instr_t& instr, std::string& why);
bool emitMatmul(Lowering& lowering, const cdl_instr_t& instr, std::string& why);
bool emitScaledMatmul(Lowering& lowering, const cdl_instr_t& instr, std::string& why);
bool emitConv(Lowering& lowering, const cdl_instr_t& instr, std::string& why);
bool emitPool(Lowering& lowering, const cdl_instr_t& instr, std::string& why);
// REDUCE, ARG_REDUCE
bool emitReduce(Lowering& lowering, const cdl_instr_t& instr, std::string& why);
bool emitAttention(Lowering& lowering, const cdl_instr_t& instr, std::string& why);
bool emitRowwise(Lowering& lowering, const cdl_instr_t& instr, std::string& why); // SOFTMAX, NORM
// GATHER, SCATTER, TABLE
bool emitIndexed(Lowering& lowering, const cdl_instr_t& instr, std::string& why);

/// The inputs of an instruction, then its results.
std::vector<Operand> operandsOf(const Lowering& lowering, const cdl_instr_t& instr);
/// The value i of an attribute, or `missing`.
int64_t attrOf(const Lowering& lowering, const cdl_instr_t& instr, uint16_t id, int64_t missing,
               uint32_t i = 0);
double realAttrOf(const Lowering& lowering, const cdl_instr_t& instr, uint16_t id, double missing);
/// The attributes of a RESCALE to `elem`, of at most 32 bits; left out, the limits are those of
/// `elem`.
RescaleForm rescaleForm(const Lowering& lowering, const cdl_instr_t& instr, uint8_t elem);
/// The fn and steps of an instruction's expr as text, for keys.
std::string exprKey(const Lowering& lowering, const cdl_expr_t& expr);

} // namespace cpu
