// ARITHMETIC: element by element, as an instruction of its own, as a step of ELEMENTWISE or of an
// epilogue.
#include "../compiler.hpp"
#include "../engine.hpp"

#include <cmath>

namespace tiles {

namespace {

bool isKnown(uint16_t kind, uint16_t fn, uint8_t from, uint8_t elem) {
  const bool isFloat = from == CDL_F32;
  switch (kind) {
  case CDL_KIND_BINARY: return isFloat ? fn <= CDL_BINARY_MAX : fn <= CDL_BINARY_SHR;
  case CDL_KIND_UNARY:
    return isFloat && (fn <= CDL_UNARY_CEIL || fn == CDL_UNARY_TANH || fn == CDL_UNARY_ERF ||
                       fn == CDL_UNARY_SIGMOID);
  default:
    return (kind == CDL_KIND_COMPARE || kind == CDL_KIND_SELECT || kind == CDL_KIND_CONVERT) &&
           elemBytes(elem);
  }
}

} // namespace

Command step(Compiler& c, uint16_t kind, uint16_t fn, uint8_t from, uint8_t elem, bool saturate,
             const std::vector<uint8_t>& in) {
  if (!elemBytes(from) || !isKnown(kind, fn, from, elem))
    c.refuse(CDL_REASON_DTYPE,
             cdl::text("lanes do not compute ", cdl::kindName(kind), " function ", fn, " of ",
                       cdl::elemName(from), " to ", cdl::elemName(elem)));
  Command command{.op = Opcode::ARITHMETIC,
                  .kind = kind,
                  .fn = fn,
                  .elem = elem,
                  .from = from,
                  .saturate = saturate};
  command.inputs = uint8_t(in.size());
  std::copy(in.begin(), in.end(), command.in);
  return command;
}

void compileArithmetic(Compiler& c) {
  const uint16_t kind = c.instr().kind;
  if (kind == CDL_KIND_ELEMENTWISE) {
    c.beginAll();
    return c.store(c.output(), c.expression(0));
  }
  if (!cdl_step_arity(kind)) c.refuse(CDL_REASON_NO_ROW, "there is no command for this kind");
  c.beginAll();
  std::vector<uint8_t> in;
  for (uint32_t i = 0; i < c.instr().inputs; ++i) in.push_back(c.load(c.input(i)));
  const uint8_t from = c.input(kind == CDL_KIND_SELECT ? 1 : 0).elem;
  const bool saturate = c.attr(CDL_ATTR_SATURATE, 0) != 0;
  c.store(c.output(), c.emit(step(c, kind, c.instr().fn, from, c.output().elem, saturate, in), in));
}

uint8_t Compiler::expression(uint8_t acc) {
  if (!instr().expr) return acc;
  const cdl_expr_t& expr = *cdl_get_expr(image_, instr().expr);
  const auto at = [&](uint32_t k) -> const cdl_step_t& {
    return *cdl_get_step(image_, expr.first_step + k);
  };
  // Value 0 is the accumulator, value k + 1 that of step k; each keeps its register until its last
  // reader.
  const auto valueOf = [](const cdl_operand_t& o) {
    if (o.source == CDL_FROM_ACC) return 0;
    return o.source == CDL_FROM_STEP ? o.index + 1 : -1;
  };
  std::vector<uint32_t> last(expr.steps + 1, 0);
  std::vector<uint8_t> held(expr.steps + 1, acc);
  for (uint32_t k = 0; k < expr.steps; ++k)
    for (int i = 0; i < at(k).operands; ++i)
      if (const int value = valueOf(at(k).in[i]); value >= 0) last[size_t(value)] = k;
  for (uint32_t k = 0; k < expr.steps; ++k) {
    const cdl_step_t& s = at(k);
    std::vector<uint8_t> in, spent;
    for (int i = 0; i < s.operands; ++i) {
      const cdl_operand_t& o = s.in[i];
      const int value = valueOf(o);
      if (value >= 0)
        in.push_back(held[size_t(value)]);
      else
        in.push_back(o.source == CDL_FROM_VIEW ? load(input(o.index)) : splat(s.imm, o.elem));
      if (value < 0 || last[size_t(value)] == k) spent.push_back(in.back());
    }
    const uint8_t from = s.in[s.kind == CDL_KIND_SELECT ? 1 : 0].elem;
    held[k + 1] = emit(step(*this, s.kind, s.fn, from, s.elem, s.flags & 1, in), spent);
    if (k + 1 < expr.steps && last[k + 1] == 0) release(held[k + 1]); // nobody reads it
  }
  return held.back();
}

namespace {

/// y[l] = f(x[l]...) with lanes of these types.
template <class Y, class A, class F> void map(const Tile& tile, const Command& c, F f) {
  Y* y = tile.lanes<Y>(c.to);
  const A* a = tile.lanes<A>(c.in[0]);
  for (int64_t l = 0; l < tile.size(); ++l) y[l] = f(a[l]);
}
template <class Y, class A, class B, class F> void map(const Tile& tile, const Command& c, F f) {
  Y* y = tile.lanes<Y>(c.to);
  const A* a = tile.lanes<A>(c.in[0]);
  const B* b = tile.lanes<B>(c.in[1]);
  for (int64_t l = 0; l < tile.size(); ++l) y[l] = f(a[l], b[l]);
}
void select(const Tile& tile, const Command& c) { // moves bits
  const int32_t *p = tile.lanes<int32_t>(c.in[0]), *a = tile.lanes<int32_t>(c.in[1]),
                *b = tile.lanes<int32_t>(c.in[2]);
  int32_t* y = tile.lanes<int32_t>(c.to);
  for (int64_t l = 0; l < tile.size(); ++l) y[l] = p[l] ? a[l] : b[l];
}

/// An integer as lanes hold one of a type.
int32_t wrapped(uint8_t elem, int64_t value) {
  if (elem == CDL_I8) return int8_t(value);
  return elem == CDL_U8 ? uint8_t(value) : int32_t(value);
}

void binaryFloat(const Tile& tile, const Command& c) {
  const auto as = [&](auto f) { map<float, float, float>(tile, c, f); };
  switch (c.fn) {
  case CDL_BINARY_ADD: return as([](float a, float b) { return a + b; });
  case CDL_BINARY_SUB: return as([](float a, float b) { return a - b; });
  case CDL_BINARY_MUL: return as([](float a, float b) { return a * b; });
  case CDL_BINARY_DIV: return as([](float a, float b) { return a / b; });
  case CDL_BINARY_MIN: return as(cdl_min_f32);
  default: return as(cdl_max_f32);
  }
}

void binaryInteger(const Tile& tile, const Command& c) {
  const auto as = [&](auto f) {
    map<int32_t, int32_t, int32_t>(tile, c,
                                   [=](int32_t a, int32_t b) { return wrapped(c.elem, f(a, b)); });
  };
  switch (c.fn) {
  case CDL_BINARY_ADD: return as(cdl_add_i32);
  case CDL_BINARY_SUB: return as(cdl_sub_i32);
  case CDL_BINARY_MUL: return as(cdl_mul_i32);
  case CDL_BINARY_DIV: return as(cdl_div_i32);
  case CDL_BINARY_MIN: return as(cdl_min_i32);
  case CDL_BINARY_MAX: return as(cdl_max_i32);
  case CDL_BINARY_AND: return as([](int32_t a, int32_t b) { return a & b; });
  case CDL_BINARY_OR: return as([](int32_t a, int32_t b) { return a | b; });
  case CDL_BINARY_XOR: return as([](int32_t a, int32_t b) { return a ^ b; });
  case CDL_BINARY_SHL: return as(cdl_shl_i32);
  default: return as(cdl_shr_i32);
  }
}

void unary(const Tile& tile, const Command& c) {
  const auto as = [&](auto f) { map<float, float>(tile, c, f); };
  switch (c.fn) {
  case CDL_UNARY_NEG: return as([](float x) { return -x; });
  case CDL_UNARY_ABS: return as([](float x) { return std::fabs(x); });
  case CDL_UNARY_FLOOR: return as([](float x) { return std::floor(x); });
  case CDL_UNARY_SQRT: return as([](float x) { return std::sqrt(x); });
  case CDL_UNARY_RCP: return as([](float x) { return 1.0f / x; });
  case CDL_UNARY_EXP: return as([](float x) { return std::exp(x); });
  case CDL_UNARY_LOG: return as([](float x) { return std::log(x); });
  case CDL_UNARY_CEIL: return as([](float x) { return std::ceil(x); });
  case CDL_UNARY_TANH: return as([](float x) { return std::tanh(x); });
  case CDL_UNARY_ERF: return as([](float x) { return std::erf(x); });
  default: // the sigmoid, without a quotient that overflows
    return as(
        [](float x) { return (x < 0 ? std::exp(x) : 1.0f) / (1.0f + std::exp(-std::fabs(x))); });
  }
}

template <class T> void compare(const Tile& tile, const Command& c) {
  if (c.fn == CDL_COMPARE_EQ) return map<int32_t, T, T>(tile, c, [](T a, T b) { return a == b; });
  map<int32_t, T, T>(tile, c, [](T a, T b) { return a < b; });
}

void convert(const Tile& tile, const Command& c) {
  const auto [low, high] = rangeOf(c.elem);
  if (c.elem == CDL_F32 && c.from == CDL_F32)
    return map<float, float>(tile, c, [](float x) { return x; });
  if (c.elem == CDL_F32) return map<float, int32_t>(tile, c, [](int32_t x) { return float(x); });
  if (c.elem == CDL_BOOL && c.from == CDL_F32)
    return map<int32_t, float>(tile, c, [](float x) { return x != 0; });
  if (c.elem == CDL_BOOL) return map<int32_t, int32_t>(tile, c, [](int32_t x) { return x != 0; });
  if (c.from == CDL_F32)
    return map<int32_t, float>(tile, c, [&, low = low, high = high](float x) {
      return c.saturate ? int32_t(cdl_f64_to_int_sat(x, c.fn, low, high))
                        : wrapped(c.elem, int64_t(cdl_f64_to_int_wrap(x, c.fn)));
    });
  map<int32_t, int32_t>(tile, c, [=](int32_t x) {
    return c.saturate ? int32_t(std::clamp<int64_t>(x, low, high)) : wrapped(c.elem, x);
  });
}

} // namespace

void runArithmetic(const Tile& tile, const Command& c) {
  switch (c.kind) {
  case CDL_KIND_BINARY: return c.from == CDL_F32 ? binaryFloat(tile, c) : binaryInteger(tile, c);
  case CDL_KIND_UNARY: return unary(tile, c);
  case CDL_KIND_COMPARE:
    return c.from == CDL_F32 ? compare<float>(tile, c) : compare<int32_t>(tile, c);
  case CDL_KIND_CONVERT: return convert(tile, c);
  default: return select(tile, c);
  }
}

} // namespace tiles
