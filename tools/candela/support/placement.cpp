// The placement of a model's nodes, as a picture.
#include "tools/candela/support/placement.h"

#include <algorithm>
#include <map>

#include "conformance/report/escape.h"
#include "core/compiler/graph/custom.h"
#include "tools/candela/support/figure_text.h"

namespace candela::tool {
namespace {

using conformance::report::markupEscaped;

constexpr double kNodeWidth = 168, kNodeHeight = 36, kGapX = 22, kGapY = 44,
                 kPictureMargin = 12; // pixels
constexpr size_t kColours = 5;        // of devices

/// Adds one graph's nodes and edges.
class Placing {
public:
  Placing(PlacedModel& model, const graph::Graph& graph,
          const lowering::partition::Partitioning& partitioning)
      : model_(model), graph_(graph), partitioning_(partitioning), host_(model.targets.size() - 1) {
    for (size_t p = 0; p < partitioning.parts.size(); ++p)
      for (const graph::Node* node : partitioning.parts[p].nodes) partOf_[node] = p;
  }

  void add() {
    for (const graph::Value* input : graph_.inputs()) {
      producer_[input] = model_.nodes.size();
      model_.nodes.push_back({input->name, "input", host_, 0});
    }
    for (const auto& node : graph_.nodes())
      if (node->kind != graph::OpKind::Constant) addNode(*node);
    for (size_t i = 0; i < graph_.outputs().size(); ++i) {
      model_.nodes.push_back({graph_.outputNames()[i], "output", host_, 0});
      addEdge(*graph_.outputs()[i], nullptr);
    }
  }

private:
  void addNode(const graph::Node& node) {
    model_.nodes.push_back(
        {node.userName(), graph::shownOp(node), partitioning_.targetOf.at(&node), 0});
    const size_t self = model_.nodes.size() - 1;
    for (const graph::Value* operand : node.operands())
      if (operand && !operand->isConstant()) addEdge(*operand, &node);
    for (const graph::Value* result : node.results()) producer_[result] = self;
  }

  /// From the value to the newest node; `reader` is null for an output.
  void addEdge(const graph::Value& value, const graph::Node* reader) {
    const auto at = producer_.find(&value);
    if (at == producer_.end()) return; // a constant that is an output
    const size_t self = model_.nodes.size() - 1;
    const bool isInside =
        value.producer && reader && partOf_.at(value.producer) == partOf_.at(reader);
    const size_t ends[] = {model_.nodes[at->second].target, model_.nodes[self].target};
    const bool staysOnHost = ends[0] == host_ && ends[1] == host_;
    const uint64_t bytes = elemBytes(value.type.elem, static_cast<uint64_t>(value.type.count()));
    model_.edges.push_back({at->second, self, bytes, !isInside && !staysOnHost});
    model_.nodes[self].layer =
        std::max(model_.nodes[self].layer, model_.nodes[at->second].layer + 1);
  }

  PlacedModel& model_;
  const graph::Graph& graph_;
  const lowering::partition::Partitioning& partitioning_;
  const size_t host_;
  std::map<const graph::Node*, size_t> partOf_;
  std::map<const graph::Value*, size_t> producer_; ///< index of a node of the model
};

std::string colourOf(const PlacedModel& model, size_t target) {
  return target + 1 == model.targets.size() ? "host" : fmt::format("device{}", target % kColours);
}

class Picture {
public:
  explicit Picture(const PlacedModel& model) : model_(model), left_(model.nodes.size()) {
    std::map<size_t, std::vector<size_t>> layers;
    for (size_t n = 0; n < model.nodes.size(); ++n) layers[model.nodes[n].layer].push_back(n);
    for (auto& [layer, nodes] : layers) arrange(nodes);
    height_ =
        static_cast<double>(layers.size()) * (kNodeHeight + kGapY) - kGapY + 2 * kPictureMargin;
  }

