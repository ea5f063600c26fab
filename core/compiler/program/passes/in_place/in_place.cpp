#include "core/compiler/program/passes/in_place/in_place.h"

#include <algorithm>
#include <map>
#include <optional>

#include "core/compiler/program/passes/schedule/simplify.h"

namespace candela::program::passes::in_place {

namespace {

/// All of a row-major buffer without a border.
bool isWhole(const Program& program, const View& view) {
  const Buffer& buffer = program.buffers[view.buffer];
  return view.isDense() && view.offset == 0 && !buffer.halo &&
         elemBytes(view.elem, static_cast<uint64_t>(view.count())) == buffer.bytes;
}

std::optional<uint32_t> bufferNamed(const Program& program, Role role, const std::string& name) {
  for (uint32_t b = 0; b < program.buffers.size(); ++b)
    if (program.buffers[b].role == role && program.buffers[b].name == name) return b;
  return std::nullopt;
}

bool touches(const Instr& instr, uint32_t buffer) {
  const auto isIn = [buffer](const View& view) { return view.buffer == buffer; };
  return std::ranges::any_of(instr.inputs, isIn) || std::ranges::any_of(instr.outputs, isIn);
}

/// The COPY by which the output begins as the input is, if that is all that the input is for.
std::optional<uint32_t> beginningOf(const Program& program, uint32_t input, uint32_t output) {
  if (program.buffers[input].space != program.buffers[output].space) return std::nullopt;
  std::optional<uint32_t> copy;
  for (uint32_t i = 0; i < program.instrs.size(); ++i) {
    const Instr& instr = program.instrs[i];
    if (copy && touches(instr, input)) return std::nullopt;
    if (copy || (!touches(instr, input) && !touches(instr, output))) continue;
    const bool isCopy = instr.kind == CDL_KIND_COPY && instr.loop == kNone &&
                        instr.group == kNone && instr.inputs[0].buffer == input &&
                        instr.outputs[0].buffer == output && isWhole(program, instr.inputs[0]) &&
                        isWhole(program, instr.outputs[0]);
    if (!isCopy) return std::nullopt;
    copy = i;
  }
  return copy;
}

/// Buffers leave the Program; views are told where the others went.
void eraseBuffers(Program& program, const std::vector<bool>& gone) {
  std::vector<uint32_t> place(program.buffers.size());
  std::vector<Buffer> left;
  for (uint32_t b = 0; b < program.buffers.size(); ++b) {
    place[b] = static_cast<uint32_t>(left.size());
    if (!gone[b]) left.push_back(std::move(program.buffers[b]));
  }
  program.buffers = std::move(left);
  for (Instr& instr : program.instrs)
    for (auto* views : {&instr.inputs, &instr.outputs})
      for (View& view : *views) view.buffer = place[view.buffer];
}

bool isWritten(const Buffer& buffer) {
  return buffer.role == Role::output || buffer.role == Role::inout;
}

} // namespace

std::vector<size_t> updateInPlace(Program& program, const std::vector<State>& states) {
  std::map<uint32_t, size_t> numberOf; // of the outputs, by buffer
  for (uint32_t b = 0; b < program.buffers.size(); ++b)
    if (isWritten(program.buffers[b])) numberOf.emplace(b, numberOf.size());
  std::vector<bool> goneBuffers(program.buffers.size());
  std::vector<bool> goneCopies(program.instrs.size());
  for (const auto& [in, out] : states) {
    const auto input = bufferNamed(program, Role::input, in);
    const auto output = bufferNamed(program, Role::output, out);
    const auto copy = input && output ? beginningOf(program, *input, *output) : std::nullopt;
    if (!copy) continue;
    goneCopies[*copy] = true;
    goneBuffers[*output] = true;
    numberOf[*input] = numberOf[*output];
    program.buffers[*input].role = Role::inout;
    for (Instr& instr : program.instrs)
      for (auto* views : {&instr.inputs, &instr.outputs})
        for (View& view : *views)
          if (view.buffer == *output) view.buffer = *input;
  }
  std::vector<size_t> outputs;
  for (uint32_t b = 0; b < program.buffers.size(); ++b)
    if (isWritten(program.buffers[b]) && !goneBuffers[b]) outputs.push_back(numberOf[b]);
  std::vector<uint32_t> order;
  for (uint32_t i = 0; i < program.instrs.size(); ++i)
    if (!goneCopies[i]) order.push_back(i);
  schedule::reorder(program, order);
  eraseBuffers(program, goneBuffers);
  return outputs;
}

} // namespace candela::program::passes::in_place
