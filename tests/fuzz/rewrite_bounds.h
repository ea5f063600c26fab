#pragma once

#include "conformance/judge/bounds.h"

/// What a graph may give after passes have rewritten it: the running error analysis of
/// conformance/judge, node by node, and beside it what a rewrite is allowed and a backend is not.
///
/// - Numbers that leave their type on the way are not lost for ever: where finite operands give an
///   infinity, the result may also be any number from the largest one of the type on, as a form
///   that does not leave the range would have it.
///   The other way round nothing is allowed: an infinity or NaN where the graph has a number is an
///   error.
/// - A weight of a convolution or product in front of a channel's factor may be rounded once more,
///   relative to itself: fold-batch-norm puts the factor into the weights. Digits that a weight
///   loses below the normal numbers are an error.
/// - Where the factor takes the terms of the product beyond the type, though not their sum, nothing
///   is known: a sum of infinities of both signs.
/// - A batch norm may become x * s + t where the mean is not much larger than the spread: 8 times
///   what stands alone or is a half behind a product, 1024 times what is wider behind one.
/// - A bias of a product may be rounded to whole steps of the sums where that moves what quantize
///   sees by 1/128 of its step at most.
/// - What quantize rounds either way, as its operand's interval holds the middle between two steps,
///   may be either step.
namespace candela::conformance {

/// Intervals of the outputs; also of graphs with loops, run after run.
Result<std::vector<judge::Interval>> analyzeRewrites(const graph::Graph& graph,
                                                     std::span<const judge::Interval> inputs);

/// Like outside(), where an integer may have several values.
std::string outsideOfRewrites(const judge::Interval& interval, const Tensor& got);

} // namespace candela::conformance
