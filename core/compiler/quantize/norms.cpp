// Norms of rows, found from their last node backward: a product with a constant row of what was
// divided by the root of a mean square. What is centred before that is a LayerNorm, which may have
// another row added behind it.
#include "core/compiler/quantize/norms.h"

#include <algorithm>
#include <optional>

namespace candela::quantize {
namespace {

using import::onnx_io::Node;

constexpr int64_t kLayerNormOpset = 17;
constexpr int64_t kRmsNormOpset = 23;
constexpr int64_t kRmsNormIr = 11;

/// A norm as it is written out.
struct WrittenNorm {
  std::string x;
  std::string scale;
  std::string bias; ///< of LayerNorm; empty: none
  float epsilon = 0;
  bool centres = false;
  int last = -1;         ///< the node that gives the result
  std::set<int> between; ///< nodes that nothing else reads
};

class Matcher {
public:
  explicit Matcher(const Network& network) : network_(network) {}

  /// The norm whose product with a row this node is.
  std::optional<WrittenNorm> normAt(int index) {
    const Node& node = network_.node(index);
    if (!is(node, "Mul")) return std::nullopt;
    for (const size_t side : {0, 1}) {
      norm_ = {};
      norm_.last = index;
      norm_.scale = node.inputs[1 - side];
      if (!isRow(norm_.scale) || !takeNormal(node.inputs[side])) continue;
      takeCentre();
      takeBias();
      return norm_;
    }
    return std::nullopt;
  }

private:
  static bool is(const Node& node, const char* op) {
    return node.opType == op && node.domain.empty();
  }
  /// One number is a factor of any row: what it scales may be of another length.
  bool isRow(const std::string& value) const {
    const Tensor* row = network_.constant(value);
    return row && row->elem == Elem::f32_ && row->dims.size() == 1 && row->count() > 1;
  }
  std::optional<float> scalar(const std::string& value) const {
    const Tensor* tensor = network_.constant(value);
    if (!tensor || tensor->elem != Elem::f32_ || tensor->count() != 1) return std::nullopt;
    return tensor->as<float>()[0];
  }

  /// The node of this operator that gives the value, which nothing reads beside `readers` uses of
  /// the norm; null: there is none.
  const Node* inner(const std::string& value, const char* op, size_t readers = 1) {
    const int from = network_.producer(value);
    if (from < 0 || !is(network_.node(from), op) || network_.isOutput(value)) return nullptr;
    if (network_.users(value).size() != readers) return nullptr;
    norm_.between.insert(from);
    return &network_.node(from);
  }

  /// x divided by its root mean square.
  bool takeNormal(const std::string& value) {
    if (const Node* quotient = inner(value, "Div")) {
      norm_.x = quotient->inputs[0];
      return takeRoot(quotient->inputs[1]);
    }
    const Node* product = inner(value, "Mul");
    if (!product) return false;
    for (const size_t side : {0, 1}) {
      norm_.x = product->inputs[side];
      if (takeReciprocal(product->inputs[1 - side])) return true;
    }
    return false;
  }
  bool takeReciprocal(const std::string& value) {
    if (const Node* reciprocal = inner(value, "Reciprocal")) return takeRoot(reciprocal->inputs[0]);
    const Node* quotient = inner(value, "Div");
    if (quotient) return scalar(quotient->inputs[0]) == 1.0f && takeRoot(quotient->inputs[1]);
    const Node* power = inner(value, "Pow");
    return power && scalar(power->inputs[1]) == -0.5f && takeSum(power->inputs[0]);
  }
  bool takeRoot(const std::string& value) {
    if (const Node* root = inner(value, "Sqrt")) return takeSum(root->inputs[0]);
    const Node* power = inner(value, "Pow");
    return power && scalar(power->inputs[1]) == 0.5f && takeSum(power->inputs[0]);
  }
  /// A mean square and epsilon.
  bool takeSum(const std::string& value) {
    const Node* sum = inner(value, "Add");
    if (!sum) return false;
    for (const size_t side : {0, 1}) {
      const auto epsilon = scalar(sum->inputs[1 - side]);
      if (!epsilon || !(*epsilon >= 0)) continue;
      norm_.epsilon = *epsilon;
      const Node* mean = inner(sum->inputs[side], "ReduceMean");
      return mean && isOfLastDim(*mean) && isSquare(mean->inputs[0]);
    }
    return false;
  }
  bool isSquare(const std::string& value) {
    if (const Node* power = inner(value, "Pow"))
      return power->inputs[0] == norm_.x && scalar(power->inputs[1]) == 2.0f;
    const Node* product = inner(value, "Mul", 1);
    return product && product->inputs[0] == norm_.x && product->inputs[1] == norm_.x;
  }
  bool isOfLastDim(const Node& mean) const {
    if (attributeOf<int64_t>(mean, "keepdims", 1) != 1) return false;
    auto axes = attributeOf<std::vector<int64_t>>(mean, "axes", {});
    if (mean.inputs.size() > 1)
      if (const Tensor* given = network_.constant(mean.inputs[1])) axes = given->toInts();
    return axes == std::vector<int64_t>{-1};
  }

