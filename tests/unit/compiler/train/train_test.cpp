// What optimizers do to numbers, which constants are parameters, and what a step carries on.
#include <gmock/gmock.h>

#include <cmath>

#include "core/compiler/import/onnx_io/write.h"
#include "core/compiler/train/model_file.h"
#include "core/compiler/train/optimizers.h"
#include "core/compiler/train/step_graph.h"
#include "core/reference/reference.h"

namespace candela::train {
namespace {

using import::onnx_io::Model;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kSteps = 5;
constexpr double kRate = 0.05;

std::vector<double> numbersOf(const Tensor& tensor) {
  return {tensor.as<double>(), tensor.as<double>() + tensor.count()};
}

Tensor scalar(double value) { return Tensor::of<double>(Elem::f64_, {}, {value}); }

/// A parameter of f64 over some steps with the gradient p * p - 1, by the formula's graph.
std::vector<double> byGraph(const OptimizerSettings& settings, double start) {
  graph::Graph graph;
  differentiate::Writer writer{graph};
  const auto input = [&](const char* name) {
    return Term(writer, graph.addInput(name, {Elem::f64_, {}}));
  };
  Updated before{input("p"), {}};
  const Term gradient = input("g");
  const StepNumbers numbers{input("rate"), input("c1"), input("c2")};
  for (size_t s = 0; s < stateCount(settings.kind); ++s)
    before.states.push_back(input(s == 0 ? "s0" : "s1"));
  const Updated after = update(settings, before, gradient, numbers);
  graph.addOutput(after.parameter.value(), "next");
  for (const Term& state : after.states) graph.addOutput(state.value(), "kept");
  std::vector<Tensor> carried(1 + after.states.size(), scalar(0));
  carried[0] = scalar(start);
  std::vector<double> course;
  for (int step = 1; step <= kSteps; ++step) {
    const double p = *carried[0].as<double>();
    std::vector<Tensor> inputs{carried[0], scalar(p * p - 1), scalar(kRate),
                               scalar(1 / (1 - std::pow(settings.beta1, step))),
                               scalar(1 / (1 - std::pow(settings.beta2, step)))};
    inputs.insert(inputs.end(), carried.begin() + 1, carried.end());
    carried = reference::run(graph, inputs).orAbort();
    course.push_back(*carried[0].as<double>());
  }
  return course;
}

/// The same by the papers' formulas.
std::vector<double> byHand(const OptimizerSettings& o, double p) {
  double velocity = 0;
  double mean = 0;
  double square = 0;
  std::vector<double> course;
  for (int step = 1; step <= kSteps; ++step) {
    double g = p * p - 1;
    if (o.kind != Optimizer::adamw) g += o.weightDecay * p;
    velocity = o.momentum * velocity + g;
    mean = o.beta1 * mean + (1 - o.beta1) * g;
    square = o.beta2 * square + (1 - o.beta2) * g * g;
    const double corrected = mean / (1 - std::pow(o.beta1, step));
    const double spread = std::sqrt(square / (1 - std::pow(o.beta2, step))) + o.epsilon;
    const double adam = kRate * corrected / spread;
    if (o.kind == Optimizer::sgd) p -= kRate * g;
    if (o.kind == Optimizer::momentum) p -= kRate * velocity;
    if (o.kind == Optimizer::adam) p -= adam;
    if (o.kind == Optimizer::adamw) p -= adam + kRate * o.weightDecay * p;
    course.push_back(p);
  }
  return course;
}

TEST(Optimizers, AreTheirFormulas) {
  for (const char* name : {"sgd", "momentum", "adam", "adamw"}) {
    for (const double decay : {0.0, 0.1}) {
      SCOPED_TRACE(fmt::format("{} {}", name, decay));
      OptimizerSettings settings;
      settings.kind = *parseOptimizer(name);
      settings.weightDecay = decay;
      const std::vector<double> got = byGraph(settings, 3);
      const std::vector<double> want = byHand(settings, 3);
      for (int i = 0; i < kSteps; ++i) EXPECT_NEAR(got[i], want[i], 1e-12) << i;
    }
  }
}

TEST(Optimizers, ClipAllGradientsTogether) {
  for (const double most : {2.5, 10.0}) {
    graph::Graph graph;
    differentiate::Writer writer{graph};
    const Term a(writer, graph.addInput("a", {Elem::f64_, {2}})),
        b(writer, graph.addInput("b", {Elem::f64_, {1}}));
    for (const Term& each : clippedByNorm({a, b}, most)) graph.addOutput(each.value(), "clipped");
    const std::vector<Tensor> inputs{Tensor::of<double>(Elem::f64_, {2}, {3, 0}),
                                     Tensor::of<double>(Elem::f64_, {1}, {4})};
    const std::vector<Tensor> got = reference::run(graph, inputs).orAbort();
    const double factor = std::min(1.0, most / 5);
    EXPECT_THAT(numbersOf(got[0]), ElementsAre(3 * factor, 0));
    EXPECT_THAT(numbersOf(got[1]), ElementsAre(4 * factor));
  }
}

/// x . w + b, a norm with statistics, and a number that is no parameter.
Model smallModel() {
  Model model;
  model.path = "small.onnx";
  model.irVersion = 8;
  model.opsets[""] = 17;
  const auto value = [](const char* name, std::vector<int64_t> dims) {
    import::onnx_io::ValueInfo info;
    info.name = name;
    info.elem = Elem::f32_;
    info.hasShape = true;
    for (const int64_t dim : dims) info.dims.push_back({dim, ""});
    return info;
  };
  const auto constant = [&](const char* name, const Shape& dims, float each) {
    const auto count = static_cast<size_t>(*elementCount(dims));
    model.graph.initializers.push_back(
        {name, Tensor::of<float>(Elem::f32_, dims, std::vector<float>(count, each))});
  };
  const auto node = [&](const char* op, std::vector<std::string> inputs, const char* output) {
    import::onnx_io::Node made;
    made.name = std::string(op) + "_node";
    made.opType = op;
    made.inputs = std::move(inputs);
    made.outputs = {output};
    model.graph.nodes.push_back(std::move(made));
  };
  model.graph.inputs = {value("x", {-1, 3})};
  model.graph.outputs = {value("y", {-1, 4})};
  constant("w", {3, 4}, 0.5F);
  constant("b", {4}, 0.25F);
  for (const char* name : {"scale", "var"}) constant(name, {4}, 1);
  for (const char* name : {"bias", "mean"}) constant(name, {4}, 0);
  constant("half", {}, 0.5F);
  node("MatMul", {"x", "w"}, "xw");
  node("Add", {"xw", "b"}, "xwb");
  node("BatchNormalization", {"xwb", "scale", "bias", "mean", "var"}, "norm");
  node("Mul", {"norm", "half"}, "y");
  return model;
}

std::vector<std::string> namesOf(const std::vector<Parameter>& parameters) {
  std::vector<std::string> names;
  for (const Parameter& parameter : parameters) names.push_back(parameter.name);
  return names;
}

TEST(Parameters, AreWhatLayersRead) {
  const auto all = parametersOf(smallModel(), {}).orAbort();
  EXPECT_THAT(namesOf(all), ElementsAre("w", "b", "scale", "bias", "mean", "var"));
  EXPECT_EQ(all[0].role, Role::weight);
  EXPECT_EQ(all[0].fanIn, 3);
  EXPECT_EQ(all[1].role, Role::bias);
  EXPECT_FALSE(isTrained(all[4].role));
  const auto some = parametersOf(smallModel(), {"BatchNorm*", "b"}).orAbort();
  EXPECT_THAT(namesOf(some), ElementsAre("w"));
  EXPECT_THAT(parametersOf(smallModel(), {"z"}).status().message(),
              HasSubstr("--freeze z matches"));
  EXPECT_THAT(parametersOf(smallModel(), {"w", "b", "scale", "bias"}).status().message(),
              HasSubstr("every parameter is frozen"));
}

/// A model of nodes {op, inputs, output} that read constants of these dims, each element `each`.
struct Constant {
  const char* name;
  Shape dims;
  float each = 0.5F;
};
struct Step {
  const char* op;
  std::vector<std::string> inputs;
  const char* output;
};
std::vector<std::string> parametersIn(const std::vector<Constant>& constants,
                                      const std::vector<Step>& steps) {
  Model model;
  for (const Constant& each : constants) {
    const std::vector<float> values(static_cast<size_t>(*elementCount(each.dims)), each.each);
    model.graph.initializers.push_back(
        {each.name, Tensor::of<float>(Elem::f32_, each.dims, values)});
  }
  for (const Step& step : steps) {
    import::onnx_io::Node node;
    node.opType = step.op;
    node.inputs = step.inputs;
    node.outputs = {step.output};
    model.graph.nodes.push_back(std::move(node));
  }
  return namesOf(parametersOf(model, {}).orAbort());
}

TEST(Parameters, AreNeitherMasksNorWhatPreparesInputs) {
  EXPECT_THAT(
      parametersIn(
          {{"std", {1, 3, 1, 1}}, {"mean", {1, 3, 1, 1}}, {"w", {8, 3, 3, 3}}},
          {{"Mul", {"x", "std"}, "a"}, {"Add", {"a", "mean"}, "b"}, {"Conv", {"b", "w"}, "y"}}),
      ElementsAre("w"));
  EXPECT_THAT(parametersIn({{"w", {8, 8}}, {"mask", {8, 8}}, {"far", {8}, -1e9F}},
                           {{"MatMul", {"x", "w"}, "q"},
                            {"Add", {"q", "far"}, "k"},
                            {"MatMul", {"q", "k"}, "scores"},
                            {"Add", {"scores", "mask"}, "y"}}),
              ElementsAre("w"));
}

TEST(Parameters, AreConstantsOfALayersChannels) {
  EXPECT_THAT(parametersIn({{"w", {8, 3, 3, 3}}, {"s", {1, 8, 1, 1}}, {"b", {8, 1, 1}}, {"r", {8}}},
                           {{"Conv", {"x", "w"}, "a"},
                            {"Mul", {"s", "a"}, "c"},
                            {"Add", {"c", "b"}, "d"},
                            {"Add", {"d", "r"}, "y"}}),
              ElementsAre("w", "s", "b"));
  // A norm of single nodes.
  EXPECT_THAT(parametersIn({{"gamma", {6}}, {"beta", {6}}, {"w", {6, 2}}},
                           {{"Sqrt", {"v"}, "deviation"},
                            {"Div", {"x", "deviation"}, "n"},
                            {"Mul", {"n", "gamma"}, "g"},
                            {"Add", {"g", "beta"}, "h"},
                            {"MatMul", {"h", "w"}, "y"}}),
              ElementsAre("gamma", "beta", "w"));
}

/// Exporters write weights as Constant nodes too: those that layers read are trained, and stand as
/// initializers in what is written.
TEST(ModelFile, TakesConstantNodesOfLayersAsParameters) {
  Model model = smallModel();
  model.isOnnx = false; // there is no file that it was read from
  std::vector<import::onnx_io::Node> constants;
  for (const char* name : {"w", "half"}) {
    auto& initializers = model.graph.initializers;
    const auto at = std::ranges::find(initializers, name, &import::onnx_io::Initializer::name);
    import::onnx_io::Node node;
    node.name = std::string(name) + "_node";
    node.opType = "Constant";
    node.outputs = {name};
    node.attributes["value"] = at->tensor;
    constants.push_back(std::move(node));
    initializers.erase(at);
  }
  model.graph.nodes.insert(model.graph.nodes.begin(), constants.begin(), constants.end());
  const std::string path = ::testing::TempDir() + "constants.onnx";
  ASSERT_TRUE(import::onnx_io::writeModel(model, path).isOk());
  const ModelFile file = readModelFile(path).orAbort();
  auto parameters = parametersOf(file.model, {}).orAbort();
  ASSERT_THAT(namesOf(parameters), ElementsAre("w", "b", "scale", "bias", "mean", "var"));
  EXPECT_EQ(file.model.graph.nodes.front().outputs[0], "half"); // which no layer reads
  parameters[0].value = Tensor::of<float>(Elem::f32_, {3, 4}, std::vector<float>(12, 7));
  ASSERT_TRUE(writeTrained(file, parameters, path).isOk());
  const Model written = import::onnx_io::readModel(path).orAbort();
  EXPECT_EQ(written.graph.nodes.size(), file.model.graph.nodes.size());
  const auto learned =
      std::ranges::find(written.graph.initializers, "w", &import::onnx_io::Initializer::name);
  ASSERT_NE(learned, written.graph.initializers.end());
  EXPECT_EQ(learned->tensor.as<float>()[11], 7);
}

TEST(Parameters, BeginBySeedAndRole) {
  const auto all = parametersOf(smallModel(), {}).orAbort();
  const Tensor one = initialValue(all[0], 1).orAbort();
  const Tensor other = initialValue(all[0], 2).orAbort();
  const double most = std::sqrt(6.0 / 3);
  bool differs = false;
  for (int64_t i = 0; i < one.count(); ++i) {
    EXPECT_LE(std::abs(one.as<float>()[i]), most);
    differs = differs || one.as<float>()[i] != other.as<float>()[i];
  }
  EXPECT_TRUE(differs);
  EXPECT_EQ(*initialValue(all[2], 1).orAbort().as<float>(), 1);
  EXPECT_EQ(*initialValue(all[4], 1).orAbort().as<float>(), 0);
}

TEST(StepGraph, CarriesParametersThenWhatTheOptimizerKeeps) {
  StepSettings settings;
  settings.loss = Loss::meanSquares;
  settings.optimizer.kind = Optimizer::momentum;
  settings.import.shapes["x"] = {2, 3};
  const auto parameters = parametersOf(smallModel(), {}).orAbort();
  const StepGraph step = makeStep(smallModel(), parameters, settings).orAbort();
  std::vector<std::string> names;
  for (const CarriedState& state : step.states) names.push_back(state.name);
  EXPECT_THAT(names, ElementsAre("w", "b", "scale", "bias", "mean", "var", "w:momentum 0",
                                 "b:momentum 0", "scale:momentum 0", "bias:momentum 0"));
  EXPECT_TRUE(graph::verify(step.graph).isOk());
  EXPECT_EQ(step.graph.outputs().size(), 2 + step.states.size());
  // The batch's own mean moves the running one, by a tenth.
  std::vector<Tensor> inputs;
  for (const graph::Value* input : step.graph.inputs()) {
    const auto state = std::ranges::find(step.states, input->name, &CarriedState::input);
    inputs.push_back(state != step.states.end()
                         ? state->first
                         : Tensor::of<float>(Elem::f32_, input->type.shape(),
                                             std::vector<float>(input->type.count(), 1)));
  }
  const std::vector<Tensor> outputs = reference::run(step.graph, inputs).orAbort();
  EXPECT_NEAR(*outputs[2 + 4].as<float>(), 0.1 * 1.75, 1e-6);
}

/// Adds a product of the input that no output needs.
Model withUnusedProduct(Model model) {
  const Tensor ones = Tensor::of<float>(Elem::f32_, {3, 2}, std::vector<float>(6, 1));
  model.graph.initializers.push_back({"unused", ones});
  import::onnx_io::Node node;
  node.opType = "MatMul";
  node.inputs = {"x", "unused"};
  node.outputs = {"nowhere"};
  model.graph.nodes.push_back(std::move(node));
  return model;
}

TEST(StepGraph, LeavesWhatTheLossDoesNotDependOn) {
  StepSettings settings;
  settings.loss = Loss::meanSquares;
  settings.optimizer.kind = Optimizer::adamw;
  settings.optimizer.weightDecay = 0.5;
  settings.import.shapes["x"] = {2, 3};
  const Model model = withUnusedProduct(smallModel());
  const auto parameters = parametersOf(model, {}).orAbort();
  const StepGraph step = makeStep(model, parameters, settings).orAbort();
  EXPECT_THAT(step.unreached, ElementsAre("unused"));
  std::vector<std::string> names;
  for (const CarriedState& state : step.states) names.push_back(state.name);
  EXPECT_THAT(names, ::testing::Not(::testing::Contains("unused:adamw 0")));
  const auto unused = std::ranges::find(names, "unused") - names.begin();
  std::vector<Tensor> inputs;
  for (const graph::Value* input : step.graph.inputs())
    inputs.push_back(Tensor::of<float>(Elem::f32_, input->type.shape(),
                                       std::vector<float>(input->type.count(), 1)));
  const std::vector<Tensor> outputs = reference::run(step.graph, inputs).orAbort();
  const Tensor& after = outputs[2 + static_cast<size_t>(unused)];
  for (int64_t i = 0; i < after.count(); ++i) EXPECT_EQ(after.as<float>()[i], 1) << i;
}

TEST(StepGraph, RefusesALossThatNoParameterMoves) {
  StepSettings settings;
  settings.loss = Loss::meanSquares;
  settings.import.shapes["x"] = {2, 3};
  Model model = withUnusedProduct(smallModel());
  model.graph.outputs[0].name = "x2";
  model.graph.outputs[0].dims[1].value = 3;
  import::onnx_io::Node node;
  node.opType = "Neg";
  node.inputs = {"x"};
  node.outputs = {"x2"};
  model.graph.nodes.push_back(std::move(node));
  const auto parameters = parametersOf(model, {}).orAbort();
  EXPECT_THAT(makeStep(model, parameters, settings).status().message(),
              HasSubstr("small.onnx: the loss depends on no parameter, there is nothing to train"));
}

/// Scores of 2 samples and 3 classes through some ending of a classifier.
class Scores : public ::testing::Test {
protected:
  std::vector<float> of(const Term& output) {
    graph_.addOutput(scoresOf(output).value(), "scores");
    const Tensor got = reference::run(graph_, std::vector<Tensor>{given_}).orAbort()[0];
    return {got.as<float>(), got.as<float>() + got.count()};
  }
  static Term softmax(const Term& x, int64_t axis) {
    return differentiate::make(graph::OpKind::Softmax, {x}, {{"axis", axis}});
  }

