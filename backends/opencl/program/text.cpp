// What all generated kernels are made of: parameters, loads and stores, the steps of expressions.
#include "text.hpp"

namespace program {

std::vector<cdl_step_t> Instruction::steps() const {
  std::vector<cdl_step_t> steps;
  if (!instr_->expr) return steps;
  const cdl_expr_t& expr = *cdl_get_expr(image_, instr_->expr);
  for (uint32_t s = 0; s < expr.steps; ++s)
    steps.push_back(*cdl_get_step(image_, expr.first_step + s));
  return steps;
}

const cdl_halo_t* Instruction::haloOf(const cdl_view_t& view) const {
  const uint32_t halo = cdl_get_buffer(image_, view.buffer)->halo;
  return halo ? cdl_get_halo(image_, halo) : nullptr;
}

bool isHalf(uint8_t elem) { return elem == CDL_F16 || elem == CDL_BF16; }

bool isKnownElem(uint8_t elem) {
  return elem == CDL_F32 || elem == CDL_I32 || elem == CDL_I8 || elem == CDL_U8 ||
         elem == CDL_BOOL || isHalf(elem);
}

int64_t elementsOf(const cdl_view_t& view) {
  int64_t elements = 1;
  for (int d = 0; d < view.rank; ++d) elements *= view.dims[d];
  return elements;
}

const char* memoryType(uint8_t elem) {
  switch (elem) {
  case CDL_F32: return "float";
  case CDL_I32: return "int";
  case CDL_I8: return "char";
  case CDL_F16:
  case CDL_BF16: return "ushort";
  default: return "uchar"; // u8 and bool
  }
}

namespace {

std::string typed(const char* type, int lanes) {
  return lanes == 1 ? type : cdl::text(type, lanes);
}

} // namespace

std::string valueType(uint8_t elem, int lanes) {
  return typed(elem == CDL_F32 ? "float" : "int", lanes);
}

std::string Writer::pointer(const cdl_view_t& view) {
  const int64_t bytes = cdl_elem_bits(view.elem) / 8;
  Place place{view.buffer, view.offset * bytes, {}};
  for (int l = 0; l < CDL_MAX_LOOP_NESTING; ++l) place.perLoop[l] = view.iv_strides[l] * bytes;
  const size_t i = places_.size();
  places_.push_back(place);
  line("global ", memoryType(view.elem), "* p", i, " = (global ", memoryType(view.elem), "*)(m", i,
       " + o", i, ");");
  return cdl::text("p", i);
}

std::string Writer::zeros() {
  const size_t i = places_.size();
  places_.push_back({});
  line("global float* p", i, " = (global float*)(m", i, " + o", i, ");");
  return cdl::text("p", i);
}

std::string Writer::scratch(int64_t bytes) {
  const size_t i = places_.size();
  places_.push_back({kScratch, bytes, {}});
  line("global float* p", i, " = (global float*)(m", i, " + o", i, ");");
  return cdl::text("p", i);
}

void Writer::beginItems(int64_t items) {
  line("const long id = get_global_id(0);");
  if (items % kItemsOfGroup) line("if (id >= ", items, ") return;");
}

std::string Writer::load(uint8_t elem, int lanes, const std::string& at, int64_t stride) {
  const bool isNarrow = elem != CDL_F32 && elem != CDL_I32;
  const std::string type = valueType(elem, lanes);
  if (lanes == 1 || stride == 0) return cdl::text("(", type, ")(*(", at, "))");
  if (stride == 1)
    return cdl::text(isNarrow ? "convert_int16(" : "(", "vload", lanes, "(0, ", at, "))");
  std::string all = "(" + type + ")(";
  for (int e = 0; e < lanes; ++e) all += cdl::text(e ? ", " : "", "(", at, ")[", e * stride, "]");
  return all + ")";
}

void Writer::store(uint8_t elem, int lanes, const std::string& at, int64_t stride,
                   const std::string& value) {
  const std::string type = typed(memoryType(elem), lanes);
  if (lanes == 1)
    line("*(", at, ") = (", type, ")", value, ";");
  else if (stride == 1)
    line("vstore", lanes, "(convert_", type, "(", value, "), 0, ", at, ");");
  else
    for (int e = 0; e < lanes; ++e)
      line("(", at, ")[", e * stride, "] = (", memoryType(elem), ")", value, ".s",
           std::string(1, "0123456789abcdef"[e]), ";");
}

std::string wrapped(uint8_t elem, const std::string& x) {
  if (elem == CDL_I8) return "(((" + x + ") << 24) >> 24)";
  if (elem == CDL_U8 || elem == CDL_BOOL) return "((" + x + ") & 255)";
  return x;
}

namespace {

/// Integers are added, subtracted and multiplied as unsigned ones, since they wrap.
std::string wrapping(const char* op, int lanes, const std::string& a, const std::string& b) {
  const std::string u = typed("uint", lanes), i = typed("int", lanes);
  return cdl::text("as_", i, "(as_", u, "(", a, ") ", op, " as_", u, "(", b, "))");
}

std::string floatBinary(uint16_t fn, const std::string& a, const std::string& b) {
  switch (fn) {
  case CDL_BINARY_ADD: return a + " + " + b;
  case CDL_BINARY_SUB: return a + " - " + b;
  case CDL_BINARY_MUL: return a + " * " + b;
  case CDL_BINARY_DIV: return a + " / " + b;
  case CDL_BINARY_MIN: return "SMALLER(" + a + ", " + b + ")";
  case CDL_BINARY_MAX: return "LARGER(" + a + ", " + b + ")";
  default: return "";
  }
}

std::string integerBinary(uint16_t fn, uint8_t elem, int lanes, const std::string& a,
                          const std::string& b) {
  switch (fn) {
  case CDL_BINARY_ADD: return wrapped(elem, wrapping("+", lanes, a, b));
  case CDL_BINARY_SUB: return wrapped(elem, wrapping("-", lanes, a, b));
  case CDL_BINARY_MUL: return wrapped(elem, wrapping("*", lanes, a, b));
  case CDL_BINARY_DIV: {
    // x / 0 is 0, and the lowest number by -1 itself.
    const std::string type = typed("int", lanes), zero = cdl::text("(", type, ")(0)"),
                      one = cdl::text("(", type, ")(1)"),
                      plain = cdl::text("(", b, " != 0 & ", b, " != -1)");
    const std::string quotient = cdl::text(a, " / (", plain, " ? ", b, " : ", one, ")"),
                      edge = cdl::text("(", b, " == 0 ? ", zero, " : ",
                                       wrapping("-", lanes, zero, a), ")");
    return wrapped(elem, cdl::text("(", plain, " ? ", quotient, " : ", edge, ")"));
  }
  case CDL_BINARY_MIN: return "min(" + a + ", " + b + ")";
  case CDL_BINARY_MAX: return "max(" + a + ", " + b + ")";
  case CDL_BINARY_AND: return a + " & " + b;
  case CDL_BINARY_OR: return a + " | " + b;
  case CDL_BINARY_XOR: return a + " ^ " + b;
  default: return "";
  }
}

std::string floatUnary(uint16_t fn, const std::string& x) {
  switch (fn) {
  case CDL_UNARY_NEG: return "-" + x;
  case CDL_UNARY_ABS: return "fabs(" + x + ")";
  case CDL_UNARY_FLOOR: return "ROUNDED(floor, " + x + ")";
  case CDL_UNARY_SQRT: return "sqrt(" + x + ")";
  case CDL_UNARY_RCP: return "1.0f / " + x;
  case CDL_UNARY_EXP: return "exp(" + x + ")";
  case CDL_UNARY_LOG: return "log(" + x + ")";
  case CDL_UNARY_CEIL: return "ROUNDED(ceil, " + x + ")";
  case CDL_UNARY_TRUNC: return "ROUNDED(trunc, " + x + ")";
  case CDL_UNARY_ROUND_EVEN: return "ROUNDED(rint, " + x + ")";
  case CDL_UNARY_RSQRT: return "1.0f / sqrt(" + x + ")";
  case CDL_UNARY_TANH: return "tanh(" + x + ")";
  case CDL_UNARY_ERF: return "erf(" + x + ")";
  case CDL_UNARY_SIGMOID: return "SIGMOID(" + x + ")";
  default: return "";
  }
}

std::string unary(uint16_t fn, uint8_t elem, int lanes, const std::string& x) {
  if (elem == CDL_F32) return floatUnary(fn, x);
  const std::string zero = cdl::text("(", typed("int", lanes), ")(0)");
  const std::string negative = wrapping("-", lanes, zero, x);
  if (fn == CDL_UNARY_NEG) return wrapped(elem, negative);
  if (fn == CDL_UNARY_ABS)
    return wrapped(elem, "select(" + x + ", " + negative + ", " + x + " < 0)");
  return "";
}

const char* limitsOf(uint8_t elem) {
  switch (elem) {
  case CDL_I8: return "-128, 127";
  case CDL_I32: return "INT_MIN, INT_MAX";
  default: return "0, 255";
  }
}

std::string fromHalf(uint8_t half, int lanes, const std::string& x) {
  return cdl::text(half == CDL_BF16 ? "fromBF16" : "fromF16", lanes == 1 ? "" : "x16", "(", x, ")");
}

/// f32 as the half's bits.
std::string toHalf(uint8_t half, int lanes, bool saturates, const std::string& x) {
  const bool isBrain = half == CDL_BF16;
  const char* suffix = lanes == 1 ? "" : "x16";
  const std::string bits = cdl::text(isBrain ? "toBF16" : "toF16", suffix, "(", x, ")");
  if (!saturates) return bits;
  return cdl::text("finite", suffix, "(", bits, ", ", isBrain ? "0x7f80" : "0x7c00", ")");
}

std::string convert(const cdl_step_t& step, int lanes, const std::string& x) {
  const uint8_t from = step.in[0].elem;
  if (step.elem == CDL_BOOL) return x + (from == CDL_F32 ? " != 0.0f) & 1" : " != 0) & 1");
  if (step.elem == CDL_F32) {
    if (from != CDL_F32) return cdl::text("convert_", typed("float", lanes), "(", x, ")");
    if (!(step.flags & 1)) return x;
    // Infinities become the largest number too.
    const std::string most = cdl::text("(", typed("float", lanes), ")(FLT_MAX)");
    return cdl::text("SMALLER(LARGER(", x, ", -", most, "), ", most, ")");
  }
  if (from != CDL_F32)
    return step.flags & 1 ? cdl::text("clamp(", x, ", ", limitsOf(step.elem), ")")
                          : wrapped(step.elem, x);
  if (!(step.flags & 1)) return ""; // what wraps leaves 32 bits on the way
  const char* rounded[] = {"ROUNDED(trunc, ", "ROUNDED(rint, ", "ROUNDED(floor, "};
  if (step.fn > CDL_CONVERT_FLOOR) return "";
  const std::string whole = rounded[step.fn] + x + ")";
  // Saturates at 32 bits, NaN to 0; the limits of fewer bits come behind.
  const std::string wide = cdl::text("convert_", typed("int", lanes), "_sat(", whole, ")");
  return step.elem == CDL_I32 ? wide : cdl::text("clamp(", wide, ", ", limitsOf(step.elem), ")");
}

std::string stepText(const cdl_step_t& step, int lanes, const std::vector<std::string>& x);

/// Whether the step reads or makes halves other than as bits.
bool computesHalves(const cdl_step_t& step) {
  if (step.kind == CDL_KIND_COPY || step.kind == CDL_KIND_SELECT) return false;
  return isHalf(step.in[0].elem) || isHalf(step.elem);
}

/// The step in f32, and rounded where its result is a half.
std::string halfText(const cdl_step_t& step, int lanes, std::vector<std::string> x) {
  cdl_step_t wide = step;
  for (uint16_t k = 0; k < step.operands; ++k) {
    if (!isHalf(step.in[k].elem)) continue;
    x[k] = fromHalf(step.in[k].elem, lanes, x[k]);
    wide.in[k].elem = CDL_F32;
  }
  if (!isHalf(step.elem)) return stepText(wide, lanes, x);
  // An i32 would be rounded twice on its way to bf16.
  const bool isConvert = step.kind == CDL_KIND_CONVERT;
  if (isConvert && step.elem == CDL_BF16 && wide.in[0].elem == CDL_I32) return "";
  wide.elem = CDL_F32;
  wide.flags = 0;
  const std::string value = stepText(wide, lanes, x);
  const bool saturates = isConvert && (step.flags & 1) && wide.in[0].elem == CDL_F32;
  return value.empty() ? "" : toHalf(step.elem, lanes, saturates, value);
}

std::string stepText(const cdl_step_t& step, int lanes, const std::vector<std::string>& x) {
  const uint8_t elem = step.in[0].elem;
  if (computesHalves(step)) return halfText(step, lanes, x);
  switch (step.kind) {
  case CDL_KIND_BINARY:
    return elem == CDL_F32 ? floatBinary(step.fn, x[0], x[1])
                           : integerBinary(step.fn, elem, lanes, x[0], x[1]);
  case CDL_KIND_COMPARE:
    return cdl::text("(", x[0], step.fn == CDL_COMPARE_EQ ? " == " : " < ", x[1], ") & 1");
  case CDL_KIND_SELECT: return cdl::text("select(", x[2], ", ", x[1], ", ", x[0], " != 0)");
  case CDL_KIND_UNARY: return unary(step.fn, elem, lanes, x[0]);
  case CDL_KIND_CONVERT: {
    const std::string text = convert(step, lanes, x[0]);
    return step.elem == CDL_BOOL && !text.empty() ? "(" + text : text;
  }
  case CDL_KIND_RESCALE:
    return cdl::text(lanes == 1 ? "rescaled(" : "rescaled16(", x[0], ", ", x[1], ", ", x[2], ", ",
                     x[3], ", ", static_cast<int32_t>(static_cast<uint32_t>(step.imm)), ", ",
                     static_cast<int32_t>(static_cast<uint32_t>(step.imm >> 32)), ")");
  case CDL_KIND_COPY: return x[0];
  default: return "";
  }
}

} // namespace

bool canCompute(const std::vector<cdl_step_t>& steps) {
  for (const cdl_step_t& step : steps) {
    if (!isKnownElem(step.elem)) return false;
    for (int k = 0; k < step.operands; ++k)
      if (!isKnownElem(step.in[k].elem)) return false;
    if (stepText(step, 1, {"a", "b", "c", "d"}).empty()) return false;
  }
  return true;
}

std::string Writer::compute(const std::vector<cdl_step_t>& steps, size_t first, size_t end,
                            int lanes, const std::string& acc, const Load& load) {
  if (first == end) return acc;
  std::map<uint32_t, std::string> inputs;
  std::vector<std::string> values(end);
  for (size_t s = first; s < end; ++s) {
    const cdl_step_t& step = steps[s];
    std::vector<std::string> x;
    for (int k = 0; k < step.operands; ++k) {
      const cdl_operand_t& operand = step.in[k];
      const std::string type = valueType(operand.elem, lanes);
      switch (operand.source) {
      case CDL_FROM_ACC: x.push_back(acc); break;
      case CDL_FROM_STEP: x.push_back(values[operand.index]); break;
      case CDL_FROM_CONST: {
        const std::string name = cdl::text("c", names_++);
        const auto bits = static_cast<uint32_t>(step.imm);
        const std::string value = operand.elem == CDL_F32
                                      ? cdl::text("as_float(", bits, "u)")
                                      : cdl::text("(", memoryType(operand.elem), ")", bits, "u");
        line("const ", type, " ", name, " = (", type, ")(", value, ");");
        x.push_back(name);
        break;
      }
      default: {
        std::string& name = inputs[operand.index];
        if (name.empty()) {
          name = cdl::text("x", names_++);
          line("const ", type, " ", name, " = ", load(operand.index), ";");
        }
        x.push_back(name);
      }
      }
    }
    values[s] = cdl::text("v", names_++);
    line("const ", valueType(step.elem, lanes), " ", values[s], " = ", stepText(step, lanes, x),
         ";");
  }
  return values.back();
}

} // namespace program
