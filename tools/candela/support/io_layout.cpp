#include "tools/candela/support/io_layout.h"

#include <algorithm>

#include "core/compiler/import/onnx_io/write.h"
#include "tools/candela/support/temporary_file.h"

namespace candela::tool {
namespace {

namespace onnx_io = import::onnx_io;

constexpr size_t kImageRank = 4;

class Borders {
public:
  explicit Borders(onnx_io::Graph& graph) : graph_(graph) {
    for (const onnx_io::Initializer& each : graph.initializers) constants_.insert(each.name);
  }

  /// How many inputs and outputs were changed.
  size_t change() {
    size_t count = 0;
    for (onnx_io::ValueInfo& input : graph_.inputs)
      if (isImage(input) && !constants_.count(input.name)) {
        changeInput(input);
        ++count;
      }
    for (onnx_io::ValueInfo& output : graph_.outputs)
      if (isImage(output)) {
        changeOutput(output);
        ++count;
      }
    return count;
  }

private:
  static bool isImage(const onnx_io::ValueInfo& value) {
    return value.hasShape && value.dims.size() == kImageRank;
  }
  static void putChannelsLast(onnx_io::ValueInfo& value) {
    std::rotate(value.dims.begin() + 1, value.dims.begin() + 2, value.dims.end());
  }
  static onnx_io::Node transpose(const std::string& from, const std::string& to,
                                 std::vector<int64_t> perm) {
    onnx_io::Node node;
    node.name = to + "_transpose";
    node.opType = "Transpose";
    node.inputs = {from};
    node.outputs = {to};
    node.attributes["perm"] = std::move(perm);
    return node;
  }

  void changeInput(onnx_io::ValueInfo& input) {
    const std::string inside = fresh(input.name + "_nchw");
    for (onnx_io::Node& node : graph_.nodes) std::ranges::replace(node.inputs, input.name, inside);
    for (onnx_io::ValueInfo& output : graph_.outputs)
      if (output.name == input.name)
        fail(kBadInput, "--io-layout: input '{}' is an output too", input.name);
    putChannelsLast(input);
    graph_.nodes.insert(graph_.nodes.begin(), transpose(input.name, inside, {0, 3, 1, 2}));
  }

  void changeOutput(onnx_io::ValueInfo& output) {
    putChannelsLast(output);
    const auto producer = std::ranges::find_if(graph_.nodes, [&](const onnx_io::Node& node) {
      return std::ranges::count(node.outputs, output.name) > 0;
    });
    if (producer == graph_.nodes.end()) return; // an initializer: what it is stays
    const bool isUsed = std::ranges::any_of(graph_.nodes, [&](const onnx_io::Node& node) {
      return std::ranges::count(node.inputs, output.name) > 0;
    });
    if (isDequantized(*producer) && !isUsed) { // bytes are moved, not floats
      const std::string moved = fresh(output.name + "_nhwc");
      onnx_io::Node before = transpose(producer->inputs[0], moved, {0, 2, 3, 1});
      producer->inputs[0] = moved;
      graph_.nodes.insert(producer, std::move(before));
      return;
    }
    const std::string inside = fresh(output.name + "_nchw");
    for (onnx_io::Node& node : graph_.nodes) {
      std::ranges::replace(node.inputs, output.name, inside);
      std::ranges::replace(node.outputs, output.name, inside);
    }
    graph_.nodes.push_back(transpose(inside, output.name, {0, 2, 3, 1}));
  }

  /// By one scale, so that the order of elements is the same before and behind it.
  bool isDequantized(const onnx_io::Node& node) const {
    if (node.opType != "DequantizeLinear" || node.inputs.size() < 2) return false;
    const auto scale =
        std::ranges::find(graph_.initializers, node.inputs[1], &onnx_io::Initializer::name);
    return scale != graph_.initializers.end() && scale->tensor.count() == 1;
  }

  /// A name that no value has.
  std::string fresh(const std::string& wanted) const {
    std::set<std::string> taken = constants_;
    for (const onnx_io::Node& node : graph_.nodes) {
      taken.insert(node.outputs.begin(), node.outputs.end());
      taken.insert(node.inputs.begin(), node.inputs.end());
    }
    std::string name = wanted;
    while (taken.count(name)) name += "_";
    return name;
  }

  onnx_io::Graph& graph_;
  std::set<std::string> constants_;
};

} // namespace

void layOutBorders(ModelOptions& options) {
  if (options.ioLayout.empty()) return;
  if (options.ioLayout != "nhwc")
    fail(kBadInput, "--io-layout {}: there is nhwc, channels last", options.ioLayout);
  if (!endsWith(options.path, ".onnx"))
    fail(kBadInput, "{}: --io-layout is for ONNX models", options.path);
  onnx_io::Model model = check(onnx_io::readModel(options.path));
  if (Borders(model.graph).change() == 0)
    fail(kBadInput, "{}: --io-layout: no input or output is known to have four dims", options.path);
  auto file = std::make_shared<const TemporaryFile>();
  check(onnx_io::writeModel(model, file->path()).context(options.path), kWorkFailed);
  options.rewritten = std::move(file);
}

} // namespace candela::tool
