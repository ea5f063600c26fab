// CONV2D: direct convolution as a contraction (see contraction.hpp). x gets its border in memory,
// so that no tap is asked whether it is inside; weights lie in panels of output channels, so that
// a step of the sum reads one vector of them; and a result that is not in panels itself is
// rearranged once, in the pass that applies the epilogue. The blocked layouts are those of
// Georganas et al., "Anatomy of high-performance deep learning convolutions on SIMD architectures",
// SC 2018.
#include "contraction.hpp"
#include "elementwise.hpp"
#include "epilogue.hpp"
#include "image.hpp"
#include "instructions.hpp"
#include "window.hpp"

#include <algorithm>

namespace cpu {

namespace {

/// The place of weights in panels: where they lie and how far apart their parts are, in elements.
struct PanelWeights {
  Arg at{};
  int64_t outs = 0, ins = 0, kh = 0, kw = 0; // per group
  int64_t group = 0, panel = 0, tapRow = 0, tapColumn = 0, channel = 0;
  int64_t channelBlock = 0; // 16 input channels; 16 * channel where they are neighbours
};

int64_t panelsFor(int64_t outs) { return (outs + kPanel - 1) / kPanel; }

/// Weights in the layout {o/16, i/16, kh, kw, i%16, o%16}.
PanelWeights blockedWeights(const Operand& w, int64_t outs) {
  return {.at = w.at,
          .outs = outs,
          .ins = w.dims[1] * kPanel,
          .kh = w.dims[2],
          .kw = w.dims[3],
          .group = panelsFor(outs) * w.strides[0],
          .panel = w.strides[0],
          .tapRow = w.strides[2],
          .tapColumn = w.strides[3],
          .channel = w.strides[4],
          .channelBlock = w.strides[1]};
}

/// Weights in the layout {o/16, kh, kw, i, o%16}.
PanelWeights panelledWeights(const Operand& w, int64_t outs) {
  return {.at = w.at,
          .outs = outs,
          .ins = w.dims[3],
          .kh = w.dims[1],
          .kw = w.dims[2],
          .group = panelsFor(outs) * w.strides[0],
          .panel = w.strides[0],
          .tapRow = w.strides[1],
          .tapColumn = w.strides[2],
          .channel = w.strides[3],
          .channelBlock = kPanel * w.strides[3]};
}

/// Packs row-major weights w[O, I, KH, KW].
PanelWeights packedWeights(Lowering& lowering, const Operand& w, int64_t outs, int64_t groups) {
  PanelWeights r{.at = {}, .outs = outs, .ins = w.dims[1], .kh = w.dims[2], .kw = w.dims[3]};
  r.channel = kPanel;
  const int64_t block = std::min<int64_t>(r.ins, kPanel);
  const bool hasBlocks = r.ins % block == 0;
  if (hasBlocks) {
    r.tapColumn = block * kPanel;
    r.tapRow = r.kw * r.tapColumn;
    r.channelBlock = r.kh * r.tapRow;
    r.panel = r.ins / block * r.channelBlock;
  } else { // channels stay together
    r.channelBlock = kPanel * kPanel;
    r.tapColumn = r.ins * kPanel;
    r.tapRow = r.kw * r.tapColumn;
    r.panel = r.kh * r.tapRow;
  }
  r.group = panelsFor(outs) * r.panel;
  const int64_t inner = hasBlocks ? block : r.ins;
  std::vector<PackedPiece> pieces;
  for (const PanelRun& run : panelRuns(outs, kPanel))
    pieces.push_back(
        {.dims = {groups, run.count, r.ins / inner, r.kh, r.kw, inner, run.lanes},
         .srcStrides = {outs * w.strides[0], kPanel * w.strides[0], inner * w.strides[1],
                        w.strides[2], w.strides[3], w.strides[1], w.strides[0]},
         .dstStrides = {r.group, r.panel, r.channelBlock, r.tapRow, r.tapColumn, r.channel, 1},
         .src = run.first * kPanel * w.strides[0],
         .dst = run.first * r.panel});
  r.at = packed(lowering, w, groups * r.group, pieces);
  return r;
}

/// Weights in one of these three layouts, of which `outs` are known; nullopt: another one.
std::optional<PanelWeights> panelWeightsOf(Lowering& lowering, const Operand& w, int64_t outs,
                                           int64_t groups) {
  if (w.rank == 6 && w.dims[4] == kPanel && w.dims[5] == kPanel && w.strides[5] == 1)
    return blockedWeights(w, outs);
  if (w.rank == 5 && w.dims[4] == kPanel && w.strides[4] == 1) return panelledWeights(w, outs);
  if (w.rank != 4) return std::nullopt;
  return packedWeights(lowering, w, outs, groups);
}

void emitDepthwise(Lowering& lowering, const ImageEpilogue& epilogue, const Operand& weights,
                   const ImageView& input, const ImageView& y, const Conv2d& conv) {
  Window w;
  w.fn = Window::Fn::PRODUCT;
  const bool isPacked = weights.rank == 5; // {o/16, kh, kw, i, o%16}
  for (int d = 0; d < 2; ++d) {
    w.kernel[d] = weights.dims[isPacked ? d + 1 : d + 2];
    w.stride[d] = conv.stride[d];
    w.dilation[d] = conv.dilation[d];
  }
  placeImages(w, bordered(lowering, input, conv.begin, conv.end, 0), y, epilogue.views);
  w.weights.elem = CDL_F32;
  w.weights.at = weights.at;
  w.weights.panel = weights.bytes(weights.strides[0]);
  w.weightTap = weights.bytes(isPacked ? weights.strides[2] : weights.strides[3]);
  w.epilogue = epilogue.expr;
  emitWindow(lowering, w);
}

/// Whether each group has one channel, in layouts whose lanes are channels of both images.
bool isDepthwise(const Conv2d& conv, const Operand& w, const ImageView& x, const ImageView& y) {
  const bool isPlain = w.rank == 4 && w.isDense();
  const bool isPanelled = w.rank == 5 && w.isDense();
  if (x.view.channelsLast || y.view.channelsLast) return false;
  return x.c == conv.group && y.c == conv.group && x.isBlocked == y.isBlocked &&
         (y.isBlocked ? isPanelled : isPlain);
}

/// A convolution of f32 as the contraction that it is, and its results.
class DirectConv {
public:
  DirectConv(Lowering& lowering, const Conv2d& conv, const ImageEpilogue& epilogue,
             const ImageView& x, const ImageView& y, const PanelWeights& w)
      : lowering_(lowering), conv_(conv), epilogue_(epilogue), x_(x), y_(y), w_(w),
        outs_(y.c / conv.group) {}

