#include "core/compiler/lowering/layout/islands.h"

#include <algorithm>
#include <limits>
#include <set>

#include "core/compiler/capabilities/views.h"
#include "core/compiler/lowering/decompose/describe.h"
#include "core/compiler/lowering/decompose/row_layouts.h"

namespace candela::lowering::layout {

using graph::Graph;
using graph::Layout;
using graph::Node;
using graph::OpKind;
using graph::TensorType;
using graph::Value;

namespace {

/// What a kernel loses that must rearrange a byte itself, where a conversion costs 1.
constexpr double kInside = 1.25;
constexpr int kRounds = 8;

/// A way to run a node: the layouts of its operands and of its result.
struct Option {
  std::vector<Layout> operands;
  Layout result;
  double cost = 0; ///< of bytes that the kernel itself rearranges
};

double bytesOf(const TensorType& type) {
  return static_cast<double>(elemBytes(type.elem, type.count()));
}

/// Both layouts put every element at the same place.
bool sameBytes(const Value& value, const Layout& a, const Layout& b) {
  if (!a.isRowMajor() && !b.isRowMajor()) return a == b;
  Value plain, blocked;
  plain.type = blocked.type = value.type;
  plain.type.layout = {};
  blocked.type.layout = a.isRowMajor() ? b : a;
  if (!blocked.type.layout.divides(value.type.shape())) return false;
  const decompose::NodeView rows = decompose::viewOver(&plain, &blocked),
                            blocks = decompose::viewOver(&blocked, &blocked);
  const capabilities::Walk walk =
      capabilities::coalesce({rows.dims, {rows.strides, blocks.strides}});
  return walk.strides[0] == walk.strides[1];
}

class Islands {
public:
  Islands(Graph& graph, const capabilities::Target& target) : graph_(graph), target_(target) {}

  void form() {
    for (const auto& [row, atoms] : target_.rows()) {
      if ((row.kind != CDL_KIND_CONV2D && row.kind != CDL_KIND_POOL2D) || row.elem_count == 0)
        continue;
      const Activation found{decompose::layoutOf(target_, row.layouts[row.elem_count - 1]),
                             isFloat(static_cast<Elem>(row.elems[row.elem_count - 1]))};
      if (!found.layout.isRowMajor() &&
          std::ranges::find(activations_, found) == activations_.end())
        activations_.push_back(found);
    }
    for (Node* node : graph_.snapshot()) {
      options_[node] = optionsOf(*node);
      choose(*node, [&](const Option& option) { return greedyCost(*node, option); });
    }
    const std::vector<Node*> order = graph_.snapshot();
    improve(order);
    if (hasRivals()) tryFromTheEnd(order);
    for (Node* node : order) apply(*node);
    for (size_t i = 0; i < graph_.outputs().size(); ++i)
      if (Value* value = graph_.outputs()[i]; !value->type.layout.isRowMajor())
        convertOutput(value);
  }

private:
  /// A layout that results of convolutions and pools may have, and of which numbers.
  struct Activation {
    Layout layout;
    bool ofFloats = false;
    friend bool operator==(const Activation&, const Activation&) = default;
  };

  // ---- The ways to run a node

