// Writes, or holds, the table of operators in docs/reference/caffe2.md.
//
// usage: caffe2_operator_page PAGE [--write]
//
// Exit status: 0 the page has that table, 1 it has another one, 2 bad usage.
#include "core/compiler/import/caffe2/model.h"
#include "tests/tflite/page_table.h"

namespace candela {
namespace {

std::string table() {
  const auto supported = import::caffe2::supportedOperators();
  std::string text = fmt::format("{} operators.\n\n", supported.size());
  text += "| operator | limits |\n|---|---|\n";
  for (const auto& [type, limits] : supported) text += fmt::format("| {} | {} |\n", type, limits);
  return text;
}

} // namespace
} // namespace candela

int main(int argc, char** argv) {
  return candela::test::runTable({"caffe2_operator_page",
                                  "<!-- operators: tests/caffe2/operator_page.cpp -->\n",
                                  candela::table()},
                                 argc, argv);
}
