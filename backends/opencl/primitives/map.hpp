// What map.cl is called with: views, y first, and steps over them.
#pragma once

#include "../opencl.hpp"

constexpr int kPieces = 16; // views that the kernel reads
// Where a step's operand comes from: an earlier step, or one of these.
constexpr int64_t kNoSource = -1, kFromView = 64, kFromBits = 128;

/// One step, as map.cl takes it.
struct MapStep {
  int64_t kind, fn, from, to, saturate;
  std::array<int64_t, 6> sources{kNoSource, kNoSource, kNoSource, kNoSource, kNoSource, kNoSource};
  int64_t bits = 0;
};

/// The last `tables` views are looked up, not walked along. rescale: left shifts and limits of
/// RESCALE.
Launch mapOf(const std::vector<cdl::Operand>& views, const std::vector<MapStep>& steps,
             size_t tables = 0, const std::array<int64_t, 4>& rescale = {});
