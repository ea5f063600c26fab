#include "tests/backends/cpu/cases.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "core/support/float_bits.h"

namespace candela::test {

namespace {

using Dims = std::vector<int64_t>;

constexpr double kEpsilon = 0x1p-24; ///< one rounding of f32, relative

bool isHalf(Elem elem) { return elem == Elem::f16_ || elem == Elem::bf16_; }

/// How far, relative, two results of a type may lie apart of whose sums each is rounded once to it.
double stepOf(Elem elem) {
  if (elem == Elem::bf16_) return 0x1p-7;
  return elem == Elem::f16_ ? 0x1p-10 : 0;
}

enum class Fill {
  corner, ///< NaN, infinities, denormals, limits, halves, and everything between
  whole,  ///< -8 .. 8 in any type: sums are exact
  unit,   ///< [-1, 1)
  broken, ///< unit with a few NaN and infinities
  sparse, ///< -1 or 1 now and then, else 0: a half holds sums of hundreds of their products
  factor, ///< magnitudes of 0.5 .. 2: products stay finite
};

int64_t product(const Dims& dims) { return elementCount(dims).value_or(0); }

class Maker {
public:
  Maker(const std::vector<cdl_row_t>& rows, Cases& out)
      : rows_(rows), shape_(0), value_(0), out_(out), p_(out.program) {}

  void make(const cdl_row_t& row, uint64_t shapeSeed, uint64_t valueSeed) {
    row_ = row;
    shape_ = Random(shapeSeed);
    value_ = Random(valueSeed);
    case_ = Case();
    instr_ = program::Instr();
    instr_.kind = row.kind;
    instr_.fn = row.fn;
    loops();
    build();
    const auto index = static_cast<uint32_t>(p_.instrs.size());
    for (size_t l = 0; l < trips_.size(); ++l) {
      p_.loops.push_back({index, 1, instr_.loop, static_cast<uint64_t>(trips_[l])});
      instr_.loop = static_cast<uint32_t>(p_.loops.size() - 1);
    }
    case_.output = instr_.outputs[0].buffer;
    case_.elem = instr_.outputs[0].elem;
    residualInPlace();
    case_.isPlain = case_.isPlain && instr_.expr.empty() && trips_.empty();
    p_.instrs.push_back(std::move(instr_));
    out_.cases.push_back(std::move(case_));
  }

private:
  Elem elem(size_t operand) const { return static_cast<Elem>(row_.elems[operand]); }

  /// Some instructions stand in one loop or two.
  void loops() {
    trips_.clear();
    if (!shape_.chance(20)) return;
    for (int64_t l = shape_.in(1, 2); l > 0; --l) trips_.push_back(shape_.in(1, 3));
  }

  // ---- Data

  template <typename T> static void put(std::vector<char>& bytes, size_t i, T value) {
    std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
  }

  double real(Fill fill, bool isWide) {
    static const double kCorners[] = {
        0.0,    -0.0,    1.0,         -1.0,           INFINITY,      -INFINITY,
        NAN,    1e-45,   -1.1754e-38, 1.17549435e-38, 3.40282347e38, -3.40282347e38,
        0.5,    1.5,     2.5,         -2.5,           -0.5,          127.5,
        255.5,  -128.5,  65535.5,     2147483648.0,   -2147483904.0, 4294967296.0,
        9.3e18, -9.3e18, 1.9e19,      1e30,           88.8,          -104.1};
    switch (fill) {
    case Fill::whole: return static_cast<double>(value_.in(-8, 8));
    case Fill::factor:
      return (value_.chance(50) ? 1 : -1) * (0.5 + static_cast<double>(value_.in(0, 1535)) / 1024);
    case Fill::sparse: return value_.chance(25) ? static_cast<double>(value_.in(-1, 1)) : 0;
    case Fill::broken:
      if (value_.chance(3)) return value_.of(std::vector<double>{NAN, INFINITY, -INFINITY});
      [[fallthrough]];
    case Fill::unit: return static_cast<double>(value_.in(-(1 << 23), (1 << 23) - 1)) * 0x1p-23;
    default:
      if (value_.chance(30)) return value_.of(kCorners);
      if (value_.chance(30))
        return isWide ? std::bit_cast<double>(value_.next())
                      : static_cast<double>(
                            std::bit_cast<float>(static_cast<uint32_t>(value_.next())));
      return static_cast<double>(value_.in(-4000, 4000)) / 1000;
    }
  }

  /// Bits of a whole number, of f8e8m0 of a power of two.
  uint64_t wholeFloat(Elem elem) {
    const double number = real(Fill::whole, false);
    return fromReal(elem, elem == Elem::f8e8m0_ ? std::exp2(std::abs(number) - 4) : number);
  }

  /// Bits of a float of fewer than 32.
  uint64_t narrowFloat(Elem elem, Fill fill) {
    if (fill == Fill::whole) return wholeFloat(elem);
    if (isHalf(elem) && fill != Fill::corner) return fromReal(elem, real(fill, false));
    return whole(fill, elemBits(elem));
  }

  uint64_t whole(Fill fill, int bits) {
    if (fill == Fill::whole) return static_cast<uint64_t>(value_.in(-8, 8));
    const uint64_t top = uint64_t(1) << (bits - 1);
    const uint64_t corners[] = {0,
                                1,
                                ~uint64_t(0),
                                top,
                                top - 1,
                                top + 1,
                                static_cast<uint64_t>(bits),
                                static_cast<uint64_t>(bits - 1)};
    if (fill == Fill::corner && value_.chance(30)) return value_.of(corners);
    return value_.chance(50) ? value_.next() : static_cast<uint64_t>(value_.in(-20, 20));
  }

  std::vector<char> data(Elem elem, int64_t count, Fill fill) {
    std::vector<char> bytes(elemBytes(elem, static_cast<uint64_t>(count)));
    for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
      if (elem == Elem::f32_)
        put(bytes, i, static_cast<float>(real(fill, false)));
      else if (elem == Elem::f64_)
        put(bytes, i, real(fill, true));
      else if (elem == Elem::bool_)
        put(bytes, i, static_cast<uint8_t>(value_.in(0, 1)));
      else {
        const uint64_t bits = isFloat(elem) ? narrowFloat(elem, fill) : whole(fill, elemBits(elem));
        std::memcpy(bytes.data() + i * static_cast<size_t>(elemBits(elem) / 8), &bits,
                    static_cast<size_t>(elemBits(elem) / 8));
      }
    }
    return bytes;
  }

