#include "tests/fuzz/random_program.h"

#include <algorithm>
#include <bit>
#include <map>
#include <span>

#include "core/compiler/program/bands.h"

namespace candela::test {

namespace {

constexpr Elem kFloats[] = {Elem::f32_, Elem::f16_, Elem::bf16_, Elem::f64_};
constexpr Elem kInts[] = {Elem::i8_,  Elem::u8_,  Elem::i16_, Elem::u16_,
                          Elem::i32_, Elem::u32_, Elem::i64_, Elem::u64_};
constexpr Elem kRescaled[] = {Elem::i8_, Elem::u8_, Elem::i16_, Elem::u16_, Elem::i32_};
constexpr Elem kSigned[] = {Elem::i8_, Elem::i16_, Elem::i32_, Elem::i64_};
constexpr Elem kNumbers[] = {Elem::f32_, Elem::f16_, Elem::bf16_, Elem::f64_,
                             Elem::i8_,  Elem::u8_,  Elem::i16_,  Elem::u16_,
                             Elem::i32_, Elem::u32_, Elem::i64_,  Elem::u64_};
constexpr Elem kAny[] = {Elem::f32_, Elem::f16_, Elem::bf16_, Elem::f64_, Elem::i8_,
                         Elem::u8_,  Elem::i16_, Elem::u16_,  Elem::i32_, Elem::u32_,
                         Elem::i64_, Elem::u64_, Elem::bool_};
constexpr Elem kStored[] = {Elem::f8e4m3_, Elem::f8e5m2_, Elem::f8e4m3fnuz_, Elem::f8e8m0_,
                            Elem::f6e3m2_, Elem::f4e2m1_, Elem::i4_,         Elem::u4_,
                            Elem::i2_,     Elem::u2_};

constexpr std::string_view kNames[] = {"x",         "conv1.out", "/model.0/conv/Conv_output_0",
                                       "a b",       "quo\"te",   "back\\slash",
                                       "new\nline", "\xc3\xbc",  "\xff\x01",
                                       "9lives",    "@at",       "in"};

using Dims = std::vector<int64_t>;

class Generator {
public:
  Generator(uint64_t seed, const RandomOptions& options) : rng_(seed), options_(options) {}

  program::Program generate() {
    p_.name = name();
    p_.engines = static_cast<uint32_t>(rng_.in(1, 4));
    p_.spaces.clear();
    for (int64_t i = 0, count = rng_.in(1, 3); i < count; ++i) {
      program::Space space;
      space.name = fmt::format("{}{}", name(), i);
      space.hostMapped = rng_.chance(70);
      space.local = i > 0 && rng_.chance(50);
      space.capacityBytes = rng_.chance(30) ? uint64_t(1) << 40 : 0;
      space.alignment = uint32_t(1) << rng_.in(4, 8);
      space.banks = rng_.chance(30) ? static_cast<uint32_t>(rng_.in(1, 16)) : 0;
      p_.spaces.push_back(std::move(space));
    }
    budget_ = rng_.in(0, options_.instrs);
    block(0);
    for (program::Group& group : p_.groups)
      if (!program::verifyBands(p_, group)) group.bands = 1;
    return std::move(p_);
  }

private:
  std::string name() { return std::string(rng_.of(kNames)); }

  // ---- Regions
  // -----------------------------------------------------------------------------------

  void block(int depth) {
    do {
      const bool open = budget_ > 1 && rng_.chance(25);
      if (open && depth < CDL_MAX_LOOP_NESTING && rng_.chance(60))
        inLoop([&] { block(depth + 1); });
      else if (open && group_ == program::kNone)
        inGroup([&] { block(depth); });
      else if (budget_ > 0)
        instr();
      else
        return;
    } while (depth == 0 && group_ == program::kNone ? budget_ > 0 : rng_.chance(60));
  }

  template <typename Body> void inLoop(const Body& body) {
    const auto index = static_cast<uint32_t>(p_.loops.size());
    const auto first = static_cast<uint32_t>(p_.instrs.size());
    p_.loops.push_back({first, 0, loop_, static_cast<uint64_t>(rng_.in(1, 5))});
    loop_ = index;
    body();
    loop_ = p_.loops[index].parent;
    p_.loops[index].count = static_cast<uint32_t>(p_.instrs.size()) - first;
  }

