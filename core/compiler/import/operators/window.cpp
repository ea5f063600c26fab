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

Result<Window> readWindow(Step& step, const std::vector<int64_t>& kernel, bool dilated) {
  const graph::TensorType& type = step.input(0)->type;
  const size_t count = kernel.size();
  if (type.rank() != static_cast<int>(count) + 2)
    return badModel("input {} has rank {}, but a kernel of {} dims needs {}", type.text(),
                    type.rank(), count, count + 2);
  Window window = {kernel, perDim(step, "strides", count, 1, 1), std::vector<int64_t>(count, 1),
                   perDim(step, "pads", 2 * count, 0, 0)};
  if (dilated) window.dilations = perDim(step, "dilations", count, 1, 1);
  const std::string mode = attrOf<std::string>(step, "auto_pad", "NOTSET");
  if (mode == "NOTSET") return window;
  window.fixed = true;
  std::fill(window.pads.begin(), window.pads.end(), 0);
  if (mode == "SAME_UPPER" || mode == "SAME_LOWER")
    padSame(window, type.shape(), mode == "SAME_UPPER");
  else if (mode != "VALID")
    return badModel("auto_pad '{}' is not NOTSET, SAME_UPPER, SAME_LOWER or VALID", mode);
  return window;
}

Status importConv(Step& step) {
  CDL_ASSIGN(Attrs attrs, convAttrs(step, step.input(1)->type));
  return step.set(step.build.addAll(OpKind::Conv, step.inputs(), std::move(attrs), 1));
}

/// What both pools say, and one flag of their own.
Status importPool(Step& step, OpKind kind, int dilatedSince, const char* flag) {
  const Window window = poolWindow(step, dilatedSince);
  Attrs attrs = window.attrs();
  attrs["kernel_shape"] = window.kernel;
  attrs["ceil_mode"] = int64_t(ceilMode(step, window, 10));
  attrs[flag] = int64_t(need(step.flagAttr(flag, false)));
  return step.set(
      step.build.addAll(kind, {step.input(0)}, std::move(attrs), step.wants(1) ? 2 : 1));
}
Status importMaxPool(Step& step) { return importPool(step, OpKind::MaxPool, 10, "storage_order"); }
Status importAveragePool(Step& step) {
  return importPool(step, OpKind::AveragePool, 19, "count_include_pad");
}

Status importGlobalMaxPool(Step& step) {
  const Term x = termOf(step, 0);
  if (x.rank() < 3)
    return badModel("input {} has rank {}, expected at least 3", x.text(), x.rank());
  const Shape shape = x.shape(), kernel(shape.begin() + 2, shape.end());
  return step.set(make(OpKind::MaxPool, {x}, {{"kernel_shape", kernel}}));
}

constexpr Operator kWindowOperators[] = {
    {"AveragePool", 1, 1, 1, importAveragePool},
    {"Conv", 2, 3, 1, importConv},
    {"GlobalMaxPool", 1, 1, 1, importGlobalMaxPool},
    {"MaxPool", 1, 1, 2, importMaxPool},
};

} // namespace

Window poolWindow(Step& step, int dilatedSince) {
  const auto given = need(step.maybe<std::vector<int64_t>>("kernel_shape"));
  if (!given) need(badModel("attribute 'kernel_shape' is missing"));
  return need(readWindow(step, perDim(step, "kernel_shape", given->size(), 1, 1),
                         step.opset >= dilatedSince));
}

bool ceilMode(Step& step, const Window& window, int since) {
  const bool ceil = step.opset >= since && need(step.flagAttr("ceil_mode", false));
  // With auto_pad the number of windows is exact, and rounding up would change nothing.
  if (!ceil || window.fixed) return false;
  // ONNX once counted a last window that begins behind the input and its padding in front.
  const size_t spatial = window.kernel.size();
  for (size_t i = 0; i < spatial; ++i) {
    const int64_t stride = window.strides[i],
                  reach = step.input(0)->type.dim(static_cast<int>(i) + 2) + window.pads[i];
    const int64_t left =
        reach + window.pads[i + spatial] - (window.kernel[i] - 1) * window.dilations[i] - 1;
    if (left > 0 && (left + stride - 1) / stride * stride >= reach) step.disputeExtents();
  }
  return true;
}

std::vector<int64_t> kernelOf(Step& step, const graph::TensorType& weight) {
  if (weight.rank() < 3)
    need(badModel("weight {} has rank {}, expected at least 3", weight.text(), weight.rank()));
  const Shape shape = weight.shape(), kernel(shape.begin() + 2, shape.end());
  const auto declared = attrOf<std::vector<int64_t>>(step, "kernel_shape", kernel);
  if (declared != kernel)
    need(badModel("kernel_shape [{}] but weight {}", fmt::join(declared, ","), weight.text()));
  return kernel;
}

Result<Attrs> convAttrs(Step& step, const graph::TensorType& weight) {
  Attrs attrs = need(readWindow(step, kernelOf(step, weight), true)).attrs();
  attrs["group"] = attrOf<int64_t>(step, "group", 1);
  return attrs;
}

std::span<const Operator> windowOperators() { return kWindowOperators; }

} // namespace candela::import
