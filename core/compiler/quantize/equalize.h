#pragma once

#include "core/compiler/quantize/network.h"

/// Weights whose channels have like ranges, before anything is quantized.
namespace candela::quantize {

/// Two products whose channels between them were scaled.
struct EqualizedPair {
  std::string first, second;  ///< nodes
  double least = 1, most = 1; ///< factor of a channel of the first one's result
};
/// A Conv or Gemm whose channels stay as they are.
struct NotEqualized {
  std::string node, why;
};
struct Equalization {
  std::vector<EqualizedPair> pairs;
  std::vector<NotEqualized> leftOut;
  int sweeps = 0; ///< over all pairs, until nothing changed any more
};

/// Scales channels so that the weights that make a channel have the range of those that read it.
/// The function of the network stays the same but for the rounding of weights and biases to f32.
/// Deterministic: the same network gives the same bits. Needs the network's types.
///
/// A pair is a Conv or Gemm and the one that alone reads its result, itself or through nodes that
/// keep channels apart and take a positive factor of a channel to that factor of their result:
/// Relu, LeakyRelu, PRelu, pools, Identity, Dropout, Flatten to rows. A Clip has limits that would
/// have to differ by channel, so that chains through it are left out.
Equalization equalize(Network& network);

} // namespace candela::quantize
