// CONV2D of bf16 on images with channels last. Neighbouring channels meet two by two in dot
// products, so that a pixel's channels are one run of pairs; the sums, which are f32, end where the
// result lies. A convolution of each channel by itself has no pairs: its window is widened to f32.
#include "epilogue.hpp"
#include "image.hpp"
#include "instructions.hpp"
#include "window.hpp"

#include <cstring>

namespace cpu {

namespace {

/// The operands of a convolution of bf16 as images.
struct HalfConv {
  const std::vector<Operand> in; // x, w, what the epilogue reads, y
  const Conv2d& conv;
  ImageEpilogue epilogue;
  ImageView x, y;
};

/// Weights {o/16, kh, kw, i, o%16} of one channel each, as f32.
Arg widenedTaps(Lowering& lowering, const Operand& w, const char* payload) {
  const int64_t count = w.elements();
  std::vector<uint32_t> wide(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    uint16_t bits;
    std::memcpy(&bits, payload + i * 2, sizeof bits);
    wide[static_cast<size_t>(i)] = static_cast<uint32_t>(bits) << 16;
  }
  return lowering.own(wide.data(), wide.size() * 4);
}

bool emitDepthwiseBF16(Lowering& lowering, const HalfConv& c, std::string& why) {
  const Operand& weights = c.in[1];
  const char* payload = payloadOf(lowering, weights);
  const bool isPanelled = weights.rank == 5 && weights.isDense();
  if (!payload || !isPanelled || c.y.c % kPanel) return refuse(why, "the layout of its weights");
  Window w;
  w.fn = Window::Fn::PRODUCT;
  w.mostLanes = kPanel; // of weights
  for (int d = 0; d < 2; ++d) {
    w.kernel[d] = weights.dims[d + 1];
    w.stride[d] = c.conv.stride[d];
    w.dilation[d] = c.conv.dilation[d];
  }
  const ImageView x = bordered(lowering, c.x, c.conv.begin, c.conv.end, 0);
  placeImages(w, x, c.y, c.epilogue.views);
  w.weights.elem = CDL_F32;
  w.weights.at = widenedTaps(lowering, weights, payload);
  w.weights.panel = weights.strides[0] * 4;
  w.weightTap = weights.strides[2] * 4;
  w.epilogue = c.epilogue.expr;
  emitWindow(lowering, w);
  return true;
}

/// Weights {o/16, kh, kw, i/2, o%16, i%2} in one group.
bool emitDenseBF16(Lowering& lowering, const HalfConv& c, std::string& why) {
  const Operand& w = c.in[1];
  const bool isPaired =
      w.rank == 6 && w.isDense() && w.dims[3] * 2 == c.x.c && w.dims[4] == kPanel && w.dims[5] == 2;
  if (!isPaired || c.conv.group != 1 || c.x.lane != 1)
    return refuse(why, "the layout of its weights");
  const ImageView x = bordered(lowering, c.x, c.conv.begin, c.conv.end, 0);
  Contraction sum;
  sum.factors = Factors::HALVES;
  sum.batch = c.y.n;
  sum.panels = w.dims[0];
  sum.rows = c.y.h;
  sum.columns = c.y.w;
  sum.lastLanes = static_cast<int>(c.y.c - (sum.panels - 1) * kPanel);
  sum.a = x.plane(x.c, c.conv.stride[0], c.conv.stride[1]);
  sum.a.panel = 0; // all panels read the same
  sum.a.lane = 0;
  sum.b = w.at;
  sum.bPanel = w.bytes(w.strides[0]);
  const SumAxis down{.count = w.dims[1],
                     .a = x.view.bytes(c.conv.dilation[0] * x.row),
                     .b = w.bytes(w.strides[1])};
  const SumAxis across{.count = w.dims[2],
                       .a = x.view.bytes(c.conv.dilation[1] * x.column),
                       .b = w.bytes(w.strides[2])};
  const SumAxis pairs{.count = w.dims[3], .a = 4, .b = w.bytes(w.strides[3])};
  sum.axes = {down, across, pairs};
  sum.y = c.y.plane(c.y.c);
  sum.epilogue = c.epilogue.expr;
  const auto isFlat = [](const ImageView& image) {
    return image.row == image.w * image.column || image.row + image.column == 0;
  };
  const bool isPointwise = w.dims[1] == 1 && w.dims[2] == 1;
  bool flattens = isPointwise && sum.a.row == sum.columns * sum.a.column && isFlat(c.y);
  for (const std::optional<ImageView>& view : c.epilogue.views) {
    flattens = flattens && (!view || isFlat(*view));
    sum.views.push_back(view ? std::optional(view->plane(c.y.c)) : std::nullopt);
  }
  if (flattens) sum.flatten();
  emitContraction(lowering, sum);
  return true;
}

} // namespace

bool emitConvBF16(Lowering& lowering, const cdl_instr_t& instr, const Conv2d& g, std::string& why) {
  HalfConv c{.in = operandsOf(lowering, instr), .conv = g, .epilogue = {}, .x = {}, .y = {}};
  const size_t results = c.in.size() - 1;
  const std::optional<ImageView> x = imageOf(c.in[0]), y = imageOf(c.in[results]);
  if (!x || !y || !c.in[results].channelsLast) return refuse(why, "its layouts");
  c.x = *x;
  c.y = *y;
  c.epilogue.expr = instr.expr ? cdl_get_expr(lowering.image, instr.expr) : nullptr;
  c.epilogue.views.resize(results);
  for (size_t i = cdl_operand_count(lowering.image, &instr); i < results; ++i) {
    c.epilogue.views[i] = imageOf(c.in[i]);
    if (!c.epilogue.views[i] || !c.in[i].channelsLast)
      return refuse(why, "the layout of what its epilogue reads");
  }
  const bool isDepthwise = g.group > 1 && x->c == g.group && y->c == g.group;
  return isDepthwise ? emitDepthwiseBF16(lowering, c, why) : emitDenseBF16(lowering, c, why);
}

} // namespace cpu
