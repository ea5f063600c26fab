// Kinds with dims of their own inside of `for`: each round reads and writes what is its own.
#include "conformance/tiers/primitives/families.h"
#include "conformance/tiers/primitives/fills.h"

namespace candela::conformance::tiers::primitives {
namespace {

CaseResult runRounds(const Choice& choice, Port& port) {
  const std::string& row = choice.at("row");
  const Elem elem = Elem::i32_;
  const auto bits = [](Elem type) { return numbers(type, random::Data::bits); };
  const auto between = [](int64_t lo, int64_t hi) {
    return integers(Elem::i32_, [=](int64_t, random::Random& random) -> __int128 {
      return random.between(lo, hi);
    });
  };
  const auto builder = [&](uint16_t kind, uint16_t fn = 0) { return TrialBuilder(row, kind, fn); };
  const std::string& view = choice.at("view");
  const auto tryOut = [&](TrialBuilder& trial) {
    return trial.rounds(choice.at("trip") == "2" ? 2 : 3).tryOut(port);
  };
  if (row == "gather") {
    TrialBuilder trial = builder(CDL_KIND_GATHER);
    trial.input(elem, {2, 7, 5}, view, bits(elem))
        .input(Elem::i32_, {4}, "dense", places(Elem::i32_, "inside", 7));
    return tryOut(trial.output(elem, {2, 4, 5}));
  }
  if (row == "scatter") {
    TrialBuilder trial = builder(CDL_KIND_SCATTER, CDL_SCATTER_ADD);
    trial.input(Elem::i32_, {4}, "dense", places(Elem::i32_, "inside", 7))
        .input(elem, {2, 4, 5}, view, bits(elem));
    return tryOut(trial.output(elem, {2, 7, 5}, "dense", bits(elem)));
  }
  if (row == "reduce") {
    TrialBuilder trial = builder(CDL_KIND_REDUCE, CDL_REDUCE_SUM);
    return tryOut(trial.input(elem, {3, 9, 5}, view, bits(elem)).output(elem, {3, 5}));
  }
  if (row == "reduce_f32") {
    TrialBuilder trial = builder(CDL_KIND_REDUCE, CDL_REDUCE_SUM);
    return tryOut(trial.input(Elem::f32_, {3, 9, 5}, view, numbers(Elem::f32_, random::Data::calm))
                      .output(Elem::f32_, {3, 5}));
  }
  if (row == "matmul_f32") {
    TrialBuilder trial = builder(CDL_KIND_MATMUL);
    trial.input(Elem::f32_, {2, 5, 9}, view, numbers(Elem::f32_, random::Data::calm));
    trial.input(Elem::f32_, {2, 9, 7}, "dense", numbers(Elem::f32_, random::Data::calm));
    return tryOut(trial.output(Elem::f32_, {2, 5, 7}));
  }
  if (row == "matmul") {
    TrialBuilder trial = builder(CDL_KIND_MATMUL);
    trial.input(Elem::i8_, {2, 5, 9}, view, bits(Elem::i8_))
        .input(Elem::i8_, {2, 9, 7}, "dense", bits(Elem::i8_));
    return tryOut(trial.output(elem, {2, 5, 7}));
  }
  if (row == "rescale") {
    TrialBuilder trial = builder(CDL_KIND_RESCALE);
    trial.input(elem, {5, 9}, view, between(-100'000, 100'000))
        .input(Elem::i32_, {5, 9}, "dense", between(1 << 23, (1 << 24) - 1));
    trial.input(Elem::i32_, {5, 9}, "dense", between(30, 36))
        .input(Elem::i32_, {5, 9}, "dense", between(-9, 9));
    return tryOut(trial.output(Elem::i8_, {5, 9}));
  }
  TrialBuilder trial = builder(CDL_KIND_TABLE);
  trial.input(Elem::i8_, {5, 9}, view, bits(Elem::i8_))
      .input(Elem::i8_, {256}, "dense", bits(Elem::i8_));
  return tryOut(trial.output(Elem::i8_, {5, 9}));
}

} // namespace

std::vector<Case> roundCases(const Selection& selection) {
  const Family family{
      "primitives:rounds/",
      {"gather", "scatter", "reduce", "matmul", "rescale", "table", "reduce_f32", "matmul_f32"},
      {{"trip", {"2", "3"}}, {"view", {"dense", "rows"}}},
      {},
      runRounds};
  return expand(family, selection, {.quick = 0, .full = 12});
}

} // namespace candela::conformance::tiers::primitives
