// Groups in bands: chains of convolutions give the same bytes as without groups, on any number of
// threads, and what the reference computes.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>

#include "core/compiler/driver/pipeline.h"
#include "core/compiler/graph/passes/passes.h"
#include "tests/backends/cpu/network_parts.h"

namespace candela::testing {
namespace {

/// Convolutions one behind the other, inverted residuals among them, in shapes where tiles and
/// bands have rests.
class ChainMaker : NetworkParts {
public:
  ChainMaker(uint64_t seed, bool quantized) : NetworkParts(seed, quantized) {}

  RandomGraph make() {
    const int64_t batch = pick(5) ? 1 : 2, ins = channels(), height = 9 + pick(24),
                  width = 9 + pick(24);
    x_ = image({batch, ins, height, width});
    x_ = boundary(x_);
    const int64_t steps = 2 + pick(3);
    for (int64_t i = 0; i < steps; ++i) pick(3) ? invertedResidual() : window();
    out_.graph.addOutput(x_, "y");
    return std::move(out_);
  }

private:
  int64_t channels() { return oneOf({8, 16, 16, 24, 32, 48}); }
  Value* boundary(Value* x) {
    return quantized_ ? throughBytes(x, Elem::u8_, static_cast<uint8_t>(pick(2) * 77)) : x;
  }
  Value* weights(const Shape& dims, double size) {
    return quantized_ ? byteWeights(dims, size, Elem::i8_) : floatWeights(dims, size);
  }

  struct Window {
    int64_t kernel = 1, stride = 1, dilation = 1, begin = 0, end = 0;
  };
  Window someWindow() {
    Window w;
    const int64_t least = std::min(x_->type.dim(2), x_->type.dim(3));
    w.kernel = least > 2 ? 3 : 1;
    w.dilation = least > 8 && pick(5) == 0 ? 2 : 1;
    w.stride = 1 + (least > 6 ? pick(2) : 0);
    const int64_t most = (w.kernel - 1) * w.dilation;
    w.begin = pick(most + 1), w.end = pick(most + 1);
    if (pick(2)) w.begin = w.end = most / 2;
    return w;
  }
  Value* conv(Value* x, int64_t outs, int64_t group, const Window& w) {
    const int64_t ins = x->type.dim(1) / group;
    const double size = 1.5 / std::sqrt(static_cast<double>(ins * w.kernel * w.kernel));
    return op(Kind::Conv, {x, weights({outs, ins, w.kernel, w.kernel}, size)},
              {{"group", group},
               {"strides", Shape{w.stride, w.stride}},
               {"dilations", Shape{w.dilation, w.dilation}},
               {"pads", Shape{w.begin, w.begin, w.end, w.end}}});
  }
  Value* activated(Value* x) { return boundary(pick(4) ? op(Kind::Relu, {x}) : x); }

  void window() {
    const Window w = someWindow();
    if (pick(4) == 0 && !quantized_)
      x_ = op(Kind::MaxPool, {x_},
              {{"kernel_shape", Shape{w.kernel, w.kernel}},
               {"strides", Shape{w.stride, w.stride}},
               {"pads", Shape{w.kernel / 2, w.kernel / 2, w.kernel / 2, w.kernel / 2}}});
    else
      x_ = activated(conv(x_, channels(), 1, w));
  }

  void invertedResidual() {
    Value* before = x_;
    const int64_t ins = x_->type.dim(1), wide = ins * (2 + pick(3));
    Value* y = activated(conv(x_, wide, 1, {}));
    const Window w = someWindow();
    y = activated(conv(y, wide, wide, w));
    y = boundary(conv(y, ins, 1, {}));
    x_ = y->type.shape() == before->type.shape() ? boundary(op(Kind::Add, {y, before})) : y;
  }

  Value* x_ = nullptr;
};

class CpuBands : public ::testing::Test {
protected:
  using Devices = std::vector<std::shared_ptr<runtime::plugin::Device>>;