  void emit() {
    setSum();
    // A convolution of single pixels may go over rows as if they were one.
    const bool isFlat = w_.kh == 1 && w_.kw == 1 && c_.a.row == c_.columns * c_.a.column;
    if (y_.isBlocked || y_.view.channelsLast)
      inPlace(isFlat);
    else
      inPanels(isFlat);
  }

private:
  void setSum() {
    c_.batch = y_.n;
    c_.groups = conv_.group;
    c_.panels = panelsFor(outs_);
    c_.rows = y_.h;
    c_.columns = y_.w;
    c_.a = x_.plane(w_.ins, conv_.stride[0], conv_.stride[1]);
    c_.a.panel = 0; // all panels read the same
    c_.a.lane = 0;
    c_.b = w_.at;
    c_.bGroup = w_.group * 4;
    c_.bPanel = w_.panel * 4;
    const int64_t rowStep = x_.view.bytes(conv_.dilation[0] * x_.row);
    const int64_t columnStep = x_.view.bytes(conv_.dilation[1] * x_.column);
    const SumAxis down{.count = w_.kh, .a = rowStep, .b = w_.tapRow * 4};
    const SumAxis across{.count = w_.kw, .a = columnStep, .b = w_.tapColumn * 4};
    SumAxis channels{.count = w_.ins, .a = x_.view.bytes(x_.lane), .b = w_.channel * 4};
    if (w_.ins % kPanel) {
      c_.axes = {down, across, channels};
      return;
    }
    // A block of input channels at a time stays near.
    const int64_t blockStep = x_.view.bytes(x_.block);
    const SumAxis blocks{.count = w_.ins / kPanel, .a = blockStep, .b = w_.channelBlock * 4};
    channels.count = kPanel;
    c_.axes = {blocks, down, across, channels};
  }

  /// Ends sums where the result lies.
  void inPlace(bool isFlat) {
    const auto canBeFlat = [](const ImageView& image) {
      return image.row == image.w * image.column || image.row + image.column == 0;
    };
    bool flattens = isFlat && canBeFlat(y_);
    for (const auto& view : epilogue_.views) flattens = flattens && (!view || canBeFlat(*view));
    if (!y_.isBlocked) c_.lastLanes = static_cast<int>(outs_ - (c_.panels - 1) * kPanel);
    c_.y = y_.plane(outs_);
    c_.epilogue = epilogue_.expr;
    for (const auto& view : epilogue_.views)
      c_.views.push_back(view ? std::optional(view->plane(outs_)) : std::nullopt);
    if (flattens) c_.flatten();
    emitContraction(lowering_, c_);
  }