  // ---- Views

  int64_t extent() {
    static constexpr int64_t kExtents[] = {0,  1,  1,  2,  3,  4,  5,  7,  8,   9,  15,
                                           16, 17, 31, 32, 33, 47, 64, 65, 100, 129};
    return shape_.of(kExtents);
  }
  Dims dims(int lowest, int highest, int64_t most = 3000) {
    Dims d;
    int64_t count = 1;
    for (int64_t rank = shape_.in(lowest, highest); rank > 0; --rank) {
      int64_t n = extent();
      if (count * n > most) n = shape_.in(1, 3);
      if (n == 0 && !shape_.chance(20)) n = 1;
      d.push_back(n);
      count *= std::max<int64_t>(n, 1);
    }
    // a row that is cut in parts
    if (d.size() == 1 && shape_.chance(5)) d[0] = shape_.in(8190, 8200);
    return d;
  }

  /// Strides of a class. What is written never overlaps itself. A dim that nothing steps along has
  /// any stride.
  void stride(program::View& v, int operandClass, bool isWritten) {
    strideOf(v, operandClass, isWritten);
    for (size_t d = 0; d < v.dims.size(); ++d)
      if (v.dims[d] <= 1 && shape_.chance(15)) v.strides[d] = shape_.in(-3, 9);
  }
  void strideOf(program::View& v, int operandClass, bool isWritten) {
    const auto rank = static_cast<int>(v.dims.size());
    const int64_t cls = shape_.in(CDL_CLASS_DENSE, operandClass);
    const bool repeats = !isWritten && cls >= CDL_CLASS_BROADCAST;
    if (cls == CDL_CLASS_AFFINE && !isWritten && shape_.chance(10)) { // overlapping in any way
      for (int64_t& stride : v.strides) stride = shape_.in(-2, 2);
      return;
    }
    std::vector<int> order(static_cast<size_t>(rank));
    for (int d = 0; d < rank; ++d) order[static_cast<size_t>(d)] = rank - 1 - d;
    int64_t step = 1;
    if (cls == CDL_CLASS_AFFINE) {
      for (int d = rank; d-- > 1;)
        std::swap(order[static_cast<size_t>(d)], order[static_cast<size_t>(shape_.in(0, d))]);
      step = shape_.in(1, 3);
    }
    for (int d : order) {
      if (repeats && shape_.chance(25)) {
        v.strides[static_cast<size_t>(d)] = 0;
        continue;
      }
      const bool isReversed = cls == CDL_CLASS_AFFINE && shape_.chance(25);
      v.strides[static_cast<size_t>(d)] = isReversed ? -step : step;
      step *= std::max<int64_t>(v.dims[static_cast<size_t>(d)], 1);
      if (cls >= CDL_CLASS_ROW_STRIDED) step += shape_.in(0, 3);
    }
  }

  /// A view and the buffer that it needs: exactly as long as it reaches, or a little longer.
  program::View view(Elem elem, Dims dims, int operandClass, bool isWritten, Fill fill,
                     std::vector<char>* exact = nullptr) {
    program::View v = program::denseView(0, elem, std::move(dims));
    stride(v, operandClass, isWritten);
    int64_t low = 0, high = 0;
    const auto reach = [&](int64_t last, int64_t stride) {
      (stride < 0 ? low : high) += last * stride;
    };
    const bool isEmpty = v.count() == 0;
    for (size_t d = 0; d < v.dims.size() && !isEmpty; ++d) reach(v.dims[d] - 1, v.strides[d]);
    for (size_t l = 0; l < trips_.size(); ++l) {
      // The outer loop is value 0.
      if (!exact && shape_.chance(60)) v.ivStrides[l] = shape_.in(-2, 5);
      reach(trips_[l] - 1, v.ivStrides[l]);
    }
    v.offset = -low;
    if (!exact && shape_.chance(20)) v.offset += shape_.in(1, 5);
    const int64_t count =
        std::max<int64_t>(v.offset + high + 1 + (shape_.chance(20) ? shape_.in(1, 3) : 0), 1);
    program::Buffer b;
    b.name = fmt::format("b{}", p_.buffers.size());
    b.bytes = elemBytes(elem, static_cast<uint64_t>(count));
    b.alignment = static_cast<uint32_t>(std::max(1, elemBits(elem) / 8));
    b.role = isWritten ? program::Role::inout : program::Role::input;
    std::vector<char> content = data(elem, count, fill);
    if (exact)
      std::memcpy(content.data() +
                      static_cast<size_t>(v.offset) * static_cast<size_t>(elemBits(elem)) / 8,
                  exact->data(), exact->size());
    const bool isConstant = !isWritten && (mustBeConstant_ || value_.chance(20));
    if (isConstant) {
      const Tensor tensor{elem, {count}, Bytes::copyOf(content.data(), content.size())};
      v.buffer = p_.addConstant(b.name, Payload::data(tensor));
      out_.contents.resize(p_.buffers.size());
      return v;
    }
    v.buffer = p_.addBuffer(std::move(b));
    out_.contents.resize(p_.buffers.size());
    out_.contents[v.buffer] = std::move(content);
    return v;
  }

