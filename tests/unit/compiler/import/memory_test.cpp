// What import reads and keeps: the elements of large tensors, in every form that a file may give
// them, once.
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/unit/compiler/import/model_maker.h"

namespace candela::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class Memory : public testing::Test {
protected:
  void TearDown() override { fs::remove_all(folder); }
  Result<import::onnx_io::Model> read(const std::string& bytes) {
    writeBytes(folder + "/m.onnx", bytes);
    return import::onnx_io::readModel(folder + "/m.onnx");
  }
  Result<import::onnx_io::Model> read(const onnx::ModelProto& proto) {
    return read(proto.SerializeAsString());
  }
  const std::string folder = scratchFolder();
};

constexpr int64_t kCount = 1000; // enough that the elements are kept apart

TensorProto big(const std::string& name, int type) {
  TensorProto proto;
  proto.set_name(name);
  proto.set_data_type(type);
  proto.add_dims(kCount);
  return proto;
}

/// Element i is i in each.
std::vector<TensorProto> everyForm() {
  std::vector<TensorProto> all;
  const auto add = [&](const char* name, int type, auto put) {
    all.push_back(big(name, type));
    for (int64_t i = 0; i < kCount; ++i) put(all.back(), i);
  };
  add("f32", TensorProto::FLOAT,
      [](TensorProto& t, int64_t i) { t.add_float_data(static_cast<float>(i)); });
  add("f64", TensorProto::DOUBLE,
      [](TensorProto& t, int64_t i) { t.add_double_data(static_cast<double>(i)); });
  add("i16", TensorProto::INT16,
      [](TensorProto& t, int64_t i) { t.add_int32_data(static_cast<int32_t>(i)); });
  add("i64", TensorProto::INT64, [](TensorProto& t, int64_t i) { t.add_int64_data(i); });
  add("u32", TensorProto::UINT32,
      [](TensorProto& t, int64_t i) { t.add_uint64_data(static_cast<uint64_t>(i)); });
  add("raw", TensorProto::INT32, [](TensorProto& t, int64_t i) {
    const auto value = static_cast<int32_t>(i);
    t.mutable_raw_data()->append(reinterpret_cast<const char*>(&value), sizeof value);
  });
  return all;
}

double elementOf(const Tensor& tensor, int64_t i) {
  if (tensor.elem == Elem::f32_) return tensor.as<float>()[i];
  if (tensor.elem == Elem::f64_) return tensor.as<double>()[i];
  return static_cast<double>(tensor.toInts()[i]);
}
void expectIota(const Tensor& tensor) {
  ASSERT_EQ(tensor.count(), kCount);
  for (int64_t i : {int64_t(0), int64_t(1), int64_t(500), kCount - 1})
    EXPECT_EQ(elementOf(tensor, i), static_cast<double>(i)) << elemName(tensor.elem);
}

TEST_F(Memory, ElementsComeFromWhereverATensorMayStand) {
  ModelMaker maker;
  const auto tensors = everyForm();
  auto* function = maker.proto.add_functions();
  function->set_name("F");
  for (const TensorProto& tensor : tensors) {
    *maker.proto.mutable_graph()->add_initializer() = tensor;
    setAttr(maker.node("Constant", {}, {"c" + tensor.name()}), "value", tensor);
    setAttr(addNode(*function, "Constant", {}, {"d" + tensor.name()}), "value", tensor);
    auto* attr = maker.node("If", {"x"}, {"e" + tensor.name()}).add_attribute();
    attr->set_name("then_branch");
    attr->set_type(onnx::AttributeProto::GRAPH);
    *attr->mutable_g()->add_initializer() = tensor;
  }
  const auto model = read(maker.proto);
  ASSERT_TRUE(model) << messageOf(model);
  ASSERT_EQ(model->graph.initializers.size(), tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    EXPECT_EQ(model->graph.initializers[i].name, tensors[i].name());
    expectIota(model->graph.initializers[i].tensor);
    expectIota(std::get<Tensor>(model->graph.nodes[2 * i].attributes.at("value")));
    const auto& body = std::get<std::shared_ptr<import::onnx_io::Graph>>(
        model->graph.nodes[2 * i + 1].attributes.at("then_branch"));
    expectIota(body->initializers.at(0).tensor);
    expectIota(std::get<Tensor>(model->functions.at(0).nodes[i].attributes.at("value")));
  }
}

/// A message as bytes: `field` of a wire type that has a length.
std::string delimited(int field, const std::string& content) {
  std::string out;
  const auto varint = [&](uint64_t value) {
    for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
    out += static_cast<char>(value);
  };
  varint(static_cast<uint64_t>(field) << 3 | 2);
  varint(content.size());
  return out + content;
}

