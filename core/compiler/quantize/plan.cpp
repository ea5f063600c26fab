// Which nodes become integers.
//
// Forward: a product is worth it wherever it has weights; what follows goes along while all that it
// reads is in integers anyway. Backward: an addition or a table is integers only where somebody
// reads its result as integers; else it stays float and no step is rounded for it. What a product
// gives for float readers alone is not rounded either: its sums become reals as they are.
#include "core/compiler/quantize/plan.h"

#include <algorithm>

#include "core/support/text/scan.h"

namespace candela::quantize {
namespace {

using import::onnx_io::Node;

bool isScalar(const Tensor& tensor) { return tensor.count() == 1; }

class Planner {
public:
  Planner(const Network& network, const PlanOptions& options,
          const std::map<int, std::string>& keepFloat)
      : network_(network), options_(options), keepFloat_(keepFloat) {}

  Plan make() {
    const int count = static_cast<int>(network_.model.graph.nodes.size());
    plan_.roles.assign(static_cast<size_t>(count), Role::other);
    plan_.quantized.assign(static_cast<size_t>(count), false);
    plan_.why.assign(static_cast<size_t>(count), "");
    for (int i = 0; i < count; ++i) judge(i);
    for (int i = 0; i < count; ++i) findSource(i);
    for (int i = 0; i < count; ++i)
      if (roleOf(i) == Role::product)
        for (const std::string& operand : operands(i)) integers_.insert(operand);
    for (int i = 0; i < count; ++i) forward(i);
    if (options_.integerRows) wantOutputs();
    plan_.states = options_.states;
    for (const auto& [input, output] : options_.states) {
      want(input);
      want(output);
    }
    for (int i = count - 1; i >= 0; --i) backward(i);
    for (const std::string& value : wanted_)
      if (!inner_.count(value) && !joined_.count(value)) plan_.values.insert(value);
    for (int i = 0; i < count; ++i) settle(i);
    for (int i = 0; i < count; ++i) settleUpdates(i);
    for (int i = 0; i < count; ++i) noteFactors(i);
    for (int i = 0; i < count; ++i) noteMask(i);
    return std::move(plan_);
  }

private:
  Role& roleOf(int i) { return plan_.roles[static_cast<size_t>(i)]; }
  void stay(int i, std::string why) {
    roleOf(i) = Role::other;
    plan_.why[static_cast<size_t>(i)] = std::move(why);
  }

  /// Reals that the node reads, each once.
  std::vector<std::string> operands(int i) const {
    std::vector<std::string> list;
    for (const std::string& input : network_.node(i).inputs)
      if (network_.isReal(input) && std::ranges::count(list, input) == 0) list.push_back(input);
    return list;
  }
  const std::string& result(int i) const { return network_.node(i).outputs[0]; }

  void judge(int i) {
    const Node& node = network_.node(i);
    if (node.outputs.empty() || !network_.isReal(result(i))) return;
    if (const auto kept = keepFloat_.find(i); kept != keepFloat_.end())
      return stay(i, kept->second);
    if (!node.domain.empty()) return stay(i, "an operator of domain " + node.domain);
    const std::string& op = node.opType;
    if (op == "Conv" || op == "Gemm" || op == "MatMul") return judgeProduct(i);
    if (text::isOneOf(op, "Add|Sub|Mul|Div")) return judgeArithmetic(i);
    if (op == "Gather" && !network_.isReal(node.inputs[0])) return judgeLookup(i);
    if (op == "GlobalAveragePool" || op == "ReduceMean") {
      roleOf(i) = Role::arithmetic;
    } else if (op == "AveragePool") {
      const auto pads = attributeOf<std::vector<int64_t>>(node, "pads", {});
      const bool hasBorder = std::ranges::count(pads, 0) != std::ssize(pads) ||
                             attributeOf<std::string>(node, "auto_pad", "NOTSET") != "NOTSET";
      if (attributeOf<int64_t>(node, "ceil_mode", 0) ||
          (hasBorder && !attributeOf<int64_t>(node, "count_include_pad", 0)))
        return stay(i, "a mean over windows of several sizes has no integer form");
      roleOf(i) = Role::arithmetic;
    } else if (text::isOneOf(op, "Softmax|LayerNormalization|RMSNormalization|"
                                 "SimplifiedLayerNormalization")) {
      return judgeRow(i);
    } else if (op == "Relu" || op == "Clip") {
      roleOf(i) = Role::activation;
    } else if (text::isOneOf(op,
                             "Sigmoid|HardSigmoid|HardSwish|Tanh|LeakyRelu|Elu|Selu|Softplus|"
                             "Softsign|Gelu|Erf|Mish|Abs|Neg|Exp|Log|Sqrt|Reciprocal|Sin|Cos|Swish|"
                             "Celu") ||
               isPowerOfOne(node)) {
      roleOf(i) = Role::function;
    } else if (text::isOneOf(op, "Reshape|Transpose|Flatten|Squeeze|Unsqueeze|Slice|Identity|"
                                 "Dropout|DepthToSpace|SpaceToDepth|Gather") ||
               (op == "MaxPool" && node.outputs.size() == 1)) {
      roleOf(i) = Role::movement;
    } else if (text::isOneOf(op, "ScatterElements|ScatterND|TensorScatter")) {
      return judgeScatter(i);
    } else if (op == "Concat") {
      if (!std::ranges::all_of(node.inputs, [&](const auto& in) { return network_.isReal(in); }))
        return stay(i, "an operand is no f32 value of the run");
      roleOf(i) = Role::join;
    } else {
      stay(i, op + " has no integer form");
    }
    if (roleOf(i) != Role::other && operands(i).size() != 1 && op != "Concat")
      stay(i, "an operand is no f32 value of the run");
  }