  void in(Elem elem, Dims dims, Fill fill, int operandClass) {
    instr_.inputs.push_back(view(elem, std::move(dims), operandClass, false, fill));
  }
  void in(Elem elem, Dims dims, Fill fill) { in(elem, std::move(dims), fill, row_.operand_class); }
  /// These values, row-major.
  template <typename T> void given(Elem elem, Dims dims, const std::vector<T>& values) {
    std::vector<char> bytes(values.size() * sizeof(T));
    if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
    instr_.inputs.push_back(
        view(elem, std::move(dims), CDL_CLASS_DENSE, false, Fill::whole, &bytes));
  }
  void out(Elem elem, Dims dims, Fill fill = Fill::whole) {
    instr_.outputs.push_back(view(elem, std::move(dims), row_.operand_class, true, fill));
  }
  /// The result takes the place of an operand, where elements may share one.
  void perhapsInPlace() {
    // a loop would feed an error to the function again
    if (case_.bound.ulps && !trips_.empty()) return;
    const program::View& y = instr_.outputs[0];
    for (program::View& x : instr_.inputs)
      if (x.dims == y.dims && elemBits(x.elem) == elemBits(y.elem) && x.elem == y.elem &&
          value_.chance(10))
        x = y;
  }

  /// The result takes the place of what an epilogue reads: both are walked alike.
  void residualInPlace() {
    if (!(row_.flags & CDL_ROW_EPILOGUE) || instr_.expr.empty() || instr_.inout ||
        row_.kind == CDL_KIND_ELEMENTWISE)
      return;
    const program::View& y = instr_.outputs[0];
    for (size_t i = instr_.operandCount(); i < instr_.inputs.size(); ++i)
      if (program::View& x = instr_.inputs[i]; x.elem == y.elem && value_.chance(30)) x = y;
  }

  // ---- Expressions

  uint64_t imm(Elem elem) {
    const std::vector<char> bytes = data(elem, 1, isExact_ ? Fill::whole : Fill::corner);
    uint64_t bits = 0;
    std::memcpy(&bits, bytes.data(), bytes.size());
    return bits;
  }

  /// The functions whose result is the same on every machine.
  static bool isExactStep(const cdl_row_t& row) {
    // of one operand
    if (row.kind == CDL_KIND_RESCALE)
      return row.elem_count == 5 && cdl_elem_bits(row.elems[0]) <= 32;
    if (row.kind != CDL_KIND_UNARY) return true;
    switch (row.fn) {
    case CDL_UNARY_EXP:
    case CDL_UNARY_LOG:
    case CDL_UNARY_TANH:
    case CDL_UNARY_ERF:
    case CDL_UNARY_SIGMOID:
    case CDL_UNARY_RSQRT: return false;
    default: return true;
    }
  }

  /// Steps over the accumulator (none: there is none) and the views from firstView on. `result`:
  /// none takes what comes.
  Elem expr(Elem acc, size_t firstView, Elem result) {
    std::vector<program::Operand> known;
    if (acc != Elem::none) known.push_back({program::Operand::Source::acc, acc, 0});
    for (size_t i = firstView; i < instr_.inputs.size(); ++i)
      known.push_back(
          {program::Operand::Source::view, instr_.inputs[i].elem, static_cast<uint16_t>(i)});
    program::Expr& steps = instr_.expr;
    const auto push = [&](program::Step step) {
      known.push_back(
          {program::Operand::Source::step, step.elem, static_cast<uint16_t>(steps.size())});
      steps.push_back(std::move(step));
    };
    // Views behind the operands are read in order, so that the first of them is no operand.
    for (size_t i = firstView; acc != Elem::none && i < instr_.inputs.size(); ++i) {
      const Elem e = instr_.inputs[i].elem;
      push({CDL_KIND_CONVERT,
            CDL_CONVERT_TRUNC,
            e,
            false,
            {{program::Operand::Source::view, e, static_cast<uint16_t>(i)}},
            0});
    }
    std::vector<const cdl_row_t*> able;
    for (const cdl_row_t& row : rows_)
      if (row.support == CDL_SUPPORT_NATIVE && (row_.steps_mask >> row.kind & 1) &&
          isExactStep(row))
        able.push_back(&row);
    const int64_t count = value_.in(1, value_.chance(10) ? 24 : 6);
    for (int attempt = 0; attempt < 4000 && static_cast<int64_t>(steps.size()) < count; ++attempt) {
      const cdl_row_t& row = *value_.of(able);
      program::Step step;
      step.kind = row.kind;
      step.fn = row.fn;
      step.elem = static_cast<Elem>(row.elems[row.elem_count - 1]);
      if (step.kind == CDL_KIND_CONVERT) step.saturate = value_.chance(50);
      if (step.kind == CDL_KIND_RESCALE) {
        const IntegerRange range = integerRange(step.elem);
        step.imm = static_cast<uint32_t>(static_cast<int32_t>(range.lowest)) |
                   static_cast<uint64_t>(static_cast<uint32_t>(static_cast<int32_t>(range.highest)))
                       << 32;
      }
      bool isConstantUsed = step.kind == CDL_KIND_RESCALE, fits = true;
      for (int k = 0; k + 1 < row.elem_count && fits; ++k) {
        const auto wanted = static_cast<Elem>(row.elems[k]);
        std::vector<program::Operand> mates;
        for (const program::Operand& o : known)
          if (o.elem == wanted) mates.push_back(o);
        if (!mates.empty() && (isConstantUsed || value_.chance(80))) {
          step.in.push_back(value_.chance(50) ? mates.back() : value_.of(mates));
        } else if (!isConstantUsed && row.elem_count > 2) {
          step.imm = imm(wanted);
          step.in.push_back({program::Operand::Source::constant, wanted, 0});
          isConstantUsed = true;
        } else {
          fits = false;
        }
      }
      const bool reads = std::any_of(step.in.begin(), step.in.end(), [](const program::Operand& o) {
        return o.source != program::Operand::Source::constant;
      });
      if (fits && reads) push(std::move(step));
    }
    if (steps.empty())
      push({CDL_KIND_CONVERT, CDL_CONVERT_TRUNC, known[0].elem, false, {known[0]}, 0});
    if (result != Elem::none && steps.back().elem != result) {
      push({CDL_KIND_CONVERT, CDL_CONVERT_TRUNC, result, value_.chance(50), {known.back()}, 0});
    }
    // An inexact function at the end: nothing grows its error.
    if (isExact_ || steps.back().elem != Elem::f32_ || !value_.chance(40)) return steps.back().elem;
    for (const cdl_row_t& row : rows_)
      if (row.kind == CDL_KIND_UNARY && !isExactStep(row) && value_.chance(25)) {
        push({row.kind, row.fn, Elem::f32_, false, {known.back()}, 0});
        case_.bound.ulps = 6;
        break;
      }
    return steps.back().elem;
  }