  template <typename Body> void inGroup(const Body& body) {
    const auto index = static_cast<uint32_t>(p_.groups.size());
    const auto first = static_cast<uint32_t>(p_.instrs.size());
    p_.groups.push_back(
        {first, 0, static_cast<uint32_t>(rng_.in(0, 7)), static_cast<uint32_t>(rng_.in(1, 9))});
    group_ = index;
    body();
    group_ = program::kNone;
    p_.groups[index].count = static_cast<uint32_t>(p_.instrs.size()) - first;
  }

  // ---- Buffers and views
  // -----------------------------------------------------------------------------

  Payload payload(Elem elem, int64_t count) {
    if (rng_.chance(40)) return Payload::splat(elem, count, bits(elem));
    auto tensor = Tensor::zeros(elem, {count});
    CDL_CHECK(tensor.isOk());
    std::byte* data = tensor->bytes.mutableData();
    for (uint64_t i = 0; i < tensor->sizeBytes(); ++i)
      data[i] = std::byte(rng_.next() & (elem == Elem::bool_     ? 1
                                         : elem == Elem::f6e3m2_ ? 63
                                                                 : 255));
    return Payload::data(std::move(*tensor));
  }

  /// A buffer with room for so many elements.
  uint32_t buffer(Elem elem, int64_t count, bool written, bool constant) {
    if (constant) {
      const int64_t per = elemsPerByte(elem);
      count = std::max<int64_t>((count + per - 1) / per * per, 1);
      if (count <= 64 || (options_.largeConstants && count <= 512))
        return p_.addConstant(name(), payload(elem, count));
      return p_.addConstant(name(), Payload::splat(elem, count, bits(elem)));
    }
    program::Buffer b;
    b.name = name();
    b.bytes = elemBytes(elem, static_cast<uint64_t>(count)) + static_cast<uint64_t>(rng_.in(0, 3));
    b.alignment = uint32_t(1) << rng_.in(3, 7);
    if (rng_.chance(40)) {
      static constexpr program::Role kWritten[] = {program::Role::output, program::Role::inout,
                                                   program::Role::state};
      static constexpr program::Role kRead[] = {program::Role::input, program::Role::inout,
                                                program::Role::state, program::Role::output};
      b.role = written ? rng_.of(kWritten) : rng_.of(kRead);
    } else {
      b.space = static_cast<uint32_t>(rng_.in(0, static_cast<int64_t>(p_.spaces.size()) - 1));
      // apart from all others: what an instruction reads is not what it writes
      if (rng_.chance(60)) {
        uint64_t& end = ends_[b.space];
        b.offset = ((end + b.alignment - 1) / b.alignment + static_cast<uint64_t>(rng_.in(0, 9))) *
                   b.alignment;
        end = b.offset + b.bytes;
      }
    }
    if (rng_.chance(15)) {
      program::Halo halo;
      halo.elem = elem;
      // Of more dims than any view here has: around a view of its own rank a border must lie within
      // the buffer.
      for (int64_t d = 0; d < CDL_MAX_RANK; ++d) {
        halo.lo.push_back(static_cast<uint32_t>(rng_.in(0, 3)));
        halo.hi.push_back(static_cast<uint32_t>(rng_.in(0, 3)));
      }
      halo.fill = bits(elem);
      b.halo = std::move(halo);
    }
    return p_.addBuffer(std::move(b));
  }

  /// How often the loops around the current instruction run; 0: no such loop.
  std::array<int64_t, 2> trips() const {
    if (loop_ == program::kNone) return {0, 0};
    const program::Loop& inner = p_.loops[loop_];
    if (inner.parent == program::kNone) return {static_cast<int64_t>(inner.trip), 0};
    return {static_cast<int64_t>(p_.loops[inner.parent].trip), static_cast<int64_t>(inner.trip)};
  }