  std::string svg() {
    out_ = fmt::format("<svg class=\"placement\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
                       "width=\"{0:.0f}\" height=\"{1:.0f}\" role=\"img\" "
                       "aria-label=\"placement of nodes\">\n",
                       width_, height_);
    for (const PlacedModel::Edge& edge : model_.edges) drawEdge(edge);
    for (size_t n = 0; n < model_.nodes.size(); ++n) drawNode(n);
    return out_ + "</svg>\n";
  }

private:
  /// Side by side, in the order of what they read.
  void arrange(std::vector<size_t>& nodes) {
    std::map<size_t, double> wanted;
    for (const size_t n : nodes) wanted[n] = wantedLeft(n);
    std::ranges::stable_sort(nodes, [&](size_t a, size_t b) { return wanted[a] < wanted[b]; });
    double next = kPictureMargin;
    for (const size_t n : nodes) {
      left_[n] = std::max(next, wanted[n]);
      next = left_[n] + kNodeWidth + kGapX;
    }
    width_ = std::max(width_, next - kGapX + kPictureMargin);
  }

  double wantedLeft(size_t node) const {
    double sum = 0;
    int count = 0;
    for (const PlacedModel::Edge& edge : model_.edges)
      if (edge.to == node) {
        sum += left_[edge.from];
        ++count;
      }
    return count > 0 ? sum / count : kPictureMargin;
  }

  double top(size_t node) const {
    return kPictureMargin + static_cast<double>(model_.nodes[node].layer) * (kNodeHeight + kGapY);
  }

  void drawNode(size_t n) {
    const PlacedModel::Node& node = model_.nodes[n];
    const std::string& target = model_.targets[node.target];
    out_ += fmt::format(
        "<g class=\"block {}\"><title>{}</title><rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.0f}\" "
        "height=\"{:.0f}\" rx=\"6\"/>",
        colourOf(model_, node.target),
        markupEscaped(fmt::format("{}\n{} on {}", node.name, node.op, target)), left_[n], top(n),
        kNodeWidth, kNodeHeight);
    text(left_[n] + kNodeWidth / 2, top(n) + 15, "name", shortened(node.name, kNodeWidth - 8));
    text(left_[n] + kNodeWidth / 2, top(n) + 28, "op",
         shortened(fmt::format("{} · {}", node.op, target), kNodeWidth - 8));
    out_ += "</g>\n";
  }

  void drawEdge(const PlacedModel::Edge& edge) {
    const double fromX = left_[edge.from] + kNodeWidth / 2, fromY = top(edge.from) + kNodeHeight;
    const double toX = left_[edge.to] + kNodeWidth / 2, toY = top(edge.to);
    const double bend = (toY - fromY) / 2;
    out_ += fmt::format(
        "<path class=\"{}\" d=\"M{:.1f} {:.1f}C{:.1f} {:.1f} {:.1f} {:.1f} {:.1f} {:.1f}\"/>\n",
        edge.isCut ? "cut" : "edge", fromX, fromY, fromX, fromY + bend, toX, toY - bend, toX, toY);
    if (edge.isCut) text((fromX + toX) / 2, (fromY + toY) / 2 + 4, "bytes", bytesText(edge.bytes));
  }

  void text(double x, double y, const char* kind, const std::string& words) {
    out_ += fmt::format("<text class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>", kind, x, y,
                        markupEscaped(words));
  }

  const PlacedModel& model_;
  std::vector<double> left_; ///< by node
  double width_ = 0, height_ = 0;
  std::string out_;
};

std::string legend(const PlacedModel& model) {
  std::string out = "<ul class=\"legend\">";
  for (size_t target = 0; target < model.targets.size(); ++target)
    out += fmt::format("<li><i class=\"{}\"></i>{}</li>", colourOf(model, target),
                       markupEscaped(model.targets[target]));
  return out + "<li><i class=\"cut\"></i>a value that is handed over, with its bytes</li></ul>\n";
}

} // namespace

void addPlaced(PlacedModel& model, const graph::Graph& graph,
               const lowering::partition::Partitioning& partitioning) {
  Placing(model, graph, partitioning).add();
}

void addPlacementFigure(Page& page, const PlacedModel& model) {
  const size_t host = model.targets.empty() ? 0 : model.targets.size() - 1;
  if (std::ranges::all_of(model.nodes,
                          [&](const PlacedModel::Node& node) { return node.target == host; }))
    return;
  uint64_t bytes = 0, cuts = 0;
  for (const PlacedModel::Edge& edge : model.edges) {
    bytes += edge.isCut ? edge.bytes : 0;
    cuts += edge.isCut;
  }
  page.figures.insert(page.figures.begin(),
                      {"placement",
                       fmt::format("{} edges cross between parts, {}", cuts, bytesText(bytes)),
                       Picture(model).svg() + legend(model)});
}

} // namespace candela::tool