  /// Perhaps an epilogue on a result whose values are small integers, so that it comes out the same
  /// everywhere.
  bool hasEpilogue() { return (row_.flags & CDL_ROW_EPILOGUE) && value_.chance(50); }
  void epilogue(const Dims& y, Elem own) {
    static constexpr Elem kTypes[] = {Elem::f32_, Elem::f32_, Elem::i32_, Elem::i8_, Elem::bool_};
    const size_t operands = instr_.inputs.size();
    for (int64_t i = value_.in(0, 2); i > 0; --i)
      in(value_.chance(60) ? own : value_.of(kTypes), y, Fill::whole,
         value_.chance(80) ? CDL_CLASS_BROADCAST : CDL_CLASS_AFFINE);
    isExact_ = true;
    expr(own, operands, elem(row_.elem_count - 1u));
    isExact_ = false;
    case_.bound.anyZero = true;
  }

  // ---- Kinds

  void build() {
    switch (row_.kind) {
    case CDL_KIND_GATHER: return gather();
    case CDL_KIND_SCATTER: return scatter();
    case CDL_KIND_REDUCE: return reduce();
    case CDL_KIND_ARG_REDUCE: return argReduce();
    case CDL_KIND_MATMUL: return matmul();
    case CDL_KIND_CONV2D: return conv();
    case CDL_KIND_POOL2D: return pool();
    case CDL_KIND_TABLE: return table();
    case CDL_KIND_SCALED_MATMUL: return scaledMatmul();
    case CDL_KIND_ATTENTION: return attention();
    case CDL_KIND_SOFTMAX: return softmax();
    case CDL_KIND_NORM: return norm();
    case CDL_KIND_RESCALE: return rescale();
    default: return elementwise();
    }
  }

  void elementwise() {
    const Dims d = dims(0, 4);
    switch (row_.kind) {
    case CDL_KIND_FILL: {
      out(elem(0), d);
      instr_.attrs = {program::Attr::ofBits(CDL_ATTR_VALUE, imm(elem(0)))};
      return;
    }
    case CDL_KIND_ELEMENTWISE: {
      static constexpr Elem kTypes[] = {Elem::f32_, Elem::f32_, Elem::f32_,  Elem::i32_,
                                        Elem::i8_,  Elem::u8_,  Elem::bool_, Elem::i16_,
                                        Elem::i64_, Elem::f64_, Elem::u32_,  Elem::u16_};
      for (int64_t k = shape_.in(1, 4); k > 0; --k) in(shape_.of(kTypes), d, Fill::corner);
      const Elem last = expr(Elem::none, 0, Elem::none);
      out(last, d);
      case_.bound.anyZero = true; // of min and max
      return perhapsInPlace();
    }
    case CDL_KIND_CONVERT:
      if (value_.chance(50))
        instr_.attrs = {program::Attr::ofInt(CDL_ATTR_SATURATE, value_.in(0, 1))};
      break;
    case CDL_KIND_BINARY:
      case_.bound.anyZero = row_.fn == CDL_BINARY_MIN || row_.fn == CDL_BINARY_MAX;
      break;
    case CDL_KIND_UNARY:
      if (row_.fn == CDL_UNARY_EXP || row_.fn == CDL_UNARY_LOG || row_.fn == CDL_UNARY_RSQRT)
        case_.bound.ulps = 1;
      if (row_.fn == CDL_UNARY_TANH || row_.fn == CDL_UNARY_SIGMOID) case_.bound.ulps = 3;
      if (row_.fn == CDL_UNARY_ERF) case_.bound.ulps = 6;
      break;
    default: break;
    }
    for (size_t k = 0; k + 1 < row_.elem_count; ++k) in(elem(k), d, Fill::corner);
    out(elem(row_.elem_count - 1u), d);
    if (row_.kind != CDL_KIND_COPY) perhapsInPlace();
  }

  void rescale() {
    const Dims d = dims(0, 4);
    const Elem a = elem(0), y = elem(row_.elem_count - 1u);
    const bool isTwo = row_.elem_count == 7;
    const int magnitude = (a == Elem::i64_ ? 39 : elemBits(a)) + 24 + isTwo;
    const int64_t left =
        value_.chance(50) ? 0 : value_.in(0, std::min<int64_t>(63 - magnitude, 15));
    if (left) instr_.attrs.push_back(program::Attr::ofInt(CDL_ATTR_A_LEFT_SHIFT, left));
    const auto operand = [&](Elem e, int64_t low, int64_t high) {
      in(e, d, Fill::corner);
      // Every element of its buffer, whatever part of it the view reads.
      program::View& v = instr_.inputs.back();
      const auto fillWith = [&](std::vector<char>& bytes) {
        for (size_t i = 0; i < bytes.size() / (static_cast<size_t>(elemBits(e)) / 8); ++i) {
          const int64_t number =
              value_.chance(10) ? (value_.chance(50) ? low : high) : value_.in(low, high);
          std::memcpy(bytes.data() + i * (static_cast<size_t>(elemBits(e)) / 8), &number,
                      static_cast<size_t>(elemBits(e)) / 8);
        }
      };
      if (p_.buffers[v.buffer].role != program::Role::constant)
        return fillWith(out_.contents[v.buffer]);
      std::vector<char> bytes(p_.buffers[v.buffer].bytes);
      fillWith(bytes);
      const Tensor tensor{e,
                          {static_cast<int64_t>(bytes.size()) * 8 / elemBits(e)},
                          Bytes::copyOf(bytes.data(), bytes.size())};
      v.buffer = p_.addConstant(fmt::format("b{}", p_.buffers.size()), Payload::data(tensor));
      out_.contents.resize(p_.buffers.size());
    };
    const int64_t top =
        a == Elem::i64_ ? (int64_t(1) << 38) : static_cast<int64_t>(integerRange(a).highest);
    const int64_t low = a == Elem::i64_ ? -top : static_cast<int64_t>(integerRange(a).lowest);
    operand(a, low, top);
    operand(Elem::i32_, value_.chance(80) ? 1 << 23 : 0, (1 << 24) - 1);
    const int64_t right = std::max<int64_t>(0, magnitude - elemBits(y) + left + value_.in(-6, 3));
    operand(Elem::i32_, std::max<int64_t>(0, right - 3), right + (value_.chance(10) ? 40 : 2));
    const IntegerRange range = integerRange(y);
    const auto lowest = static_cast<int64_t>(range.lowest),
               highest = static_cast<int64_t>(range.highest);
    operand(Elem::i32_, std::max<int64_t>(lowest, -1000), std::min<int64_t>(highest, 1000));
    if (isTwo) {
      operand(elem(4), static_cast<int64_t>(integerRange(elem(4)).lowest),
              static_cast<int64_t>(integerRange(elem(4)).highest));
      operand(Elem::i32_, value_.chance(80) ? 1 << 23 : 0, (1 << 24) - 1);
      if (value_.chance(50))
        instr_.attrs.push_back(program::Attr::ofInt(CDL_ATTR_B_LEFT_SHIFT, value_.in(0, 4)));
    }
    const int64_t middle = value_.in(lowest / 2, highest);
    if (value_.chance(40))
      instr_.attrs.push_back(program::Attr::ofInt(CDL_ATTR_CLAMP_MIN, value_.in(lowest, middle)));
    if (value_.chance(40))
      instr_.attrs.push_back(program::Attr::ofInt(CDL_ATTR_CLAMP_MAX, value_.in(middle, highest)));
    out(y, d);
    // over a shift it would not be one the next time around a loop
    if (y != Elem::i32_) perhapsInPlace();
  }

