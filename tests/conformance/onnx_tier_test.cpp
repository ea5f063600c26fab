// The onnx tier must notice: wrong values, shapes, types, missing outputs, refusals. It runs real node tests on
// answers that are made up here.
#include "core/conform/onnx_tier.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/conform/reasons.h"
#include "core/conform/report.h"
#include "core/import/onnx_io/values.h"

namespace candela::conform {
namespace {

using Outcome = CaseResult::Outcome;
const std::string kData = "/usr/share/libonnx-testdata/data/node";

OnnxCase findCase(const std::string& name) { return {"onnx:" + name, kData + "/" + name}; }

/// The tensors that the node test itself expects.
std::vector<Tensor> expectedOutputs(const std::string& name, int count) {
  std::vector<Tensor> outputs;
  for (int i = 0; i < count; ++i) {
    auto tensor = onnx_io::readTensor(fmt::format("{}/{}/test_data_set_0/output_{}.pb", kData, name, i));
    EXPECT_TRUE(tensor.isOk()) << tensor.status().message();
    outputs.push_back(*tensor);
  }
  return outputs;
}

CaseResult judge(const std::string& name, std::vector<flow::Value> answer) {
  return runOnnxCase(findCase(name), [&](import::Script, const std::vector<flow::Value>&) -> Result<RunAnswer> {
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

TEST(OnnxTier, SequencesAreComparedItemByItem) {
  const std::string name = "test_sequence_insert_at_back";
  const auto right = onnx_io::readSequence(fmt::format("{}/{}/test_data_set_0/output_0.pb", kData, name));
  ASSERT_TRUE(right.isOk()) << right.status().message();
  EXPECT_EQ(judge(name, {*right}).outcome, Outcome::passed);
  std::vector<Tensor> shorter(right->begin(), right->end() - 1), other = *right;
  EXPECT_NE(judge(name, {shorter}).reason.find("sequence of"), std::string::npos) << "another length";
  EXPECT_EQ(judge(name, {flow::Value()}).outcome, Outcome::failed);
  EXPECT_EQ(judge(name, {right->front()}).outcome, Outcome::failed);
  other.back() = changed(other.back(), 0, 1);
  EXPECT_NE(judge(name, {other}).reason.find("[3]"), std::string::npos) << judge(name, {other}).reason;
}

TEST(OnnxTier, RefusalsCountAsUnsupportedAndErrorsAsFailed) {
  const auto with = [](Status status) {
    return runOnnxCase(findCase("test_add"),
                       [&](import::Script, const std::vector<flow::Value>&) -> Result<RunAnswer> { return status; });
  };
  EXPECT_EQ(with(failure(Code::unsupported, "not yet")).outcome, Outcome::unsupported);
  EXPECT_EQ(with(failure(Code::unsupported, "not yet")).reason, "not yet");
  for (const Code code : {Code::refused, Code::internal, Code::bad_model, Code::out_of_memory})
    EXPECT_EQ(with(Status(code, "no")).outcome, Outcome::failed);
  EXPECT_EQ(runOnnxCase({"onnx:none", kData + "/no_such_case"}, nullptr).outcome, Outcome::failed);
}

TEST(OnnxTier, ShapeOperandsRunAsConstantsAndAsInputs) {
  const std::vector<Tensor> right = expectedOutputs("test_reshape_reduced_dims", 1);
  std::vector<size_t> inputs;
  const auto answering = [&](bool both) {
    inputs.clear();
    return runOnnxCase(findCase("test_reshape_reduced_dims"),
                       [&](import::Script, const std::vector<flow::Value>& given) -> Result<RunAnswer> {
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
  const auto cases = listOnnxCases(kData);
  ASSERT_TRUE(cases.isOk()) << cases.status().message();
  EXPECT_GT(cases->size(), 900u);
  EXPECT_FALSE(listOnnxCases("/no/such/folder").isOk());
}

TEST(OnnxTier, SuitesStandInTheNames) {
  const auto cases = listOnnxCases(kData + "/..");
  ASSERT_TRUE(cases.isOk()) << cases.status().message();
  std::map<std::string, int> suites;
  for (const OnnxCase& one : *cases) ++suites[one.name.substr(0, one.name.find('/'))];
  EXPECT_EQ(
      suites,
      (std::map<std::string, int>{
          {"onnx:node", 932}, {"onnx:pytorch-converted", 82}, {"onnx:pytorch-operator", 35}, {"onnx:simple", 23}}));
}

TEST(OnnxTier, DataThatContradictsItsModelExplainsAFailure) {
  const CaseResult shape = judge("test_castlike_BFLOAT16_to_FLOAT", {});
  EXPECT_EQ(shape.outcome, Outcome::xfail);
  EXPECT_NE(shape.reason.find("'like' is f32[1] in the data"), std::string::npos) << shape.reason;
  const CaseResult cut = judge("test_cast_FLOAT_to_BFLOAT16", {});
  EXPECT_EQ(cut.outcome, Outcome::xfail);
  EXPECT_NE(cut.reason.find("truncated"), std::string::npos) << cut.reason;
  EXPECT_EQ(judge("test_cast_FLOAT16_to_FLOAT", {}).outcome, Outcome::failed) << "that data is right";
}

TEST(Report, CountsAndNames) {
  std::vector<CaseResult> results(3);
  results[0] = {"onnx:a", Outcome::passed, true, "", {4, 1, 100, 50}, 1};
  results[1] = {"onnx:b", Outcome::failed, false, "<wrong & \"bad\">", {}, 1};
  results[2] = {"onnx:c", Outcome::unsupported, false, "no such op", {}, 1};
  const auto json = resultsJson(results);
  EXPECT_EQ(json["total"], 3);
  EXPECT_EQ(json["passed"], 1);
  EXPECT_EQ(json["raw_passed"], 1);
  EXPECT_EQ(json["failed"][0]["case"], "onnx:b");
  EXPECT_EQ(json["unsupported"][0]["reason"], "no such op");
  EXPECT_EQ(json["unsupported"][0]["class"], "other");
  EXPECT_EQ(json["unsupported_by_class"].dump(), R"({"other":1})");
  EXPECT_EQ(json["native"]["nodes"], 0.25);
  EXPECT_EQ(json["native"]["macs"], 0.5);
  const std::string xml = junitXml(results, "soft");
  EXPECT_NE(xml.find("<testsuite name=\"soft:onnx\" tests=\"3\" failures=\"1\" errors=\"0\" skipped=\"1\""),
            std::string::npos)
      << xml;
  EXPECT_NE(xml.find("<failure message=\"&lt;wrong &amp; &quot;bad&quot;&gt;\"/>"), std::string::npos) << xml;
}

TEST(Report, ClassesOfReasons) {
  EXPECT_EQ(reasonClass("'x' is a tensor of STRING"), "strings");
  EXPECT_EQ(reasonClass("m.onnx: input 's' is a sequence\nm.onnx: node 'n' (SequenceAt): operator SequenceAt of"),
            "sequences");
  EXPECT_EQ(reasonClass("m.onnx: node 'a (b)' (NonZero): operator NonZero of opset 13 is not supported"),
            "data-dependent shapes");
  EXPECT_EQ(reasonClass("m.onnx: node 'n' (Adam): operator ai.onnx.preview.training.Adam of opset 1"), "training");
  EXPECT_EQ(reasonClass("m.onnx: node 'l' (Loop): operator Loop\nm.onnx: node 'NonZero' (Conv): operator Conv"),
            "other")
      << "one complaint of no class is enough";
  EXPECT_EQ(reasonClass("node 'n' (Mish): operator Mish of opset 18 is not supported"), "other");
  EXPECT_EQ(reasonClass(""), "other");
}

TEST(Report, QueriesAndShards) {
  EXPECT_TRUE(matchesQuery("onnx:test_add_bcast", "onnx:test_add*"));
  EXPECT_TRUE(matchesQuery("onnx:test_add_bcast", "test_add*"));
  EXPECT_FALSE(matchesQuery("onnx:test_add_bcast", "onnx:test_add"));
  EXPECT_FALSE(matchesQuery("onnx:test_add_bcast", "abi:test_add*"));
  for (const char* bad : {"", "1", "0/2", "3/2", "1/2x", "a/b", "1/"}) EXPECT_FALSE(parseShard(bad).isOk()) << bad;
  size_t held = 0;
  for (const char* text : {"1/3", "2/3", "3/3"}) {
    const auto shard = parseShard(text);
    ASSERT_TRUE(shard.isOk());
    for (size_t i = 0; i < 10; ++i) held += shard->holds(i);
  }
  EXPECT_EQ(held, 10u) << "every case is in exactly one shard";
}

} // namespace
} // namespace candela::conform
