// The tier of ops: its cases are sound without any backend, cover what our backends claim, and
// notice what is wrong.
#include <gtest/gtest.h>

#include <bit>
#include <map>
#include <set>

#include "conformance/port.h"
#include "conformance/suite.h"
#include "conformance/tiers/ops/op_case.h"
#include "core/compiler/driver/pipeline.h"
#include "core/compiler/program/image.h"
#include "core/reference/interpreter/interp.h"

namespace candela::conformance {
namespace {

using Outcome = CaseResult::Outcome;

/// "ops:conv2d" of "ops:conv2d/f32:..."
std::string opOf(const std::string& address) { return address.substr(0, address.find('/')); }

Selection selectionOf(Size size, uint64_t seed = 1) {
  Selection selection;
  selection.size = size;
  selection.seed = seed;
  return selection;
}
std::vector<tiers::ops::OpSubject> nightly() {
  return tiers::ops::opSubjects(selectionOf(Size::nightly));
}

TEST(OpsTier, ListsTheSameCasesInThreeSizes) {
  std::map<Size, std::vector<std::string>> listed;
  for (const Size size : {Size::quick, Size::full, Size::nightly}) {
    for (const tiers::ops::OpSubject& subject : tiers::ops::opSubjects(selectionOf(size)))
      listed[size].push_back(subject.address);
    const auto cases = tiers::ops::opCases(selectionOf(size));
    ASSERT_TRUE(cases.isOk());
    ASSERT_EQ(cases->size(), listed[size].size());
    for (size_t i = 0; i < cases->size(); ++i) EXPECT_EQ((*cases)[i].address, listed[size][i]);
  }
  const std::set<std::string> all(listed[Size::nightly].begin(), listed[Size::nightly].end());
  EXPECT_EQ(all.size(), listed[Size::nightly].size()) << "two cases with one address";
  EXPECT_GE(all.size(), 3000u);
  EXPECT_LE(listed[Size::full].size(), 420u);
  EXPECT_LE(listed[Size::quick].size(), 200u);
  for (const Size size : {Size::quick, Size::full})
    for (const std::string& address : listed[size]) EXPECT_TRUE(all.contains(address)) << address;
}

/// The interpreter on the very instruction answers within the bounds of what it means in other
/// words, and the bounds say something: of no op are more than 5 % of the cases mistrusted.
TEST(OpsTier, TheInterpreterPassesAndFewBoundsAreWide) {
  struct Count {
    int cases = 0, mistrusted = 0;
    std::string example;
  };
  std::map<std::string, Count> counts;
  for (const tiers::ops::OpSubject& subject : nightly()) {
    const auto trial = subject.make();
    ASSERT_TRUE(trial.isOk()) << subject.address << ": " << trial.status().message();
    const auto program = trial->program(driver::hostTarget());
    ASSERT_TRUE(program.isOk()) << subject.address << ": " << program.status().message();
    const std::vector<Tensor> inputs = trial->inputs(0);
    const auto expected = trial->expect(inputs);
    ASSERT_TRUE(expected.isOk()) << subject.address << ": " << expected.status().message();
    const auto got = reference::interpret(*program, inputs);
    ASSERT_TRUE(got.isOk()) << subject.address << ": " << got.status().message();
    int64_t count = 0, tight = 0;
    for (size_t i = 0; i < got->size(); ++i) {
      Tensor one = (*got)[i];
      one.dims = expected->outputs[i].dims;
      EXPECT_EQ(judge::outside(expected->intervals[i], one), "") << subject.address;
      count += expected->intervals[i].count(), tight += expected->intervals[i].tight();
    }
    Count& op = counts[opOf(subject.address)];
    ++op.cases;
    if (tight * 10 >= count * 9) continue;
    ++op.mistrusted;
    op.example = subject.address;
  }
  for (const auto& [op, count] : counts)
    EXPECT_LE(count.mistrusted * 20, count.cases)
        << op << ": " << count.mistrusted << " of " << count.cases
        << " cases are mistrusted, such as " << count.example;
}

class OpsOnBackends : public ::testing::TestWithParam<const char*> {};

/// Every NATIVE row of an optional kind, or on layouts, is asked for by some case; and of each kind
/// and function one case runs NATIVE and passes.
TEST_P(OpsOnBackends, EveryOptionalRowHasACaseThatRuns) {
  Port port(GetParam());
  const auto device = port.device();
  ASSERT_TRUE(device.isOk()) << device.status().message();
  const capabilities::Target& target = (*device)->target();
  std::set<int> wanted;
  std::set<std::pair<uint16_t, uint16_t>> kinds;
  for (size_t i = 0; i < target.rows().size(); ++i) {
    const cdl_row_t& row = target.rows()[i].row;
    bool blocked = false;
    for (const uint16_t layout : row.layouts) blocked |= layout != 0;
    if (row.support != CDL_SUPPORT_NATIVE || (isPrimitive(row.kind) && !blocked)) continue;
    wanted.insert(static_cast<int>(i));
    kinds.insert({row.kind, row.fn});
  }
  for (const tiers::ops::OpSubject& subject : nightly()) {
    if (wanted.empty()) break;
    const auto trial = subject.make();
    ASSERT_TRUE(trial.isOk()) << trial.status().message();
    for (const auto& layouts : trial->layouts(target)) {
      const auto program = trial->program(target, layouts);
      ASSERT_TRUE(program.isOk()) << subject.address << ": " << program.status().message();
      const Bytes image = program::toImage(*program);
      const capabilities::Answer answer = target.query(
          runtime::plugin::describe(reinterpret_cast<const cdl_image_t*>(image.data()), 1));
      if (answer.support != capabilities::Support::native) continue;
      wanted.erase(answer.row);
      if (kinds.erase({program->instrs[0].kind, program->instrs[0].fn}) == 0) continue;
      const CaseResult result = trial->tryOut(port);
      EXPECT_TRUE(result.outcome == Outcome::passed || result.outcome == Outcome::mistrusted)
          << subject.address << ": " << result.reason;
      EXPECT_GE(result.work.nativeNodes, 1u) << subject.address;
    }
  }
  for (const int i : wanted) {
    const cdl_row_t& row = target.rows()[static_cast<size_t>(i)].row;
    std::string elems;
    for (int e = 0; e < row.elem_count; ++e)
      elems +=
          fmt::format(" {}{}", row.elems[e] ? elemName(static_cast<Elem>(row.elems[e])) : "any",
                      row.layouts[e] ? fmt::format("(layout {})", row.layouts[e]) : "");
    ADD_FAILURE() << "no case of the tier is taken by row " << i << ": "
                  << instrText(row.kind, row.fn) << elems;
  }
  EXPECT_TRUE(kinds.empty());
}
INSTANTIATE_TEST_SUITE_P(Backends, OpsOnBackends, ::testing::Values("soft", "template", "cpu"),
                         [](const auto& test) { return std::string(test.param); });

/// A case on soft, whose instruction says something else than its words.
CaseResult tryWrong(tiers::ops::OpCase made,
                    const std::function<void(lowering::decompose::NodeInstr&)>& wrong) {
  made.change = [wrong](lowering::decompose::NodeInstr& instr, const tiers::ops::Values&) {
    wrong(instr);
  };
  Port port("soft");
  const auto trial = tiers::ops::OpTrial::make(std::move(made), "ops:test/wrong");
  return trial ? trial->tryOut(port) : CaseResult::of(trial.status());
}

tiers::ops::OpCase lineCase(graph::OpKind kind, graph::Attrs attrs, int results = 1) {
  tiers::ops::OpCase made;
  made.operands = {{Elem::f32_, {3, 9, 2}, numbers(Elem::f32_, random::Data::steps)}};
  made.whole = [=](graph::Graph& graph,
                   const tiers::ops::Values& in) -> Result<tiers::ops::Values> {
    CDL_ASSIGN(const graph::Node* const node, graph.addNode(kind, in, attrs, {}, nullptr, results));
    return node->results();
  };
  return made;
}

TEST(OpsTier, NoticesWhatIsWrong) {
  const graph::Attrs middle{{"axis", int64_t(1)}};
  const auto right = [](lowering::decompose::NodeInstr&) {};
  const tiers::ops::OpCase softmax = lineCase(graph::OpKind::Softmax, middle);
  EXPECT_EQ(tryWrong(softmax, right).outcome, Outcome::passed) << tryWrong(softmax, right).reason;
  EXPECT_EQ(tryWrong(softmax, [](auto& instr) { instr.fn = CDL_SOFTMAX_LOG_SOFTMAX; }).outcome,
            Outcome::failed);

  graph::Attrs ties = middle;
  ties["fn"] = std::string("max");
  const tiers::ops::OpCase extreme = lineCase(graph::OpKind::ArgReduce, ties);
  EXPECT_EQ(tryWrong(extreme, right).outcome, Outcome::passed) << tryWrong(extreme, right).reason;
  EXPECT_EQ(
      tryWrong(extreme, [](auto& instr) { instr.attrs = {{CDL_ATTR_SELECT_LAST, {1}}}; }).outcome,
      Outcome::failed);

  graph::Attrs all = middle;
  all["k"] = int64_t(9);
  const tiers::ops::OpCase sort = lineCase(graph::OpKind::Sort, all, 2);
  EXPECT_EQ(tryWrong(sort, right).outcome, Outcome::passed) << tryWrong(sort, right).reason;
  EXPECT_EQ(tryWrong(sort, [](auto& instr) { instr.fn = CDL_SORT_DESCENDING; }).outcome,
            Outcome::failed);

  tiers::ops::OpCase norm = lineCase(graph::OpKind::LayerNorm, {{"epsilon", 0.5}});
  norm.operands[0].dims = {3, 18};
  EXPECT_EQ(tryWrong(norm, right).outcome, Outcome::passed) << tryWrong(norm, right).reason;
  const auto larger = [](auto& instr) {
    instr.attrs = {{CDL_ATTR_EPSILON, {std::bit_cast<int64_t>(0.51)}}};
  };
  EXPECT_EQ(tryWrong(norm, larger).outcome, Outcome::failed);
  EXPECT_EQ(tryWrong(norm, [](auto& instr) { instr.fn = CDL_NORM_RMS; }).outcome, Outcome::failed);
}

/// What is right as an instruction fails where its decomposition is wrong on the same device.
TEST(OpsTier, TriesTheDecompositionToo) {
  tiers::ops::OpCase softmax = lineCase(graph::OpKind::Softmax, {{"axis", int64_t(1)}});
  Port port("soft");
  const auto device = port.device();
  ASSERT_TRUE(device.isOk()) << device.status().message();
  const auto trial = tiers::ops::OpTrial::make(softmax, "ops:test/decomposition");
  ASSERT_TRUE(trial.isOk());
  const auto program = trial->decomposition((*device)->target());
  ASSERT_TRUE(program.isOk()) << program.status().message();
  EXPECT_GT(program->instrs.size(), 3u);
  for (const program::Instr& instr : program->instrs)
    EXPECT_TRUE(isPrimitive(instr.kind)) << kindName(instr.kind);

  // The words are said twice: for the bounds, then for what is lowered, which lies here.
  softmax.parts = [whole = softmax.whole, said = std::make_shared<int>(0)](
                      graph::Graph& graph,
                      const tiers::ops::Values& in) -> Result<tiers::ops::Values> {
    CDL_ASSIGN(const tiers::ops::Values y, whole(graph, in));
    if (++*said != 2) return y;
    return whole(graph, y);
  };
  const auto lying = tiers::ops::OpTrial::make(softmax, "ops:test/decomposition");
  ASSERT_TRUE(lying.isOk());
  const CaseResult result = lying->tryOut(port);
  EXPECT_EQ(result.outcome, Outcome::failed);
  EXPECT_TRUE(result.reason.starts_with("its decomposition into primitives: ")) << result.reason;
}

TEST(FuzzTier, HasOtherGraphsForEverySeedAndTheSameForOne) {
  std::set<std::string> seen;
  for (const uint64_t seed : {1, 2}) {
    const auto cases = tiers::fuzzCases(selectionOf(Size::full, seed));
    ASSERT_TRUE(cases.isOk());
    EXPECT_EQ(cases->size(), 50u);
    for (const Case& one : *cases) EXPECT_TRUE(seen.insert(one.address).second) << one.address;
  }
  EXPECT_TRUE(seen.contains("fuzz:graph/seed=17"));
  Port port("soft");
  const auto cases = tiers::fuzzCases(selectionOf(Size::quick));
  ASSERT_EQ(cases->size(), 3u);
  for (const Case& one : *cases) {
    const CaseResult result = one.run(port);
    EXPECT_EQ(result.outcome, Outcome::passed) << one.address << ": " << result.reason;
    EXPECT_GE(result.work.nodes, 3u);
  }
}

} // namespace
} // namespace candela::conformance
