// Groups of the Program: calls of one instruction after the other become calls of band after band,
// so that the next layer reads what is still in the cache. How far a call has to get in a band
// follows from those behind it: the last one stops at the border of the band, each one before it
// behind the last row that a window of its readers touches. Rows that two bands need are computed
// once, with the first of them.
#pragma once

#include "lowering.hpp"

namespace cpu {

/// Cuts the calls of each group in bands whose units follow rows, so that a value is read while it
/// is near; the kernels and what each unit computes stay the same. Where some calls of a group do
/// not follow rows, only those between them run in bands; where its buffers share memory, none do.
void runInBands(Lowering& lowering);

} // namespace cpu
