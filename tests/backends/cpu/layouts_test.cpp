// Convolutions and pools on channels in blocks of 16 and on buffers with a halo: the same numbers
// as row-major, which the oracle runs. All values are small integers, so that every sum is exact.
#include <gtest/gtest.h>

#include <numeric>

#include "core/reference/interpreter/interp.h"
#include "tests/backends/cpu/machine.h"
#include "tests/fuzz/random_program.h"

namespace candela::test {
namespace {

using Dims = std::vector<int64_t>;

constexpr int64_t kBlock = 16;

program::Layout layoutOf(std::initializer_list<std::pair<int, int>> steps) {
  program::Layout layout;
  layout.logicalRank = 4;
  for (const auto& [dim, factor] : steps)
    layout.steps.push_back({static_cast<uint8_t>(dim), static_cast<uint32_t>(factor)});
  return layout;
}

/// How a tensor of 4 dims lies in memory.
struct Form {
  enum class Kind { rows, blocks, halo, weights6, weights5, last, fours } kind = Kind::rows;
  uint32_t lo[2] = {0, 0}, hi[2] = {0, 0}; ///< halo of the last two dims, of halo and last
  /// of a larger content: the border around it is content, not halo
  bool isPart = false;

  program::View view(uint32_t buffer, Elem elem, const Dims& d) const {
    program::View v = program::denseView(buffer, elem, physical(d));
    if (kind == Kind::blocks) v.layout = layoutOf({{0, 0}, {1, 0}, {2, 0}, {3, 0}, {1, 16}});
    if (kind == Kind::weights6)
      v.layout = layoutOf({{0, 0}, {1, 0}, {2, 0}, {3, 0}, {1, 16}, {0, 16}});
    if (kind == Kind::weights5) v.layout = layoutOf({{0, 0}, {2, 0}, {3, 0}, {1, 0}, {0, 16}});
    if (kind == Kind::fours) v.layout = layoutOf({{0, 0}, {2, 0}, {3, 0}, {1, 0}, {0, 16}, {1, 4}});
    if (kind == Kind::last) {
      v.layout = layoutOf({{0, 0}, {2, 0}, {3, 0}, {1, 0}});
      v.strides[1] = (d[3] + lo[1] + hi[1]) * d[1];
      v.strides[0] = v.strides[1] * (d[2] + lo[0] + hi[0]);
      v.offset = lo[0] * v.strides[1] + lo[1] * v.strides[2];
    }
    if (kind == Kind::halo) {
      v.strides[2] = d[3] + lo[1] + hi[1];
      v.strides[1] = v.strides[2] * (d[2] + lo[0] + hi[0]);
      v.strides[0] = v.strides[1] * d[1];
      v.offset = lo[0] * v.strides[2] + lo[1];
    }
    return v;
  }
  Dims physical(const Dims& d) const {
    switch (kind) {
    case Kind::blocks: return {d[0], d[1] / kBlock, d[2], d[3], kBlock};
    case Kind::weights6: return {d[0] / kBlock, d[1] / kBlock, d[2], d[3], kBlock, kBlock};
    case Kind::weights5: return {d[0] / kBlock, d[2], d[3], d[1], kBlock};
    case Kind::last: return {d[0], d[2], d[3], d[1]};
    case Kind::fours: return {d[0] / kBlock, d[2], d[3], d[1] / 4, kBlock, 4};
    default: return d;
    }
  }
  int64_t elements(const Dims& d) const {
    return d[0] * d[1] * (d[2] + lo[0] + hi[0]) * (d[3] + lo[1] + hi[1]);
  }
  /// Where an element lies.
  int64_t at(const Dims& d, int64_t a, int64_t b, int64_t c, int64_t e) const {
    // (index, extent), outer first
    const auto in = [](std::initializer_list<std::pair<int64_t, int64_t>> indices) {
      int64_t at = 0;
      for (const auto& [index, extent] : indices) at = at * extent + index;
      return at;
    };
    switch (kind) {
    case Kind::blocks:
      return in(
          {{a, d[0]}, {b / kBlock, d[1] / kBlock}, {c, d[2]}, {e, d[3]}, {b % kBlock, kBlock}});
    case Kind::weights6:
      return in({{a / kBlock, d[0] / kBlock},
                 {b / kBlock, d[1] / kBlock},
                 {c, d[2]},
                 {e, d[3]},
                 {b % kBlock, kBlock},
                 {a % kBlock, kBlock}});
    case Kind::weights5:
      return in(
          {{a / kBlock, d[0] / kBlock}, {c, d[2]}, {e, d[3]}, {b, d[1]}, {a % kBlock, kBlock}});
    case Kind::last:
      return in({{a, d[0]},
                 {c + lo[0], d[2] + lo[0] + hi[0]},
                 {e + lo[1], d[3] + lo[1] + hi[1]},
                 {b, d[1]}});
    case Kind::fours:
      return in({{a / kBlock, d[0] / kBlock},
                 {c, d[2]},
                 {e, d[3]},
                 {b / 4, d[1] / 4},
                 {a % kBlock, kBlock},
                 {b % 4, 4}});
    default:
      return in({{a, d[0]},
                 {b, d[1]},
                 {c + lo[0], d[2] + lo[0] + hi[0]},
                 {e + lo[1], d[3] + lo[1] + hi[1]}});
    }
  }
};

/// A tensor in row-major order, in another form; what is not an element is `fill`.
template <typename T>
std::vector<char> arranged(const std::vector<T>& rows, const Dims& d, const Form& form, T fill) {
  std::vector<T> out(static_cast<size_t>(form.elements(d)), fill);
  size_t next = 0;
  for (int64_t a = 0; a < d[0]; ++a)
    for (int64_t b = 0; b < d[1]; ++b)
      for (int64_t c = 0; c < d[2]; ++c)
        for (int64_t e = 0; e < d[3]; ++e)
          out[static_cast<size_t>(form.at(d, a, b, c, e))] = rows[next++];
  std::vector<char> bytes(out.size() * sizeof(T));
  std::memcpy(bytes.data(), out.data(), bytes.size());
  return bytes;
}

/// One random convolution or pool, in any forms.
struct Problem {
  uint16_t kind, fn = 0;
  Elem elem, result;
  Dims x, w, y, kernel, strides{1, 1}, dilations{1, 1}, pads{0, 0, 0, 0};
  int64_t group = 1;
  bool hasBias = false, isConstant = true;
  std::vector<int8_t> xs, ws, bias;