  void table() {
    const Dims d = dims(0, 3);
    in(elem(0), d, Fill::corner);
    in(elem(1), {elem(0) == Elem::i16_ ? 513 : 256}, Fill::corner);
    out(elem(2), d);
    if (instr_.inputs[0].elem == instr_.outputs[0].elem && value_.chance(10))
      instr_.inputs[0] = instr_.outputs[0];
  }

  std::vector<int64_t> indices(int64_t count, int64_t size, bool areDistinct) {
    std::vector<int64_t> found, places(static_cast<size_t>(size));
    for (size_t i = 0; i < places.size(); ++i) places[i] = static_cast<int64_t>(i);
    for (size_t i = places.size(); i-- > 1;)
      std::swap(places[i], places[static_cast<size_t>(value_.in(0, static_cast<int64_t>(i)))]);
    for (int64_t k = 0; k < count; ++k) {
      static constexpr int64_t kOutside[] = {-1, -2, 1 << 20, INT32_MIN, INT32_MAX};
      if (size == 0 || value_.chance(15) || (areDistinct && k >= size))
        found.push_back(value_.chance(50) ? size : value_.of(kOutside));
      else
        found.push_back(areDistinct ? places[static_cast<size_t>(k)] : value_.in(0, size - 1));
    }
    return found;
  }
  void indexOperand(Elem e, const std::vector<int64_t>& values) {
    const Dims d{static_cast<int64_t>(values.size())};
    if (e == Elem::i64_) return given(e, d, values);
    given(e, d, std::vector<int32_t>(values.begin(), values.end()));
  }

  void gather() {
    Dims d = dims(3, 3, 1500);
    const int64_t count = shape_.in(0, 9);
    if (d[1] == 0 && row_.fn == CDL_GATHER_CLAMP) d[1] = 1;
    in(elem(0), d, Fill::corner);
    indexOperand(elem(1), indices(count, d[1], false));
    out(elem(2), {d[0], count, d[2]});
  }
  void scatter() {
    const Dims d = dims(3, 3, 1500);
    const int64_t count = shape_.in(0, 9);
    indexOperand(elem(0), indices(count, d[1], row_.fn == CDL_SCATTER_SET));
    in(elem(1), {d[0], count, d[2]}, Fill::corner);
    out(elem(2), d, Fill::corner);
    instr_.inout = true;
    case_.bound.anyZero = true;
  }

  void reduce() {
    const Dims d = dims(3, 3);
    const bool isReal = isFloat(elem(0)), isSum = row_.fn == CDL_REDUCE_SUM,
               isProduct = row_.fn == CDL_REDUCE_PROD;
    if ((row_.flags & CDL_ROW_PROLOGUE) && !(isReal && isProduct) && value_.chance(40))
      return reduceBehind(d, isReal && isSum);
    const bool withEpilogue = !(isReal && isProduct) && hasEpilogue();
    Fill fill = withEpilogue ? Fill::whole : Fill::corner;
    case_.bound.anyZero = isReal;
    if (isReal && (isSum || isProduct) && !withEpilogue) {
      const auto steps = static_cast<double>(d[1] + 2);
      const double one = elem(0) == Elem::f64_ ? 0x1p-53 : kEpsilon;
      fill = isProduct ? Fill::factor
                       : value_.of(std::vector<Fill>{Fill::whole, Fill::unit, Fill::broken});
      if (fill != Fill::whole)
        case_.bound.distance = [=](double value, double magnitude) {
          return steps * one * 1.01 * (isProduct ? std::abs(value) : magnitude);
        };
    }
    in(elem(0), d, fill);
    if (withEpilogue) epilogue({d[0], d[2]}, elem(0));
    out(elem(1), {d[0], d[2]});
  }
  /// Of what a prologue computes. `isRounded`: of numbers so small that no order of the terms
  /// rounds their sum.
  void reduceBehind(const Dims& d, bool isRounded) {
    static constexpr Elem kTypes[] = {Elem::f32_, Elem::i32_, Elem::i8_, Elem::u8_, Elem::bool_};
    const auto lie = [&] { return value_.chance(60) ? CDL_CLASS_BROADCAST : CDL_CLASS_AFFINE; };
    case_.bound.anyZero = isFloat(elem(0));
    if (isRounded) {
      for (int i = 0; i < 2; ++i) in(elem(0), d, Fill::whole, lie());
      const auto view = [&](uint16_t i) {
        return program::Operand{program::Operand::Source::view, elem(0), i};
      };
      instr_.expr = {{CDL_KIND_BINARY, CDL_BINARY_SUB, elem(0), false, {view(0), view(1)}, 0}};
    } else {
      for (int64_t i = value_.in(1, 3); i > 0; --i)
        in(value_.chance(60) ? elem(0) : value_.of(kTypes), d, Fill::whole, lie());
      isExact_ = true;
      expr(Elem::none, 0, elem(0));
      isExact_ = false;
    }
    instr_.prologue = static_cast<uint32_t>(instr_.expr.size());
    out(elem(1), {d[0], d[2]});
  }
  void argReduce() {
    Dims d = dims(3, 3);
    d[1] = std::max<int64_t>(d[1], 1);
    in(elem(0), d, value_.chance(50) ? Fill::whole : Fill::corner);
    if (value_.chance(60))
      instr_.attrs = {program::Attr::ofInt(CDL_ATTR_SELECT_LAST, value_.in(0, 1))};
    out(elem(1), {d[0], d[2]});
  }