  /// A view of these dims in a buffer that holds all that it reaches.
  program::View view(Elem elem, Dims dims, bool written, const program::Layout& layout = {},
                     bool mayBeConstant = true) {
    program::View v = program::denseView(0, elem, std::move(dims));
    v.layout = layout;
    const int64_t unit = elemsPerByte(elem);
    if (rng_.chance(50) && unit == 1) {
      std::vector<size_t> order(v.dims.size());
      for (size_t d = 0; d < order.size(); ++d) order[d] = d;
      for (size_t d = order.size(); d-- > 1;)
        std::swap(order[d], order[static_cast<size_t>(rng_.in(0, static_cast<int64_t>(d)))]);
      int64_t step = rng_.in(1, 2);
      for (size_t d : order) {
        v.strides[d] = rng_.chance(20) ? -step : step;
        step = step * std::max<int64_t>(v.dims[d], 1) + rng_.in(0, 2);
        if (!written && rng_.chance(15)) v.strides[d] = 0;
      }
    }
    const auto trip = trips();
    int64_t low = 0, high = 0;
    const auto reach = [&](int64_t last, int64_t stride) {
      (stride < 0 ? low : high) += last * stride;
    };
    const bool empty = std::find(v.dims.begin(), v.dims.end(), 0) != v.dims.end();
    for (size_t d = 0; d < v.dims.size() && !empty; ++d) reach(v.dims[d] - 1, v.strides[d]);
    for (size_t l = 0; l < 2; ++l) {
      if (trip[l] && rng_.chance(50)) v.ivStrides[l] = rng_.in(-3, 8) * unit;
      if (trip[l]) reach(trip[l] - 1, v.ivStrides[l]);
    }
    v.offset = -low + (rng_.chance(30) ? rng_.in(0, 5) * unit : 0);
    const bool constant = mayBeConstant && !written && rng_.chance(25);
    v.buffer = buffer(elem, v.offset + high + 1, written, constant);
    return v;
  }

  program::View in(Elem elem, Dims dims, const program::Layout& layout = {}) {
    return view(elem, std::move(dims), false, layout);
  }
  program::View out(Elem elem, Dims dims, const program::Layout& layout = {}) {
    return view(elem, std::move(dims), true, layout);
  }

  int64_t extent() { return rng_.chance(5) ? 0 : rng_.in(1, 5); }
  Dims dims(int64_t lowest = 0, int64_t highest = 4) {
    Dims d(static_cast<size_t>(rng_.in(lowest, highest)));
    for (int64_t& extent : d) extent = this->extent();
    return d;
  }

  /// A layout for physical dims of this rank: some dims are split.
  program::Layout layout(size_t rank) {
    program::Layout l;
    if (rank == 0 || !rng_.chance(25)) return l;
    l.padContent = static_cast<uint8_t>(rng_.in(0, 2));
    const auto logical = static_cast<uint8_t>(rng_.in(1, static_cast<int64_t>(rank)));
    l.logicalRank = logical;
    std::vector<bool> seen(logical, false);
    for (size_t i = 0; i < rank; ++i) {
      uint8_t d =
          static_cast<uint8_t>(i < logical ? i : static_cast<size_t>(rng_.in(0, logical - 1)));
      const bool open = !seen[d] && rng_.chance(70);
      seen[d] = true;
      l.steps.push_back({d, open ? 0 : static_cast<uint32_t>(rng_.in(1, 16))});
    }
    return l;
  }

  uint64_t bits(Elem elem) {
    static constexpr double kReals[] = {0.0, -0.0, 1.0, -1.5, 0.1, 6.0, 1e-30, 3e38, 0.044715};
    if (elem == Elem::bool_) return static_cast<uint64_t>(rng_.in(0, 1));
    if (elem == Elem::f32_ && rng_.chance(60))
      return std::bit_cast<uint32_t>(static_cast<float>(rng_.of(kReals)));
    if (elem == Elem::f64_ && rng_.chance(60)) return std::bit_cast<uint64_t>(rng_.of(kReals));
    if (elem == Elem::f6e3m2_) return static_cast<uint64_t>(rng_.in(0, 63));
    const uint64_t random = rng_.chance(30) ? static_cast<uint64_t>(rng_.in(0, 9)) : rng_.next();
    return elemBits(elem) == 64 ? random : random & ((uint64_t(1) << elemBits(elem)) - 1);
  }

  // ---- Expressions
  // -----------------------------------------------------------------------------------

  program::Operand operandOf(const program::Instr& instr, Elem acc, size_t firstView) {
    std::vector<program::Operand> from;
    if (acc != Elem::none) from.push_back({program::Operand::Source::acc, acc, 0});
    for (size_t i = firstView; i < instr.inputs.size(); ++i)
      from.push_back(
          {program::Operand::Source::view, instr.inputs[i].elem, static_cast<uint16_t>(i)});
    for (size_t i = 0; i < instr.expr.size(); ++i)
      from.push_back(
          {program::Operand::Source::step, instr.expr[i].elem, static_cast<uint16_t>(i)});
    return rng_.of(from);
  }

  /// Another operand of the same type: one that is there, or a constant.
  program::Operand mate(const program::Instr& instr, Elem acc, size_t firstView, Elem elem,
                        program::Step& step) {
    for (int attempt = 0; attempt < 4; ++attempt)
      if (const program::Operand found = operandOf(instr, acc, firstView); found.elem == elem)
        return found;
    step.imm = bits(elem);
    return {program::Operand::Source::constant, elem, 0};
  }

