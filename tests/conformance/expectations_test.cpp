// The two lists of a backend: what they excuse, what they do not, and how a wrong one is refused.
#include "conformance/expectations.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "conformance/report/corpus.h"

namespace candela::conformance {
namespace {

using Outcome = CaseResult::Outcome;

Expectations listOf(const std::string& text) {
  auto parsed = Expectations::parse(text, "acme.toml");
  EXPECT_TRUE(parsed.isOk()) << parsed.status().message();
  return parsed ? *parsed : Expectations();
}

CaseResult applied(const Expectations& list, const std::string& name, Outcome outcome) {
  CaseResult result{.name = name, .outcome = outcome, .reason = "as it was"};
  list.apply(result);
  return result;
}

const char* const kBoth = R"(
[[unsupported]]
cases = "primitives:pool/*"
reason = "no pooling unit"
[[xfail]]
cases = "primitives:unary/exp_f16:*"
reason = "a new table is under way"
owner = "kernels@acme.example"
expires = "99.0"
)";

TEST(Expectations, ExcuseWhatTheySayAndNothingElse) {
  const Expectations list = listOf(kBoth);
  const std::string pool = "primitives:pool/max_f32:n=1", exp = "primitives:unary/exp_f16:n=1";
  EXPECT_EQ(applied(list, exp, Outcome::failed).outcome, Outcome::xfail);
  EXPECT_EQ(applied(list, exp, Outcome::failed).reason,
            "a new table is under way (kernels@acme.example, until suite 99.0): as it was");
  EXPECT_EQ(applied(list, pool, Outcome::unsupported).outcome, Outcome::unsupported);
  EXPECT_EQ(applied(list, pool, Outcome::unsupported).reason, "no pooling unit (as it was)");
  EXPECT_EQ(applied(list, pool, Outcome::failed).outcome, Outcome::failed)
      << "claimed and wrong is no lack";
  EXPECT_EQ(applied(list, "primitives:unary/exp_f32:n=1", Outcome::failed).outcome,
            Outcome::failed);
  EXPECT_EQ(applied(list, exp, Outcome::mistrusted).outcome, Outcome::mistrusted);
}

TEST(Expectations, AnUnexpectedPassHasFailed) {
  const Expectations list = listOf(kBoth);
  for (const char* name : {"primitives:pool/max_f32:n=1", "primitives:unary/exp_f16:n=1"}) {
    const CaseResult result = applied(list, name, Outcome::passed);
    EXPECT_EQ(result.outcome, Outcome::failed);
    EXPECT_EQ(result.reason.substr(0, 34), "passed, but acme.toml lists it as ");
  }
  EXPECT_EQ(applied(list, "primitives:binary/add_f32:n=1", Outcome::passed).outcome,
            Outcome::passed);
  // No second entry turns the failure that an unexpected pass is into an expected one.
  const Expectations twice = listOf(std::string(kBoth) + R"(
[[xfail]]
cases = "*"
reason = "everything"
owner = "me"
expires = "99.0"
)");
  EXPECT_EQ(applied(twice, "primitives:unary/exp_f16:n=1", Outcome::passed).outcome,
            Outcome::failed);
}

TEST(Expectations, AnEntryEndsWithItsVersion) {
  const auto until = [](const std::string& version) {
    return listOf("[[xfail]]\ncases = \"a:b\"\nreason = \"r\"\nowner = \"o\"\nexpires = \"" +
                  version + "\"\n");
  };
  const report::SuiteVersion next{report::kSuiteVersion.major, report::kSuiteVersion.minor + 1};
  EXPECT_EQ(applied(until(next.text()), "a:b", Outcome::failed).outcome, Outcome::xfail);
  EXPECT_TRUE(until(next.text()).problems({"a:b"}).empty());
  const Expectations over = until(report::kSuiteVersion.text());
  EXPECT_EQ(applied(over, "a:b", Outcome::failed).outcome, Outcome::failed);
  ASSERT_EQ(over.problems({"a:b"}).size(), 1u);
  EXPECT_NE(over.problems({"a:b"})[0].find("acme.toml: xfail 'a:b': expired"), std::string::npos);
  EXPECT_LT((report::SuiteVersion{1, 9}), (report::SuiteVersion{1, 10}));
}

TEST(Expectations, AnEntryForNothingIsAProblem) {
  const auto problems = listOf(kBoth).problems({"primitives:pool/max_f32:n=1"});
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0],
            "acme.toml: xfail 'primitives:unary/exp_f16:*': the suite has no such case");
}

TEST(Expectations, MistakesAreToldByFileLineAndKey) {
  const std::pair<const char*, const char*> cases[] = {
      {"[[xfail]\n", "acme.toml:1: "},
      {"\n[[skipped]]\ncases = \"a\"\n", "acme.toml:2: skipped: lists are unsupported and xfail"},
      {"unsupported = \"all\"\n", "acme.toml:1: unsupported: entries are written [[unsupported]]"},
      {"[[unsupported]]\ncases = \"a\"\n", "acme.toml:1: unsupported.reason is missing"},
      {"[[unsupported]]\ncases = \"a\"\nreason = \"r\"\nowner = \"o\"\n",
       "acme.toml:4: unsupported.owner: there is no such key"},
      {"[[unsupported]]\ncases = 3\n", "acme.toml:2: unsupported.cases: a text is wanted"},
      {"[[unsupported]]\ncases = \"\"\n", "acme.toml:2: unsupported.cases: a text is wanted"},
      {"[[xfail]]\ncases = \"a\"\nreason = \"r\"\nowner = \"o\"\n",
       "acme.toml:1: xfail.expires is missing"},
      {"[[xfail]]\nexpires = \"soon\"\n",
       "acme.toml:2: xfail.expires: 'soon' is no version of the suite"},
  };
  for (const auto& [text, message] : cases)
    EXPECT_EQ(Expectations::parse(text, "acme.toml")
                  .status()
                  .message()
                  .substr(0, std::string(message).size()),
              message);
  EXPECT_EQ(Expectations::read("/no/such.toml").status().code(), Code::not_found);
}

TEST(Expectations, LieBesideThePlugin) {
  const auto folder =
      std::filesystem::temp_directory_path() / fmt::format("candela_beside_{}", getpid());
  std::filesystem::create_directories(folder);
  const std::string plugin = (folder / "libcandela_acme.so").string();
  EXPECT_EQ(expectationsBeside(plugin), "");
  std::ofstream(folder / "libcandela_acme.expectations.toml") << "\n";
  EXPECT_EQ(expectationsBeside(plugin), (folder / "libcandela_acme.expectations.toml").string());
  EXPECT_EQ(expectationsBeside(""), "") << "linked in";
  std::filesystem::remove_all(folder);
}

} // namespace
} // namespace candela::conformance
