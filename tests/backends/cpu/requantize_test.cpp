// An integer product or convolution with a RESCALE behind it, which one kernel may do at once: the
// same bits as the oracle, whatever the shapes of bias, multipliers, shifts and zero points.
#include <gtest/gtest.h>

#include <numeric>

#include "core/compiler/program/text.h"
#include "core/reference/interpreter/interp.h"
#include "tests/backends/cpu/machine.h"
#include "tests/fuzz/random_program.h"

namespace candela::test {
namespace {

using Dims = std::vector<int64_t>;

/// Of the channels of a RESCALE.
struct Shifts {
  int64_t least = 28, most = 36;
};

class Maker {
public:
  Maker(uint64_t seed, Compiled::Contents& contents, Shifts shifts)
      : random_(seed), contents_(contents), leastShift_(shifts.least), mostShift_(shifts.most) {}

  program::Program make() {
    const bool isConv = random_.chance(50);
    const Elem a = random_.chance(50) ? Elem::u8_ : Elem::i8_;
    program::Instr i;
    if (isConv) {
      static constexpr int64_t kChannels[] = {4, 8, 12, 16, 20, 32, 33};
      const int64_t n = random_.in(1, 2), ins = random_.of(kChannels), outs = random_.of(kChannels),
                    h = random_.in(1, 5), w = random_.in(1, 6), kernel = random_.in(1, 2);
      i.kind = CDL_KIND_CONV2D;
      isLast_ = random_.chance(60);
      y_ = isLast_ ? Dims{n, h, w, outs} : Dims{n, outs, h, w};
      channel_ = isLast_ ? 3 : 1;
      const int64_t tall = h + kernel - 1, wide = w + kernel - 1;
      i.inputs = {dense(a, isLast_ ? Dims{n, tall, wide, ins} : Dims{n, ins, tall, wide},
                        program::Role::input),
                  dense(Elem::i8_, {outs, ins, kernel, kernel}, program::Role::constant)};
    } else {
      const int64_t b = random_.in(1, 2), m = random_.in(1, 20), k = 4 * random_.in(1, 6),
                    n = random_.in(1, 40);
      i.kind = CDL_KIND_MATMUL;
      y_ = {b, m, n}, channel_ = 2;
      i.inputs = {dense(a, {b, m, k}, program::Role::input),
                  dense(Elem::i8_, {b, k, n}, program::Role::constant)};
      if (random_.chance(70)) i.inputs[1].strides[0] = 0;
    }
    if (random_.chance(40)) i.inputs.push_back(dense(a, {1}, program::Role::constant));
    if (random_.chance(60)) {
      const auto index = static_cast<uint16_t>(i.inputs.size());
      i.inputs.push_back(parameter(-100000, 100000));
      const program::Operand acc{program::Operand::Source::acc, Elem::i32_, 0},
          bias{program::Operand::Source::view, Elem::i32_, index};
      i.expr = {{CDL_KIND_BINARY,
                 random_.chance(85) ? uint16_t(CDL_BINARY_ADD) : uint16_t(CDL_BINARY_SUB),
                 Elem::i32_, false,
                 random_.chance(50) ? std::vector<program::Operand>{acc, bias}
                                    : std::vector<program::Operand>{bias, acc},
                 0}};
    }
    if (random_.chance(40)) return withStep(std::move(i));
    const uint32_t sums = buffer(Elem::i32_, count(y_),
                                 random_.chance(85) ? program::Role::temp : program::Role::output);
    i.outputs = {program::denseView(sums, Elem::i32_, y_)};
    if (isLast_)
      for (program::View* view :
           {&i.inputs[0], i.expr.empty() ? &i.inputs[0] : &i.inputs.back(), &i.outputs[0]})
        layLast(*view);
    p_.instrs.push_back(std::move(i));

    const Elem to = random_.chance(50) ? Elem::u8_ : Elem::i8_;
    program::Instr r;
    r.kind = CDL_KIND_RESCALE;
    r.inputs = {program::denseView(sums, Elem::i32_, y_), multipliers(),
                parameter(leastShift_, mostShift_), parameter(0, 30)};
    const bool joins = random_.chance(50);
    const uint32_t own = buffer(to, count(y_), joins ? program::Role::temp : program::Role::output);
    r.outputs = {program::denseView(own, to, y_)};
    if (random_.chance(30))
      r.attrs.push_back(program::Attr::ofInt(CDL_ATTR_CLAMP_MIN, to == Elem::u8_ ? 20 : -50));
    if (random_.chance(30)) r.attrs.push_back(program::Attr::ofInt(CDL_ATTR_CLAMP_MAX, 60));
    if (random_.chance(20))
      r.attrs.push_back(program::Attr::ofInt(CDL_ATTR_A_LEFT_SHIFT, random_.in(1, 6)));
    p_.instrs.push_back(std::move(r));
    if (joins) p_.instrs.push_back(join(own, to));
    return std::move(p_);
  }

private:
  static void layLast(program::View& view) {
    view.layout.logicalRank = 4;
    view.layout.steps = {{0, 0}, {2, 0}, {3, 0}, {1, 0}};
  }