  Problem(uint16_t kind, uint16_t fn, Elem elem, Random& random) : kind(kind), fn(fn), elem(elem) {
    const bool isPool = kind == CDL_KIND_POOL2D;
    result = isPool || elem == Elem::f32_ ? elem : Elem::i32_;
    const int64_t n = random.in(1, 2), ins = kBlock * random.in(1, 2);
    int64_t outs = isPool ? ins : kBlock * random.in(1, 3);
    if (!isPool && random.chance(30)) group = ins, outs = ins; // depthwise
    if (!isPool && group == 1 && ins == 32 && outs == 32 && random.chance(30)) group = 2;
    if (!isPool && elem != Elem::f32_ && group == 1 && random.chance(30))
      group = kBlock / random.in(1, 2); // within blocks
    x = {n, ins, 0, 0}, w = {outs, ins / group, 0, 0}, y = {n, outs, 0, 0}, kernel = {0, 0};
    for (size_t d = 0; d < 2; ++d) {
      kernel[d] = random.in(1, 3), strides[d] = random.in(1, 2),
      dilations[d] = random.chance(80) ? 1 : 2;
      pads[d] = random.in(0, kernel[d] - 1), pads[d + 2] = random.in(0, kernel[d] - 1);
      const int64_t reach = (kernel[d] - 1) * dilations[d] + 1;
      x[2 + d] = random.in(reach, reach + 9), w[2 + d] = kernel[d];
      y[2 + d] = (x[2 + d] + pads[d] + pads[d + 2] - reach) / strides[d] + 1;
    }
    hasBias = result != Elem::u8_ && random.chance(50), isConstant = random.chance(70);
    const auto numbers = [&](const Dims& d, int64_t low) {
      std::vector<int8_t> values(static_cast<size_t>(*elementCount(d)));
      for (int8_t& value : values) value = static_cast<int8_t>(random.in(low, 8));
      return values;
    };
    xs = numbers(x, elem == Elem::u8_ ? 0 : -8), ws = numbers(w, -8), bias = numbers({outs}, -8);
  }

