// REDUCE and ARG_REDUCE along the middle dim of x[O,R,I].
#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "core/runtime/host_executor/expr.h"

namespace candela::runtime::host_executor {
namespace {

// Accumulators: f32 sums and products in f64, which costs little and keeps long rows accurate; f16
// and bf16 in f32.
template <class T, class Op> struct AccumulatorOf {
  using Type = Compute<T>;
};
template <> struct AccumulatorOf<float, Add> {
  using Type = double;
};
template <> struct AccumulatorOf<float, Mul> {
  using Type = double;
};

template <class Acc, class Op> Acc identity() {
  using Limits = std::numeric_limits<Acc>;
  if constexpr (std::is_same_v<Op, Add>)
    return Acc(0);
  else if constexpr (std::is_same_v<Op, Mul>)
    return Acc(1);
  else if constexpr (std::is_same_v<Op, Max>)
    return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
  else
    return Limits::has_infinity ? Limits::infinity() : Limits::max();
}

// Rows of I: one accumulator per i, r in order.
template <class T, class Op, class Acc>
void reduceColumns(const Operand& x, int64_t start, int64_t n, Acc* acc) {
  const int64_t stride = x.strides[2];
  std::fill_n(acc, n, identity<Acc, Op>());
  for (int64_t r = 0; r < x.dims[1]; ++r) {
    const T* row = x.at<T>(start + r * x.strides[1]);
    if (stride == 1) {
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) acc[i] = Op::template apply<Acc>(acc[i], load(row[i]));
    } else {
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i)
        acc[i] = Op::template apply<Acc>(acc[i], load(row[i * stride]));
    }
  }
}

// One long row: eight accumulators, r mod 8 each, joined in order at the end. They are vectors
// enough: where GCC 12 makes others of the loops around them, it loses lanes of sums of i8.
template <class T, class Op, class Acc>
__attribute__((optimize("no-tree-loop-vectorize"))) Acc reduceLine(const Operand& x,
                                                                   int64_t start) {
  constexpr int lanes = 8;
  Acc acc[lanes];
  std::fill_n(acc, lanes, identity<Acc, Op>());
  const int64_t stride = x.strides[1], count = x.dims[1];
  if (count == 0) return acc[0];
  const T* row = x.at<T>(start);
  int64_t r = 0;
  for (; r + lanes <= count; r += lanes)
    for (int lane = 0; lane < lanes; ++lane)
      acc[lane] = Op::template apply<Acc>(acc[lane], load(row[(r + lane) * stride]));
  for (int lane = 0; r < count; ++r, ++lane)
    acc[lane] = Op::template apply<Acc>(acc[lane], load(row[r * stride]));
  for (int lane = 1; lane < lanes; ++lane) acc[0] = Op::template apply<Acc>(acc[0], acc[lane]);
  return acc[0];
}

/// Rows first .. end of y.
struct OuterRows {
  int64_t first, end;
};

template <class T, class Op>
void reduce(const Operand& x, const Operand& y, OuterRows rows, Finisher& finisher) {
  using Acc = typename AccumulatorOf<T, Op>::Type;
  std::array<Acc, kBlock> acc;
  std::array<T, kBlock> result;
  const int64_t columns = y.dims[1];
  for (int64_t o = rows.first; o < rows.end; ++o) {
    const int64_t start = x.start + o * x.strides[0];
    for (int64_t i = 0; i < columns; i += kBlock) {
      const int64_t n = std::min(kBlock, columns - i);
      if (columns == 1)
        acc[0] = reduceLine<T, Op, Acc>(x, start);
      else
        reduceColumns<T, Op, Acc>(x, start + i * x.strides[2], n, acc.data());
      for (int64_t k = 0; k < n; ++k) result[k] = store<T>(static_cast<Compute<T>>(acc[k]));
      finisher.finish(&o, i, result.data(), n);
    }
  }
}

template <class T>
void reduceBy(uint16_t fn, const Operand& x, const Operand& y, OuterRows rows, Finisher& finisher) {
  switch (fn) {
  case CDL_REDUCE_SUM: return reduce<T, Add>(x, y, rows, finisher);
  case CDL_REDUCE_MAX: return reduce<T, Max>(x, y, rows, finisher);
  case CDL_REDUCE_MIN: return reduce<T, Min>(x, y, rows, finisher);
  default: return reduce<T, Mul>(x, y, rows, finisher);
  }
}