  /// The first one is the row-major one.
  std::vector<Option> optionsOf(Node& node) {
    std::vector<Option> options{{std::vector<Layout>(node.operands().size()), {}, 0}};
    if (node.results().size() != 1 || isStorageOnly(node.result()->type.elem)) return options;
    for (const Value* operand : node.operands())
      if (operand && !isPlain(operand)) return options;
    const auto add = [&](Option option) {
      if (decompose::takesOn(node, target_, {option.operands, option.result}))
        options.push_back(std::move(option));
    };
    switch (node.kind) {
    case OpKind::Conv:
    case OpKind::ConvInteger:
    case OpKind::MaxPool:
    case OpKind::AveragePool:
    case OpKind::BatchMatmul:
      for (decompose::RowLayouts& row : decompose::layoutsOfRows(node, target_))
        options.push_back({std::move(row.operands), row.result, 0});
      priceRows(node, options);
      if (options.size() > 1 && !decompose::takesOn(node, target_, {options[0].operands, {}}))
        options[0].cost = std::numeric_limits<double>::max() / 8; // costs are added up
      break;
    case OpKind::Reshape: reduced(node, options); break;
    case OpKind::Reduce:
      if (const auto found = reduced_.find(node.operand(0)); found != reduced_.end())
        for (const Layout& layout : found->second) add({{layout}, {}, 0});
      break;
    default:
      if (node.kind == OpKind::Place || node.info().has(graph::kTraitElementwise))
        for (const auto& [layout, ofFloats] : activations_)
          if (ofFloats == isFloat(node.result()->type.elem)) alike(node, layout, add);
    }
    return options;
  }

  /// A kernel that reads or writes rows where another row of the target has blocks rearranges them
  /// itself.
  static void priceRows(const Node& node, std::vector<Option>& options) {
    const auto price = [&](const Value* value, const auto& layoutIn) {
      if (!value ||
          std::ranges::all_of(options, [&](Option& o) { return layoutIn(o).isRowMajor(); }))
        return;
      for (Option& option : options)
        if (layoutIn(option).isRowMajor()) option.cost += kInside * bytesOf(value->type);
    };
    for (size_t i = 0; i < node.operands().size(); ++i)
      price(node.operand(i), [&](const Option& o) -> const Layout& { return o.operands[i]; });
    price(node.result(), [](const Option& o) -> const Layout& { return o.result; });
  }

  /// The result and every operand of its shape in one layout; what is broadcast stays row-major.
  template <typename Add> void alike(const Node& node, const Layout& layout, const Add& add) {
    const Shape shape = node.result()->type.shape();
    if (!layout.divides(shape)) return;
    Option option{{}, layout, 0};
    const bool places = node.kind == OpKind::Place;
    for (size_t i = 0; i < node.operands().size(); ++i) {
      const Value* operand = node.operand(i);
      if (!operand || (places && !placesBlocks(node, i, layout))) return;
      option.operands.push_back(places || operand->type.shape() == shape ? layout : Layout{});
    }
    add(std::move(option));
  }

  static bool placesBlocks(const Node& node, size_t piece, const Layout& layout) {
    const size_t rank = layout.steps.empty() ? 0 : node.result()->type.dims.size();
    const std::vector<int64_t> offsets = node.intsAttr("offsets"),
                               steps = node.intsAttr("steps", rank, 1);
    for (size_t i = 0; i < layout.steps.size(); ++i) {
      const uint8_t d = layout.steps[i].dim;
      if (layout.stepOf(i) > 1 && (offsets[piece * rank + d] % layout.stepOf(i) || steps[d] != 1))
        return false;
    }
    return layout.divides(node.operand(piece)->type.shape());
  }

  /// x[n,c,h,w] as [n*c,h*w,1] for a sum over space: the blocks of c, or all of it, become blocks
  /// of n*c.
  void reduced(const Node& node, std::vector<Option>& options) {
    const TensorType &from = node.operand(0)->type, &to = node.result()->type;
    if (from.rank() != 4 ||
        to.shape() != Shape{from.dim(0) * from.dim(1), from.dim(2) * from.dim(3), 1})
      return;
    if (graph_.isOutput(node.result())) return;
    for (const Node* user : node.result()->users())
      if (user->kind != OpKind::Reduce) return;
    for (const auto& [layout, ofFloats] : activations_) {
      if (ofFloats != isFloat(from.elem) || !layout.divides(from.shape())) continue;
      const bool isLast = layout.steps == std::vector<Layout::Step>{{0, 0}, {2, 0}, {3, 0}, {1, 0}};
      const uint32_t block =
          isLast ? static_cast<uint32_t>(from.dim(1)) : layout.steps.back().factor;
      if (!isLast &&
          layout.steps != std::vector<Layout::Step>{{0, 0}, {1, 0}, {2, 0}, {3, 0}, {1, block}})
        continue;
      const Layout blocks{{{0, 0}, {1, 0}, {2, 0}, {0, block}}, layout.pad};
      reduced_[node.result()].push_back(blocks);
      options.push_back({{layout}, blocks, 0});
    }
  }

