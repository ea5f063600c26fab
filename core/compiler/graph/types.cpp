#include "core/compiler/graph/types.h"

#include <algorithm>
#include <bit>
#include <ranges>

#include "core/support/text/literal.h"

namespace candela::graph {
namespace {

Shape withHalo(const TensorType& type) {
  Shape dims = type.physicalDims();
  for (size_t i = 0; type.halo && i < dims.size(); ++i)
    dims[i] += type.halo->lo[i] + type.halo->hi[i];
  return dims;
}

void addLayout(std::vector<std::string>& details, const Layout& layout) {
  std::vector<std::string> steps;
  for (const Layout::Step& step : layout.steps)
    steps.push_back(
        fmt::format("d{}{}", step.dim, step.factor ? fmt::format("%{}", step.factor) : ""));
  details.push_back(fmt::format("layout [{}]", fmt::join(steps, ", ")));
  if (layout.pad == Layout::Pad::zero) details.push_back("pad zero");
  if (layout.pad == Layout::Pad::zeroPoint) details.push_back("pad zero_point");
}

} // namespace

int64_t TensorType::count() const { return elementCount(dims).value_or(0); }

Shape TensorType::physicalDims() const {
  if (layout.isRowMajor()) return dims;
  Shape physical;
  for (size_t i = 0; i < layout.steps.size(); ++i) {
    const Layout::Step& step = layout.steps[i];
    const int64_t inner = layout.stepOf(i);
    physical.push_back(step.factor ? step.factor : (dim(step.dim) + inner - 1) / inner);
  }
  return physical;
}

std::vector<int64_t> TensorType::physicalStrides() const { return denseStrides(withHalo(*this)); }

int64_t TensorType::physicalOffset() const {
  const std::vector<int64_t> strides = physicalStrides();
  int64_t offset = 0;
  for (size_t i = 0; halo && i < strides.size(); ++i) offset += halo->lo[i] * strides[i];
  return offset;
}

int64_t TensorType::physicalCount() const { return elementCount(withHalo(*this)).value_or(0); }

int64_t Layout::stepOf(size_t i) const {
  int64_t product = 1;
  for (size_t j = i + 1; j < steps.size(); ++j)
    if (steps[j].dim == steps[i].dim) product *= steps[j].factor;
  return product;
}

bool Layout::divides(const Shape& shape) const {
  for (size_t i = 0; i < steps.size(); ++i)
    if (steps[i].dim >= shape.size() || (steps[i].factor == 0 && shape[steps[i].dim] % stepOf(i)))
      return false;
  return std::ranges::all_of(std::views::iota(size_t(0), shape.size()), [&](size_t d) {
    return std::ranges::any_of(steps, [&](const Step& step) { return step.dim == d; });
  });
}

std::string TensorType::text() const {
  std::vector<std::string> details;
  if (!layout.isRowMajor()) addLayout(details, layout);
  if (halo)
    details.push_back(fmt::format("halo [{}] [{}] {}", fmt::join(halo->lo, ", "),
                                  fmt::join(halo->hi, ", "), text::elementText(elem, halo->fill)));
  const std::string out = fmt::format("{}[{}]", elemName(elem), fmt::join(dims, ","));
  return details.empty() ? out : fmt::format("{}{{{}}}", out, fmt::join(details, ", "));
}

bool operator==(const TensorType& a, const TensorType& b) {
  return a.elem == b.elem && a.dims == b.dims && a.layout == b.layout &&
         (a.halo == b.halo || (a.halo && b.halo && *a.halo == *b.halo));
}

std::optional<Shape> broadcastShapes(Shape a, const Shape& b) {
  if (b.size() > a.size()) a.insert(a.begin(), b.size() - a.size(), 1);
  for (size_t d = 0; d < b.size(); ++d) {
    int64_t& dim = a[a.size() - b.size() + d];
    if (dim == 1) dim = b[d];
    if (dim != b[d] && b[d] != 1) return std::nullopt;
  }
  return a;
}

} // namespace candela::graph
