#include <algorithm>
#include <cmath>

#include "tools/candela/support/page.h"
#include "tools/candela/train/training.h"

namespace candela::tool {
namespace {

constexpr double kCurveWidth = 640;
constexpr double kCurveHeight = 220;
constexpr double kCurveLeft = 60;
constexpr double kCurveBottom = 24;

struct Line {
  std::string key, name, color;
};

std::vector<double> valuesOf(const Json& epochs, const std::string& key) {
  std::vector<double> values;
  for (const Json& epoch : epochs)
    if (epoch.contains(key) && epoch[key].is_number()) values.push_back(epoch[key].get<double>());
  return values;
}

struct Range {
  double lo = HUGE_VAL;
  double hi = -HUGE_VAL;
};

std::string polyline(const std::vector<double>& values, const Range& range, const Line& line) {
  std::string points;
  for (size_t i = 0; i < values.size(); ++i) {
    const double across =
        values.size() > 1 ? static_cast<double>(i) / static_cast<double>(values.size() - 1) : 0;
    const double up = range.hi > range.lo ? (values[i] - range.lo) / (range.hi - range.lo) : 0.5;
    points += fmt::format("{:.1f},{:.1f} ", kCurveLeft + across * (kCurveWidth - kCurveLeft - 10),
                          kCurveHeight - kCurveBottom - up * (kCurveHeight - kCurveBottom - 10));
  }
  return fmt::format(
      "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"><title>{}</title>"
      "</polyline>",
      points, line.color, line.name);
}

/// Some lines over the epochs, in one picture.
Figure figureOf(const Json& epochs, const std::string& title, const std::vector<Line>& lines) {
  Range range;
  for (const Line& line : lines)
    for (const double value : valuesOf(epochs, line.key)) {
      range.lo = std::min(range.lo, value);
      range.hi = std::max(range.hi, value);
    }
  std::string svg =
      fmt::format("<svg width=\"{}\" height=\"{}\" role=\"img\">", kCurveWidth, kCurveHeight);
  std::string caption = "by epoch";
  for (const Line& line : lines) {
    const std::vector<double> values = valuesOf(epochs, line.key);
    if (values.empty()) continue;
    svg += polyline(values, range, line);
    caption += fmt::format("; {}: {:.4g} at last", line.name, values.back());
  }
  svg += fmt::format("<text x=\"2\" y=\"14\" font-size=\"12\">{:.4g}</text>"
                     "<text x=\"2\" y=\"{}\" font-size=\"12\">{:.4g}</text></svg>",
                     range.hi, kCurveHeight - kCurveBottom, range.lo);
  return {title, caption, svg};
}

} // namespace

std::string curvePage(const Json& report, const std::string& model) {
  Page page;
  page.kind = "training";
  page.file = model;
  for (const auto& [key, value] : report["settings"].items()) page.fact(key, value);
  const Json& epochs = report["epochs"];
  page.figures.push_back(
      figureOf(epochs, "loss", {{"loss", "training", "#47a"}, {"test_loss", "test", "#c43"}}));
  if (!valuesOf(epochs, "accuracy").empty())
    page.figures.push_back(figureOf(
        epochs, "accuracy", {{"accuracy", "training", "#47a"}, {"test_accuracy", "test", "#c43"}}));
  PageTable table{"epochs", {}, {}};
  for (const Json& epoch : epochs) {
    std::vector<Json> row;
    for (const auto& [key, value] : epoch.items()) {
      if (table.rows.empty()) table.columns.push_back(key);
      row.push_back(value);
    }
    table.rows.push_back(std::move(row));
  }
  if (!table.rows.empty()) page.tables.push_back(std::move(table));
  return pageHtml(page);
}

} // namespace candela::tool
