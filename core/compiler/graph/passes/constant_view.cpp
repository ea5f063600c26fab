#include "core/compiler/graph/passes/constant_view.h"

#include <algorithm>
#include <numeric>

#include "core/compiler/graph/passes/rewrite.h"

namespace candela::graph::passes {

namespace {

using Dim = ConstantView::Dim;
using Factor = ConstantView::Factor;

int64_t heldBy(const std::vector<Factor>& factors) {
  int64_t product = 1;
  for (const Factor& factor : factors) product *= factor.extent;
  return product;
}

bool isWhole(const Dim& dim) { return dim.extent == heldBy(dim.factors); }

/// Takes the first factors off whose product is `extent`, split where one is more; nullopt where
/// none is.
std::optional<std::vector<Factor>> takeFirst(std::vector<Factor>& factors, int64_t extent) {
  std::vector<Factor> taken;
  while (extent > 1) {
    if (factors.empty()) return std::nullopt;
    Factor& first = factors.front();
    if (extent % first.extent == 0) {
      extent /= first.extent;
      taken.push_back(first);
      factors.erase(factors.begin());
      continue;
    }
    if (first.extent % extent != 0) return std::nullopt;
    first.extent /= extent;
    taken.push_back({extent, first.stride * first.extent});
    extent = 1;
  }
  return taken;
}

/// Dims of a reshape that have the same elements as dims of what is reshaped.
struct Group {
  size_t fromBegin, fromEnd;
  size_t toBegin, toEnd;
};

/// The smallest groups, in order.
std::vector<Group> groupsOf(const std::vector<Dim>& from, const Shape& to) {
  std::vector<Group> groups;
  size_t i = 0;
  size_t k = 0;
  while (i < from.size() || k < to.size()) {
    Group group{i, i, k, k};
    int64_t left = 1;
    int64_t right = 1;
    const auto takeLeft = [&] { left *= from[i++].extent; };
    const auto takeRight = [&] { right *= to[k++]; };
    if (i < from.size()) takeLeft();
    if (k < to.size()) takeRight();
    while (left != right) {
      if (left < right)
        takeLeft();
      else
        takeRight();
    }
    group.fromEnd = i;
    group.toEnd = k;
    groups.push_back(group);
  }
  return groups;
}

} // namespace

bool isViewMovement(const Node& node) {
  switch (node.kind) {
  case OpKind::Reshape:
  case OpKind::Transpose:
  case OpKind::Slice:
  case OpKind::Expand: return true;
  default: return false;
  }
}

bool keepsNarrowNumbers(Elem from, Elem to) {
  if (from == to) return true;
  const bool isComputed = isFloat(to) && !isStorageOnly(to);
  if (isFloat(from)) return isComputed && (elemBits(from) <= 8 || elemBits(to) >= 32);
  if (isFloat(to)) return isComputed;
  if (!isInteger(from) || !isInteger(to)) return false;
  return elemBits(to) > elemBits(from) && (isSigned(to) || !isSigned(from));
}

std::optional<ConstantView> ConstantView::of(const Value* value) {
  const Node* node = value ? value->producer : nullptr;
  if (!node || !isPlain(value)) return std::nullopt;
  if (value->isConstant()) {
    ConstantView view;
    view.stored_ = value;
    const Shape shape = value->type.shape();
    if (value->type.count() == 0) return std::nullopt;
    const std::vector<int64_t> strides = denseStrides(shape);
    for (size_t d = 0; d < shape.size(); ++d)
      view.dims_.push_back({shape[d], {{shape[d], strides[d]}}});
    return view;
  }
  const bool isExactCast =
      node->kind == OpKind::Cast &&
      keepsNarrowNumbers(node->operand(0)->type.elem, node->result()->type.elem);
  if (!isExactCast && !isViewMovement(*node)) return std::nullopt;
  const auto inner = of(node->operand(0));
  if (!inner || isExactCast) return inner;
  return inner->behind(*node);
}

int64_t ConstantView::runLength(size_t dim) const {
  const Dim& own = dims_[dim];
  int64_t run = 1;
  for (size_t i = own.factors.size(); i-- > 0;) {
    if (own.factors[i].stride != 0 && own.factors[i].extent != 1) return std::min(run, own.extent);
    run *= own.factors[i].extent;
  }
  return own.extent;
}

std::optional<ConstantView> ConstantView::behind(const Node& movement) const {
  switch (movement.kind) {
  case OpKind::Reshape: return reshaped(movement.result()->type.shape());
  case OpKind::Slice: return sliced(movement);
  case OpKind::Expand: return broadcastTo(movement.result()->type.shape());
  case OpKind::Transpose: {
    ConstantView view = *this;
    const std::vector<int64_t> order = movement.intsAttr("perm");
    for (size_t d = 0; d < order.size(); ++d) view.dims_[d] = dims_[static_cast<size_t>(order[d])];
    return view;
  }
  default: return std::nullopt;
  }
}

std::optional<ConstantView> ConstantView::reshaped(const Shape& shape) const {
  ConstantView view = *this;
  view.dims_.clear();
  for (const Group& group : groupsOf(dims_, shape)) {
    const bool isOne = group.fromEnd - group.fromBegin == 1 && group.toEnd - group.toBegin == 1;
    if (isOne) {
      view.dims_.push_back(dims_[group.fromBegin]);
      continue;
    }
    std::vector<Factor> factors;
    for (size_t i = group.fromBegin; i < group.fromEnd; ++i) {
      if (!isWhole(dims_[i])) return std::nullopt;
      factors.insert(factors.end(), dims_[i].factors.begin(), dims_[i].factors.end());
    }
    std::erase_if(factors, [](const Factor& factor) { return factor.extent == 1; });
    for (size_t k = group.toBegin; k < group.toEnd; ++k) {
      const auto taken = takeFirst(factors, shape[k]);
      if (!taken) return std::nullopt;
      view.dims_.push_back({shape[k], *taken});
    }
  }
  return view;
}

std::optional<ConstantView> ConstantView::sliced(const Node& slice) const {
  ConstantView view = *this;
  const std::vector<int64_t> starts = slice.intsAttr("starts");
  const std::vector<int64_t> steps = slice.intsAttr("steps");
  const Shape counts = slice.result()->type.shape();
  for (size_t d = 0; d < dims_.size(); ++d) {
    Dim& dim = view.dims_[d];
    if (counts[d] == 0) return std::nullopt;
    const bool isPrefix = starts[d] == 0 && steps[d] == 1;
    if (!isPrefix) {
      if (dim.factors.size() != 1) return std::nullopt;
      Factor& factor = dim.factors[0];
      view.offset_ += starts[d] * factor.stride;
      factor = {counts[d], factor.stride * steps[d]};
    }
    dim.extent = counts[d];
  }
  return view;
}

ConstantView ConstantView::broadcastTo(const Shape& dims) const {
  ConstantView view = *this;
  const size_t more = dims.size() - dims_.size();
  view.dims_.insert(view.dims_.begin(), more, Dim{1, {}});
  for (size_t d = 0; d < dims.size(); ++d)
    if (view.dims_[d].extent != dims[d]) view.dims_[d] = {dims[d], {{dims[d], 0}}};
  return view;
}

ConstantView ConstantView::alongAxis(size_t axis, const Shape& dims) const {
  ConstantView view = *this;
  view.dims_.assign(dims.size(), Dim{1, {}});
  if (dims_.size() == 1) view.dims_[axis] = dims_[0];
  return view.broadcastTo(dims);
}

std::vector<int64_t> ConstantView::places(size_t dim, int64_t step) const {
  std::vector<int64_t> places;
  const Dim& own = dims_[dim];
  for (int64_t index = 0; index < own.extent; index += step) {
    int64_t rest = index;
    int64_t place = 0;
    for (size_t i = own.factors.size(); i-- > 0;) {
      place += rest % own.factors[i].extent * own.factors[i].stride;
      rest /= own.factors[i].extent;
    }
    places.push_back(place);
  }
  return places;
}

} // namespace candela::graph::passes
