#include <algorithm>

#include "core/import/step.h"

namespace candela::import {
namespace {

/// What Conv and the pools say about their windows, with auto_pad resolved: one value per spatial
/// dim, pads two.
struct Window {
  std::vector<int64_t> kernel, strides, dilations, pads;
  bool fixed = false; ///< auto_pad decided: the result has the size that it asks for

  Attrs attrs() const { return {{"strides", strides}, {"dilations", dilations}, {"pads", pads}}; }
};

/// Pads that give ceil(extent / stride) windows; an odd one goes to the end (SAME_UPPER) or the
/// beginning.
void padSame(Window& window, const Shape& input, bool upper) {
  const size_t count = window.kernel.size();
  for (size_t i = 0; i < count; ++i) {
    const int64_t extent = input[i + 2], stride = window.strides[i];
    const int64_t windows = (extent + stride - 1) / stride;
    const int64_t covered = (windows - 1) * stride + (window.kernel[i] - 1) * window.dilations[i] + 1;
    const int64_t total = std::max<int64_t>(0, covered - extent);
    window.pads[i] = upper ? total / 2 : total - total / 2;
    window.pads[i + count] = total - window.pads[i];
  }
}

Result<Window> readWindow(Step& step, const std::vector<int64_t>& kernel, bool dilated) {
  const graph::TensorType& type = step.input(0)->type;
  const size_t count = kernel.size();
  if (type.rank() != static_cast<int>(count) + 2)
    return badModel("input {} has rank {}, but a kernel of {} dims needs {}", type.text(), type.rank(), count,
                    count + 2);
  CDL_TRY(needExact(step));
  Window window;
  window.kernel = kernel;
  CDL_ASSIGN(window.strides, perDim(step, "strides", count, 1, 1));
  window.dilations.assign(count, 1);
  if (dilated) { CDL_ASSIGN(window.dilations, perDim(step, "dilations", count, 1, 1)); }
  CDL_ASSIGN(window.pads, perDim(step, "pads", 2 * count, 0, 0));
  CDL_ASSIGN(const std::string mode, step.attr<std::string>("auto_pad", "NOTSET"));
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
  return step.set(step.build.add(OpKind::Conv, {step.input(0), step.input(1), step.input(2)}, std::move(attrs)));
}

/// What both pools say, and one flag of their own. dilatedSince: the opset that brought dilations.
Status importPool(Step& step, OpKind kind, int dilatedSince, const char* flag) {
  CDL_ASSIGN(const auto given, step.maybe<std::vector<int64_t>>("kernel_shape"));
  if (!given) return badModel("attribute 'kernel_shape' is missing");
  CDL_ASSIGN(const auto kernel, perDim(step, "kernel_shape", given->size(), 1, 1));
  CDL_ASSIGN(const Window window, readWindow(step, kernel, step.opset >= dilatedSince));
  Attrs attrs = window.attrs();
  attrs["kernel_shape"] = kernel;
  bool ceil = false;
  if (step.opset >= 10) { CDL_ASSIGN(ceil, step.flagAttr("ceil_mode", false)); }
  // With auto_pad the number of windows is exact, and rounding up would change nothing.
  attrs["ceil_mode"] = int64_t(ceil && !window.fixed);
  CDL_ASSIGN(const bool flagged, step.flagAttr(flag, false));
  attrs[flag] = int64_t(flagged);
  return step.set(step.build.addAll(kind, {step.input(0)}, std::move(attrs), step.wants(1) ? 2 : 1));
}
Status importMaxPool(Step& step) { return importPool(step, OpKind::MaxPool, 10, "storage_order"); }
Status importAveragePool(Step& step) { return importPool(step, OpKind::AveragePool, 19, "count_include_pad"); }

Status importGlobalMaxPool(Step& step) {
  const graph::TensorType& type = step.input(0)->type;
  if (type.rank() < 3) return badModel("input {} has rank {}, expected at least 3", type.text(), type.rank());
  const Shape shape = type.shape();
  const std::vector<int64_t> kernel(shape.begin() + 2, shape.end());
  return step.set(step.build.add(OpKind::MaxPool, {step.input(0)}, {{"kernel_shape", kernel}}));
}

constexpr Operator kOperators[] = {
    {"AveragePool", 1, 1, 1, importAveragePool},
    {"Conv", 2, 3, 1, importConv},
    {"GlobalMaxPool", 1, 1, 1, importGlobalMaxPool},
    {"MaxPool", 1, 1, 2, importMaxPool},
};

} // namespace

Result<std::vector<int64_t>> perDim(Step& step, const char* name, size_t count, int64_t fallback, int64_t least) {
  CDL_ASSIGN(const auto values, step.attr(name, std::vector<int64_t>(count, fallback)));
  if (values.size() != count) return badModel("attribute '{}' has {} values, expected {}", name, values.size(), count);
  constexpr int64_t kMost = (int64_t(1) << 31) - 1;
  for (int64_t value : values)
    if (value < least || value > kMost)
      return badModel("attribute '{}' has value {}, expected {} to {}", name, value, least, kMost);
  return values;
}

Result<Attrs> convAttrs(Step& step, const graph::TensorType& weight) {
  if (weight.rank() < 3) return badModel("weight {} has rank {}, expected at least 3", weight.text(), weight.rank());
  const Shape shape = weight.shape();
  const std::vector<int64_t> kernel(shape.begin() + 2, shape.end());
  CDL_ASSIGN(const auto declared, step.maybe<std::vector<int64_t>>("kernel_shape"));
  if (declared && *declared != kernel)
    return badModel("kernel_shape [{}] but weight {}", fmt::join(*declared, ","), weight.text());
  CDL_ASSIGN(const Window window, readWindow(step, kernel, true));
  CDL_ASSIGN(const int64_t group, step.attr<int64_t>("group", 1));
  Attrs attrs = window.attrs();
  attrs["group"] = group;
  return attrs;
}

std::span<const Operator> windowOperators() { return kOperators; }

} // namespace candela::import
