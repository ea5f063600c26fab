#include "conformance/report/corpus.h"

#include <algorithm>
#include <filesystem>

#include "core/support/file.h"
#include "core/support/hash.h"
#include "core/support/text/scan.h"

namespace candela::conformance::report {
namespace {

namespace fs = std::filesystem;

/// "path hash" for each file below a folder, sorted; nothing where there is no such folder.
Result<std::string> hashedFiles(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error))
    if (std::error_code ignored; at->is_regular_file(ignored)) files.push_back(at->path());
  std::sort(files.begin(), files.end());
  std::string text;
  for (const fs::path& file : files) {
    CDL_ASSIGN(const Bytes bytes, mapFile(file.string()));
    text += fmt::format("{} {}\n", file.lexically_relative(folder).string(),
                        hashText(sha256(bytes.data(), bytes.size())));
  }
  return text;
}

} // namespace

Result<SuiteVersion> parseSuiteVersion(const std::string& text) {
  const std::vector<std::string> parts = text::split(text, '.');
  const auto major = text::parseNumber<unsigned>(parts.front()),
             minor = text::parseNumber<unsigned>(parts.back());
  if (parts.size() != 2 || !major || !minor)
    return badArgument("'{}' is no version of the suite, as \"1.4\" is", text);
  return SuiteVersion{*major, *minor};
}

Result<std::string> casesOf(Size size) {
  std::string text;
  size_t count = 0;
  for (const Tier& tier : allTiers()) {
    if (std::string_view(tier.name) == "onnx") continue;
    CDL_ASSIGN(const std::vector<Case> cases,
               tier.list({.size = size, .onnxData = {}, .failures = {}}));
    count += cases.size();
    for (const Case& one : cases) text += one.address + "\n";
  }
  return fmt::format("{} {}", count, hashText(sha256(text.data(), text.size())));
}

Result<Corpus> wholeCorpus(const Selection& selection) {
  Corpus corpus;
  Selection all = selection;
  all.size = Size::nightly;
  all.seed = Selection().seed;
  std::string text;
  for (const Tier& tier : allTiers()) {
    const Result<std::vector<Case>> cases = tier.list(all);
    if (!cases && cases.status().code() == Code::not_found) {
      corpus.absent.emplace_back(tier.name, cases.status().message());
      continue;
    }
    CDL_TRY(cases.status());
    for (const Case& one : *cases) {
      corpus.addresses.push_back(one.address);
      text += one.address + "\n";
    }
  }
  CDL_ASSIGN(const std::string files, hashedFiles(selection.onnxData));
  text += files;
  corpus.hash = hashText(sha256(text.data(), text.size()));
  return corpus;
}

} // namespace candela::conformance::report
