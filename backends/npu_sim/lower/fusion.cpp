#include "fusion.hpp"

#include <algorithm>

namespace npu_sim {

namespace {

/// The instruction `next` as part of `op`, whose result it reads alone; nullopt where it is none,
/// or another one.
std::optional<Residual> residualOf(LoweringState& l, const cdl::Op& op, uint32_t next,
                                   const Epilogue& epilogue) {
  // That of floats is a part of the expression.
  if (next >= l.image.instrs() || epilogue.zero != 0 || epilogue.floats) return std::nullopt;
  const cdl::Op add = l.image.op(next);
  if (add.kind() != cdl::Kind::Rescale || add.inputs() < 6) return std::nullopt;
  const DeviceView product = l.image.output(op), y = l.image.output(add);
  const DeviceView a = l.image.input(add, 0), b = l.image.input(add, 4);
  const bool isFirst = isSameView(a, product), isSecond = isSameView(b, product);
  if (isFirst == isSecond || !l.image.readsAlone(op.index(), next, product.buffer))
    return std::nullopt;
  if (y.type() == npu::Type::kI32 || y.bytes != product.bytes) return std::nullopt;
  Residual r;
  r.from = isFirst ? b : a;
  if (r.from.type() == npu::Type::kI32 || !r.from.isLocal() || r.from.buffer == product.buffer)
    return std::nullopt;
  // Requant goes over all three by one walk.
  if (r.from.rank != product.rank || y.rank != product.rank || r.from.dims != product.dims ||
      y.dims != product.dims)
    return std::nullopt;
  try {
    Scale& s = r.scale;
    s.aMult = l.image.scalar(l.image.input(add, isFirst ? 1 : 5), "the multiplier");
    s.bMult = l.image.scalar(l.image.input(add, isFirst ? 5 : 1), "the multiplier");
    s.shift = l.image.scalar(l.image.input(add, 2), "the shift");
    s.zero = l.image.scalar(l.image.input(add, 3), "the zero point");
    s.aShift =
        static_cast<int32_t>(add.attr(isFirst ? CDL_ATTR_A_LEFT_SHIFT : CDL_ATTR_B_LEFT_SHIFT, 0));
    s.bShift =
        static_cast<int32_t>(add.attr(isFirst ? CDL_ATTR_B_LEFT_SHIFT : CDL_ATTR_A_LEFT_SHIFT, 0));
    s.low = static_cast<int32_t>(add.attr(CDL_ATTR_CLAMP_MIN, limitsOf(y.elem).low));
    s.high = static_cast<int32_t>(add.attr(CDL_ATTR_CLAMP_MAX, limitsOf(y.elem).high));
    checkScale(s, product.elem, r.from.elem, y.elem);
  } catch (const Refusal&) {
    return std::nullopt; // on its own it may be done all the same, and says why not otherwise
  }
  return r;
}

/// The windows of a POOL2D at `next` that alone reads what `op`, a convolution, leaves; nullopt
/// where there is none, or where the largest sum need not become the largest result. The device has
/// windows up to 16 x 16 with padding up to 7.
std::optional<PoolWindow> poolOf(const LoweringState& l, const cdl::Op& op, uint32_t next,
                                 const Epilogue& epilogue) {
  if (next >= l.image.instrs() || epilogue.start) return std::nullopt;
  const cdl::Op pool = l.image.op(next);
  if (pool.kind() != cdl::Kind::Pool2d || pool.fn() != CDL_POOL2D_MAX) return std::nullopt;
  const DeviceView y = l.image.output(op), x = l.image.input(pool, 0), end = l.image.output(pool),
                   w = l.image.input(op, 1);
  const DeviceView image = l.image.input(op, 0);
  // A descriptor says images of up to 4,096, with padding.
  if (image.dims[1] > 4000 || image.dims[2] > 4000) return std::nullopt;
  if (x.dims != y.dims || !isSameView(x, y) || !l.image.readsAlone(op.index(), next, y.buffer))
    return std::nullopt;
  // Scales are not negative: what is largest stays it, unless the sum with its bias wraps.
  if (const std::optional<FloatEpilogue>& floats = epilogue.floats) {
    const auto isPositive = [](float scale) { return scale > 0; };
    if (floats->residual || !std::ranges::all_of(floats->scale, isPositive)) return std::nullopt;
  }
  int64_t bias = 0;
  for (const int32_t each : epilogue.bias) bias = std::max(bias, std::abs(int64_t{each}));
  if (!epilogue.wide && !epilogue.floats &&
      w.dims[0] * w.dims[1] * w.dims[2] * 255 * 255 + bias > INT32_MAX)
    return std::nullopt;
  PoolWindow p;
  int64_t rows = 0;
  for (uint32_t d = 0; d < 2; ++d) {
    const int64_t kernel = pool.attr(CDL_ATTR_KERNEL, 1, d),
                  stride = pool.attr(CDL_ATTR_STRIDES, 1, d);
    const int64_t pad = pool.attr(CDL_ATTR_PADS, 0, d), extent = y.dims[d + 1];
    const bool reaches = pad < kernel && (end.dims[d + 1] - 1) * stride - pad < extent;
    if (kernel > 16 || stride > 16 || pad > 7 || !reaches ||
        pool.attr(CDL_ATTR_DILATIONS, 1, d) != 1)
      return std::nullopt;
    p.kernel[d] = kernel;
    p.stride[d] = stride;
    p.pad[d] = pad;
    // Windows that overlap are no reason to compute sums twice: all of them lie in the accumulators
    // then.
    if (d == 0) rows = stride < kernel ? extent : std::min(kernel, extent);
  }
  if (rows * y.dims[2] > l.configuration.accumulatorRows() / 2) return std::nullopt;
  return p;
}

/// A TABLE: its entries, and where its result goes by the walk of what it reads.
struct Mapping {
  DeviceView entries, to;
};
/// The TABLE at `next` that alone reads `y`, which instruction `writer` wrote.
std::optional<Mapping> mappingOf(const LoweringState& l, uint32_t writer, const DeviceView& y,
                                 uint32_t next) {
  if (next >= l.image.instrs()) return std::nullopt;
  const cdl::Op op = l.image.op(next);
  if (op.kind() != cdl::Kind::Table) return std::nullopt;
  const DeviceView x = l.image.input(op, 0), end = l.image.output(op);
  Mapping m{l.image.input(op, 1), y};
  if (!isSameView(x, y) || !stepsAlike(end, y) || end.elem != y.elem ||
      !l.image.readsAlone(writer, next, y.buffer))
    return std::nullopt;
  if (m.entries.elem != y.elem || !m.entries.isLocal() || m.entries.strides[0] != 1)
    return std::nullopt;
  m.to.memory = end.memory;
  m.to.at = end.at;
  m.to.buffer = end.buffer;
  return m;
}

bool overlaps(const DeviceView& written, const DeviceView& read) {
  const Access a = read.access(false), b = written.access(true);
  return a.begin < b.end && b.begin < a.end;
}

/// Finds what follows a product that has an epilogue: a residual or a pool, then a table.
class PassFinder {
public:
  PassFinder(LoweringState& l, const cdl::Op& op)
      : l_(l), op_(op), isConv_(op.kind() == cdl::Kind::Conv2d), channel_(isConv_ ? 3 : 2),
        pass_{.y = l.image.output(op), .fusion = {}} {}