  std::vector<char> content(const std::vector<int8_t>& values, const Dims& d, const Form& form,
                            Elem as, float fill = 0) const {
    if (as == Elem::f32_)
      return arranged(std::vector<float>(values.begin(), values.end()), d, form, fill);
    if (as == Elem::i32_)
      return arranged(std::vector<int32_t>(values.begin(), values.end()), d, form, 0);
    return arranged(values, d, form, static_cast<int8_t>(fill));
  }

  program::Program program(const Form& xForm, const Form& wForm, const Form& yForm,
                           Compiled::Contents& contents) const {
    program::Program p;
    contents.clear();
    const auto buffer = [&](const char* name, program::Role role, std::vector<char> bytes, Elem e) {
      contents.push_back(std::move(bytes));
      const auto size = contents.back().size();
      if (role == program::Role::constant) {
        const Tensor tensor{e,
                            {static_cast<int64_t>(size) * 8 / elemBits(e)},
                            Bytes::copyOf(contents.back().data(), size)};
        return p.addConstant(name, Payload::data(tensor));
      }
      program::Buffer b;
      b.name = name, b.bytes = size, b.role = role;
      return p.addBuffer(std::move(b));
    };
    const bool isPool = kind == CDL_KIND_POOL2D, isMax = isPool && fn == CDL_POOL2D_MAX;
    const float lowest = !isMax ? 0 : elem == Elem::f32_ ? -INFINITY : elem == Elem::i8_ ? -128 : 0;
    program::Instr i;
    i.kind = kind, i.fn = fn;
    i.inputs = {xForm.view(buffer("x", program::Role::input,
                                  content(xs, x, xForm, elem, xForm.isPart ? 7 : lowest), elem),
                           elem, x)};
    if (xForm.kind == Form::Kind::halo || xForm.kind == Form::Kind::last) {
      uint64_t bits = 0;
      if (elem == Elem::f32_)
        std::memcpy(&bits, &lowest, 4);
      else
        bits = static_cast<uint8_t>(static_cast<int8_t>(lowest));
      const auto around = [&](uint32_t h, uint32_t w) {
        return xForm.kind == Form::Kind::last ? std::vector<uint32_t>{0, h, w, 0}
                                              : std::vector<uint32_t>{0, 0, h, w};
      };
      if (xForm.isPart)
        p.buffers[0].halo = program::Halo{elem, around(2, 2), around(2, 2), bits};
      else if (xForm.lo[0] + xForm.lo[1] + xForm.hi[0] + xForm.hi[1])
        p.buffers[0].halo = program::Halo{elem, around(xForm.lo[0], xForm.lo[1]),
                                          around(xForm.hi[0], xForm.hi[1]), bits};
    }
    const Elem wElem = elem == Elem::f32_ ? elem : Elem::i8_;
    if (!isPool)
      i.inputs.push_back(
          wForm.view(buffer("w", isConstant ? program::Role::constant : program::Role::input,
                            content(ws, w, wForm, wElem), wElem),
                     wElem, w));
    if (hasBias) { // max(acc + bias, 0)
      const auto index = static_cast<uint16_t>(i.inputs.size());
      program::View v = yForm.view(
          buffer("bias", program::Role::input, content(bias, {1, 1, 1, y[1]}, {}, result), result),
          result, y);
      v.strides = v.dims.size() == 5               ? Dims{0, kBlock, 0, 0, 1}
                  : yForm.kind == Form::Kind::last ? Dims{0, 0, 0, 1}
                                                   : Dims{0, 1, 0, 0};
      v.offset = 0;
      i.inputs.push_back(v);
      i.expr = {{CDL_KIND_BINARY,
                 CDL_BINARY_ADD,
                 result,
                 false,
                 {{program::Operand::Source::acc, result, 0},
                  {program::Operand::Source::view, result, index}},
                 0},
                {CDL_KIND_BINARY,
                 CDL_BINARY_MAX,
                 result,
                 false,
                 {{program::Operand::Source::step, result, 0},
                  {program::Operand::Source::constant, result, 0}},
                 0}};
    }
    i.outputs = {yForm.view(buffer("y", program::Role::output, {}, result), result, y)};
    p.buffers[i.outputs[0].buffer].bytes =
        elemBytes(result, static_cast<uint64_t>(yForm.elements(y)));
    i.attrs = {program::Attr::ofInts(CDL_ATTR_STRIDES, strides),
               program::Attr::ofInts(CDL_ATTR_PADS, pads),
               program::Attr::ofInts(CDL_ATTR_DILATIONS, dilations)};
    if (isPool)
      i.attrs.push_back(program::Attr::ofInts(CDL_ATTR_KERNEL, kernel));
    else
      i.attrs.push_back(program::Attr::ofInt(CDL_ATTR_GROUP, group));
    p.instrs = {std::move(i)};
    return p;
  }

