#include "core/compiler/program/program.h"

#include <algorithm>
#include <bit>

#include "core/compiler/program/internal.h"
#include "core/support/out_of_memory.h"
#include "core/support/text/scan.h"

namespace candela::program {

uint64_t innerFactor(const std::vector<Layout::Step>& steps, size_t index) {
  uint64_t product = 1;
  for (size_t i = index + 1; i < steps.size(); ++i)
    if (steps[i].dim == steps[index].dim) product *= steps[i].factor;
  return product;
}

int64_t View::count() const {
  uint64_t count = 1;
  for (int64_t dim : dims) count *= static_cast<uint64_t>(dim);
  return static_cast<int64_t>(count);
}

bool View::isDense() const { return layout.isRowMajor() && strides == denseStrides(dims); }

View denseView(uint32_t buffer, Elem elem, std::vector<int64_t> dims) {
  View view;
  view.buffer = buffer;
  view.elem = elem;
  view.strides = denseStrides(dims);
  view.dims = std::move(dims);
  return view;
}

Attr Attr::ofFloat(uint16_t id, double value) { return {id, 2, {std::bit_cast<int64_t>(value)}}; }
double Attr::asFloat() const { return std::bit_cast<double>(values[0]); }

const Attr* Instr::attr(uint16_t id) const {
  const auto found =
      std::find_if(attrs.begin(), attrs.end(), [&](const Attr& a) { return a.id == id; });
  return found == attrs.end() ? nullptr : &*found;
}

int64_t Instr::intAttr(uint16_t id, int64_t otherwise) const {
  const Attr* found = attr(id);
  return found && !found->values.empty() ? found->values[0] : otherwise;
}

size_t Instr::operandCount() const {
  const cdl_kind_facts_t* facts = cdl_kind_facts(kind);
  size_t count = inputs.size();
  if (!facts || !facts->epilogue) return count;
  for (size_t s = prologue; s < expr.size(); ++s)
    for (const Operand& operand : expr[s].in)
      if (operand.source == Operand::Source::view && operand.index >= facts->min_inputs &&
          operand.index < count)
        count = operand.index;
  return count;
}

Expr Instr::epilogueSteps() const {
  Expr steps(expr.begin() + prologue, expr.end());
  for (Step& step : steps)
    for (Operand& operand : step.in)
      if (operand.source == Operand::Source::step)
        operand.index = static_cast<uint16_t>(operand.index - prologue);
  return steps;
}

namespace {

/// `name`, or name_N with N above every number that `name` already has: one walk, however often a
/// hint comes.
template <typename List> std::string uniqueName(const List& list, std::string name) {
  if (name.empty()) name = "b";
  bool taken = false;
  uint64_t highest = 0;
  for (const auto& item : list) {
    const std::string_view other = item.name;
    if (other.substr(0, name.size()) != name) continue;
    if (other.size() == name.size()) taken = true;
    const std::string_view digits = other.substr(std::min(other.size(), name.size() + 1));
    if (digits.empty() || digits.size() > 9 || other[name.size()] != '_') continue;
    highest = std::max(highest, text::parseNumber<uint64_t>(digits).value_or(0));
  }
  return taken ? fmt::format("{}_{}", name, highest + 1) : name;
}

} // namespace

uint32_t Program::addBuffer(Buffer buffer) {
  buffer.name = uniqueName(buffers, std::move(buffer.name));
  if (buffer.role != Role::temp) buffer.offset = 0;
  buffers.push_back(std::move(buffer));
  return static_cast<uint32_t>(buffers.size() - 1);
}

uint32_t Program::addConstant(std::string name, Payload payload) {
  payload = orThrow(payload.stored());
  for (uint32_t i = 0; i < buffers.size(); ++i)
    if (buffers[i].constant != kNone && constants[buffers[i].constant].payload == payload) return i;
  Buffer buffer;
  buffer.role = Role::constant;
  buffer.bytes = payload.sizeBytes();
  buffer.constant = static_cast<uint32_t>(constants.size());
  name = uniqueName(constants, std::move(name));
  buffer.name = name;
  constants.push_back({std::move(name), std::move(payload)});
  return addBuffer(std::move(buffer));
}

uint64_t Program::arenaBytes(uint32_t space) const {
  uint64_t bytes = 0;
  for (const Buffer& b : buffers)
    if (b.role == Role::temp && b.space == space && b.offset != CDL_UNPLACED)
      bytes = std::max(bytes, b.offset + b.bytes);
  return bytes;
}

void placeConstants(Program& program) {
  const auto at = std::ranges::find(program.spaces, true, &Space::forConstants);
  if (at == program.spaces.end()) return;
  for (Buffer& buffer : program.buffers) {
    if (buffer.role != Role::constant) continue;
    buffer.space = static_cast<uint32_t>(at - program.spaces.begin());
    buffer.alignment = std::max(buffer.alignment, at->alignment);
  }
}

std::pair<Elem, Shape> Program::contentType(uint32_t buffer) const {
  const auto bits = static_cast<int64_t>(buffers[buffer].bytes * 8);
  std::pair<Elem, Shape> type(Elem::none, {});
  for (const auto views : {&Instr::outputs, &Instr::inputs})
    for (const Instr& instr : instrs)
      for (const View& view : instr.*views) {
        if (view.buffer != buffer || view.layout.opaque) continue;
        const int64_t width = elemBits(view.elem);
        if (view.isDense() && view.offset == 0 && view.count() * width == bits)
          return {view.elem, view.dims};
        if (type.first == Elem::none && bits % width == 0) type = {view.elem, {bits / width}};
      }
  return type.first == Elem::none ? std::pair(Elem::u8_, Shape{bits / 8}) : type;
}

std::string Program::instrName(uint32_t index) const {
  const Instr& instr = instrs[index];
  const std::string_view name = kindName(instr.kind);
  std::string text =
      fmt::format("{} [{}]", name.empty() ? fmt::format("kind {}", instr.kind) : name, index + 1);
  if (!instr.provenance.empty()) text += fmt::format(" '{}'", instr.provenance.front().node);
  return text;
}

} // namespace candela::program