  void judgeProduct(int i) {
    const Node& node = network_.node(i);
    const Tensor* weights = network_.constant(node.inputs[1]);
    if (!network_.isReal(node.inputs[0])) return stay(i, "its input is no f32 value of the run");
    if (weights && weights->elem != Elem::f32_) return stay(i, "its weights are not f32");
    if (!weights && node.opType != "MatMul") return stay(i, "its weights are no constant");
    if (!weights && !network_.isReal(node.inputs[1])) return stay(i, "its operand is not f32");
    if (node.inputs.size() > 2 && !node.inputs[2].empty() && !network_.constant(node.inputs[2]))
      return stay(i, "its bias is no constant");
    roleOf(i) = Role::product;
  }

  /// Values that are put among others: both in the steps of the result.
  void judgeScatter(int i) {
    const Node& node = network_.node(i);
    if (attributeOf<std::string>(node, "reduction", "none") != "none")
      return stay(i, "a reduction at places has no integer form");
    if (operands(i).size() != 2) return stay(i, "an operand is no f32 value of the run");
    roleOf(i) = Role::join;
  }

  /// Rows of a constant table, which is stored as integers.
  void judgeLookup(int i) {
    const Tensor* table = network_.constant(network_.node(i).inputs[0]);
    if (!table || table->elem != Elem::f32_) return stay(i, "its table is not f32");
    if (!options_.integerRows)
      return stay(i, "rows of a constant are integers only with --integer-functions");
    roleOf(i) = Role::join;
    plan_.constantOperand[i] = 0;
  }

  void judgeRow(int i) {
    const Node& node = network_.node(i);
    if (!options_.integerRows)
      return stay(i, node.opType + " is integers only with --integer-functions");
    if (!network_.isReal(node.inputs[0])) return stay(i, "its input is no f32 value of the run");
    // From opset 13 on the axis of Softmax is one dim; before, it began the dims of a row.
    const int rank = network_.types.at(node.inputs[0]).rank();
    const int64_t axis = attributeOf<int64_t>(node, "axis", network_.opset() < 13 ? 1 : -1);
    if (node.opType == "Softmax" && network_.opset() < 13 && axis != -1 && axis != rank - 1)
      return stay(i, "a softmax of several dims has no integer form");
    if (node.outputs.size() > 1) return stay(i, "its mean is a result of its own");
    for (size_t k = 1; k < node.inputs.size(); ++k)
      if (!node.inputs[k].empty() && !network_.constant(node.inputs[k]))
        return stay(i, "its scale or bias is no constant");
    roleOf(i) = Role::row;
  }

  void judgeArithmetic(int i) {
    const Node& node = network_.node(i);
    const std::vector<std::string> reals = operands(i);
    for (const std::string& input : node.inputs)
      if (const Tensor* tensor = network_.constant(input)) {
        if (tensor->elem != Elem::f32_) return stay(i, "a constant is not f32");
        if (!isScalar(*tensor) && !isBias(i)) return judgeWithConstant(i);
        if (node.opType == "Div" && input == node.inputs[0] && reals.size() == 1)
          return void(roleOf(i) = Role::function);
        roleOf(i) = isBias(i) ? Role::activation : Role::function;
        return;
      }
    if (reals.empty() || node.inputs.size() != 2) return stay(i, "an operand is no f32 value");
    if (node.opType == "Div") return stay(i, "a quotient has no integer form");
    const Shape shape = network_.types.at(result(i)).shape();
    const bool hasWhole = std::ranges::any_of(
        reals, [&](const auto& real) { return network_.types.at(real).shape() == shape; });
    if (!hasWhole && node.opType != "Mul") return stay(i, "both operands broadcast");
    roleOf(i) = Role::arithmetic;
  }

