// Kinds with dims of their own, where every operand and the result lies in its buffer in one of the
// ways that a view can; in ranks and extents that their other families leave out; and on numbers
// that a sum may lose.
#include <cmath>

#include "conformance/port.h"
#include "conformance/tiers/primitives/families.h"
#include "conformance/tiers/primitives/fills.h"

namespace candela::conformance::tiers::primitives {
namespace {

TrialBuilder::Fill between(int64_t lo, int64_t hi) {
  return integers(Elem::i32_, [=](int64_t, random::Random& random) -> __int128 {
    return random.between(lo, hi);
  });
}
TrialBuilder::Fill bits(Elem elem) { return numbers(elem, random::Data::bits); }

/// `form` of all views; a result cannot be broadcast.
CaseResult tryWired(const std::string& kind, const Shape& dims, const std::string& form,
                    TrialBuilder& trial, Port& port) {
  const std::string result = form.starts_with("broadcast") ? "dense" : form;
  const Elem elem = Elem::i32_, narrow = Elem::i8_;
  if (kind == "gather") {
    trial.input(elem, {2, 7, 21}, form, bits(elem))
        .input(elem, {4}, form, places(elem, "inside", 7));
    trial.output(elem, {2, 4, 21}, result);
  } else if (kind == "scatter") {
    trial.input(elem, {4}, form, places(elem, "inside", 7))
        .input(elem, {2, 4, 21}, form, bits(elem));
    trial.output(elem, {2, 7, 21}, result, bits(elem));
  } else if (kind == "reduce") {
    trial.input(elem, {3, 9, 5}, form, bits(elem)).output(elem, {3, 5}, result);
  } else if (kind == "matmul") {
    trial.input(narrow, {2, 5, 9}, form, bits(narrow)).input(narrow, {2, 9, 7}, form, bits(narrow));
    trial.input(narrow, {1}, form, bits(narrow)).input(narrow, {7}, form, bits(narrow));
    trial.output(elem, {2, 5, 7}, result);
  } else if (kind == "rescale") {
    trial.input(elem, dims, form, between(-100'000, 100'000))
        .input(elem, dims, form, between(1 << 23, (1 << 24) - 1));
    trial.input(elem, dims, form, between(30, 36)).input(elem, dims, form, between(-9, 9));
    trial.input(elem, dims, form, between(-100'000, 100'000))
        .input(elem, dims, form, between(1 << 23, (1 << 24) - 1));
    trial.output(narrow, dims, result);
  } else {
    // A table whose entries are all the same hides what the operand is.
    trial.input(narrow, dims, form, bits(narrow));
    trial.input(narrow, {256}, form == "broadcast" ? "dense" : form, bits(narrow));
    trial.output(narrow, dims, result);
  }
  return trial.tryOut(port);
}

/// "gather/wired" is of the kind "gather".
std::string kindOf(const Choice& choice) {
  const std::string& row = choice.at("row");
  return row.substr(0, row.find('/'));
}

TrialBuilder builderOf(const Choice& choice) {
  const std::string kind = kindOf(choice);
  const uint16_t fn = kind == "scatter" ? CDL_SCATTER_ADD : 0;
  return {seedText(choice), *parseKind(kind), fn};
}

CaseResult runView(const Choice& choice, Port& port) {
  TrialBuilder trial = builderOf(choice);
  return tryWired(kindOf(choice), {3, 5, 7}, choice.at("view"), trial, port);
}

CaseResult runShape(const Choice& choice, Port& port) {
  TrialBuilder trial = builderOf(choice);
  return tryWired(kindOf(choice), shapeOf(choice.at("shape")), "dense", trial, port);
}

/// Few digits near the bottom of the type, each product exact: m * 2^-140 times a small whole
/// number.
TrialBuilder::Fill tiny(bool isFirst) {
  return [=](int64_t count, random::Random& random) {
    std::vector<float> values;
    for (int64_t i = 0; i < count; ++i) {
      // of one sign: no sum of them is 0
      const auto whole = static_cast<float>(random.between(1, 9));
      values.push_back(isFirst ? whole * 0x1p-140F : whole);
    }
    return Tensor::of(Elem::f32_, {count}, values);
  };
}

/// Numbers near 1, and now and then, as rarely as it says, one of the others.
TrialBuilder::Fill among(int64_t rarely, std::vector<float> others) {
  return [=](int64_t count, random::Random& random) {
    std::vector<float> values;
    for (int64_t i = 0; i < count; ++i)
      values.push_back(random.oneIn(rarely) ? random.of(others)
                                            : 0.5F + static_cast<float>(random.unit()));
    return Tensor::of(Elem::f32_, {count}, values);
  };
}

CaseResult runNumbers(const Choice& choice, Port& port) {
  const bool isTiny = choice.at("data") == "tiny", isProduct = kindOf(choice) == "matmul";
  if (isTiny) {
    const auto device = port.device();
    if (!device) return CaseResult::of(device.status());
    const cdl_capabilities_t* says = (*device)->table().device_capabilities((*device)->handle());
    if (says->flags & CDL_DEVICE_FTZ_F32)
      return CaseResult::unsupported("the device flushes f32 subnormals");
  }
  if (choice.at("data") == "truths") {
    TrialBuilder trial(seedText(choice), CDL_KIND_REDUCE, CDL_REDUCE_MAX);
    return trial.input(Elem::bool_, {3, 9, 21}, "dense", bits(Elem::bool_))
        .output(Elem::bool_, {3, 21})
        .tryOut(port);
  }
  const TrialBuilder::Fill first = isTiny ? tiny(true) : among(20, {NAN, INFINITY, -INFINITY});
  if (!isProduct) {
    TrialBuilder trial(seedText(choice), CDL_KIND_REDUCE, isTiny ? CDL_REDUCE_SUM : CDL_REDUCE_MAX);
    return trial.input(Elem::f32_, {3, 9, 21}, "dense", first)
        .output(Elem::f32_, {3, 21})
        .tryOut(port);
  }
  TrialBuilder trial(seedText(choice), CDL_KIND_MATMUL);
  trial.input(Elem::f32_, {2, 5, 9}, "dense", first);
  trial.input(Elem::f32_, {2, 9, 7}, "dense", isTiny ? tiny(false) : among(3, {0}));
  return trial.output(Elem::f32_, {2, 5, 7}).tryOut(port);
}

} // namespace

std::vector<Case> wiringCases(const Selection& selection) {
  const Family views{"primitives:",
                     {"gather/wired", "scatter/wired", "reduce/wired", "matmul/wired",
                      "rescale/wired", "table/wired"},
                     {{"view", {"offset", "negative", "broadcast", "broadcast_in"}}},
                     {},
                     runView};
  const Family shapes{"primitives:",
                      {"rescale/ranks", "table/ranks"},
                      {{"shape", {"2x3x2x3x2x5", "scalar", "3x67"}}},
                      {},
                      runShape};
  const Family sums{"primitives:",
                    {"matmul/numbers", "reduce/numbers"},
                    {{"data", {"specials", "tiny", "truths"}}},
                    [](const Choice& choice) {
                      return kindOf(choice) == "reduce" || choice.at("data") != "truths";
                    },
                    runNumbers};
  std::vector<Case> cases = expand(views, selection, {.quick = 0, .full = 24});
  for (const auto& [family, most] : {std::pair{&shapes, 6}, {&sums, 5}})
    std::ranges::move(expand(*family, selection, {.quick = 0, .full = static_cast<size_t>(most)}),
                      std::back_inserter(cases));
  return cases;
}

} // namespace candela::conformance::tiers::primitives
