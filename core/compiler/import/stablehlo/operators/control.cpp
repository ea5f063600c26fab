// Functions, regions that are chosen or repeated, and what others define.
#include <algorithm>

#include "core/compiler/import/stablehlo/model.h"
#include "core/compiler/import/stablehlo/region_meaning.h"
#include "core/compiler/import/stablehlo/step.h"

namespace candela::import::stablehlo {
namespace {

const Function& functionOf(Step& step, const Attribute* name) {
  if (!name) reject("names no function");
  const auto& all = step.scope().model().program.functions;
  const auto found = all.find(name->text);
  if (found == all.end()) reject("function @{} is not in the file", name->text);
  return found->second;
}

/// The operations of the function stand where it is called.
void callFunction(Step& step, const Function& function) {
  const std::string prefix =
      fmt::format("{}@{} {}/", step.scope().prefix(), function.name, step.op().line);
  Scope scope(step.scope().model(), step.scope().graph(), prefix);
  const std::vector<Value> results = writeRegion(scope, function.body, step.operands());
  if (results.size() != step.outputCount() && step.outputCount() != 0)
    reject("@{} has {} results, expected {}", function.name, results.size(), step.outputCount());
  for (size_t i = 0; i < step.outputCount(); ++i) step.setValue(results[i], i);
}

void writeCall(Step& step) { callFunction(step, functionOf(step, step.find("callee"))); }
void writeComposite(Step& step) {
  callFunction(step, functionOf(step, step.find("decomposition")));
}

onnx_io::ValueInfo valueInfo(const Name& name, const Type& type) {
  onnx_io::ValueInfo info;
  info.name = name;
  info.elem = type.elem;
  info.hasShape = true;
  for (const int64_t dim : type.dims) info.dims.push_back({dim, ""});
  return info;
}

/// What a graph within gives, under names of its own: an output may be an input, or stand twice.
void addOutput(Step& step, onnx_io::Graph& graph, const Name& value, const Type& type) {
  onnx_io::Node node;
  node.name = step.name() + " result";
  node.opType = "Identity";
  node.inputs = {value};
  node.outputs = {step.scope().model().unique(step.name() + "/out")};
  graph.outputs.push_back(valueInfo(node.outputs[0], type));
  graph.nodes.push_back(std::move(node));
}

/// A step whose nodes go into a graph within, for values that have to be whole there.
Name wholeIn(Scope& scope, Step& step, Value value) {
  Step inner(scope, step.op(), step.name());
  if (value.constant) value.name.clear();
  return inner.whole(value);
}

/// Nodes within have short names: import puts that of the node around them in front.
std::shared_ptr<onnx_io::Graph> branch(Step& step, const Region& region, const std::string& name) {
  auto graph = std::make_shared<onnx_io::Graph>();
  graph->name = name;
  Scope scope(step.scope().model(), *graph, "", &step.scope());
  const std::vector<Value> results = writeRegion(scope, region, {});
  if (results.size() != step.outputCount())
    reject("its {} gives {} values, expected {}", name, results.size(), step.outputCount());
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i].type != step.output(i))
      reject("its {} gives {}, expected {}", name, results[i].type.text(), step.output(i).text());
    addOutput(step, *graph, wholeIn(scope, step, results[i]), results[i].type);
  }
  return graph;
}

void finish(Step& step, const std::vector<Name>& results) {
  for (size_t i = 0; i < results.size(); ++i) step.set(results[i], i);
}

void writeIf(Step& step) {
  if (step.type(0) != Type{Elem::bool_, {}, ""}) reject("its condition is {}", step.type(0).text());
  const Name condition = step.whole(0);
  Attributes attributes = {{"then_branch", branch(step, step.op().regions[0], "then")},
                           {"else_branch", branch(step, step.op().regions[1], "else")}};
  finish(step, step.addAll("If", {condition}, step.outputCount(), std::move(attributes)));
}

/// The branches from `first` on: this one where the index is its number, else those behind it.
std::vector<Name> chooseFrom(Step& step, const Name& index, size_t first, onnx_io::Graph& graph) {
  const std::vector<Region>& regions = step.op().regions;
  Scope scope(step.scope().model(), graph, step.scope().prefix(), &step.scope());
  Step here(scope, step.op(), step.name());
  const Name number =
      here.constant(Tensor::of<int32_t>(Elem::i32_, {}, {static_cast<int32_t>(first)}));
  const Name is = here.add("Equal", {index, number});
  std::shared_ptr<onnx_io::Graph> otherwise;
  if (first + 2 == regions.size()) {
    otherwise = branch(step, regions[first + 1], fmt::format("branch {}", first + 1));
  } else {
    otherwise = std::make_shared<onnx_io::Graph>();
    otherwise->name = fmt::format("branches from {}", first + 1);
    const std::vector<Name> results = chooseFrom(step, index, first + 1, *otherwise);
    for (size_t i = 0; i < results.size(); ++i)
      addOutput(step, *otherwise, results[i], step.output(i));
  }
  return here.addAll(
      "If", {is}, step.outputCount(),
      {{"then_branch", branch(step, regions[first], fmt::format("branch {}", first))},
       {"else_branch", otherwise}});
}