/// x[1,R,I] is computed by the prologue for one o after the other, into memory of its own.
cdl::Status reduceBehind(const Call& call, const Operand& y, Finisher& finisher) {
  Expr prologue;
  if (cdl::Status status = prologue.bind(call, 0, 0, call.instr->prologue); !status.isOk())
    return status;
  Operand x = call.input(0);
  x.elem = cdl_get_step(call.image, cdl_get_expr(call.image, call.instr->expr)->first_step +
                                        call.instr->prologue - 1)
               ->elem;
  const int64_t outer = std::exchange(x.dims[0], 1);
  x.strides[0] = 0;
  x.strides[1] = x.dims[2];
  x.strides[2] = 1;
  x.start = 0;
  Scratch<uint64_t> slab(
      static_cast<size_t>(x.elements()) * std::max<size_t>(cdl_elem_bits(x.elem), 8) / 64 + 1);
  x.base = reinterpret_cast<char*>(slab.data());
  Scratch<Operand> views = prologue.views();
  for (Operand& view : views) view.dims[0] = 1;
  for (int64_t o = 0; o < outer; ++o) {
    mapBlocks(views, x, [&](const void* const* blocks, void* out, int64_t n) {
      prologue.evaluate(blocks, nullptr, out, n);
    });
    withAny(x.elem,
            [&]<class T>(Tag<T>) { reduceBy<T>(call.instr->fn, x, y, {o, o + 1}, finisher); });
    for (Operand& view : views) view.start += view.strides[0];
  }
  return cdl::ok();
}

} // namespace

cdl::Status runReduce(const Call& call) {
  const Operand x = call.input(0), y = call.output();
  const uint32_t prologue = call.instr->prologue;
  const cdl_expr_t* expr = cdl_get_expr(call.image, call.instr->expr);
  const uint8_t elem =
      prologue ? cdl_get_step(call.image, expr->first_step + prologue - 1)->elem : x.elem;
  if (!isArithmetic(elem) || (elem != y.elem && expr->steps == prologue)) return call.failElems();
  Finisher finisher;
  if (cdl::Status status = finisher.bind(call, elem); !status.isOk()) return status;
  if (prologue) return reduceBehind(call, y, finisher);
  withAny(x.elem,
          [&]<class T>(Tag<T>) { reduceBy<T>(call.instr->fn, x, y, {0, y.dims[0]}, finisher); });
  return cdl::ok();
}

template <class C> static bool isBeyond(bool above, C value, C other) {
  return above ? value > other : value < other;
}

cdl::Status runArgReduce(const Call& call) {
  const Operand x = call.input(0), y = call.output();
  if (!isArithmetic(x.elem) || (y.elem != CDL_I32 && y.elem != CDL_I64)) return call.failElems();
  if (x.dims[1] == 0 && y.elements() != 0)
    return call.fail(CDL_BAD_MODEL, "there is no extreme along x of dims " + dimsText(x));
  const bool last = call.attr(CDL_ATTR_SELECT_LAST, 0) != 0,
             max = call.instr->fn == CDL_ARG_REDUCE_MAX;
  // A NaN is the extreme, as in REDUCE; of equals the first or the last.
  withAny(x.elem, [&]<class T>(Tag<T>) {
    for (int64_t o = 0; o < y.dims[0]; ++o)
      for (int64_t i = 0; i < y.dims[1]; ++i) {
        const T* line = x.at<T>(x.start + o * x.strides[0] + i * x.strides[2]);
        Compute<T> best = load(line[0]);
        int64_t at = 0;
        for (int64_t r = 1; r < x.dims[1]; ++r) {
          const Compute<T> value = load(line[r * x.strides[1]]);
          const bool nan = value != value, bestNan = best != best;
          const bool better = nan || bestNan ? nan && !bestNan : isBeyond(max, value, best);
          if (better || (last && ((nan && bestNan) || value == best))) {
            best = value;
            at = r;
          }
        }
        const int64_t to = y.start + o * y.strides[0] + i * y.strides[1];
        if (y.elem == CDL_I32)
          *y.at<int32_t>(to) = static_cast<int32_t>(at);
        else
          *y.at<int64_t>(to) = at;
      }
  });
  return cdl::ok();
}

} // namespace candela::runtime::host_executor
