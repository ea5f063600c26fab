// Truncated and bit-flipped models: import gives a Graph or one clear error. The seeds are fixed;
// what is found stays found.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "core/compiler/graph/graph.h"
#include "core/compiler/import/import.h"
#include "core/support/file.h"

namespace candela::test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kNodeTests = "/usr/share/libonnx-testdata/data/node/";

std::string readBytes(const std::string& path) {
  const auto bytes = mapFile(path);
  EXPECT_TRUE(bytes.isOk()) << path;
  return bytes ? std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size()) : "";
}

class Mutations : public testing::TestWithParam<std::string> {
protected:
  void SetUp() override {
    ASSERT_TRUE(fs::exists(GetParam())) << GetParam() << " is not installed";
    original = readBytes(GetParam());
    ASSERT_FALSE(original.empty());
    path =
        (fs::path(testing::TempDir()) / fmt::format("candela_mutation_{}.onnx", getpid())).string();
  }
  void TearDown() override { fs::remove(path); }

  /// Imports with every named dim bound, so that the walk gets far.
  void import(const std::string& bytes, const std::string& what) {
    std::ofstream(path, std::ios::binary) << bytes;
    auto model = import::onnx_io::readModel(path);
    if (!model) {
      judge(model.status(), what);
      return;
    }
    import::ImportOptions options;
    for (const import::onnx_io::ValueInfo& input : model->graph.inputs)
      for (const import::onnx_io::Dim& dim : input.dims)
        if (dim.value < 0 && !dim.name.empty()) options.dims[dim.name] = 2;
    const auto graph = import::importModel(*model, options);
    if (!graph) {
      judge(graph.status(), what);
      return;
    }
    ++imported;
    const Status status = graph::verify(*graph);
    EXPECT_TRUE(status.isOk()) << what << ": " << status.message();
  }

  /// Every line names the file and says something.
  void judge(const Status& status, const std::string& what) {
    ++refused;
    EXPECT_NE(status.code(), Code::internal) << what << ": " << status.message();
    std::istringstream lines(status.message());
    int count = 0;
    for (std::string line; std::getline(lines, line); ++count) {
      EXPECT_TRUE(line.starts_with(path + ": ")) << what << ": " << line;
      EXPECT_GT(line.size(), path.size() + 5) << what << ": " << line;
    }
    EXPECT_GT(count, 0) << what;
  }

  std::string original, path;
  int imported = 0, refused = 0;
};

TEST_P(Mutations, Truncations) {
  const size_t count = std::min<size_t>(original.size(), 150);
  for (size_t i = 0; i < count; ++i) {
    const size_t size = original.size() * i / count;
    import(original.substr(0, size), fmt::format("cut at {}", size));
  }
  EXPECT_GT(refused, 0);
}

TEST_P(Mutations, BitFlips) {
  // Weights make up most of a file and change nothing: half of the flips go to the rest.
  const size_t head = std::min<size_t>(original.size(), 2048);
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const uint64_t random = splitmix64(seed);
    std::string bytes = original;
    const size_t range = seed % 2 ? original.size() : head;
    // the graph's tail holds inputs and outputs
    const size_t from = seed % 4 == 0 ? original.size() - head : 0;
    const size_t at = seed % 2 ? random % range : from + random % range;
    bytes[at] = static_cast<char>(bytes[at] ^ 1 << (random >> 60 & 7));
    import(bytes, fmt::format("flipped bit {} of byte {}", random >> 60 & 7, at));
  }
  EXPECT_GT(imported, 0);
  EXPECT_GT(refused, 0);
}

constexpr int64_t kExtremes[] = {INT64_MIN,        -(int64_t(1) << 48), -1,       0, 1, 7,
                                 int64_t(1) << 31, int64_t(1) << 48,    INT64_MAX};

/// Calls `visit` with the model once for every integer of an attribute and every extreme that takes
/// its place.
template <typename Visit> void withExtremeAttributes(import::onnx_io::Model& model, Visit visit) {
  for (import::onnx_io::Node& node : model.graph.nodes)
    for (auto& [name, attribute] : node.attributes) {
      const import::onnx_io::Attribute kept = attribute;
      for (int64_t extreme : kExtremes) {
        if (std::holds_alternative<int64_t>(kept)) {
          attribute = extreme;
          visit(name, extreme);
        }
        if (const auto* ints = std::get_if<std::vector<int64_t>>(&kept))
          for (size_t i = 0; i < ints->size(); ++i) {
            auto changed = *ints;
            changed[i] = extreme;
            attribute = changed;
            visit(name, extreme);
          }
      }
      attribute = kept;
    }
}

/// The same for the small integer inputs, which are frozen.
template <typename Visit>
void withExtremeOperands(const std::string& folder, const import::onnx_io::Model& model,
                         import::ImportOptions& options, Visit visit) {
  for (size_t i = 0; i < model.graph.inputs.size(); ++i) {
    const import::onnx_io::ValueInfo& input = model.graph.inputs[i];
    if (input.elem != Elem::i64_) continue;
    const auto tensor =
        import::onnx_io::readTensor(fmt::format("{}/test_data_set_0/input_{}.pb", folder, i));
    if (!tensor || tensor->count() > 16) continue;
    options.frozen[input.name] = *tensor;
  }
  const auto frozen = options.frozen;
  for (const auto& [name, tensor] : frozen) {
    for (int64_t extreme : kExtremes)
      for (int64_t i = 0; i < tensor.count(); ++i) {
        std::vector<int64_t> values = tensor.toInts();
        values[i] = extreme;
        options.frozen[name] = Tensor::of<int64_t>(Elem::i64_, tensor.dims, values);
        visit(name, extreme);
      }
    options.frozen[name] = tensor;
  }
}

TEST(ExtremeValues, AreRefusedOrMeanSomething) {
  ASSERT_TRUE(fs::exists(kNodeTests)) << kNodeTests << " is not installed";
  int imported = 0, refused = 0;
  for (const auto& entry : fs::directory_iterator(kNodeTests)) {
    auto model = import::onnx_io::readModel((entry.path() / "model.onnx").string());
    if (!model) continue;
    import::ImportOptions options;
    const auto import = [&](const std::string& name, int64_t extreme) {
      const auto graph = import::importModel(*model, options);
      ++(graph ? imported : refused);
      if (!graph) {
        EXPECT_NE(graph.status().code(), Code::internal) << graph.status().message();
      }
      const Status status = graph ? graph::verify(*graph) : Status::ok();
      EXPECT_TRUE(status.isOk()) << entry.path() << ", " << name << " = " << extreme << ": "
                                 << status.message();
    };
    withExtremeOperands(entry.path().string(), *model, options, import);
    withExtremeAttributes(*model, import);
  }
  EXPECT_GT(imported, 500);
  EXPECT_GT(refused, 500);
}

INSTANTIATE_TEST_SUITE_P(
    Models, Mutations,
    testing::Values(CANDELA_SOURCE_DIR "/examples/digits/digits.onnx",
                    std::string(kNodeTests) +
                        "test_layer_normalization_4d_axis1_expanded/model.onnx",
                    std::string(kNodeTests) + "test_softmax_axis_0_expanded/model.onnx",
                    std::string(kNodeTests) + "test_conv_with_autopad_same/model.onnx"));

} // namespace
} // namespace candela::test
