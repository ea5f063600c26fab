#include "epilogue.hpp"

#include "instructions.hpp"

namespace cpu {

namespace {

/// Calls visit(plane, member of Bases, argument) for each address that is an argument of the
/// kernel, in order.
template <typename Visit> void eachPlane(const Contraction& c, const Visit& visit) {
  visit(c.y, &Bases::y);
  if (c.bias) visit(*c.bias, &Bases::bias);
  if (c.requantize) {
    visit(c.requantize->scale, &Bases::scale);
    if (c.requantize->shift) visit(*c.requantize->shift, &Bases::shift);
    if (c.requantize->zero) visit(*c.requantize->zero, &Bases::zero);
  }
  if (c.join) visit(c.join->other, &Bases::other);
}

} // namespace

void EpilogueWriter::addArguments(Lowering& lowering, const Contraction& c, std::vector<Arg>& args,
                                  Key& key) {
  eachPlane(c, [&](const Plane& plane, auto) {
    args.push_back(plane.at);
    addKey(key, plane);
  });
  key << c.accElem << c.bias.has_value();
  if (c.epilogue) {
    key << exprKey(lowering, *c.epilogue);
    for (size_t i = 0; i < c.views.size(); ++i)
      if (c.views[i]) {
        key << static_cast<int64_t>(i);
        addKey(key, *c.views[i]);
        args.push_back(c.views[i]->at);
      }
  }
  if (c.requantize) {
    const Requantize& r = *c.requantize;
    key << "requantize" << static_cast<int>(r.scaling) << r.shift.has_value() << r.zero.has_value()
        << r.uniformShift << r.uniformZero << r.form.clampMin << r.form.clampMax << r.elem;
  }
  if (c.join) {
    const JoinRescale& joining = c.join->joining;
    key << "join" << joining.a << joining.b << joining.shift << joining.zero
        << joining.form.clampMin << joining.form.clampMax;
  }
}

Bases EpilogueWriter::bases(const Contraction& c, int& arg,
                            const std::function<Value(int, const Plane&)>& placed) {
  Bases at;
  eachPlane(c,
            [&](const Plane& plane, Value Bases::* member) { at.*member = placed(arg++, plane); });
  at.views.resize(c.views.size());
  for (size_t i = 0; i < c.views.size(); ++i)
    if (c.epilogue && c.views[i]) at.views[i] = placed(arg++, *c.views[i]);
  return at;
}

Bases EpilogueWriter::stepped(const Bases& at, Value steps, int64_t Plane::* step) {
  Bases there = at;
  const auto move = [&](Value base, const Plane& p) {
    return p.*step ? b.at(base, b.mul(steps, b.i64(p.*step))) : base;
  };
  eachPlane(c, [&](const Plane& plane, Value Bases::* member) {
    there.*member = move(at.*member, plane);
  });
  for (size_t i = 0; i < at.views.size(); ++i)
    if (at.views[i].raw) there.views[i] = move(at.views[i], *c.views[i]);
  return there;
}

Value EpilogueWriter::load(const Plane& plane, Value base, int64_t offset, int live) {
  const Ty ty = tyOf(plane.elem);
  if (plane.lane == 0) return b.splat(b.load(ty, 1, base, offset), lanes_);
  // of columns that are no neighbours: a whole vector that begins with these lanes
  if (plane.lane != sizeOf(ty)) {
    const Value some = b.loadStrided(ty, live, b.at(base, offset), plane.lane);
    if (live == 1) return b.splat(some, lanes_);
    std::vector<int> which;
    for (int k = 0; k < lanes_; ++k) which.push_back(k < live ? k : 0);
    return b.shuffle(some, some, which);
  }
  if (live == lanes_) return b.load(ty, lanes_, base, offset);
  return b.loadFirst(ty, lanes_, b.at(base, offset), b.i64(live));
}

EpilogueWriter::Shared EpilogueWriter::shared(const Bases& at, int panel, int first, int live) {
  Shared shared;
  shared.panel = panel;
  shared.first = first;
  shared.live = live;
  if (c.bias && !c.bias->row && !c.bias->column)
    shared.bias = load(*c.bias, at.bias, offsetOf(*c.bias, shared, 0, 0), live);
  if (c.requantize && c.requantize->scaling != Scaling::F64)
    shared.scale =
        load(c.requantize->scale, at.scale, offsetOf(c.requantize->scale, shared, 0, 0), lanes_);
  return shared;
}

/// Computes clamp(rne(sum * scale / 2^shift) + zero), all of them integers; |sum * scale| <= 2^62
/// and shift is 1 .. 62.
static Value roundedWords(Builder& b, const Requantize& r, Value sum, Value scale, Value shift,
                          Value zero) {
  const auto wide = [&](Value v) { return b.cast(v, Ty::I64, true); };
  const Value product = b.mul(wide(sum), wide(scale));
  const Value by = wide(shift);
  // Below half: down; half: to where the last bit is 0.
  const Value half = b.shl(b.i64(1), b.sub(by, b.i64(1)));
  const Value isOdd = b.bitAnd(b.shr(product, by, true), b.i64(1));
  const Value rounded = b.shr(b.add(product, b.add(b.sub(half, b.i64(1)), isOdd)), by, true);
  constexpr int64_t kFar = int64_t(1) << 30;
  const bool isNear = !r.shift && r.uniformShift >= 32 && !r.zero &&
                      std::abs(r.uniformZero) < kFar && r.form.clampMax <= INT32_MAX;
  if (isNear) {
    const auto word = [&](int64_t number) { return b.i32(static_cast<int32_t>(number)); };
    const Value moved = b.add(b.cast(rounded, Ty::I32, true), word(r.uniformZero));
    return b.min(b.max(moved, word(r.form.clampMin)), word(r.form.clampMax));
  }
  const Value moved = b.add(rounded, wide(zero));
  return b.cast(b.min(b.max(moved, b.i64(r.form.clampMin)), b.i64(r.form.clampMax)), Ty::I32, true);
}

/// Scales a sum of i32 and clamps it to the limits of the result.
Value EpilogueWriter::requantized(Value sum, const Bases& at, const Shared& shared, int64_t row,
                                  int64_t column) {
  const Requantize& r = *c.requantize;
  if (r.scaling == Scaling::F32) return roundedF32(b, r.form, sum, shared.scale, r.uniformZero);
  if (r.scaling == Scaling::WORDS) {
    const auto words = [&](const std::optional<Plane>& p, Value base, int64_t uniform) {
      return p ? load(*p, base, offsetOf(*p, shared, row, column), lanes_) : b.i64(uniform);
    };
    return roundedWords(b, r, sum, shared.scale, words(r.shift, at.shift, r.uniformShift),
                        words(r.zero, at.zero, r.uniformZero));
  }
  // f64 fills a vector with half of the lanes
  const auto half = [&](const Plane& p, Value base, int part) {
    const int64_t there = offsetOf(p, shared, row, column) + part * (lanes_ / 2) * p.lane;
    return p.lane ? b.load(Ty::F64, lanes_ / 2, base, there)
                  : b.splat(b.load(Ty::F64, 1, base, there), lanes_ / 2);
  };
  Values parts;
  for (int part = 0; part < 2; ++part) {
    std::vector<int> which;
    for (int k = 0; k < lanes_ / 2; ++k) which.push_back(part * lanes_ / 2 + k);
    const Value wide = b.cast(b.shuffle(sum, sum, which), Ty::F64, true);
    parts.push_back(roundedF64(b, r.form, CDL_I32, wide, half(r.scale, at.scale, part),
                               half(*r.zero, at.zero, part)));
  }
  std::vector<int> all;
  for (int k = 0; k < lanes_; ++k) all.push_back(k);
  return b.shuffle(parts[0], parts[1], all);
}

/// Whether every step that reads the sum converts it to f32.
static bool widensSum(const cdl_image_t* image, const cdl_expr_t& expr) {
  for (uint32_t s = 0; s < expr.steps; ++s) {
    const cdl_step_t& step = *cdl_get_step(image, expr.first_step + s);
    const bool isWidening = step.kind == CDL_KIND_CONVERT && step.elem == CDL_F32;
    for (int k = 0; k < step.operands; ++k)
      if (step.in[k].source == CDL_FROM_ACC && !isWidening) return false;
  }
  return true;
}

Typed sumOfHalves(Builder& b, const cdl_image_t* image, const cdl_expr_t* epilogue, Value sum) {
  const Typed wide{sum, CDL_F32};
  const bool staysWide = epilogue && widensSum(image, *epilogue);
  if (staysWide) return wide;
  return compute(b, CDL_KIND_CONVERT, CDL_CONVERT_TRUNC, CDL_BF16, false, {wide});
}

void EpilogueWriter::finish(Value sum, const Bases& at, const Shared& shared, int64_t row,
                            int64_t column) {
  const auto loaded = [&](const Plane& p, Value base) {
    return load(p, base, offsetOf(p, shared, row, column), shared.live);
  };
  if (c.bias) sum = b.add(sum, shared.bias.raw ? shared.bias : loaded(*c.bias, at.bias));
  if (c.accumulates) {
    const Typed held{loaded(c.y, at.y), c.y.elem};
    sum =
        b.add(sum, compute(b, CDL_KIND_CONVERT, CDL_CONVERT_TRUNC, c.accElem, false, {held}).value);
  }
  Typed result{sum, c.accElem};
  b.flushes = c.factors == Factors::HALVES;
  if (c.factors == Factors::HALVES) result = sumOfHalves(b, lowering_.image, c.epilogue, sum);
  if (c.epilogue) {
    std::vector<Typed> in(c.views.size());
    for (size_t i = 0; i < c.views.size(); ++i)
      if (c.views[i]) in[i] = {loaded(*c.views[i], at.views[i]), c.views[i]->elem};
    result = computeExpr(b, lowering_.image, *c.epilogue, in, &result);
  }
  if (c.requantize) result = {requantized(result.value, at, shared, row, column), CDL_I32};
  if (c.join) {
    const Plane& p = c.join->other;
    result.value = joined(b, c.join->joining, result.value,
                          b.cast(loaded(p, at.other), Ty::I32, isSignedElem(p.elem)));
  }
  if (c.requantize) result.value = b.cast(result.value, tyOf(c.y.elem), true);
  b.flushes = false;
  const Value to = b.at(at.y, offsetOf(c.y, shared, row, column));
  if (shared.live == lanes_)
    b.store(result.value, to);
  else
    b.storeFirst(result.value, to, b.i64(shared.live));
}

} // namespace cpu