/// An index that is none of the branches' takes the last one.
void writeCase(Step& step) {
  constexpr size_t kMostBranches = 32; // each lies within the one before
  const std::vector<Region>& regions = step.op().regions;
  if (step.type(0) != Type{Elem::i32_, {}, ""}) reject("its index is {}", step.type(0).text());
  if (regions.empty()) reject("it has no branches");
  if (regions.size() > kMostBranches)
    refuse("{} branches, more than {}", regions.size(), kMostBranches);
  if (regions.size() == 1) {
    Scope scope(step.scope().model(), step.scope().graph(), step.scope().prefix(), &step.scope());
    const std::vector<Value> results = writeRegion(scope, regions[0], {});
    if (results.size() != step.outputCount()) reject("gives {} values", results.size());
    for (size_t i = 0; i < results.size(); ++i) step.setValue(results[i], i);
    return;
  }
  finish(step, chooseFrom(step, step.whole(0), 0, step.scope().graph()));
}

const Operation* madeIn(const Region& region, const std::string& value) {
  for (const Operation& op : region.operations)
    if (std::ranges::count(op.results, value) > 0) return &op;
  return nullptr;
}

/// An integer that an operation of the region, or one outside, gives.
std::optional<int64_t> integerIn(Step& step, const Region& region, const std::string& value) {
  const auto single = [](const Tensor& tensor) -> std::optional<int64_t> {
    if (tensor.count() != 1 || isFloat(tensor.elem)) return {};
    return tensor.toInts()[0];
  };
  if (const Operation* made = madeIn(region, value)) {
    const auto found = made->attributes.find("value");
    if (made->name != "stablehlo.constant" || found == made->attributes.end()) return {};
    if (found->second.kind != Attribute::Kind::elements) return {};
    return single(found->second.elements);
  }
  for (const Argument& argument : region.arguments)
    if (argument.name == value) return {};
  const Value& outer = step.scope().find(value);
  return outer.constant ? single(*outer.constant) : std::nullopt;
}

/// How often a loop turns that counts one of its values by a constant up to another; nullopt where
/// it is none of these.
std::optional<int64_t> turnsOf(Step& step) {
  const Region &test = step.op().regions[0], &body = step.op().regions[1];
  if (test.operations.empty() || body.operations.empty()) return {};
  const Operation& said = test.operations.back();
  const Operation* compared = said.operands.size() == 1 ? madeIn(test, said.operands[0]) : nullptr;
  const bool isLess = compared && compared->name == "stablehlo.compare" &&
                      compared->word("comparison_direction", 0) == "LT" &&
                      compared->operands.size() == 2;
  if (!isLess) return {};
  const auto counter = std::ranges::find(test.arguments, compared->operands[0], &Argument::name);
  if (counter == test.arguments.end() || !isInteger(counter->type.elem) ||
      counter->type.rank() != 0)
    return {};
  const auto at = static_cast<size_t>(counter - test.arguments.begin());
  const Value& begin = step.input(at);
  const auto limit = integerIn(step, test, compared->operands[1]);
  const Operation& next = body.operations.back();
  if (!begin.isSplat() || !limit || at >= next.operands.size() || at >= body.arguments.size())
    return {};
  const Operation* added = madeIn(body, next.operands[at]);
  if (!added || added->name != "stablehlo.add" || added->operands.size() != 2) return {};
  const std::string& own = body.arguments[at].name;
  const bool isFirst = added->operands[0] == own;
  if (!isFirst && added->operands[1] != own) return {};
  const auto stride = integerIn(step, body, added->operands[isFirst ? 1 : 0]);
  const int64_t from = begin.constant->toInts()[0];
  constexpr int64_t kFar = int64_t(1) << 31; // no sum of these wraps
  if (!stride || *stride < 1 || *stride > kFar || from < -kFar || from > kFar || *limit < -kFar ||
      *limit > kFar)
    return {};
  return std::max<int64_t>(0, (*limit - from + *stride - 1) / *stride);
}

Value carriedValue(const Name& name, const Type& type) {
  Value value;
  value.type = type;
  value.name = name;
  value.kept = type.dims;
  return value;
}

/// Whether a loop with these values goes on.
Name goesOn(Step& step, onnx_io::Graph& graph, const std::vector<Value>& values,
            const std::string& prefix) {
  Scope scope(step.scope().model(), graph, prefix, &step.scope());
  const std::vector<Value> said = writeRegion(scope, step.op().regions[0], values);
  if (said.size() != 1 || said[0].type != Type{Elem::bool_, {}, ""})
    reject("its condition gives {} values, expected a bool", said.size());
  return wholeIn(scope, step, said[0]);
}

