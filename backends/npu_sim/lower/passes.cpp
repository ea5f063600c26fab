#include "passes.hpp"

#include <algorithm>
#include <tuple>

#include "simulator/timing/compute.h"

namespace npu_sim {

namespace {
constexpr int64_t kMostPacked = 64; ///< taps that a descriptor can say
}

void choosePasses(const npu::Configuration& configuration, npu::DescriptorValues& window) {
  namespace w = npu::descriptor::window;
  const int64_t taps = window[w::kKernelH] * window[w::kKernelW],
                most = std::clamp<int64_t>(std::min(configuration.rows() / window[w::kCin], taps),
                                           1, kMostPacked);
  npu::Operation conv{.insn = {}, .d = window};
  conv.insn.op = npu::Op::kConv;
  const auto price = [&](int64_t packed, bool isFlat) {
    conv.d[w::kTaps] = packed;
    conv.d[w::kFlat] = isFlat;
    const npu::ComputeCost cost = npu::computeCost(configuration, conv);
    return std::tuple(cost.cycles(), cost.words);
  };
  window[w::kTaps] = 1;
  window[w::kFlat] = 0;
  // All is one; and where sums stay in the array there are no passes.
  if (taps == 1 || configuration.isOutputStationary()) return;
  auto least = price(1, false);
  const auto consider = [&](int64_t packed, bool isFlat) {
    const auto cost = price(packed, isFlat);
    if (cost >= least) return;
    least = cost;
    window[w::kTaps] = packed;
    window[w::kFlat] = isFlat;
  };
  for (int64_t packed = 2; packed <= most; ++packed) consider(packed, false);
  consider(1, true);
}

} // namespace npu_sim
