#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <onnx/onnx-data_pb.h>

#include "core/compiler/import/onnx_io/values.h"
#include "tests/unit/compiler/import/model_maker.h"

namespace candela::test {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

class OnnxIo : public testing::Test {
protected:
  void SetUp() override { folder = scratchFolder(); }
  void TearDown() override { fs::remove_all(folder); }
  Result<Tensor> read(const TensorProto& proto) {
    writeBytes(folder + "/t.pb", proto.SerializeAsString());
    return import::onnx_io::readTensor(folder + "/t.pb");
  }
  Result<import::onnx_io::Model> read(const onnx::ModelProto& proto) {
    writeBytes(folder + "/m.onnx", proto.SerializeAsString());
    return import::onnx_io::readModel(folder + "/m.onnx");
  }
  /// A model whose only tensor lies outside of it.
  ModelMaker external(const std::string& location, const std::string& offset = "",
                      const std::string& length = "") {
    ModelMaker maker;
    auto* tensor = maker.proto.mutable_graph()->add_initializer();
    tensor->set_name("w");
    tensor->set_data_type(TensorProto::FLOAT);
    tensor->add_dims(4);
    tensor->set_data_location(TensorProto::EXTERNAL);
    const auto entry = [&](const char* key, const std::string& value) {
      auto* added = tensor->add_external_data();
      added->set_key(key);
      added->set_value(value);
    };
    entry("location", location);
    if (!offset.empty()) entry("offset", offset);
    if (!length.empty()) entry("length", length);
    return maker;
  }
  std::string folder;
};

TensorProto typed(int type, std::vector<int64_t> dims) {
  TensorProto proto;
  proto.set_data_type(type);
  for (int64_t dim : dims) proto.add_dims(dim);
  return proto;
}

TEST_F(OnnxIo, ReadsEveryTypedField) {
  auto floats = read(tensorProto("", {2}, std::vector<float>{1.5f, -2}));
  ASSERT_TRUE(floats) << messageOf(floats);
  EXPECT_EQ(floats->typeText(), "f32[2]");
  EXPECT_EQ(floats->as<float>()[1], -2.0f);

  TensorProto doubles = typed(TensorProto::DOUBLE, {1});
  doubles.add_double_data(0.1);
  EXPECT_EQ(read(doubles)->as<double>()[0], 0.1);

  EXPECT_EQ(read(tensorProto("", {2}, std::vector<int64_t>{INT64_MIN, 7}))->toInts(),
            (std::vector<int64_t>{INT64_MIN, 7}));

  TensorProto words = typed(TensorProto::UINT32, {1});
  words.add_uint64_data(4000000000u);
  EXPECT_EQ(read(words)->toInts(), std::vector<int64_t>{4000000000});
  TensorProto longs = typed(TensorProto::UINT64, {1});
  longs.add_uint64_data(UINT64_MAX);
  EXPECT_EQ(read(longs)->as<uint64_t>()[0], UINT64_MAX);

  const std::pair<int, int> narrow[] = {{TensorProto::INT8, -128},    {TensorProto::UINT8, 255},
                                        {TensorProto::INT16, -32768}, {TensorProto::UINT16, 65535},
                                        {TensorProto::INT32, -5},     {TensorProto::BOOL, 1}};
  for (const auto& [type, value] : narrow) {
    TensorProto proto = typed(type, {1});
    proto.add_int32_data(value);
    auto tensor = read(proto);
    ASSERT_TRUE(tensor) << messageOf(tensor);
    EXPECT_EQ(tensor->toInts(), std::vector<int64_t>{value}) << tensor->typeText();
  }
  for (int type : {TensorProto::FLOAT16, TensorProto::BFLOAT16}) {
    TensorProto proto = typed(type, {1});
    proto.add_int32_data(0xfc00);
    EXPECT_EQ(read(proto)->as<uint16_t>()[0], 0xfc00);
  }
}

TEST_F(OnnxIo, ReadsTypesBeyondTheSchema) {
  TensorProto nibbles = typed(22, {3}); // INT4, two in each value
  nibbles.add_int32_data(0x21);
  nibbles.add_int32_data(0x0f);
  auto tensor = read(nibbles);
  ASSERT_TRUE(tensor) << messageOf(tensor);
  EXPECT_EQ(tensor->typeText(), "i4[3]");
  EXPECT_EQ(tensor->as<uint8_t>()[0], 0x21);
  EXPECT_EQ(tensor->as<uint8_t>()[1], 0x0f);
  TensorProto float8 = typed(17, {2});
  float8.set_raw_data("\x38\x40");
  EXPECT_EQ(read(float8)->typeText(), "f8e4m3[2]");
  TensorProto pairs = typed(26, {5}); // INT2, four in each value
  pairs.add_int32_data(0xe4);
  pairs.add_int32_data(0x02);
  EXPECT_EQ(read(pairs)->toInts(), (std::vector<int64_t>{0, 1, -2, -1, -2}));
  TensorProto six = typed(27, {5}); // FLOAT6E2M3, four in three bytes
  six.set_raw_data(std::string("\x41\x30\x10\x05", 4));
  auto unpacked = read(six);
  ASSERT_TRUE(unpacked) << messageOf(unpacked);
  const uint8_t* elements = unpacked->as<uint8_t>();
  EXPECT_EQ(std::vector<uint8_t>(elements, elements + 5), (std::vector<uint8_t>{1, 1, 3, 4, 5}));
  TensorProto each = typed(28, {2}); // or one in each value
  each.add_int32_data(0x3f);
  each.add_int32_data(0x40);
  EXPECT_THAT(messageOf(read(each)), HasSubstr("holds 64 at 1, which is no f6e3m2"));
  auto unknown = read(typed(29, {1}));
  EXPECT_EQ(unknown.status().code(), Code::unsupported);
  EXPECT_THAT(messageOf(unknown), HasSubstr("t.pb: element type 29 is not supported"));
  EXPECT_EQ(read(typed(TensorProto::STRING, {1})).status().code(), Code::unsupported);
  EXPECT_THAT(messageOf(read(typed(TensorProto::COMPLEX64, {1}))), HasSubstr("COMPLEX64 (14)"));
}

TEST_F(OnnxIo, ReadsRawDataAndScalars) {
  TensorProto raw = typed(TensorProto::INT32, {2, 1});
  raw.set_raw_data(std::string("\x01\0\0\0\xff\xff\xff\xff", 8));
  EXPECT_EQ(read(raw)->toInts(), (std::vector<int64_t>{1, -1}));
  EXPECT_EQ(read(tensorProto("", {}, std::vector<float>{3}))->count(), 1);
  auto empty = read(typed(TensorProto::FLOAT, {0, 5}));
  ASSERT_TRUE(empty) << messageOf(empty);
  EXPECT_EQ(empty->count(), 0);
}

TEST_F(OnnxIo, RefusesTensorsThatContradictThemselves) {
  EXPECT_THAT(messageOf(read(tensorProto("", {3}, std::vector<float>{1}))),
              HasSubstr("float_data has 1 values but f32[3] needs 3"));
  EXPECT_THAT(messageOf(read(typed(TensorProto::FLOAT, {1 << 20, 1 << 20}))),
              HasSubstr("has 0 values"));
  EXPECT_THAT(messageOf(read(typed(TensorProto::FLOAT, {-1}))), HasSubstr("impossible shape"));
  EXPECT_THAT(messageOf(read(typed(TensorProto::FLOAT, {int64_t(1) << 40, int64_t(1) << 40}))),
              HasSubstr("impossible shape"));
  TensorProto raw = typed(TensorProto::FLOAT, {2});
  raw.set_raw_data("1234");
  EXPECT_THAT(messageOf(read(raw)), HasSubstr("raw data has 4 bytes but f32[2] needs 8"));
  TensorProto wide = typed(TensorProto::INT8, {1});
  wide.add_int32_data(300);
  EXPECT_THAT(messageOf(read(wide)), HasSubstr("int32_data holds 300 at 0, which is no i8"));
  TensorProto truth = typed(TensorProto::BOOL, {2});
  truth.set_raw_data(std::string("\0\7", 2));
  EXPECT_THAT(messageOf(read(truth)), HasSubstr("element 1 of a bool tensor is 7"));
  EXPECT_THAT(messageOf(read(TensorProto())), HasSubstr("no element type"));
}

TEST_F(OnnxIo, RefusesWhatIsNoTensorFile) {
  EXPECT_EQ(import::onnx_io::readTensor(folder + "/absent.pb").status().code(), Code::not_found);
  EXPECT_EQ(import::onnx_io::readTensor(folder).status().code(), Code::io);
  // A sequence of tensors, as the node tests hold some: field 3 there is a tensor, here a segment.
  writeBytes(folder + "/s.pb", std::string("\x10\x01\x1a\x04\x08\x01\x10\x01", 8));
  EXPECT_EQ(import::onnx_io::readTensor(folder + "/s.pb").status().code(), Code::unsupported);
}

TEST_F(OnnxIo, ReadsSequencesAndOptionals) {
  onnx::SequenceProto sequence;
  sequence.set_elem_type(onnx::SequenceProto::TENSOR);
  writeBytes(folder + "/s.pb", sequence.SerializeAsString());
  EXPECT_EQ(import::onnx_io::readSequence(folder + "/s.pb")->size(), 0u);
  *sequence.add_tensor_values() = tensorProto("", {2}, std::vector<float>{1, 2});
  *sequence.add_tensor_values() = tensorProto("", {}, std::vector<float>{3});
  writeBytes(folder + "/s.pb", sequence.SerializeAsString());
  const auto items = import::onnx_io::readSequence(folder + "/s.pb");
  ASSERT_TRUE(items) << messageOf(items);
  ASSERT_EQ(items->size(), 2u);
  EXPECT_EQ((*items)[0].typeText() + (*items)[1].typeText(), "f32[2]f32[]");
  EXPECT_EQ((*items)[1].as<float>()[0], 3);

  const auto optional = [&](const onnx::OptionalProto& proto) {
    writeBytes(folder + "/o.pb", proto.SerializeAsString());
    return import::onnx_io::readOptional(folder + "/o.pb");
  };
  using Kind = import::onnx_io::Optional::Kind;
  onnx::OptionalProto none, tensor, list;
  EXPECT_EQ(optional(none)->kind, Kind::nothing);
  *tensor.mutable_tensor_value() = sequence.tensor_values(0);
  EXPECT_EQ(optional(tensor)->kind, Kind::tensor);
  EXPECT_EQ(optional(tensor)->tensors.at(0).as<float>()[1], 2);
  *list.mutable_sequence_value() = sequence;
  EXPECT_EQ(optional(list)->kind, Kind::list);
  EXPECT_EQ(optional(list)->tensors.size(), 2u);
}

TEST_F(OnnxIo, RefusesSequencesAndOptionalsOfOtherThingsThanTensors) {
  const auto read = [&](const auto& proto, const auto& reader) {
    writeBytes(folder + "/v.pb", proto.SerializeAsString());
    return reader(folder + "/v.pb").status();
  };
  onnx::SequenceProto nested, wrong;
  nested.add_sequence_values();
  EXPECT_EQ(read(nested, import::onnx_io::readSequence).code(), Code::unsupported);
  *wrong.add_tensor_values() = tensorProto("", {}, std::vector<float>{3});
  *wrong.add_tensor_values() = tensorProto("", {3}, std::vector<float>{1});
  EXPECT_THAT(read(wrong, import::onnx_io::readSequence).message(),
              HasSubstr("item 1: float_data has 1 values"));
  onnx::OptionalProto inner, maps;
  inner.mutable_optional_value();
  EXPECT_EQ(read(inner, import::onnx_io::readOptional).code(), Code::unsupported);
  maps.mutable_map_value();
  EXPECT_EQ(read(maps, import::onnx_io::readOptional).code(), Code::unsupported);
  writeBytes(folder + "/v.pb", "\x1a\x7f");
  EXPECT_EQ(import::onnx_io::readOptional(folder + "/v.pb").status().code(), Code::bad_model);
  EXPECT_EQ(import::onnx_io::readSequence(folder + "/absent.pb").status().code(), Code::not_found);
}

TEST_F(OnnxIo, ReadsAModel) {
  ModelMaker maker(13);
  maker.setOpset("ai.onnx.ml", 2);
  maker.input("x", {1, "N", ""}).output("y", {}).initializer("w", {1}, std::vector<float>{2});
  auto& node = maker.node("Thing", {"x", "", "w"}, {"y"}, "first");
  node.set_domain("ai.onnx");
  setAttr(node, "i", 3);
  setAttr(node, "f", 0.5f);
  setAttr(node, "s", "text");
  setAttr(node, "is", std::vector<int64_t>{1, 2});
  setAttr(node, "t", tensorProto("", {1}, std::vector<int64_t>{9}));
  auto* strings = node.add_attribute();
  strings->set_name("ts");
  strings->set_type(onnx::AttributeProto::TENSORS);
  auto* body = node.add_attribute();
  body->set_name("g");
  body->set_type(onnx::AttributeProto::GRAPH);
  addNode(*body->mutable_g(), "Inner", {}, {"z"});
  auto model = read(maker.proto);
  ASSERT_TRUE(model) << messageOf(model);
  EXPECT_EQ(model->opsets, (std::map<std::string, int64_t>{{"", 13}, {"ai.onnx.ml", 2}}));
  ASSERT_EQ(model->graph.inputs.size(), 1u);
  EXPECT_EQ(model->graph.inputs[0].dims[0].value, 1);
  EXPECT_EQ(model->graph.inputs[0].dims[1].name, "N");
  EXPECT_EQ(model->graph.inputs[0].dims[2].value, -1);
  const import::onnx_io::Node& read = model->graph.nodes.at(0);
  EXPECT_EQ(read.domain, "");
  EXPECT_EQ(read.inputs, (std::vector<std::string>{"x", "", "w"}));
  EXPECT_EQ(std::get<int64_t>(read.attributes.at("i")), 3);
  EXPECT_EQ(std::get<float>(read.attributes.at("f")), 0.5f);
  EXPECT_EQ(std::get<std::string>(read.attributes.at("s")), "text");
  EXPECT_EQ(std::get<std::vector<int64_t>>(read.attributes.at("is")).size(), 2u);
  EXPECT_EQ(std::get<Tensor>(read.attributes.at("t")).toInts(), std::vector<int64_t>{9});
  EXPECT_EQ(std::get<import::onnx_io::UnsupportedAttribute>(read.attributes.at("ts")).what,
            "of type TENSORS");
  EXPECT_EQ(std::get<std::shared_ptr<import::onnx_io::Graph>>(read.attributes.at("g"))
                ->nodes.at(0)
                .opType,
            "Inner");
}

TEST_F(OnnxIo, ReadsFieldsThatAreNewerThanTheSchema) {
  ModelMaker maker;
  auto& node = maker.node("F", {}, {"y"});
  node.mutable_unknown_fields()->AddLengthDelimited(8, "wide");
  auto* function = maker.proto.add_functions();
  function->set_name("F");
  function->add_output("y");
  onnx::AttributeProto fallback;
  fallback.set_name("alpha");
  fallback.set_type(onnx::AttributeProto::FLOAT);
  fallback.set_f(0.25f);
  function->mutable_unknown_fields()->AddLengthDelimited(13, "wide");
  function->mutable_unknown_fields()->AddLengthDelimited(11, fallback.SerializeAsString());
  setAttrRef(addNode(*function, "Elu", {"x"}, {"y"}), "alpha", "alpha",
             onnx::AttributeProto::FLOAT);
  auto model = read(maker.proto);
  ASSERT_TRUE(model) << messageOf(model);
  EXPECT_EQ(model->graph.nodes[0].overload, "wide");
  EXPECT_EQ(model->functions.at(0).overload, "wide");
  EXPECT_EQ(std::get<float>(model->functions[0].attributeDefaults.at("alpha")), 0.25f);
  EXPECT_EQ(model->functions[0].nodes[0].attributeRefs.at("alpha"), "alpha");
}

TEST_F(OnnxIo, NamesFileNodeAndTensor) {
  ModelMaker maker;
  setAttr(maker.node("Constant", {}, {"c"}, "broken"), "value",
          tensorProto("", {2}, std::vector<float>{1}));
  EXPECT_EQ(messageOf(read(maker.proto)),
            folder + "/m.onnx: node 'broken' (Constant): attribute 'value': float_data has 1 "
                     "values but f32[2] needs 2");
  ModelMaker weights;
  weights.initializer("w", {2}, std::vector<float>{1});
  EXPECT_THAT(messageOf(read(weights.proto)),
              HasSubstr("m.onnx: initializer 'w': float_data has 1"));
  ModelMaker twice;
  auto& node = twice.node("Op", {}, {"y"});
  setAttr(node, "a", 1);
  setAttr(node, "a", 2);
  EXPECT_THAT(messageOf(read(twice.proto)),
              HasSubstr("node 'Op_0' (Op): attribute 'a' is given twice"));
  ModelMaker odd;
  odd.node("Op", {"a\nb"}, {"y"});
  EXPECT_THAT(messageOf(read(odd.proto)), HasSubstr("input 0: input is not printable UTF-8 text"));
  ModelMaker latin;
  latin.node("Op", {}, {"y"}, "caf\xe9");
  EXPECT_THAT(messageOf(read(latin.proto)),
              HasSubstr("node 'Op_0' (Op): the name is not printable"));
}

TEST_F(OnnxIo, RefusesWhatIsNoModel) {
  writeBytes(folder + "/m.onnx", "");
  EXPECT_THAT(messageOf(import::onnx_io::readModel(folder + "/m.onnx")),
              HasSubstr("no graph in it"));
  writeBytes(folder + "/m.onnx", "this is text, not protobuf");
  EXPECT_THAT(messageOf(import::onnx_io::readModel(folder + "/m.onnx")),
              HasSubstr("m.onnx: no ONNX model"));
  ModelMaker twice;
  twice.setOpset("ai.onnx", 12);
  EXPECT_THAT(messageOf(read(twice.proto)), HasSubstr("imported as version 17 and as version 12"));
}

TEST_F(OnnxIo, RefusesFilesThatProtobufCannotHold) {
  const std::string path = folder + "/big.onnx";
  writeBytes(path, "");
  fs::resize_file(path, uint64_t(1) << 31); // a hole: takes no disk
  EXPECT_THAT(messageOf(import::onnx_io::readModel(path)),
              HasSubstr("big.onnx: 2147483648 bytes, larger than 2 GB, protobuf's limit; store its "
                        "tensors as external data"));
}

TEST_F(OnnxIo, RefusesSubgraphsThatNestTooDeep) {
  onnx::GraphProto graph;
  addNode(graph, "Leaf", {}, {"y"});
  for (int i = 0; i < 200; ++i) {
    onnx::GraphProto outer;
    auto* attr = addNode(outer, "If", {}, {"y"}).add_attribute();
    attr->set_name("then_branch");
    attr->set_type(onnx::AttributeProto::GRAPH);
    *attr->mutable_g() = graph;
    graph = outer;
  }
  ModelMaker maker;
  *maker.proto.mutable_graph() = graph;
  EXPECT_THAT(messageOf(read(maker.proto)), HasSubstr("too deeply nested"));
}

TEST_F(OnnxIo, MapsExternalData) {
  const float values[] = {0, 1, 2, 3, 4, 5};
  fs::create_directory(folder + "/data");
  writeBytes(folder + "/data/w.bin",
             std::string(reinterpret_cast<const char*>(values), sizeof values));
  auto model = read(external("data/w.bin", "8", "16").proto);
  ASSERT_TRUE(model) << messageOf(model);
  const Tensor tensor = model->graph.initializers[0].tensor;
  model = import::onnx_io::Model(); // the mapping outlives the model
  EXPECT_EQ(tensor.as<float>()[0], 2.0f);
  EXPECT_EQ(tensor.as<float>()[3], 5.0f);
  // An offset that floats cannot lie at is read through a copy.
  auto odd = read(external("data/w.bin", "5").proto);
  ASSERT_TRUE(odd) << messageOf(odd);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(odd->graph.initializers[0].tensor.bytes.data()) % 4, 0u);
  fs::create_symlink("data/w.bin", folder + "/inside.bin");
  EXPECT_TRUE(read(external("inside.bin").proto).isOk());
}

