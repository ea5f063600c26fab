//===- weights.h - Random weights with the same bits on every machine -----===//
//
// Integer arithmetic and correctly rounded float operations only: no function of the maths library
// whose last bit differs between machines, and no state, so that weight i of a stream is a function
// of (seed, stream, i).
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace candela::gen {

/// Adds the golden-ratio increment to `x` and applies the splitmix64 finaliser.
constexpr uint64_t splitmix64(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// A bell-shaped value of mean 0 and deviation 1, within ±6: the centred sum of twelve 16-bit
/// uniforms (Irwin-Hall), a multiple of 2^-17 and so exact in double.
constexpr double bell(uint64_t key, uint64_t index) {
  int64_t sum = 0;
  for (uint64_t part = 0; part < 3; ++part)
    for (uint64_t bits = splitmix64(key + 3 * index + part), lane = 0; lane < 4;
         ++lane, bits >>= 16)
      sum += static_cast<int64_t>(bits & 0xffff);
  return static_cast<double>(2 * sum - 12 * 65535) / 131072.0;
}

/// The first `count` weights of stream `stream`, with standard deviation `deviation`.
inline std::vector<float> bellWeights(uint64_t seed, uint64_t stream, size_t count,
                                      double deviation) {
  const uint64_t key = splitmix64(splitmix64(seed) + stream);
  std::vector<float> weights(count);
  for (size_t i = 0; i < count; ++i) weights[i] = static_cast<float>(bell(key, i) * deviation);
  return weights;
}

} // namespace candela::gen
