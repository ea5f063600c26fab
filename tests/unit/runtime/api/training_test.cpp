// Gradients and training by the embedding API, on backends with and without memory of the host.
#include <candela/graph.h>
#include <candela/train.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>

#include "core/support/file.h"

namespace candela {
namespace {

using sdk::Model;
using sdk::Options;
using sdk::Trainer;
using sdk::Training;
using testing::ElementsAre;
using testing::HasSubstr;
namespace fs = std::filesystem;

const std::string kModel = CANDELA_SOURCE_DIR "/examples/digits/digits.onnx";
constexpr int64_t kImages = 360;
constexpr int64_t kBatch = 30;
constexpr int64_t kPixels = 64;
constexpr int64_t kClasses = 10;

Tensor readDigits(const char* name) {
  return readNpy(std::string(CANDELA_SOURCE_DIR "/examples/digits/") + name).orAbort();
}

template <typename T>
candela_tensor_t tensorOf(std::vector<T>& data, candela_elem_t elem,
                          const std::vector<int64_t>& dims) {
  candela_tensor_t tensor{};
  tensor.elem = elem;
  tensor.rank = static_cast<uint32_t>(dims.size());
  std::copy(dims.begin(), dims.end(), tensor.dims);
  tensor.data = data.data();
  tensor.bytes = data.size() * sizeof(T);
  return tensor;
}

/// A batch of digits with classes as 64-bit integers.
struct Batch {
  std::vector<float> images;
  std::vector<int64_t> labels;