  /// Leaves sums in panels, [batch][group][panel][row][column][16], and takes them from there
  /// through the epilogue.
  void inPanels(bool isFlat) {
    const int64_t area = y_.h * y_.w * kPanel;
    const int64_t group = c_.panels * area;
    const int64_t batch = conv_.group * group;
    const Arg sums = lowering_.scratch(static_cast<uint64_t>(y_.n * batch) * 4);
    if (isFlat) c_.flatten();
    c_.y = {.elem = CDL_F32,
            .at = sums,
            .batch = batch * 4,
            .group = group * 4,
            .panel = area * 4,
            .row = c_.columns * kPanel * 4,
            .column = kPanel * 4,
            .lane = 4};
    emitContraction(lowering_, c_);
    for (const PanelRun& run : panelRuns(outs_, kPanel)) {
      const std::vector<int64_t> dims = {y_.n, conv_.group, run.count, run.lanes, y_.h, y_.w};
      const auto placed = [&](const ImageView& image) { return panelsOf(image, run, outs_, dims); };
      const Operand acc =
          restrided(view(CDL_F32, {}, {}, sums), dims,
                    {batch, group, area, 1, y_.w * kPanel, kPanel}, run.first * area);
      epilogue_.apply(lowering_, acc, y_, placed);
    }
  }

