#include "core/graph/types.h"

#include <algorithm>
#include <bit>

#include "core/support/text/literal.h"

namespace candela::graph {

Shape TensorType::shape() const {
  Shape shape;
  for (const Dim& dim : dims) shape.push_back(dim.bound);
  return shape;
}

int64_t TensorType::count() const { return elementCount(shape()).value_or(0); }

bool TensorType::isExact() const {
  return std::all_of(dims.begin(), dims.end(), [](const Dim& dim) { return dim.exact; });
}

namespace {

std::string quantText(const Quant& quant) {
  std::string out = quant.axis < 0 ? "" : fmt::format("axis {}, ", quant.axis);
  out += "scale [";
  for (size_t i = 0; i < quant.scales.size(); ++i)
    out += (i ? ", " : "") + text::elementText(Elem::f32_, std::bit_cast<uint32_t>(quant.scales[i]));
  return out + fmt::format("], zero [{}]", fmt::join(quant.zeros, ", "));
}

std::string layoutText(const Layout& layout) {
  std::string out = "layout [";
  for (size_t i = 0; i < layout.steps.size(); ++i) {
    const Layout::Step& step = layout.steps[i];
    out += fmt::format("{}d{}", i ? ", " : "", step.dim);
    if (step.factor) out += fmt::format("%{}", step.factor);
  }
  out += "]";
  if (layout.pad == Layout::Pad::zero) out += ", pad zero";
  if (layout.pad == Layout::Pad::zeroPoint) out += ", pad zero_point";
  return out;
}

} // namespace

std::string TensorType::text() const {
  std::string out = fmt::format("{}[", elemName(elem));
  for (size_t i = 0; i < dims.size(); ++i)
    out += fmt::format("{}{}{}", i ? "," : "", dims[i].exact ? "" : "<=", dims[i].bound);
  out += "]";
  if (quant && !layout.isRowMajor()) return fmt::format("{}{{{}, {}}}", out, quantText(*quant), layoutText(layout));
  if (quant) return fmt::format("{}{{{}}}", out, quantText(*quant));
  if (!layout.isRowMajor()) return fmt::format("{}{{{}}}", out, layoutText(layout));
  return out;
}

bool operator==(const TensorType& a, const TensorType& b) {
  const bool sameQuant = a.quant == b.quant || (a.quant && b.quant && *a.quant == *b.quant);
  return a.elem == b.elem && a.dims == b.dims && sameQuant && a.layout == b.layout;
}

std::optional<Shape> broadcastShapes(const Shape& a, const Shape& b) {
  const Shape& longer = a.size() >= b.size() ? a : b;
  const Shape& shorter = a.size() >= b.size() ? b : a;
  Shape out = longer;
  const size_t lead = longer.size() - shorter.size();
  for (size_t i = 0; i < shorter.size(); ++i) {
    int64_t& dim = out[lead + i];
    if (dim == 1) {
      dim = shorter[i];
    } else if (shorter[i] != 1 && shorter[i] != dim) {
      return std::nullopt;
    }
  }
  return out;
}

} // namespace candela::graph