  // ---- The choice

  /// Whether numbers of one kind have several layouts, between which no conversion pays by itself
  /// where a chain of nodes would have to change as one.
  bool hasRivals() const {
    const auto ofFloats = std::ranges::count(activations_, true, &Activation::ofFloats);
    return ofFloats > 1 || static_cast<size_t>(ofFloats) + 1 < activations_.size();
  }

  /// Improves one node after the other, while that helps.
  void improve(const std::vector<Node*>& order) {
    bool changes = true;
    for (int round = 0; round < kRounds && changes; ++round) {
      changes = false;
      for (Node* node : order)
        changes |= choose(*node, [&](const Option& option) { return localCost(*node, option); });
    }
  }

  /// Begins once more with what readers want instead of what producers give, and keeps what moves
  /// fewer bytes.
  void tryFromTheEnd(const std::vector<Node*>& order) {
    const double before = totalCost(order);
    const std::map<const Node*, size_t> kept = chosen_;
    for (size_t i = order.size(); i-- > 0;)
      choose(*order[i], [&](const Option& option) { return costBehind(*order[i], option); });
    improve(order);
    if (totalCost(order) >= before) chosen_ = kept;
  }

  double totalCost(const std::vector<Node*>& order) const {
    double cost = 0;
    for (const Value* input : graph_.inputs()) cost += conversions(*input);
    for (const Node* node : order) {
      cost += chosen(*node).cost;
      for (const Value* result : node->results()) cost += conversions(*result);
    }
    return cost;
  }

  const Option& chosen(const Node& node) const { return options_.at(&node)[chosen_.at(&node)]; }
  Layout produced(const Value& value) const {
    if (!value.producer || !chosen_.count(value.producer)) return {};
    return chosen(*value.producer).result;
  }

  double conversion(const Value& value, const Layout& from, const Layout& to) const {
    if (value.isConstant() || from == to || sameBytes(value, from, to)) return 0;
    const bool isByRows = !from.isRowMajor() && !to.isRowMajor();
    return (isByRows ? 2 : 1) * bytesOf(value.type);
  }
  /// Of all conversions of a value, each layout once.
  double conversions(const Value& value) const {
    std::vector<Layout> wanted;
    const auto want = [&](const Layout& layout) {
      if (std::ranges::find(wanted, layout) == wanted.end()) wanted.push_back(layout);
    };
    if (graph_.isOutput(&value)) want({});
    for (const Node* user : value.users())
      for (size_t i = 0; i < user->operands().size(); ++i)
        if (user->operand(i) == &value) want(chosen(*user).operands[i]);
    double cost = 0;
    for (const Layout& layout : wanted) cost += conversion(value, produced(value), layout);
    return cost;
  }

  /// With what stands before the node alone.
  double greedyCost(const Node& node, const Option& option) const {
    double cost = option.cost;
    for (size_t i = 0; i < node.operands().size(); ++i)
      if (const Value* operand = node.operand(i))
        cost += conversion(*operand, produced(*operand), option.operands[i]);
    return cost;
  }
  /// With what stands behind the node alone; the option is the chosen one.
  double costBehind(const Node& node, const Option& option) const {
    double cost = option.cost;
    for (const Value* result : node.results()) cost += conversions(*result);
    return cost;
  }
  /// With all neighbours; the option is the chosen one.
  double localCost(const Node& node, const Option& option) const {
    double cost = option.cost;
    const std::set<const Value*> operands(node.operands().begin(), node.operands().end());
    for (const Value* operand : operands)
      if (operand) cost += conversions(*operand);
    for (const Value* result : node.results()) cost += conversions(*result);
    return cost;
  }

