// REDUCE and ARG_REDUCE along the middle dim of x[O,R,I].
#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "core/runtime/host_executor/expr.h"
#include "core/runtime/host_executor/map_blocks.h"

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

/// Columns first .. end - 1 of row o of y.
struct Part {
  int64_t o, first, end;
};

/// Columns that are read together, so that rows of x are not read in pieces of a few bytes.
constexpr int64_t kNarrowest = 64;

template <class T, class Op>
void reduce(const Operand& x, const Operand& y, const Part& part, Finisher& finisher) {
  using Acc = typename AccumulatorOf<T, Op>::Type;
  std::array<Acc, kBlock> acc;
  std::array<T, kBlock> result;
  const int64_t start = x.start + part.o * x.strides[0];
  for (int64_t i = part.first; i < part.end; i += kBlock) {
    const int64_t n = std::min(kBlock, part.end - i);
    if (y.dims[1] == 1) // whatever the part: the order of the sum follows from it
      acc[0] = reduceLine<T, Op, Acc>(x, start);
    else
      reduceColumns<T, Op, Acc>(x, start + i * x.strides[2], n, acc.data());
    for (int64_t k = 0; k < n; ++k) result[k] = store<T>(static_cast<Compute<T>>(acc[k]));
    finisher.finish(&part.o, i, result.data(), n);
  }
}

template <class T>
void reduceBy(uint16_t fn, const Operand& x, const Operand& y, const Part& part,
              Finisher& finisher) {
  switch (fn) {
  case CDL_REDUCE_SUM: return reduce<T, Add>(x, y, part, finisher);
  case CDL_REDUCE_MAX: return reduce<T, Max>(x, y, part, finisher);
  case CDL_REDUCE_MIN: return reduce<T, Min>(x, y, part, finisher);
  default: return reduce<T, Mul>(x, y, part, finisher);
  }
}

/// Computes parts of x[O,R,I] by the prologue, into memory of its own, and reduces them. A copy is
/// for another thread.
class Behind {
public:
  Behind(const Call& call, Expr prologue, Finisher finisher, uint8_t elem)
      : call_(&call), y_(call.output()), x_(call.input(0)), prologue_(std::move(prologue)),
        finisher_(std::move(finisher)) {
    x_.elem = elem;
    x_.start = 0;
    x_.strides[0] = 0;
    x_.strides[2] = 1;
  }

  void operator()(int64_t o, int64_t first, int64_t end) {
    Operand slab = x_;
    slab.dims[0] = 1;
    slab.dims[2] = std::min(slab.dims[2], end - first);
    slab.strides[1] = slab.dims[2];
    memory_.resize(static_cast<size_t>(slab.elements()) *
                       std::max<size_t>(cdl_elem_bits(slab.elem), 8) / 64 +
                   1);
    slab.base = reinterpret_cast<char*>(memory_.data());
    Scratch<Operand> views = prologue_.views();
    for (Operand& view : views) {
      view.start += o * view.strides[0] + first * view.strides[2];
      view.dims[0] = 1;
      view.dims[2] = slab.dims[2];
    }
    mapBlocks(nullptr, views, slab, [&](const void* const* blocks, void* out, int64_t n) {
      prologue_.evaluate(blocks, nullptr, out, n);
    });
    slab.start = -first; // column `first` lies at the beginning
    withAny(slab.elem, [&]<class T>(Tag<T>) {
      reduceBy<T>(call_->instr->fn, slab, y_, {o, first, end}, finisher_);
    });
  }

private:
  const Call* call_;
  Operand y_, x_;
  Expr prologue_;
  Finisher finisher_;
  Scratch<uint64_t> memory_;
};

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
  const Workers* workers = hasOwnPlaces(y) ? call.workers : nullptr;
  const Grid grid{y.dims[0], y.dims[1], x.dims[1], kNarrowest};
  if (prologue) {
    Expr before;
    if (cdl::Status status = before.bind(call, 0, 0, prologue); !status.isOk()) return status;
    shareGrid(workers, grid, Behind(call, std::move(before), std::move(finisher), elem));
    return cdl::ok();
  }
  withAny(x.elem, [&]<class T>(Tag<T>) {
    shareGrid(workers, grid,
              [&call, x, y, finisher](int64_t o, int64_t first, int64_t end) mutable {
                reduceBy<T>(call.instr->fn, x, y, {o, first, end}, finisher);
              });
  });
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
    const auto part = [&](int64_t o, int64_t first, int64_t end) {
      for (int64_t i = first; i < end; ++i) {
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
    };
    shareGrid(hasOwnPlaces(y) ? call.workers : nullptr, {y.dims[0], y.dims[1], x.dims[1]}, part);
  });
  return cdl::ok();
}

} // namespace candela::runtime::host_executor