  /// Of sums of products: exact on whole numbers, else within the roundings of `steps`.
  Fill fillOfSums(int64_t steps, bool isWhole) {
    if (!isFloat(elem(0))) return Fill::corner;
    case_.bound.anyZero = true;
    // An expression may read the sum before or after it is rounded to a half.
    if (isWhole && isHalf(elem(0))) return Fill::sparse;
    if (isWhole || value_.chance(40)) return Fill::whole;
    // The magnitude is rounded too.
    const double step = stepOf(elem(row_.elem_count - 1u));
    const double factor = static_cast<double>(steps + 2) * kEpsilon * (1.01 + step);
    case_.bound.distance = [factor, step](double value, double magnitude) {
      return factor * magnitude + step * std::abs(value);
    };
    return Fill::unit;
  }
  void accumulates() {
    const auto readsAcc = [](const program::Step& step) {
      return std::any_of(step.in.begin(), step.in.end(), [](const program::Operand& o) {
        return o.source == program::Operand::Source::acc;
      });
    };
    if (!value_.chance(row_.kind == CDL_KIND_CONV2D ? 2 : 20) ||
        !(instr_.expr.empty() || std::any_of(instr_.expr.begin(), instr_.expr.end(), readsAcc)))
      return;
    instr_.attrs.push_back(program::Attr::ofInt(CDL_ATTR_ACCUMULATE, 1));
    instr_.inout = true;
  }
  /// Not among the operands of a row: a backend may refuse them, and convolutions do when they are
  /// no constants.
  void zeroPoints(int64_t channels) {
    if (isFloat(elem(0)) || !value_.chance(40)) return;
    case_.isPlain = false;
    mustBeConstant_ = value_.chance(row_.kind == CDL_KIND_CONV2D ? 97 : 50);
    in(elem(0), value_.chance(50) ? Dims{} : Dims{1}, Fill::whole);
    const Dims ofB[] = {
        {}, {1}, {std::max<int64_t>(channels, 1)}, {std::max<int64_t>(channels, 1)}};
    if (value_.chance(60)) in(elem(1), value_.of(ofB), Fill::whole);
    mustBeConstant_ = false;
  }

  void matmul() {
    const Dims mk = dims(2, 2, 1500);
    const int64_t b = shape_.in(0, 3), m = mk[0], k = mk[1];
    int64_t n = extent();
    if (b * m * k * n > 60000) n = std::max<int64_t>(60000 / (b * m * k), 1);
    // Where the row's result is another type than that of the sums, the epilogue makes it.
    const Elem sum = isFloat(elem(0)) ? elem(0) : elem(0) == Elem::i16_ ? Elem::i64_ : Elem::i32_;
    const bool converts = elem(row_.elem_count - 1u) != sum,
               withEpilogue = converts || hasEpilogue();
    const Fill fill = fillOfSums(k, withEpilogue);
    in(elem(0), {b, m, k}, fill);
    mustBeConstant_ = value_.chance(40);
    in(elem(1), {b, k, n}, fill);
    mustBeConstant_ = false;
    for (program::View& operand : instr_.inputs)
      // the batch may repeat in every class
      if (shape_.chance(25) && operand.count()) operand.strides[0] = 0;
    zeroPoints(n);
    if (withEpilogue) epilogue({b, m, n}, sum);
    if (!converts) accumulates();
    out(elem(row_.elem_count - 1u), {b, m, n}, fill);
  }

  /// Whole numbers: exact sums are exact. Rounded ones differ by as much as adding them up in
  /// another order does.
  void scaledMatmul() {
    static constexpr int64_t kRows[] = {0, 1, 1, 1, 2, 3, 4, 5, 9, 16, 41, 99};
    const bool isDynamic = row_.fn == CDL_SCALED_MATMUL_DYNAMIC;
    const int64_t m = shape_.of(kRows);
    const int64_t n = extent();
    const int64_t word = std::max(8, 32 / elemBits(elem(1)));
    const bool isLong = !isDynamic && shape_.chance(15); // more than a part of the depth
    const int64_t mostBlocks = m < 16 ? 3 : 9;
    const int64_t g = isLong ? 1 : shape_.in(1, mostBlocks);
    const int64_t s = word * (isLong ? shape_.in(33, 80) : shape_.in(1, 9));
    const int64_t k = shape_.chance(60) ? g * s : g * s - shape_.in(0, s - 1);
    case_.isPlain = trips_.empty(); // whose weights are constants, and no other ones in each turn
    in(elem(0), {m, k}, Fill::whole);
    mustBeConstant_ = true;
    if (isFloat(elem(1)) && elemBits(elem(1)) >= 8) {
      in(elem(1), {n, g, s}, Fill::whole);
    } else {
      std::vector<uint8_t> weights(elemBytes(elem(1), static_cast<uint64_t>(n * g * s)));
      for (uint8_t& byte : weights) byte = static_cast<uint8_t>(value_.next());
      given(elem(1), {n, g, s}, weights);
    }
    in(elem(2), {n, g}, Fill::whole);
    if (row_.elem_count > 4) in(elem(3), {n, g}, Fill::whole);
    mustBeConstant_ = false;
    case_.bound.anyZero = true;
    if (isDynamic) {
      const double most = static_cast<double>(k) * 8 * (8 + 255) * 8;
      const double steps = static_cast<double>(g + 3) * kEpsilon;
      case_.bound.distance = [=](double, double) { return most * steps; };
    } else if (hasEpilogue()) {
      epilogue({m, n}, Elem::f32_);
    }
    out(Elem::f32_, {m, n});
  }

