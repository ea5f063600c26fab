#pragma once

#include "simulator/config/configuration.h"
#include "simulator/isa/codec.h"
#include "simulator/timing/constants.h"

namespace candela::npu {

/// Closed forms of the cycles of one compute instruction: from the cycle in which its engine begins
/// it, tokens taken, to the cycle behind its last write. Every access to the scratchpad is granted
/// at once; no state, no data. The hardware blocks meet them to the cycle; sides of the array that
/// no hardware has, which are no powers of two, take the same forms with the tag assumed.
///
/// With R x C = array.rows x array.columns, W = scratchpad.bank_width, words(n) = ceil(n / W), P =
/// out_h * out_w, of conv and dwconv * planes. Ports of the array are as wide as it is, those of
/// requant's values as its lanes; all others move W contiguous bytes in a cycle, at any address.
/// Values of i16 take no more cycles in the engines matrix and requant, but for a table.
///
/// ldw      load + ldw.pipeline, load = R, transposed C: rows of weights come one in a cycle,
///          transposed columns
/// mm       P + (R + C - 1) + matrix.pipeline
/// conv     passes by column block, then tap or group of packed taps, then block of R input
///          channels; flat: then block of R terms. A pass streams P rows, each in s cycles: the
///          contiguous stretches that a row is gathered from (one; packed and flat: a new one with
///          each row of the kernel, and with each tap where dilation_w > 1 or pixel_stride is not
///          cin * bytes). Weights of the next pass load meanwhile, once the first row has taken
///          over those of this one: load + sum over all passes but the last of max(P s, load + s -
///          1) + P s of the last + (R + C - 1) + matrix.pipeline
/// dwconv   column blocks * P * taps + dwconv.pipeline: a tap of the channels of a block in a
///          cycle. Positions outside of the tile take their cycle, as in conv
///
/// With array.dataflow = output_stationary, which has no hardware, ldw and mm are not there, and
/// conv     folds by column block, then block of up to R positions; taps and flat say nothing. A
///          fold streams its K = taps * cin terms: the array takes one of each position and each
///          column in a cycle; the port of activations brings up to R terms of a position that
///          follow one another, in g cycles all of them, that of weights a row of the block
///          (transposed: up to R terms of a column). The sums of the fold before leave meanwhile, a
///          row in a cycle: sum over all folds of max(K, positions g, K or columns ceil(K / R),
///          positions of the fold before) + positions of the last + (R + C - 1) + output.pipeline.
///          One fold of R positions with ports that wait for nothing takes K + 2 R + C - 1, which
///          is what SCALE-Sim has but for the cycle in which the first term enters
/// dwconv   the same cycles: a port brings the channels of one position in a cycle, so that one row
///          works; its sums meet the accumulators once, and not with each tap
///
/// requant  [table: words(256), i16 words(1026)] + for each column block, and in it for each group
///          of n <= requant.lanes channels, words(8 n) of their records + P pool_h pool_w
///          positions, + requant.pipeline, with a table of i16 + requant.interpolation
/// accload  for each column block P words(n * 4), wide n * 8, + move.pipeline; accstore the same
/// vbinary, vunary, vselect
///          [table as above] + len1 len2 max(ceil(run / vector.lanes), words of the run of a, b and
///          the result), a scalar b is one element, + vector.pipeline
/// vreduce  the same of a alone, + vector.pipeline + log2(min(vector.lanes, W)): no cycle brings
///          more elements
/// vpool    sum over the outputs of positions inside * max(ceil(channels / vector.lanes), words of
///          the channels of the tile, words of those of an output), + vector.pipeline
/// nop      1
struct ComputeCost {
  int64_t stream = 0; ///< cycles in which a port is busy: what conflicts in the scratchpad stretch
  int64_t fixed = 0;  ///< filling and draining
  Tag streamTag = Tag::kAssumed, fixedTag = Tag::kAssumed;
  int64_t words = 0; ///< accesses to the scratchpad, all ports together
  /// words from one access of the widest stream to the next: banks it visits follow
  int64_t step = 1;

  int64_t cycles() const { return stream + fixed; }
};

/// The cost of an instruction of the engines matrix, requant and vector, and of nop.
ComputeCost computeCost(const Configuration& configuration, const Operation& operation);

} // namespace candela::npu
