#include <algorithm>

#include "core/compiler/import/operators/window.h"

namespace candela::import {
namespace {

/// Pads that give ceil(extent / stride) windows; an odd one goes to the end (SAME_UPPER) or the
/// beginning.
void padSame(Window& window, const Shape& input, bool upper) {
  const size_t count = window.kernel.size();
  for (size_t i = 0; i < count; ++i) {
    const int64_t extent = input[i + 2], stride = window.strides[i];
    const int64_t windows = (extent + stride - 1) / stride;
    const int64_t covered =
        (windows - 1) * stride + (window.kernel[i] - 1) * window.dilations[i] + 1;
    const int64_t total = std::max<int64_t>(0, covered - extent);
    window.pads[i] = upper ? total / 2 : total - total / 2;
    window.pads[i + count] = total - window.pads[i];
  }
}

Result<Window> readWindow(NodeContext& context, const std::vector<int64_t>& kernel, bool dilated) {
  const graph::TensorType& type = context.input(0)->type;
  const size_t count = kernel.size();
  if (type.rank() != static_cast<int>(count) + 2)
    return badModel("input {} has rank {}, but a kernel of {} dims needs {}", type.text(),
                    type.rank(), count, count + 2);
  Window window = {kernel, perDim(context, "strides", count, 1, 1), std::vector<int64_t>(count, 1),
                   perDim(context, "pads", 2 * count, 0, 0)};
  if (dilated) window.dilations = perDim(context, "dilations", count, 1, 1);
  const std::string mode = attrOf<std::string>(context, "auto_pad", "NOTSET");
  if (mode == "NOTSET") return window;
  window.fixed = true;
  std::fill(window.pads.begin(), window.pads.end(), 0);
  if (mode == "SAME_UPPER" || mode == "SAME_LOWER")
    padSame(window, type.shape(), mode == "SAME_UPPER");
  else if (mode != "VALID")
    return badModel("auto_pad '{}' is not NOTSET, SAME_UPPER, SAME_LOWER or VALID", mode);
  return window;
}

Status importConv(NodeContext& context) {
  CDL_ASSIGN(Attrs attrs, convAttrs(context, context.input(1)->type));
  return context.set(context.build.addAll(OpKind::Conv, context.inputs(), std::move(attrs), 1));
}

/// What both pools say, and one flag of their own.
Status importPool(NodeContext& context, OpKind kind, int dilatedSince, const char* flag) {
  const Window window = poolWindow(context, dilatedSince);
  Attrs attrs = window.attrs();
  attrs["kernel_shape"] = window.kernel;
  attrs["ceil_mode"] = int64_t(ceilMode(context, window, 10));
  attrs[flag] = int64_t(need(context.flagAttr(flag, false)));
  return context.set(
      context.build.addAll(kind, {context.input(0)}, std::move(attrs), context.wants(1) ? 2 : 1));
}
Status importMaxPool(NodeContext& context) {
  return importPool(context, OpKind::MaxPool, 10, "storage_order");
}
Status importAveragePool(NodeContext& context) {
  return importPool(context, OpKind::AveragePool, 19, "count_include_pad");
}

Status importGlobalMaxPool(NodeContext& context) {
  const Term x = termOf(context, 0);
  if (x.rank() < 3)
    return badModel("input {} has rank {}, expected at least 3", x.text(), x.rank());
  const Shape shape = x.shape(), kernel(shape.begin() + 2, shape.end());
  return context.set(make(OpKind::MaxPool, {x}, {{"kernel_shape", kernel}}));
}

constexpr Operator kWindowOperators[] = {
    {"AveragePool", 1, 1, 1, importAveragePool},
    {"Conv", 2, 3, 1, importConv},
    {"GlobalMaxPool", 1, 1, 1, importGlobalMaxPool},
    {"MaxPool", 1, 1, 2, importMaxPool},
};

} // namespace

Window poolWindow(NodeContext& context, int dilatedSince) {
  const auto given = need(context.maybe<std::vector<int64_t>>("kernel_shape"));
  if (!given) need(badModel("attribute 'kernel_shape' is missing"));
  return need(readWindow(context, perDim(context, "kernel_shape", given->size(), 1, 1),
                         context.opset >= dilatedSince));
}

bool ceilMode(NodeContext& context, const Window& window, int since) {
  const bool ceil = context.opset >= since && need(context.flagAttr("ceil_mode", false));
  // With auto_pad the number of windows is exact, and rounding up would change nothing.
  if (!ceil || window.fixed) return false;
  // ONNX once counted a last window that begins behind the input and its padding in front.
  const size_t spatial = window.kernel.size();
  for (size_t i = 0; i < spatial; ++i) {
    const int64_t stride = window.strides[i],
                  reach = context.input(0)->type.dim(static_cast<int>(i) + 2) + window.pads[i];
    const int64_t left =
        reach + window.pads[i + spatial] - (window.kernel[i] - 1) * window.dilations[i] - 1;
    if (left > 0 && (left + stride - 1) / stride * stride >= reach) context.disputeExtents();
  }
  return true;
}

std::vector<int64_t> kernelOf(NodeContext& context, const graph::TensorType& weight) {
  if (weight.rank() < 3)
    need(badModel("weight {} has rank {}, expected at least 3", weight.text(), weight.rank()));
  const Shape shape = weight.shape(), kernel(shape.begin() + 2, shape.end());
  const auto declared = attrOf<std::vector<int64_t>>(context, "kernel_shape", kernel);
  if (declared != kernel)
    need(badModel("kernel_shape [{}] but weight {}", fmt::join(declared, ","), weight.text()));
  return kernel;
}

Result<Attrs> convAttrs(NodeContext& context, const graph::TensorType& weight) {
  Attrs attrs = need(readWindow(context, kernelOf(context, weight), true)).attrs();
  attrs["group"] = attrOf<int64_t>(context, "group", 1);
  return attrs;
}

std::span<const Operator> windowOperators() { return kWindowOperators; }

} // namespace candela::import
