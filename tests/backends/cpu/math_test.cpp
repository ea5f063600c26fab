// The functions of f32 over all of its values, against libm in double: the errors that
// emit/arithmetic.hpp promises.
#include <gtest/gtest.h>

#include <bit>
#include <cfloat>
#include <cmath>
#include <cstdlib>

#include "tests/backends/cpu/machine.h"

namespace candela::test {
namespace {

struct Function {
  const char* name;
  uint16_t fn;
  double (*exact)(double);
  double mostUlps; ///< as emit/arithmetic.hpp says
};

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

const Function kFunctions[] = {
    {"exp", CDL_UNARY_EXP, [](double x) { return std::exp(x); }, 1},
    {"log", CDL_UNARY_LOG, [](double x) { return std::log(x); }, 0.8},
    {"tanh", CDL_UNARY_TANH, [](double x) { return std::tanh(x); }, 1.4},
    {"erf", CDL_UNARY_ERF, [](double x) { return std::erf(x); }, 5.1},
    {"sigmoid", CDL_UNARY_SIGMOID, sigmoid, 2.5},
};

constexpr int64_t kCount = (1 << 18) + 7; // whole vectors and a rest

/// y = fn(x) on kCount elements.
program::Program programOf(uint16_t fn) {
  program::Program p;
  for (const program::Role role : {program::Role::input, program::Role::output}) {
    program::Buffer buffer;
    buffer.name = role == program::Role::input ? "x" : "y";
    buffer.bytes = kCount * 4;
    buffer.role = role;
    p.addBuffer(std::move(buffer));
  }
  program::Instr instr;
  instr.kind = CDL_KIND_UNARY;
  instr.fn = fn;
  instr.inputs = {program::denseView(0, Elem::f32_, {kCount})};
  instr.outputs = {program::denseView(1, Elem::f32_, {kCount})};
  p.instrs.push_back(std::move(instr));
  return p;
}

/// Bit patterns: one at a place by chance of every 2^shift neighbours.
class Sweep {
public:
  explicit Sweep(int shift) : shift_(shift) {}
  bool isDone() const { return at_ >> 32; }
  uint32_t next() {
    const uint64_t pattern = at_ + (splitmix64(at_) & ((uint64_t(1) << shift_) - 1));
    at_ += uint64_t(1) << shift_;
    return static_cast<uint32_t>(pattern);
  }

private:
  int shift_;
  uint64_t at_ = 0;
};

/// In units in the last place of the exact value; infinite for a wrong NaN, infinity or sign of
/// zero.
double ulpsOf(double exact, float got) {
  if (std::isnan(exact)) return std::isnan(got) ? 0 : INFINITY;
  if (std::isinf(exact)) return got == exact ? 0 : INFINITY;
  if (std::isnan(got)) return INFINITY;
  if (exact == 0) return got == 0 && std::signbit(got) == std::signbit(exact) ? 0 : INFINITY;
  // where the next number would be
  const double value = std::isinf(got) ? std::copysign(0x1p128, got) : got;
  const int exponent = std::max(std::ilogb(exact), -126);
  if (exponent > 127)
    return std::isinf(got) && std::signbit(got) == std::signbit(exact) ? 0 : INFINITY;
  return std::abs(value - exact) / std::ldexp(1.0, exponent - 23);
}

class CpuMath : public testing::TestWithParam<Function> {};
INSTANTIATE_TEST_SUITE_P(Of, CpuMath, testing::ValuesIn(kFunctions),
                         [](const auto& info) { return info.param.name; });

TEST_P(CpuMath, KeepsItsPromiseOverAllOfF32) {
  if (tiers().empty()) GTEST_SKIP() << "this processor lacks AVX2, FMA, F16C or BMI2";
  const Function& function = GetParam();
  const char* size = std::getenv("CANDELA_TEST_SIZE");
  const bool isFull = size && std::string(size) == "full";
  std::vector<std::shared_ptr<runtime::plugin::Device>> devices;
  for (const std::string& isa : tiers()) devices.push_back(openCpu(isa, 1));
  const program::Program program = programOf(function.fn);
  std::vector<std::unique_ptr<Compiled>> compiled;
  std::vector<std::unique_ptr<Ground>> grounds;
  for (const auto& device : devices) {
    compiled.push_back(std::make_unique<Compiled>(device, program));
    ASSERT_EQ(compiled.back()->code(), CDL_OK) << compiled.back()->text();
    grounds.push_back(std::make_unique<Ground>(device));
  }

  struct Worst {
    double ulps = 0;
    float at = 0, got = 0;
  };
  std::vector<Worst> worst(devices.size());
  std::vector<uint32_t> patterns = {0,          0x80000000, 1,          0x80000001, 0x007fffff,
                                    0x00800000, 0x3f800000, 0xbf800000, 0x7f7fffff, 0xff7fffff,
                                    0x7f800000, 0xff800000, 0x7fc00000, 0x42b17217, 0x42b17218,
                                    0xc2cff1b5, 0xc2aeac50, 0x41102cb4};
  uint64_t tried = 0;
  for (Sweep sweep(isFull ? 8 : 12); !sweep.isDone();) {
    while (static_cast<int64_t>(patterns.size()) < kCount)
      patterns.push_back(sweep.isDone() ? 0 : sweep.next());
    std::vector<char> x(static_cast<size_t>(kCount) * 4);
    std::memcpy(x.data(), patterns.data(), x.size());
    std::vector<std::vector<char>> y;
    for (size_t d = 0; d < devices.size(); ++d)
      y.push_back(compiled[d]->execute(*grounds[d], {x, {}}, true)[1]);
    for (size_t i = 0; i < patterns.size(); ++i) {
      const float at = std::bit_cast<float>(patterns[i]);
      const double exact = function.exact(at);
      for (size_t d = 0; d < devices.size(); ++d) {
        float got;
        std::memcpy(&got, y[d].data() + i * 4, 4);
        const double ulps = ulpsOf(exact, got);
        if (ulps > worst[d].ulps) worst[d] = {ulps, at, got};
      }
    }
    tried += patterns.size();
    patterns.clear();
  }
  for (size_t d = 0; d < devices.size(); ++d) {
    fmt::print("{} on {}: {:.3f} ulp at {:.9g} ({} values)\n", function.name, tiers()[d],
               worst[d].ulps, worst[d].at, tried);
    RecordProperty(tiers()[d], fmt::format("{:.3f}", worst[d].ulps));
    EXPECT_LE(worst[d].ulps, function.mostUlps)
        << fmt::format("{}({:.9g}) = {:.9g}, is {:.9g} on {}", function.name, worst[d].at,
                       worst[d].got, function.exact(worst[d].at), tiers()[d]);
  }
}

} // namespace
} // namespace candela::test
