// CONV2D on integers. Channels four by four meet in dot products, so x lies with its channels innermost: as it comes,
// or copied so once. What zero points and signs add to a sum is folded into a constant per output channel; a border
// that holds x's zero point makes that exact everywhere.
#include "contraction.hpp"
#include "image.hpp"
#include "instructions.hpp"
#include "map.hpp"
#include "requantize.hpp"

#include <algorithm>

namespace cpu {

namespace {

int64_t roundUp(int64_t value, int64_t to) { return (value + to - 1) / to * to; }

/// x with a border of `value` and its channels innermost, `channels` of them per group in memory (those beyond the real
/// ones hold `value` too).
Image channelsInnermost(Lowering& lowering, const Image& x, int64_t groups, int64_t channels, const int64_t begin[2],
                        const int64_t end[2], uint64_t value) {
  const int64_t ins = x.c / groups;
  const bool hasBorder = begin[0] || begin[1] || end[0] || end[1];
  if (x.lane == 1 && !x.isBlocked && channels == ins && x.column % 4 == 0 && !hasBorder) return x;
  Image to = x;
  to.isBlocked = false;
  to.h += begin[0] + end[0], to.w += begin[1] + end[1];
  to.c = groups * channels;
  to.lane = 1, to.block = kPanel, to.column = to.c, to.row = to.w * to.column, to.batch = to.h * to.row;
  const int64_t count = to.n * to.batch;
  to.view = view(x.view.elem, {}, {}, lowering.scratch(static_cast<uint64_t>(count) + 64));
  to.view.elem = x.view.elem, to.view.rank = 4;
  if (hasBorder || channels != ins) fill(lowering, restrided(to.view, {count}, {1}), value);
  const int64_t blocks = x.isBlocked ? ins / kPanel : 1, lanes = x.isBlocked ? kPanel : ins;
  const int64_t group = x.isBlocked ? blocks * x.block : ins * x.lane;
  copy(lowering,
       restrided(x.view, {x.n, x.h, x.w, groups, blocks, lanes}, {x.batch, x.row, x.column, group, x.block, x.lane}),
       restrided(to.view, {x.n, x.h, x.w, groups, blocks, lanes}, {to.batch, to.row, to.column, channels, kPanel, 1},
                 begin[0] * to.row + begin[1] * to.column));
  return to;
}

/// Any integer convolution, widened to i32 before it multiplies: results along a row are the lanes.
void emitWidened(Lowering& lowering, const Image& x, const Operand& w, const Image& y, const Operand* wZero,
                 int64_t xZero, const Conv2d& g) {
  const int64_t outs = y.c / g.group, ins = w.dims[1], kh = w.dims[2], kw = w.dims[3];
  const int lanes = static_cast<int>(std::min<int64_t>(lowering.isa.lanes(4), y.w));
  const auto bytes = [](const Image& image, int64_t elements) { return image.view.bytes(elements); };
  Key key("widened conv");
  key << x.view.elem << x.c << x.batch << x.lane << x.row << x.column << y.n << y.c << y.h << y.w << y.batch << y.lane
      << y.row << y.column << xZero << g.group << g.stride[0] << g.stride[1] << g.dilation[0] << g.dilation[1]
      << (wZero ? wZero->elements() : 0) << (wZero ? wZero->strides[0] : 0) << w.elem;
  for (int d = 0; d < 4; ++d) key << w.dims[d] << w.strides[d];
  std::vector<Arg> args = {x.view.at, w.at, y.view.at};
  if (wZero) args.push_back(wZero->at);
  lowering.call(key.text(), static_cast<uint64_t>(y.n * y.c * y.h), args, [&](Builder& b) {
    const auto widened = [&](uint8_t elem, int width, Value at, int64_t stride) {
      return b.cast(b.loadStrided(Ty::I8, width, at, stride), Ty::I32, isSignedElem(elem));
    };
    b.loop(b.begin(), b.end(), 1, [&](Value unit) {
      const Value row = b.rem(unit, b.i64(y.h), false), rest = b.div(unit, b.i64(y.h), false);
      const Value out = b.rem(rest, b.i64(y.c), false), batch = b.div(rest, b.i64(y.c), false);
      const auto moved = [&](Value base, Value index, int64_t step) { return b.at(base, b.mul(index, b.i64(step))); };
      const Value from = moved(
          moved(moved(b.arg(0), batch, bytes(x, x.batch)), b.div(out, b.i64(outs), false), bytes(x, ins * x.lane)), row,
          bytes(x, g.stride[0] * x.row));
      const Value weights = moved(b.arg(1), out, w.bytes(w.strides[0]));
      const Value to =
          moved(moved(moved(b.arg(2), batch, bytes(y, y.batch)), out, bytes(y, y.lane)), row, bytes(y, y.row));
      Value zero = b.i32(0);
      if (wZero)
        zero = widened(wZero->elem, 1,
                       wZero->elements() == 1 ? b.arg(3) : moved(b.arg(3), out, wZero->bytes(wZero->strides[0])), 0);
      const auto points = [&](Value column, int width) {
        Values sum = b.loop(ins, {b.zero(Ty::I32, width)}, [&](Value channel, const Values& c0) {
          return b.loop(kh, c0, [&](Value down, const Values& c1) {
            return b.loop(kw, c1, [&](Value across, const Values& c2) {
              Value at = moved(moved(from, channel, bytes(x, x.lane)), down, bytes(x, g.dilation[0] * x.row));
              at = moved(moved(at, across, bytes(x, g.dilation[1] * x.column)), column,
                         bytes(x, g.stride[1] * x.column));
              const Value v = b.sub(widened(x.view.elem, width, at, bytes(x, g.stride[1] * x.column)),
                                    b.i32(static_cast<int32_t>(xZero)));
              const Value wAt =
                  moved(moved(moved(weights, channel, w.bytes(w.strides[1])), down, w.bytes(w.strides[2])), across,
                        w.bytes(w.strides[3]));
              return Values{b.add(c2[0], b.mul(v, b.sub(widened(w.elem, 1, wAt, 0), zero)))};
            });
          });
        });
        b.storeStrided(sum[0], moved(to, column, bytes(y, y.column)), bytes(y, y.column));
      };
      const int64_t whole = y.w / lanes * lanes;
      b.loop(b.i64(0), b.i64(whole), lanes, [&](Value column) { points(column, lanes); });
      if (whole < y.w) b.loop(b.i64(whole), b.i64(y.w), 1, [&](Value column) { points(column, 1); });
    });
  });
}

} // namespace

bool emitConvInt8(Lowering& lowering, const cdl_instr_t& instr, const Conv2d& g, std::string& why) {
  const std::vector<Operand> in = operandsOf(lowering, instr);
  const size_t operands = cdl_operand_count(lowering.image, &instr), results = in.size() - 1;
  const cdl_expr_t* epilogue = instr.expr ? cdl_get_expr(lowering.image, instr.expr) : nullptr;
  const std::optional<Image> input = imageOf(in[0]), output = imageOf(in[results]);
  const Operand& w = in[1];
  if (in[1].elem != CDL_I8 || in[results].elem != CDL_I32) return why = "its element types", false;
  if (!input || !output || w.rank != 4 || output->isBlocked) return why = "its layouts", false;
  const Image& y = *output;
  int64_t xZero = 0;
  if (operands > 2 && !knownInteger(lowering, in[2], xZero)) return why = "a zero point that is no constant", false;
  const uint64_t border = static_cast<uint64_t>(xZero) & 0xff;
  const int64_t outs = y.c / g.group, ins = w.dims[1], kh = w.dims[2], kw = w.dims[3];
  const char* payload = payloadOf(lowering, w);
  int64_t wZero = 0;
  const bool symmetric = operands < 4 || (in[3].elements() == 1 && knownInteger(lowering, in[3], wZero) && wZero == 0);

  // A constant bias joins the constant of each channel, and then a RESCALE behind it joins the kernel.
  const auto bias32 =
      epilogue ? constantBias(lowering, *epilogue, in, 1, y.c) : std::vector<int32_t>(static_cast<size_t>(y.c), 0);
  std::optional<Follower> follower;
  if (bias32 && payload && symmetric) follower = followerOf(lowering, lowering.instr(), in[results], 1);

  // Sums in panels, or straight in y; then the epilogue over them.
  const int64_t panels = (outs + kPanel - 1) / kPanel, area = y.h * y.w * kPanel;
  std::vector<std::optional<Image>> views(results);
  for (size_t i = operands; i < results; ++i)
    if (!(views[i] = imageOf(in[i])) || views[i]->isBlocked)
      return why = "the layout of what its epilogue reads", false;
  const auto apply = [&](const Operand& acc, const std::function<Operand(const Image&)>& of) {
    if (!epilogue) return copy(lowering, acc, of(y));
    std::vector<Operand> read = {acc};
    for (const auto& v : views)
      if (v) read.push_back(of(*v));
    map(lowering, "conv " + exprKey(lowering, *epilogue), read, of(y),
        [&](Builder& b, const std::vector<Typed>& loaded) {
          std::vector<Typed> byIndex(views.size());
          for (size_t i = 0, next = 1; i < views.size(); ++i)
            if (views[i]) byIndex[i] = loaded[next++];
          return computeExpr(b, lowering.image, *epilogue, byIndex, &loaded[0]);
        });
  };

  // Groups that end within a block: only those of whole fours can be dot products.
  const bool splitsBlocks = input->isBlocked && ins % kPanel != 0;
  if (!payload || !symmetric || ins * g.group < 4 || (ins == 1 && g.group > 1) || (splitsBlocks && ins % 4 != 0)) {
    const Image x = input->isBlocked ? channelsInnermost(lowering, *input, 1, input->c, g.begin, g.end, border)
                                     : bordered(lowering, *input, g.begin, g.end, border);
    Image sums = y;
    if (epilogue) {
      sums.lane = y.h * y.w, sums.block = kPanel * sums.lane, sums.row = y.w, sums.column = 1,
      sums.batch = y.c * sums.lane;
      sums.view = view(CDL_I32, {}, {}, lowering.scratch(static_cast<uint64_t>(y.n * sums.batch) * 4));
    }
    emitWidened(lowering, x, w, sums, operands > 3 ? &in[3] : nullptr, xZero, g);
    if (!epilogue) return true;
    const std::vector<int64_t> dims = {y.n, y.c, y.h, y.w};
    const auto of = [&](const Image& image) {
      return restrided(image.view, dims, {image.batch, image.lane, image.row, image.column});
    };
    apply(of(sums), of);
    return true;
  }

  const bool isSigned = in[0].elem == CDL_I8;
  const int64_t channels = roundUp(ins, 4);
  const Image x = channelsInnermost(lowering, *input, splitsBlocks ? 1 : g.group, splitsBlocks ? input->c : channels,
                                    g.begin, g.end, border);
  std::vector<char> weights(static_cast<size_t>(g.group * panels * kh * kw * channels * kPanel), 0);
  std::vector<int32_t> bias(static_cast<size_t>(g.group * panels * kPanel), 0);
  const int64_t tap = channels * kPanel, panelBytes = kh * kw * tap;
  for (int64_t o = 0; o < g.group * outs; ++o) {
    const int64_t group = o / outs, panel = o % outs / kPanel, lane = o % outs % kPanel;
    int64_t sum = 0;
    for (int64_t i = 0; i < ins; ++i)
      for (int64_t r = 0; r < kh; ++r)
        for (int64_t s = 0; s < kw; ++s) {
          const char value = payload[o * w.strides[0] + i * w.strides[1] + r * w.strides[2] + s * w.strides[3]];
          sum += static_cast<signed char>(value);
          weights[static_cast<size_t>((group * panels + panel) * panelBytes + (r * kw + s) * tap + i / 4 * 4 * kPanel +
                                      lane * 4 + i % 4)] = value;
        }
    bias[static_cast<size_t>((group * panels + panel) * kPanel + lane)] =
        static_cast<int32_t>(-(xZero + (isSigned ? 128 : 0)) * sum) + (bias32 ? (*bias32)[static_cast<size_t>(o)] : 0);
  }
  Contraction c;
  c.batch = y.n, c.groups = g.group, c.panels = panels, c.rows = y.h, c.columns = y.w;
  c.isInt8 = true, c.aIsSigned = isSigned, c.accElem = CDL_I32;
  c.a = {in[0].elem, x.view.at, x.batch, channels, 0, g.stride[0] * x.row, g.stride[1] * x.column, 0};
  c.b = lowering.own(weights.data(), weights.size());
  c.bGroup = panels * panelBytes, c.bPanel = panelBytes;
  c.axes = {{kh, g.dilation[0] * x.row, kw * tap}, {kw, g.dilation[1] * x.column, tap}, {channels / 4, 4, 4 * kPanel}};
  Plane add;
  add.elem = CDL_I32, add.at = lowering.own(bias.data(), bias.size() * 4), add.group = panels * kPanel * 4;
  add.panel = kPanel * 4, add.lane = 4;
  c.bias = add;
  const int64_t groupArea = panels * area, batchArea = g.group * groupArea;
  const bool isFlat = kh == 1 && kw == 1 && c.a.row == c.columns * c.a.column;
  if (isFlat) c.columns *= c.rows, c.rows = 1;
  const uint8_t resultElem = follower ? follower->y.elem : uint8_t(CDL_I32);
  const int64_t size = cdl_elem_bits(resultElem) / 8;
  const Arg sums = lowering.scratch(static_cast<uint64_t>(y.n * batchArea * size));
  c.y = {resultElem,    sums, batchArea * size, groupArea * size, area * size, c.columns * kPanel * size,
         kPanel * size, size};
  Image to = y; // where the panels go in the end
  if (follower) {
    c.requantize = Requantize{follower->form, panelsOf(lowering, follower->scales, g.group, panels),
                              panelsOf(lowering, follower->zeros, g.group, panels)};
    to.view = follower->y;
    lowering.done(lowering.instr() + 1);
  }
  emitContraction(lowering, c);
  const auto finish = [&](int64_t first, int64_t count, int64_t lanes) {
    if (count == 0 || lanes == 0) return;
    const std::vector<int64_t> dims = {y.n, g.group, count, lanes, y.h, y.w};
    const auto of = [&](const Image& image) {
      return restrided(image.view, dims,
                       {image.batch, outs * image.lane, image.block, image.lane, image.row, image.column},
                       first * image.block);
    };
    const Operand from = restrided(view(resultElem, {}, {}, sums), dims,
                                   {batchArea, groupArea, area, 1, y.w * kPanel, kPanel}, first * area);
    if (bias32)
      copy(lowering, from, of(to));
    else
      apply(from, of);
  };
  finish(0, outs / kPanel, kPanel);
  finish(outs / kPanel, outs % kPanel ? 1 : 0, outs % kPanel);
  return true;
}

} // namespace cpu
