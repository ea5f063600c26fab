// The element-wise half of the tier `primitives`: which cases there are, and what their judge lets
// pass.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "conformance/judge/elementwise_bounds.h"
#include "conformance/port.h"
#include "conformance/suite.h"
#include "conformance/trial_builder.h"
#include "core/compiler/capabilities/rows.h"
#include "core/reference/interpreter/interp.h"
#include "core/support/text/scan.h"
#include "tests/unit/compiler/program/program_text.h"

namespace candela::conformance {
namespace {

std::vector<std::string> listed(Size size) {
  std::vector<std::string> list;
  Selection selection;
  selection.size = size;
  const auto cases = tiers::primitives::primitiveCases(selection);
  EXPECT_TRUE(cases) << cases.status().message();
  for (const Case& one : *cases) list.push_back(one.address);
  return list;
}

const std::vector<std::string>& addresses(Size size) {
  static std::map<Size, std::vector<std::string>> known;
  if (!known.contains(size)) known[size] = listed(size);
  return known[size];
}

/// What the address of a case for the row begins with.
std::string beginningOf(const capabilities::RequiredRow& row) {
  const auto elem = [&](size_t i) { return elemName(static_cast<Elem>(row.elems[i])); };
  const std::string kind(program::kindName(row.kind)), fn(program::fnName(row.kind, row.fn));
  if (row.kind == CDL_KIND_CONVERT)
    return fmt::format("primitives:convert/{}_{}:fn={};", elem(0), elem(1), fn);
  if (row.kind == CDL_KIND_SELECT) return fmt::format("primitives:select/{}:", elem(1));
  return fmt::format("primitives:{}/{}{}:", kind, fn.empty() ? "" : fn + "_", elem(0));
}

/// Whether every backend with such a row must take the views.
bool isWithin(uint8_t operandClass, const std::string& address) {
  const size_t from = address.find("view=") + 5;
  for (const std::string& form :
       text::split(address.substr(from, address.find(';', from) - from), ',')) {
    if (form == "dense" || operandClass == CDL_CLASS_AFFINE) continue;
    if (operandClass < CDL_CLASS_BROADCAST || !text::isOneOf(form, "broadcast|broadcast_in|splat"))
      return false;
  }
  return address.find("loop=") == std::string::npos;
}

TEST(ElementwiseCases, EachRequiredRowHasOneThatItMustTakeInEverySize) {
  for (const Size size : {Size::quick, Size::full, Size::nightly}) {
    const std::vector<std::string>& list = addresses(size);
    for (const capabilities::RequiredRow& row : capabilities::requiredRows()) {
      if (!judge::isElementwiseKind(row.kind)) continue;
      const std::string beginning = beginningOf(row);
      const bool found = std::ranges::any_of(list, [&](const std::string& address) {
        return address.starts_with(beginning) && isWithin(row.operandClass, address);
      });
      EXPECT_TRUE(found) << row.text() << " has no case in size " << static_cast<int>(size);
    }
  }
}

TEST(ElementwiseCases, AddressesAreUniqueAndComeTwiceAlike) {
  for (const Size size : {Size::quick, Size::full, Size::nightly}) {
    const std::vector<std::string>& list = addresses(size);
    EXPECT_EQ(std::set<std::string>(list.begin(), list.end()).size(), list.size());
    EXPECT_EQ(list, listed(size));
  }
}

TEST(ElementwiseCases, QuickAndFullAreParts) {
  const std::vector<std::string> nightly = addresses(Size::nightly);
  const std::set<std::string> all(nightly.begin(), nightly.end());
  for (const Size size : {Size::quick, Size::full})
    for (const std::string& address : addresses(size))
      EXPECT_TRUE(all.contains(address)) << address;
}

/// "shape=7" and "view=dense,dense" of a kind's cases that are not inside of `for`.
std::set<std::string> valuesOf(const std::vector<std::string>& list, const std::string& stem) {
  std::set<std::string> values;
  for (const std::string& address : list) {
    if (!address.starts_with(stem) || address.find("loop=") != std::string::npos) continue;
    for (const std::string& value :
         text::split(address.substr(address.find(':', stem.size()) + 1), ';'))
      values.insert(value);
  }
  return values;
}

TEST(ElementwiseCases, FullHasEveryShapeViewAndDataOfAKind) {
  for (const char* kind : {"copy", "fill", "convert", "binary", "compare", "select", "unary"}) {
    const std::string stem = fmt::format("primitives:{}/", kind);
    EXPECT_EQ(valuesOf(addresses(Size::full), stem), valuesOf(addresses(Size::nightly), stem))
        << kind;
  }
}

// ---- The judge

Tensor bitsOf(Elem elem, std::vector<uint64_t> values) {
  Tensor tensor = Tensor::zeros(elem, {static_cast<int64_t>(values.size())}).orAbort();
  for (size_t i = 0; i < values.size(); ++i)
    storeElement(elem, tensor.bytes.mutableData(), static_cast<int64_t>(i), values[i]);
  return tensor;
}
Tensor floats(std::vector<float> values) {
  return Tensor::of<float>(Elem::f32_, {static_cast<int64_t>(values.size())}, values);
}

/// What is right for the instruction on x, and b where there is one.
judge::Expectation expect(const std::string& body, const std::vector<Tensor>& inputs,
                          uint32_t flags = 0) {
  std::string text;
  const char* names[] = {"x", "b"};
  for (size_t i = 0; i < inputs.size(); ++i)
    text += fmt::format("buffer %{} input @host {}\n", names[i], inputs[i].bytes.size());
  const auto program = test::parseBody(text + body);
  EXPECT_TRUE(program) << program.status().message();
  auto expected = judge::elementwiseBounds(*program, inputs, flags);
  EXPECT_TRUE(expected) << expected.status().message();
  return *expected;
}
bool allows(const judge::Expectation& expected, std::vector<float> values) {
  Tensor got = floats(std::move(values));
  got.dims = expected.outputs[0].dims;
  return judge::outside(expected.intervals[0], got).empty();
}

constexpr const char* kUnary = "buffer %y output @host 4\nunary.{} @in %x[1]:f32, @out %y[1]:f32";
constexpr const char* kBinary =
    "buffer %y output @host 4\nbinary.{} @in %x[1]:f32, @in %b[1]:f32, @out %y[1]:f32";

float steps(float value, int count) {
  return std::bit_cast<float>(std::bit_cast<int32_t>(value) + count);
}

TEST(ElementwiseJudge, RoundsOnceOrAllowsWhatTheRowSays) {
  const judge::Expectation sum =
      expect(fmt::format(kBinary, "add"), {floats({1}), floats({0x1p-24f})});
  EXPECT_TRUE(allows(sum, {1}));
  EXPECT_FALSE(allows(sum, {steps(1, 1)}));
  // 3 units in the last place
  const judge::Expectation root = expect(fmt::format(kUnary, "sqrt"), {floats({9})});
  EXPECT_TRUE(allows(root, {steps(3, 3)}));
  EXPECT_TRUE(allows(root, {steps(3, -3)}));
  EXPECT_FALSE(allows(root, {steps(3, 4)}));
  EXPECT_FALSE(allows(root, {steps(3, -4)}));
  // optional, and exact
  const judge::Expectation ceiling = expect(fmt::format(kUnary, "ceil"), {floats({2.5})});
  EXPECT_FALSE(allows(ceiling, {steps(3, 1)}));
  const judge::Expectation sine = expect(fmt::format(kUnary, "sin"), {floats({1})});
  EXPECT_TRUE(allows(sine, {steps(std::sin(1.0f), 4)}));
  EXPECT_FALSE(allows(sine, {steps(std::sin(1.0f), 40)}));
}

TEST(ElementwiseJudge, AnOverflowIsInfiniteAndNanIsNan) {
  const float inf = INFINITY, most = std::numeric_limits<float>::max();
  EXPECT_TRUE(allows(expect(fmt::format(kUnary, "exp"), {floats({100})}), {inf}));
  EXPECT_FALSE(allows(expect(fmt::format(kUnary, "exp"), {floats({100})}), {most}));
  EXPECT_FALSE(allows(expect(fmt::format(kBinary, "mul"), {floats({most}), floats({2})}), {most}));
  const judge::Expectation nan = expect(fmt::format(kBinary, "max"), {floats({NAN}), floats({2})});
  EXPECT_TRUE(allows(nan, {NAN}));
  EXPECT_FALSE(allows(nan, {2}));
}

TEST(ElementwiseJudge, OnlyADeviceThatSaysSoFlushes) {
  const std::vector<Tensor> in = {floats({0x1p-130f}), floats({0x1p100f})};
  EXPECT_FALSE(allows(expect(fmt::format(kBinary, "mul"), in), {0}));
  EXPECT_FALSE(allows(expect(fmt::format(kBinary, "mul"), in, CDL_DEVICE_FTZ_F16), {0}));
  const judge::Expectation flushed = expect(fmt::format(kBinary, "mul"), in, CDL_DEVICE_FTZ_F32);
  EXPECT_TRUE(allows(flushed, {0}));
  EXPECT_TRUE(allows(flushed, {0x1p-30f}));
  const std::vector<Tensor> normal = {floats({0x1p-60f}), floats({0x1p-70f})};
  EXPECT_TRUE(allows(expect(fmt::format(kBinary, "mul"), normal, CDL_DEVICE_FTZ_F32), {0}));
  EXPECT_FALSE(allows(expect(fmt::format(kBinary, "mul"), normal), {0}));
}

TEST(ElementwiseJudge, WhatMovesKeepsItsBits) {
  const std::vector<uint64_t> bits = {0x7f800001, 0x80000000, 0xffc12345, 0x00000001};
  const judge::Expectation copy =
      expect("buffer %y output @host 16\ncopy @in %x[4]:f32 at 3 strides[-1], @out %y[4]:f32",
             {bitsOf(Elem::f32_, bits)});
  ASSERT_TRUE(copy.bits[0]);
  for (int64_t i = 0; i < 4; ++i)
    EXPECT_EQ(loadElement(Elem::f32_, copy.outputs[0].bytes.data(), i),
              bits[static_cast<size_t>(3 - i)]);
  const judge::Expectation select =
      expect("buffer %y output @host 4\nselect @in %x[1]:bool, @in %b[1]:f32, @in %b[1]:f32 at 1, "
             "@out %y[1]:f32",
             {bitsOf(Elem::bool_, {0}), bitsOf(Elem::f32_, {1, 0x7f800001})});
  ASSERT_TRUE(select.bits[0]);
  EXPECT_EQ(loadElement(Elem::f32_, select.outputs[0].bytes.data(), 0), 0x7f800001u);
}

TEST(ElementwiseJudge, AZeroThatWasRoundedToHasItsSign) {
  const auto isExact = [](const std::string& body, std::vector<Tensor> in, uint32_t flags = 0) {
    const judge::Expectation expected = expect(body, in, flags);
    return expected.exact[0][0] ? loadElement(Elem::f32_, expected.outputs[0].bytes.data(), 0) : 7;
  };
  EXPECT_EQ(isExact(fmt::format(kUnary, "neg"), {floats({0})}), 0x80000000u);
  EXPECT_EQ(isExact(fmt::format(kBinary, "mul"), {floats({-1}), floats({0})}), 0x80000000u);
  EXPECT_EQ(isExact(fmt::format(kBinary, "sub"), {floats({3}), floats({3})}), 0u);
  EXPECT_EQ(isExact(fmt::format(kBinary, "max"), {floats({-0.0f}), floats({0})}), 7u); // either
  // has a tolerance
  EXPECT_EQ(isExact(fmt::format(kBinary, "div"), {floats({0}), floats({-3})}), 7u);
  EXPECT_EQ(isExact(fmt::format(kBinary, "mul"), {floats({-1}), floats({0})}, CDL_DEVICE_FTZ_F32),
            7u);
}

/// The interpreter runs the same programs in its own way.
TEST(ElementwiseJudge, ReadsAndWritesWhereTheInterpreterDoes) {
  const std::vector<Tensor> in = {floats({1, -2, 3.5f, 4, 5, -6.25f, 7, 8}),
                                  floats({2, 3, -4, 0.5f, 1, 9, 8, 7})};
  const char* bodies[] = {
      "buffer %y inout @host 48\nbinary.add @in %x[2,3]:f32 at 1 strides[1, 2], @in %b[2,3]:f32 at "
      "5 strides[0, -1], "
      "@out %y[2,3]:f32 at 2 strides[4, 1]",
      "buffer %y output @host 24\nfor 2 {\nbinary.mul @in %x[3]:f32 at 0 strides[1] +4*i0, @in "
      "%b[3]:f32 at 2 "
      "strides[-1] +5*i0, @out %y[3]:f32 at 0 strides[1] +3*i0\n}",
      "buffer %y output @host 8\nconvert.floor{saturate = 1} @in %x[8]:f32, @out %y[8]:i8",
      "buffer %y output @host 8\ncompare.lt @in %x[8]:f32, @in %b[8]:f32, @out %y[8]:bool"};
  for (const std::string body : bodies) {
    const auto program =
        test::parseBody("buffer %x input @host 32\nbuffer %b input @host 32\n" + body);
    ASSERT_TRUE(program) << program.status().message() << body;
    std::vector<Tensor> given = in;
    if (program->buffers[2].role == program::Role::inout)
      given.push_back(floats({9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20}));
    const auto expected = judge::elementwiseBounds(*program, given);
    const auto oracle = reference::interpret(*program, given);
    ASSERT_TRUE(expected && oracle) << body;
    const Tensor &own = expected->outputs[0], &theirs = (*oracle)[0];
    EXPECT_EQ(own.typeText(), theirs.typeText());
    ASSERT_EQ(own.bytes.size(), theirs.bytes.size());
    EXPECT_EQ(std::memcmp(own.bytes.data(), theirs.bytes.data(), own.bytes.size()), 0) << body;
  }
}

// ---- The builder

TEST(TrialBuilder, AnOperandMayShareABufferAndTheResultLieInIt) {
  Port soft("soft");
  const Shape dims = {5, 3, 7};
  const auto data = numbers(Elem::i32_, random::Data::bits);
  program::Program seen;
  const Judge judge = [&](const program::Program& program, std::span<const Tensor> inputs) {
    seen = program;
    return judge::elementwiseBounds(program, inputs);
  };
  TrialBuilder between("between", CDL_KIND_BINARY, CDL_BINARY_SUB);
  between.input(Elem::i32_, dims, "strided", data).inputBeside(1).outputIn(0, Elem::i32_);
  EXPECT_EQ(between.tryOut(soft, judge).reason, "");
  const program::Instr* instr = &seen.instrs[0];
  EXPECT_EQ(seen.buffers.size(), 1u);
  EXPECT_EQ(seen.buffers[0].role, program::Role::inout);
  EXPECT_EQ(instr->inputs[1].offset, instr->inputs[0].offset + 1);
  EXPECT_EQ(instr->outputs[0].offset, instr->inputs[0].offset);

  TrialBuilder looped("looped", CDL_KIND_BINARY, CDL_BINARY_SUB);
  looped.input(Elem::i32_, dims, "dense", data).input(Elem::i32_, dims, "broadcast", data);
  EXPECT_EQ(looped.output(Elem::i32_, dims, "negative").loops(2).tryOut(soft, judge).reason, "");
  instr = &seen.instrs[0];
  ASSERT_EQ(seen.loops.size(), 2u);
  EXPECT_EQ(seen.loops[0].trip, 5u);
  EXPECT_EQ(seen.loops[1].trip, 3u);
  EXPECT_EQ(instr->inputs[0].dims, Shape{7});
  EXPECT_EQ(instr->inputs[0].ivStrides[0], 21);
  EXPECT_EQ(instr->inputs[1].ivStrides[0], 0);
  EXPECT_EQ(instr->outputs[0].ivStrides[1], 7);
}

} // namespace
} // namespace candela::conformance
