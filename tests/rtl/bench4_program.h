#pragma once

#include <gtest/gtest.h>

#include <algorithm>

#include "simulator/isa/assembler.h"
#include "tests/rtl/npu_comparison.h"

/// Programs that a test writes as text, on the NPU of configs/bench4.toml.
namespace candela::rtl {
using namespace npu;

inline constexpr int64_t kMostCycles = 100000; ///< of such a program, should the hardware never end

/// Before each of them.
inline constexpr const char* kRegions = R"(
.region constants constants
.bytes 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16
.region in input 64
.region out output 64
desc d0 transfer run=16
)";

/// The smallest NPU that tests build.
inline const Configuration& bench4() {
  static const Configuration configuration =
      *findConfiguration(CANDELA_SOURCE_DIR "/tests/rtl/configs/bench4.toml");
  return configuration;
}
inline const RtlLibrary& library() {
  static const std::shared_ptr<RtlLibrary> library = *rtlLibraryOf(bench4());
  return *library;
}

/// A program and its memory, for runs of the hardware and of the functional model.
struct Loaded {
  explicit Loaded(Binary program) : binary(std::move(program)), placement(placementOf(binary)) {
    for (const Region& region : binary.regions) regions.emplace_back(region.bytes);
    if (!regions.empty())
      std::copy(binary.constants.begin(), binary.constants.end(), regions[0].begin());
    const std::vector<std::span<std::byte>> spans(regions.begin(), regions.end());
    memory = memoryOf(binary, placement, spans);
  }
  Result<RtlResult> run(RtlTop& top, RtlRunOptions options = {}) {
    options.maxCycles = kMostCycles;
    return runRtl(top, bench4(), binary, placement, memory, options);
  }
  /// The fault of the functional model.
  Fault expected() {
    const std::unique_ptr<Device> device = makeFunctionalDevice(bench4());
    EXPECT_FALSE(device->load(binary));
    for (uint32_t i = 0; i < binary.regions.size(); ++i) {
      if (binary.regions[i].kind == RegionClass::kConstants) continue;
      EXPECT_FALSE(device->bind(i, regions[i]));
    }
    const Result<RunReport> report = device->run();
    EXPECT_TRUE(report && report->fault);
    return *report->fault;
  }

  Binary binary;
  Placement placement;
  std::vector<std::vector<std::byte>> regions;
  std::vector<std::byte> memory;
};

inline Binary assembled(const std::string& text) {
  Result<Binary> binary = assemble(kRegions + text, "faults", bench4());
  EXPECT_TRUE(binary) << binary.message();
  return *std::move(binary);
}

/// From one region through the scratchpad to another.
inline constexpr const char* kCopies = R"(
load region=1 far=0 dst=0 d=d0 signal=s0:1
store region=2 far=16 src=0 d=d0 wait=s0:1
halt
)";

} // namespace candela::rtl