  /// Arithmetic of a value of the run and a constant of several values.
  void judgeWithConstant(int i) {
    const Node& node = network_.node(i);
    if (!options_.integerRows)
      return stay(i, "a constant of several values is integers only with --integer-functions");
    const std::vector<std::string> reals = operands(i);
    const bool isWhole = reals.size() == 1 && network_.types.at(reals[0]).shape() ==
                                                  network_.types.at(result(i)).shape();
    if (!isWhole) return stay(i, "a constant that broadcasts its operand has no integer form");
    if (node.opType == "Div") return stay(i, "a quotient has no integer form");
    roleOf(i) = Role::arithmetic;
    plan_.constantOperand[i] = network_.constant(node.inputs[0]) ? 0 : 1;
  }

  /// Whether the node raises one value to a constant power.
  bool isPowerOfOne(const Node& node) const {
    if (node.opType != "Pow") return false;
    const Tensor* exponent = network_.constant(node.inputs[1]);
    return exponent && isScalar(*exponent) && exponent->elem == Elem::f32_;
  }

  /// A row that is added to what a product gives alone.
  bool isBias(int i) const {
    const Node& node = network_.node(i);
    if (node.opType != "Add") return false;
    for (const size_t side : {0, 1}) {
      const int from = network_.producer(node.inputs[side]);
      const Tensor* row = network_.constant(node.inputs[1 - side]);
      if (from < 0 || !row || !text::isOneOf(network_.node(from).opType, "MatMul|Gemm")) continue;
      return network_.users(node.inputs[side]).size() == 1 && row->count() == row->dims.back();
    }
    return false;
  }

  /// What the node's result is a function of, element by element.
  void findSource(int i) {
    const Role role = roleOf(i);
    const bool isPointwise = role == Role::function || role == Role::activation ||
                             text::isOneOf(network_.node(i).opType, "Add|Sub|Mul");
    if (!isPointwise || role == Role::other || isBias(i)) return;
    if (plan_.constantOperand.count(i)) return;
    std::string source;
    for (const std::string& operand : operands(i)) {
      const auto at = sources_.find(operand);
      const std::string& own = at == sources_.end() ? operand : at->second;
      if (!source.empty() && own != source) return;
      source = own;
    }
    if (source.empty()) return;
    sources_[result(i)] = source;
  }
  bool isFunction(int i) const { return sources_.count(network_.node(i).outputs[0]) > 0; }

  /// A limit or a bias within the instruction of what it follows.
  bool isJoined(int i) {
    if (roleOf(i) != Role::activation) return false;
    const std::string value = operands(i)[0];
    const int from = network_.producer(value);
    if (from < 0 || network_.isOutput(value) || network_.users(value).size() != 1) return false;
    const Role role = roleOf(from);
    return role == Role::product || role == Role::arithmetic || role == Role::join ||
           isJoined(from);
  }

  void forward(int i) {
    const Role role = roleOf(i);
    if (role == Role::other) return;
    const std::vector<std::string> reads = operands(i);
    const bool isReady = role == Role::product || options_.integerRows || isJoined(i) ||
                         std::ranges::all_of(reads, [&](const std::string& value) {
                           return integers_.count(value) > 0;
                         });
    if (!isReady) return stay(i, "an operand comes from a node that stays float");
    integers_.insert(result(i));
    plan_.quantized[static_cast<size_t>(i)] = true;
  }

  /// Decides about the node after all that read it.
  void backward(int i) {
    if (!plan_.quantized[static_cast<size_t>(i)]) return;
    const Role role = roleOf(i);
    const bool isWanted = wanted_.count(result(i)) > 0;
    if (role != Role::product && !isWanted) {
      plan_.quantized[static_cast<size_t>(i)] = false;
      return stay(i, "nothing reads its result as integers");
    }
    if (isJoined(i)) {
      want(operands(i)[0]);
      joined_.insert(operands(i)[0]);
      return;
    }
    if (isFunction(i)) {
      // Inner values of a function are not rounded.
      want(sources_[result(i)]);
      for (const std::string& operand : operands(i))
        if (operand != sources_[result(i)]) wantWithin(operand);
      return;
    }
    for (const std::string& operand : operands(i)) want(operand);
  }

