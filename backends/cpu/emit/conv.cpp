// CONV2D: direct convolution. x[N,C,H,W] gets its border in memory, weights are packed by panels of output channels, and
// a result that is not in panels itself is rearranged once, in the pass that applies the epilogue.
#include "contraction.hpp"
#include "instructions.hpp"
#include "map.hpp"
#include "window.hpp"

#include <algorithm>

namespace cpu {

namespace {

struct Geometry {
  int64_t stride[2], dilation[2], begin[2], end[2], group;
};

/// Depthwise: one channel in, one out.
bool emitDepthwise(Lowering& lowering, const std::vector<Operand>& in, const Operand& y, const Geometry& g,
                   const cdl_expr_t* epilogue) {
  const Operand x = bordered(lowering, in[0], g.begin, g.end, 0);
  Window w;
  w.fn = Window::Fn::PRODUCT;
  for (int d = 0; d < 2; ++d) w.kernel[d] = in[1].dims[d + 2], w.stride[d] = g.stride[d], w.dilation[d] = g.dilation[d];
  w.batch = y.dims[0], w.channels = y.dims[1], w.rows = y.dims[2], w.columns = y.dims[3];
  w.xRow = x.bytes(x.strides[2]), w.xColumn = x.bytes(x.strides[3]);
  const auto plane = [](const Operand& o, int64_t rowStep, int64_t columnStep) {
    return Plane{o.elem, o.at, o.bytes(o.strides[0]), 0, o.bytes(o.strides[1]), o.bytes(o.strides[2] * rowStep),
                 o.bytes(o.strides[3] * columnStep), 0};
  };
  w.x = plane(x, g.stride[0], g.stride[1]);
  w.y = plane(y, 1, 1);
  w.weights.elem = CDL_F32, w.weights.at = in[1].at, w.weights.panel = in[1].bytes(in[1].strides[0]);
  w.weightTap = in[1].bytes(1);
  w.epilogue = epilogue;
  w.views.resize(in.size());
  for (size_t i = 2; i < in.size(); ++i) w.views[i] = plane(in[i], 1, 1);
  emitWindow(lowering, w);
  return true;
}

} // namespace

bool emitConv(Lowering& lowering, const cdl_instr_t& instr, std::string& why) {
  std::vector<Operand> in = operandsOf(lowering, instr);
  const Operand y = in.back();
  in.pop_back();
  const size_t operands = cdl_operand_count(lowering.image, &instr);
  const cdl_expr_t* epilogue = instr.expr ? cdl_get_expr(lowering.image, instr.expr) : nullptr;
  if (in[0].elem != CDL_F32 || in[1].elem != CDL_F32 || y.elem != CDL_F32 || operands != 2)
    return why = "its element types", false;
  if (in[0].layout || in[1].layout || y.layout) return why = "its layout", false;
  if (attrOf(lowering, instr, CDL_ATTR_TRANSPOSED, 0)) return why = "a transposed convolution", false;
  if (attrOf(lowering, instr, CDL_ATTR_ACCUMULATE, 0)) return why = "accumulation", false;
  if (epilogue && !canComputeExpr(lowering.image, *epilogue)) return why = "a step of its epilogue", false;
  if (y.elements() == 0) return true;
  Geometry g;
  for (uint32_t d = 0; d < 2; ++d) {
    g.stride[d] = attrOf(lowering, instr, CDL_ATTR_STRIDES, 1, d);
    g.dilation[d] = attrOf(lowering, instr, CDL_ATTR_DILATIONS, 1, d);
    g.begin[d] = attrOf(lowering, instr, CDL_ATTR_PADS, 0, d);
    g.end[d] = attrOf(lowering, instr, CDL_ATTR_PADS, 0, d + 2);
  }
  g.group = attrOf(lowering, instr, CDL_ATTR_GROUP, 1);
  const Operand& w = in[1];
  const int64_t outs = y.dims[1] / g.group, ins = w.dims[1], kh = w.dims[2], kw = w.dims[3];
  if (ins == 1 && outs == 1 && w.isDense()) return emitDepthwise(lowering, in, y, g, epilogue);

  const Operand x = bordered(lowering, in[0], g.begin, g.end, 0);
  const int64_t panels = (outs + kPanel - 1) / kPanel, whole = outs / kPanel, rest = outs % kPanel;
  // Weights: [group][panel][kh][kw][channel][16].
  const int64_t panelSize = kh * kw * ins * kPanel;
  std::vector<Piece> pieces;
  if (whole)
    pieces.push_back({{g.group, whole, kh, kw, ins, kPanel},
                      {outs * w.strides[0], kPanel * w.strides[0], w.strides[2], w.strides[3], w.strides[1], w.strides[0]},
                      {panels * panelSize, panelSize, kw * ins * kPanel, ins * kPanel, kPanel, 1}});
  if (rest)
    pieces.push_back({{g.group, kh, kw, ins, rest},
                      {outs * w.strides[0], w.strides[2], w.strides[3], w.strides[1], w.strides[0]},
                      {panels * panelSize, kw * ins * kPanel, ins * kPanel, kPanel, 1},
                      whole * kPanel * w.strides[0],
                      whole * panelSize});

  Contraction c;
  c.batch = y.dims[0], c.groups = g.group, c.panels = panels, c.rows = y.dims[2], c.columns = y.dims[3];
  c.a = {x.elem, x.at, x.bytes(x.strides[0]), x.bytes(ins * x.strides[1]), 0, x.bytes(g.stride[0] * x.strides[2]),
         x.bytes(g.stride[1] * x.strides[3]), 0};
  c.b = packed(lowering, w, g.group * panels * panelSize, pieces);
  c.bGroup = panels * panelSize * 4, c.bPanel = panelSize * 4;
  c.axes = {{kh, x.bytes(g.dilation[0] * x.strides[2]), kw * ins * kPanel * 4},
            {kw, x.bytes(g.dilation[1] * x.strides[3]), ins * kPanel * 4},
            {ins, x.bytes(x.strides[1]), kPanel * 4}};
  // Results in panels: [batch][group][panel][row][column][16].
  const int64_t area = c.rows * c.columns, panelResults = area * kPanel;
  const bool isFlat = kh == 1 && kw == 1 && c.a.row == c.columns * c.a.column;
  if (isFlat) c.columns = area, c.rows = 1;
  const int64_t batchResults = g.group * panels * panelResults;
  const Arg results = lowering.scratch(static_cast<uint64_t>(y.dims[0] * batchResults) * 4);
  c.y = {CDL_F32, results, batchResults * 4, panels * panelResults * 4, panelResults * 4, c.columns * kPanel * 4,
         kPanel * 4, 4};
  emitContraction(lowering, c);

  // Out of the panels, through the epilogue.
  const auto finish = [&](int64_t first, int64_t count, int64_t lanes) {
    if (count == 0) return;
    const std::vector<int64_t> dims = {y.dims[0], g.group, count, lanes, y.dims[2], y.dims[3]};
    const auto of = [&](const Operand& o) {
      return restrided(o, dims, {o.strides[0], outs * o.strides[1], kPanel * o.strides[1], o.strides[1], o.strides[2], o.strides[3]},
                       first * kPanel * o.strides[1]);
    };
    const Operand sums = view(CDL_F32, dims, {batchResults, panels * panelResults, panelResults, 1, y.dims[3] * kPanel, kPanel}, results);
    const Operand acc = restrided(sums, dims, {batchResults, panels * panelResults, panelResults, 1, y.dims[3] * kPanel, kPanel}, first * panelResults);
    if (!epilogue) return copy(lowering, acc, of(y));
    std::vector<Operand> views = {acc};
    for (size_t i = operands; i < in.size(); ++i) views.push_back(of(in[i]));
    map(lowering, "conv " + exprKey(lowering, *epilogue), views, of(y), [&](Builder& b, const std::vector<Typed>& loaded) {
      std::vector<Typed> byIndex(in.size());
      for (size_t i = operands; i < in.size(); ++i) byIndex[i] = loaded[i - operands + 1];
      return computeExpr(b, lowering.image, *epilogue, byIndex, &loaded[0]);
    });
  };
  finish(0, whole, kPanel);
  finish(whole, rest ? 1 : 0, rest);
  return true;
}

} // namespace cpu
