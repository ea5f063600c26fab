#include "core/compiler/import/stablehlo/scope.h"

#include "core/compiler/import/stablehlo/step.h"

namespace candela::import::stablehlo {
namespace {

constexpr int kMostDepth = 64;               // of calls and regions
constexpr int64_t kMostOperations = 1000000; // of a model
// Of constants that operations make: in all, and for each byte of the file.
constexpr uint64_t kMostConstantBytes = uint64_t(256) << 20;
constexpr uint64_t kConstantBytesPerByte = 4;

/// "add" of "stablehlo.add".
std::string shortName(const std::string& operation) {
  return operation.substr(operation.find('.') + 1);
}

void writeOperation(Step& step) {
  const Operator* how = findOperator(step.op().name);
  if (!how) refuse("operation is not supported");
  const size_t regions = step.op().regions.size();
  if (how->regions >= 0 && regions != static_cast<size_t>(how->regions))
    reject("has {} regions, expected {}", regions, how->regions);
  const size_t operands = step.inputCount();
  if (operands < static_cast<size_t>(how->minOperands) ||
      (how->maxOperands >= 0 && operands > static_cast<size_t>(how->maxOperands)))
    reject("has {} operands, expected {}{}", operands, how->minOperands,
           how->maxOperands == how->minOperands ? "" : " or more");
  how->write(step);
}

} // namespace

Name ModelWriter::unique(const std::string& wanted) {
  if (names.insert(wanted).second) return wanted;
  for (int& suffix = suffixes[wanted];;) {
    Name name = fmt::format("{}:{}", wanted, ++suffix);
    if (names.insert(name).second) return name;
  }
}

void ModelWriter::checkSize() const {
  if (operations > kMostOperations)
    reject("it has more than {} operations, with those of functions for each call",
           kMostOperations);
}

void ModelWriter::countConstant(uint64_t bytes) {
  constantBytes += bytes;
  const uint64_t most = kMostConstantBytes + kConstantBytesPerByte * fileSize;
  if (constantBytes > most)
    refuse("its operations make {} bytes of constants, more than {}", constantBytes, most);
}

void Scope::define(const std::string& name, Value value) {
  if (!values_.emplace(name, std::move(value)).second) reject("value %{} is there twice", name);
}

const Value* Scope::lookUp(const std::string& name) const {
  const auto found = values_.find(name);
  if (found != values_.end()) return &found->second;
  return outer_ ? outer_->lookUp(name) : nullptr;
}

Value& Scope::find(const std::string& name) {
  const auto own = values_.find(name);
  if (own != values_.end()) return own->second;
  const Value* found = lookUp(name);
  if (!found) reject("value %{} is not known here", name);
  Value copy = *found;
  // What is decided by its elements finds them in its own graph.
  if (copy.constant) copy.name.clear();
  if (copy.constant) copy.whole.clear();
  return values_.emplace(name, std::move(copy)).first->second;
}

Name Scope::initializer(const std::string& wanted, Tensor tensor) {
  const Name name = model_.unique(wanted);
  graph_.initializers.push_back({name, std::move(tensor)});
  return name;
}

Name Scope::nameOf(Value& value, const std::string& wanted) {
  if (value.name.empty() && value.constant)
    value.name = initializer(wanted + "/constant", *value.constant);
  return value.name;
}

std::vector<Value> Scope::write(const Region& region) {
  for (size_t i = 0; i < region.operations.size(); ++i) {
    const Operation& op = region.operations[i];
    ++model_.operations;
    model_.checkSize();
    Step step(*this, op, fmt::format("{}{} {}", prefix_, shortName(op.name), op.line));
    const bool isLast = i + 1 == region.operations.size();
    const bool isReturn = op.name == "func.return" || op.name == "stablehlo.return";
    try {
      if (isReturn && isLast) return step.operands();
      writeOperation(step);
    } catch (const Refusal& refusal) {
      model_.diagnostics.add(refusal.status.context(fmt::format("line {}: {}", op.line, op.name)));
      if (isReturn && isLast) throw Refusal{Status::ok()}; // no values, and why is said
    }
    step.defineRest();
  }
  reject("line {}: a function or region without its return", region.line);
}

std::vector<Value> writeRegion(Scope& scope, const Region& region,
                               const std::vector<Value>& arguments) {
  ModelWriter& model = scope.model();
  if (region.arguments.size() != arguments.size())
    reject("line {}: takes {} values, expected {}", region.line, region.arguments.size(),
           arguments.size());
  if (model.depth >= kMostDepth)
    reject("functions and regions are nested deeper than {}", kMostDepth);
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Argument& argument = region.arguments[i];
    if (argument.type != arguments[i].type)
      reject("line {}: argument %{} is {}, but gets {}", region.line, argument.name,
             argument.type.text(), arguments[i].type.text());
    scope.define(argument.name, arguments[i]);
  }
  ++model.depth;
  std::vector<Value> results;
  try {
    results = scope.write(region);
  } catch (const Refusal&) {
    --model.depth;
    throw;
  }
  --model.depth;
  return results;
}

} // namespace candela::import::stablehlo
