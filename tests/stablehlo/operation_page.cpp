// Writes, or holds, the table of operations in docs/reference/stablehlo.md.
//
// usage: stablehlo_operation_page PAGE [--write]
//
// Exit status: 0 the page has that table, 1 it has another one, 2 bad usage.
#include <fmt/format.h>

#include <cstring>
#include <fstream>
#include <sstream>

#include "core/compiler/import/stablehlo/model.h"

namespace candela {
namespace {

constexpr const char* kBegin = "<!-- operations: tests/stablehlo/operation_page.cpp -->\n";
constexpr const char* kEnd = "<!-- end of operations -->\n";

std::string table() {
  const auto supported = import::stablehlo::supportedOperations();
  std::string text = fmt::format("{} operations are read.\n\n", supported.size());
  text += "| operation | limits |\n|---|---|\n";
  for (const auto& [name, limits] : supported) text += fmt::format("| {} | {} |\n", name, limits);
  return text;
}

int hold(const std::string& path, bool writes) {
  std::ifstream file(path);
  std::stringstream content;
  content << file.rdbuf();
  const std::string page = content.str();
  const size_t begin = page.find(kBegin), end = page.find(kEnd);
  if (begin == page.npos || end == page.npos) {
    fmt::print(stderr, "stablehlo_operation_page: {} has no place for the table\n", path);
    return 2;
  }
  const std::string wanted = page.substr(0, begin) + kBegin + table() + page.substr(end);
  if (wanted == page) return 0;
  if (writes) {
    std::ofstream(path) << wanted;
    return 0;
  }
  fmt::print(stderr, "stablehlo_operation_page: {} has another table; renew it with --write\n",
             path);
  return 1;
}

} // namespace
} // namespace candela

int main(int argc, char** argv) {
  const bool writes = argc == 3 && std::strcmp(argv[2], "--write") == 0;
  if (argc != 2 && !writes) {
    fmt::print(stderr, "usage: stablehlo_operation_page PAGE [--write]\n");
    return 2;
  }
  return candela::hold(argv[1], writes);
}
