// CONV2D: direct convolution. x gets its border in memory, weights lie in panels of output
// channels, and a result that is not in panels itself is rearranged once, in the pass that applies
// the epilogue.
#include "contraction.hpp"
#include "image.hpp"
#include "instructions.hpp"
#include "map.hpp"
#include "window.hpp"

#include <algorithm>

namespace cpu {

namespace {

/// Weights in panels: where they lie and how far apart their parts are, in elements.
struct Weights {
  Arg at;
  int64_t outs = 0, ins = 0, kh = 0, kw = 0; // per group
  int64_t group = 0, panel = 0, tapRow = 0, tapColumn = 0, channel = 0;
  int64_t channelBlock = 0; // 16 input channels; 16 * channel where they are neighbours
};

/// w[O, I, KH, KW], or in a layout {o/16, i/16, kh, kw, i%16, o%16} or {o/16, kh, kw, i, o%16}, of
/// which outs are known.
std::optional<Weights> weightsOf(Lowering& lowering, const Operand& w, int64_t outs,
                                 int64_t groups) {
  Weights r;
  r.outs = outs;
  const int64_t panels = (outs + kPanel - 1) / kPanel;
  if (w.rank == 6 && w.dims[4] == kPanel && w.dims[5] == kPanel && w.strides[5] == 1) {
    r.at = w.at;
    r.ins = w.dims[1] * kPanel;
    r.kh = w.dims[2];
    r.kw = w.dims[3];
    r.panel = w.strides[0];
    r.channelBlock = w.strides[1];
    r.tapRow = w.strides[2];
    r.tapColumn = w.strides[3];
    r.channel = w.strides[4];
    r.group = panels * r.panel;
    return r;
  }
  if (w.rank == 5 && w.dims[4] == kPanel && w.strides[4] == 1) {
    r.at = w.at;
    r.ins = w.dims[3];
    r.kh = w.dims[1];
    r.kw = w.dims[2];
    r.panel = w.strides[0];
    r.tapRow = w.strides[1];
    r.tapColumn = w.strides[2];
    r.channel = w.strides[3];
    r.channelBlock = kPanel * r.channel;
    r.group = panels * r.panel;
    return r;
  }
  if (w.rank != 4) return std::nullopt;
  r.ins = w.dims[1];
  r.kh = w.dims[2];
  r.kw = w.dims[3];
  const int64_t whole = outs / kPanel, rest = outs % kPanel,
                block = std::min<int64_t>(r.ins, kPanel);
  if (r.ins % block) { // channels stay together
    r.channel = kPanel;
    r.channelBlock = kPanel * kPanel;
    r.tapColumn = r.ins * kPanel;
    r.tapRow = r.kw * r.tapColumn;
    r.panel = r.kh * r.tapRow;
  } else {
    r.channel = kPanel;
    r.tapColumn = block * kPanel;
    r.tapRow = r.kw * r.tapColumn;
    r.channelBlock = r.kh * r.tapRow;
    r.panel = r.ins / block * r.channelBlock;
  }
  r.group = panels * r.panel;
  const int64_t inner = r.ins % block ? r.ins : block;
  std::vector<Piece> pieces;
  const auto piece = [&](int64_t count, int64_t lanes, int64_t src, int64_t dst) {
    if (count == 0 || lanes == 0) return;
    pieces.push_back({{groups, count, r.ins / inner, r.kh, r.kw, inner, lanes},
                      {outs * w.strides[0], kPanel * w.strides[0], inner * w.strides[1],
                       w.strides[2], w.strides[3], w.strides[1], w.strides[0]},
                      {r.group, r.panel, r.channelBlock, r.tapRow, r.tapColumn, r.channel, 1},
                      src,
                      dst});
  };
  piece(whole, kPanel, 0, 0);
  piece(rest ? 1 : 0, rest, whole * kPanel * w.strides[0], whole * r.panel);
  r.at = packed(lowering, w, groups * r.group, pieces);
  return r;
}

bool emitDepthwise(Lowering& lowering, const std::vector<std::optional<Image>>& views,
                   const Operand& weights, const Image& input, const Image& y, const Conv2d& g,
                   const cdl_expr_t* epilogue) {
  Window w;
  w.fn = Window::Fn::PRODUCT;
  const bool isPacked = weights.rank == 5; // {o/16, kh, kw, i, o%16}
  for (int d = 0; d < 2; ++d) {
    w.kernel[d] = weights.dims[isPacked ? d + 1 : d + 2];
    w.stride[d] = g.stride[d];
    w.dilation[d] = g.dilation[d];
  }
  placeImages(w, bordered(lowering, input, g.begin, g.end, 0), y, views);
  w.weights.elem = CDL_F32;
  w.weights.at = weights.at;
  w.weights.panel = weights.bytes(weights.strides[0]);
  w.weightTap = weights.bytes(isPacked ? weights.strides[2] : weights.strides[3]);
  w.epilogue = epilogue;
  emitWindow(lowering, w);
  return true;
}

} // namespace

bool emitConv(Lowering& lowering, const cdl_instr_t& instr, std::string& why) {
  const std::vector<Operand> in = operandsOf(lowering, instr);
  const size_t operands = cdl_operand_count(lowering.image, &instr), results = in.size() - 1;
  const cdl_expr_t* epilogue = instr.expr ? cdl_get_expr(lowering.image, instr.expr) : nullptr;
  Conv2d g;
  for (uint32_t d = 0; d < 2; ++d) {
    g.stride[d] = attrOf(lowering, instr, CDL_ATTR_STRIDES, 1, d);
    g.dilation[d] = attrOf(lowering, instr, CDL_ATTR_DILATIONS, 1, d);
    g.begin[d] = attrOf(lowering, instr, CDL_ATTR_PADS, 0, d);
    g.end[d] = attrOf(lowering, instr, CDL_ATTR_PADS, 0, d + 2);
  }
  g.group = attrOf(lowering, instr, CDL_ATTR_GROUP, 1);
  const bool isTransposed = attrOf(lowering, instr, CDL_ATTR_TRANSPOSED, 0) != 0;
  if (attrOf(lowering, instr, CDL_ATTR_ACCUMULATE, 0)) return why = "accumulation", false;
  if (epilogue && !canComputeExpr(lowering.image, *epilogue))
    return why = "a step of its epilogue", false;
  if (in[results].elements() == 0) return true;
  if (in[0].elements() == 0 || in[1].elements() == 0) return why = "no elements to sum", false;
  if (!isTransposed && (in[0].elem == CDL_I8 || in[0].elem == CDL_U8))
    return emitConvInt8(lowering, instr, g, why);
  if (in[0].elem != CDL_F32 || in[1].elem != CDL_F32 || in[results].elem != CDL_F32 ||
      operands != 2)
    return why = "its element types", false;
  const std::optional<Image> input = imageOf(in[0]), output = imageOf(in[results]);
  if (!input || !output) return why = "its layouts", false;
  const Image& y = *output;
  std::vector<std::optional<Image>> views(results); // what the epilogue reads
  for (size_t i = operands; i < results; ++i) {
    views[i] = imageOf(in[i]);
    if (!views[i] || views[i]->isBlocked != y.isBlocked)
      return why = "the layout of what its epilogue reads", false;
  }
  if (isTransposed) return emitConvTransposed(lowering, in[1], g, epilogue, views, *input, y, why);
  const int64_t outs = y.c / g.group, ins = input->c / g.group;
  const bool isPlainWeight = in[1].rank == 4 && in[1].isDense(),
             isPackedWeight = in[1].rank == 5 && in[1].isDense();
  if (ins == 1 && outs == 1 && input->isBlocked == y.isBlocked &&
      (y.isBlocked ? isPackedWeight : isPlainWeight))
    return emitDepthwise(lowering, views, in[1], *input, y, g, epilogue);
  if ((input->isBlocked && ins % kPanel) || (y.isBlocked && outs % kPanel))
    return why = "groups within a block", false;

  const Image x = bordered(lowering, *input, g.begin, g.end, 0);
  const std::optional<Weights> w = weightsOf(lowering, in[1], outs, g.group);
  if (!w || w->ins != ins) return why = "the layout of its weights", false;

  Contraction c;
  c.batch = y.n;
  c.groups = g.group;
  c.panels = (outs + kPanel - 1) / kPanel;
  c.rows = y.h;
  c.columns = y.w;
  c.a = x.plane(ins, g.stride[0], g.stride[1]);
  c.a.panel = c.a.lane = 0; // all panels read the same
  c.b = w->at;
  c.bGroup = w->group * 4;
  c.bPanel = w->panel * 4;
  const Axis down{w->kh, x.view.bytes(g.dilation[0] * x.row), w->tapRow * 4};
  const Axis across{w->kw, x.view.bytes(g.dilation[1] * x.column), w->tapColumn * 4};
  if (ins % kPanel == 0) // a block of input channels at a time stays near
    c.axes = {{ins / kPanel, x.view.bytes(x.block), w->channelBlock * 4},
              down,
              across,
              {kPanel, x.view.bytes(x.lane), w->channel * 4}};
  else
    c.axes = {down, across, {ins, x.view.bytes(x.lane), w->channel * 4}};
  const bool isFlat = w->kh == 1 && w->kw == 1 && c.a.row == c.columns * c.a.column;
  const auto canBeFlat = [&](const Image& image) {
    return image.row == image.w * image.column || image.row + image.column == 0;
  };
  bool flattens = isFlat && canBeFlat(y);
  for (const auto& view : views) flattens = flattens && (!view || canBeFlat(*view));
  if (y.isBlocked) {
    c.y = y.plane(outs);
    c.epilogue = epilogue;
    for (const auto& view : views)
      c.views.push_back(view ? std::optional(view->plane(outs)) : std::nullopt);
    if (flattens) {
      c.width = c.columns;
      c.columns *= c.rows;
      c.rows = 1;
    }
    emitContraction(lowering, c);
    return true;
  }

  // Results in panels: [batch][group][panel][row][column][16].
  const int64_t area = y.h * y.w * kPanel, groupArea = c.panels * area,
                batchArea = g.group * groupArea;
  const Arg sums = lowering.scratch(static_cast<uint64_t>(y.n * batchArea) * 4);
  if (isFlat) {
    c.width = c.columns;
    c.columns *= c.rows;
    c.rows = 1;
  }
  c.y = {CDL_F32,    sums, batchArea * 4, groupArea * 4, area * 4, c.columns * kPanel * 4,
         kPanel * 4, 4};
  emitContraction(lowering, c);

  // Out of the panels, through the epilogue.
  const auto finish = [&](int64_t first, int64_t count, int64_t lanes) {
    if (count == 0 || lanes == 0) return;
    const std::vector<int64_t> dims = {y.n, g.group, count, lanes, y.h, y.w};
    const auto of = [&](const Image& image) {
      return restrided(
          image.view, dims,
          {image.batch, outs * image.lane, image.block, image.lane, image.row, image.column},
          first * image.block);
    };
    const Operand acc =
        restrided(view(CDL_F32, {}, {}, sums), dims,
                  {batchArea, groupArea, area, 1, y.w * kPanel, kPanel}, first * area);
    if (!epilogue) return copy(lowering, acc, of(y));
    std::vector<Operand> read = {acc};
    for (const auto& view : views)
      if (view) read.push_back(of(*view));
    map(lowering, "conv " + exprKey(lowering, *epilogue), read, of(y),
        [&](Builder& b, const std::vector<Typed>& loaded) {
          std::vector<Typed> byIndex(views.size());
          for (size_t i = 0, next = 1; i < views.size(); ++i)
            if (views[i]) byIndex[i] = loaded[next++];
          return computeExpr(b, lowering.image, *epilogue, byIndex, &loaded[0]);
        });
  };
  finish(0, outs / kPanel, kPanel);
  finish(outs / kPanel, outs % kPanel ? 1 : 0, outs % kPanel);
  return true;
}

} // namespace cpu