void writeWhile(Step& step) {
  if (step.inputCount() != step.outputCount())
    reject("has {} operands and {} results", step.inputCount(), step.outputCount());
  ModelWriter& model = step.scope().model();
  const std::optional<int64_t> turns = turnsOf(step);
  std::vector<Name> inputs = {"", ""};
  if (turns) inputs[0] = step.constant(Tensor::scalarI64(*turns));
  for (size_t i = 0; i < step.inputCount(); ++i) inputs.push_back(step.whole(i));
  if (!turns)
    inputs[1] = goesOn(step, step.scope().graph(), step.operands(), step.name() + "/first/");
  auto body = std::make_shared<onnx_io::Graph>();
  body->name = "body";
  const std::string prefix = step.name() + "/body/";
  body->inputs = {valueInfo(model.unique(prefix + "turn"), {Elem::i64_, {}, ""}),
                  valueInfo(model.unique(prefix + "on"), {Elem::bool_, {}, ""})};
  std::vector<Value> carried;
  for (size_t i = 0; i < step.inputCount(); ++i) {
    carried.push_back(carriedValue(model.unique(fmt::format("{}in.{}", prefix, i)), step.type(i)));
    body->inputs.push_back(valueInfo(carried.back().name, step.type(i)));
  }
  Scope scope(model, *body, "", &step.scope());
  const std::vector<Value> next = writeRegion(scope, step.op().regions[1], carried);
  if (next.size() != carried.size())
    reject("its body gives {} values, expected {}", next.size(), carried.size());
  std::vector<Value> whole;
  for (size_t i = 0; i < next.size(); ++i) {
    if (next[i].type != step.output(i))
      reject("its body gives {}, expected {}", next[i].type.text(), step.output(i).text());
    whole.push_back(carriedValue(wholeIn(scope, step, next[i]), next[i].type));
  }
  const Type flag{Elem::bool_, {}, ""};
  const Name on = turns ? body->inputs[1].name : goesOn(step, *body, whole, "next/");
  addOutput(step, *body, on, flag);
  for (const Value& value : whole) addOutput(step, *body, value.name, value.type);
  finish(step, step.addAll("Loop", std::move(inputs), step.outputCount(), {{"body", body}}));
}

// ---- custom_call

void addAttribute(Attributes& attributes, const std::string& name, const Attribute& value) {
  switch (value.kind) {
  case Attribute::Kind::integer: attributes[name] = value.integer; return;
  case Attribute::Kind::number: attributes[name] = static_cast<float>(value.number); return;
  case Attribute::Kind::word:
  case Attribute::Kind::text: attributes[name] = value.text; return;
  case Attribute::Kind::elements: attributes[name] = value.elements; return;
  case Attribute::Kind::dictionary:
    for (size_t i = 0; i < value.keys.size(); ++i)
      addAttribute(attributes, value.keys[i], value.list[i]);
    return;
  case Attribute::Kind::list: {
    Ints all;
    for (const Attribute& one : value.list) {
      if (one.kind != Attribute::Kind::integer) return;
      all.push_back(one.integer);
    }
    attributes[name] = all;
    return;
  }
  default: return;
  }
}

/// "acme.Wobble" is Wobble of the domain acme; a target without a point is one of kDomain.
void writeCustomCall(Step& step) {
  const Attribute* target = step.find(step.find("callee") ? "callee" : "call_target_name");
  if (!target || target->text.empty()) reject("names no target");
  // What spreads a program over devices leaves its values as they are.
  if (target->text == "Sharding" && step.inputCount() == 1 && step.outputCount() == 1)
    return step.setValue(step.input(0));
  const size_t point = target->text.rfind('.');
  const bool hasDomain = point != std::string::npos && point > 0 && point + 1 < target->text.size();
  const std::string domain = hasDomain ? target->text.substr(0, point) : kDomain;
  const std::string op = hasDomain ? target->text.substr(point + 1) : target->text;
  Attributes attributes;
  for (const char* key : {"backend_config", "mhlo.backend_config"})
    if (const Attribute* config = step.find(key)) {
      const bool isEmpty = config->kind == Attribute::Kind::text && config->text.empty();
      if (!isEmpty) addAttribute(attributes, "backend_config", *config);
    }
  std::vector<Name> inputs;
  for (size_t i = 0; i < step.inputCount(); ++i) inputs.push_back(step.whole(i));
  step.scope().model().domains.insert(domain);
  finish(step, step.addAll(op.c_str(), std::move(inputs), step.outputCount(), std::move(attributes),
                           domain.c_str()));
}

constexpr Operator kControl[] = {
    {"func.call", 0, -1, 0, writeCall, "no recursion"},
    {"stablehlo.case", 1, 1, -1, writeCase, "up to 32 branches"},
    {"stablehlo.composite", 0, -1, 0, writeComposite, "as its decomposition"},
    {"stablehlo.custom_call", 0, -1, 0, writeCustomCall, "where a backend claims its target"},
    {"stablehlo.if", 1, 1, 2, writeIf},
    {"stablehlo.while", 0, -1, 2, writeWhile},
};

} // namespace

std::span<const Operator> controlOperators() { return kControl; }

} // namespace candela::import::stablehlo