constexpr int kGraph = 7, kInitializer = 5, kFloatData = 4, kRawData = 9;

/// A field that comes again goes on where it is a list, and else replaces what was there; so does
/// the graph itself.
TEST_F(Memory, PiecesKeepTheirOrder) {
  const std::string head = [] { return big("w", TensorProto::FLOAT).SerializeAsString(); }();
  const auto floats = [](int64_t from, int64_t to) {
    std::string bytes;
    for (int64_t i = from; i < to; ++i) {
      const auto value = static_cast<float>(i);
      bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
    return bytes;
  };
  const std::string list =
      head + delimited(kFloatData, floats(0, 300)) + delimited(kFloatData, floats(300, kCount));
  const std::string last =
      delimited(kRawData, floats(5, 9)) + head + delimited(kRawData, floats(0, kCount));
  const auto model = read(delimited(kGraph, delimited(kInitializer, list)) +
                          delimited(kGraph, delimited(kInitializer, last)));
  ASSERT_TRUE(model) << messageOf(model);
  ASSERT_EQ(model->graph.initializers.size(), 2u);
  for (const auto& initializer : model->graph.initializers) expectIota(initializer.tensor);
}

/// The number that stands where elements were left out means nothing in a file.
TEST_F(Memory, NoFileNamesElementsOfAnotherTensor) {
  ModelMaker maker;
  *maker.proto.mutable_graph()->add_initializer() = everyForm().front();
  TensorProto& thief = *maker.proto.mutable_graph()->add_initializer();
  thief = big("thief", TensorProto::FLOAT);
  thief.mutable_unknown_fields()->AddVarint((1 << 29) - 1, 0);
  EXPECT_THAT(messageOf(read(maker.proto)),
              HasSubstr("initializer 'thief': float_data has 0 values but f32[1000] needs 1000"));
}

TEST_F(Memory, MalformedElementsNameTheirTensor) {
  ModelMaker maker;
  std::string model = maker.proto.SerializeAsString();
  const std::string tensor =
      big("w", TensorProto::INT64).SerializeAsString() + delimited(7, std::string(2000, '\xff'));
  EXPECT_THAT(messageOf(read(model + delimited(kGraph, delimited(kInitializer, tensor)))),
              HasSubstr("m.onnx: initializer 'w': malformed elements"));
}

/// Nothing is read that protobuf would refuse as a whole, wherever a file ends and whichever bit is
/// wrong.
TEST_F(Memory, DamagedFilesAreRefusedAsProtobufRefusesThem) {
  ModelMaker maker;
  maker.input("x", {300}).output("y", {300});
  maker.initializer("w", {300}, std::vector<float>(300, 1.5f));
  setAttr(maker.node("Constant", {}, {"c"}), "value",
          tensorProto("", {1100}, std::vector<int64_t>(1100, 3)));
  maker.node("Add", {"x", "w"}, {"y"});
  const std::string whole = maker.proto.SerializeAsString();
  ASSERT_GT(whole.size(), 2300u);
  ASSERT_TRUE(read(whole).isOk());
  int accepted = 0;
  const auto check = [&](const std::string& bytes, const std::string& what) {
    onnx::ModelProto proto;
    const auto model = read(bytes);
    if (model) {
      ++accepted;
      EXPECT_TRUE(proto.ParsePartialFromString(bytes)) << what;
    } else {
      EXPECT_TRUE(model.status().message().starts_with(folder + "/m.onnx: "))
          << what << ": " << messageOf(model);
    }
  };
  for (size_t size = 0; size < whole.size(); size += 3)
    check(whole.substr(0, size), fmt::format("cut at {}", size));
  for (size_t at = 0; at < whole.size(); at += 5) {
    std::string flipped = whole;
    flipped[at] = static_cast<char>(flipped[at] ^ 1 << at / 5 % 8);
    check(flipped, fmt::format("flipped at {}", at));
  }
  EXPECT_GT(accepted, 0); // wrong weights are weights
}

TEST_F(Memory, TypesThatNobodyReadsAreNoMatter) {
  ModelMaker maker;
  maker.input("x", {2}).output("y", {2});
  maker.node("Relu", {"x"}, {"y"});
  TensorProto& text = *maker.proto.mutable_graph()->add_initializer();
  text.set_name("labels");
  text.set_data_type(TensorProto::STRING);
  text.add_dims(1);
  text.add_string_data("cat");
  EXPECT_TRUE(maker.import().isOk());
  maker.node("Foo", {"labels"}, {"z"});
  EXPECT_THAT(messageOf(maker.import()),
              HasSubstr("initializer 'labels': element type STRING (8) is not supported"));
}

uint64_t statusKb(const std::string& key) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(key + ":")) return std::stoull(line.substr(key.size() + 1));
  return 0;
}

