#include "core/compiler/export/tosa/export_tosa.h"

#include "core/compiler/export/tosa/writer.h"

namespace candela::exporter::tosa {
namespace {

/// As a string of MLIR.
std::string stringOf(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const bool isPlain = c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
    out += isPlain ? std::string(1, c) : fmt::format("\\{:02X}", static_cast<unsigned char>(c));
  }
  return out + "\"";
}

/// The argument or result, with the name that the model has for it.
std::string named(const std::string& what, const std::string& name) {
  return fmt::format("{} {{candela.name = {}}}", what, stringOf(name));
}

} // namespace

Result<std::string> toTosa(const graph::Graph& graph) try {
  Refusals refusals;
  FunctionWriter writer;
  std::vector<std::string> arguments, results, names, types;
  for (const graph::Value* input : graph.inputs()) {
    writer.addArgument(input);
    const std::string type = typeOf(input->type.elem, input->type.dims);
    arguments.push_back(named(fmt::format("{}: {}", writer.of(input).name, type), input->name));
  }
  writer.write(graph, refusals);
  CDL_TRY(refusals.status("TOSA"));
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    const Value output = writer.of(graph.outputs()[i]);
    names.push_back(output.name);
    types.push_back(typeOf(output.elem, output.dims));
    results.push_back(named(types.back(), graph.outputNames()[i]));
  }
  return fmt::format(
      "module {{\n  func.func @main({}) -> ({}) {{\n{}    return {} : {}\n  }}\n}}\n",
      fmt::join(arguments, ", "), fmt::join(results, ", "), writer.text(), fmt::join(names, ", "),
      fmt::join(types, ", "));
} catch (const Refusal& refusal) { // of an input's type
  return failure(Code::unsupported, "graph '{}': {}", graph.name, refusal.why);
}

} // namespace candela::exporter::tosa
