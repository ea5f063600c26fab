// Every op record in every type that it allows, on samples made of the record: the op as it is and
// its decomposition, both run by soft, against the oracle.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "conformance/random/random_ops.h"
#include "conformance/random/run_on.h"
#include "core/compiler/graph/text.h"

namespace candela::conformance {
namespace {

constexpr int kFewestToCompare = 6; ///< samples of a type, by which an op's bounds are judged

/// Samples of an op in an element type. Under the sanitizers a sample costs forty times as much.
int samplesOfTest() {
  const char* size = std::getenv("CANDELA_TEST_SIZE");
  if (size && std::string_view(size) == "nightly") return 60;
  return size && std::string_view(size) == "sanitized" ? 2 : 6;
}

uint64_t seedOf(std::string_view op, Elem elem, int attempt) {
  uint64_t seed = 0;
  for (const char c : op) seed = splitmix64(seed ^ static_cast<unsigned char>(c));
  return splitmix64(seed ^ static_cast<uint64_t>(elem) << 32 ^ static_cast<uint64_t>(attempt));
}

const random::Executor& soft(bool toPrimitives) {
  static const random::Executor executors[] = {
      random::executorOf("soft").orAbort(), random::executorOf("soft --to-primitives").orAbort()};
  return executors[toPrimitives];
}

class Ops : public ::testing::TestWithParam<graph::OpKind> {
protected:
  void judgeSample(const random::Recipe& recipe, uint64_t seed) {
    const auto expected = random::expect(recipe);
    ASSERT_TRUE(expected.isOk()) << expected.status().message() << textOf(recipe);
    for (size_t i = 0; i < expected->intervals.size(); ++i) {
      count_ += expected->intervals[i].count(), tight_ += expected->intervals[i].tight();
      // The oracle does not overflow on its way.
      judge::Interval wide = expected->intervals[i];
      for (size_t e = 0; e < wide.lo.real.size(); ++e)
        if (!std::isfinite(wide.lo.real[e]) || !std::isfinite(wide.hi.real[e]))
          wide.makeWild(static_cast<int64_t>(e));
      const std::string text = judge::outside(wide, expected->outputs[i]);
      failed_ |= !text.empty();
      EXPECT_EQ(text, "") << "seed " << seed
                          << ": the oracle leaves the bound of the decomposition, output " << i
                          << "\n"
                          << textOf(recipe);
    }
    for (const bool toPrimitives : {false, true}) {
      const random::Finding finding = random::judge(recipe, *expected, soft(toPrimitives));
      if (finding.kind == random::Finding::Kind::none) continue;
      if (finding.kind != random::Finding::Kind::wrong && mayRefuse(recipe, finding)) {
        ++refused_;
        continue;
      }
      failed_ = true;
      ADD_FAILURE() << "seed " << seed << " on " << soft(toPrimitives).name << ": " << finding.text
                    << "\n"
                    << textOf(recipe) << reproduce(recipe, *expected, toPrimitives, seed);
    }
  }

  /// A lowered form is an instruction, which no row may take; into a storage type there need be
  /// none.
  static bool mayRefuse(const random::Recipe& recipe, const random::Finding& finding) {
    if (finding.kind == random::Finding::Kind::refused &&
        graph::opInfo(recipe.steps[0].kind).has(graph::kTraitPrimitive))
      return true;
    const auto graph = recipe.build();
    const auto isStored = [](const graph::Value* value) { return isStorageOnly(value->type.elem); };
    return graph && (std::ranges::any_of(graph->outputs(), isStored) ||
                     std::ranges::any_of(graph->inputs(), isStored));
  }
  static std::string textOf(const random::Recipe& recipe) {
    const auto graph = recipe.build();
    if (!graph) return graph.status().message();
    const auto text = graph::print(*graph);
    return text ? *text : text.status().message();
  }
  std::string reproduce(const random::Recipe& recipe, const random::Expected& expected,
                        bool toPrimitives, uint64_t seed) const {
    double width = 0;
    for (const judge::Interval& interval : expected.intervals)
      width = std::max(width, interval.width());
    const std::string folder =
        fmt::format("{}candela_ops/{}_{}", ::testing::TempDir(), graph::opName(GetParam()), seed);
    const auto line =
        random::writeCase(recipe, expected.outputs, width, folder, soft(toPrimitives).name);
    return line ? *line : line.status().message();
  }

  int64_t count_ = 0, tight_ = 0, refused_ = 0;
  bool failed_ = false;
};

TEST_P(Ops, AgreeWithTheOracle) {
  const graph::OpInfo& info = graph::opInfo(GetParam());
  const int samples = samplesOfTest();
  struct {
    int64_t samples = 0, elements = 0, tight = 0, refused = 0;
  } total;
  for (const Elem elem : random::firstElems(info)) {
    count_ = tight_ = refused_ = 0, failed_ = false;
    int accepted = 0, tried = 0;
    const int most = samples * 60;
    for (; accepted < samples && tried < most && !failed_; ++tried) {
      const uint64_t seed = seedOf(info.name, elem, tried);
      random::Random random(seed);
      const auto draft = random::draftOf(info, elem, nullptr, random);
      if (!draft) continue;
      // Half of the samples are tame, so that all ops have results that say something.
      const random::Data data = random.oneIn(2)
                                    ? static_cast<random::Data>(random.below(2))
                                    : static_cast<random::Data>(random.below(random::kDataKinds));
      const auto recipe = random::recipeOf(*draft, data, random);
      if (!recipe) continue;
      ++accepted;
      judgeSample(*recipe, seed);
    }
    fmt::print("{:<16} {:<7} {} of {} drafts are legal, {} of {} elements within a tenth, {} runs "
               "refused\n",
               info.name, elemName(elem), accepted, tried, tight_, count_, refused_);
    total.samples += accepted, total.elements += count_, total.tight += tight_,
        total.refused += refused_;
    if (failed_ || accepted == 0) continue; // a type that inference takes in no draft
    EXPECT_EQ(accepted, samples) << info.name << " " << elemName(elem)
                                 << ": inference takes too few drafts; give random_ops.cpp a hint";
  }
  if (HasFailure()) return;
  EXPECT_GT(total.samples, 0) << info.name
                              << ": inference takes no draft; give random_ops.cpp a hint";
  EXPECT_GT(total.elements, 0) << info.name << ": only empty tensors";
  if (samples < kFewestToCompare) return; // one wild sample would outweigh the others
  EXPECT_GE(total.tight * 2, total.elements)
      << info.name << ": most bounds are too wide to judge by";
  EXPECT_LT(total.refused, total.samples) << info.name << ": half of all runs are refused";
}

std::vector<graph::OpKind> kinds() {
  std::vector<graph::OpKind> kinds;
  for (const graph::OpInfo& info : graph::allOps())
    if (!info.has(graph::kTraitRegion)) kinds.push_back(info.kind);
  return kinds;
}
INSTANTIATE_TEST_SUITE_P(Records, Ops, ::testing::ValuesIn(kinds()),
                         [](const auto& test) { return std::string(graph::opName(test.param)); });

} // namespace
} // namespace candela::conformance
