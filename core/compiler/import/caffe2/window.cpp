#include "core/compiler/import/caffe2/window.h"

#include <algorithm>

namespace candela::import::caffe2 {
namespace {

/// The argument legacy_pad.
enum class LegacyPad : int64_t { kNone = 0, kValid = 1, kSame = 2, kCaffe = 3 };

constexpr int64_t kMostExtent = int64_t(1) << 20;

/// Before and behind every dim, as ONNX has them.
Ints padsOf(const Step& step, size_t rank) {
  Ints pads = step.arguments.ints("pads");
  if (pads.empty()) {
    const int64_t all = step.arguments.integer("pad", 0);
    pads.assign(2 * rank, all);
    constexpr const char* kSides[] = {"pad_t", "pad_l", "pad_b", "pad_r"};
    for (size_t i = 0; rank == 2 && i < pads.size(); ++i)
      pads[i] = step.arguments.integer(kSides[i], all);
  }
  if (pads.size() != 2 * rank) reject("{} pads for {} dims", pads.size(), rank);
  for (const int64_t pad : pads)
    if (pad < 0 || pad > kMostExtent) reject("a pad of {}", pad);
  return pads;
}

} // namespace

Images::Images(Step& step) : step_(step), last_(false) {
  const std::string order = step.arguments.text("order", "NCHW");
  if (order != "NCHW" && order != "NHWC") reject("order '{}'", order);
  last_ = order == "NHWC";
}

Name Images::first(const Name& x) { return last_ ? step_.transpose(x, {0, 3, 1, 2}) : x; }

Name Images::weights(size_t operand) {
  return last_ ? step_.realInOrder(operand, {0, 3, 1, 2}) : step_.real(operand);
}

Name Images::back(const Name& y) { return last_ ? step_.transpose(y, {0, 2, 3, 1}) : y; }

Ints extentsOf(const Step& step, const std::string& name, const char* plural, int64_t otherwise) {
  Ints extents = step.arguments.ints(plural);
  if (extents.empty()) {
    const int64_t all = step.arguments.integer(name.c_str(), otherwise);
    extents = {step.arguments.integer((name + "_h").c_str(), all),
               step.arguments.integer((name + "_w").c_str(), all)};
  }
  for (const int64_t extent : extents)
    if (extent < 1 || extent > kMostExtent) reject("a {} of {}", name, extent);
  return extents;
}

Attributes windowOf(const Step& step) {
  const Ints kernel = extentsOf(step, "kernel", "kernels", 0);
  const size_t rank = kernel.size();
  const bool isDeep = step.arguments.has("kernels") && rank != 2;
  const auto extents = [&](const char* name, const char* plural) {
    Ints values = extentsOf(step, name, plural, 1);
    if (isDeep && !step.arguments.has(plural)) values.assign(rank, values.front());
    if (values.size() != rank) reject("{} {} for {} dims", values.size(), plural, rank);
    return values;
  };
  Attributes attributes{{"kernel_shape", kernel},
                        {"strides", extents("stride", "strides")},
                        {"dilations", extents("dilation", "dilations")}};
  switch (const int64_t legacy = step.arguments.integer("legacy_pad", 0); LegacyPad{legacy}) {
  case LegacyPad::kValid: return attributes;
  case LegacyPad::kSame: attributes["auto_pad"] = std::string("SAME_UPPER"); return attributes;
  case LegacyPad::kNone: break;
  case LegacyPad::kCaffe: attributes["ceil_mode"] = int64_t(1); break;
  default: reject("legacy_pad {}", legacy);
  }
  attributes["pads"] = padsOf(step, rank);
  return attributes;
}

} // namespace candela::import::caffe2
