#pragma once

#include "simulator/config/configuration.h"
#include "simulator/isa/codec.h"
#include "simulator/timing/constants.h"

namespace candela::npu {

/// Closed forms of the cycles of one compute instruction: from the cycle in which its engine begins it, tokens taken,
/// to the cycle behind its last write. Every access to the scratchpad is granted at once; no state, no data. The
/// hardware blocks meet them to the cycle.
///
/// With R x C = array.rows x array.columns, W = scratchpad.bank_width: every port of an engine reads or writes W
/// contiguous bytes in a cycle, at any address. words(n) = ceil(n / W). A value of i16 has two bytes. P = out_h * out_w.
/// What a column block, a block of input channels or the last one holds is its valid part.
///
/// ldw      load + ldw.pipeline, load = R words(C), transposed C words(R)
/// mm       P words(R * bytes) + (R + C - 1) + matrix.pipeline
/// conv     passes by column block, then tap or group of packed taps, then block of R input channels. A pass streams P
///          rows, each in b = the sum of words(bytes of a stretch) over the contiguous stretches that a row is gathered
///          from (taps = 1: one; packed: a new one with each row of the kernel, and with each tap where
///          dilation_w * pixel_stride is not cin * bytes). Weights of the next pass load meanwhile:
///          load + sum over all passes but the last of max(P b, load) + P b of the last + (R + C - 1) + matrix.pipeline
/// dwconv   column blocks of n channels: the sum of P taps max(words(n * bytes), words(n)) + dwconv.pipeline. Positions
///          outside of the tile take their cycle, as in conv
/// requant  [table: words(256), i16 words(1026)] + for each column block of n channels words(8 n) of its records + for
///          each output max(positions of its pool window that lie inside, ceil(n / requant.lanes), words(n * bytes of the
///          result), residual: words(n * its bytes)) + requant.pipeline
/// accload  for each column block P words(n * 4), wide n * 8, + move.pipeline; accstore the same
/// vbinary, vunary, vselect
///          [table as above] + len1 len2 max(ceil(run / vector.lanes), words of the run of a, b and the result), a scalar
///          b is one element, + vector.pipeline
/// vreduce  the same of a alone, + vector.pipeline + log2(vector.lanes)
/// vpool    sum over the outputs of positions inside * max(ceil(channels / vector.lanes), words(channels * bytes)), but at
///          least words of the output for each, + vector.pipeline
/// nop      1
struct ComputeCost {
  int64_t stream = 0; ///< cycles in which a port is busy: what conflicts in the scratchpad stretch
  int64_t fixed = 0;  ///< filling and draining
  Tag streamTag = Tag::kAssumed, fixedTag = Tag::kAssumed;
  int64_t words = 0; ///< accesses to the scratchpad, all ports together
  int64_t step = 1;  ///< words from one access of the widest stream to the next: banks it visits follow

  int64_t cycles() const { return stream + fixed; }
};

/// An instruction with its descriptors decoded; index registers are added to addresses already.
struct Operation {
  Insn insn;
  DescriptorValues d{}, second{};
};
/// Errors: bits that are no descriptor of the kind that the operation has.
Result<Operation> operationOf(const Insn& insn, const DescriptorBits& d, const DescriptorBits& second);

/// Of an instruction of the engines matrix, requant and vector, and of nop.
ComputeCost computeCost(const Configuration& configuration, const Operation& operation);

} // namespace candela::npu