  void SetUp() override {
    const auto plugin = runtime::plugin::findPlugin(PLUGIN_cpu);
    ASSERT_TRUE(plugin.isOk()) << plugin.status().message();
    for (const char* isa : {"x86-64-v3", "avxvnni", "avx512", "avx512vnni", "avx512bf16", "amx"})
      if ((*plugin)->open(0, {{"isa", isa}}).isOk()) tiers_.emplace_back(isa);
    if (tiers_.empty()) GTEST_SKIP() << "this processor lacks AVX2, FMA, F16C or BMI2";
  }

  Devices open(const std::string& isa, const char* threads, const char* bandBytes) const {
    return {*(*runtime::plugin::findPlugin(PLUGIN_cpu))
                 ->open(0, {{"isa", isa}, {"threads", threads}, {"band_bytes", bandBytes}})};
  }

  std::vector<Tensor> run(RandomGraph random, const Devices& devices, bool groups) {
    driver::CompileOptions options;
    options.groups = groups;
    const auto session = driver::compile(std::move(random.graph), "chain", devices, options);
    if (!session) ADD_FAILURE() << session.status().message();
    if (!session) return {};
    for (const runtime::bundle::BundlePartition& part : (*session)->bundle().partitions) {
      const auto* image = reinterpret_cast<const cdl_image_t*>(part.image.data());
      for (uint32_t g = 1; g < image->groups.count; ++g) {
        EXPECT_TRUE(groups);
        bands_ += cdl_get_group(image, g)->bands;
        inBands_ += cdl_get_group(image, g)->bands > 1;
      }
    }
    auto got = (*session)->run(random.inputs);
    if (!got) ADD_FAILURE() << got.status().message();
    return got ? std::move(*got) : std::vector<Tensor>{};
  }

  void judge(bool quantized, int chains, double tolerance) {
    for (int seed = 1; seed <= chains && !HasFailure(); ++seed) {
      const std::string& isa = tiers_[static_cast<size_t>(seed) % tiers_.size()];
      SCOPED_TRACE(fmt::format("seed {} on {}", seed, isa));
      const auto make = [&] {
        RandomGraph random = ChainMaker(static_cast<uint64_t>(seed), quantized).make();
        if (quantized && !graph::passes::optimize(random.graph)) ADD_FAILURE() << "optimize";
        return random;
      };
      // So little that small images need bands, and of every kind of count.
      static constexpr const char* kBandBytes[][4] = {{"4096", "12000", "40000", "100000"},
                                                      {"2048", "4096", "6000", "12000"}};
      const char* bandBytes = kBandBytes[quantized][seed % 4];
      const RandomGraph random = make();
      const auto expected = reference::run(random.graph, random.inputs);
      ASSERT_TRUE(expected.isOk()) << expected.status().message();
      const std::vector<Tensor> whole = run(make(), open(isa, "1", bandBytes), false);
      expectSame(*expected, whole, tolerance);
      for (const char* threads : {"1", "3"}) {
        const std::vector<Tensor> banded = run(make(), open(isa, threads, bandBytes), true);
        ASSERT_EQ(banded.size(), whole.size());
        for (size_t i = 0; i < whole.size(); ++i)
          ASSERT_EQ(
              std::memcmp(banded[i].bytes.data(), whole[i].bytes.data(), whole[i].bytes.size()), 0)
              << "output " << i << " on " << threads << " threads\n"
              << textOf(random.graph);
      }
    }
    fmt::print("seeds 1 to {}: {} groups in bands, {} bands\n", chains, inBands_, bands_);
    EXPECT_GE(inBands_, static_cast<uint64_t>(chains) / 3);
  }

  static int chains() {
    const char* size = std::getenv("CANDELA_TEST_SIZE");
    return !size || std::string_view(size) == "quick" ? 3 : 30;
  }

  std::vector<std::string> tiers_;
  uint64_t inBands_ = 0, bands_ = 0;
};

TEST_F(CpuBands, FloatChains) { judge(false, chains(), 1e-4); }

/// The integers of the raised graph, bit by bit.
TEST_F(CpuBands, QuantizedChains) { judge(true, chains(), 0); }

} // namespace
} // namespace candela::testing