  std::string text() const {
    return fmt::format("{} {} x[{}] w[{}] y[{}] strides[{}] dilations[{}] pads[{}] group {}",
                       kindName(kind), elemName(elem), fmt::join(x, ","), fmt::join(w, ","),
                       fmt::join(y, ","), fmt::join(strides, ","), fmt::join(dilations, ","),
                       fmt::join(pads, ","), group);
  }
};

std::vector<Tensor> inputsOf(const program::Program& p, const Compiled::Contents& contents) {
  std::vector<Tensor> tensors;
  for (size_t b = 0; b < p.buffers.size(); ++b)
    if (p.buffers[b].role == program::Role::input)
      tensors.push_back({Elem::u8_,
                         {static_cast<int64_t>(contents[b].size())},
                         Bytes::copyOf(contents[b].data(), contents[b].size())});
  return tensors;
}

class CpuLayouts : public testing::Test {
protected:
  void SetUp() override {
    if (tiers().empty()) GTEST_SKIP() << "this processor lacks AVX2, FMA, F16C or BMI2";
    for (const std::string& isa : tiers()) {
      devices_.push_back(openCpu(isa, 1));
      grounds_.push_back(std::make_unique<Ground>(devices_.back()));
    }
  }

  /// The same numbers as row-major on the tier whose turn it is. False: refused, or wrong.
  bool judge(const Problem& problem, const Form& xForm, const Form& wForm, const Form& yForm) {
    Compiled::Contents rows, other;
    const program::Program plain = problem.program({}, {}, {}, rows);
    const auto expected = reference::interpret(plain, inputsOf(plain, rows));
    if (!expected) return ADD_FAILURE() << expected.status().message(), false;
    const program::Program p = problem.program(xForm, wForm, yForm, other);
    const Status verified = program::verify(p);
    if (!verified) return ADD_FAILURE() << verified.message() << "\n" << problem.text(), false;
    const size_t tier = turn_++ % devices_.size();
    const Compiled compiled(devices_[tier], p);
    if (compiled.code() == CDL_REFUSED) return false;
    if (compiled.code() != CDL_OK)
      return ADD_FAILURE() << compiled.text() << "\n" << problem.text(), false;
    const uint32_t out = p.instrs[0].outputs[0].buffer;
    const Bytes& bytes = expected->front().bytes;
    std::vector<char> want;
    const auto arrange = [&]<typename T>(T) {
      std::vector<T> values(bytes.size() / sizeof(T));
      std::memcpy(values.data(), bytes.data(), bytes.size());
      want = arranged(values, problem.y, yForm, T{});
    };
    if (problem.result == Elem::f32_)
      arrange(0.0f);
    else if (problem.result == Elem::i32_)
      arrange(int32_t{});
    else
      arrange(int8_t{});
    for (const bool atEnd : {true, false}) {
      const std::vector<char> got = compiled.execute(*grounds_[tier], other, atEnd)[out];
      for (size_t i = 0; i < want.size(); ++i)
        if (got[i] != want[i] &&
            !(problem.result == Elem::f32_ && isZero(got, i) && isZero(want, i)))
          return ADD_FAILURE() << "byte " << i << " on " << tiers()[tier] << ": " << problem.text(),
                 false;
    }
    return true;
  }

  static bool isZero(const std::vector<char>& bytes, size_t i) {
    float value;
    std::memcpy(&value, bytes.data() + i / 4 * 4, 4);
    return value == 0;
  }