  /// The product with the RESCALE as the last step of its epilogue.
  program::Program withStep(program::Instr i) {
    const Elem to = random_.chance(50) ? Elem::u8_ : Elem::i8_;
    const auto from =
        i.expr.empty() ? program::Operand::Source::acc : program::Operand::Source::step;
    program::Step last{CDL_KIND_RESCALE, 0, to, false, {{from, Elem::i32_, 0}}, 0};
    const auto first = static_cast<uint16_t>(i.inputs.size() - i.expr.size());
    for (const program::View& each :
         {multipliers(), parameter(leastShift_, mostShift_), parameter(0, 30)}) {
      last.in.push_back(
          {program::Operand::Source::view, Elem::i32_, static_cast<uint16_t>(i.inputs.size())});
      i.inputs.push_back(each);
    }
    const int32_t low = to == Elem::u8_      ? (random_.chance(30) ? 20 : 0)
                        : random_.chance(30) ? -50
                                             : -128;
    const int32_t high = random_.chance(30) ? 60 : to == Elem::u8_ ? 255 : 127;
    last.imm = static_cast<uint32_t>(low) | static_cast<uint64_t>(high) << 32;
    i.expr.push_back(std::move(last));
    if (random_.chance(20)) // something behind it: no requantization of the kernel's own
      i.expr.push_back(
          {CDL_KIND_BINARY,
           CDL_BINARY_MAX,
           to,
           false,
           {{program::Operand::Source::step, to, static_cast<uint16_t>(i.expr.size() - 1)},
            {program::Operand::Source::constant, to, 0}},
           7});
    const bool joins = random_.chance(50);
    const uint32_t own = buffer(to, count(y_), joins ? program::Role::temp : program::Role::output);
    i.outputs = {program::denseView(own, to, y_)};
    if (isLast_) {
      layLast(i.inputs[0]), layLast(i.outputs[0]);
      for (size_t v = first; v < i.inputs.size(); ++v) layLast(i.inputs[v]);
    }
    p_.instrs.push_back(std::move(i));
    if (joins) p_.instrs.push_back(join(own, to));
    return std::move(p_);
  }

