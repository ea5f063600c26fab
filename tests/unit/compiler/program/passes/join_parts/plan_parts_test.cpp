// Buffers that become parts of others: the same numbers, whatever else reads and writes them.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "core/compiler/program/passes/join_parts/parts.h"
#include "core/compiler/program/passes/schedule/schedule.h"
#include "core/reference/interpreter/interp.h"
#include "tests/unit/compiler/program/passes/schedule/runnable_program.h"

namespace candela {
namespace {

using program::denseView;
using program::Instr;
using program::Program;
using program::Role;
using program::View;

constexpr int64_t kPart = 4, kParts = 4, kWhole = kPart * kParts;
constexpr int kPrograms = 400;

/// Joins and splits of one large buffer, with instructions in between that forbid some of them.
class JoinMaker {
public:
  explicit JoinMaker(uint64_t seed) : rng_(seed) {}

  Program make() {
    const uint32_t x = add("x", Role::input, kWhole);
    const uint32_t whole = add("whole", pick(4) ? Role::temp : Role::output, kWhole);
    const bool filledBefore = pick(3) == 0;
    if (filledBefore) emit(CDL_KIND_FILL, 0, {}, view(whole, 0, kWhole));
    std::vector<uint32_t> parts;
    for (int64_t p = 0; p < kParts; ++p) {
      const uint32_t part = add("part", Role::temp, kPart);
      emit(CDL_KIND_UNARY, CDL_UNARY_NEG, {view(x, p * kPart, kPart)}, view(part, 0, kPart));
      parts.push_back(part);
    }
    std::vector<int64_t> order{0, 1, 2, 3};
    std::shuffle(order.begin(), order.end(), rng_);
    for (const int64_t p : order) {
      if (filledBefore && pick(4) == 0) result(view(whole, p * kPart, kPart));
      emit(CDL_KIND_COPY, 0, {view(parts[p], 0, kPart)}, view(whole, p * kPart, kPart));
      disturb(whole, parts[p], p);
    }
    for (int i = 0; i < 3; ++i) {
      const uint32_t slice = add("slice", Role::temp, kPart);
      emit(CDL_KIND_COPY, 0, {view(whole, pick(kWhole - kPart + 1), kPart)}, view(slice, 0, kPart));
      disturb(whole, slice, pick(kParts));
      result(view(slice, 0, kPart));
    }
    if (program_.buffers[whole].role == Role::temp) result(view(whole, 0, kWhole));
    return std::move(program_);
  }

private:
  int64_t pick(int64_t count) {
    return static_cast<int64_t>(rng_() % static_cast<uint64_t>(count));
  }
  uint32_t add(const char* name, Role role, int64_t count) {
    program::Buffer buffer;
    buffer.name = name;
    buffer.role = role;
    buffer.bytes = static_cast<uint64_t>(count) * 4;
    buffer.alignment = pick(8) ? 4 : 32;
    return program_.addBuffer(buffer);
  }
  static View view(uint32_t buffer, int64_t offset, int64_t count) {
    View view = denseView(buffer, Elem::f32_, {count});
    view.offset = offset;
    return view;
  }
  void emit(uint16_t kind, uint16_t fn, std::vector<View> inputs, View output) {
    Instr instr;
    instr.kind = kind;
    instr.fn = fn;
    instr.inputs = std::move(inputs);
    instr.outputs = {std::move(output)};
    if (kind == CDL_KIND_FILL) instr.attrs = {program::Attr::ofBits(CDL_ATTR_VALUE, 0x40400000)};
    program_.instrs.push_back(std::move(instr));
  }
  /// What would be read becomes an output.
  void result(const View& from) {
    const int64_t count = from.dims[0];
    emit(CDL_KIND_UNARY, CDL_UNARY_ABS, {from}, view(add("y", Role::output, count), 0, count));
  }
  void disturb(uint32_t whole, uint32_t part, int64_t index) {
    switch (pick(8)) {
    case 0: emit(CDL_KIND_FILL, 0, {}, view(part, 0, kPart)); break;
    case 1: emit(CDL_KIND_FILL, 0, {}, view(whole, index * kPart, 1)); break;
    case 2: result(view(part, 0, kPart)); break;
    default: break;
    }
  }

  std::mt19937_64 rng_;
  Program program_;
};

void expectSameNumbers(const Program& before, const Program& after,
                       const std::vector<Tensor>& inputs) {
  const auto a = reference::interpret(before, inputs, {.inPlaceArena = false});
  const auto b = reference::interpret(after, inputs, {.inPlaceArena = false});
  ASSERT_TRUE(a.isOk()) << a.status().message();
  ASSERT_TRUE(b.isOk()) << b.status().message();
  ASSERT_EQ(a->size(), b->size());
  for (size_t i = 0; i < a->size(); ++i)
    EXPECT_TRUE(std::equal((*a)[i].bytes.data(), (*a)[i].bytes.data() + (*a)[i].sizeBytes(),
                           (*b)[i].bytes.data()));
}

/// Returns how many copies are gone.
int joinAndCompare(const Program& before, const std::vector<Tensor>& inputs) {
  Program after = before;
  const int joined = program::passes::join_parts::joinParts(after);
  const auto copies = [](const Program& of) {
    return std::ranges::count(of.instrs, CDL_KIND_COPY, &Instr::kind);
  };
  EXPECT_EQ(copies(after) + joined, copies(before));
  const Status scheduled = program::passes::schedule::schedule(after);
  EXPECT_TRUE(scheduled.isOk()) << scheduled.message();
  const auto placed = program::passes::schedule::place(after);
  EXPECT_TRUE(placed.isOk()) << placed.status().message();
  expectSameNumbers(before, after, inputs);
  return joined;
}

TEST(JoinParts, KeepsNumbersOfJoinsAndSplits) {
  int joined = 0;
  for (uint64_t seed = 1; seed <= kPrograms; ++seed) {
    SCOPED_TRACE(seed);
    const Program program = JoinMaker(seed).make();
    ASSERT_TRUE(program::verify(program).isOk()) << program::verify(program).message();
    joined += joinAndCompare(program, {*randomTensor(Elem::f32_, {kWhole}, seed)});
  }
  // Of seven copies each; some are forbidden.
  EXPECT_GT(joined, kPrograms);
  EXPECT_LT(joined, 6 * kPrograms);
}

TEST(JoinParts, KeepsNumbersOfRandomPrograms) {
  int joined = 0;
  for (uint64_t seed = 1; seed <= kPrograms; ++seed) {
    SCOPED_TRACE(seed);
    Program program = testing::ProgramMaker(seed).make(24);
    for (program::Buffer& buffer : program.buffers) buffer.alignment = 4;
    std::vector<Tensor> inputs;
    for (uint64_t i = 0; i < 2; ++i)
      inputs.push_back(*randomTensor(Elem::f32_, {testing::ProgramMaker::kLarge}, seed + i));
    joined += joinAndCompare(program, inputs);
  }
  EXPECT_GT(joined, 0);
}

} // namespace
} // namespace candela