  graph::Graph graph_;
  differentiate::Writer writer_{graph_};
  const std::vector<float> numbers_{1, 2, 4, -3, 0, 7};
  Tensor given_ = Tensor::of<float>(Elem::f32_, {2, 3}, numbers_);
  Term x_{writer_, graph_.addInput("x", {Elem::f32_, {2, 3}})};
};

TEST_F(Scores, AreBeforeASoftmax) { EXPECT_EQ(of(softmax(x_, -1)), numbers_); }

TEST_F(Scores, AreBeforeASoftmaxThatReshapesFollow) {
  EXPECT_EQ(of(softmax(x_, 1).reshape({2, 3, 1, 1})), numbers_);
}

TEST_F(Scores, AreBeforeASoftmaxOfChannelsThatComeLast) {
  EXPECT_EQ(of(softmax(x_.reshape({2, 1, 3}), 2).transpose({0, 2, 1}).reshape({2, 3})), numbers_);
}

TEST_F(Scores, AreTheLogarithmsOfWhatHidesASoftmax) {
  const auto clipped = minimum(softmax(x_, 1), 0.9);
  const std::vector<float> got = of(clipped);
  const double all = std::exp(1) + std::exp(2) + std::exp(4);
  EXPECT_NEAR(got[0], std::log(std::exp(1) / all), 1e-5);
  EXPECT_NEAR(got[5], std::log(0.9), 1e-6);
}

TEST_F(Scores, AreNotThoseOfASoftmaxOverAnotherAxis) {
  try {
    scoresOf(softmax(x_, 0));
    ADD_FAILURE() << "expected a Failure";
  } catch (const differentiate::Failure& failure) {
    EXPECT_THAT(failure.status.message(), HasSubstr("over axis 0, which is not where"));
  }
}

TEST(StepGraph, RefusesWhatDoesNotFit) {
  StepSettings settings;
  settings.import.shapes["x"] = {2, 3};
  const auto parameters = parametersOf(smallModel(), {}).orAbort();
  settings.output = "z";
  EXPECT_THAT(makeStep(smallModel(), parameters, settings).status().message(),
              HasSubstr("small.onnx: the model has no output 'z'; there are y"));
}

} // namespace
} // namespace candela::train
