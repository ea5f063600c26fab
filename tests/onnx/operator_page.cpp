// Writes, or holds, docs/reference/operators.md: what becomes of every operator of ONNX in every
// element type, by asking the importer and the lowering about models of one node (operators.txt).
//
// usage: onnx_operator_page OPERATORS PAGE [--write]
//
// Everything that the page says decomposes is run on the host in primitives, and compared with the
// reference.
// Exit status: 0 the page is what it must be and everything ran right, 1 not, 2 bad input.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <sstream>

#include "conformance/backend_runner.h"
#include "conformance/port.h"
#include "conformance/report/reasons.h"
#include "conformance/tiers/onnx_tier.h"
#include "core/compiler/capabilities/rows.h"
#include "core/compiler/driver/fit.h"
#include "core/compiler/graph/passes/passes.h"
#include "core/compiler/import/import.h"
#include "core/support/compare.h"
#include "core/support/float_bits.h"
#include "core/support/text/scan.h"

namespace candela {
namespace {

struct Operand {
  /// type: one of ours, a variable, or what is none; own: the variable's type in the test
  std::string name, type, own;
  Shape dims;
  std::optional<std::vector<double>> values;
};
struct Operator {
  std::string name;
  int opset = 0;
  std::vector<std::pair<std::string, std::vector<std::string>>> types; ///< variables
  std::vector<Operand> operands;
  import::onnx_io::Node node;
};

[[noreturn]] void fail(const std::string& message) {
  fmt::print(stderr, "onnx_operator_page: {}\n", message);
  std::exit(2);
}

Shape parseDims(const std::string& text) {
  Shape dims;
  for (const std::string& dim : text::split(text, 'x'))
    if (text != "-") dims.push_back(std::stoll(dim));
  return dims;
}

std::vector<std::string> words(std::istringstream& line) {
  std::vector<std::string> out;
  for (std::string word; line >> word;) out.push_back(word);
  return out;
}

template <typename T> std::vector<T> numbers(const std::vector<std::string>& texts) {
  std::vector<T> out;
  for (const std::string& text : texts) {
    if constexpr (std::is_integral_v<T>)
      out.push_back(std::stoll(text));
    else
      out.push_back(static_cast<T>(std::stod(text)));
  }
  return out;
}

void setElement(Tensor& tensor, int64_t i, double value) {
  if (isUnsigned(tensor.elem)) value = std::abs(value);
  const uint64_t bits = isFloat(tensor.elem) ? fromReal(tensor.elem, value)
                        : tensor.elem == Elem::bool_
                            ? value != 0
                            : static_cast<uint64_t>(static_cast<int64_t>(value));
  const int width = elemBits(tensor.elem);
  if (width < 8)
    tensor.mutableAs<uint8_t>()[i / 2] |= static_cast<uint8_t>((bits & 15) << (i % 2 * 4));
  else
    std::memcpy(tensor.bytes.mutableData() + i * width / 8, &bits, width / 8);
}

/// Values that are given, or random ones.
Tensor tensorOf(Elem elem, const Shape& dims, const std::optional<std::vector<double>>& values,
                uint64_t seed) {
  if (!values && isFloat(elem) && elemBits(elem) > 8)
    return randomTensor(elem, dims, seed).orAbort();
  Tensor tensor = Tensor::zeros(elem, dims).orAbort();
  for (int64_t i = 0, count = tensor.count(); i < count; ++i)
    setElement(tensor, i,
               values ? values->at(i) : static_cast<double>(splitmix64(seed + i) % 7) - 3);
  return tensor;
}

void readAttribute(import::onnx_io::Node& node, std::istringstream& line) {
  std::string name, kind, rest;
  line >> name >> kind;
  import::onnx_io::Attribute& value = node.attributes[name];
  if (kind == "s") {
    std::getline(line >> std::ws, rest);
    value = rest;
    return;
  }
  std::vector<std::string> texts = words(line);
  if (kind == "i")
    value = numbers<int64_t>(texts).at(0);
  else if (kind == "is")
    value = numbers<int64_t>(texts);
  else if (kind == "f")
    value = numbers<float>(texts).at(0);
  else if (kind == "fs")
    value = numbers<float>(texts);
  else if (kind == "t" && texts.size() > 2)
    value = tensorOf(parseElem(texts[0]).value(), parseDims(texts[1]),
                     numbers<double>({texts.begin() + 3, texts.end()}), 0);
  else
    value = import::onnx_io::UnsupportedAttribute{"of another type"};
}

void readOperand(Operator& op, std::istringstream& line) {
  std::string name, type, dims, word;
  line >> name;
  op.node.inputs.push_back(name == "-" ? "" : name);
  if (name == "-") return;
  line >> type >> dims;
  Operand operand{name, type, "", parseDims(dims), {}};
  std::vector<std::string> texts = words(line);
  if (const auto own = std::ranges::find(texts, ":"); own != texts.end()) {
    operand.own = *std::next(own);
    texts.erase(own, texts.end());
  }
  if (!texts.empty()) operand.values = numbers<double>({texts.begin() + 1, texts.end()});
  op.operands.push_back(std::move(operand));
}

std::vector<Operator> readOperators(const std::string& path) {
  std::ifstream file(path);
  if (!file) fail(path + ": cannot be read");
  std::vector<Operator> operators;
  for (std::string text; std::getline(file, text);) {
    std::istringstream line(text);
    std::string key;
    line >> key;
    if (key == "op") {
      Operator& op = operators.emplace_back();
      line >> op.name >> op.opset;
      op.node.opType = op.node.name = op.name;
    } else if (key == "type") {
      std::string name;
      line >> name;
      std::vector<std::string> types;
      for (const std::string& type : words(line)) // one word for all sequences
        if (!std::ranges::count(types, type)) types.push_back(type);
      operators.back().types.emplace_back(name, types);
    } else if (key == "in") {
      readOperand(operators.back(), line);
    } else if (key == "attr") {
      readAttribute(operators.back().node, line);
    } else if (key == "out") {
      size_t count = 0;
      line >> count;
      for (size_t i = 0; i < count; ++i)
        operators.back().node.outputs.push_back(fmt::format("y{}", i));
    }
  }
  return operators;
}

/// The type variable that is varied: the first operand's that has one.
const std::pair<std::string, std::vector<std::string>>* variable(const Operator& op) {
  for (const Operand& operand : op.operands)
    for (const auto& type : op.types)
      if (type.first == operand.type) return &type;
  return nullptr;
}

struct Model {
  import::onnx_io::Model model;
  std::map<std::string, Tensor> data;
};

Model modelOf(const Operator& op, const std::string& variable, const std::string& type) {
  Model made;
  made.model.path = "operator";
  made.model.opsets[""] = op.opset;
  made.model.graph.nodes.push_back(op.node);
  for (const Operand& operand : op.operands) {
    import::onnx_io::ValueInfo info;
    info.name = operand.name;
    const std::string name = operand.type == variable ? type
                             : operand.own.empty()    ? operand.type
                                                      : operand.own;
    const auto elem = parseElem(name);
    info.elem = elem.value_or(Elem::none);
    info.what = name == "seq" ? "a sequence" : name == "optional" ? "an optional" : name;
    info.hasShape = true;
    for (const int64_t dim : operand.dims) info.dims.push_back({dim, ""});
    if (elem)
      made.data[operand.name] =
          tensorOf(*elem, operand.dims, operand.values, made.data.size() * 1000);
    made.model.graph.inputs.push_back(std::move(info));
  }
  // whatever it is cast to has as many bits
  if (const auto elem = parseElem(type); elem && op.name == "BitCast") {
    const auto to = parseElem(fmt::format("u{}", elemBits(*elem)));
    made.model.graph.nodes.back().attributes["to"] = int64_t(elemToOnnx(to.value()));
  }
  for (const std::string& output : op.node.outputs) {
    import::onnx_io::ValueInfo info;
    info.name = output;
    made.model.graph.outputs.push_back(std::move(info));
  }
  return made;
}

/// As it is, or with the operands that it waits for known.
Result<graph::Graph> importOf(const Model& made) {
  import::ImportOptions options;
  const std::shared_ptr<const import::onnx_io::Model> model(std::shared_ptr<const void>(),
                                                            &made.model);
  CDL_ASSIGN(import::Script script, import::importScript(model, options));
  for (const std::string& name : script.demandedInputs()) options.frozen[name] = made.data.at(name);
  if (!options.frozen.empty()) {
    CDL_ASSIGN(script, import::importScript(model, options));
  }
  if (graph::Graph* graph = script.graph()) return std::move(*graph);
  return script.refusal("operator");
}

Result<std::vector<program::Program>> programsOf(const graph::Graph& graph, bool toPrimitives) {
  const capabilities::Target* host = &driver::hostTarget();
  driver::CompileOptions options;
  options.toPrimitives = toPrimitives;
  lowering::partition::Barred barred;
  CDL_ASSIGN(const auto placer, driver::Placer::create({}, {&host, 1}, options));
  CDL_ASSIGN(auto fitted, driver::lowerFitting(graph, *placer, {&host, 1}, barred, options));
  std::vector<program::Program> programs;
  for (driver::LoweredPart& part : fitted.parts) programs.push_back(std::move(part.program));
  return programs;
}

/// Elements that an instruction computes with: products of MATMUL, else of its largest view.
double elementOperations(const program::Instr& instr) {
  const auto count = [](const program::View& view) {
    return static_cast<double>(elementCount(view.dims).value_or(0));
  };
  if (instr.kind == CDL_KIND_MATMUL)
    return count(instr.outputs.at(0)) * static_cast<double>(instr.inputs.at(0).dims.back());
  double most = 0;
  for (const auto* views : {&instr.inputs, &instr.outputs})
    for (const program::View& view : *views) most = std::max(most, count(view));
  return most;
}

struct Verdict {
  enum Kind { native, decomposes, soft, unsupported } kind = unsupported;
  double cost = 0;
  std::string reason;
};

Verdict refused(const std::string& message) {
  Verdict verdict;
  std::string line = message.substr(0, message.find('\n'));
  const std::string reason = conformance::report::reasonClass(message);
  if (line.find("): operator ") != std::string::npos && reason == "other") {
    verdict.reason = "not supported";
  } else if (reason == "other") {
    line = line.substr(0, line.find(", expected "));
    for (const char* behind : {"operator: ", "): "}) // file and node
      if (const size_t at = line.find(behind); at != std::string::npos)
        line.erase(0, at + std::strlen(behind));
    verdict.reason = line;
  } else {
    verdict.reason = reason;
  }
  return verdict;
}

/// Empty, or how the primitives' answer differs from the reference's.
std::string runProblem(const Model& made) {
  const auto answer = [&](const char* backend, bool toPrimitives) {
    graph::Graph graph = importOf(made).orAbort();
    std::vector<runtime::control_flow::Value> inputs;
    for (const graph::Value* input : graph.inputs()) inputs.emplace_back(made.data.at(input->name));
    conformance::Port port(backend);
    return conformance::backendRunner(port, toPrimitives)(import::Script::of(std::move(graph)),
                                                          inputs);
  };
  const auto want = answer("reference", false), got = answer("soft", true);
  if (!want) return want.status().message();
  if (!got) return got.status().message();
  for (size_t i = 0; i < want->outputs.size(); ++i) {
    const Tensor& expected = want->outputs[i].tensor;
    double largest = 0;
    for (int64_t e = 0; e < expected.count(); ++e)
      if (const double size = std::abs(elementAsReal(expected, e)); std::isfinite(size))
        largest = std::max(largest, size);
    // A few units in the last place of the largest value, in the type that is computed in.
    const double unit = expected.elem == Elem::bf16_  ? 0x1p-8
                        : expected.elem == Elem::f16_ ? 0x1p-11
                                                      : 0x1p-20;
    const Comparison result =
        compareTensors(got->outputs[i].tensor, expected, {8 * unit, 8 * unit * largest, true});
    if (!result.passed()) return result.text();
  }
  return "";
}

Verdict judge(const Operator& op, const std::string& variable, const std::string& type,
              std::string& problem) {
  if (variable != "" && !parseElem(type) && type != "seq" && type != "optional")
    return {Verdict::unsupported, 0, type == "string" ? "strings" : "no type of ours"};
  const Model made = modelOf(op, variable, type);
  auto imported = importOf(made);
  if (!imported) return refused(imported.status().message());
  graph::Graph graph = std::move(imported).value();
  if (const Status status = graph::passes::optimize(graph); !status)
    return refused(status.message());
  const auto primitives = programsOf(graph, true);
  if (!primitives) return refused(primitives.status().message());
  Verdict verdict{Verdict::decomposes, 0, ""};
  double elements = 1;
  for (const auto* values : {&graph.inputs(), &graph.outputs()})
    for (const graph::Value* value : *values)
      elements =
          std::max(elements, static_cast<double>(elementCount(value->type.shape()).value_or(0)));
  for (const program::Program& program : *primitives)
    for (const program::Instr& instr : program.instrs) {
      verdict.cost += elementOperations(instr) / elements;
      if (capabilities::isHostOp(instr.kind)) verdict.kind = Verdict::soft;
    }
  if (verdict.kind == Verdict::soft) return verdict;
  size_t nodes = 0, instrs = 0, whole = 0;
  for (const auto& node : graph.nodes()) {
    if (lowering::decompose::isAlias(*node)) continue;
    ++nodes;
    whole += lowering::decompose::instructionsOf(*node).size();
  }
  if (const auto programs = programsOf(graph, false))
    for (const program::Program& program : *programs) instrs += program.instrs.size();
  if ((nodes <= 1 && whole <= 1 && (whole == 1 || nodes == 0)) || instrs == 1)
    verdict.kind = Verdict::native;
  problem = runProblem(made);
  return verdict;
}

// --- The page

/// "f32 f16 i8", with names for whole groups.
std::string typesText(std::vector<std::string> types) {
  const std::pair<const char*, std::vector<std::string>> groups[] = {
      {"floats", {"f32", "f16", "bf16", "f64"}},
      {"integers", {"i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"}}};
  std::string out;
  for (const auto& [name, members] : groups) {
    const auto has = [&](const std::string& member) {
      return std::ranges::count(types, member) > 0;
    };
    if (!std::ranges::all_of(members, has)) continue;
    std::erase_if(types,
                  [&](const std::string& type) { return std::ranges::count(members, type) > 0; });
    out += fmt::format("{}{}", out.empty() ? "" : " ", name);
  }
  std::ranges::sort(types, {}, [](const std::string& type) {
    return static_cast<int>(parseElem(type).value_or(Elem(99)));
  });
  for (const std::string& type : types) out += fmt::format("{}{}", out.empty() ? "" : " ", type);
  return out;
}

/// "×2 f32; ×4 f16 bf16"
std::string costsText(const std::vector<std::pair<double, std::string>>& costs) {
  std::map<double, std::vector<std::string>> byCost;
  for (const auto& [cost, type] : costs) byCost[std::round(cost * 10) / 10].push_back(type);
  std::string out;
  for (auto& [cost, types] : byCost)
    out += fmt::format("{}×{:g} {}", out.empty() ? "" : "; ", cost, typesText(types));
  return out;
}

constexpr const char* kHead =
    R"(<!-- generated by tests/onnx/operator_page.cpp from the importer and the lowering; do not edit -->
# ONNX operators

What becomes of every operator of ONNX's default domain up to opset 28, in each element type that ONNX allows its first
operand of a variable type. Types are named as in [types.md](types.md); `floats` are f32 f16 bf16 f64, `integers` the
eight from i8 to u64.

| | |
|---|---|
| NATIVE | one instruction of the Program is the whole operator, so that a device may run it as it is; it decomposes as well |
| DECOMPOSES | ends in the 13 primitives. ×n: the element operations of those instructions, over the elements of the operator's largest operand or result. An instruction counts the elements of its largest view, MATMUL its products; ×0 moves and computes nothing |
| SOFT | holds an instruction that the host alone runs |
| UNSUPPORTED | refused, with the reason |

The models are those of [operators.txt](../../tests/onnx/operators.txt): small, so that a fixed number of elements weighs
more than in real ones. Operands that decide shapes are constants there. A test runs everything that decomposes on the
host, in primitives, against the reference.

)";

struct Row {
  std::vector<std::string> native, soft;
  std::vector<std::pair<double, std::string>> costs;
  std::map<std::string, std::vector<std::string>> refusals;
};

std::string rowText(const std::string& name, Row& row) {
  std::string refusals;
  for (auto& [reason, types] : row.refusals)
    refusals += fmt::format("{}{} ({})", refusals.empty() ? "" : "; ", typesText(types), reason);
  std::ranges::replace(refusals, '|', '/');
  return fmt::format("| {} | {} | {} | {} | {} |\n", name, typesText(row.native),
                     costsText(row.costs), typesText(row.soft), refusals);
}

int run(const std::string& operatorsPath, const std::string& pagePath, bool write) {
  std::string table =
      "| operator | NATIVE | DECOMPOSES | SOFT | UNSUPPORTED |\n|---|---|---|---|---|\n";
  size_t counts[4] = {}, wrong = 0;
  for (const Operator& op : readOperators(operatorsPath)) {
    Row row;
    const auto* varied = variable(op);
    const std::vector<std::string> types =
        varied ? varied->second : std::vector<std::string>{"any"};
    for (const std::string& type : types) {
      std::string problem;
      const Verdict verdict = judge(op, varied ? varied->first : "", type, problem);
      ++counts[verdict.kind];
      if (!problem.empty()) {
        ++wrong;
        fmt::print(stderr, "{} in {}: {}\n", op.name, type, problem);
      }
      if (verdict.kind == Verdict::native) row.native.push_back(type);
      if (verdict.kind == Verdict::soft) row.soft.push_back(type);
      if (verdict.kind <= Verdict::decomposes) row.costs.emplace_back(verdict.cost, type);
      if (verdict.kind == Verdict::unsupported) row.refusals[verdict.reason].push_back(type);
    }
    table += rowText(op.name, row);
  }
  const std::string page = kHead +
                           fmt::format("Of {} pairs of operator and type {} are NATIVE, {} more "
                                       "DECOMPOSE, {} are SOFT, {} UNSUPPORTED.\n\n",
                                       counts[0] + counts[1] + counts[2] + counts[3], counts[0],
                                       counts[1], counts[2], counts[3]) +
                           table;
  fmt::print("{} native, {} decompose, {} soft, {} unsupported\n", counts[0], counts[1], counts[2],
             counts[3]);
  if (write) {
    std::ofstream(pagePath) << page;
  } else {
    std::stringstream there;
    there << std::ifstream(pagePath).rdbuf();
    if (there.str() != page) {
      fmt::print(stderr, "{} is not what the importer says: run onnx_operator_page {} {} --write\n",
                 pagePath, operatorsPath, pagePath);
      return 1;
    }
  }
  if (wrong) fmt::print(stderr, "{} of what decomposes ran wrong\n", wrong);
  return wrong ? 1 : 0;
}

} // namespace
} // namespace candela

int main(int argc, char** argv) {
  if (argc < 3 || argc > 4 || (argc == 4 && std::strcmp(argv[3], "--write") != 0)) {
    std::fputs("usage: onnx_operator_page OPERATORS PAGE [--write]\n", stderr);
    return 2;
  }
  return candela::run(argv[1], argv[2], argc == 4);
}