  uint16_t fn(uint16_t kind) {
    std::vector<uint16_t> fns;
    for (uint16_t f = 0; !fnName(kind, f).empty(); ++f) fns.push_back(f);
    return fns.empty() ? 0 : rng_.of(fns);
  }

  uint16_t binaryFn(Elem elem) {
    static constexpr uint16_t kBits[] = {CDL_BINARY_AND, CDL_BINARY_OR, CDL_BINARY_XOR};
    if (elem == Elem::bool_) return rng_.of(kBits);
    const uint16_t f = fn(CDL_KIND_BINARY);
    return isFloat(elem) && f >= CDL_BINARY_AND && f <= CDL_BINARY_SHR ? uint16_t(CDL_BINARY_ADD)
                                                                       : f;
  }

  void convertStep(program::Instr& instr, const program::Operand& from, Elem to) {
    program::Step step{CDL_KIND_CONVERT, fn(CDL_KIND_CONVERT), to, rng_.chance(50), {from}, 0};
    instr.expr.push_back(std::move(step));
  }

  /// Steps over the accumulator (none: there is none) and the views from firstView on; the value
  /// has type `result`.
  void expr(program::Instr& instr, Elem acc, size_t firstView, Elem result) {
    const int64_t count = rng_.in(1, rng_.chance(10) ? 30 : 6);
    while (static_cast<int64_t>(instr.expr.size()) < count) {
      const program::Operand a = operandOf(instr, acc, firstView);
      program::Step step;
      step.elem = a.elem;
      const int64_t choice = isStorageOnly(a.elem) ? 3 : rng_.in(0, 4);
      if (choice == 0 && a.elem != Elem::bool_ && !isUnsigned(a.elem)) {
        step.kind = CDL_KIND_UNARY;
        step.fn = isFloat(a.elem) ? fn(CDL_KIND_UNARY) : static_cast<uint16_t>(rng_.in(0, 1));
        step.in = {a};
      } else if (choice == 1) {
        step.kind = CDL_KIND_COMPARE;
        step.fn = fn(CDL_KIND_COMPARE);
        step.elem = Elem::bool_;
        step.in = {a, mate(instr, acc, firstView, a.elem, step)};
      } else if (choice == 2) {
        step.kind = CDL_KIND_SELECT;
        program::Operand cond{program::Operand::Source::constant, Elem::bool_, 0};
        for (size_t i = 0; i < instr.expr.size(); ++i)
          if (instr.expr[i].elem == Elem::bool_)
            cond = {program::Operand::Source::step, Elem::bool_, static_cast<uint16_t>(i)};
        if (cond.source == program::Operand::Source::constant)
          step.imm = static_cast<uint64_t>(rng_.in(0, 1));
        step.in = {cond, a,
                   cond.source == program::Operand::Source::constant
                       ? a
                       : mate(instr, acc, firstView, a.elem, step)};
      } else if (choice == 3) {
        convertStep(instr, a, rng_.of(kAny));
        continue;
      } else {
        step.kind = CDL_KIND_BINARY;
        step.fn = binaryFn(a.elem);
        const program::Operand b = mate(instr, acc, firstView, a.elem, step);
        step.in = rng_.chance(50) ? std::vector<program::Operand>{a, b}
                                  : std::vector<program::Operand>{b, a};
      }
      instr.expr.push_back(std::move(step));
    }
    if (const Elem last = instr.expr.back().elem; last != result)
      convertStep(
          instr,
          {program::Operand::Source::step, last, static_cast<uint16_t>(instr.expr.size() - 1)},
          result);
  }

  /// Perhaps an epilogue: the result then has any type, with the accumulator's own one inside.
  void epilogue(program::Instr& instr, Elem own, const Dims& y) {
    if (!rng_.chance(50)) {
      instr.outputs = {out(own, y)};
      return;
    }
    const Elem result = rng_.chance(50) ? own : rng_.of(kAny);
    const size_t operands = instr.inputs.size();
    for (int64_t i = 0, views = rng_.in(0, 3); i < views; ++i)
      instr.inputs.push_back(in(rng_.of(kAny), y));
    instr.outputs = {out(result, y)};
    expr(instr, own, operands, result);
    // The first view behind the operands must be read, or it would count as an operand.
    const bool read =
        std::any_of(instr.expr.begin(), instr.expr.end(), [&](const program::Step& step) {
          return std::any_of(step.in.begin(), step.in.end(), [&](const program::Operand& o) {
            return o.source == program::Operand::Source::view && o.index == operands;
          });
        });
    if (!read && instr.inputs.size() > operands)
      instr.expr.insert(instr.expr.begin(), readStep(instr, operands));
  }

