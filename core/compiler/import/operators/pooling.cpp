#include <algorithm>

#include "core/compiler/graph/window.h"
#include "core/compiler/import/operators/window.h"

/// Pools that are formulas of others, and the transposed convolution.
namespace candela::import {
namespace {

/// |x|^p.
Term absolutePower(const Term& x, int64_t p) {
  if (p == 1) return abs(x);
  return p == 2 ? x * x : pow(abs(x), static_cast<double>(p));
}

/// The p-th root of x.
Term root(const Term& x, int64_t p) {
  if (p == 1) return x;
  return p == 2 ? sqrt(x) : pow(x, 1 / static_cast<double>(p));
}

/// The p-th root of what `sum` makes of |x|^p.
template <typename Sum> Term norm(NodeContext& context, const Term& x, Sum sum) {
  const auto p = attrOf<int64_t>(context, "p", 2);
  if (p < 1) need(badModel("attribute 'p' is {}, expected at least 1", p));
  const Term wide = widened(x);
  return root(sum(absolutePower(wide, p)), p).cast(x.elem());
}

/// The sum over a window is its mean times its size, once the border is made of zeros.
Status importLpPool(NodeContext& context) {
  const Term x = termOf(context, 0);
  const Window window = poolWindow(context, 18);
  const size_t spatial = window.kernel.size();
  graph::Window counted{
      window.kernel, window.strides, window.dilations, {}, {}, ceilMode(context, window, 18)};
  counted.padsBegin.assign(window.pads.begin(),
                           window.pads.begin() + static_cast<std::ptrdiff_t>(spatial));
  counted.padsEnd.assign(window.pads.begin() + static_cast<std::ptrdiff_t>(spatial),
                         window.pads.end());
  std::vector<int64_t> lo(spatial + 2, 0), hi(spatial + 2, 0);
  double size = 1;
  for (size_t i = 0; i < spatial; ++i) {
    const int d = static_cast<int>(i);
    const int64_t extent = x.dim(d + 2),
                  padded = extent + counted.padsBegin[i] + counted.padsEnd[i];
    if (counted.span(d) > padded)
      return badModel("kernel of {} is larger than the padded input of {} in spatial dim {}",
                      counted.span(d), padded, i);
    lo[i + 2] = counted.padsBegin[i];
    hi[i + 2] = (counted.count(d, extent) - 1) * counted.strides[i] + counted.span(d) -
                counted.padsBegin[i] - extent;
    size *= static_cast<double>(counted.kernel[i]);
  }
  return context.set(norm(context, x, [&](const Term& powers) {
    return make(OpKind::AveragePool, {powers.pad(lo, hi)},
                {{"kernel_shape", window.kernel},
                 {"strides", window.strides},
                 {"dilations", window.dilations}}) *
           size;
  }));
}

Status importGlobalLpPool(NodeContext& context) {
  const Term x = termOf(context, 0);
  if (x.rank() < 3)
    return badModel("input {} has rank {}, expected at least 3", x.text(), x.rank());
  std::vector<int64_t> axes = allAxes(context);
  axes.erase(axes.begin(), axes.begin() + 2);
  return context.set(norm(
      context, x, [&](const Term& powers) { return reduce(OpKind::ReduceSum, powers, axes); }));
}

Status importLpNormalization(NodeContext& context) {
  const Term x = termOf(context, 0);
  const int64_t axis = need(resolveAxis(attrOf<int64_t>(context, "axis", -1), x.rank()));
  const Term wide = widened(x);
  const Term length = norm(
      context, wide, [&](const Term& powers) { return reduce(OpKind::ReduceSum, powers, {axis}); });
  return context.set(select(equal(length, 0), 0, wide / length).cast(x.elem()));
}

/// Pads that leave the extents that output_shape or auto_pad ask for; output_padding only adds
/// places at the end.
Status importConvTranspose(NodeContext& context) {
  const Term x = termOf(context, 0), w = termOf(context, 1);
  const std::vector<int64_t> kernel = kernelOf(context, w.value()->type);
  const size_t spatial = kernel.size();
  if (x.rank() != w.rank()) return badModel("input {} but weight {}", x.text(), w.text());
  const auto strides = perDim(context, "strides", spatial, 1, 1),
             dilations = perDim(context, "dilations", spatial, 1, 1);
  const auto added = perDim(context, "output_padding", spatial, 0, 0),
             wanted = perDim(context, "output_shape", spatial, 0, 0);
  auto pads = perDim(context, "pads", 2 * spatial, 0, 0);
  const std::string mode = attrOf<std::string>(context, "auto_pad", "NOTSET");
  const bool upper = mode == "SAME_UPPER", same = upper || mode == "SAME_LOWER";
  if (!same && mode != "NOTSET" && mode != "VALID")
    return badModel("auto_pad '{}' is not NOTSET, SAME_UPPER, SAME_LOWER or VALID", mode);
  for (size_t i = 0; i < spatial; ++i) {
    constexpr int64_t kMostExtent = int64_t(1) << 30; // below it no sum or product overflows
    const int64_t extent = x.dim(static_cast<int64_t>(i) + 2);
    if (extent > kMostExtent || kernel[i] > kMostExtent)
      return badModel("input {} or weight {} is too large", x.text(), w.text());
    int64_t& end = pads[i + spatial];
    if (same || context.has("output_shape")) {
      const int64_t all = (extent - 1) * strides[i] + added[i] + (kernel[i] - 1) * dilations[i] + 1;
      const bool given =
          context.has("output_shape"); // it alone may ask for places that no element of x reaches
      const int64_t total =
          given ? all - wanted[i] : std::max<int64_t>(0, all - extent * strides[i]);
      const int64_t half = total >> 1;
      // Without a mode, places that are only added stand at the end, as ONNX Runtime and ONNX's own
      // evaluator have them.
      const int64_t front = upper ? half : total - half;
      pads[i] = !same && total < 0 ? 0 : front;
      end = total - pads[i];
    } else if (mode == "VALID") {
      pads[i] = end = 0;
    }
    end -= added[i];
  }
  return context.set(context.build.addAll(OpKind::ConvTranspose, context.inputs(),
                                          {{"strides", strides},
                                           {"dilations", dilations},
                                           {"pads", pads},
                                           {"group", attrOf<int64_t>(context, "group", 1)}},
                                          1));
}

constexpr Operator kPoolingOperators[] = {
    {"ConvTranspose", 2, 3, 1, importConvTranspose},
    {"GlobalLpPool", 1, 1, 1, importGlobalLpPool},
    {"LpNormalization", 1, 1, 1, importLpNormalization},
    {"LpPool", 1, 1, 1, importLpPool},
};

} // namespace

std::span<const Operator> poolingOperators() { return kPoolingOperators; }

} // namespace candela::import
