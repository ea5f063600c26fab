// The memory map over time, as a picture.
#include "tools/candela/support/memory_figure.h"

#include <algorithm>
#include <cmath>

#include "conformance/report/escape.h"
#include "tools/candela/support/figure_text.h"

namespace candela::tool {
namespace {

using conformance::report::markupEscaped;
using Block = program::report::MemoryMap::Block;

constexpr double kLeft = 68, kTop = 34, kBottom = 44, kRight = 14; // of the plot, in pixels
constexpr double kHeight = 380, kLeastWidth = 420, kFitWidth = 1006;
constexpr double kWidest = 96, kNarrowest = 2; // of one instruction
constexpr double kLine = 14;                   // of a label

struct Family {
  const char *name, *title;
};
constexpr Family kFamilies[] = {{"product", "convolution, product"},
                                {"window", "pooling, reduction"},
                                {"each", "element by element"},
                                {"move", "copy, gather, conversion"},
                                {"other", "other"}};

size_t familyOf(uint16_t kind) {
  switch (kind) {
  case CDL_KIND_CONV2D:
  case CDL_KIND_MATMUL:
  case CDL_KIND_ATTENTION: return 0;
  case CDL_KIND_POOL2D:
  case CDL_KIND_REDUCE:
  case CDL_KIND_SOFTMAX: return 1;
  case CDL_KIND_BINARY:
  case CDL_KIND_UNARY:
  case CDL_KIND_COMPARE:
  case CDL_KIND_SELECT:
  case CDL_KIND_ELEMENTWISE:
  case CDL_KIND_RESCALE:
  case CDL_KIND_TABLE: return 2;
  case CDL_KIND_COPY:
  case CDL_KIND_CONVERT:
  case CDL_KIND_FILL:
  case CDL_KIND_GATHER:
  case CDL_KIND_SCATTER: return 3;
  default: return 4;
  }
}

/// The family of what computes a buffer: of its first writer that does more than fill a border.
size_t familyOf(const program::Program& program, uint32_t buffer) {
  size_t family = 4;
  for (const program::Instr& instr : program.instrs)
    for (const program::View& view : instr.outputs)
      if (view.buffer == buffer) {
        family = familyOf(instr.kind);
        if (instr.kind != CDL_KIND_FILL) return family;
      }
  return family;
}

/// 1, 2 or 5 times a power of ten, so that `extent` has at most `count` of them.
double niceStep(double extent, double count) {
  const double least = extent / count, power = std::pow(10.0, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= least) return factor * power;
  return 10 * power;
}

class Plot {
public:
  Plot(const PlannedPart& part, const program::report::MemoryMap& map)
      : part_(part), program_(part.program), map_(map) {
    const auto count = static_cast<double>(program_.instrs.size());
    column_ = std::clamp(kFitWidth / count, kNarrowest, kWidest);
    width_ = std::max(column_ * count, kLeastWidth);
    top_ = static_cast<double>(std::max(map.arenaBytes, map.maxLiveBytes));
  }

  std::string svg() {
    out_ = fmt::format("<svg class=\"memory\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" "
                       "height=\"{1:.0f}\" "
                       "role=\"img\" aria-label=\"memory map of space {2}\">\n",
                       kLeft + width_ + kRight, kTop + kHeight + kBottom,
                       markupEscaped(program_.spaces[map_.space].name));
    axes();
    blocks();
    liveLine();
    peak();
    return out_ + "</svg>\n";
  }

private:
  double x(double instr) const { return kLeft + instr * column_; }
  double y(double bytes) const { return kTop + kHeight * (1 - bytes / top_); }

  void axes() {
    const double step = niceStep(top_, 6);
    for (double bytes = 0; bytes <= top_ * 1.0001; bytes += step)
      out_ += fmt::format(
          "<line class=\"grid\" x1=\"{0:.1f}\" x2=\"{1:.1f}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/>"
          "<text class=\"tick\" x=\"{3:.1f}\" y=\"{4:.1f}\" text-anchor=\"end\">{5}</text>\n",
          kLeft, kLeft + width_, y(bytes), kLeft - 6, y(bytes) + 4,
          bytesText(static_cast<uint64_t>(bytes)));
    const auto count = static_cast<double>(program_.instrs.size());
    const double every = std::max(1.0, niceStep(count, std::min(count, width_ / 60)));
    for (double instr = every; instr <= count; instr += every)
      out_ += fmt::format(
          "<text class=\"tick\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{:.0f}</text>\n",
          x(instr - 0.5), kTop + kHeight + 16, instr);
    out_ += fmt::format("<text class=\"tick\" x=\"{:.1f}\" y=\"{:.1f}\" "
                        "text-anchor=\"middle\">instruction</text>\n",
                        kLeft + width_ / 2, kTop + kHeight + 34);
  }

  void blocks() {
    for (const Block& block : map_.blocks) {
      // Where a result takes its operand's place, the instruction's column is halved between them.
      const double from = x(block.first + (block.takesOver ? 0.5 : 0)),
                   to = x(block.last + (block.handsOver ? 0.5 : 1));
      const auto low = static_cast<double>(block.offset),
                 high = low + static_cast<double>(block.bytes);
      const double height = std::max(y(low) - y(high), 0.6);
      const std::string name = valueText(program_, block.buffer);
      out_ += fmt::format(
          "<g class=\"block {}\"><title>{}</title><rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" "
          "height=\"{:.2f}\"/>",
          kFamilies[familyOf(program_, block.buffer)].name, markupEscaped(tooltip(block, name)),
          from, y(high), to - from, height);
      label(name, from, y(high), to - from, height);
      out_ += "</g>\n";
    }
  }

