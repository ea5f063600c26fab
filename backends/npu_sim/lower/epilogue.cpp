#include "epilogue.hpp"

#include <algorithm>

namespace npu_sim {

namespace {

/// The numbers of a view that differ by channel at most.
std::vector<int32_t> byChannel(const Lowering& l, const Operand& o, int channelDim,
                               const char* what) {
  const auto channel = static_cast<size_t>(channelDim);
  for (int d = 0; d < o.rank; ++d) {
    const auto at = static_cast<size_t>(d);
    if (d != channelDim && o.dims[at] > 1 && o.strides[at] != 0)
      throw Refusal{CDL_REASON_DIM, cdl::text(what, " differs along dim ", d,
                                              ", which is not that of the channels")};
  }
  std::vector<int32_t> values;
  for (int64_t c = 0; c < o.dims[channel]; ++c) {
    const std::optional<int32_t> value = l.image.known(o, c * o.strides[channel]);
    if (!value) throw Refusal{CDL_REASON_NOT_CONSTANT, cdl::text(what, " is no constant")};
    values.push_back(*value);
  }
  return values;
}

bool isKnown(const Lowering& l, const Operand& o) {
  return o.elements() > 0 && l.image.known(o, 0).has_value();
}

[[noreturn]] void otherExpression(size_t step) {
  throw Refusal{
      CDL_REASON_VENDOR,
      cdl::text("step ", step, " of the epilogue is none of: add(acc, bias), rescale, max, min")};
}

/// The constant of a step, in its element type.
int32_t integerOf(const cdl_step_t& step) {
  switch (step.elem) {
  case CDL_I8: return static_cast<int8_t>(step.imm);
  case CDL_I16: return static_cast<int16_t>(step.imm);
  default: return static_cast<int32_t>(step.imm);
  }
}

/// Two views that step in the same way over as many elements, from wherever they begin.
bool isAlike(const Operand& a, const Operand& b) {
  if (a.elements() != b.elements()) return false;
  std::vector<std::array<int64_t, 2>> dims[2];
  const Operand* both[2] = {&a, &b};
  for (int side = 0; side < 2; ++side) // dims above 1, neighbours joined
    for (int d = both[side]->rank; d-- > 0;) {
      const int64_t extent = both[side]->dims[static_cast<size_t>(d)],
                    stride = both[side]->strides[static_cast<size_t>(d)];
      if (extent == 1) continue;
      auto& list = dims[side];
      if (!list.empty() && stride == list.back()[0] * list.back()[1])
        list.back()[0] *= extent;
      else
        list.push_back({extent, stride});
    }
  return dims[0] == dims[1];
}

/// Two views of the same bytes in the same order.
bool isSame(const Operand& a, const Operand& b) {
  return a.memory == b.memory && a.at == b.at && a.elem == b.elem && isAlike(a, b);
}

} // namespace

uint8_t sumsOf(const cdl::Op& op) {
  return cdl_get_input(op.image(), &op.instr(), 0)->elem == CDL_I16 ? CDL_I64 : CDL_I32;
}

Epilogue epilogueOf(Lowering& l, const cdl::Op& op, int channelDim) {
  const cdl_image_t* image = op.image();
  const cdl_expr_t* expr = op.expr();
  const Operand y = l.image.output(op);
  const auto channels = static_cast<size_t>(y.dims[static_cast<size_t>(channelDim)]);
  Epilogue e;
  e.bias.assign(channels, 0);
  e.type = y.type();
  const uint8_t sumElem = sumsOf(op);
  e.wide = sumElem == CDL_I64;
  const auto view = [&](const cdl_operand_t& o, const char* what) {
    return byChannel(l, l.image.input(op, o.index), channelDim, what);
  };
  bool isScaled = false;
  for (uint32_t k = 0; k < expr->steps; ++k) {
    const cdl_step_t& step = *cdl_get_step(image, expr->first_step + k);
    // A chain: every step takes what came before it.
    const auto isBefore = [&](const cdl_operand_t& o) {
      return k == 0 ? o.source == CDL_FROM_ACC : o.source == CDL_FROM_STEP && o.index == k - 1;
    };
    if (step.kind == CDL_KIND_BINARY && step.fn == CDL_BINARY_ADD && !isScaled &&
        step.elem == sumElem) {
      const size_t other = isBefore(step.in[0]) ? 1 : 0;
      if (!isBefore(step.in[1 - other])) otherExpression(k);
      std::vector<int32_t> bias(channels, static_cast<int32_t>(step.imm));
      if (e.wide && static_cast<int64_t>(step.imm) != bias.front()) otherExpression(k);
      if (step.in[other].source == CDL_FROM_VIEW) {
        const Operand from = l.image.input(op, step.in[other].index);
        if (!isKnown(l, from)) {
          const auto channel = static_cast<size_t>(channelDim);
          if (e.start || e.wide || !from.isLocal() || (channels > 1 && from.strides[channel] != 1))
            otherExpression(k);
          e.start = from;
          continue;
        }
        bias = byChannel(l, from, channelDim, "the bias");
      } else if (step.in[other].source != CDL_FROM_CONST) {
        otherExpression(k);
      }
      for (size_t c = 0; c < channels; ++c) {
        const int64_t sum = int64_t{e.bias[c]} + bias[c];
        e.bias[c] = static_cast<int32_t>(static_cast<uint32_t>(sum));
        if (e.wide && sum != e.bias[c])
          throw Refusal{CDL_REASON_VENDOR, cdl::text("a bias of ", sum, " has more than 32 bits")};
      }
    } else if (step.kind == CDL_KIND_RESCALE && !isScaled && isBefore(step.in[0])) {
      e.mult = view(step.in[1], "the multiplier");
      e.shift = view(step.in[2], "the shift");
      const std::vector<int32_t> zero = view(step.in[3], "the zero point");
      for (size_t c = 0; c < channels; ++c) {
        if (zero[c] != zero[0]) throw Refusal{CDL_REASON_DIM, "the zero point differs by channel"};
        if (e.mult[c] < 0 || e.mult[c] >= 1 << 24 || e.shift[c] < 0 || e.shift[c] > 63)
          throw Refusal{CDL_REASON_VENDOR,
                        cdl::text("a scale of ", e.mult[c], " / 2^", e.shift[c])};
      }
      e.zero = zero.empty() ? 0 : zero[0];
      if (e.zero < limitsOf(y.elem).low || e.zero > limitsOf(y.elem).high)
        throw Refusal{CDL_REASON_VENDOR,
                      cdl::text("zero point ", e.zero, " is no ", cdl::elemName(y.elem))};
      e.low = static_cast<int32_t>(step.imm & 0xffffffff);
      e.high = static_cast<int32_t>(step.imm >> 32);
      isScaled = true;
    } else if (step.kind == CDL_KIND_BINARY &&
               (step.fn == CDL_BINARY_MAX || step.fn == CDL_BINARY_MIN) && isScaled) {
      const size_t other = isBefore(step.in[0]) ? 1 : 0;
      if (!isBefore(step.in[1 - other])) otherExpression(k);
      int32_t bound = integerOf(step);
      if (step.in[other].source == CDL_FROM_VIEW)
        bound = l.image.scalar(l.image.input(op, step.in[other].index), "the bound");
      else if (step.in[other].source != CDL_FROM_CONST)
        otherExpression(k);
      if (step.fn == CDL_BINARY_MAX) {
        e.low = std::max(e.low, bound);
        e.high = std::max(e.high, bound);
      } else {
        e.low = std::min(e.low, bound);
        e.high = std::min(e.high, bound);
      }
    } else {
      otherExpression(k);
    }
  }
  if (!isScaled) throw Refusal{CDL_REASON_VENDOR, "the epilogue has no rescale"};
  const auto [low, high] = limitsOf(y.elem);
  e.low = std::clamp(e.low, low, high);
  e.high = std::clamp(e.high, low, high);
  return e;
}

std::optional<uint32_t> viewUnderResult(const Lowering& l, const cdl::Op& op) {
  const cdl_step_t& step = *cdl_get_step(op.image(), op.expr()->first_step);
  if (step.kind != CDL_KIND_BINARY || step.fn != CDL_BINARY_ADD || step.elem != CDL_I32)
    return std::nullopt;
  for (uint32_t side = 0; side < 2; ++side)
    if (step.in[side].source == CDL_FROM_VIEW && step.in[1 - side].source == CDL_FROM_ACC &&
        isSame(l.image.input(op, step.in[side].index), l.image.output(op)))
      return step.in[side].index;
  return std::nullopt;
}

void lowerSteps(Lowering& l, const cdl::Op& op, uint32_t first) {
  const cdl_image_t* image = op.image();
  const cdl_expr_t* expr = op.expr();
  const Operand y = l.image.output(op);
  for (uint32_t k = first; k < expr->steps; ++k) {
    const cdl_step_t& step = *cdl_get_step(image, expr->first_step + k);
    if (step.kind != CDL_KIND_BINARY || step.elem != CDL_I32 || y.elem != CDL_I32 ||
        step.operands != 2)
      otherExpression(k);
    const auto operand = [&](const cdl_operand_t& o) -> Operand {
      if (k == 0 ? o.source == CDL_FROM_ACC : o.source == CDL_FROM_STEP && o.index == k - 1)
        return y;
      if (o.source == CDL_FROM_VIEW) return l.image.input(op, o.index);
      if (o.source != CDL_FROM_CONST) otherExpression(k);
      // A number lies among the records.
      std::vector<std::byte> bytes;
      for (int b = 0; b < 4; ++b) bytes.push_back(static_cast<std::byte>(step.imm >> (8 * b)));
      Operand number = y;
      number.at = l.records(bytes);
      number.strides = {};
      return number;
    };
    lowerBinary(l, binaryOf(step.fn), operand(step.in[0]), operand(step.in[1]), y);
  }
}

std::optional<Residual> residualOf(Lowering& l, const cdl::Op& op, uint32_t next,
                                   const Epilogue& epilogue) {
  if (next >= l.image.instrs() || epilogue.zero != 0) return std::nullopt;
  const cdl::Op add = l.image.op(next);
  if (add.kind() != cdl::Kind::Rescale || add.inputs() < 6) return std::nullopt;
  const Operand product = l.image.output(op), a = l.image.input(add, 0), b = l.image.input(add, 4),
                y = l.image.output(add);
  const bool isFirst = isSame(a, product), isSecond = isSame(b, product);
  if (isFirst == isSecond || !l.image.readsAlone(op.index(), next, product.buffer))
    return std::nullopt;
  if (y.type() == npu::Type::kI32 || y.bytes != product.bytes) return std::nullopt;
  Residual r;
  r.from = isFirst ? b : a;
  if (r.from.type() == npu::Type::kI32 || !r.from.isLocal() || r.from.buffer == product.buffer)
    return std::nullopt;
  // The same walk for all three.
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

std::optional<Pool> poolOf(const Lowering& l, const cdl::Op& op, uint32_t next,
                           const Epilogue& epilogue) {
  if (next >= l.image.instrs() || epilogue.start) return std::nullopt;
  const cdl::Op pool = l.image.op(next);
  if (pool.kind() != cdl::Kind::Pool2d || pool.fn() != CDL_POOL2D_MAX) return std::nullopt;
  const Operand y = l.image.output(op), x = l.image.input(pool, 0), end = l.image.output(pool),
                w = l.image.input(op, 1);
  const Operand image = l.image.input(op, 0);
  // a descriptor says up to 4,096 with padding
  if (image.dims[1] > 4000 || image.dims[2] > 4000) return std::nullopt;
  if (x.dims != y.dims || !isSame(x, y) || !l.image.readsAlone(op.index(), next, y.buffer))
    return std::nullopt;
  // Scales are not negative: what is largest stays it, unless the sum with its bias wraps.
  int64_t bias = 0;
  for (const int32_t each : epilogue.bias) bias = std::max(bias, std::abs(int64_t{each}));
  if (!epilogue.wide && w.dims[0] * w.dims[1] * w.dims[2] * 255 * 255 + bias > INT32_MAX)
    return std::nullopt;
  Pool p;
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

std::optional<Mapping> mappingOf(const Lowering& l, uint32_t writer, const Operand& y,
                                 uint32_t next) {
  if (next >= l.image.instrs()) return std::nullopt;
  const cdl::Op op = l.image.op(next);
  if (op.kind() != cdl::Kind::Table) return std::nullopt;
  const Operand x = l.image.input(op, 0), end = l.image.output(op);
  Mapping m{l.image.input(op, 1), y};
  if (!isSame(x, y) || !isAlike(end, y) || end.elem != y.elem ||
      !l.image.readsAlone(writer, next, y.buffer))
    return std::nullopt;
  if (m.entries.elem != y.elem || !m.entries.isLocal() || m.entries.strides[0] != 1)
    return std::nullopt;
  m.to.memory = end.memory;
  m.to.at = end.at;
  m.to.buffer = end.buffer;
  return m;
}

} // namespace npu_sim
