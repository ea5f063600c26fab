// What is right of SCATTER: any of several updates, nothing else, and nothing where no index
// points.
#include <gtest/gtest.h>

#include "conformance/judge/scatter_bounds.h"

namespace candela::conformance {
namespace {

using program::Program, program::Role;

TEST(ScatterJudge, AnyOfSeveralUpdatesAndNothingElse) {
  Program program;
  program::Instr instr;
  instr.kind = CDL_KIND_SCATTER;
  instr.fn = CDL_SCATTER_SET;
  instr.inout = true;
  const auto view = [&](const char* name, Role role, Shape dims) {
    program::Buffer buffer;
    buffer.name = name;
    buffer.role = role;
    buffer.bytes = elemBytes(Elem::i32_, *elementCount(dims));
    return program::denseView(program.addBuffer(std::move(buffer)), Elem::i32_, dims);
  };
  instr.inputs = {view("k", Role::input, {4}), view("u", Role::input, {1, 4, 1})};
  instr.outputs = {view("y", Role::inout, {1, 5, 1})};
  program.instrs = {instr};
  const std::vector<Tensor> inputs{Tensor::of<int32_t>(Elem::i32_, {4}, {1, 3, 1, 9}),
                                   Tensor::of<int32_t>(Elem::i32_, {4}, {10, 20, 30, 40}),
                                   Tensor::of<int32_t>(Elem::i32_, {5}, {-1, -2, -3, -4, -5})};
  using Allowed = std::map<int64_t, std::vector<uint64_t>>;
  const uint32_t kept[] = {uint32_t(-1), uint32_t(-3), uint32_t(-5)};
  EXPECT_EQ(judge::scatterBounds(program, inputs).orAbort().anyOf[0],
            (Allowed{{0, {kept[0]}}, {1, {10, 30}}, {2, {kept[1]}}, {3, {20}}, {4, {kept[2]}}}));
  program.instrs[0].fn = CDL_SCATTER_ADD;
  const judge::Expectation sums = judge::scatterBounds(program, inputs).orAbort();
  EXPECT_EQ(sums.anyOf[0], (Allowed{{0, {kept[0]}}, {2, {kept[1]}}, {4, {kept[2]}}}));
  EXPECT_EQ(sums.outputs[0].toInts(), (std::vector<int64_t>{-1, 38, -3, 16, -5}));
}

} // namespace
} // namespace candela::conformance