  Lowering& lowering_;
  const Conv2d& conv_;
  const ImageEpilogue& epilogue_;
  const ImageView &x_, &y_; // x_: with its border
  const PanelWeights& w_;
  const int64_t outs_; // per group
  Contraction c_;
};

Conv2d conv2dOf(const Lowering& lowering, const cdl_instr_t& instr) {
  Conv2d conv;
  for (uint32_t d = 0; d < 2; ++d) {
    conv.stride[d] = attrOf(lowering, instr, CDL_ATTR_STRIDES, 1, d);
    conv.dilation[d] = attrOf(lowering, instr, CDL_ATTR_DILATIONS, 1, d);
    conv.begin[d] = attrOf(lowering, instr, CDL_ATTR_PADS, 0, d);
    conv.end[d] = attrOf(lowering, instr, CDL_ATTR_PADS, 0, d + 2);
  }
  conv.group = attrOf(lowering, instr, CDL_ATTR_GROUP, 1);
  return conv;
}

/// A convolution of f32 with the operands x, w, what an epilogue reads, and y.
struct ConvForm {
  const std::vector<Operand>& in;
  size_t operands;
  const Conv2d& conv;
  const cdl_expr_t* epilogue;
  bool isTransposed;
};

/// The convolutions of f32, whose element types and sizes are known to be right.
bool emitConvF32(Lowering& lowering, const ConvForm& form, std::string& why) {
  const std::vector<Operand>& in = form.in;
  const Conv2d& conv = form.conv;
  const size_t results = in.size() - 1;
  const std::optional<ImageView> input = imageOf(in[0]), output = imageOf(in[results]);
  if (!input || !output) return refuse(why, "its layouts");
  const ImageView& y = *output;
  ImageEpilogue epilogue;
  epilogue.expr = form.epilogue;
  epilogue.views.resize(results);
  for (size_t i = form.operands; i < results; ++i) {
    epilogue.views[i] = imageOf(in[i]);
    if (!epilogue.views[i] || epilogue.views[i]->isBlocked != y.isBlocked ||
        in[i].channelsLast != y.view.channelsLast)
      return refuse(why, "the layout of what its epilogue reads");
  }
  if (form.isTransposed) return emitConvTransposed(lowering, in[1], conv, epilogue, *input, y, why);
  if (isDepthwise(conv, in[1], *input, y)) {
    emitDepthwise(lowering, epilogue, in[1], *input, y, conv);
    return true;
  }
  const int64_t outs = y.c / conv.group, ins = input->c / conv.group;
  const bool sharesPanels = in[1].rank != 4 && conv.group > 1;
  if ((input->isBlocked && ins % kPanel) || ((y.isBlocked || sharesPanels) && outs % kPanel))
    return refuse(why, "groups within a block");

  const ImageView x = bordered(lowering, *input, conv.begin, conv.end, 0);
  const std::optional<PanelWeights> w = panelWeightsOf(lowering, in[1], outs, conv.group);
  if (!w || w->ins != ins) return refuse(why, "the layout of its weights");
  DirectConv(lowering, conv, epilogue, x, y, *w).emit();
  return true;
}

/// A dense f32 copy of a row-major operand.
Operand widenedCopy(Lowering& lowering, const Operand& from) {
  std::vector<int64_t> dims(from.dims, from.dims + from.rank);
  std::vector<int64_t> strides(dims.size(), 1);
  for (size_t d = dims.size() - 1; d-- > 0;) strides[d] = strides[d + 1] * dims[d + 1];
  const auto bytes = static_cast<uint64_t>(from.elements()) * 4;
  const Operand to = view(CDL_F32, dims, strides, lowering.scratch(bytes));
  map(lowering, "widened", {from}, to, [](Builder& b, const std::vector<Typed>& x) {
    return compute(b, CDL_KIND_CONVERT, CDL_CONVERT_TRUNC, CDL_F32, false, x);
  });
  return to;
}

/// Any convolution of bf16 on images as they come: in f32, with the epilogue in a pass of its own.
bool emitConvWidened(Lowering& lowering, const ConvForm& form, std::string& why) {
  const std::vector<Operand>& in = form.in;
  const Operand& y = in.back();
  for (const Operand& each : in)
    if (each.rank != 4 || each.channelsLast) return refuse(why, "its layouts");
  const auto bytes = static_cast<uint64_t>(y.elements()) * 4;
  const int64_t area = y.dims[2] * y.dims[3];
  const Operand sums = view(CDL_F32, {y.dims[0], y.dims[1], y.dims[2], y.dims[3]},
                            {y.dims[1] * area, area, y.dims[3], 1}, lowering.scratch(bytes));
  const std::vector<Operand> wide = {widenedCopy(lowering, in[0]), widenedCopy(lowering, in[1]),
                                     sums};
  const ConvForm inF32{.in = wide,
                       .operands = 2,
                       .conv = form.conv,
                       .epilogue = nullptr,
                       .isTransposed = form.isTransposed};
  if (!emitConvF32(lowering, inF32, why)) return false;
  std::vector<Operand> read = {sums};
  read.insert(read.end(), in.begin() + static_cast<std::ptrdiff_t>(form.operands), in.end() - 1);
  const std::string what = form.epilogue ? exprKey(lowering, *form.epilogue) : std::string("none");
  map(lowering, "conv of halves " + what, read, y,
      [&](Builder& b, const std::vector<Typed>& loaded) {
        const Typed sum = sumOfHalves(b, lowering.image, form.epilogue, loaded[0].value);
        if (!form.epilogue) return sum;
        std::vector<Typed> byIndex(in.size());
        std::copy(loaded.begin() + 1, loaded.end(),
                  byIndex.begin() + static_cast<std::ptrdiff_t>(form.operands));
        return computeExpr(b, lowering.image, *form.epilogue, byIndex, &sum);
      });
  return true;
}

} // namespace

bool emitConv(Lowering& lowering, const cdl_instr_t& instr, std::string& why) {
  const std::vector<Operand> in = operandsOf(lowering, instr);
  const Operand& y = in.back();
  const Conv2d conv = conv2dOf(lowering, instr);
  const bool isTransposed = attrOf(lowering, instr, CDL_ATTR_TRANSPOSED, 0) != 0;
  if (attrOf(lowering, instr, CDL_ATTR_ACCUMULATE, 0)) return refuse(why, "accumulation");
  if (instr.expr && !canComputeExpr(lowering.image, *cdl_get_expr(lowering.image, instr.expr)))
    return refuse(why, "a step of its epilogue");
  if (y.elements() == 0) return true;
  if (in[0].elements() == 0 || in[1].elements() == 0) return refuse(why, "no elements to sum");
  if (!isTransposed && (in[0].elem == CDL_I8 || in[0].elem == CDL_U8))
    return emitConvInt8(lowering, instr, conv, why);
  const ConvForm form{.in = in,
                      .operands = cdl_operand_count(lowering.image, &instr),
                      .conv = conv,
                      .epilogue = instr.expr ? cdl_get_expr(lowering.image, instr.expr) : nullptr,
                      .isTransposed = isTransposed};
  const uint8_t elem = in[0].elem;
  const bool isKnown = (elem == CDL_F32 || elem == CDL_BF16) && in[1].elem == elem;
  if (!isKnown || form.operands != 2 || (y.elem != elem && !form.epilogue))
    return refuse(why, "its element types");
  if (elem == CDL_F32) return emitConvF32(lowering, form, why);
  if (in[0].channelsLast && isTransposed) return refuse(why, "its layouts");
  if (in[0].channelsLast) return emitConvBF16(lowering, instr, conv, why);
  return emitConvWidened(lowering, form, why);
}

} // namespace cpu
