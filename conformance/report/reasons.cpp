#include "conformance/report/reasons.h"

#include <array>
#include <map>
#include <regex>

#include "core/support/text/scan.h"

namespace candela::conformance::report {
namespace {

constexpr const char* kStrings = "strings";
constexpr const char* kSequences = "sequences";
constexpr const char* kOptionals = "optionals";
constexpr const char* kTraining = "training";
constexpr const char* kDataDependent = "data-dependent shapes";
constexpr const char* kControlFlow = "run-time control flow";
constexpr const char* kMedia = "media";
constexpr const char* kRandom = "random";
constexpr const char* kClassical = "classical learning";
constexpr const char* kPreview = "preview";

/// Operators that are of one class as a whole.
const std::map<std::string, const char*, std::less<>> kOperators = {
    {"StringConcat", kStrings},
    {"StringNormalizer", kStrings},
    {"StringSplit", kStrings},
    {"RegexFullMatch", kStrings},
    {"TfIdfVectorizer", kStrings}, // of words, though they may be numbered already
    {"ConcatFromSequence", kSequences},
    {"SequenceAt", kSequences},
    {"SequenceConstruct", kSequences},
    {"SequenceEmpty", kSequences},
    {"SequenceErase", kSequences},
    {"SequenceInsert", kSequences},
    {"SequenceLength", kSequences},
    {"SequenceMap", kSequences},
    {"SplitToSequence", kSequences},
    {"Optional", kOptionals},
    {"OptionalGetElement", kOptionals},
    {"OptionalHasElement", kOptionals},
    {"Compress", kDataDependent},
    {"NonMaxSuppression", kDataDependent},
    {"NonZero", kDataDependent},
    {"Unique", kDataDependent},
    {"If", kControlFlow},
    {"Loop", kControlFlow},
    {"Scan", kControlFlow},
    {"ImageDecoder", kMedia},
    {"Bernoulli", kRandom},
    {"Multinomial", kRandom},
    {"RandomNormal", kRandom},
    {"RandomNormalLike", kRandom},
    {"RandomUniform", kRandom},
    {"RandomUniformLike", kRandom},
};

/// What complaints say whatever the operator.
constexpr std::array<std::pair<std::string_view, const char*>, 10> kTexts = {{
    {"STRING", kStrings},
    {"a list of strings", kStrings},
    {"is a sequence", kSequences},
    {"is an optional", kOptionals},
    {"operator ai.onnx.preview.training.", kTraining},
    {"operator ai.onnx.preview.", kPreview},
    {"operator ai.onnx.ml.", kClassical},
    {"shape that depends on data", kDataDependent},
    {"is not known when the model is imported", kDataDependent},
    {"needs random numbers", kRandom},
}};

const char* classOfLine(const std::string& line) {
  for (const auto& [text, name] : kTexts)
    if (line.find(text) != std::string::npos) return name;
  static const std::regex kNode(R"(node '[^']*' \((\w+)\): )"); // as the walk begins a complaint
  std::smatch match;
  if (!std::regex_search(line, match, kNode)) return nullptr;
  const auto found = kOperators.find(match[1].str());
  return found == kOperators.end() ? nullptr : found->second;
}

} // namespace

std::string reasonClass(std::string_view reason) {
  const char* first = nullptr;
  for (const std::string& line : text::split(std::string(reason), '\n')) {
    const char* name = classOfLine(line);
    if (!name) return "other";
    if (!first) first = name;
  }
  return first ? first : "other";
}

} // namespace candela::conformance::report