  /// A step in front of all others; their indices move by one.
  program::Step readStep(program::Instr& instr, size_t view) {
    for (program::Step& step : instr.expr)
      for (program::Operand& operand : step.in)
        if (operand.source == program::Operand::Source::step) ++operand.index;
    const Elem elem = instr.inputs[view].elem;
    return {CDL_KIND_CONVERT,
            0,
            elem,
            false,
            {{program::Operand::Source::view, elem, static_cast<uint16_t>(view)}},
            0};
  }

  // ---- Instructions
  // ----------------------------------------------------------------------------------

  void instr() {
    --budget_;
    static constexpr uint16_t kKinds[] = {
#define CANDELA_KIND(name, id, ...) id,
        CDL_KINDS(CANDELA_KIND)
#undef CANDELA_KIND
    };
    program::Instr i;
    i.kind = rng_.of(kKinds);
    i.fn = fn(i.kind);
    i.engine = static_cast<uint16_t>(rng_.in(0, p_.engines - 1));
    fill(i);
    i.loop = loop_;
    i.group = group_;
    for (uint32_t w = 0; w < p_.instrs.size(); ++w)
      if (p_.instrs[w].loop == loop_ && rng_.chance(20)) i.waits.push_back(w);
    static constexpr std::string_view kOps[] = {"conv", "Relu", "", "weird op", "x.y"};
    for (int64_t k = rng_.in(0, 2); k > 0; --k)
      i.provenance.push_back({name(), std::string(rng_.of(kOps))});
    p_.instrs.push_back(std::move(i));
  }

  void fill(program::Instr& i) {
    switch (i.kind) {
    case CDL_KIND_GATHER:
    case CDL_KIND_SCATTER: return gather(i);
    case CDL_KIND_REDUCE:
    case CDL_KIND_ARG_REDUCE: return reduce(i);
    case CDL_KIND_SORT: return sort(i);
    case CDL_KIND_MATMUL:
    case CDL_KIND_CONV2D: return contraction(i);
    case CDL_KIND_POOL2D: return pool(i);
    case CDL_KIND_TABLE: return table(i);
    case CDL_KIND_SOFTMAX:
    case CDL_KIND_NORM:
    case CDL_KIND_ATTENTION: return composite(i);
    case CDL_KIND_SCALED_MATMUL: return scaledMatmul(i);
    case CDL_KIND_CUSTOM: return custom(i);
    default: return elementwise(i);
    }
  }

  void elementwise(program::Instr& i) {
    const Dims d = dims();
    const program::Layout l = layout(d.size());
    Elem e = rng_.of(kAny);
    switch (i.kind) {
    case CDL_KIND_COPY: {
      const bool stored = !d.empty() && d.back() % 2 == 0 && l.isRowMajor() && rng_.chance(10);
      const bool evenRows =
          stored && std::all_of(d.begin(), d.end(), [](int64_t x) { return x % 2 == 0; });
      if (evenRows) e = rng_.of(kStored);
      i.inputs = {in(e, d, l)};
      i.outputs = {out(e, d, l)};
      return;
    }
    case CDL_KIND_FILL:
      i.outputs = {out(e, d, l)};
      i.attrs = {program::Attr::ofBits(CDL_ATTR_VALUE, bits(e))};
      return;
    case CDL_KIND_CONVERT:
      i.inputs = {in(rng_.of(kAny), d, l)};
      i.outputs = {out(e, d, l)};
      if (rng_.chance(50)) i.attrs = {program::Attr::ofInt(CDL_ATTR_SATURATE, rng_.in(0, 1))};
      return;
    case CDL_KIND_BINARY:
      i.fn = binaryFn(e);
      i.inputs = {in(e, d, l), in(e, d, l)};
      break;
    case CDL_KIND_COMPARE:
      i.inputs = {in(e, d, l), in(e, d, l)};
      e = Elem::bool_;
      break;
    case CDL_KIND_SELECT: i.inputs = {in(Elem::bool_, d, l), in(e, d, l), in(e, d, l)}; break;
    case CDL_KIND_UNARY:
      e = rng_.chance(80) ? rng_.of(kFloats) : rng_.of(kSigned);
      if (!isFloat(e)) i.fn = static_cast<uint16_t>(rng_.in(CDL_UNARY_NEG, CDL_UNARY_ABS));
      i.inputs = {in(e, d, l)};
      break;
    case CDL_KIND_RESCALE:
      i.inputs = {in(rng_.of(kRescaled), d, l), in(Elem::i32_, d, l), in(Elem::i32_, d, l),
                  in(Elem::i32_, d, l)};
      if (rng_.chance(40)) {
        i.inputs.push_back(in(rng_.of(kRescaled), d, l));
        i.inputs.push_back(in(Elem::i32_, d, l));
        i.attrs.push_back(program::Attr::ofInt(CDL_ATTR_B_LEFT_SHIFT, rng_.in(0, 7)));
      }
      if (rng_.chance(50))
        i.attrs.push_back(program::Attr::ofInt(CDL_ATTR_CLAMP_MAX, rng_.in(0, 100)));
      e = rng_.of(kInts);
      if (e == Elem::u64_) e = Elem::i64_;
      break;
    default: // ELEMENTWISE
      for (int64_t k = rng_.in(1, 4); k > 0; --k) i.inputs.push_back(in(rng_.of(kAny), d, l));
      expr(i, Elem::none, 0, e);
    }
    i.outputs = {out(e, d, l)};
  }

