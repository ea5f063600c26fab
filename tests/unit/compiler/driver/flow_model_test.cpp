#include "core/compiler/driver/flow_model.h"

#include "tests/unit/compiler/import/model_maker.h"

namespace candela {
namespace {

using test::addNode, test::ModelMaker, test::setAttr, test::TensorProto;

std::unique_ptr<driver::FlowModel> compiled(const ModelMaker& maker, Status* status = nullptr) {
  const std::string folder = test::scratchFolder();
  auto model = import::onnx_io::readModel(maker.write(folder + "/m.onnx"));
  std::filesystem::remove_all(folder);
  EXPECT_TRUE(model) << model.status().message();
  model->path = "m.onnx";
  import::ImportOptions options;
  options.bindAtRun = true;
  auto script = import::importScript(
      std::make_shared<const import::onnx_io::Model>(std::move(model).value()), options);
  auto made = script ? driver::FlowModel::create(std::move(script).value(), "m.onnx", {}, {})
                     : Result<std::unique_ptr<driver::FlowModel>>(script.status());
  if (status) *status = made.status();
  if (!made && !status) ADD_FAILURE() << made.status().message();
  return made ? std::move(made).value() : nullptr;
}

runtime::control_flow::Value floats(Shape dims, const std::vector<float>& values) {
  return Tensor::of(Elem::f32_, std::move(dims), values);
}
runtime::control_flow::Value ints(Shape dims, const std::vector<int64_t>& values) {
  return Tensor::of(Elem::i64_, std::move(dims), values);
}
std::vector<float> floatsOf(const runtime::control_flow::Value& value) {
  return {value.tensor.as<float>(), value.tensor.as<float>() + value.tensor.count()};
}

TEST(FlowModel, CompilesOncePerShape) {
  ModelMaker maker;
  maker.input("x", {"N", 2}).output("y", {"N", 2});
  maker.node("Relu", {"x"}, {"y"});
  const auto model = compiled(maker);
  ASSERT_TRUE(model);
  for (int round = 0; round < 3; ++round)
    for (int64_t rows : {1, 3}) {
      const auto made = model->run(
          std::vector{floats({rows, 2}, std::vector<float>(2 * rows, -1.f + 2.f * (rows == 3)))});
      ASSERT_TRUE(made) << made.status().message();
      EXPECT_EQ((*made)[0].tensor.dims, (Shape{rows, 2}));
      EXPECT_EQ(floatsOf((*made)[0])[0], rows == 3 ? 1 : 0);
    }
  EXPECT_EQ(model->specializations(), 2u);
  const auto wrong = model->run(std::vector{floats({2, 3}, std::vector<float>(6))});
  EXPECT_EQ(wrong.status().message(), "input 'x' is f32[?,2] but f32[2,3] was given");
}

TEST(FlowModel, ContentsThatShapesFollowFromAreKnownAtRun) {
  ModelMaker maker;
  maker.input("x", {6}).input("shape", {2}, TensorProto::INT64).output("y");
  maker.node("Reshape", {"x", "shape"}, {"r"}, "reshape");
  maker.node("ReduceSum", {"r", "axes"}, {"y"});
  maker.initializer<int64_t>("axes", {1}, {1});
  const auto model = compiled(maker);
  ASSERT_TRUE(model);
  const runtime::control_flow::Value x = floats({6}, {1, 2, 3, 4, 5, 6});
  const auto made = model->run(std::vector{x, ints({2}, {2, 3})});
  ASSERT_TRUE(made) << made.status().message();
  EXPECT_EQ(floatsOf((*made)[0]), (std::vector<float>{6, 15}));
  const auto other = model->run(std::vector{x, ints({2}, {3, -1})});
  ASSERT_TRUE(other) << other.status().message();
  EXPECT_EQ(floatsOf((*other)[0]), (std::vector<float>{3, 7, 11}));
  const auto wrong = model->run(std::vector{x, ints({2}, {4, 2})});
  const std::string message = wrong.status().message();
  EXPECT_EQ(message.rfind("m.onnx: node 'reshape' (Reshape): ", 0), 0u) << message;
  EXPECT_EQ(message.find("m.onnx", 1), std::string::npos) << "file and node once: " << message;
}

TEST(Script, NamesTheInputsWhoseContentsItWaitsFor) {
  for (const bool shapeOnly : {false, true}) {
    ModelMaker maker;
    maker.input("x", {4})
        .input("half", {1}, TensorProto::INT64)
        .input("unrelated", {4})
        .output("y");
    maker.node(shapeOnly ? "Shape" : "Add",
               shapeOnly ? std::vector<std::string>{"half"}
                         : std::vector<std::string>{"half", "half"},
               {"shape"});
    maker.node("Add", {"x", "unrelated"}, {"sum"});
    maker.node("Expand", {"sum", "shape"}, {"y"});
    const std::string folder = test::scratchFolder();
    auto model = import::onnx_io::readModel(maker.write(folder + "/m.onnx"));
    std::filesystem::remove_all(folder);
    ASSERT_TRUE(model);
    auto script = import::importScript(
        std::make_shared<const import::onnx_io::Model>(std::move(model).value()));
    ASSERT_TRUE(script) << script.status().message();
    EXPECT_EQ(script->demandedInputs(),
              shapeOnly ? std::vector<std::string>() : std::vector<std::string>{"half"});
  }
}

TEST(FlowModel, ABranchThatCannotBeIsAnErrorWhereItIsTakenAlsoFromABundle) {
  ModelMaker maker;
  maker.input("p", {}, TensorProto::BOOL).input("x", {2, 3}).output("y");
  auto& node = maker.node("If", {"p"}, {"y"}, "if");
  for (const char* side : {"then_branch", "else_branch"}) {
    auto* attribute = node.add_attribute();
    attribute->set_name(side);
    attribute->set_type(onnx::AttributeProto::GRAPH);
    const bool then = side[0] == 't';
    addNode(*attribute->mutable_g(), then ? "Neg" : "MatMul",
            then ? std::vector<std::string>{"x"} : std::vector<std::string>{"x", "x"}, {"v"},
            "inner");
    attribute->mutable_g()->add_output()->set_name("v");
  }
  const auto model = compiled(maker);
  ASSERT_TRUE(model);
  const std::string folder = test::scratchFolder();
  ASSERT_TRUE(model->save(folder + "/m.cdb"));
  auto stored = runtime::bundle::loadBundle(folder + "/m.cdb");
  ASSERT_TRUE(stored) << stored.status().message();
  const auto loaded = driver::FlowModel::load(std::move(stored).value());
  std::filesystem::remove_all(folder);
  ASSERT_TRUE(loaded) << loaded.status().message();
  const runtime::control_flow::Value x = floats({2, 3}, {1, 2, 3, 4, 5, 6});
  for (const auto* each : {model.get(), loaded->get()}) {
    const auto taken = [&](bool which) {
      return each->run(std::vector<runtime::control_flow::Value>{
          Tensor::of<uint8_t>(Elem::bool_, {}, {uint8_t(which)}), x});
    };
    const auto made = taken(true);
    ASSERT_TRUE(made) << made.status().message();
    EXPECT_EQ(floatsOf((*made)[0])[5], -6);
    const auto failed = taken(false);
    EXPECT_EQ(failed.status().code(), Code::bad_model);
    const std::string message = failed.status().message();
    EXPECT_EQ(message.rfind("m.onnx: node 'if/inner' (MatMul): ", 0), 0u) << message;
    EXPECT_NE(message.find("inner dims 3 and 2"), std::string::npos) << message;
  }
}

/// A Loop of `trips` turns that carries one value, into its body as the input to add and out of it
/// as w; its body.
onnx::GraphProto& addLoop(ModelMaker& maker, const std::string& from, const std::string& to) {
  auto* attribute = maker.node("Loop", {"trips", "", from}, {to}, "turns").add_attribute();
  attribute->set_name("body");
  attribute->set_type(onnx::AttributeProto::GRAPH);
  onnx::GraphProto& body = *attribute->mutable_g();
  test::fillValueInfo(*body.add_input(), "i", {}, TensorProto::INT64);
  test::fillValueInfo(*body.add_input(), "c", {}, TensorProto::BOOL);
  for (const char* output : {"c", "w"}) body.add_output()->set_name(output);
  return body;
}

/// A Loop whose body doubles what it carries; `shape`: what its body's input declares.
ModelMaker doubling(const std::vector<test::DimSpec>& shape, bool grows) {
  ModelMaker maker;
  maker.input("trips", {}, TensorProto::INT64).input("x", {2}).output("y");
  onnx::GraphProto& body = addLoop(maker, "x", "y");
  test::fillValueInfo(*body.add_input(), "v", shape, TensorProto::FLOAT);
  if (grows) setAttr(addNode(body, "Concat", {"v", "v"}, {"w"}), "axis", 0);
  if (!grows) addNode(body, "Add", {"v", "v"}, {"w"});
  return maker;
}

TEST(FlowModel, LoopsTurnAsOftenAsARunSays) {
  const auto model = compiled(doubling({2}, false));
  ASSERT_TRUE(model);
  const auto made = model->run(std::vector{ints({}, {5}), floats({2}, {1, 3})});
  ASSERT_TRUE(made) << made.status().message();
  EXPECT_EQ(floatsOf((*made)[0]), (std::vector<float>{32, 96}));
  EXPECT_EQ(model->specializations(), 0u) << "the body's shapes are known";
  const auto endless = model->run(std::vector{ints({}, {int64_t(1) << 62}), floats({2}, {1, 3})});
  EXPECT_EQ(endless.status().message(),
            "m.onnx: node 'turns': its condition never ends it and its trip count of "
            "4611686018427387904 is beyond 4194304");
}

TEST(FlowModel, SequencesThatWaitAreCarried) {
  ModelMaker maker(18);
  maker.input("x", {"n"}).input("trips", {}, TensorProto::INT64).output("y");
  maker.node("SplitToSequence", {"x"}, {"s"}, "split"); // as many as the run has
  onnx::GraphProto& body = addLoop(maker, "s", "longer");
  body.add_input()->set_name("v");
  addNode(body, "SequenceInsert", {"v", "x"}, {"w"});
  setAttr(maker.node("ConcatFromSequence", {"longer"}, {"y"}), "axis", 0);
  const auto model = compiled(maker);
  ASSERT_TRUE(model);
  const auto made = model->run(std::vector{floats({2}, {1, 3}), ints({}, {2})});
  ASSERT_TRUE(made) << made.status().message();
  EXPECT_EQ(floatsOf((*made)[0]), (std::vector<float>{1, 3, 1, 3, 1, 3}));
}

/// What the model says, at import or at run.
std::string problemOf(const ModelMaker& maker,
                      const std::vector<runtime::control_flow::Value>& inputs) {
  Status status;
  const auto model = compiled(maker, &status);
  return model ? model->run(inputs).status().message() : status.message();
}

TEST(FlowModel, WhatIsNoSequenceIsNamed) {
  for (const char* op : {"ConcatFromSequence", "SequenceLength", "SequenceErase"}) {
    ModelMaker maker;
    maker.input("x", {"n"}).output("y");
    auto& node = maker.node(op, {"x"}, {"y"}, "it");
    if (std::string_view(op) == "ConcatFromSequence") setAttr(node, "axis", 0);
    EXPECT_NE(problemOf(maker, {floats({2}, {1, 2})}).find("sequence"), std::string::npos) << op;
  }
  ModelMaker split;
  split.input("x", {4}).input("sizes", {}).output("y");
  split.node("SplitToSequence", {"x", "sizes"}, {"s"}, "split");
  split.node("SequenceLength", {"s"}, {"y"});
  EXPECT_NE(problemOf(split, {floats({4}, {1, 2, 3, 4}), floats({}, {2})})
                .find("its split is f32[], expected integers"),
            std::string::npos);
  ModelMaker many;
  many.input("x", {70000}).input("sizes", {70000}, TensorProto::INT64).output("y");
  many.node("SplitToSequence", {"x", "sizes"}, {"s"}, "split");
  many.node("SequenceLength", {"s"}, {"y"});
  const std::string message = problemOf(many, {floats({70000}, std::vector<float>(70000)),
                                               ints({70000}, std::vector<int64_t>(70000, 1))});
  EXPECT_NE(message.find("its split has more than 65536 sizes"), std::string::npos) << message;
}

TEST(FlowModel, BundleHoldsItsStepsButNoPartsThatWait) {
  const auto model = compiled(doubling({2}, false)), growing = compiled(doubling({"n"}, true));
  ASSERT_TRUE(model && growing);
  const std::string folder = test::scratchFolder(), path = folder + "/m.cdb";
  ASSERT_TRUE(model->save(path)) << model->save(path).message();
  auto bundle = runtime::bundle::loadBundle(path);
  ASSERT_TRUE(bundle) << bundle.status().message();
  auto loaded = driver::FlowModel::load(std::move(bundle).value());
  ASSERT_TRUE(loaded) << loaded.status().message();
  EXPECT_EQ((*loaded)->flow().text(), model->flow().text());
  const auto made = (*loaded)->run(std::vector{ints({}, {5}), floats({2}, {1, 3})});
  ASSERT_TRUE(made) << made.status().message();
  EXPECT_EQ(floatsOf((*made)[0]), (std::vector<float>{32, 96}));
  EXPECT_EQ(
      growing->save(path).message(),
      "node 'turns/Concat_0' is compiled for the shapes of each run, which no bundle can hold");
  EXPECT_TRUE(runtime::bundle::loadBundle(path)) << "a file that is there survives a failure";
  std::filesystem::remove_all(folder);
}

TEST(FlowModel, CarriedShapesMayChangeWhereTheBodyDeclaresNone) {
  ModelMaker maker = doubling({"n"}, true);
  const auto model = compiled(maker);
  ASSERT_TRUE(model);
  const auto made = model->run(std::vector{ints({}, {3}), floats({2}, {1, 3})});
  ASSERT_TRUE(made) << made.status().message();
  EXPECT_EQ((*made)[0].tensor.dims, Shape{16});
  Status status;
  EXPECT_FALSE(compiled(doubling({2}, true), &status));
  EXPECT_EQ(status.message(),
            "m.onnx: node 'turns' (Loop): its body turns carried value 'v' from f32[2] to f32[4]");
}

} // namespace
} // namespace candela
