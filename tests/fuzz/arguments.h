#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace candela::conformance {

/// What the tools that fuzz graphs share of their command lines.
struct FuzzArguments {
  uint64_t seed = 1, count;          ///< graph i has seed + i
  std::vector<std::string> backends; ///< --backends, separated by commas
  std::string out = "fuzz_failures"; ///< --out, the folder of failures
};

/// Takes pairs of a flag and a value; `texts` are flags of the tool's own. False for an unknown
/// flag, one without a value, and a number that is none.
inline bool parseArguments(int count, char** words, FuzzArguments& arguments,
                           const std::map<std::string, std::string*>& texts = {}) {
  for (int i = 1; i < count; i += 2) {
    if (i + 1 == count) return false;
    const std::string flag = words[i], value = words[i + 1];
    const auto number = [&](uint64_t& to) {
      const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), to);
      return error == std::errc() && end == value.data() + value.size();
    };
    if (const auto text = texts.find(flag); text != texts.end()) {
      *text->second = value;
    } else if (flag == "--out") {
      arguments.out = value;
    } else if (flag == "--backends") {
      arguments.backends.clear();
      for (size_t at = 0; at <= value.size();) {
        const size_t end = std::min(value.find(',', at), value.size());
        arguments.backends.push_back(value.substr(at, end - at));
        at = end + 1;
      }
    } else if (flag == "--seed" || flag == "--count") {
      if (!number(flag == "--seed" ? arguments.seed : arguments.count)) return false;
    } else {
      return false;
    }
  }
  return true;
}

} // namespace candela::conformance