  std::vector<std::shared_ptr<runtime::plugin::Device>> devices_;
  std::vector<std::unique_ptr<Ground>> grounds_;
  size_t turn_ = 0;
};

const Form kRows{}, kBlocks{Form::Kind::blocks, {0, 0}, {0, 0}, false},
    kLast{Form::Kind::last, {0, 0}, {0, 0}, false},
    kFours{Form::Kind::fours, {0, 0}, {0, 0}, false},
    kWeights6{Form::Kind::weights6, {0, 0}, {0, 0}, false},
    kWeights5{Form::Kind::weights5, {0, 0}, {0, 0}, false};

/// y = x with its dims in another order, of sizes around the squares that are turned in registers,
/// alone and inside of larger buffers.
TEST_F(CpuLayouts, CopiesIntoAnotherOrder) {
  Random random(8);
  const Elem elems[] = {Elem::u8_, Elem::i16_, Elem::f32_, Elem::i64_};
  for (int i = 0; i < 120 && !HasFailure(); ++i) {
    const Elem elem = random.of(elems);
    const auto size = static_cast<size_t>(elemBits(elem) / 8);
    std::vector<size_t> order(static_cast<size_t>(random.in(2, 4)));
    std::iota(order.begin(), order.end(), 0);
    for (size_t d = order.size(); d-- > 1;)
      std::swap(order[d], order[static_cast<size_t>(random.in(0, int64_t(d)))]);
    Dims dims, room; // of x; of the buffer that it lies in
    for (size_t d = 0; d < order.size(); ++d) {
      dims.push_back(d + 2 >= order.size() || order[d] + 1 == order.size() ? random.in(7, 35)
                                                                           : random.in(1, 3));
      room.push_back(dims[d] + (random.chance(30) ? random.in(1, 3) : 0));
    }
    program::Program p;
    const auto buffer = [&](const char* name, program::Role role, int64_t count) {
      program::Buffer b;
      b.name = name, b.bytes = static_cast<uint64_t>(count) * size, b.role = role;
      return p.addBuffer(std::move(b));
    };
    program::View x = program::denseView(0, elem, room);
    x.buffer = buffer("x", program::Role::input, x.count());
    x.dims = dims;
    Dims turnedDims;
    for (const size_t d : order) turnedDims.push_back(dims[d]);
    program::View y = program::denseView(0, elem, turnedDims), from = x;
    y.buffer = buffer("y", program::Role::output, y.count());
    for (size_t d = 0; d < order.size(); ++d)
      from.dims[d] = x.dims[order[d]], from.strides[d] = x.strides[order[d]];
    program::Instr copy;
    copy.kind = CDL_KIND_COPY;
    copy.inputs = {from};
    copy.outputs = {y};
    p.instrs = {copy};

    Compiled::Contents contents(2);
    for (size_t byte = 0; byte < p.buffers[0].bytes; ++byte)
      contents[0].push_back(static_cast<char>(random.next()));
    std::vector<char> want(p.buffers[1].bytes);
    for (int64_t n = 0; n < y.count(); ++n) {
      int64_t at = 0, rest = n;
      for (size_t d = order.size(); d-- > 0; rest /= y.dims[d])
        at += rest % y.dims[d] * from.strides[d];
      std::memcpy(want.data() + static_cast<size_t>(n) * size,
                  contents[0].data() + static_cast<size_t>(at) * size, size);
    }
    const size_t tier = turn_++ % devices_.size();
    const Compiled compiled(devices_[tier], p);
    ASSERT_EQ(compiled.code(), CDL_OK) << compiled.text();
    for (const bool atEnd : {true, false})
      EXPECT_EQ(compiled.execute(*grounds_[tier], contents, atEnd)[1], want)
          << "copy " << i << " of " << elemName(elem) << " " << shapeText(dims) << " on "
          << tiers()[tier];
  }
}

TEST_F(CpuLayouts, ConvolutionsOfBlocks) {
  Random random(1);
  int taken = 0;
  for (int i = 0; i < 60 && !HasFailure(); ++i) {
    const Problem problem(CDL_KIND_CONV2D, 0, Elem::f32_, random);
    const bool isDepthwise = problem.w[1] == 1;
    const Form weights[] = {isDepthwise ? kWeights5 : kRows, isDepthwise ? kWeights5 : kWeights6,
                            kWeights5};
    taken += judge(problem, random.chance(75) ? kBlocks : kRows, random.of(weights),
                   random.chance(75) ? kBlocks : kRows);
  }
  EXPECT_GT(taken, 35);
}

TEST_F(CpuLayouts, IntegerConvolutionsOfBlocks) {
  Random random(2);
  int taken = 0;
  for (int i = 0; i < 40 && !HasFailure(); ++i) {
    const Problem problem(CDL_KIND_CONV2D, 0, random.chance(50) ? Elem::i8_ : Elem::u8_, random);
    taken += judge(problem, kBlocks, kRows, kRows);
  }
  EXPECT_GT(taken, 20);
}

TEST_F(CpuLayouts, IntegersWithChannelsLast) {
  Random random(6);
  int taken = 0;
  for (int i = 0; i < 100 && !HasFailure(); ++i) {
    const bool isPool = random.chance(20);
    Problem problem(isPool ? CDL_KIND_POOL2D : CDL_KIND_CONV2D, CDL_POOL2D_MAX,
                    random.chance(50) ? Elem::i8_ : Elem::u8_, random);
    Form last = kLast;
    last.isPart = random.chance(20);
    for (size_t d = 0; d < 2 && random.chance(70); ++d) {
      last.lo[d] = static_cast<uint32_t>(random.in(0, 3)) + (last.isPart ? 3 : 0);
      last.hi[d] = static_cast<uint32_t>(random.in(0, 3)) + (last.isPart ? 3 : 0);
    }
    if (last.isPart) last.lo[1] = last.lo[0] = last.hi[1] = last.hi[0] = 3;
    const bool takesFours = !isPool && problem.group == 1 && problem.isConstant;
    taken += judge(problem, isPool || random.chance(80) ? last : kRows,
                   takesFours && random.chance(80) ? kFours : kRows, kLast);
  }
  EXPECT_EQ(taken, 100);
}

TEST_F(CpuLayouts, PoolsOfBlocks) {
  Random random(3);
  int taken = 0;
  for (int i = 0; i < 60 && !HasFailure(); ++i) {
    static constexpr Elem kTypes[] = {Elem::f32_, Elem::i8_, Elem::u8_};
    taken += judge(Problem(CDL_KIND_POOL2D, CDL_POOL2D_MAX, random.of(kTypes), random), kBlocks,
                   kRows, kBlocks);
  }
  EXPECT_EQ(taken, 60);
}

TEST_F(CpuLayouts, BordersThatTheBufferHolds) {
  Random random(4);
  int taken = 0;
  for (int i = 0; i < 60 && !HasFailure(); ++i) {
    static constexpr Elem kTypes[] = {Elem::f32_, Elem::f32_, Elem::i8_, Elem::u8_};
    const bool isPool = random.chance(40);
    const Problem problem(isPool ? CDL_KIND_POOL2D : CDL_KIND_CONV2D, 0, random.of(kTypes), random);
    Form halo{Form::Kind::halo, {0, 0}, {0, 0}, random.chance(30)};
    for (size_t d = 0; d < 2; ++d) {
      halo.lo[d] = static_cast<uint32_t>(random.in(0, 3)) + (halo.isPart ? 3 : 0);
      halo.hi[d] = static_cast<uint32_t>(random.in(0, 3)) + (halo.isPart ? 3 : 0);
    }
    taken += judge(problem, halo, kRows, kRows);
  }
  EXPECT_EQ(taken, 60);
}

TEST_F(CpuLayouts, FloatsWithChannelsLast) {
  Random random(5);
  int taken = 0;
  for (int i = 0; i < 60 && !HasFailure(); ++i) {
    Problem problem(CDL_KIND_CONV2D, 0, Elem::f32_, random);
    const bool isDepthwise = problem.group > 1;
    taken +=
        judge(problem, random.chance(50) ? kLast : kRows, isDepthwise ? kRows : kWeights5, kLast);
  }
  EXPECT_GT(taken, 30);
}

/// Blocks where the other image has channels last: no emitter has a walk for both.
TEST_F(CpuLayouts, MixedPoolsAreRefused) {
  Random random(5);
  Problem problem(CDL_KIND_POOL2D, 0, Elem::f32_, random);
  problem.hasBias = false;
  Compiled::Contents contents;
  const program::Program p = problem.program(kLast, kRows, kRows, contents);
  ASSERT_TRUE(program::verify(p).isOk()) << program::verify(p).message();
  EXPECT_EQ(Compiled(devices_.back(), p).code(), CDL_REFUSED) << problem.text();
}

} // namespace
} // namespace candela::test
