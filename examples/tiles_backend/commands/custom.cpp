// com.example.SoftThreshold, an op that ONNX does not know: y = x - clamp(x, -threshold,
// threshold), in f32.
#include "../compiler.hpp"

#include <bit>

namespace tiles {

namespace {

constexpr uint16_t kThreshold = CDL_CUSTOM_ATTR_FIRST;

} // namespace

cdl::Status claimSoftThreshold(const cdl::CustomNode& node, cdl::CustomClaim& claim) {
  if (!node.is("com.example", "SoftThreshold")) return cdl::unsupported("has no op of that name");
  if (node.input(0).elem != CDL_F32)
    return cdl::unsupported(
        cdl::text("x is ", cdl::elemName(node.input(0).elem), ", cast it to f32"));
  const double threshold = node.floatAttr("threshold", 0.5);
  if (!(threshold >= 0))
    return cdl::CustomOps::bad(cdl::text("threshold ", threshold, ", expected 0 or more"));
  claim.fn(kSoftThreshold);
  claim.attr(kThreshold, threshold);
  claim.output(0, node.input(0));
  return cdl::ok();
}

std::string softThresholdAsGraph(const cdl::CustomNode& node) {
  std::string type = "f32[";
  for (int d = 0; d < node.input(0).rank; ++d)
    type += cdl::text(d ? "," : "", node.input(0).dims[d]);
  type += "]";
  return cdl::text("graph @soft_threshold(%x: ", type, ") -> (%y: ", type, ") {\n",
                   "  %high = constant splat(", node.floatAttr("threshold", 0.5), ") : f32[1]\n",
                   "  %low = neg %high : f32[1]\n", "  %above = max %x, %low : ", type, "\n",
                   "  %clamped = min %above, %high : ", type, "\n",
                   "  %y = sub %x, %clamped : ", type, "\n}\n");
}

void compileCustom(Compiler& c) {
  const auto threshold = static_cast<float>(std::bit_cast<double>(c.attr(kThreshold, 0)));
  const auto splat = [&](float value) { return c.splat(std::bit_cast<uint32_t>(value), CDL_F32); };
  const auto binary = [&](uint16_t fn, uint8_t a, uint8_t b, const std::vector<uint8_t>& spent) {
    return c.emit(step(c, CDL_KIND_BINARY, fn, CDL_F32, CDL_F32, false, {a, b}), spent);
  };
  c.beginAll();
  const uint8_t x = c.load(c.input(0)), low = splat(-threshold), high = splat(threshold);
  const uint8_t above = binary(CDL_BINARY_MAX, x, low, {low});
  const uint8_t clamped = binary(CDL_BINARY_MIN, above, high, {above, high});
  c.store(c.output(), binary(CDL_BINARY_SUB, x, clamped, {x, clamped}));
}

} // namespace tiles
