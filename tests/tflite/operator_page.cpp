// Writes, or holds, the table of operators in docs/reference/tflite.md.
//
// usage: tflite_operator_page PAGE [--write]
//
// Exit status: 0 the page has that table, 1 it has another one, 2 bad usage.
#include "core/compiler/import/tflite/model.h"
#include "tests/tflite/page_table.h"

namespace candela {
namespace {

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

} // namespace
} // namespace candela

int main(int argc, char** argv) {
  return candela::test::runTable({"tflite_operator_page",
                                  "<!-- operators: tests/tflite/operator_page.cpp -->\n",
                                  candela::table()},
                                 argc, argv);
}
