#pragma once

#include <set>

#include "core/compiler/program/passes/tile/chain.h"

/// Instructions of another shape than what they read, and still tile by tile behind it: products by
/// pixel, pools, rows.
namespace candela::program::passes::tile {

/// Products of the innermost dims above 1, each once.
std::set<int64_t> cuts(const std::vector<int64_t>& dims);
/// The fewest dims that both are products of neighbours of; nullopt where there are none.
std::optional<std::vector<int64_t>> refined(const std::vector<int64_t>& a,
                                            const std::vector<int64_t>& b);
/// The same elements in the same order over dims that split those of the view; nullopt where they
/// do not.
std::optional<View> over(const View& view, const std::vector<int64_t>& dims);
bool walksAlike(const View& a, const View& b);

/// Puts the maps of an instruction that reads what the chain leaves, as its first operand alone,
/// over the chain's axes: a 1 x 1 convolution, POOL2D, REDUCE, SOFTMAX, NORM. Axes of which it
/// needs all are cut no more; a pool's places become the chain's axes. False: it cannot follow;
/// chain and link are of no use then.
bool follow(Chain& chain, Link& link);

} // namespace candela::program::passes::tile