  void gather(program::Instr& i) {
    const int64_t o = extent(), k = extent(), inner = extent();
    const int64_t n =
        i.kind == CDL_KIND_GATHER && i.fn == CDL_GATHER_CLAMP ? rng_.in(1, 5) : extent();
    const Elem e = rng_.of(kAny);
    const Elem index = rng_.chance(50) ? Elem::i32_ : Elem::i64_;
    if (i.kind == CDL_KIND_GATHER) {
      i.inputs = {in(e, {o, n, inner}), in(index, {k})};
      i.outputs = {out(e, {o, k, inner})};
      return;
    }
    i.inputs = {in(index, {k}), in(e, {o, k, inner})};
    i.outputs = {out(e, {o, n, inner})};
    i.inout = true;
  }

  void sort(program::Instr& i) {
    Dims d = dims(3, 3);
    const Elem e = rng_.of(kAny);
    i.inputs = {in(e, d)};
    d[1] = rng_.in(0, d[1]);
    i.outputs = {out(e, d), out(Elem::i32_, d)};
  }

  void reduce(program::Instr& i) {
    Dims d = dims(3, 3);
    const bool arg = i.kind == CDL_KIND_ARG_REDUCE;
    if (arg) d[1] = std::max<int64_t>(d[1], 1);
    if (!arg && rng_.chance(40)) return reduceBehind(i, d);
    const Elem e = arg ? rng_.of(kNumbers) : rng_.of(kAny);
    i.inputs = {in(e, d)};
    if (!arg) return epilogue(i, e, {d[0], d[2]});
    i.outputs = {out(rng_.chance(50) ? Elem::i32_ : Elem::i64_, {d[0], d[2]})};
    if (rng_.chance(50)) i.attrs = {program::Attr::ofInt(CDL_ATTR_SELECT_LAST, rng_.in(0, 1))};
  }

  /// Of what a prologue computes.
  void reduceBehind(program::Instr& i, const Dims& d) {
    for (int64_t k = rng_.in(1, 3); k > 0; --k) i.inputs.push_back(in(rng_.of(kAny), d));
    const Elem e = rng_.of(kAny);
    const Dims y{d[0], d[2]};
    expr(i, Elem::none, 0, e);
    i.prologue = static_cast<uint32_t>(i.expr.size());
    program::Instr behind;
    behind.inputs = i.inputs;
    epilogue(behind, e, y);
    if (behind.expr.size() + i.prologue > CDL_MAX_STEPS) {
      i.outputs = {out(e, y)};
      return;
    }
    i.inputs = behind.inputs, i.outputs = behind.outputs;
    for (program::Step& step : behind.expr) {
      for (program::Operand& operand : step.in)
        if (operand.source == program::Operand::Source::step)
          operand.index = static_cast<uint16_t>(operand.index + i.prologue);
      i.expr.push_back(std::move(step));
    }
  }