  /// clamp(rne((own * Ma * 2^ka + other * Mb * 2^kb) / 2^s) + zero), either operand first.
  program::Instr join(uint32_t own, Elem elem) {
    const Elem other = random_.chance(50) ? Elem::u8_ : Elem::i8_,
               to = random_.chance(50) ? Elem::u8_ : Elem::i8_;
    const bool isFirst = random_.chance(50);
    const program::View mine = program::denseView(own, elem, y_);
    const program::View foreign =
        program::denseView(buffer(other, count(y_), program::Role::input), other, y_);
    const auto number = [&](int64_t low, int64_t high) {
      program::View v =
          program::denseView(constant(Tensor::of<int32_t>(
                                 Elem::i32_, {1}, {static_cast<int32_t>(random_.in(low, high))})),
                             Elem::i32_, y_);
      v.strides.assign(y_.size(), 0);
      return v;
    };
    // Powers of two among the scales make ties.
    const auto scale = [&] {
      return random_.chance(30) ? number(1 << 23, 1 << 23) : number(1 << 23, (1 << 24) - 1);
    };
    program::Instr r;
    r.kind = CDL_KIND_RESCALE;
    r.inputs = {isFirst ? mine : foreign, scale(), number(20, 30), number(-20, 20),
                isFirst ? foreign : mine, scale()};
    r.outputs = {program::denseView(buffer(to, count(y_), program::Role::output), to, y_)};
    if (random_.chance(40)) r.attrs.push_back(program::Attr::ofInt(CDL_ATTR_CLAMP_MIN, 0));
    if (random_.chance(40))
      r.attrs.push_back(program::Attr::ofInt(CDL_ATTR_A_LEFT_SHIFT, random_.in(1, 8)));
    if (random_.chance(40))
      r.attrs.push_back(program::Attr::ofInt(CDL_ATTR_B_LEFT_SHIFT, random_.in(1, 8)));
    return r;
  }

  static int64_t count(const Dims& dims) { return *elementCount(dims); }

  uint32_t buffer(Elem elem, int64_t elements, program::Role role) {
    program::Buffer b;
    b.name = fmt::format("b{}", p_.buffers.size());
    b.bytes = elemBytes(elem, static_cast<uint64_t>(elements)), b.role = role;
    std::vector<char> bytes;
    if (role == program::Role::input) {
      bytes.resize(b.bytes);
      for (char& byte : bytes) byte = static_cast<char>(random_.next());
    }
    contents_.push_back(std::move(bytes));
    return p_.addBuffer(std::move(b));
  }
  program::View dense(Elem elem, const Dims& dims, program::Role role) {
    if (role != program::Role::constant)
      return program::denseView(buffer(elem, count(dims), role), elem, dims);
    std::vector<int8_t> values(static_cast<size_t>(count(dims)));
    for (int8_t& value : values) value = static_cast<int8_t>(random_.next());
    return program::denseView(constant(Tensor::of<int8_t>(elem, dims, values)), elem, dims);
  }
  uint32_t constant(const Tensor& tensor) {
    const uint32_t made =
        p_.addConstant(fmt::format("b{}", p_.buffers.size()), Payload::data(tensor));
    contents_.resize(p_.buffers.size());
    return made;
  }
  /// One value, one per channel, or one per element; now and then the first and the last are one
  /// value all the same.
  program::View parameter(int64_t low, int64_t high) {
    const int64_t form = random_.in(0, 9), channels = y_[channel_];
    const int64_t elements = form < 3 ? 1 : form < 8 ? channels : count(y_);
    std::vector<int32_t> values(static_cast<size_t>(elements));
    for (int32_t& value : values) value = static_cast<int32_t>(random_.in(low, high));
    program::View v = program::denseView(0, Elem::i32_, y_);
    int64_t inner = 1;
    for (size_t d = channel_ + 1; d < y_.size(); ++d) inner *= y_[d];
    if (elements == 1 || form < 8) {
      v.strides.assign(y_.size(), 0);
      if (elements > 1) v.strides[channel_] = 1;
    } else if (form == 9) { // varies inside of a channel, but its ends agree
      for (int64_t at = 0; at < elements; ++at) {
        const bool isEnd = at % inner == 0 || at % inner == inner - 1;
        if (isEnd)
          values[static_cast<size_t>(at)] =
              static_cast<int32_t>(low + at / inner % channels % (high - low + 1));
      }
    }
    v.buffer = random_.chance(90) || form == 9
                   ? constant(Tensor::of<int32_t>(Elem::i32_, {elements}, values))
                   : given(values);
    return v;
  }
  /// Powers of two among them make ties.
  program::View multipliers() {
    return random_.chance(50) ? parameter(1 << 23, 1 << 23) : parameter(1 << 23, (1 << 24) - 1);
  }
  uint32_t given(const std::vector<int32_t>& values) {
    const uint32_t made =
        buffer(Elem::i32_, static_cast<int64_t>(values.size()), program::Role::input);
    std::memcpy(contents_[made].data(), values.data(), values.size() * 4);
    return made;
  }

