#include "core/compiler/import/stablehlo/model.h"

#include <algorithm>

#include "core/compiler/import/stablehlo/scanner.h"
#include "core/compiler/import/stablehlo/step.h"

namespace candela::import::stablehlo {
namespace {

// Of what is written: BitCast is of opset 26.
constexpr int64_t kOpset = 26, kIrVersion = 11;
constexpr std::string_view kBytecodeMark = "ML\xefR";
constexpr const char* kMain = "main";

std::string_view textOf(const Bytes& content) {
  return {reinterpret_cast<const char*>(content.data()), content.size()};
}

/// Letters and digits of a note such as "result[0]['logits']", with one _ between them.
std::string plainName(const std::string& note) {
  std::string name;
  for (const char c : note) {
    const bool isPlain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (isPlain)
      name += c;
    else if (!name.empty() && name.back() != '_')
      name += '_';
  }
  while (name.ends_with('_')) name.pop_back();
  return name;
}

std::string resultName(const Function& main, size_t index) {
  const Attribute* note =
      index < main.resultNotes.size() ? main.resultNotes[index].find("jax.result_info") : nullptr;
  const std::string name = note ? plainName(note->text) : "";
  if (!name.empty()) return name;
  return index == 0 ? "result" : fmt::format("result_{}", index);
}

onnx_io::ValueInfo portInfo(const Name& name, const Type& type) {
  onnx_io::ValueInfo info;
  info.name = name;
  info.elem = type.elem;
  info.what = type.refusal;
  info.hasShape = true;
  for (const int64_t dim : type.dims) info.dims.push_back({dim, ""});
  return info;
}

const Function& mainOf(const Program& program) {
  const auto found = program.functions.find(kMain);
  if (found != program.functions.end()) return found->second;
  const Function* only = nullptr;
  for (const auto& [name, function] : program.functions) {
    if (!function.isPublic) continue;
    if (only) reject("it has no function @main, but @{} and @{}", only->name, name);
    only = &function;
  }
  if (!only) reject("it has no function @main");
  return *only;
}

void writeMain(ModelWriter& model, const Function& main, onnx_io::Graph& graph) {
  graph.name = main.name;
  std::vector<Value> arguments;
  for (const Argument& argument : main.body.arguments) {
    if (!argument.type.refusal.empty())
      model.diagnostics.add(failure(Code::unsupported, "line {}: input '{}' is {}", main.body.line,
                                    argument.name, argument.type.refusal));
    Value value;
    value.type = argument.type;
    value.kept = argument.type.dims;
    value.name = model.unique(argument.name);
    graph.inputs.push_back(portInfo(value.name, value.type));
    arguments.push_back(std::move(value));
  }
  std::vector<Name> ports; // taken before values inside get them
  for (size_t i = 0; i < main.resultTypes.size(); ++i)
    ports.push_back(model.unique(resultName(main, i)));
  Scope scope(model, graph, "");
  std::vector<Value> results = writeRegion(scope, main.body, arguments);
  if (results.size() != ports.size())
    reject("line {}: @{} gives {} values, expected {}", main.body.line, main.name, results.size(),
           ports.size());
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i].type != main.resultTypes[i])
      reject("line {}: result {} of @{} is {}, but gets {}", main.body.line, i, main.name,
             main.resultTypes[i].text(), results[i].type.text());
    Step step(scope, main.body.operations.back(), ports[i]);
    onnx_io::Node node;
    node.name = ports[i];
    node.opType = "Identity";
    node.inputs = {step.whole(results[i])};
    node.outputs = {ports[i]};
    graph.nodes.push_back(std::move(node));
    graph.outputs.push_back(portInfo(ports[i], results[i].type));
  }
}

} // namespace

bool isModel(const Bytes& content) {
  const std::string_view text = textOf(content);
  if (text.starts_with(kBytecodeMark)) return true;
  Scanner scanner(text.substr(0, std::min<size_t>(text.size(), size_t(1) << 20)));
  if (scanner.accept("#loc")) return true;
  if (scanner.accept("#") && !scanner.word().empty()) return scanner.accept("=");
  for (const char* word :
       {"module", "builtin.module", "func.func", "\"builtin.module\"", "\"func.func\""})
    if (scanner.accept(word)) return true;
  return false;
}

Result<onnx_io::Model> parseModel(const Bytes& content, const std::string& path) {
  const std::string_view text = textOf(content);
  if (text.starts_with(kBytecodeMark))
    return failure(
        Code::unsupported,
        "{}: bytecode of MLIR (a portable artifact, VHLO) is not supported: write the text "
        "that jax.jit(f).lower(...).as_text() gives",
        path);
  onnx_io::Model model;
  model.path = path;
  model.isOnnx = false;
  model.irVersion = kIrVersion;
  model.producer = "StableHLO";
  try {
    const Program program = parseProgram(text);
    if (!program.name.empty()) model.producer = "StableHLO: " + plainName(program.name);
    ModelWriter writer{program, content.size()};
    try {
      writeMain(writer, mainOf(program), model.graph);
    } catch (const Refusal& refusal) {
      writer.diagnostics.add(refusal.status);
    }
    CDL_TRY(writer.diagnostics.status(path));
    model.opsets = {{"", kOpset}, {kDomain, 1}};
    for (const std::string& domain : writer.domains) model.opsets[domain] = 1;
  } catch (const Refusal& refusal) {
    return refusal.status.context(path);
  }
  return model;
}

} // namespace candela::import::stablehlo
