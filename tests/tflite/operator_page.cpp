// Writes, or holds, the table of operators in docs/reference/tflite.md.
//
// usage: tflite_operator_page PAGE [--write]
//
// Exit status: 0 the page has that table, 1 it has another one, 2 bad usage.
#include <fmt/format.h>

#include <cstring>
#include <fstream>
#include <sstream>

#include "core/compiler/import/tflite/model.h"

namespace candela {
namespace {

constexpr const char* kBegin = "<!-- operators: tests/tflite/operator_page.cpp -->\n";
constexpr const char* kEnd = "<!-- end of operators -->\n";

std::string table() {
  const auto supported = import::tflite::supportedOperators();
  const auto unsupported = import::tflite::unsupportedOperators();
  std::string text = fmt::format("Of {} builtin operators {} are supported.\n\n",
                                 supported.size() + unsupported.size(), supported.size());
  text += "| operator | limits |\n|---|---|\n";
  for (const auto& [name, limits] : supported) text += fmt::format("| {} | {} |\n", name, limits);
  return text + fmt::format("\nNot supported, unless a backend claims them: {}.\n",
                            fmt::join(unsupported, ", "));
}

int hold(const std::string& path, bool writes) {
  std::ifstream file(path);
  std::stringstream content;
  content << file.rdbuf();
  const std::string page = content.str();
  const size_t begin = page.find(kBegin), end = page.find(kEnd);
  if (begin == page.npos || end == page.npos) {
    fmt::print(stderr, "tflite_operator_page: {} has no place for the table\n", path);
    return 2;
  }
  const std::string wanted = page.substr(0, begin) + kBegin + table() + page.substr(end);
  if (wanted == page) return 0;
  if (writes) {
    std::ofstream(path) << wanted;
    return 0;
  }
  fmt::print(stderr, "tflite_operator_page: {} has another table; renew it with --write\n", path);
  return 1;
}

} // namespace
} // namespace candela

int main(int argc, char** argv) {
  const bool writes = argc == 3 && std::strcmp(argv[2], "--write") == 0;
  if (argc != 2 && !writes) {
    fmt::print(stderr, "usage: tflite_operator_page PAGE [--write]\n");
    return 2;
  }
  return candela::hold(argv[1], writes);
}
