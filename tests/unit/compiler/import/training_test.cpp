// ai.onnx.preview.training against ONNX's formulas, computed here in double.
#include <cmath>

#include "tests/unit/compiler/import/op_maker.h"

namespace candela::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kDomain = "ai.onnx.preview.training";
constexpr double kRate = 0.1;

Op optimizer(const char* name, int64_t steps) {
  return Op(kDomain, name).in(f32({}, {static_cast<float>(kRate)})).in(i64({}, {steps}));
}

void expectNear(const Tensor& got, const std::vector<double>& want) {
  ASSERT_EQ(got.count(), std::ssize(want));
  for (size_t i = 0; i < want.size(); ++i)
    EXPECT_NEAR(got.as<float>()[i], want[i], 2e-6 * (1 + std::abs(want[i]))) << i;
}

struct Moved {
  double x, g, v, h;
};
constexpr Moved kOne{1.2, -0.94, 1.7, 0.9}, kOther{2.8, 2.5, 3.6, 4.1};

TEST(Adagrad, MovesSeveralTensors) {
  const auto results = optimizer("Adagrad", 3)
                           .in(f32({1}, {1.2F}))
                           .in(f32({2}, {2.8F, 2.8F}))
                           .in(f32({1}, {-0.94F}))
                           .in(f32({2}, {2.5F, 2.5F}))
                           .in(f32({1}, {0.9F}))
                           .in(f32({2}, {4.1F, 4.1F}))
                           .attr("norm_coefficient", 0.001F)
                           .attr("decay_factor", 0.1F)
                           .attr("epsilon", 1e-5F)
                           .outputs(4)
                           .run();
  ASSERT_TRUE(results) << messageOf(results);
  const auto moved = [](const Moved& m) {
    const double g = 0.001 * m.x + m.g;
    const double h = m.h + g * g;
    return std::pair(m.x - kRate / (1 + 3 * 0.1) * g / (std::sqrt(h) + 1e-5), h);
  };
  const auto [x, h] = moved(kOne);
  const auto [x2, h2] = moved(kOther);
  expectNear(results->at(0), {x});
  expectNear(results->at(1), {x2, x2});
  expectNear(results->at(2), {h});
  expectNear(results->at(3), {h2, h2});
}

TEST(Adam, CorrectsWhatBeganAtZero) {
  for (const int64_t steps : {0, 1, 100}) {
    const auto results = optimizer("Adam", steps)
                             .in(f32({1}, {1.2F}))
                             .in(f32({1}, {-0.94F}))
                             .in(f32({1}, {1.7F}))
                             .in(f32({1}, {0.9F}))
                             .attr("norm_coefficient", 0.01F)
                             .attr("norm_coefficient_post", 0.02F)
                             .outputs(3)
                             .run();
    ASSERT_TRUE(results) << messageOf(results);
    const double g = 0.01 * kOne.x + kOne.g, v = 0.9 * kOne.v + 0.1 * g,
                 h = 0.999 * kOne.h + 0.001 * g * g, t = static_cast<double>(steps);
    const double rate =
        steps > 0 ? kRate * std::sqrt(1 - std::pow(0.999, t)) / (1 - std::pow(0.9, t)) : kRate;
    expectNear(results->at(0), {(1 - 0.02) * (kOne.x - rate * v / (std::sqrt(h) + 1e-6))});
    expectNear(results->at(1), {v});
    expectNear(results->at(2), {h});
  }
}

Op momentum(const char* mode, int64_t steps) {
  return optimizer("Momentum", steps)
      .in(f32({1}, {1.2F}))
      .in(f32({1}, {-0.94F}))
      .in(f32({1}, {1.7F}))
      .attr("norm_coefficient", 0.001F)
      .attr("alpha", 0.95F)
      .attr("beta", 0.5F)
      .attr("mode", std::string(mode))
      .outputs(2);
}

TEST(Momentum, IsStandardOrNesterovs) {
  for (const int64_t steps : {0, 1}) {
    const double g = 0.001 * kOne.x + kOne.g;
    const double v = 0.95 * kOne.v + (steps > 0 ? 0.5 : 1.0) * g;
    const auto standard = momentum("standard", steps).run();
    ASSERT_TRUE(standard) << messageOf(standard);
    expectNear(standard->at(0), {kOne.x - kRate * v});
    expectNear(standard->at(1), {v});
    const auto nesterov = momentum("nesterov", steps).run();
    ASSERT_TRUE(nesterov) << messageOf(nesterov);
    expectNear(nesterov->at(0), {kOne.x - kRate * (g + 0.95 * v)});
  }
  EXPECT_THAT(refusal(momentum("heavy", 1)), HasSubstr("mode 'heavy' is not standard or nesterov"));
}

TEST(Optimizers, SayWhatDoesNotFit) {
  EXPECT_THAT(refusal(optimizer("Adam", 1).in(f32({1}, {1})).in(f32({1}, {1}))),
              HasSubstr("2 tensors behind R and T, expected 4 for each that is moved"));
  EXPECT_THAT(refusal(optimizer("Adagrad", 1)
                          .in(f32({2}, {1, 1}))
                          .in(f32({1}, {1}))
                          .in(f32({2}, {1, 1}))
                          .outputs(2)),
              HasSubstr("input 3 is f32[1], of a tensor f32[2]"));
  EXPECT_THAT(refusal(optimizer("Momentum", 1)
                          .in(f32({1}, {1}))
                          .in(f32({1}, {1}))
                          .in(f32({1}, {1}))
                          .outputs(2)),
              HasSubstr("attribute alpha is missing"));
}

/// c = a * b, d = c + a, and the gradients of d by a and b; `order`: of the nodes in the file.
ModelMaker products(const std::vector<std::string>& at) {
  ModelMaker maker(18);
  maker.setOpset(kDomain, 1);
  maker.input("a", {2});
  maker.input("b", {2});
  auto& gradient = maker.node("Gradient", at, {"da", "db"}, "grad");
  gradient.set_domain(kDomain);
  setAttr(gradient, "xs", std::vector<std::string>{"a", "b"});
  setAttr(gradient, "y", std::string("d"));
  maker.node("Mul", {"a", "b"}, {"c"}, "mul");
  maker.node("Add", {"c", "a"}, {"d"}, "add");
  for (const char* name : {"d", "da", "db"}) maker.output(name);
  return maker;
}

TEST(Gradient, IsOfWhatTheModelComputes) {
  const auto graph = products({"a", "b"}).import();
  ASSERT_TRUE(graph) << messageOf(graph);
  ASSERT_TRUE(graph::verify(*graph).isOk());
  const std::vector<Tensor> inputs{f32({2}, {2, 3}), f32({2}, {5, 7})};
  const auto results = reference::run(*graph, inputs).orAbort();
  expectNear(results[1], {6, 8});
  expectNear(results[2], {2, 3});
}

TEST(Gradient, RefusesAnotherFunctions) {
  EXPECT_THAT(messageOf(products({"b", "a"}).import()),
              HasSubstr("the gradient at 'b' in place of 'a' is another function's"));
}

} // namespace
} // namespace candela::test