  /// Each score is as wrong as its sum of products may be, and each share by as much of itself.
  void attention() {
    static constexpr int64_t kRows[] = {0, 1, 1, 2, 3, 4, 5, 9, 16, 24, 61},
                             kWidths[] = {16, 32, 48};
    const int64_t b = shape_.in(0, 3), s = shape_.of(kRows), d = shape_.of(kWidths),
                  e = shape_.of(kWidths);
    const int64_t t = std::max<int64_t>(extent(), 1) + (shape_.chance(30) ? 130 : 0);
    in(elem(0), {b, s, d}, Fill::unit);
    in(elem(1), {b, t, d}, Fill::unit);
    in(elem(2), {b, t, e}, Fill::unit);
    if (row_.elem_count > 4) in(elem(3), {b, s, t}, Fill::whole);
    const double scale = value_.of(std::vector<double>{1, 0.125});
    instr_.attrs = {program::Attr::ofFloat(CDL_ATTR_SCALE, scale)};
    const double roundings = static_cast<double>(d * d) * scale + static_cast<double>(t) + 64;
    case_.bound.anyZero = true;
    case_.bound.distance = [=](double, double) { return 4 * kEpsilon * roundings; };
    out(Elem::f32_, {b, s, e});
  }

  void conv() {
    static constexpr int64_t kGroups[] = {1, 1, 1, 2, 3},
                             kChannels[] = {1, 3, 4, 5, 8, 15, 16, 17, 32};
    static constexpr int64_t kKernels[] = {1, 1, 2, 3, 3, 5, 6};
    const int64_t n = shape_.in(1, 2);
    int64_t group = shape_.of(kGroups), ins = shape_.of(kChannels), outs = shape_.of(kChannels);
    if (shape_.chance(25)) group = shape_.of(kChannels), ins = outs = 1;  // depthwise
    const bool isTransposed = elem(0) == Elem::f32_ && shape_.chance(30); // x and y change places
    Dims x{n, group * ins, 0, 0}, w{group * outs, ins, 0, 0}, y{n, group * outs, 0, 0}, strides(2),
        dilations(2), pads(4);
    // kernels side by side: 2, 1 or 2, 2
    const int64_t tile = isTransposed && shape_.chance(50) ? shape_.in(1, 2) : 0;
    for (size_t d = 0; d < 2; ++d) {
      w[2 + d] = shape_.of(kKernels);
      strides[d] = shape_.in(1, shape_.chance(50) ? 1 : 3);
      dilations[d] = isTransposed || shape_.chance(75) ? 1 : 2;
      if (tile) w[2 + d] = strides[d] = d ? tile : 2;
      const int64_t reach = (w[2 + d] - 1) * dilations[d] + 1;
      pads[d] = shape_.chance(50) ? 0 : shape_.in(0, 2);
      pads[d + 2] = shape_.chance(50) ? pads[d] : shape_.in(0, 2);
      x[2 + d] = shape_.in(std::max<int64_t>(1, reach - pads[d] - pads[d + 2]),
                           reach + (shape_.chance(30) ? 33 : 7));
      if (tile) pads[d] = pads[d + 2] = 0, x[2 + d] = shape_.in(1, 9) * (d ? 4 * tile : 2);
      y[2 + d] = (x[2 + d] + pads[d] + pads[d + 2] - reach) / strides[d] + 1;
    }
    const int64_t taps = (isTransposed ? outs : ins) * w[2] * w[3];
    while (product(y) * ins * w[2] * w[3] > 120000 && x[3] > 0) { // the oracle is slow
      if (y[2] > 1)
        x[2] -= strides[0], --y[2];
      else if (y[3] > 1)
        x[3] -= strides[1], --y[3];
      else
        break;
    }
    for (size_t d = 0; d < 2; ++d) {
      const int64_t reach = (w[2 + d] - 1) * dilations[d] + 1,
                    least = std::max<int64_t>(1, reach - pads[d] - pads[d + 2]);
      x[2 + d] = std::max(x[2 + d], least);
      y[2 + d] = (x[2 + d] + pads[d] + pads[d + 2] - reach) / strides[d] + 1;
    }
    if (isTransposed)
      std::swap(x, y), instr_.attrs.push_back(program::Attr::ofInt(CDL_ATTR_TRANSPOSED, 1));
    // Where the row's result is another type than that of the sums, the epilogue makes it.
    const Elem sum = isFloat(elem(0)) ? elem(0) : Elem::i32_;
    const bool converts = elem(row_.elem_count - 1u) != sum,
               withEpilogue = converts || hasEpilogue();
    const Fill fill = fillOfSums(taps, withEpilogue);
    in(elem(0), x, fill);
    mustBeConstant_ = value_.chance(70);
    in(elem(1), w, fill);
    mustBeConstant_ = false;
    zeroPoints(y[1]);
    const bool pad = pads != Dims(4, 0) || value_.chance(50);
    if (strides != Dims(2, 1) || value_.chance(50))
      instr_.attrs.push_back(program::Attr::ofInts(CDL_ATTR_STRIDES, strides));
    if (pad) instr_.attrs.push_back(program::Attr::ofInts(CDL_ATTR_PADS, pads));
    if (dilations != Dims(2, 1))
      instr_.attrs.push_back(program::Attr::ofInts(CDL_ATTR_DILATIONS, dilations));
    if (group != 1 || value_.chance(20))
      instr_.attrs.push_back(program::Attr::ofInt(CDL_ATTR_GROUP, group));
    if (withEpilogue) epilogue(y, sum);
    if (!converts) accumulates();
    out(elem(row_.elem_count - 1u), y, fill);
  }

