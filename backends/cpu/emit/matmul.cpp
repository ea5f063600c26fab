// MATMUL: a[B,M,K], b[B,K,N], y[B,M,N] as a contraction over packed panels of b, or straight from b
// where packing would cost more than it brings.
#include "contraction.hpp"
#include "elementwise.hpp"
#include "instructions.hpp"
#include "requantize.hpp"

#include <algorithm>

namespace cpu {

namespace {

constexpr int64_t kFewRows = 4; // of a: b is read too seldom to be packed in each execution

int64_t panelsOf(int64_t columns) { return (columns + kPanel - 1) / kPanel; }

/// Sets the epilogue, and its views as planes of y[B,M,N].
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

/// Emits integer products of any form, element types widened first: zero points, strides, any K.
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
      const Value row = b.remainder(unit, m), block = b.quotient(unit, m);
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

/// Whether dot products of four compute it: b is known, and nothing has to be taken off it.
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

/// An integer product. Where it takes dots, `constants` of each column are added, then comes the
/// epilogue, or the follower.
struct IntegerProduct {
  const std::vector<Operand>& in; // a, b, zero points, then what the epilogue reads
  size_t operands;                // of `in`
  const Operand& y;
  bool accumulates;
  const std::vector<int32_t>& constants;
  const cdl_expr_t* epilogue = nullptr;
  std::optional<Follower> follower = std::nullopt;

