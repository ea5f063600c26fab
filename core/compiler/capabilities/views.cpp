#include "core/compiler/capabilities/views.h"

namespace candela::capabilities {

Walk coalesce(const Walk& walk) {
  const size_t operands = walk.strides.size();
  for (int64_t dim : walk.dims)
    if (dim == 0) return {{0}, std::vector(operands, std::vector<int64_t>{1})};

  Walk out{{}, std::vector<std::vector<int64_t>>(operands)};
  for (size_t d = 0; d < walk.dims.size(); ++d) {
    const int64_t extent = walk.dims[d];
    if (extent == 1) continue;
    bool merges = !out.dims.empty();
    for (size_t k = 0; merges && k < operands; ++k)
      merges = out.strides[k].back() == walk.strides[k][d] * extent;
    if (!merges) out.dims.push_back(1);
    out.dims.back() *= extent;
    for (size_t k = 0; k < operands; ++k) {
      if (!merges) out.strides[k].push_back(0);
      out.strides[k].back() = walk.strides[k][d];
    }
  }
  if (out.dims.empty()) return {{1}, std::vector(operands, std::vector<int64_t>{1})};
  return out;
}

Shape aroundAxis(const Shape& dims, int64_t axis) {
  const auto rank = static_cast<int64_t>(dims.size());
  if (axis < 0) axis += rank;
  Shape form{1, dims[axis], 1};
  for (int64_t d = 0; d < rank; ++d)
    if (d != axis) form[d < axis ? 0 : 2] *= dims[d];
  return form;
}

std::vector<int64_t> broadcastStrides(const Shape& shape, const Shape& dims) {
  CDL_CHECK(shape.size() <= dims.size(), "{} broadcast to {}", shapeText(shape), shapeText(dims));
  const std::vector<int64_t> dense = denseStrides(shape);
  std::vector<int64_t> strides(dims.size(), 0);
  const size_t lead = dims.size() - shape.size();
  for (size_t d = 0; d < shape.size(); ++d) {
    CDL_CHECK(shape[d] == dims[lead + d] || shape[d] == 1, "{} broadcast to {}", shapeText(shape),
              shapeText(dims));
    if (shape[d] != 1) strides[lead + d] = dense[d];
  }
  return strides;
}

std::optional<Shape> shapeOver(const Shape& shape, const Shape& from, const Shape& to) {
  if (from == to) return shape;
  Shape given(from.size() - shape.size(), 1), over;
  given.insert(given.end(), shape.begin(), shape.end());
  // The fewest dims of both that hold the same elements are walked, or repeated, as one.
  for (size_t p = 0, q = 0; p < from.size() || q < to.size();) {
    const size_t p0 = p;
    int64_t a = p < from.size() ? from[p++] : 1;
    int64_t b = q < to.size() ? to[q++] : 1;
    while (a != b) {
      if (a < b ? p == from.size() : q == to.size()) return std::nullopt;
      if (a < b)
        a *= from[p++];
      else
        b *= to[q++];
    }
    bool isWhole = true, repeats = true;
    for (size_t d = p0; d < p; ++d) {
      isWhole &= given[d] == from[d];
      repeats &= given[d] == 1;
    }
    if (!isWhole && !repeats) return std::nullopt;
    while (over.size() < q) over.push_back(isWhole ? to[over.size()] : 1);
  }
  return over;
}

} // namespace candela::capabilities
