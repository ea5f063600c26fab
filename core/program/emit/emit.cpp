#include "core/program/emit/emit.h"

#include <algorithm>

#include "core/program/emit/emitter.h"

namespace candela::program {

using graph::OpKind;

const graph::Value* Emitter::baseOf(const Value* value) {
  while (value->producer && value->producer->kind == OpKind::Reshape) value = value->producer->operand(0);
  return value;
}

void Emitter::declareSpaces() {
  program_.engines = target_.engines();
  if (target_.spaces().empty()) return;
  program_.spaces.clear();
  for (const target::Target::SpaceInfo& info : target_.spaces()) {
    Space space;
    space.name = info.name;
    space.hostMapped = info.space.flags & CDL_SPACE_HOST_MAPPED;
    space.local = info.space.flags & CDL_SPACE_LOCAL;
    space.capacityBytes = info.space.capacity_bytes;
    space.alignment = info.space.alignment;
    space.banks = info.space.banks;
    program_.spaces.push_back(std::move(space));
  }
}

void Emitter::declareBuffers() {
  const auto declare = [&](const std::string& name, const graph::TensorType& type, Role role) {
    Buffer buffer;
    buffer.name = name;
    buffer.bytes = elemBytes(type.elem, static_cast<uint64_t>(type.physicalCount()));
    buffer.alignment = target_.alignment();
    buffer.role = role;
    if (type.halo) buffer.halo = Halo{type.elem, type.halo->lo, type.halo->hi, type.halo->fill};
    return program_.addBuffer(std::move(buffer));
  };
  for (const Value* input : graph_.inputs()) buffers_[input] = declare(input->name, input->type, Role::input);
  // The first output of a computed value is where it is computed; every other output is a copy
  // (finishOutputs).
  for (size_t i = 0; i < graph_.outputs().size(); ++i) {
    const Value* value = graph_.outputs()[i];
    const uint32_t buffer = declare(graph_.outputNames()[i], value->type, Role::output);
    const Value* base = baseOf(value);
    if (base->producer && !base->isConstant()) buffers_.try_emplace(base, buffer);
  }
  for (const auto& node : graph_.nodes()) {
    if (isWithin(*node)) continue;
    for (const Value* value : node->results()) {
      if (node->kind == OpKind::Constant) {
        if (!graph_.isUsed(value)) continue;
        const uint32_t buffer = program_.addConstant(value->name, value->payload());
        program_.buffers[buffer].alignment = target_.alignment();
        buffers_[value] = buffer;
      } else if (baseOf(value) == value && !buffers_.count(value)) {
        buffers_[value] = declare(value->name, value->type, Role::temp);
      }
    }
  }
}

bool Emitter::isWithin(const Node& node) const { return target::epilogueOf(node) && !graph_.isOutput(node.result()); }

uint32_t Emitter::bufferOf(const Value* value) { return buffers_.at(baseOf(value)); }

void Emitter::add(Instr instr, const Node& node) {
  const Node* from = target::accumulatorOf(node);
  const std::string op(target::convertsLayout(node) ? kLayoutOrigin : graph::opName((from ? *from : node).kind));
  for (const std::string& name : node.provenance) instr.provenance.push_back({name, op});
  if (instr.provenance.empty() && !node.results().empty()) instr.provenance.push_back({node.result()->name, op});
  touched_.resize(program_.buffers.size());
  const auto index = static_cast<uint32_t>(program_.instrs.size());
  for (const View& view : instr.inputs)
    if (const Touch& touch = touched_[view.buffer]; touch.writer != kNone) instr.waits.push_back(touch.writer);
  for (const View& view : instr.outputs) {
    const Touch& touch = touched_[view.buffer];
    if (touch.writer != kNone) instr.waits.push_back(touch.writer);
    instr.waits.insert(instr.waits.end(), touch.readers.begin(), touch.readers.end());
  }
  std::sort(instr.waits.begin(), instr.waits.end());
  instr.waits.erase(std::unique(instr.waits.begin(), instr.waits.end()), instr.waits.end());
  for (const View& view : instr.inputs) touched_[view.buffer].readers.push_back(index);
  for (const View& view : instr.outputs) touched_[view.buffer] = {index, {}};
  program_.instrs.push_back(std::move(instr));
}

// Outputs that are inputs, constants, or the same value as an earlier output.
Status Emitter::finishOutputs() {
  const size_t first = graph_.inputs().size();
  for (size_t i = 0; i < graph_.outputs().size(); ++i) {
    const Value* value = graph_.outputs()[i];
    const auto buffer = static_cast<uint32_t>(first + i);
    if (bufferOf(value) == buffer || value->type.count() == 0) continue;
    const Shape flat{value->type.count()};
    Instr copy;
    copy.kind = CDL_KIND_COPY;
    copy.inputs = {dense(value, flat)};
    copy.outputs = {denseView(buffer, value->type.elem, flat)};
    if (const Node* node = baseOf(value)->producer) {
      add(std::move(copy), *node);
      continue;
    }
    copy.provenance = {{value->name, "output"}};
    touched_.resize(program_.buffers.size());
    program_.instrs.push_back(std::move(copy)); // of an input: nothing to wait for
  }
  return Status::ok();
}

Result<Program> Emitter::run() {
  program_.name = graph_.name;
  for (const auto& node : graph_.nodes())
    for (const Value* value : node->results())
      if (!value->type.isExact())
        return failure(Code::unsupported, "{} '{}': its shape depends on data", graph::opName(node->kind),
                       node->userName());
  declareSpaces();
  declareBuffers();
  for (const auto& node : graph_.nodes()) {
    // Nothing is computed for results without elements.
    const bool empty = node->results().empty() || node->result()->type.count() == 0;
    if (node->kind == OpKind::Constant || node->kind == OpKind::Reshape || empty || isWithin(*node)) continue;
    CDL_TRY(emitNode(*node));
  }
  CDL_TRY(finishOutputs());
  if (Status status = verify(program_); !status) return Status(Code::internal, "emit: " + status.message());
  return std::move(program_);
}

Result<Program> emit(const graph::Graph& graph, const target::Target& target) { return Emitter(graph, target).run(); }

} // namespace candela::program
