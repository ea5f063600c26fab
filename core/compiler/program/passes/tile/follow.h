#pragma once

#include <set>

#include "core/compiler/program/passes/tile/chain.h"

/// Instructions whose result has another shape than what they read, and that are still computed
/// tile by tile right behind it: products by pixel, pools, rows.
///
/// A view of each link is a function of the chain's axes (DimMap). An instruction follows where its
/// own maps can be composed with the map of what it reads: windows over windows are windows again.
/// Then a tile of the last result says what each link before it has to compute, and where windows
/// overlap, elements are computed again instead of being kept.
///
/// The composition of windows: M. Alwani, H. Chen, M. Ferdman, P. Milder, "Fused-Layer CNN
/// Accelerators", MICRO 2016.
namespace candela::program::passes::tile {

/// The products of the innermost dims, each once, without 1: where rows end in a flat index.
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
