#pragma once

#include "conformance/tiers/ops/op_case.h"

/// The families of the tier, by what the instructions have in common. Not for other folders.
namespace candela::conformance::tiers::ops {

std::vector<OpFamily> windowFamilies();     ///< CONV2D, POOL2D
std::vector<OpFamily> lineFamilies();       ///< SOFTMAX, NORM, ATTENTION, ARG_REDUCE, SORT
std::vector<OpFamily> expressionFamilies(); ///< ELEMENTWISE, and what has an epilogue
std::vector<OpFamily> prologueFamilies();   ///< REDUCE of what it computes itself
std::vector<OpFamily> productFamilies();    ///< SCALED_MATMUL

/// "u8_i8" -> {u8, i8}; words that name no type are left out.
std::vector<Elem> elemsIn(std::string_view row);
/// Up to the first "_": "max" of "max_f32".
std::string wordOf(std::string_view row);
/// "calm", ... as Data has them; "equal": one number; "offset": far from zero, close to each other;
/// "ties": few of them; "masked": calm ones among which -inf stands; "small": eighths of numbers up
/// to 1, of floats.
TrialBuilder::Fill fillOf(Elem elem, std::string_view data);
/// The results of one node.
Result<Values> write(graph::Graph& graph, graph::OpKind kind, Values operands,
                     graph::Attrs attrs = {}, int results = 1);
/// An expression step by step; operand 0 is the accumulator where there is one.
Result<Values> stepByStep(graph::Graph& graph, const std::string& text, const Values& operands);
/// The element type that it ends in.
Elem endOf(const std::string& text, const std::vector<Elem>& operands);
/// x in f32 where it is a 16-bit float, as decompositions compute.
Result<graph::Value*> widened(graph::Graph& graph, graph::Value* x);

} // namespace candela::conformance::tiers::ops