  Random random_;
  Compiled::Contents& contents_;
  program::Program p_;
  Dims y_;
  size_t channel_ = 1;
  bool isLast_ = false; ///< channels last
  int64_t leastShift_, mostShift_;
};

/// Random Programs on devices of all tiers in turn, with each of the shifts in turn.
void compareWithTheOracle(const std::string& rescale, const std::vector<Shifts>& shifts) {
  std::vector<std::shared_ptr<runtime::plugin::Device>> devices;
  std::vector<std::unique_ptr<Ground>> grounds;
  const auto plugin = runtime::plugin::findPlugin(PLUGIN_cpu);
  ASSERT_TRUE(plugin.isOk()) << plugin.status().message();
  for (const std::string& isa : tiers()) {
    const auto device = (*plugin)->open(0, {{"isa", isa}, {"threads", "1"}, {"rescale", rescale}});
    ASSERT_TRUE(device.isOk()) << device.status().message();
    devices.push_back(*device);
    grounds.push_back(std::make_unique<Ground>(devices.back()));
  }
  int taken = 0;
  for (uint64_t seed = 1; seed <= 180 && !testing::Test::HasFailure(); ++seed) {
    Compiled::Contents contents;
    const program::Program p = Maker(seed, contents, shifts[seed % shifts.size()]).make();
    const Status verified = program::verify(p);
    ASSERT_TRUE(verified.isOk()) << "seed " << seed << ": " << verified.message();
    std::vector<Tensor> inputs;
    for (size_t b = 0; b < p.buffers.size(); ++b)
      if (p.buffers[b].role == program::Role::input)
        inputs.push_back({Elem::u8_,
                          {static_cast<int64_t>(contents[b].size())},
                          Bytes::copyOf(contents[b].data(), contents[b].size())});
    const auto expected = reference::interpret(p, inputs);
    ASSERT_TRUE(expected.isOk()) << "seed " << seed << ": " << expected.status().message();
    const size_t tier = seed % devices.size();
    const Compiled compiled(devices[tier], p);
    if (compiled.code() == CDL_REFUSED) continue;
    ASSERT_EQ(compiled.code(), CDL_OK) << compiled.text();
    ++taken;
    const Compiled::Contents got = compiled.execute(*grounds[tier], contents, seed % 2 == 0);
    size_t next = 0;
    for (size_t b = 0; b < p.buffers.size(); ++b) {
      if (p.buffers[b].role != program::Role::output) continue;
      const Bytes& want = (*expected)[next++].bytes;
      for (size_t i = 0; i < want.size() && !testing::Test::HasFailure(); ++i)
        EXPECT_EQ(got[b][i], static_cast<char>(want.data()[i]))
            << "byte " << i << " of buffer " << b << ", seed " << seed << " on " << tiers()[tier];
    }
    if (testing::Test::HasFailure()) {
      const auto text = program::print(p, {std::string(testing::TempDir())});
      ADD_FAILURE() << (text ? *text : text.status().message());
    }
  }
  EXPECT_GT(taken, 150);
}

TEST(CpuRequantize, GivesTheBitsOfTwoInstructions) {
  if (tiers().empty()) GTEST_SKIP() << "this processor lacks AVX2, FMA, F16C or BMI2";
  compareWithTheOracle("native", {Shifts{}});
}

// As processors without floats of 64 bits compute: channels of one shift, and of shifts that no
// product of 32 bits by 32 has in common.
TEST(CpuRequantize, IntegersGiveTheSameBits) {
  if (tiers().empty()) GTEST_SKIP() << "this processor lacks AVX2, FMA, F16C or BMI2";
  compareWithTheOracle("integers", {{30, 34}, {23, 40}, {28, 29}, {22, 24}, {28, 28}, {50, 63}});
}

} // namespace
} // namespace candela::test
