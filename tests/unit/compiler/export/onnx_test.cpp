// Every op with a form in ONNX, drawn in every element type that its record has, computes the same
// when it is imported again. Texts of what is written are told by tests/ir/export/.
#include <gmock/gmock.h>

#include "conformance/random/random_ops.h"
#include "conformance/random/run_on.h"
#include "core/compiler/export/onnx/export_onnx.h"
#include "core/compiler/graph/text.h"
#include "core/compiler/import/import.h"
#include "core/reference/reference.h"

namespace candela {
namespace {

using namespace conformance::random;
using conformance::Work;
using ::testing::HasSubstr;

graph::Graph parsed(const std::string& text) {
  Diagnostics diagnostics;
  Result<graph::Graph> graph = graph::parse(text, "test.cdl", diagnostics);
  EXPECT_TRUE(graph) << diagnostics.status().message();
  return std::move(graph).value();
}

/// Exports, imports and runs on the oracle.
Result<std::vector<Tensor>> runExported(const Recipe& recipe, Work&) {
  CDL_ASSIGN(const graph::Graph graph, recipe.build());
  CDL_ASSIGN(const import::onnx_io::Model model, exporter::onnx::toOnnx(graph));
  CDL_ASSIGN(const graph::Graph again, import::importModel(model));
  return reference::run(again, recipe.inputs());
}

struct Counts {
  int written = 0, refused = 0;
};

/// Of one op in one type; what is wrong is a failure of the test.
void tryOp(const graph::OpInfo& info, Elem elem, uint64_t seed, Counts& counts) {
  const Executor exported{"exported", runExported};
  conformance::random::Random random(seed);
  const auto draft = draftOf(info, elem, nullptr, random);
  if (!draft) return;
  for (const Data data : {Data::calm, Data::steps, Data::corners}) {
    Result<Recipe> recipe = recipeOf(*draft, data, random);
    if (!recipe) return;
    const Result<Expected> expected = expect(*recipe);
    if (!expected) return;
    const Finding finding = judge(*recipe, *expected, exported);
    ++(finding.kind == Finding::Kind::refused ? counts.refused : counts.written);
    const bool isRight =
        finding.kind == Finding::Kind::none || finding.kind == Finding::Kind::refused;
    const auto graph = recipe->build();
    ASSERT_TRUE(isRight) << info.name << " of " << elemName(elem) << ", seed " << seed << ": "
                         << finding.text << "\n"
                         << graph::print(*graph).value();
  }
}

TEST(ExportOnnx, ComputesTheSameOfEveryOp) {
  for (const graph::OpInfo& info : graph::allOps()) {
    if (!isDrafted(info)) continue;
    Counts counts;
    for (const Elem elem : firstElems(info))
      for (uint64_t seed = 1; seed <= 6; ++seed) tryOp(info, elem, seed, counts);
    if (info.has(graph::kTraitRegion)) continue; // whose body no draft has
    if (exporter::onnx::formOf(info.kind) == "refused")
      EXPECT_EQ(counts.written, 0) << info.name << " is written, but listed as refused";
    else
      EXPECT_GT(counts.written, 0) << info.name << " is listed, but refused " << counts.refused;
  }
}

TEST(ExportOnnx, NamesOutputsThatAreInputsOrStandTwice) {
  const graph::Graph graph =
      parsed(R"(graph @g(%x: f32[2]) -> (%x: f32[2], %y: f32[2] "a", %y: f32[2] "b") {
  %y = neg %x : f32[2]
})");
  const auto model = exporter::onnx::toOnnx(graph);
  ASSERT_TRUE(model) << model.status().message();
  ASSERT_EQ(model->graph.outputs.size(), 3u);
  EXPECT_EQ(model->graph.outputs[0].name, "x");
  const auto again = import::importModel(*model);
  ASSERT_TRUE(again) << again.status().message();
  EXPECT_EQ(again->outputNames(), (std::vector<std::string>{"x", "a", "b"}));
}

TEST(ExportOnnx, RefusesTwoValuesOfOneNameOutside) {
  const graph::Graph graph = parsed(R"(graph @g(%x: f32[2]) -> (%y: f32[2] "x") {
  %y = neg %x : f32[2]
})");
  const auto model = exporter::onnx::toOnnx(graph);
  ASSERT_FALSE(model);
  EXPECT_THAT(model.status().message(),
              HasSubstr("two values that are seen outside are named 'x'"));
}

TEST(ExportOnnx, SaysFunctionsOfIntegersOfAllRowsOrNone) {
  const std::string row = R"(graph @g(%x: f32[2,4]) -> (%y: f32[2,4], %z: f32[2,4]) {
  %y = softmax %x {integers = true} : f32[2,4]
  %z = softmax %x {integers = )";
  const auto all = exporter::onnx::toOnnx(parsed(row + "true} : f32[2,4]\n}"));
  ASSERT_TRUE(all);
  EXPECT_TRUE(all->integerRows);
  const auto some = exporter::onnx::toOnnx(parsed(row + "false} : f32[2,4]\n}"));
  ASSERT_FALSE(some);
  EXPECT_EQ(some.status().code(), Code::unsupported);
}

} // namespace
} // namespace candela