  void contraction(program::Instr& i) {
    struct Types {
      Elem a, b, y;
    };
    static constexpr Types kTypes[] = {
        {Elem::f32_, Elem::f32_, Elem::f32_},    {Elem::f16_, Elem::f16_, Elem::f32_},
        {Elem::bf16_, Elem::bf16_, Elem::bf16_}, {Elem::i8_, Elem::i8_, Elem::i32_},
        {Elem::u8_, Elem::i8_, Elem::i32_},      {Elem::i16_, Elem::i8_, Elem::i64_}};
    const Types t = rng_.of(kTypes);
    const bool matmul = i.kind == CDL_KIND_MATMUL;
    Dims y;
    int64_t channels = 1;
    if (matmul) {
      const int64_t b = extent(), m = extent(), k = extent(), n = extent();
      i.inputs = {in(t.a, {b, m, k}), in(t.b, {b, k, n})};
      y = {b, m, n};
      channels = n;
    } else {
      y = convolution(i, t.a, t.b);
      channels = y[1];
    }
    if (isInteger(t.a) && rng_.chance(40)) {
      i.inputs.push_back(rng_.chance(50) ? in(t.a, {}) : in(t.a, {1}));
      if (rng_.chance(50))
        i.inputs.push_back(in(t.b, {rng_.chance(50) ? 1 : std::max<int64_t>(channels, 1)}));
    }
    if (rng_.chance(25)) {
      i.attrs.push_back(program::Attr::ofInt(CDL_ATTR_ACCUMULATE, 1));
      i.inout = true;
      i.outputs = {out(t.y, y)};
      return;
    }
    epilogue(i, t.y, y);
  }

  Dims convolution(program::Instr& i, Elem a, Elem b) {
    const int64_t group = rng_.in(1, 2), n = rng_.in(1, 2), c = group * rng_.in(1, 3),
                  o = group * rng_.in(1, 3);
    const bool transposed = rng_.chance(20);
    Dims x{n, c, 0, 0}, w{transposed ? c : o, (transposed ? o : c) / group, 0, 0}, y{n, o, 0, 0};
    Dims strides(2), dilations(2), pads(4);
    for (size_t d = 0; d < 2; ++d) {
      const int64_t kernel = rng_.in(1, 3);
      strides[d] = rng_.in(1, 2);
      dilations[d] = rng_.in(1, 2);
      pads[d] = rng_.in(0, 1);
      pads[d + 2] = rng_.in(0, 1);
      const int64_t reach = (kernel - 1) * dilations[d] + 1;
      x[2 + d] = rng_.in(reach, reach + 4);
      w[2 + d] = kernel;
      y[2 + d] =
          transposed
              ? std::max<int64_t>(0, (x[2 + d] - 1) * strides[d] + reach - pads[d] - pads[d + 2])
              : (x[2 + d] + pads[d] + pads[d + 2] - reach) / strides[d] + 1;
    }
    i.inputs = {in(a, x), in(b, w)};
    i.attrs = {program::Attr::ofInts(CDL_ATTR_STRIDES, strides),
               program::Attr::ofInts(CDL_ATTR_PADS, pads),
               program::Attr::ofInts(CDL_ATTR_DILATIONS, dilations),
               program::Attr::ofInt(CDL_ATTR_GROUP, group)};
    if (transposed) i.attrs.push_back(program::Attr::ofInt(CDL_ATTR_TRANSPOSED, 1));
    return y;
  }

  void pool(program::Instr& i) {
    const Elem e = i.fn == CDL_POOL2D_AVERAGE ? rng_.of(kFloats) : rng_.of(kNumbers);
    const int64_t kernel = rng_.in(1, 3), stride = rng_.in(1, 2), h = rng_.in(3, 6),
                  w = rng_.in(3, 6);
    // Half of them on a blocked layout: channels in blocks of 4 behind the spatial dims.
    const int64_t n = rng_.in(1, 2), blocks = rng_.in(1, 2);
    program::Layout blocked;
    if (rng_.chance(50)) {
      blocked.logicalRank = 4;
      blocked.steps = {{0, 0}, {1, 0}, {2, 0}, {3, 0}, {1, 4}};
    }
    const auto shape = [&](int64_t a, int64_t b) {
      return blocked.isRowMajor() ? Dims{n, blocks, a, b} : Dims{n, blocks, a, b, 4};
    };
    i.inputs = {in(e, shape(h, w), blocked)};
    i.outputs = {out(e, shape((h - kernel) / stride + 1, (w - kernel) / stride + 1), blocked)};
    i.attrs = {program::Attr::ofInts(CDL_ATTR_KERNEL, {kernel, kernel}),
               program::Attr::ofInts(CDL_ATTR_STRIDES, {stride, stride})};
  }