  void want(const std::string& value) { wanted_.insert(value); }
  /// Without floats on the device its results are rounded too; the sums of a product are not, which
  /// become reals as they are.
  void wantOutputs() {
    for (const import::onnx_io::ValueInfo& output : network_.model.graph.outputs) {
      const int from = network_.producer(output.name);
      if (from < 0 || !plan_.quantized[static_cast<size_t>(from)]) continue;
      const Role role = roleOf(from);
      if (role != Role::product && role != Role::activation) want(output.name);
    }
  }
  /// An inner value of a function: of use to it, and rounded only where others want it.
  void wantWithin(const std::string& value) {
    const int from = network_.producer(value);
    if (from < 0 || !isFunction(from)) return want(value);
    const auto readers = network_.users(value);
    const bool isInner = !network_.isOutput(value) && std::ranges::all_of(readers, [&](int user) {
      const auto at = sources_.find(network_.node(user).outputs[0]);
      return at != sources_.end() && at->second == sources_[value];
    });
    wanted_.insert(value);
    if (isInner) inner_.insert(value);
  }

  void settle(int i) {
    const std::string& value = network_.node(i).outputs[0];
    if (!plan_.quantized[static_cast<size_t>(i)] || !plan_.values.count(value)) return;
    if (roleOf(i) == Role::movement) plan_.sameAs[value] = operands(i)[0];
    if (isFunction(i)) plan_.functionOf[value] = sources_[value];
  }

  /// Values that are computed for nothing but to be put among others have the steps of these.
  void settleUpdates(int i) {
    const Node& node = network_.node(i);
    if (roleOf(i) != Role::join || !plan_.quantized[static_cast<size_t>(i)]) return;
    if (!text::isOneOf(node.opType, "ScatterElements|ScatterND|TensorScatter")) return;
    const size_t updates = node.opType == "TensorScatter" ? 1 : 2;
    std::string value = node.inputs[updates];
    while (isReadOnce(value)) {
      const auto moved = plan_.sameAs.find(value);
      if (moved != plan_.sameAs.end()) {
        value = moved->second;
        continue;
      }
      // A table has one element type, which its operand may have chosen.
      const bool isFree = plan_.values.count(value) && !plan_.functionOf.count(value);
      if (network_.producer(value) >= 0 && isFree) plan_.sameAs[value] = result(i);
      return;
    }
  }
  bool isReadOnce(const std::string& value) const {
    return network_.users(value).size() == 1 && !network_.isOutput(value);
  }

  /// After all have settled, so that the values are those whose steps count.
  void noteFactors(int i) {
    if (roleOf(i) != Role::product || network_.constant(network_.node(i).inputs[1])) return;
    plan_.leftFactors.insert(plan_.root(network_.node(i).inputs[0]));
    plan_.rightFactors.insert(plan_.root(network_.node(i).inputs[1]));
  }

  /// After all have settled: a sum of scores and a mask that a softmax alone reads.
  void noteMask(int i) {
    const Node& node = network_.node(i);
    if (!plan_.quantized[static_cast<size_t>(i)] || node.opType != "Softmax") return;
    const std::string& sum = node.inputs[0];
    const int from = network_.producer(sum);
    if (from < 0 || network_.isOutput(sum) || network_.users(sum).size() != 1) return;
    const Node& add = network_.node(from);
    if (add.opType != "Add" || roleOf(from) != Role::arithmetic) return;
    const graph::TensorType& type = network_.types.at(sum);
    for (const size_t side : {0, 1}) {
      const std::string& scores = add.inputs[side];
      const std::string& mask = add.inputs[1 - side];
      if (!network_.isReal(scores) || !mayMask(mask)) continue;
      plan_.masked[sum] = {scores, mask, type.dim(-1)};
      return;
    }
  }
  /// A mask comes from comparisons and selections, so no integers give it, or it is a constant
  /// that leaves something in.
  bool mayMask(const std::string& value) const {
    if (const Tensor* constant = network_.constant(value)) {
      const float* numbers = constant->as<float>();
      return std::any_of(numbers, numbers + constant->count(), [](float n) { return n >= 0; });
    }
    const int from = network_.producer(value);
    return from < 0 || !plan_.quantized[static_cast<size_t>(from)];
  }

  const Network& network_;
  const PlanOptions& options_;
  const std::map<int, std::string>& keepFloat_;
  Plan plan_;
  std::map<std::string, std::string> sources_; ///< of results of pointwise nodes
  std::set<std::string> integers_;             ///< values that may be integers
  std::set<std::string> wanted_, inner_, joined_;
};

} // namespace

Plan makePlan(const Network& network, const PlanOptions& options,
              const std::map<int, std::string>& keepFloat) {
  return Planner(network, options, keepFloat).make();
}

} // namespace candela::quantize
