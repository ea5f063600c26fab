// One version of the suite stands for one set of cases: suite_versions.txt holds which.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>

#include "conformance/report/corpus.h"
#include "conformance/report/report.h"

namespace candela::conformance {
namespace {

/// "0.2 quick" -> "1013 <hash>", and the versions in their order.
struct Known {
  std::map<std::string, std::string> cases;
  std::vector<report::SuiteVersion> versions;
};
Known known() {
  Known read;
  std::ifstream file(CANDELA_SOURCE_DIR "/tests/conformance/suite_versions.txt");
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    std::string version, size, count, hash;
    words >> version >> size >> count >> hash;
    EXPECT_TRUE(read.cases.try_emplace(version + " " + size, count + " " + hash).second)
        << line << ": for the second time";
    const report::SuiteVersion parsed = report::parseSuiteVersion(version).orAbort();
    if (read.versions.empty() || read.versions.back() != parsed) read.versions.push_back(parsed);
  }
  return read;
}

TEST(SuiteVersion, StandsForOneSetOfCases) {
  const Known all = known();
  for (const Size size : {Size::quick, Size::full, Size::nightly}) {
    const std::string name = report::kSuiteVersion.text() + " " + report::sizeName(size),
                      now = report::casesOf(size).orAbort();
    const auto at = all.cases.find(name);
    EXPECT_TRUE(at != all.cases.end() && at->second == now)
        << "where the cases changed, raise kSuiteVersion (conformance/report/corpus.h); "
           "suite_versions.txt wants the "
           "line\n"
        << name << " " << now;
  }
}

TEST(SuiteVersion, Rises) {
  const Known all = known();
  ASSERT_FALSE(all.versions.empty());
  EXPECT_TRUE(std::ranges::is_sorted(all.versions));
  EXPECT_EQ(all.versions.back(), report::kSuiteVersion);
}

} // namespace
} // namespace candela::conformance