TEST_F(OnnxIo, RefusesExternalDataThatIsNotTheModels) {
  writeBytes(folder + "/w.bin", std::string(20, 'x'));
  const auto message = [&](auto... args) { return messageOf(read(external(args...).proto)); };
  EXPECT_THAT(message("absent.bin"),
              HasSubstr("initializer 'w': external data 'absent.bin' does not exist"));
  EXPECT_THAT(message("../w.bin"), HasSubstr("leaves the model's folder with '..'"));
  EXPECT_THAT(message("sub/../../w.bin"), HasSubstr("leaves the model's folder with '..'"));
  EXPECT_THAT(message(folder + "/w.bin"), HasSubstr("absolute path"));
  EXPECT_THAT(message(""), HasSubstr("without a location"));
  EXPECT_THAT(message("."), HasSubstr("not a regular file"));
  EXPECT_THAT(message("w.bin", "8"),
              HasSubstr("has 20 bytes but the tensor needs 16 from offset 8"));
  EXPECT_THAT(message("w.bin", "18446744073709551615"),
              HasSubstr("needs 16 from offset 18446744073709551615"));
  EXPECT_THAT(message("w.bin", "-4"), HasSubstr("offset '-4' is no byte count"));
  EXPECT_THAT(message("w.bin", "0", "12"), HasSubstr("declares 12 bytes but the tensor needs 16"));
  fs::create_symlink("/etc/passwd", folder + "/escape.bin");
  EXPECT_THAT(message("escape.bin"), HasSubstr("symbolic link out of the model's folder"));
  fs::create_directory_symlink("/etc", folder + "/etc");
  EXPECT_THAT(message("etc/passwd"), HasSubstr("symbolic link out of the model's folder"));
  ASSERT_EQ(mkfifo((folder + "/pipe").c_str(), 0600), 0);
  EXPECT_THAT(message("pipe"), HasSubstr("not a regular file"));
}

} // namespace
} // namespace candela::test