  Pass find() {
    Fusion& fusion = pass_.fusion;
    fusion.epilogue = epilogueOf(l_, op_, static_cast<int>(channel_));
    const uint32_t next = op_.index() + 1;
    if (fusion.epilogue->floats && fusion.epilogue->floats->residual)
      fusion.residual = Residual{.from = *fusion.epilogue->floats->residual, .scale = {}};
    if (const auto residual = residualOf(l_, op_, next, *fusion.epilogue))
      addResidual(*residual);
    else if (isConv_)
      addPool(poolOf(l_, op_, next, *fusion.epilogue));
    addTable();
    fusion.type = pass_.y.type();
    return pass_;
  }

private:
  /// The result of the instruction behind those that the pass has.
  DeviceView nextEnd() const { return l_.image.output(l_.image.op(op_.index() + pass_.taken)); }
  bool hasChannelsInside(const DeviceView& o) const {
    return o.dims[channel_] == 1 || o.strides[channel_] == 1;
  }
  /// An end of the pass that is another one than the product's may lie where its operands were:
  /// parts of it would be written before the last part reads those. Its channels lie side by side.
  bool mayEndAt(const DeviceView& end) const {
    const std::optional<DeviceView>& start = pass_.fusion.epilogue->start;
    return end.isLocal() && hasChannelsInside(end) && !(start && overlaps(end, *start)) &&
           !overlaps(end, l_.image.input(op_, 0)) && !overlaps(end, l_.image.input(op_, 1));
  }
  void endAt(const DeviceView& end) {
    pass_.y = end;
    ++pass_.taken;
  }

  void addResidual(const Residual& residual) {
    const DeviceView end = nextEnd();
    const bool isInside = end.dims[channel_] == 1 || residual.from.strides[channel_] == 1;
    if (!mayEndAt(end) || !isInside) return;
    pass_.fusion.residual = residual;
    endAt(end);
  }

  void addPool(const std::optional<PoolWindow>& pool) {
    if (!pool) return;
    const DeviceView end = nextEnd();
    if (!mayEndAt(end)) return;
    pass_.fusion.pool = pool;
    endAt(end);
  }

  void addTable() {
    const uint32_t next = op_.index() + pass_.taken;
    const auto mapping = mappingOf(l_, next - 1, pass_.y, next);
    if (!mapping || !mayEndAt(mapping->to) || overlaps(mapping->to, mapping->entries)) return;
    const std::optional<Residual>& residual = pass_.fusion.residual;
    if (residual && overlaps(mapping->to, residual->from)) return;
    pass_.fusion.entries = mapping->entries;
    endAt(mapping->to);
  }

  LoweringState& l_;
  const cdl::Op& op_;
  const bool isConv_;
  const size_t channel_; ///< the dim of the result
  Pass pass_;
};

} // namespace

Pass passOf(LoweringState& l, const cdl::Op& op) { return PassFinder(l, op).find(); }

} // namespace npu_sim
