// The onnx tier must notice: wrong values, shapes, types, missing outputs, refusals. It runs real
// node tests on answers that are made up here.
#include "conformance/tiers/onnx_tier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "conformance/judge/random_numbers.h"
#include "core/compiler/import/onnx_io/values.h"
#include "core/support/compare.h"
#include "core/support/float_bits.h"

namespace candela::conformance {
namespace {

using Outcome = CaseResult::Outcome;
const std::string kData = "/usr/share/libonnx-testdata/data/node";

tiers::OnnxCase findCase(const std::string& name) { return {"onnx:" + name, kData + "/" + name}; }

/// The tensors that the node test itself expects.
std::vector<Tensor> expectedOutputs(const std::string& name, int count) {
  std::vector<Tensor> outputs;
  for (int i = 0; i < count; ++i) {
    auto tensor = import::onnx_io::readTensor(
        fmt::format("{}/{}/test_data_set_0/output_{}.pb", kData, name, i));
    EXPECT_TRUE(tensor.isOk()) << tensor.status().message();
    outputs.push_back(*tensor);
  }
  return outputs;
}

CaseResult judge(const std::string& name, std::vector<runtime::control_flow::Value> answer) {
  return tiers::runOnnxCase(
      findCase(name),
      [&](import::Script, const std::vector<runtime::control_flow::Value>&) -> Result<RunAnswer> {
        return RunAnswer{answer, {7, 3, 0, 0}};
      });
}

Tensor changed(const Tensor& from, int64_t index, float delta) {
  Tensor copy{from.elem, from.dims, Bytes::copyOf(from.bytes.data(), from.sizeBytes())};
  copy.mutableAs<float>()[index] += delta;
  return copy;
}

TEST(OnnxTier, TheRightAnswerPasses) {
  const CaseResult result = judge("test_add", {expectedOutputs("test_add", 1)[0]});
  EXPECT_EQ(result.outcome, Outcome::passed) << result.reason;
  EXPECT_TRUE(result.rawPassed);
  EXPECT_EQ(result.name, "onnx:test_add");
  EXPECT_EQ(result.work.nodes, 7u);
}

TEST(OnnxTier, WrongAnswersFail) {
  const Tensor right = expectedOutputs("test_add", 1)[0];
  const CaseResult value = judge("test_add", {changed(right, right.count() - 1, 0.5f)});
  EXPECT_EQ(value.outcome, Outcome::failed);
  EXPECT_NE(value.reason.find("1 of"), std::string::npos) << value.reason;
  EXPECT_FALSE(value.rawPassed);
  Tensor flat = right;
  flat.dims = {right.count()};
  EXPECT_EQ(judge("test_add", {flat}).outcome, Outcome::failed);
  Tensor relabelled = right;
  relabelled.elem = Elem::i32_;
  EXPECT_EQ(judge("test_add", {relabelled}).outcome, Outcome::failed);
  EXPECT_EQ(judge("test_add", {}).outcome, Outcome::failed);
  EXPECT_EQ(judge("test_add", {right, right}).outcome, Outcome::failed);
}

Tensor mapped(const Tensor& from, const std::function<double(double)>& to) {
  Tensor copy{from.elem, from.dims, Bytes::copyOf(from.bytes.data(), from.sizeBytes())};
  for (int64_t i = 0; i < copy.count(); ++i)
    storeElement(copy.elem, copy.bytes.mutableData(), i,
                 fromReal(copy.elem, to(elementAsReal(from, i))));
  return copy;
}

TEST(OnnxTier, RandomNumbersAreJudgedByTheirDistribution) {
  const Tensor coins = expectedOutputs("test_bernoulli", 1)[0],
               dropped = expectedOutputs("test_training_dropout", 1)[0],
               kept = expectedOutputs("test_training_dropout_zero_ratio", 1)[0];
  const auto reasonOf = [](const std::string& name, const Tensor& answer) {
    return judge(name, {answer}).reason;
  };
  EXPECT_EQ(reasonOf("test_bernoulli", coins), "");
  EXPECT_EQ(reasonOf("test_bernoulli", mapped(coins, [](double x) { return 1 - x; })), "")
      << "other coins";
  EXPECT_EQ(reasonOf("test_training_dropout", dropped), "");
  using testing::HasSubstr;
  for (const double all : {0., 1.})
    EXPECT_THAT(reasonOf("test_bernoulli", mapped(coins, [=](double) { return all; })),
                HasSubstr("all 10 random numbers"));
  EXPECT_THAT(reasonOf("test_bernoulli", mapped(coins, [](double x) { return x == 0 ? 7. : 0.; })),
              HasSubstr("is 7, neither 0 nor 1"));
  EXPECT_THAT(reasonOf("test_training_dropout", mapped(dropped, [](double x) { return 2 * x; })),
              HasSubstr("was kept as"));
  EXPECT_THAT(
      reasonOf("test_training_dropout", mapped(dropped, [](double x) { return x == 0 ? 1 : x; })),
      HasSubstr("0 of 60 elements are 0, of the expected ones"));
  EXPECT_THAT(reasonOf("test_training_dropout_zero_ratio", changed(kept, 5, -kept.as<float>()[5])),
              HasSubstr("1 of 60 elements are 0"));
}

TEST(OnnxTier, DrawnNumbersHaveAMeanAndAVariance) {
  Tensor drawn{Elem::f32_, {64}, *Bytes::allocate(256)};
  for (int i = 0; i < 64; ++i) drawn.mutableAs<float>()[i] = static_cast<float>(i * 29 % 64) / 64;
  const auto reasonOf = [&](const std::function<double(double)>& to) {
    return judge::checkDrawn(mapped(drawn, to), drawn).message();
  };
  using testing::HasSubstr;
  EXPECT_EQ(reasonOf([](double x) { return 1 - x; }), "");
  EXPECT_THAT(reasonOf([](double) { return 0.5; }), HasSubstr("all 64 random numbers are 0.5"));
  EXPECT_THAT(reasonOf([](double x) { return x + 0.5; }), HasSubstr("have a mean of 0.9922"));
  EXPECT_THAT(reasonOf([](double x) { return 3 * x - 1; }), HasSubstr("have a variance of"));
  EXPECT_THAT(reasonOf([](double x) { return 1 / x; }), HasSubstr("no number"));
}

TEST(OnnxTier, SequencesAreComparedItemByItem) {
  const std::string name = "test_sequence_insert_at_back";
  const auto right =
      import::onnx_io::readSequence(fmt::format("{}/{}/test_data_set_0/output_0.pb", kData, name));
  ASSERT_TRUE(right.isOk()) << right.status().message();
  EXPECT_EQ(judge(name, {*right}).outcome, Outcome::passed);
  std::vector<Tensor> shorter(right->begin(), right->end() - 1), other = *right;
  EXPECT_NE(judge(name, {shorter}).reason.find("sequence of"), std::string::npos)
      << "another length";
  EXPECT_EQ(judge(name, {runtime::control_flow::Value()}).outcome, Outcome::failed);
  EXPECT_EQ(judge(name, {right->front()}).outcome, Outcome::failed);
  other.back() = changed(other.back(), 0, 1);
  EXPECT_NE(judge(name, {other}).reason.find("[3]"), std::string::npos)
      << judge(name, {other}).reason;
}

TEST(OnnxTier, RefusalsCountAsUnsupportedAndErrorsAsFailed) {
  const auto with = [](Status status) {
    return tiers::runOnnxCase(
        findCase("test_add"),
        [&](import::Script, const std::vector<runtime::control_flow::Value>&) -> Result<RunAnswer> {
          return status;
        });
  };
  EXPECT_EQ(with(failure(Code::unsupported, "not yet")).outcome, Outcome::unsupported);
  EXPECT_EQ(with(failure(Code::unsupported, "not yet")).reason, "not yet");
  for (const Code code : {Code::refused, Code::internal, Code::bad_model, Code::out_of_memory})
    EXPECT_EQ(with(Status(code, "no")).outcome, Outcome::failed);
  EXPECT_EQ(tiers::runOnnxCase({"onnx:none", kData + "/no_such_case"}, nullptr).outcome,
            Outcome::failed);
}

TEST(OnnxTier, ShapeOperandsRunAsConstantsAndAsInputs) {
  const std::vector<Tensor> right = expectedOutputs("test_reshape_reduced_dims", 1);
  std::vector<size_t> inputs;
  const auto answering = [&](bool both) {
    inputs.clear();
    return tiers::runOnnxCase(
        findCase("test_reshape_reduced_dims"),
        [&](import::Script,
            const std::vector<runtime::control_flow::Value>& given) -> Result<RunAnswer> {
          inputs.push_back(given.size());
          return RunAnswer{{both || given.size() == 1 ? right[0] : changed(right[0], 0, 1)}, {}};
        });
  };
  const CaseResult result = answering(true);
  EXPECT_EQ(result.outcome, Outcome::passed) << result.reason;
  EXPECT_TRUE(result.rawPassed);
  EXPECT_EQ(inputs, (std::vector<size_t>{1, 2}));
  EXPECT_EQ(answering(false).outcome, Outcome::failed) << "wrong as it is";
}

TEST(OnnxTier, AllFoldersAreCases) {
  const auto cases = tiers::listOnnxCases(kData);
  ASSERT_TRUE(cases.isOk()) << cases.status().message();
  EXPECT_GT(cases->size(), 900u);
  EXPECT_FALSE(tiers::listOnnxCases("/no/such/folder").isOk());
}

TEST(OnnxTier, SuitesStandInTheNames) {
  const auto cases = tiers::listOnnxCases(kData + "/..");
  ASSERT_TRUE(cases.isOk()) << cases.status().message();
  std::map<std::string, int> suites;
  for (const tiers::OnnxCase& one : *cases) ++suites[one.name.substr(0, one.name.find('/'))];
  EXPECT_EQ(suites, (std::map<std::string, int>{{"onnx:node", 932},
                                                {"onnx:pytorch-converted", 82},
                                                {"onnx:pytorch-operator", 35},
                                                {"onnx:simple", 23}}));
}

TEST(OnnxTier, DataThatContradictsItsModelExplainsAFailure) {
  const CaseResult shape = judge("test_castlike_BFLOAT16_to_FLOAT", {});
  EXPECT_EQ(shape.outcome, Outcome::xfail);
  EXPECT_NE(shape.reason.find("'like' is f32[1] in the data"), std::string::npos) << shape.reason;
  const CaseResult cut = judge("test_cast_FLOAT_to_BFLOAT16", {});
  EXPECT_EQ(cut.outcome, Outcome::xfail);
  EXPECT_NE(cut.reason.find("truncated"), std::string::npos) << cut.reason;
  EXPECT_EQ(judge("test_cast_FLOAT16_to_FLOAT", {}).outcome, Outcome::failed)
      << "that data is right";
}

} // namespace
} // namespace candela::conformance