  /// x less its mean: of two readers, the square and the quotient; a square by Mul reads it twice.
  void takeCentre() {
    const std::set<int> before = norm_.between;
    const std::string centred = norm_.x;
    const size_t readers = network_.users(centred).size();
    const Node* difference = inner(centred, "Sub", readers);
    const bool isOfNorm = difference && std::ranges::all_of(network_.users(centred), [&](int user) {
                            return norm_.between.count(user) > 0;
                          });
    const Node* mean = isOfNorm ? inner(difference->inputs[1], "ReduceMean") : nullptr;
    if (mean && isOfLastDim(*mean) && mean->inputs[0] == difference->inputs[0]) {
      norm_.x = difference->inputs[0];
      norm_.centres = true;
    } else {
      norm_.between = before;
    }
  }
  void takeBias() {
    const std::string& product = network_.node(norm_.last).outputs[0];
    if (!norm_.centres || network_.isOutput(product) || network_.users(product).size() != 1) return;
    const int reader = network_.users(product)[0];
    const Node& sum = network_.node(reader);
    if (!is(sum, "Add")) return;
    const std::string& row = sum.inputs[sum.inputs[0] == product ? 1 : 0];
    if (!isRow(row)) return;
    norm_.bias = row;
    norm_.between.insert(norm_.last);
    norm_.last = reader;
  }

  const Network& network_;
  WrittenNorm norm_;
};

Node nodeOf(const WrittenNorm& norm, const Node& last) {
  Node node;
  node.name = last.name;
  node.opType = norm.centres ? "LayerNormalization" : "RMSNormalization";
  node.inputs = {norm.x, norm.scale};
  if (!norm.bias.empty()) node.inputs.push_back(norm.bias);
  node.outputs = last.outputs;
  node.attributes["axis"] = int64_t(-1);
  node.attributes["epsilon"] = norm.epsilon;
  return node;
}

} // namespace

void joinNorms(Network& network) {
  std::vector<Node>& nodes = network.model.graph.nodes;
  std::vector<WrittenNorm> norms;
  Matcher matcher(network);
  bool hasRms = false;
  for (int i = 0; i < std::ssize(nodes); ++i)
    if (auto norm = matcher.normAt(i)) {
      hasRms |= !norm->centres;
      norms.push_back(*std::move(norm));
    }
  if (norms.empty() || !raiseOpset(network, hasRms ? kRmsNormOpset : kLayerNormOpset)) return;
  if (hasRms) network.model.irVersion = std::max(network.model.irVersion, kRmsNormIr);
  std::set<int> gone;
  for (const WrittenNorm& norm : norms) {
    Node& last = nodes[static_cast<size_t>(norm.last)];
    last = nodeOf(norm, last);
    gone.insert(norm.between.begin(), norm.between.end());
  }
  network.removeNodes(gone);
  network.dropUnused();
}

} // namespace candela::quantize