  /// Takes the cheapest option, the present one among equals. True when it is another one.
  template <typename Cost> bool choose(const Node& node, const Cost& cost) {
    const auto [at, isNew] = chosen_.try_emplace(&node, 0);
    const size_t before = at->second;
    const std::vector<Option>& options = options_.at(&node);
    if (options.size() == 1) return false;
    size_t best = before;
    double least = cost(options[before]);
    for (size_t i = 0; i < options.size(); ++i) {
      at->second = i;
      if (const double other = cost(options[i]); other < least) {
        best = i;
        least = other;
      }
    }
    at->second = best;
    return best != before;
  }

  // ---- Into the graph

  void apply(Node& node) {
    const Option& option = chosen(node);
    for (size_t i = 0; i < node.operands().size(); ++i)
      if (Value* operand = node.operand(i); operand && operand->type.layout != option.operands[i])
        node.setOperand(i, converted(operand, option.operands[i]));
    if (!option.result.isRowMajor()) node.result()->type.layout = option.result;
  }

  Value* converted(Value* value, const Layout& layout) {
    for (const auto& [to, known] : converted_[value])
      if (to == layout) return known;
    const bool isAlias = sameBytes(*value, value->type.layout, layout);
    const bool isByRows = !isAlias && !value->type.layout.isRowMajor() && !layout.isRowMajor();
    Node* before = firstUser(*value);
    Value* made = nullptr;
    if (isByRows) {
      // Rows that are there already stand before their own readers.
      Value* rows = converted(value, {});
      Node* behind = firstUser(*rows);
      made = convertedBefore(rows, layout, behind ? behind : before, false);
    } else {
      made = convertedBefore(value, layout, before, isAlias);
    }
    converted_[value].emplace_back(layout, made);
    return made;
  }

  /// The first user in order, which stands behind the producer.
  Node* firstUser(const Value& value) const {
    const std::set<Node*> users(value.users().begin(), value.users().end());
    for (const auto& node : graph_.nodes())
      if (users.count(node.get())) return node.get();
    return nullptr;
  }

  Value* convertedBefore(Value* value, const Layout& layout, Node* before, bool isAlias) {
    const Shape shape = value->type.shape();
    graph::Attrs attrs{{"shape", shape}};
    if (!isAlias)
      attrs = {{"offset", int64_t(0)}, {"dims", shape}, {"strides", denseStrides(shape)}};
    TensorType type = value->type;
    type.layout = layout;
    const Node* made = graph_.addNodeUnchecked(
        isAlias ? OpKind::Reshape : OpKind::Affine, {value}, std::move(attrs),
        value->producer ? value->producer->provenance : graph::Provenance{value->name},
        {std::move(type)}, before, {graph_.uniqueName(value->name)});
    return made->result();
  }

  void convertOutput(Value* value) {
    const std::vector<Node*> users = value->users();
    Value* plain = converted(value, {});
    std::vector<std::pair<Node*, size_t>> uses;
    for (Node* user : users)
      for (size_t i = 0; i < user->operands().size(); ++i)
        if (user->operand(i) == value) uses.emplace_back(user, i);
    Node* conversion = plain->producer;
    graph_.replaceAllUses(value, plain);
    for (const auto& [user, i] : uses) user->setOperand(i, value);
    conversion->setOperand(0, value);
  }

  Graph& graph_;
  const capabilities::Target& target_;
  std::vector<Activation> activations_;
  std::map<const Node*, std::vector<Option>> options_;
  std::map<const Node*, size_t> chosen_;
  std::map<const Value*, std::vector<Layout>> reduced_; ///< that sums over space may read
  std::map<Value*, std::vector<std::pair<Layout, Value*>>> converted_;
};

} // namespace

void formIslands(Graph& graph, const capabilities::Target& target) {
  if (target.layouts().size() > 1) Islands(graph, target).form();
}

} // namespace candela::lowering::layout
