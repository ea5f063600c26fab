// Softmax, LayerNorm and RMSNorm of bytes: the reference's formula against numerics.h to the bit,
// and both against the float functions within their bounds.
#include "core/compiler/graph/passes/integer_rows.h"

#include <gtest/gtest.h>

#include <candela/numerics.h>

#include <cmath>
#include <random>

#include "core/reference/reference.h"

namespace candela::graph::passes {
namespace {

using Row = std::vector<int32_t>;
using Reals = std::vector<double>;

constexpr uint64_t kSeed = 20;
constexpr int64_t kCounts[] = {1, 2, 3, 16, 17, 100, 768, 1500};
constexpr double kSteps[] = {0.004, 0.05, 0.4, 3};

/// Normal with this spread around a random middle, in i8; 0 is all equal but for one place.
Row rowOf(std::mt19937_64& random, int64_t count, double spread) {
  Row row(static_cast<size_t>(count), 3);
  if (spread == 0) {
    row[random() % row.size()] += 1 + static_cast<int32_t>(random() % 120);
    return row;
  }
  std::normal_distribution<double> normal(static_cast<double>(random() % 60) - 30, spread);
  for (int32_t& value : row)
    value = static_cast<int32_t>(std::clamp(std::round(normal(random)), -128.0, 127.0));
  return row;
}
constexpr double kSpreads[] = {0, 0.4, 3, 20, 90};

/// The op on one row, by the reference.
Row evaluated(OpKind kind, const Row& row, const RowFunction& function) {
  Graph graph;
  std::vector<int8_t> bytes(row.begin(), row.end());
  std::vector<Value*> operands{
      graph.addConstant(Tensor::of(Elem::i8_, {std::ssize(bytes)}, bytes))};
  for (const Tensor& tensor : function.operands) operands.push_back(graph.addConstant(tensor));
  Attrs attrs = function.attrs;
  attrs["axis"] = int64_t(0);
  const auto node = graph.addNode(kind, operands, attrs);
  EXPECT_TRUE(node) << node.status().message();
  graph.addOutput((*node)->result(), "y");
  const auto results = reference::run(graph, {});
  EXPECT_TRUE(results) << results.status().message();
  const std::vector<int64_t> whole = (*results)[0].toInts();
  return {whole.begin(), whole.end()};
}

int32_t numberOf(const RowFunction& function, const char* name) {
  return static_cast<int32_t>(std::get<int64_t>(function.attrs.find(name)->second));
}

/// A table of segments as numerics.h has it.
std::vector<cdl_segment_t> segmentsIn(const Tensor& tensor) {
  std::vector<cdl_segment_t> segments;
  const int32_t* row = tensor.as<int32_t>();
  for (int64_t s = 0; s < tensor.dims[0]; ++s, row += 4)
    segments.push_back({row[0], row[1], row[2], row[3]});
  return segments;
}

Row softmaxByHeader(const Row& row, const RowFunction& function) {
  const auto segments = segmentsIn(function.operands[1]);
  const cdl_softmax_integer_t parameters{function.operands[0].as<int16_t>(),
                                         segments.data(),
                                         function.operands[2].as<int16_t>(),
                                         static_cast<int32_t>(segments.size()),
                                         numberOf(function, "base"),
                                         numberOf(function, "multiplier"),
                                         numberOf(function, "shift"),
                                         numberOf(function, "zero"),
                                         0,
                                         255};
  Row y(row.size());
  cdl_softmax_integer(&parameters, row.data(), y.data(), static_cast<int32_t>(row.size()));
  return y;
}

Row layerNormByHeader(const Row& row, const RowFunction& function) {
  const auto segments = segmentsIn(function.operands[2]);
  const cdl_layer_norm_integer_t parameters{function.operands[0].as<int32_t>(),
                                            function.operands[1].as<int32_t>(),
                                            segments.data(),
                                            function.operands[3].as<int16_t>(),
                                            static_cast<int32_t>(segments.size()),
                                            numberOf(function, "base"),
                                            numberOf(function, "fraction"),
                                            numberOf(function, "epsilon"),
                                            numberOf(function, "normal_shift"),
                                            numberOf(function, "multiplier"),
                                            numberOf(function, "shift"),
                                            numberOf(function, "zero"),
                                            -128,
                                            127,
                                            -128,
                                            127};
  Row y(row.size());
  cdl_layer_norm_integer(&parameters, row.data(), y.data(), static_cast<int32_t>(row.size()));
  return y;
}

Row rmsNormByHeader(const Row& row, const RowFunction& function) {
  const auto segments = segmentsIn(function.operands[1]);
  const cdl_rms_norm_integer_t parameters{function.operands[0].as<int32_t>(),
                                          segments.data(),
                                          function.operands[2].as<int16_t>(),
                                          static_cast<int32_t>(segments.size()),
                                          numberOf(function, "base"),
                                          numberOf(function, "x_zero"),
                                          numberOf(function, "fraction"),
                                          numberOf(function, "epsilon"),
                                          numberOf(function, "normal_shift"),
                                          numberOf(function, "multiplier"),
                                          numberOf(function, "shift"),
                                          numberOf(function, "zero"),
                                          -128,
                                          127};
  Row y(row.size());
  cdl_rms_norm_integer(&parameters, row.data(), y.data(), static_cast<int32_t>(row.size()));
  return y;
}

Reals softmax(const Row& row, double step) {
  const double largest = *std::max_element(row.begin(), row.end());
  Reals y;
  double sum = 0;
  for (const int32_t x : row) sum += y.emplace_back(std::exp(step * (x - largest)));
  for (double& value : y) value /= sum;
  return y;
}

Reals layerNorm(const Row& row, double step, const RowNorm& norm) {
  const auto count = static_cast<double>(row.size());
  double mean = 0, variance = 0;
  for (const int32_t x : row) mean += step * x / count;
  for (const int32_t x : row) variance += (step * x - mean) * (step * x - mean) / count;
  Reals y;
  for (size_t i = 0; i < row.size(); ++i)
    y.push_back((step * row[i] - mean) / std::sqrt(variance + norm.epsilon) * norm.scale[i] +
                norm.bias[i]);
  return y;
}

Reals rmsNorm(const Row& row, const QuantizedBytes& x, const RowNorm& norm) {
  const auto count = static_cast<double>(row.size());
  const auto real = [&](size_t i) { return x.scale * (row[i] - static_cast<double>(x.zero)); };
  double square = 0;
  for (size_t i = 0; i < row.size(); ++i) square += real(i) * real(i) / count;
  Reals y;
  for (size_t i = 0; i < row.size(); ++i)
    y.push_back(real(i) / std::sqrt(square + norm.epsilon) * norm.scale[i]);
  return y;
}

double largestOf(const Reals& values) {
  double most = 0;
  for (const double value : values) most = std::max(most, std::abs(value));
  return most;
}

TEST(IntegerRows, SoftmaxIsNumericsHeadersAndWithinItsBound) {
  std::mt19937_64 random(kSeed);
  constexpr double kStep = 1.0 / 256;
  for (const int64_t count : kCounts)
    for (const double step : kSteps) {
      const auto function = integerSoftmax(step, count, {kStep, 0, Elem::u8_});
      ASSERT_TRUE(function);
      const double bound = 0.56 * kStep + static_cast<double>(count) / 65534;
      for (const double spread : kSpreads) {
        const Row row = rowOf(random, count, spread);
        const Row y = evaluated(OpKind::SoftmaxInteger, row, *function);
        ASSERT_EQ(y, softmaxByHeader(row, *function)) << count << " " << step << " " << spread;
        const Reals exact = softmax(row, step);
        for (size_t i = 0; i < row.size(); ++i)
          ASSERT_NEAR(kStep * y[i], std::min(exact[i], 255 * kStep), bound)
              << "seed " << kSeed << ", " << count << " of step " << step << ", spread " << spread;
      }
    }
}

TEST(IntegerRows, LayerNormIsNumericsHeadersAndWithinOneStep) {
  std::mt19937_64 random(kSeed);
  for (const int64_t count : kCounts)
    for (const double step : kSteps)
      for (const double epsilon : {0.0, 1e-12, 1e-5}) {
        RowNorm norm{{}, {}, epsilon};
        std::normal_distribution<double> scale(1, 0.3), bias(0, 0.3);
        for (int64_t i = 0; i < count; ++i) {
          norm.scale.push_back(scale(random));
          norm.bias.push_back(bias(random));
        }
        for (const double spread : kSpreads) {
          const Row row = rowOf(random, count, spread);
          const bool isFlat = std::ranges::count(row, row[0]) == count && epsilon == 0;
          if (isFlat) continue; // 0 / 0
          const Reals exact = layerNorm(row, step, norm);
          const double yStep = largestOf(exact) / 127;
          const auto function = integerLayerNorm(step, norm, {yStep, 0, Elem::i8_});
          ASSERT_TRUE(function);
          const Row y = evaluated(OpKind::LayerNormInteger, row, *function);
          ASSERT_EQ(y, layerNormByHeader(row, *function)) << count << " " << step << " " << spread;
          for (size_t i = 0; i < row.size(); ++i)
            ASSERT_NEAR(y[i], exact[i] / yStep, 1.01)
                << "seed " << kSeed << ", " << count << " of step " << step << ", spread " << spread
                << ", epsilon " << epsilon;
        }
      }
}

TEST(IntegerRows, RmsNormIsNumericsHeadersAndWithinOneStep) {
  std::mt19937_64 random(kSeed);
  for (const int64_t count : kCounts)
    for (const double step : kSteps)
      for (const double epsilon : {0.0, 1e-12, 1e-5})
        for (const int64_t zero : {0, -128, 17}) {
          RowNorm norm{{}, {}, epsilon};
          std::normal_distribution<double> scale(1, 0.3);
          for (int64_t i = 0; i < count; ++i) norm.scale.push_back(scale(random));
          for (const double spread : kSpreads) {
            const Row row = rowOf(random, count, spread);
            const QuantizedBytes x{step, zero, Elem::i8_};
            const Reals exact = rmsNorm(row, x, norm);
            const double yStep = largestOf(exact) / 127;
            if (!(yStep > 0)) continue; // a row of zeros: 0 / 0 without epsilon
            const auto function = integerRmsNorm(x, norm, {yStep, 0, Elem::i8_});
            ASSERT_TRUE(function);
            const Row y = evaluated(OpKind::RmsNormInteger, row, *function);
            ASSERT_EQ(y, rmsNormByHeader(row, *function)) << count << " " << step << " " << spread;
            for (size_t i = 0; i < row.size(); ++i)
              ASSERT_NEAR(y[i], exact[i] / yStep, 1.01)
                  << "seed " << kSeed << ", " << count << " of step " << step << ", zero " << zero
                  << ", spread " << spread << ", epsilon " << epsilon;
          }
        }
}

TEST(IntegerRows, WhatDoesNotFitHasNoIntegerForm) {
  EXPECT_FALSE(integerSoftmax(0.1, 65537, {1.0 / 256, 0, Elem::u8_}));
  EXPECT_FALSE(integerSoftmax(0.1, 0, {1.0 / 256, 0, Elem::u8_}));
  const RowNorm tooLong{Reals(16385, 1), Reals(16385, 0), 1e-5};
  EXPECT_FALSE(integerLayerNorm(0.1, tooLong, {0.03, 0, Elem::i8_}));
  EXPECT_FALSE(integerRmsNorm({0.1, 0, Elem::i8_}, tooLong, {0.03, 0, Elem::i8_}));
  const RowNorm washedOut{{1, 1}, {0, 0}, 1e9};
  EXPECT_FALSE(integerLayerNorm(0.1, washedOut, {0.03, 0, Elem::i8_}));
  EXPECT_FALSE(integerRmsNorm({0.1, 0, Elem::i8_}, washedOut, {0.03, 0, Elem::i8_}));
}

} // namespace
} // namespace candela::graph::passes