  int64_t columns() const { return y.dims[2]; }
  int64_t depth() const { return in[0].dims[2]; }
};

/// The elements of b by four rows, interleaved, in panels; and the sum of each column.
struct InterleavedWeights {
  std::vector<char> bytes;
  std::vector<int64_t> totals;
};

InterleavedWeights interleaved(const char* payload, const Operand& w, int64_t k, int64_t n) {
  const int64_t panels = panelsOf(n);
  InterleavedWeights to{.bytes = std::vector<char>(static_cast<size_t>(panels * k * kPanel), 0),
                        .totals = std::vector<int64_t>(static_cast<size_t>(panels * kPanel), 0)};
  for (int64_t row = 0; row < k; ++row)
    for (int64_t column = 0; column < n; ++column) {
      const char value = payload[row * w.strides[1] + column * w.strides[2]];
      const int64_t panel = column / kPanel, lane = column % kPanel;
      to.bytes[static_cast<size_t>(((panel * (k / 4) + row / 4) * kPanel + lane) * 4 + row % 4)] =
          value;
      to.totals[static_cast<size_t>(column)] += static_cast<signed char>(value);
    }
  return to;
}

/// What is added to each column: its constant, and what a zero point of a that is `moved` adds to
/// the column's `totals`.
Plane biasOf(Lowering& lowering, const std::vector<int32_t>& constants,
             const std::vector<int64_t>& totals, int64_t moved) {
  std::vector<uint32_t> bias(constants.begin(), constants.end());
  bias.resize(totals.size(), 0);
  for (size_t i = 0; i < bias.size(); ++i) bias[i] -= static_cast<uint32_t>(moved * totals[i]);
  Plane add;
  add.elem = CDL_I32;
  add.at = lowering.own(bias.data(), bias.size() * 4);
  add.panel = kPanel * 4;
  add.lane = 4;
  return add;
}

/// From how many panels on bytes of the other sign are moved once, ahead of all of them, where a
/// product of four takes one instruction, beside which moving them counts.
constexpr int64_t kPanelsOfMoved = 4;

/// A copy of bytes moved by 128: of signed ones as bytes without a sign, and the other way.
Operand movedBytes(Lowering& lowering, const Operand& a) {
  const int64_t rows = a.dims[1], depth = a.dims[2];
  const uint8_t elem = a.elem == CDL_I8 ? CDL_U8 : CDL_I8;
  const Operand to = view(elem, {a.dims[0], rows, depth}, {rows * depth, depth, 1},
                          lowering.scratch(static_cast<uint64_t>(a.elements())));
  map(lowering, "moved bytes", {a}, to, [elem](Builder& b, const std::vector<Typed>& x) {
    return Typed{b.bitXor(x[0].value, b.integer(Ty::I8, 0x80)), elem};
  });
  return to;
}

/// Emits the product as a contraction of dot products of four.
void emitDots(Lowering& lowering, const IntegerProduct& p) {
  const Operand &a = p.in[0], &w = p.in[1];
  const int64_t k = p.depth(), panels = panelsOf(p.columns());
  int64_t aZero = 0;
  if (p.operands > 2) knownInteger(lowering, p.in[2], aZero);
  const InterleavedWeights weights = interleaved(payloadOf(lowering, w), w, k, p.columns());
  Contraction c;
  c.batch = p.y.dims[0];
  c.panels = panels;
  c.columns = p.y.dims[1];
  c.lastLanes = static_cast<int>(p.columns() - (panels - 1) * kPanel);
  c.factors = Factors::BYTES;
  c.aIsSigned = a.elem == CDL_I8;
  c.accElem = CDL_I32;
  c.a.elem = a.elem;
  c.a.at = a.at;
  c.a.batch = a.strides[0];
  c.a.column = a.strides[1];
  c.b = lowering.own(weights.bytes.data(), weights.bytes.size());
  c.bPanel = k * kPanel;
  const SumAxis fours{.count = k / 4, .a = 4, .b = kPanel * 4};
  c.axes = {fours};
  const int64_t move = signMove(lowering.isa, c);
  if (move && lowering.isa.hasDot4 && panels >= kPanelsOfMoved) {
    const Operand moved = movedBytes(lowering, a);
    c.aIsSigned = !c.aIsSigned;
    c.a = {
        .elem = moved.elem, .at = moved.at, .batch = moved.strides[0], .column = moved.strides[1]};
  }
  if (p.follower) follow(lowering, *p.follower, 1, panels, c);
  const auto plane = [](const Operand& o) {
    return Plane{.elem = o.elem,
                 .at = o.at,
                 .batch = o.bytes(o.strides[0]),
                 .panel = o.bytes(kPanel),
                 .column = o.bytes(o.strides[1]),
                 .lane = o.bytes(1)};
  };
  c.y = plane(p.follower ? p.follower->y : p.y);
  if (p.follower && p.follower->join) c.join = Join{*p.follower->join, plane(p.follower->other)};
  c.bias = biasOf(lowering, p.constants, weights.totals, aZero + move);
  if (p.epilogue) setEpilogue(p.epilogue, p.in, p.operands, c);
  emitContraction(lowering, c);
}

void emitInteger(Lowering& lowering, const IntegerProduct& p) {
  if (p.depth() == 0 && p.accumulates) return;
  if (p.depth() == 0) return fill(lowering, p.y, 0);
  if (takesDots(lowering, p.in, p.operands, p.y, p.accumulates)) return emitDots(lowering, p);
  const auto end = p.in.begin() + static_cast<std::ptrdiff_t>(p.operands);
  emitPlain(lowering, std::vector<Operand>(p.in.begin(), end), p.y, p.accumulates);
}

/// A MATMUL with the attributes and the parts of its instruction.
struct MatmulForm {
  std::vector<Operand> in; // a, b, zero points, then what the epilogue reads
  Operand y;
  size_t operands; // of `in`
  const cdl_expr_t* epilogue;
  bool accumulates;
  int64_t batch, m, n, k;
};

MatmulForm matmulFormOf(const Lowering& lowering, const cdl_instr_t& instr) {
  MatmulForm p;
  p.in = operandsOf(lowering, instr);
  p.y = p.in.back();
  p.in.pop_back();
  p.operands = cdl_operand_count(lowering.image, &instr);
  p.epilogue = instr.expr ? cdl_get_expr(lowering.image, instr.expr) : nullptr;
  p.accumulates = attrOf(lowering, instr, CDL_ATTR_ACCUMULATE, 0) != 0;
  p.batch = p.y.dims[0];
  p.m = p.y.dims[1];
  p.n = p.y.dims[2];
  p.k = p.in[0].dims[2];
  return p;
}

/// Emits integer sums into memory, and the epilogue over them in a pass of its own.
void emitApart(Lowering& lowering, const MatmulForm& p, uint8_t sumElem) {
  const auto bytes = static_cast<uint64_t>(p.y.elements() * (sumElem == CDL_I64 ? 8 : 4));
  const Operand sums =
      view(sumElem, {p.batch, p.m, p.n}, {p.m * p.n, p.n, 1}, lowering.scratch(bytes));
  if (p.accumulates) copy(lowering, p.y, sums);
  const std::vector<int32_t> nothing(static_cast<size_t>(p.n), 0);
  emitInteger(lowering, {.in = p.in,
                         .operands = p.operands,
                         .y = sums,
                         .accumulates = p.accumulates,
                         .constants = nothing});
  std::vector<Operand> read = {sums};
  read.insert(read.end(), p.in.begin() + static_cast<std::ptrdiff_t>(p.operands), p.in.end());
  map(lowering, "matmul " + std::to_string(p.operands) + " " + exprKey(lowering, *p.epilogue), read,
      p.y, [&](Builder& b, const std::vector<Typed>& loaded) {
        std::vector<Typed> byIndex(p.in.size());
        std::copy(loaded.begin() + 1, loaded.end(),
                  byIndex.begin() + static_cast<std::ptrdiff_t>(p.operands));
        return computeExpr(b, lowering.image, *p.epilogue, byIndex, &loaded[0]);
      });
}

/// What ends integer sums within their kernel: a constant bias, and the RESCALE after it.
struct IntegerEnd {
  std::vector<int32_t> bias;
  std::optional<Follower> follower;
};

/// The end of the sums of a product; nullopt: the epilogue is something else.
std::optional<IntegerEnd> integerEndOf(const Lowering& lowering, const cdl_instr_t& instr,
                                       const MatmulForm& p, uint8_t sumElem) {
  cdl_expr_t rest = p.epilogue ? *p.epilogue : cdl_expr_t{};
  const std::vector<Operand> all = operandsOf(lowering, instr);
  IntegerEnd end;
  if (p.epilogue) end.follower = followerInEpilogue(lowering, lowering.instr(), rest, all, 2, true);
  if (end.follower) --rest.steps;
  // A result of another type needs a RESCALE, as a constant bias leaves nothing else over.
  if (!end.follower && p.y.elem != sumElem) return std::nullopt;
  end.bias.assign(static_cast<size_t>(p.n), 0);
  if (rest.steps) {
    const auto bias = constantBias(lowering, rest, all, 2, p.n);
    if (!bias) return std::nullopt;
    end.bias = *bias;
  }
  if (!end.follower) end.follower = followerOf(lowering, lowering.instr(), p.y, 2, true);
  return end;
}

bool emitIntegerMatmul(Lowering& lowering, const cdl_instr_t& instr, const MatmulForm& p,
                       std::string& why) {
  const uint8_t elem = p.in[0].elem;
  const bool isWide = elem == CDL_I16;
  if ((!isWide && elem != CDL_I8 && elem != CDL_U8) || p.in[1].elem != CDL_I8)
    return refuse(why, "its element types");
  const uint8_t sumElem = isWide ? CDL_I64 : CDL_I32;
  if (!p.epilogue && p.y.elem != sumElem) return refuse(why, "its element types");
  const bool isDots = takesDots(lowering, p.in, p.operands, p.y, p.accumulates);
  std::optional<IntegerEnd> end;
  if (isDots) end = integerEndOf(lowering, instr, p, sumElem);
  if (!end && p.epilogue && !isDots) {
    emitApart(lowering, p, sumElem);
    return true;
  }
  const std::vector<int32_t> nothing(static_cast<size_t>(p.n), 0);
  emitInteger(lowering, {.in = p.in,
                         .operands = p.operands,
                         .y = p.y,
                         .accumulates = p.accumulates,
                         .constants = end ? end->bias : nothing,
                         .epilogue = end ? nullptr : p.epilogue,
                         .follower = end ? end->follower : std::nullopt});
  return true;
}

/// Sets b of a product of f32, in whole panels where it is not packed yet.
void setWeights(Lowering& lowering, const MatmulForm& p, Contraction& c) {
  const Operand &a = p.in[0], &w = p.in[1];
  SumAxis depth{.count = p.k, .a = a.bytes(a.strides[2])};
  const bool isConstant = payloadOf(lowering, w) != nullptr;
  const bool isWhole = p.n % kPanel == 0; // else the last panel would be read beyond b
  if (p.k == 0) {
    depth.a = 0;
    c.axes = {depth};
    c.b = w.at;
    return;
  }
  if (w.rank == 4) { // {b, n/16, k, n%16}
    c.b = w.at;
    c.bBatch = w.bytes(w.strides[0]);
    c.bPanel = w.bytes(w.strides[1]);
    depth.b = w.bytes(w.strides[2]);
    c.axes = {depth};
    return;
  }
  if (p.m <= kFewRows && !isConstant && isWhole && w.strides[2] == 1) {
    c.b = w.at;
    c.bBatch = w.bytes(w.strides[0]);
    c.bPanel = kPanel * 4;
    depth.b = w.bytes(w.strides[1]);
    c.axes = {depth};
    return;
  }
  const int64_t distinct = w.strides[0] == 0 ? 1 : p.batch, size = c.panels * p.k * kPanel;
  const int64_t whole = p.n / kPanel, rest = p.n % kPanel;
  std::vector<PackedPiece> pieces = {
      {.dims = {distinct, whole, p.k, kPanel},
       .srcStrides = {w.strides[0], kPanel * w.strides[2], w.strides[1], w.strides[2]},
       .dstStrides = {size, p.k * kPanel, kPanel, 1}}};
  if (rest)
    pieces.push_back({.dims = {distinct, p.k, rest},
                      .srcStrides = {w.strides[0], w.strides[1], w.strides[2]},
                      .dstStrides = {size, kPanel, 1},
                      .src = whole * kPanel * w.strides[2],
                      .dst = whole * p.k * kPanel});
  c.b = packed(lowering, w, distinct * size, pieces);
  c.bBatch = distinct == 1 ? 0 : size * 4;
  c.bPanel = p.k * kPanel * 4;
  depth.b = kPanel * 4;
  c.axes = {depth};
}

/// a of a product of bf16 with the two of each pair side by side: itself, or a copy whose rows end
/// with a 0 where K is odd.
Operand pairedRows(Lowering& lowering, const MatmulForm& p) {
  const Operand& a = p.in[0];
  if (a.strides[2] == 1 && p.k % 2 == 0) return a;
  const int64_t width = (p.k + 1) / 2 * 2;
  const int64_t elements = p.batch * p.m * width;
  const Arg at = lowering.scratch(static_cast<uint64_t>(a.bytes(elements)));
  if (width > p.k) fill(lowering, view(a.elem, {elements}, {1}, at), 0);
  const Operand rows = view(a.elem, {p.batch, p.m, p.k}, {p.m * width, width, 1}, at);
  copy(lowering, a, rows);
  return rows;
}

/// Sets b of a product of bf16: panels of pairs of rows, interleaved.
void setPairs(Lowering& lowering, const MatmulForm& p, Contraction& c) {
  const Operand& w = p.in[1];
  if (p.k == 0) {
    c.b = w.at;
    c.axes = {{.count = 0}};
    return;
  }
  const int64_t pairs = (p.k + 1) / 2;
  c.axes = {{.count = pairs, .a = 4, .b = kPanel * 4}};
  c.bPanel = pairs * kPanel * 4;
  const int64_t distinct = w.strides[0] == 0 ? 1 : p.batch;
  const int64_t size = c.panels * pairs * kPanel * 2;
  std::vector<PackedPiece> pieces;
  for (const PanelRun& run : panelRuns(p.n, kPanel))
    for (int64_t half = 0; half < 2; ++half)
      pieces.push_back(
          {.dims = {distinct, run.count, (p.k + 1 - half) / 2, run.lanes},
           .srcStrides = {w.strides[0], kPanel * w.strides[2], 2 * w.strides[1], w.strides[2]},
           .dstStrides = {size, pairs * kPanel * 2, kPanel * 2, 2},
           .src = run.first * kPanel * w.strides[2] + half * w.strides[1],
           .dst = run.first * pairs * kPanel * 2 + half});
  c.b = packed(lowering, w, distinct * size, pieces);
  c.bBatch = distinct == 1 ? 0 : size * 2;
}

/// Sets a and b.
void setFactors(Lowering& lowering, const MatmulForm& p, Contraction& c) {
  const bool isHalves = p.in[0].elem == CDL_BF16;
  const Operand a = isHalves && p.k > 0 ? pairedRows(lowering, p) : p.in[0];
  c.a.elem = a.elem;
  c.a.at = a.at;
  c.a.batch = a.bytes(a.strides[0]);
  c.a.column = a.bytes(a.strides[1]);
  if (!isHalves) return setWeights(lowering, p, c);
  c.factors = Factors::HALVES;
  setPairs(lowering, p, c);
}

void emitFloatMatmul(Lowering& lowering, const MatmulForm& p) {
  Contraction c;
  c.batch = p.batch;
  c.panels = panelsOf(p.n);
  c.columns = p.m;
  c.lastLanes = static_cast<int>(p.n - (c.panels - 1) * kPanel);
  c.accumulates = p.accumulates;
  if (p.epilogue) setEpilogue(p.epilogue, p.in, p.operands, c);
  // Columns that are no neighbours come by way of a dense result.
  const bool isScattered = p.n > 1 && p.y.strides[2] != 1;
  Operand to = p.y;
  if (isScattered)
    to = view(p.y.elem, {p.batch, p.m, p.n}, {p.m * p.n, p.n, 1},
              lowering.scratch(static_cast<uint64_t>(p.y.bytes(p.y.elements()))));
  if (isScattered && p.accumulates) copy(lowering, p.y, to);
  c.y = {.elem = to.elem,
         .at = to.at,
         .batch = to.bytes(to.strides[0]),
         .panel = to.bytes(kPanel),
         .column = to.bytes(to.strides[1]),
         .lane = to.bytes(1)};
  setFactors(lowering, p, c);
  emitContraction(lowering, c);
  if (isScattered) copy(lowering, to, p.y);
}

} // namespace

bool emitMatmul(Lowering& lowering, const cdl_instr_t& instr, std::string& why) {
  const MatmulForm p = matmulFormOf(lowering, instr);
  if (p.y.elements() == 0) return true;
  if (p.epilogue && !canComputeExpr(lowering.image, *p.epilogue))
    return refuse(why, "a step of its epilogue");
  const uint8_t elem = p.in[0].elem;
  if (elem != CDL_F32 && elem != CDL_BF16) return emitIntegerMatmul(lowering, instr, p, why);
  if (p.in[1].elem != elem || (p.y.elem != elem && (!p.epilogue || p.accumulates)))
    return refuse(why, "its element types");
  if (elem == CDL_BF16 && p.in[1].rank != 3) return refuse(why, "the layout of b");
  emitFloatMatmul(lowering, p);
  return true;
}

} // namespace cpu
