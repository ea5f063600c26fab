// MATMUL: a[B,M,K], b[B,K,N], y[B,M,N] as a contraction over packed panels of b, or straight from b
// where packing would cost more than it brings.
#include "contraction.hpp"
#include "instructions.hpp"
#include "map.hpp"
#include "requantize.hpp"

#include <algorithm>

namespace cpu {

namespace {

constexpr int64_t kFewRows = 4; // of a: b is read too seldom to be packed in each execution

int64_t panelsOf(int64_t columns) { return (columns + kPanel - 1) / kPanel; }

/// The epilogue, and its views as planes of y[B,M,N].
void setEpilogue(const cdl_expr_t* epilogue, const std::vector<Operand>& in, size_t first,
                 Contraction& c) {
  c.epilogue = epilogue;
  c.views.resize(in.size());
  for (size_t i = first; i < in.size(); ++i) {
    const Operand& o = in[i];
    Plane p;
    p.elem = o.elem;
    p.at = o.at;
    p.batch = o.bytes(o.strides[0]);
    p.column = o.bytes(o.strides[1]);
    p.lane = o.bytes(o.strides[2]);
    p.panel = p.lane * kPanel;
    c.views[i] = p;
  }
}

/// Integer products of any form, element types widened first: zero points, strides, any K.
void emitPlain(Lowering& lowering, const std::vector<Operand>& in, const Operand& y,
               bool accumulates) {
  const int64_t batch = y.dims[0], m = y.dims[1], n = y.dims[2], k = in[0].dims[2];
  const Operand &a = in[0], &w = in[1];
  Key key("plain matmul");
  std::vector<Arg> args;
  for (const Operand& o : in) {
    key << o.elem;
    for (int d = 0; d < o.rank; ++d) key << o.dims[d] << o.strides[d];
    args.push_back(o.at);
  }
  key << y.elem << y.strides[0] << y.strides[1] << y.strides[2] << accumulates;
  args.push_back(y.at);
  const int lanes = lowering.isa.lanes(y.elem == CDL_I64 ? 8 : 4);
  lowering.call(key.text(), static_cast<uint64_t>(batch * m), args, [&](Builder& b) {
    Ty ty = Ty::I64;
    typeOf(y.elem, ty);
    const auto widened = [&](const Operand& o, int width, Value at) {
      Ty own = Ty::I8;
      typeOf(o.elem, own);
      return b.cast(b.loadStrided(own, width, at, width == 1 ? 0 : o.bytes(o.strides[o.rank - 1])),
                    ty, isSignedElem(o.elem));
    };
    b.loop(b.begin(), b.end(), 1, [&](Value unit) {
      const Value row = b.rem(unit, b.i64(m), false), block = b.div(unit, b.i64(m), false);
      const auto rowOf = [&](int arg, const Operand& o, Value i) {
        return b.at(b.at(b.arg(arg), b.mul(block, b.i64(o.bytes(o.strides[0])))),
                    b.mul(i, b.i64(o.bytes(o.strides[1]))));
      };
      const Value aRow = rowOf(0, a, row), yRow = rowOf(static_cast<int>(in.size()), y, row);
      const auto columns = [&](Value first, int width) {
        const Value aZero = in.size() > 2 ? widened(in[2], 1, b.arg(2)) : b.zero(ty);
        Value bZero = b.zero(ty, width);
        if (in.size() > 3)
          bZero = in[3].elements() == 1
                      ? b.splat(widened(in[3], 1, b.arg(3)), width)
                      : widened(in[3], width,
                                b.at(b.arg(3), b.mul(first, b.i64(in[3].bytes(in[3].strides[0])))));
        const Value wAt = b.at(rowOf(1, w, b.i64(0)), b.mul(first, b.i64(w.bytes(w.strides[2]))));
        const Value yAt = b.at(yRow, b.mul(first, b.i64(y.bytes(y.strides[2]))));
        const Value start =
            accumulates ? b.loadStrided(ty, width, yAt, y.bytes(y.strides[2])) : b.zero(ty, width);
        const Values sum = b.loop(k, {start}, [&](Value i, const Values& carried) {
          const Value x =
              b.sub(widened(a, 1, b.at(aRow, b.mul(i, b.i64(a.bytes(a.strides[2]))))), aZero);
          const Value v =
              b.sub(widened(w, width, b.at(wAt, b.mul(i, b.i64(w.bytes(w.strides[1]))))), bZero);
          return Values{b.add(carried[0], b.mul(b.splat(x, width), v))};
        });
        b.storeStrided(sum[0], yAt, y.bytes(y.strides[2]));
      };
      if (n >= lanes)
        b.loop(b.i64(0), b.i64(n / lanes), 1,
               [&](Value t) { columns(b.mul(t, b.i64(lanes)), lanes); });
      if (n % lanes) b.loop(b.i64(n / lanes * lanes), b.i64(n), 1, [&](Value i) { columns(i, 1); });
    });
  });
}

/// Products of four by four: b is known, and nothing has to be taken off it.
bool takesDots(const Lowering& lowering, const std::vector<Operand>& in, size_t operands,
               const Operand& y, bool accumulates) {
  const Operand &a = in[0], &w = in[1];
  const int64_t k = a.dims[2];
  int64_t aZero = 0, bZero = 0;
  const bool zerosKnown =
      (operands < 3 || knownInteger(lowering, in[2], aZero)) &&
      (operands < 4 || (in[3].elements() == 1 && knownInteger(lowering, in[3], bZero)));
  return a.elem != CDL_I16 && payloadOf(lowering, w) && zerosKnown && bZero == 0 && k > 0 &&
         k % 4 == 0 && a.strides[2] == 1 && y.strides[2] == 1 &&
         (y.dims[0] == 1 || w.strides[0] == 0) && !accumulates;
}

/// The integer product. With takesDots, `constants` of each column are added, then comes the
/// epilogue, or `follower`.
void emitInteger(Lowering& lowering, const std::optional<Follower>& follower,
                 std::vector<Operand> in, size_t operands, const Operand& y, bool accumulates,
                 const std::vector<int32_t>& constants, const cdl_expr_t* epilogue = nullptr) {
  const Operand a = in[0], w = in[1];
  const int64_t batch = y.dims[0], m = y.dims[1], n = y.dims[2], k = a.dims[2];
  if (k == 0 && accumulates) return;
  if (k == 0) return fill(lowering, y, 0);
  if (!takesDots(lowering, in, operands, y, accumulates)) {
    in.resize(operands);
    emitPlain(lowering, in, y, accumulates);
    return;
  }
  // b by four rows, interleaved; what a's zero point and sign add to each column is a constant.
  int64_t aZero = 0;
  if (operands > 2) knownInteger(lowering, in[2], aZero);
  const char* payload = payloadOf(lowering, w);
  const int64_t panels = panelsOf(n);
  std::vector<char> packedB(static_cast<size_t>(panels * k * kPanel), 0);
  std::vector<uint32_t> bias(constants.begin(), constants.end());
  bias.resize(static_cast<size_t>(panels * kPanel), 0);
  std::vector<int64_t> totals(bias.size(), 0);
  for (int64_t row = 0; row < k; ++row)
    for (int64_t column = 0; column < n; ++column) {
      const char value = payload[row * w.strides[1] + column * w.strides[2]];
      const int64_t panel = column / kPanel, lane = column % kPanel;
      packedB[static_cast<size_t>(((panel * (k / 4) + row / 4) * kPanel + lane) * 4 + row % 4)] =
          value;
      totals[static_cast<size_t>(column)] += static_cast<signed char>(value);
    }
  Contraction c;
  c.batch = batch;
  c.panels = panels;
  c.columns = m;
  c.lastLanes = static_cast<int>(n - (panels - 1) * kPanel);
  c.isInt8 = true;
  c.aIsSigned = a.elem == CDL_I8;
  c.accElem = CDL_I32;
  c.a.elem = a.elem;
  c.a.at = a.at;
  c.a.batch = a.strides[0];
  c.a.column = a.strides[1];
  c.b = lowering.own(packedB.data(), packedB.size());
  c.bPanel = k * kPanel;
  c.axes = {{k / 4, 4, kPanel * 4}};
  if (follower) follow(lowering, *follower, 1, panels, c);
  const auto plane = [](const Operand& o) {
    return Plane{o.elem,          o.at, o.bytes(o.strides[0]), 0,
                 o.bytes(kPanel), 0,    o.bytes(o.strides[1]), o.bytes(1)};
  };
  c.y = plane(follower ? follower->y : y);
  if (follower && follower->join) c.join = Join{*follower->join, plane(follower->other)};
  const int64_t moved = aZero + (movesSign(lowering.isa, c) ? 128 : 0);
  for (size_t i = 0; i < bias.size(); ++i) bias[i] -= static_cast<uint32_t>(moved * totals[i]);
  Plane add;
  add.elem = CDL_I32;
  add.at = lowering.own(bias.data(), bias.size() * 4);
  add.panel = kPanel * 4;
  add.lane = 4;
  c.bias = add;
  if (epilogue) setEpilogue(epilogue, in, operands, c);
  emitContraction(lowering, c);
}

} // namespace

bool emitMatmul(Lowering& lowering, const cdl_instr_t& instr, std::string& why) {
  std::vector<Operand> in = operandsOf(lowering, instr);
  const Operand y = in.back();
  in.pop_back();
  const size_t operands = cdl_operand_count(lowering.image, &instr);
  const bool accumulates = attrOf(lowering, instr, CDL_ATTR_ACCUMULATE, 0) != 0;
  const cdl_expr_t* epilogue = instr.expr ? cdl_get_expr(lowering.image, instr.expr) : nullptr;
  const Operand &a = in[0], &w = in[1];
  const int64_t batch = y.dims[0], m = y.dims[1], n = y.dims[2], k = a.dims[2];
  if (y.elements() == 0) return true;
  if (epilogue && !canComputeExpr(lowering.image, *epilogue))
    return why = "a step of its epilogue", false;

  if (a.elem != CDL_F32) {
    const bool isWide = a.elem == CDL_I16;
    if ((!isWide && a.elem != CDL_I8 && a.elem != CDL_U8) || w.elem != CDL_I8)
      return why = "its element types", false;
    const uint8_t own = isWide ? CDL_I64 : CDL_I32;
    const std::vector<int32_t> nothing(static_cast<size_t>(n), 0);
    if (!epilogue && y.elem != own) return why = "its element types", false;
    const bool isDots = takesDots(lowering, in, operands, y, accumulates);
    cdl_expr_t rest = epilogue ? *epilogue : cdl_expr_t{};
    const std::vector<Operand> all = operandsOf(lowering, instr);
    std::optional<Follower> follower;
    if (isDots && epilogue) follower = endingOf(lowering, lowering.instr(), rest, all, 2, true);
    if (follower) --rest.steps;
    // what a constant bias leaves over is requantization alone
    if (isDots && (follower || y.elem == own)) {
      const auto bias =
          rest.steps ? constantBias(lowering, rest, all, 2, n) : std::optional(nothing);
      if (bias && !follower) follower = followerOf(lowering, lowering.instr(), y, 2, true);
      if (bias) return emitInteger(lowering, follower, in, operands, y, accumulates, *bias), true;
    }
    if (!epilogue)
      return emitInteger(lowering, std::nullopt, in, operands, y, accumulates, nothing), true;
    if (isDots)
      return emitInteger(lowering, std::nullopt, in, operands, y, accumulates, nothing, epilogue),
             true;
    // Else over the sums, in a pass of its own.
    const Operand sums =
        view(own, {batch, m, n}, {m * n, n, 1},
             lowering.scratch(static_cast<uint64_t>(y.elements() * (isWide ? 8 : 4))));
    if (accumulates) copy(lowering, y, sums);
    emitInteger(lowering, std::nullopt, in, operands, sums, accumulates, nothing);
    std::vector<Operand> read = {sums};
    read.insert(read.end(), in.begin() + static_cast<std::ptrdiff_t>(operands), in.end());
    map(lowering, "matmul " + std::to_string(operands) + " " + exprKey(lowering, *epilogue), read,
        y, [&](Builder& b, const std::vector<Typed>& loaded) {
          std::vector<Typed> byIndex(in.size());
          std::copy(loaded.begin() + 1, loaded.end(),
                    byIndex.begin() + static_cast<std::ptrdiff_t>(operands));
          return computeExpr(b, lowering.image, *epilogue, byIndex, &loaded[0]);
        });
    return true;
  }

  if (w.elem != CDL_F32 || (y.elem != CDL_F32 && (!epilogue || accumulates)))
    return why = "its element types", false;
  Contraction c;
  c.batch = batch;
  c.panels = panelsOf(n);
  c.columns = m;
  c.lastLanes = static_cast<int>(n - (c.panels - 1) * kPanel);
  c.accumulates = accumulates;
  if (epilogue) setEpilogue(epilogue, in, operands, c);
  // Columns that are no neighbours come by way of a dense result.
  const bool isScattered = n > 1 && y.strides[2] != 1;
  const Operand to = !isScattered
                         ? y
                         : view(y.elem, {batch, m, n}, {m * n, n, 1},
                                lowering.scratch(static_cast<uint64_t>(y.bytes(y.elements()))));
  if (isScattered && accumulates) copy(lowering, y, to);
  c.a = {a.elem, a.at, a.bytes(a.strides[0]), 0, 0, 0, a.bytes(a.strides[1]), 0};
  c.y = {to.elem,          to.at, to.bytes(to.strides[0]), 0,
         to.bytes(kPanel), 0,     to.bytes(to.strides[1]), to.bytes(1)};
  const bool isConstant = payloadOf(lowering, w) != nullptr;
  const bool isWhole = n % kPanel == 0; // else the last panel would be read beyond b
  if (k == 0) {
    c.axes = {{0, 0, 0}};
    c.b = w.at;
  } else if (w.rank == 4) { // {b, n/16, k, n%16}
    c.b = w.at;
    c.bBatch = w.bytes(w.strides[0]);
    c.bPanel = w.bytes(w.strides[1]);
    c.axes = {{k, a.bytes(a.strides[2]), w.bytes(w.strides[2])}};
  } else if (m <= kFewRows && !isConstant && isWhole && w.strides[2] == 1) {
    c.b = w.at;
    c.bBatch = w.bytes(w.strides[0]);
    c.bPanel = kPanel * 4;
    c.axes = {{k, a.bytes(a.strides[2]), w.bytes(w.strides[1])}};
  } else {
    const int64_t distinct = w.strides[0] == 0 ? 1 : batch, size = c.panels * k * kPanel;
    std::vector<Piece> pieces;
    const int64_t whole = n / kPanel, rest = n % kPanel;
    pieces.push_back({{distinct, whole, k, kPanel},
                      {w.strides[0], kPanel * w.strides[2], w.strides[1], w.strides[2]},
                      {size, k * kPanel, kPanel, 1}});
    if (rest)
      pieces.push_back({{distinct, k, rest},
                        {w.strides[0], w.strides[1], w.strides[2]},
                        {size, kPanel, 1},
                        whole * kPanel * w.strides[2],
                        whole * k * kPanel});
    c.b = packed(lowering, w, distinct * size, pieces);
    c.bBatch = distinct == 1 ? 0 : size * 4;
    c.bPanel = k * kPanel * 4;
    c.axes = {{k, a.bytes(a.strides[2]), kPanel * 4}};
  }
  emitContraction(lowering, c);
  if (isScattered) copy(lowering, to, y);
  return true;
}

} // namespace cpu
