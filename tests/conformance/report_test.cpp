// Reports: that they count, that they come back from their files, and that files which do not
// belong together are refused by what differs.
#include "conformance/report/report.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "conformance/report/certificate.h"
#include "conformance/report/escape.h"
#include "conformance/report/html.h"
#include "conformance/report/journal.h"
#include "conformance/report/merge.h"
#include "conformance/report/reasons.h"
#include "conformance/report/tally.h"

namespace candela::conformance {
namespace {

using Json = nlohmann::ordered_json;
using Outcome = CaseResult::Outcome;
namespace fs = std::filesystem;

CaseResult result(std::string name, Outcome outcome, std::string reason = {}, Work work = {}) {
  return {.name = std::move(name),
          .outcome = outcome,
          .reason = std::move(reason),
          .work = work,
          .milliseconds = 1.5};
}

/// One of everything.
report::Report sample() {
  report::Report report;
  report.candelaVersion = "0.1.0";
  report.suiteVersion = "0.1";
  report.corpusHash = std::string(64, 'c');
  report.setting.tiers = {"primitives", "onnx"};
  report.candidate = {
      .backend = "./lib a.so", .options = {{"speed", "7"}}, .name = "acme", .version = "1.0"};
  report.results = {
      result("primitives:binary/add_f32:shape=3", Outcome::passed),
      result("primitives:binary/add_f32:shape=4", Outcome::emulated),
      result("primitives:unary/exp_f32:shape=3", Outcome::failed, "<got> & 'lost' \"it\" \x01"),
      result("primitives:unary/exp_f32:shape=4", Outcome::passed),
      result("primitives:unary/tanh_f32:shape=3", Outcome::passed),
      result("onnx:test_a", Outcome::passed, "", {4, 1, 100, 50}),
      result("onnx:test_b", Outcome::unsupported, "'x' is a tensor of STRING"),
      result("onnx:test_c", Outcome::xfail, "known"),
      result("onnx:test_d", Outcome::mistrusted, "wide"),
  };
  report.results[5].rawPassed = true;
  report.selected = report.results.size();
  report.waivers = {{"unsupported", "onnx:test_b", "no strings"}};
  report.wallMilliseconds = 12;
  return report;
}

class InFolder : public testing::Test {
protected:
  void SetUp() override {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ =
        fs::temp_directory_path() / fmt::format("candela_report_{}_{}", test->name(), getpid());
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string read(const std::string& name) const {
    std::ifstream in(path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name), std::ios::binary) << text;
  }

private:
  fs::path folder_;
};

TEST(Query, AddressesGlobsAndTerms) {
  const std::string address = "primitives:matmul/i8_i32:m=3;k=257;data=corners";
  for (const char* query :
       {"primitives:matmul/i8_i32:m=3;k=257;data=corners", "primitives:matmul/*", "matmul/i8_i32:*",
        "primitives:matmul/i8_i32:k=257;*", "primitives:*/i8_i32:data=cor*;k=257;*",
        "primitives:matmul/i8_i32:k=257;m=3;data=corners"})
    EXPECT_TRUE(report::matchesQuery(address, query)) << query;
  for (const char* query :
       {"primitives:matmul/i8_i32", "ops:matmul/*", "primitives:matmul/i8_i32:k=25;*",
        "primitives:matmul/i8_i32:k=257;m=3", "primitives:matmul/i8_i32:k=257;n=1;*", ""})
    EXPECT_FALSE(report::matchesQuery(address, query)) << query;
  EXPECT_TRUE(report::matchesQuery("onnx:test_add_bcast", "test_add*"));
  EXPECT_FALSE(report::matchesQuery("onnx:test_add_bcast", "abi:test_add*"));
}

TEST(Query, AnAddressIsNoGlob) {
  const std::vector<Case> cases = {{"a:x[1]", nullptr}, {"a:x1", nullptr}, {"a:y", nullptr}};
  EXPECT_EQ(report::matchingCases(cases, {"a:x[1]"}), (std::vector<size_t>{0}))
      << "as a glob it would be a:x1";
  EXPECT_EQ(report::matchingCases(cases, {"a:y", "a:x?"}), (std::vector<size_t>{1, 2}));
  EXPECT_EQ(report::matchingCases(cases, {}).size(), 3u);
}

TEST(Query, Shards) {
  for (const char* bad : {"", "1", "0/2", "3/2", "1/2x", "a/b", "1/"})
    EXPECT_FALSE(report::parseShard(bad).isOk()) << bad;
  size_t held = 0;
  for (const char* text : {"1/3", "2/3", "3/3"})
    for (size_t i = 0; i < 10; ++i) held += report::parseShard(text)->holds(i);
  EXPECT_EQ(held, 10u) << "every case is in exactly one shard";
}

TEST(Tally, RowsAndGraphsAreNativeEachInTheirWay) {
  const report::Report report = sample();
  const report::Tally all = report::tallyOf(report.results);
  uint64_t sum = 0;
  for (const uint64_t count : all.counts) sum += count;
  EXPECT_EQ(sum, all.total);
  EXPECT_EQ(report::tallyByTier(report.results).size(), 2u);
  const report::Native native = report::nativeOf(report.results);
  EXPECT_EQ(native.rows, 3u);
  EXPECT_EQ(native.wholeRows, 1u);
  EXPECT_DOUBLE_EQ(native.rowShare, (0.5 + 0.5 + 1) / 3);
  EXPECT_EQ(native.work.nodes, 4u);
}

TEST(Report, SaysWhatScriptsRelyOn) {
  const Json json = report::reportJson(sample());
  EXPECT_EQ(json["schema"], "candela.conform/1");
  EXPECT_EQ(json["total"], 9);
  EXPECT_EQ(json["passed"], 4);
  EXPECT_EQ(json["raw_passed"], 1);
  EXPECT_EQ(json["failed"][0]["case"], "primitives:unary/exp_f32:shape=3");
  EXPECT_EQ(json["unsupported"][0]["class"], "strings");
  EXPECT_EQ(json["unsupported_by_class"].dump(), R"({"strings":1})");
  EXPECT_EQ(json["native"]["nodes"], 0.25);
  EXPECT_EQ(json["native"]["macs"], 0.5);
  EXPECT_EQ(json["waivers"][0]["count"], 1);
  EXPECT_EQ(json["conformant"], false);
}

TEST(Report, ComesBackFromItsFile) {
  const std::string text = report::reportText(report::reportJson(sample()));
  const auto parsed = report::parseReport(text, "r.json");
  ASSERT_TRUE(parsed.isOk()) << parsed.status().message();
  EXPECT_EQ(report::reportText(report::reportJson(*parsed)), text);
  for (const char* key : {"seed", "plugin", "cases", "corpus_hash"}) {
    Json less = Json::parse(text);
    less.erase(key);
    EXPECT_NE(report::parseReport(less.dump(), "r.json").status().message().find(key),
              std::string::npos)
        << key;
  }
  EXPECT_NE(report::parseReport("{}", "r.json").status().message().find("r.json"),
            std::string::npos);
}

TEST(Report, NamesRowsThatNeverAnswer) {
  report::Report report = sample();
  EXPECT_EQ(report::htmlPage(report).find("never answers"), std::string::npos);
  report.candidate.idleRows = {"row 7 (matmul f8e4m3,f8e4m3,f32): no product has these types"};
  const auto parsed = report::parseReport(report::reportText(report::reportJson(report)), "r.json");
  ASSERT_TRUE(parsed.isOk()) << parsed.status().message();
  EXPECT_EQ(parsed->candidate.idleRows, report.candidate.idleRows);
  EXPECT_NE(report::htmlPage(*parsed).find("<dt>never answers</dt><dd>row 7 (matmul"),
            std::string::npos);
}

TEST(Report, WhatIsNoReportIsSaidInWordsOfOurs) {
  const Json good = report::reportJson(sample());
  const auto complaint = [](const std::string& text) {
    const auto parsed = report::parseReport(text, "r.json");
    return parsed ? "taken" : parsed.status().message();
  };
  EXPECT_EQ(complaint(good.dump(2).substr(0, 40)),
            "r.json: is no JSON from line 3, column 6 on: cut off or edited?");
  const auto with = [&](const char* pointer, const Json& value) {
    Json edited = good;
    edited[Json::json_pointer(pointer)] = value;
    return complaint(edited.dump());
  };
  const std::string head = "r.json: no report of conform: ";
  EXPECT_EQ(complaint("[1]"), head + "[1] stands where fields should, 'schema' among them");
  EXPECT_EQ(with("/seed", -1), head + "the field 'seed' is -1, not a whole number");
  EXPECT_EQ(with("/tiers", {{"a", 1}}),
            head + "the field 'tiers' is {\"a\":1}, not a list or table of its kind");
  EXPECT_EQ(with("/plugin", 7), head + "7 stands where fields should, 'file' among them");
  EXPECT_EQ(with("/size", "huge"),
            head + "the field 'size' is 'huge'; sizes are quick, full, nightly");
  EXPECT_EQ(with("/cases/0/outcome", "good"),
            head + "primitives:binary/add_f32:shape=3: 'good' is no outcome of a case");
  EXPECT_EQ(with("/cases/5/nodes", {1}), head + "onnx:test_a: 'nodes' has 1 numbers, not 2");
  EXPECT_EQ(with("/cases", "none"),
            head + "the field 'cases' is \"none\", not a list or table of its kind");
}

TEST(Report, RerunsWithWhatIsNeeded) {
  report::Report report = sample();
  EXPECT_EQ(report::rerunCommand(report, "a:b/c:d=1;e=2"),
            "candela conform --backend './lib a.so' --option speed=7 --cases 'a:b/c:d=1;e=2'");
  report.setting.seed = 5;
  report.notInNightly = {"a:b"};
  EXPECT_EQ(
      report::rerunCommand(report, "a:b"),
      "candela conform --backend './lib a.so' --option speed=7 --size full --seed 5 --cases a:b");
}

TEST(Report, OneMistrustedCaseInTwentyIsTheMost) {
  report::Report report = sample();
  report.results.clear();
  for (int i = 0; i < 20; ++i)
    report.results.push_back(result(fmt::format("ops:gelu/f32:n={}", i), Outcome::passed));
  report.results[3].outcome = Outcome::mistrusted;
  EXPECT_TRUE(report::isConformant(report));
  report.results[4].outcome = Outcome::mistrusted;
  ASSERT_EQ(report::problemsOf(report).size(), 1u);
  EXPECT_EQ(report::problemsOf(report)[0].substr(0, 32), "ops:gelu/f32: 2 of 20 cases are ");
  report.setting.queries = {"ops:*"};
  EXPECT_TRUE(report::isConformant(report)) << "chosen cases are no op's share";
}

TEST(Report, JUnitCountsWhatItHolds) {
  const std::string xml = report::junitXml(sample());
  EXPECT_NE(
      xml.find("name=\"./lib a.so:onnx\" tests=\"4\" failures=\"0\" errors=\"0\" skipped=\"3\""),
      std::string::npos)
      << xml;
  EXPECT_NE(xml.find("<failure message=\"&lt;got&gt; &amp; &#39;lost&#39; &quot;it&quot; ?\"/>"),
            std::string::npos)
      << xml;
}

TEST(Report, ThePageEscapesWhatAPluginSays) {
  report::Report report = sample();
  report.candidate.name = "<script>alert(1)</script>";
  const std::string page = report::htmlPage(report);
  EXPECT_EQ(page.find("<script"), std::string::npos);
  EXPECT_NE(page.find("&lt;script&gt;"), std::string::npos);
  EXPECT_NE(page.find("--cases primitives:unary/exp_f32:shape=3"), std::string::npos)
      << "the rerun line";
  EXPECT_NE(page.find("no strings"), std::string::npos) << "the waiver's reason";
  EXPECT_EQ(report::markupEscaped("\xC3\xA9\xFF\xE2\x82\xED\xA0\x80z"), "\xC3\xA9??????z")
      << "bytes that are no UTF-8";
}

TEST(Merge, ShardsBecomeTheRun) {
  const report::Report whole = sample();
  std::vector<report::Report> shards(3, whole);
  for (uint64_t k = 0; k < 3; ++k) {
    shards[k].setting.shard = {k + 1, 3};
    shards[k].results.clear();
    for (size_t i = k; i < whole.results.size(); i += 3)
      shards[k].results.push_back(whole.results[i]);
    shards[k].wallMilliseconds = 4;
  }
  const std::vector<std::string> files = {"a", "b", "c"};
  const auto merged = report::mergeReports({shards[2], shards[0], shards[1]}, files);
  ASSERT_TRUE(merged.isOk()) << merged.status().message();
  EXPECT_EQ(report::reportText(report::reportJson(*merged)),
            report::reportText(report::reportJson(whole)));

  const auto refused = [&](const std::vector<report::Report>& given) {
    return report::mergeReports(given, files).status().message();
  };
  EXPECT_EQ(refused({shards[0], shards[2]}), "shard 2/3 is missing");
  EXPECT_EQ(refused({shards[0], shards[1], shards[1]}), "shard 2/3 stands in b and in c");
  report::Report other = shards[1];
  other.setting.seed = 2;
  EXPECT_EQ(refused({shards[0], other, shards[2]}),
            "a and b are of different runs: seed is 1 and 2");
  other = shards[1];
  other.candidate.sha256 = "ff";
  EXPECT_NE(refused({shards[0], other, shards[2]}).find("plugin.sha256 is"), std::string::npos);
  other = shards[1];
  other.results.pop_back();
  EXPECT_EQ(refused({shards[0], other, shards[2]}), "b has 2 cases, shard 2/3 of 9 has 3");
}

using JournalTest = InFolder;

TEST_F(JournalTest, KeepsWhatWasFinishedAndDropsATornLine) {
  const report::Report run = sample();
  const std::vector<std::string> addresses = {"onnx:test_a", "onnx:test_b", "onnx:test_c"};
  for (int i = 0; i < 2; ++i) {
    auto journal = report::Journal::open(path("j"), run, addresses);
    ASSERT_TRUE(journal.isOk()) << journal.status().message();
    EXPECT_EQ(journal->had().size(), static_cast<size_t>(i));
    ASSERT_TRUE(journal->add(run.results[5 + static_cast<size_t>(i)]).isOk());
  }
  const std::string full = read("j");
  for (const size_t cut : {size_t{1}, size_t{20}}) {
    write("j", full.substr(0, full.size() - cut));
    const auto journal = report::Journal::open(path("j"), run, addresses);
    ASSERT_TRUE(journal.isOk()) << journal.status().message();
    ASSERT_EQ(journal->had().size(), 1u);
    EXPECT_EQ(journal->had()[0].name, "onnx:test_a");
    EXPECT_EQ(journal->had()[0].work.macs, 100u);
    EXPECT_EQ(read("j"), full.substr(0, full.rfind('\n', full.size() - 2) + 1))
        << "the next line begins where it did";
  }
}

TEST_F(JournalTest, OfAnotherRunOrDamagedIsRefused) {
  const report::Report run = sample();
  const std::vector<std::string> addresses = {"onnx:test_a", "onnx:test_b"};
  {
    auto journal = report::Journal::open(path("j"), run, addresses);
    for (size_t i = 5; i < 7; ++i) ASSERT_TRUE(journal->add(run.results[i]).isOk());
  }
  const auto refused = [&](const report::Report& other, const std::vector<std::string>& cases) {
    return report::Journal::open(path("j"), other, cases).status().message();
  };
  report::Report other = run;
  other.setting.seed = 9;
  EXPECT_NE(refused(other, addresses).find("its seed is 1, not 9"), std::string::npos)
      << refused(other, addresses);
  other = run;
  other.candidate.version = "1.1";
  EXPECT_NE(refused(other, addresses).find("its backend version is"), std::string::npos);
  EXPECT_NE(refused(run, {"onnx:test_a"}).find("its cases is"), std::string::npos);
  std::string text = read("j");
  const size_t place = text.find("test_a");
  text[place] = 'T';
  write("j", text);
  EXPECT_NE(refused(run, addresses).find("j:2: no line of a journal, or damaged"),
            std::string::npos);
  write("j", "a letter to someone");
  EXPECT_NE(refused(run, addresses).find("is no journal"), std::string::npos);
  EXPECT_EQ(read("j"), "a letter to someone") << "what is no journal stays as it is";
}

using CertificateTest = InFolder;

TEST_F(CertificateTest, EachEditedFieldIsNamed) {
  const std::string text = report::reportText(report::reportJson(sample()));
  const Json certificate = report::certificateOf(sample(), "acme.json", text);
  write("acme.json", text);
  const auto problemsWith = [&](const Json& edited) {
    write("acme.cert", edited.dump(2));
    const auto problems = report::verifyCertificate(path("acme.cert"), "");
    EXPECT_TRUE(problems.isOk()) << problems.status().message();
    return problems.isOk() ? problems->problems : std::vector<std::string>();
  };
  EXPECT_TRUE(problemsWith(certificate).empty());
  for (const auto& [key, value] : certificate.items()) {
    if (key == "schema") continue; // then it is no certificate
    Json edited = certificate;
    edited[key] = value.is_number() ? Json(value.get<double>() + 1) : Json("edited");
    if (key == "field_hashes") edited[key] = Json::object();
    const auto problems = problemsWith(edited);
    ASSERT_FALSE(problems.empty()) << key;
    if (key != "field_hashes") {
      EXPECT_EQ(problems[0].substr(0, key.size() + 1), key + ":");
    }
    edited = certificate;
    edited.erase(key);
    EXPECT_FALSE(problemsWith(edited).empty()) << key << " taken out";
  }
}

TEST_F(CertificateTest, OneMadeAnewForBetterNumbersIsRefusedByTheReport) {
  const report::Report run = sample();
  const std::string text = report::reportText(report::reportJson(run));
  report::Report better = run;
  better.results[2].outcome = Outcome::passed;
  write("acme.json", text);
  write("acme.cert", report::certificateOf(better, "acme.json", text).dump());
  const auto problems = report::verifyCertificate(path("acme.cert"), "");
  ASSERT_TRUE(problems.isOk());
  std::string all;
  for (const std::string& problem : problems->problems) all += problem + "\n";
  for (const char* field :
       {"conformant: true, but false in the report", "passed: 5, but 4", "failed: 0, but 1"})
    EXPECT_NE(all.find(field), std::string::npos) << field << " is not in\n" << all;
}

TEST_F(CertificateTest, TheReportAndThePluginAreChecked) {
  write("lib.so", "machine code");
  report::Report run = sample();
  run.candidate.sha256 = *report::fileHash(path("lib.so"));
  const std::string text = report::reportText(report::reportJson(run));
  write("acme.json", text);
  write("acme.cert", report::certificateOf(run, "acme.json", text).dump());
  const auto verified = report::verifyCertificate(path("acme.cert"), path("lib.so"));
  EXPECT_TRUE(verified->problems.empty());
  EXPECT_EQ(verified->scope.of,
            "acme 1.0, speed=7; suite 0.1, size full, seed 1, tiers primitives, onnx");
  EXPECT_EQ(verified->scope.result.substr(0, 56),
            "1 of 9 cases failed, 4 passed, 1 unsupported, 1 xfail, 1");
  write("lib.so", "machine code 2");
  EXPECT_EQ(
      report::verifyCertificate(path("acme.cert"), path("lib.so"))->problems.at(0).substr(0, 14),
      "plugin.sha256:");
  write("acme.json", text + " ");
  EXPECT_NE(report::verifyCertificate(path("acme.cert"), "")
                ->problems.at(0)
                .find("acme.json is not the file"),
            std::string::npos);
  fs::remove(path("acme.json"));
  EXPECT_EQ(report::verifyCertificate(path("acme.cert"), "")->problems.at(0).substr(0, 7),
            "report:");
  write("acme.cert", "{}");
  EXPECT_FALSE(report::verifyCertificate(path("acme.cert"), "").isOk());
}

TEST(Reasons, Classes) {
  EXPECT_EQ(report::reasonClass("'x' is a tensor of STRING"), "strings");
  EXPECT_EQ(
      report::reasonClass(
          "m.onnx: input 's' is a sequence\nm.onnx: node 'n' (SequenceAt): operator SequenceAt of"),
      "sequences");
  EXPECT_EQ(report::reasonClass(
                "m.onnx: node 'a (b)' (NonZero): operator NonZero of opset 13 is not supported"),
            "data-dependent shapes");
  EXPECT_EQ(report::reasonClass(
                "m.onnx: node 'n' (Adam): operator ai.onnx.preview.training.Adam of opset 1"),
            "training");
  EXPECT_EQ(
      report::reasonClass(
          "m.onnx: node 'l' (Loop): operator Loop\nm.onnx: node 'NonZero' (Conv): operator Conv"),
      "other")
      << "one complaint of no class is enough";
  EXPECT_EQ(report::reasonClass("node 'n' (Mish): operator Mish of opset 18 is not supported"),
            "other");
  EXPECT_EQ(report::reasonClass(""), "other");
}

} // namespace
} // namespace candela::conformance
