#pragma once

#include <fmt/format.h>

#include <cstring>
#include <fstream>
#include <sstream>
#include <string>

namespace candela::test {

/// A table that a program makes, in a page that people write.
struct PageTable {
  const char* program; ///< for messages
  const char* begin;   ///< the line before the table, with its end
  std::string text;
};
constexpr const char* kEndOfTable = "<!-- end of operators -->\n";

/// Writes, or holds, the table between its lines. Returns the exit status: 0 the page has that
/// table, 1 it has another one, 2 it has no place for it.
inline int holdTable(const std::string& path, const PageTable& table, bool writes) {
  std::ifstream file(path);
  std::stringstream content;
  content << file.rdbuf();
  const std::string page = content.str();
  const size_t begin = page.find(table.begin);
  const size_t end = page.find(kEndOfTable);
  if (begin == page.npos || end == page.npos) {
    fmt::print(stderr, "{}: {} has no place for the table\n", table.program, path);
    return 2;
  }
  const std::string wanted = page.substr(0, begin) + table.begin + table.text + page.substr(end);
  if (wanted == page) return 0;
  if (writes) {
    std::ofstream(path) << wanted;
    return 0;
  }
  fmt::print(stderr, "{}: {} has another table; renew it with --write\n", table.program, path);
  return 1;
}

/// main() of such a program: PAGE [--write].
inline int runTable(const PageTable& table, int argc, char** argv) {
  const bool writes = argc == 3 && std::strcmp(argv[2], "--write") == 0;
  if (argc == 2 || writes) return holdTable(argv[1], table, writes);
  fmt::print(stderr, "usage: {} PAGE [--write]\n", table.program);
  return 2;
}

} // namespace candela::test
