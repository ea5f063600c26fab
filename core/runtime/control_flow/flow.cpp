#include "core/runtime/control_flow/flow.h"

namespace candela::runtime::control_flow {
namespace {

constexpr const char* kStepNames[] = {"unit", "branch", "loop", "construct", "insert", "erase",
                                      "at",   "length", "has",  "get",       "stack",  "fail"};

class Printer {
public:
  explicit Printer(const Flow& flow) : flow_(flow) {}

  void block(const Block& block, size_t depth) {
    for (const Step& step : block.steps) {
      const std::string indent(2 * depth, ' ');
      text += fmt::format("{}{} = {}", indent, list(step.outputs, true), stepName(step.kind));
      if (step.kind == StepKind::unit) text += fmt::format(" {}", step.unit);
      text += fmt::format("({})", list(step.inputs, false));
      if (!step.node.empty()) text += fmt::format(" from '{}'", step.node);
      if (!step.why.empty()) text += fmt::format(": {}", step.why.substr(0, step.why.find('\n')));
      for (const Block& inner : step.blocks) {
        text += fmt::format(" {{{}\n", inner.params.empty() ? "" : " " + list(inner.params, true));
        this->block(inner, depth + 1);
        text += fmt::format("{}  yield {}\n{}}}", indent, list(inner.results, false), indent);
      }
      text += "\n";
    }
  }
  std::string list(const std::vector<SlotId>& slots, bool types) const {
    std::vector<std::string> names;
    for (const SlotId slot : slots) names.push_back(shown(slot, types));
    return fmt::format("{}", fmt::join(names, ", "));
  }

  std::string text;

private:
  std::string shown(SlotId slot, bool type) const {
    if (slot == kNoSlot) return "none";
    const std::string name = "%" + flow_.slots[slot].name;
    return type ? name + ":" + flow_.slots[slot].typeText() : name;
  }

  const Flow& flow_;
};

} // namespace

const char* stepName(StepKind kind) { return kStepNames[static_cast<size_t>(kind)]; }

std::string Value::text() const {
  if (isTensor()) return tensor.typeText();
  return isSequence() ? fmt::format("a sequence of {} tensors", items->size()) : "nothing";
}

bool Slot::accepts(const Tensor& tensor) const {
  if (elem != Elem::none && tensor.elem != elem) return false;
  if (isTyped()) return tensor.dims == dims;
  if (!ranked) return true;
  bool fits = tensor.dims.size() == dims.size();
  for (size_t i = 0; fits && i < dims.size(); ++i) fits = dims[i] < 0 || dims[i] == tensor.dims[i];
  return fits;
}

std::string Slot::typeText() const {
  if (isTyped()) return candela::typeText(elem, dims);
  if (ranked) {
    std::vector<std::string> texts;
    for (const int64_t dim : dims) texts.push_back(dim < 0 ? "?" : std::to_string(dim));
    return fmt::format("{}[{}]", elemName(elem), fmt::join(texts, ","));
  }
  if (kind == Kind::tensor)
    return elem == Elem::none ? "tensor" : fmt::format("{}[...]", elemName(elem));
  return kind == Kind::sequence ? "sequence" : "optional";
}

SlotId Flow::addSlot(Slot slot) {
  if (slot.name.empty()) slot.name = "v";
  const std::string hint = slot.name;
  while (!names_.try_emplace(slot.name, 0).second)
    slot.name = fmt::format("{}_{}", hint, ++names_[hint]);
  slots.push_back(std::move(slot));
  return static_cast<SlotId>(slots.size() - 1);
}

std::string Flow::text() const {
  Printer printer(*this);
  printer.text = fmt::format("flow({}) {{\n", printer.list(inputs, true));
  printer.block(main, 1);
  printer.text += fmt::format("  yield {}\n}}\n", printer.list(outputs, false));
  return printer.text;
}

} // namespace candela::runtime::control_flow