  void table(program::Instr& i) {
    static constexpr Elem kTypes[] = {Elem::i8_, Elem::u8_, Elem::i16_};
    const Elem e = rng_.of(kTypes);
    const Dims d = dims();
    i.inputs = {in(e, d), in(e, {e == Elem::i16_ ? 513 : 256})};
    i.outputs = {out(e, d)};
  }

  void composite(program::Instr& i) {
    const Elem e = rng_.of(kFloats);
    const int64_t b = extent(), s = extent(), t = extent(), d = extent(), v = extent();
    if (i.kind == CDL_KIND_SOFTMAX) {
      i.inputs = {in(e, {b, s, t})};
      i.outputs = {out(e, {b, s, t})};
    } else if (i.kind == CDL_KIND_NORM) {
      i.inputs = {in(e, {b, s}), in(e, {s})};
      i.outputs = {out(e, {b, s})};
      i.attrs = {program::Attr::ofFloat(
          CDL_ATTR_EPSILON, rng_.chance(50) ? 1e-5 : std::bit_cast<double>(rng_.next()))};
    } else {
      i.inputs = {in(e, {b, s, d}), in(e, {b, t, d}), in(e, {b, t, v})};
      if (rng_.chance(50)) i.inputs.push_back(in(e, {b, s, t}));
      i.outputs = {out(e, {b, s, v})};
      i.attrs = {program::Attr::ofFloat(CDL_ATTR_SCALE, 0.125)};
    }
  }

  /// Whole blocks but for the last one; packed weights of even blocks.
  void scaledMatmul(program::Instr& i) {
    static constexpr Elem kWeights[] = {Elem::i4_, Elem::u4_, Elem::i8_, Elem::u8_};
    static constexpr Elem kScales[] = {Elem::f32_, Elem::f16_, Elem::bf16_, Elem::f8e8m0_};
    const bool isDynamic = i.fn == CDL_SCALED_MATMUL_DYNAMIC;
    const Elem a = rng_.of(std::span(kFloats, 3));
    const int64_t m = extent();
    const int64_t n = extent();
    const int64_t g = rng_.in(1, 3);
    const int64_t s = 2 * rng_.in(1, 4);
    const int64_t k = g * s - rng_.in(0, s - 1);
    i.inputs = {in(a, {m, k}), in(rng_.of(kWeights), {n, g, s}), in(rng_.of(kScales), {n, g})};
    if (rng_.chance(40)) i.inputs.push_back(in(Elem::u8_, {n, g}));
    if (i.inputs.size() > 3 && !isDynamic && rng_.chance(40))
      i.inputs.push_back(in(rng_.of(kScales), {m, g}));
    epilogue(i, rng_.of(std::span(kFloats, 3)), {m, n});
  }

  /// What only CUSTOM may have: any function, attributes that nobody knows, opaque layouts, many
  /// results.
  void custom(program::Instr& i) {
    i.fn = static_cast<uint16_t>(rng_.in(0, 65535));
    for (int64_t k = rng_.in(0, 3); k > 0; --k) i.inputs.push_back(in(rng_.of(kAny), dims()));
    program::Layout opaque;
    opaque.opaque = true;
    opaque.name = name();
    opaque.logicalRank = 2;
    if (rng_.chance(50)) opaque.steps = {{0, 0}, {1, 0}, {0, 8}};
    program::View packed =
        program::denseView(p_.addConstant(name(), payload(Elem::i8_, 40)), Elem::i8_, {100, 7});
    packed.layout = opaque;
    i.inputs.push_back(packed);
    for (int64_t k = rng_.in(1, 3); k > 0; --k) i.outputs.push_back(out(rng_.of(kAny), dims()));
    i.inout = rng_.chance(50);
    i.attrs = {
        {static_cast<uint16_t>(rng_.in(100, 65535)), 1, {std::numeric_limits<int64_t>::min()}},
        {CDL_ATTR_AXIS, 3, {1, -2, 3, 4, 5, 6, 7, 8}},
        {CDL_ATTR_SCALE, 2, {static_cast<int64_t>(rng_.next())}},
        {CDL_ATTR_VALUE, 4, {static_cast<int64_t>(rng_.next())}}};
  }

  Random rng_;
  RandomOptions options_;
  program::Program p_;
  int64_t budget_ = 0;
  std::map<uint32_t, uint64_t> ends_; ///< of what is placed in each space
  uint32_t loop_ = program::kNone, group_ = program::kNone;
};

} // namespace

program::Program randomProgram(uint64_t seed, const RandomOptions& options) {
  return Generator(seed, options).generate();
}

} // namespace candela::test