  /// The name along the longer side that has room for it.
  void label(const std::string& name, double left, double top, double width, double height) {
    const bool isUpright = width < 5 * kLetter && height > width;
    if ((isUpright ? width : height) < kLine) return;
    const double room = (isUpright ? height : width) - 6;
    const bool fits = static_cast<double>(name.size()) * kLetter <= room;
    const std::string text = shortened(fits ? name : name.substr(0, name.find(',')), room);
    if (text.empty()) return;
    const double cx = left + width / 2, cy = top + height / 2;
    out_ += fmt::format(
        "<text x=\"{0:.1f}\" y=\"{1:.1f}\" dy=\".35em\" text-anchor=\"middle\"{2}>{3}</text>", cx,
        cy, isUpright ? fmt::format(" transform=\"rotate(-90 {:.1f} {:.1f})\"", cx, cy) : "",
        markupEscaped(text));
  }

  std::string tooltip(const Block& block, const std::string& name) const {
    std::string text = fmt::format("{}\nvalue %{}\n{} bytes at {}\ninstructions {} to {}", name,
                                   program_.buffers[block.buffer].name, block.bytes, block.offset,
                                   block.first + 1, block.last + 1);
    if (block.takesOver) text += "\nin the place of an operand";
    return text;
  }

  void liveLine() {
    std::string points;
    for (size_t i = 0; i < map_.live.size(); ++i) {
      const double at = y(static_cast<double>(map_.live[i]));
      points += fmt::format("{:.1f},{:.1f} {:.1f},{:.1f} ", x(static_cast<double>(i)), at,
                            x(static_cast<double>(i) + 1), at);
    }
    out_ += fmt::format("<polyline class=\"live\" points=\"{}\"/>\n", points);
  }

  void peak() {
    const double center = x(map_.peak + 0.5);
    // The text stands on that side of the mark which has more room.
    const bool isRight = center > kLeft + width_ / 2;
    const double textAt = isRight ? center - 9 : center + 9;
    const char* anchor = isRight ? "end" : "start";
    out_ += fmt::format(
        "<rect class=\"peak\" x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.1f}\"/>\n",
        x(map_.peak), kTop, column_, kHeight);
    out_ += fmt::format(
        "<path class=\"mark\" d=\"M{0:.1f} {1:.1f}l-5 -8h10z\"/><text class=\"mark\" x=\"{2:.1f}\" "
        "y=\"{3:.1f}\" text-anchor=\"{4}\">peak {5} at {6}</text>\n",
        center, kTop - 1, textAt, kTop - 8, anchor, bytesText(map_.live[map_.peak]),
        markupEscaped(program_.instrName(map_.peak)));
  }

  const PlannedPart& part_;
  const program::Program& program_;
  const program::report::MemoryMap& map_;
  double column_ = 0, width_ = 0, top_ = 0;
  std::string out_;
};

std::string legend(const program::Program& program, const program::report::MemoryMap& map) {
  std::string out = "<ul class=\"legend\">";
  for (size_t f = 0; f < std::size(kFamilies); ++f)
    if (std::ranges::any_of(
            map.blocks, [&](const Block& block) { return familyOf(program, block.buffer) == f; }))
      out += fmt::format("<li><i class=\"{}\"></i>{}</li>", kFamilies[f].name, kFamilies[f].title);
  return out + "<li><i class=\"line\"></i>bytes that are live</li></ul>\n";
}

} // namespace

std::string memoryFigure(const PlannedPart& part, const program::report::MemoryMap& map) {
  return map.peak == program::kNone ? "" : Plot(part, map).svg();
}

void addMemory(Page& page, const PlannedPart& part, const std::string& label) {
  const program::Program& program = part.program;
  const std::string suffix = label.empty() ? "" : " of " + label;
  for (const program::report::MemoryMap& map : part.maps) {
    if (map.peak == program::kNone) continue;
    const std::string where = fmt::format("{}{}", program.spaces[map.space].name, suffix);
    const double ratio =
        static_cast<double>(map.arenaBytes) / static_cast<double>(map.maxLiveBytes);
    page.figures.push_back({fmt::format("memory over time, space {}", where),
                            fmt::format("arena {} bytes, live at most {} bytes, ratio {:.3f}",
                                        map.arenaBytes, map.maxLiveBytes, ratio),
                            memoryFigure(part, map) + legend(program, map)});
    PageTable table{
        "at the peak in " + where, {"bytes", "offset", "first", "last", "value", "nodes"}, {}};
    for (const Block& block : map.at(map.peak))
      table.rows.push_back({block.bytes, block.offset, block.first + 1, block.last + 1,
                            program.buffers[block.buffer].name,
                            program::report::nodesBehind(program, block.buffer)});
    page.tables.insert(page.tables.begin() + static_cast<std::ptrdiff_t>(page.figures.size()) - 1,
                       std::move(table));
  }
  const program::report::Traffic& moved = part.traffic.total;
  page.fact("activation bytes moved" + suffix, moved.activations());
  page.fact("constant bytes moved" + suffix, moved.constants);
}

} // namespace candela::tool
