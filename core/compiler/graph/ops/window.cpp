#include "core/compiler/graph/window.h"

#include "core/compiler/graph/ops/common.h"

namespace candela::graph {

int64_t Window::count(int dim, int64_t extent) const {
  const int64_t room = extent + padsBegin[dim] + padsEnd[dim] - span(dim);
  int64_t count = room / strides[dim] + 1;
  if (ceilMode && room % strides[dim] != 0 && count * strides[dim] < extent + padsBegin[dim])
    ++count;
  return count;
}

Window windowOf(const Node& node, Shape kernel) {
  const size_t rank = kernel.size();
  const Shape pads = node.intsAttr("pads", 2 * rank, 0);
  Window window;
  window.kernel = std::move(kernel);
  window.strides = node.intsAttr("strides", rank, 1);
  window.dilations = node.intsAttr("dilations", rank, 1);
  window.padsBegin.assign(pads.begin(), pads.begin() + static_cast<std::ptrdiff_t>(rank));
  window.padsEnd.assign(pads.begin() + static_cast<std::ptrdiff_t>(rank), pads.end());
  window.ceilMode = node.info().attr("ceil_mode") && node.intAttr("ceil_mode") != 0;
  return window;
}

Result<Window> checkWindow(const Node& node, Shape kernel, const Shape& extents,
                           std::string_view countId, std::string_view fitId) {
  const size_t rank = kernel.size();
  for (const std::string_view name : {"strides", "pads", "dilations"}) {
    const size_t expected = name == "pads" ? 2 * rank : rank;
    if (node.hasAttr(name) && node.intsAttr(name).size() != expected)
      return node.fail(countId, name, node.intsAttr(name).size(), expected);
  }
  Window window = windowOf(node, std::move(kernel));
  for (int i = 0; i < window.rank(); ++i) {
    // Beyond 2^31 no window can fit a tensor; the limit keeps every sum and product below in 64
    // bits.
    constexpr int64_t kLimit = int64_t(1) << 31;
    for (const int64_t value : {window.kernel[i], window.strides[i], window.dilations[i],
                                window.padsBegin[i], window.padsEnd[i]})
      if (value > kLimit)
        return badModel("{} '{}': window attribute {} is above {}", opName(node.kind),
                        node.userName(), value, kLimit);
    const int64_t padded = extents[i] + window.padsBegin[i] + window.padsEnd[i];
    if (window.span(i) > padded) return node.fail(fitId, window.span(i), padded, i);
  }
  return window;
}

/// Of max_pool, with the indices of the maxima, and average_pool.
Result<Types> inferPool(const Node& node) {
  const TensorType& x = typeOf(node, 0);
  const Shape kernel = node.intsAttr("kernel_shape"), input = x.shape();
  if (kernel.empty() || static_cast<size_t>(x.rank()) != kernel.size() + 2)
    return node.fail("c1", x.rank(), kernel.size());
  const Shape extents(input.begin() + 2, input.end());
  CDL_ASSIGN(const Window window, checkWindow(node, kernel, extents, "c2", "c3"));
  TensorType type = likeOperand(node, 0);
  for (int i = 0; i < window.rank(); ++i) type.dims[i + 2] = window.count(i, extents[i]);
  Types types(node.info().results.size(), type);
  if (types.size() > 1) types[1].elem = Elem::i64_;
  return types;
}

Result<Types> inferGlobalAveragePool(const Node& node) {
  TensorType type = likeOperand(node, 0);
  if (type.rank() < 3) return node.fail("global_average_pool_c1", type.rank());
  for (int i = 2; i < type.rank(); ++i) type.dims[i] = 1;
  return Types{type};
}

} // namespace candela::graph