  explicit Batch(int64_t number) {
    static const Tensor allImages = readDigits("test_images.npy");
    static const Tensor allLabels = readDigits("test_labels.npy");
    const int64_t first = number % (kImages / kBatch) * kBatch;
    const float* at = allImages.as<float>() + first * kPixels;
    images.assign(at, at + kBatch * kPixels);
    for (int64_t i = first; i < first + kBatch; ++i)
      labels.push_back(allLabels.elem == Elem::i64_ ? allLabels.as<int64_t>()[i]
                                                    : allLabels.as<int32_t>()[i]);
  }
  std::vector<candela_tensor_t> tensors() {
    return {tensorOf(images, CANDELA_F32, {kBatch, 1, 8, 8}),
            tensorOf(labels, CANDELA_I64, {kBatch})};
  }
};

Options optionsFor(const std::string& backends) {
  Options options;
  options.backends = backends;
  options.dims = {"N=" + std::to_string(kBatch)};
  return options;
}

std::string fileOf(const char* name) {
  return (fs::temp_directory_path() / (std::to_string(getpid()) + name)).string();
}

std::vector<float> valuesOf(Trainer& trainer, uint32_t parameter) {
  candela_tensor_t output{};
  trainer.read(parameter, output);
  const auto* at = static_cast<const float*>(output.data);
  std::vector<float> values(at, at + output.bytes / sizeof(float));
  candela_free_data(output.data);
  return values;
}

template <typename F> std::string failureOf(candela_status_t status, F&& call) {
  try {
    call();
  } catch (const sdk::Error& error) {
    EXPECT_EQ(error.status(), status) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was refused";
  return "";
}

class TrainingOn : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(All, TrainingOn,
                         testing::Values("soft", PLUGIN_template, PLUGIN_template_memory),
                         [](const auto& info) { return std::to_string(info.index); });

TEST_P(TrainingOn, LearnsAndWritesTheModel) {
  Training training;
  training.isRandom = true;
  training.seed = 1;
  Trainer trainer = Trainer::create(kModel, training, optionsFor(GetParam()));
  ASSERT_EQ(trainer.inputs().size(), 2u);
  EXPECT_EQ(trainer.inputs()[0].name, "images");
  EXPECT_EQ(trainer.inputs()[1].name, "labels");
  const size_t parameters = trainer.parameters().size();
  EXPECT_EQ(parameters, 16u); // of which four follow the batches
  double first = 0;
  double last = 0;
  for (int64_t step = 0; step < 20; ++step) {
    Batch batch(step);
    last = trainer.step(batch.tensors(), 0.005);
    if (step == 0) first = last;
  }
  EXPECT_GT(first, 2);
  EXPECT_LT(last, 1.2);
  const std::string path = fileOf("_trained.onnx");
  trainer.save(path);
  // What was written holds what the trainer holds, and training goes on from there.
  Trainer again = Trainer::create(path, {}, optionsFor("soft"));
  for (uint32_t i = 0; i < parameters; ++i)
    EXPECT_EQ(valuesOf(again, i), valuesOf(trainer, i)) << i;
  Batch batch(20);
  EXPECT_NEAR(again.step(batch.tensors(), 0.005), trainer.step(batch.tensors(), 0.005), 1e-4);
  fs::remove(path);
}

/// sgd moves a parameter by its gradient: both by different ways through the library.
TEST_P(TrainingOn, MovesByTheGradient) {
  const std::string parameter = [] {
    return Trainer::create(kModel, {}, optionsFor("soft")).parameters()[0].name;
  }();
  Training training;
  training.loss = "mse";
  training.optimizer = "sgd";
  training.freeze = {"BatchNorm*"};
  Trainer trainer = Trainer::create(kModel, training, optionsFor(GetParam()));
  const std::vector<float> before = valuesOf(trainer, 0);
  Batch batch(0);
  std::vector<float> wanted(kBatch * kClasses, 0.25F);
  constexpr double kRate = 4;
  trainer.step({batch.tensors()[0], tensorOf(wanted, CANDELA_F32, {kBatch, kClasses})}, kRate);
  const std::vector<float> after = valuesOf(trainer, 0);

  const Model model = sdk::compileGradients(kModel, {"", {parameter}}, optionsFor(GetParam()));
  ASSERT_EQ(model.inputs().size(), 2u);
  EXPECT_EQ(model.inputs()[1].name, "d_" + model.outputs()[0].name);
  EXPECT_EQ(model.outputs()[1].name, "d_" + parameter);
  std::vector<float> scores(kBatch * kClasses);
  std::vector<float> weights(kBatch * kClasses, 0);
  std::vector<float> gradient(before.size());
  const auto run = [&] {
    std::vector<candela_tensor_t> outputs{tensorOf(scores, CANDELA_F32, {}),
                                          tensorOf(gradient, CANDELA_F32, {})};
    model.run({batch.tensors()[0], tensorOf(weights, CANDELA_F32, {kBatch, kClasses})}, outputs);
  };
  run(); // for the scores, of which the loss's own gradient is
  for (size_t i = 0; i < weights.size(); ++i)
    weights[i] = 2 * (scores[i] - wanted[i]) / static_cast<float>(scores.size());
  run();
  double largest = 0;
  for (const float each : gradient) largest = std::max(largest, std::abs(double(each)));
  EXPECT_GT(largest, 1e-3);
  for (size_t i = 0; i < before.size(); ++i)
    EXPECT_NEAR((before[i] - after[i]) / kRate, gradient[i], 1e-4 * largest) << i;
}

TEST(Gradients, OfATextAreWithRespectToItsInputs) {
  const std::string text = "graph @g(%x: f32[3], %n: i32[]) -> (%y: f32[], %z: i32[]) {\n"
                           "  %s = mul %x, %x\n"
                           "  %y = reduce_sum %s {axes = [0], keepdims = 0}\n"
                           "  %z = add %n, %n\n}\n";
  const Model model = sdk::compileGradients(text.data(), text.size(), "squares.cdl");
  ASSERT_EQ(model.outputs().size(), 2u);
  EXPECT_EQ(model.outputs()[0].name, "y");
  EXPECT_EQ(model.outputs()[1].name, "d_x");
  std::vector<float> x{1, -2, 3};
  std::vector<int32_t> n{5};
  std::vector<float> y(1);
  std::vector<float> gradient(3);
  std::vector<candela_tensor_t> outputs{tensorOf(y, CANDELA_F32, {}),
                                        tensorOf(gradient, CANDELA_F32, {})};
  model.run({tensorOf(x, CANDELA_F32, {3}), tensorOf(n, CANDELA_I32, {})}, outputs);
  EXPECT_EQ(y[0], 14);
  EXPECT_THAT(gradient, ElementsAre(2, -4, 6));
  const auto refused = [&](const sdk::Gradients& gradients) {
    return failureOf(CANDELA_INVALID_ARGUMENT, [&] {
      sdk::compileGradients(text.data(), text.size(), "squares.cdl", gradients);
    });
  };
  EXPECT_THAT(refused({"w", {}}), HasSubstr("the model has no output 'w'; there are y, z"));
  EXPECT_THAT(refused({"", {"w"}}), HasSubstr("'w' is no input and no constant"));
  EXPECT_THAT(refused({"", {"n"}}), HasSubstr("there is no gradient with respect to it"));
  EXPECT_THAT(refused({"z", {}}), HasSubstr("only floats have a gradient"));
  EXPECT_THAT(refused({"", {"x", "x"}}), HasSubstr("'x' is asked for twice"));
}

TEST(Gradients, OfAGraphAreItsValues) {
  candela_graph_t* graph = nullptr;
  ASSERT_EQ(candela_graph_create("g", &graph), CANDELA_OK);
  std::vector<float> none(2);
  const candela_tensor_t type = tensorOf(none, CANDELA_F32, {2});
  candela_value_t x = 0;
  candela_value_t y = 0;
  candela_value_t weight = 0;
  candela_value_t gradient = 0;
  char error[256] = "";
  ASSERT_EQ(candela_graph_input(graph, "x", &type, &x, error, sizeof error), CANDELA_OK);
  ASSERT_EQ(candela_graph_input(graph, "w", &type, &weight, error, sizeof error), CANDELA_OK);
  ASSERT_EQ(candela_graph_op(graph, "exp", &x, 1, nullptr, nullptr, &y, 1, error, sizeof error),
            CANDELA_OK);
  EXPECT_EQ(candela_graph_gradients(graph, y, 0, &x, 1, &gradient, error, sizeof error),
            CANDELA_INVALID_ARGUMENT);
  EXPECT_THAT(error, HasSubstr("without a cotangent one number is differentiated"));
  ASSERT_EQ(candela_graph_gradients(graph, y, weight, &x, 1, &gradient, error, sizeof error),
            CANDELA_OK)
      << error;
  ASSERT_EQ(candela_graph_output(graph, gradient, "d_x", error, sizeof error), CANDELA_OK);
  candela_model_t* made = nullptr;
  ASSERT_EQ(candela_compile_graph(graph, nullptr, &made, error, sizeof error), CANDELA_OK) << error;
  candela_graph_free(graph);
  const Model model = Model::adopt(made);
  std::vector<float> at{0, 1};
  std::vector<float> weights{2, 3};
  std::vector<float> got(2);
  std::vector<candela_tensor_t> outputs{tensorOf(got, CANDELA_F32, {})};
  model.run({tensorOf(at, CANDELA_F32, {2}), tensorOf(weights, CANDELA_F32, {2})}, outputs);
  EXPECT_NEAR(got[0], 2, 1e-6);
  EXPECT_NEAR(got[1], 3 * std::exp(1), 1e-5);
}

TEST(TrainingRefusals, NameWhatIsWrong) {
  const auto refused = [&](const Training& training, const Options& options,
                           candela_status_t status = CANDELA_INVALID_ARGUMENT) {
    return failureOf(status, [&] { Trainer::create(kModel, training, options); });
  };
  const auto with = [](auto&& change) {
    Training training;
    change(training);
    return training;
  };
  const Options soft = optionsFor("soft");
  EXPECT_THAT(refused(with([](Training& t) { t.loss = "hinge"; }), soft),
              HasSubstr("loss 'hinge': cross_entropy or mse"));
  EXPECT_THAT(refused(with([](Training& t) { t.optimizer = "x"; }), soft),
              HasSubstr("optimizer 'x': sgd, momentum, adam or adamw"));
  EXPECT_THAT(refused(with([](Training& t) { t.output = "z"; }), soft),
              HasSubstr("the model has no output 'z'; there are scores"));
  EXPECT_THAT(refused(with([](Training& t) { t.freeze = {"z*"}; }), soft), HasSubstr("z*"));
  EXPECT_THAT(refused(with([](Training& t) { t.momentum = 2; }), soft),
              HasSubstr("momentum 2: expected 0 to 1"));
  EXPECT_THAT(refused(with([](Training& t) { t.weightDecay = std::nan(""); }), soft),
              HasSubstr("weight_decay nan"));
  EXPECT_THAT(refused({}, optionsFor("reference")), HasSubstr("the reference does not train"));
  Options states = soft;
  states.states = {"images=scores"};
  EXPECT_THAT(refused({}, states), HasSubstr("a step of training has its own"));
  Options open = soft;
  open.dims.clear();
  EXPECT_THAT(refused({}, open), HasSubstr("N"));
  open.bindAtRun = true;
  EXPECT_THAT(refused({}, open), HasSubstr("compiled for one batch"));
  const std::string text = "graph @g(%x: f32[3]) -> (%x) {\n}\n";
  EXPECT_THAT(
      failureOf(CANDELA_UNSUPPORTED, [&] { Trainer::create(text.data(), text.size(), "g.cdl"); }),
      HasSubstr("only models of ONNX are trained"));
  EXPECT_THAT(failureOf(CANDELA_NOT_FOUND, [&] { Trainer::create("/nowhere.onnx"); }),
              HasSubstr("/nowhere.onnx"));
}

TEST(TrainingRefusals, LeaveTheTrainerAsItIs) {
  Trainer trainer = Trainer::create(kModel, {}, optionsFor("soft"));
  Batch batch(0);
  const std::vector<float> before = valuesOf(trainer, 0);
  const auto refused = [&](const std::vector<candela_tensor_t>& tensors, double rate) {
    return failureOf(CANDELA_INVALID_ARGUMENT, [&] { trainer.step(tensors, rate); });
  };
  EXPECT_THAT(refused({batch.tensors()[0]}, 0.1), HasSubstr("1 inputs were given, a step takes 2"));
  EXPECT_THAT(refused({batch.tensors()[1], batch.tensors()[1]}, 0.1), HasSubstr("images"));
  EXPECT_THAT(refused(batch.tensors(), -1), HasSubstr("learning_rate -1"));
  std::vector<candela_tensor_t> few = batch.tensors();
  few[0].bytes = 4;
  EXPECT_THAT(refused(few, 0.1), HasSubstr("needs 7680 bytes, 4 were given"));
  batch.labels[7] = kClasses;
  EXPECT_THAT(refused(batch.tensors(), 0.1),
              HasSubstr("'labels': element 7 is 10, the model has 10 classes"));
  EXPECT_EQ(valuesOf(trainer, 0), before);
  candela_tensor_t output{};
  EXPECT_THAT(failureOf(CANDELA_INVALID_ARGUMENT, [&] { trainer.read(99, output); }),
              HasSubstr("parameter 99 of 16"));
}

TEST(TrainingRefusals, NoFileOfWhatIsNotFinite) {
  Training training;
  training.optimizer = "sgd";
  Trainer trainer = Trainer::create(kModel, training, optionsFor("soft"));
  Batch batch(0);
  for (float& pixel : batch.images) pixel = NAN;
  EXPECT_TRUE(std::isnan(trainer.step(batch.tensors(), 0.1)));
  const std::string path = fileOf("_nan.onnx");
  EXPECT_THAT(failureOf(CANDELA_INVALID_ARGUMENT, [&] { trainer.save(path); }),
              HasSubstr("is not finite after 1 steps: nothing is written"));
  EXPECT_FALSE(fs::exists(path));
}

/// The file is read once: what is written is what it was.
TEST(Training, NeedsTheFileNoMore) {
  const std::string path = fileOf("_moved.onnx");
  fs::copy_file(kModel, path);
  Trainer trainer = Trainer::create(path, {}, optionsFor("soft"));
  fs::remove(path);
  const std::string written = fileOf("_written.onnx");
  trainer.save(written);
  EXPECT_EQ(valuesOf(trainer, 0), [&] {
    Trainer again = Trainer::create(written, {}, optionsFor("soft"));
    return valuesOf(again, 0);
  }());
  fs::remove(written);
}

} // namespace
} // namespace candela