  void pool() {
    const bool isAverage = row_.fn == CDL_POOL2D_AVERAGE;
    const bool withEpilogue = !isAverage && hasEpilogue();
    static constexpr int64_t kKernels[] = {1, 2, 3, 3, 6}, kChannels[] = {1, 3, 8, 16, 17};
    const int64_t n = shape_.in(0, 2), c = shape_.of(kChannels);
    Dims x{n, c, 0, 0}, y = x, kernel(2), strides(2), dilations(2), pads(4);
    for (size_t d = 0; d < 2; ++d) {
      kernel[d] = shape_.of(kKernels);
      strides[d] = shape_.in(1, 3);
      dilations[d] = shape_.chance(80) ? 1 : 2;
      const int64_t reach = (kernel[d] - 1) * dilations[d] + 1;
      pads[d] = shape_.chance(50) ? 0 : shape_.in(0, kernel[d] - 1);
      pads[d + 2] = shape_.chance(50) ? 0 : shape_.in(0, kernel[d] - 1);
      x[2 + d] = shape_.in(reach, reach + (shape_.chance(20) ? 40 : 9));
      y[2 + d] = (x[2 + d] + pads[d] + pads[d + 2] - reach) / strides[d] + 1;
    }
    const Fill fill = isAverage      ? fillOfSums(kernel[0] * kernel[1], false)
                      : withEpilogue ? Fill::whole
                                     : Fill::corner;
    if (isAverage) { // whole numbers or not, the mean is rounded
      const double factor = static_cast<double>(kernel[0] * kernel[1] + 3) * kEpsilon;
      case_.bound.distance = [factor](double, double magnitude) { return factor * magnitude; };
    }
    case_.bound.anyZero = true;
    in(elem(0), x, fill);
    instr_.attrs = {program::Attr::ofInts(CDL_ATTR_KERNEL, kernel),
                    program::Attr::ofInts(CDL_ATTR_STRIDES, strides)};
    if (pads != Dims(4, 0)) instr_.attrs.push_back(program::Attr::ofInts(CDL_ATTR_PADS, pads));
    if (dilations != Dims(2, 1))
      instr_.attrs.push_back(program::Attr::ofInts(CDL_ATTR_DILATIONS, dilations));
    if (isAverage && value_.chance(50))
      instr_.attrs.push_back(program::Attr::ofInt(CDL_ATTR_COUNT_INCLUDE_PAD, value_.in(0, 1)));
    if (withEpilogue) epilogue(y, elem(row_.elem_count - 1u));
    out(elem(1), y);
  }

  void scaleInput(float by, float moved) {
    std::vector<char>& bytes = out_.contents[instr_.inputs[0].buffer];
    for (size_t i = 0; i < bytes.size() / 4; ++i) {
      float value;
      std::memcpy(&value, bytes.data() + 4 * i, 4);
      put(bytes, i, value * by + moved);
    }
  }
  void realInput(const Dims& d, Fill fill) {
    do in(Elem::f32_, d, fill);
    while (p_.buffers[instr_.inputs.back().buffer].role == program::Role::constant &&
           (instr_.inputs.pop_back(), true));
  }

  void softmax() {
    const Dims d = dims(3, 3);
    realInput(d, value_.chance(15) ? Fill::broken : Fill::unit);
    const float scale = value_.of(std::vector<float>{1.0f, 10.0f, 100.0f}),
                moved = value_.chance(30) ? 1000.0f : 0.0f;
    scaleInput(scale, moved);
    out(Elem::f32_, d);
    const double n = static_cast<double>(d[1]), logN = std::log(n + 1);
    if (row_.fn == CDL_SOFTMAX_SOFTMAX) // x - max is rounded, and so is each of the n sums
      case_.bound.distance = [=](double value, double) {
        const double depth = value > 0 ? logN - std::log(value) : 110;
        return kEpsilon * (n + 8 + depth) * value + 3e-45;
      };
    else
      case_.bound.distance = [=](double value, double) {
        return kEpsilon * (2 * std::abs(value) + 4 * logN + n + 8);
      };
  }

  void norm() {
    const Dims d = dims(2, 2);
    realInput(d, Fill::unit);
    const float scale = value_.of(std::vector<float>{1.0f, 10.0f, 1e-3f}),
                moved = value_.chance(30) ? scale * 5 : 0.0f;
    scaleInput(scale, moved);
    const double epsilons[] = {1e-5, 1e-3, 3e-7, 1e-7, 1e-12};
    const double epsilon = value_.of(epsilons);
    instr_.attrs = {program::Attr::ofFloat(CDL_ATTR_EPSILON, epsilon)};
    for (size_t k = 1; k + 1 < row_.elem_count; ++k) in(Elem::f32_, {d[1]}, Fill::unit);
    out(Elem::f32_, d);
    const double largest = static_cast<double>(scale + std::abs(moved));
    const double steps = static_cast<double>(d[1] + 12) * kEpsilon * 2,
                 least = row_.fn == CDL_NORM_LAYER ? scale * 0.2 : scale * 0.2 + moved;
    // Rows of one element have no variance but epsilon.
    const double spread = d[1] < 3 ? std::sqrt(epsilon) : std::sqrt(least * least + epsilon);
    const double reach = largest / std::min(spread, std::sqrt(least * least + epsilon));
    case_.bound.distance = [=](double value, double) {
      return steps * reach * (1 + reach) + 4 * kEpsilon * std::abs(value);
    };
  }

  const std::vector<cdl_row_t>& rows_;
  Random shape_, value_;
  Cases& out_;
  program::Program& p_;
  cdl_row_t row_{};
  Case case_;
  program::Instr instr_;
  std::vector<int64_t> trips_;
  bool mustBeConstant_ = false, isExact_ = false;
};

} // namespace

Cases casesOf(const cdl_row_t& row, const std::vector<cdl_row_t>& rows, uint64_t seed, int pairs) {
  Cases cases;
  Maker maker(rows, cases);
  for (int i = 0; i < pairs; ++i) {
    const uint64_t shape = splitmix64(seed * 1000 + static_cast<uint64_t>(i));
    maker.make(row, shape, shape + 1);
    maker.make(row, shape, shape + 2);
  }
  return cases;
}

} // namespace candela::test