/// What the import of a file adds to the most memory that a process has held, in KB; 0 when it
/// fails.
uint64_t importPeakKb(const std::string& path) {
  int ends[2];
  if (pipe(ends) != 0) return 0;
  const pid_t child = fork();
  if (child == 0) {
    const uint64_t before = statusKb("VmRSS");
    const auto graph = import::importModel(import::onnx_io::readModel(path).orAbort());
    const uint64_t added = graph ? std::max<uint64_t>(statusKb("VmHWM") - before, 1) : 0;
    _exit(write(ends[1], &added, sizeof added) == sizeof added ? 0 : 1);
  }
  uint64_t added = 0;
  close(ends[1]);
  if (::read(ends[0], &added, sizeof added) != sizeof added) added = 0;
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return added;
}

#ifdef __SANITIZE_ADDRESS__
constexpr bool kExact = false; // what is freed is kept for a while
#else
constexpr bool kExact = true;
#endif

/// 64 MB in eight tensors: the file's pages go as the tensors come.
TEST_F(Memory, ImportHoldsEachElementOnce) {
  if (!kExact) GTEST_SKIP() << "measured without sanitizers";
  constexpr int64_t kRows = 2048, kColumns = 1024, kTensors = 8;
  for (const bool raw : {true, false}) {
    {
      ModelMaker maker;
      maker.input("v0", {1, kRows});
      for (int64_t i = 0; i < kTensors; ++i) {
        TensorProto& proto = *maker.proto.mutable_graph()->add_initializer();
        proto.set_name(fmt::format("w{}", i));
        proto.set_data_type(TensorProto::FLOAT);
        proto.add_dims(kRows);
        proto.add_dims(kColumns);
        if (raw)
          proto.mutable_raw_data()->assign(kRows * kColumns * sizeof(float), static_cast<char>(i));
        else
          proto.mutable_float_data()->Resize(kRows * kColumns, static_cast<float>(i));
        maker.node("MatMul", {"v0", proto.name()}, {fmt::format("y{}", i)});
        maker.output(fmt::format("y{}", i), {1, kColumns});
      }
      maker.write(folder + "/m.onnx");
    }
    const uint64_t fileKb = fs::file_size(folder + "/m.onnx") / 1024,
                   addedKb = importPeakKb(folder + "/m.onnx");
    EXPECT_GT(addedKb, 0u);
    EXPECT_LT(addedKb, fileKb * 3 / 2) << "raw " << raw << ", file " << fileKb << " KB";
  }
}

/// Tables that lie in one file beside the model, mostly holes, larger than any protobuf: nothing
/// reads them at import.
TEST_F(Memory, ExternalDataIsNotReadAtImport) {
  constexpr int64_t kRows = 2200000, kWidth = 256;
  constexpr uint64_t kBytes = kRows * kWidth * sizeof(float), kSecond = 4096 + kBytes;
  std::ofstream(folder + "/w.bin") << "";
  fs::resize_file(folder + "/w.bin", kSecond + kBytes);
  ModelMaker maker;
  maker.input("i", {3}, TensorProto::INT64);
  uint64_t offset = 4096;
  for (const char* name : {"first", "second"}) {
    TensorProto& proto = *maker.proto.mutable_graph()->add_initializer();
    proto.set_name(name);
    proto.set_data_type(TensorProto::FLOAT);
    proto.add_dims(kRows);
    proto.add_dims(kWidth);
    proto.set_data_location(TensorProto::EXTERNAL);
    const auto entry = [&](const char* key, const std::string& value) {
      auto* pair = proto.add_external_data();
      pair->set_key(key);
      pair->set_value(value);
    };
    entry("location", "w.bin");
    entry("offset", std::to_string(offset));
    entry("length", std::to_string(kBytes));
    maker.node("Gather", {name, "i"}, {fmt::format("{}_rows", name)});
    maker.output(fmt::format("{}_rows", name), {3, kWidth});
    offset = kSecond;
  }
  maker.write(folder + "/m.onnx");
  const uint64_t addedKb = importPeakKb(folder + "/m.onnx");
  EXPECT_GT(addedKb, 0u);
  EXPECT_LT(addedKb, 64u * 1024);
}

} // namespace
} // namespace candela::test
