#include "core/compiler/lowering/emit/emitter.h"

#include "core/compiler/capabilities/views.h"
#include "core/compiler/graph/custom.h"
#include "core/compiler/program/dependences.h"
#include "core/compiler/program/expr.h"

namespace candela::lowering::emit {

using graph::OpKind;

std::vector<program::Space> spacesOf(const capabilities::Target& target) {
  std::vector<program::Space> spaces;
  for (const auto& [name, space] : target.spaces())
    spaces.push_back({.name = name,
                      .hostMapped = (space.flags & CDL_SPACE_HOST_MAPPED) != 0,
                      .local = (space.flags & CDL_SPACE_LOCAL) != 0,
                      .capacityBytes = space.capacity_bytes,
                      .alignment = space.alignment,
                      .banks = space.banks,
                      .forConstants = (space.flags & CDL_SPACE_CONSTANTS) != 0});
  if (spaces.empty()) spaces.push_back({"host"});
  return spaces;
}

Result<program::Program> Emitter::run() {
  program_.name = graph_->name;
  declareSpaces();
  declareBorders();
  CDL_TRY(declareValues());
  CDL_TRY(emitNodes());
  finishOutputs();
  program::placeConstants(program_);
  program::rebuildWaits(program_);
  if (Status status = program::verify(program_); !status)
    return Status(Code::internal, "emit: " + status.message());
  return std::move(program_);
}

void Emitter::declareSpaces() {
  program_.engines = target_.engines();
  program_.spaces = spacesOf(target_);
}

uint32_t Emitter::declare(const std::string& name, const graph::TensorType& type,
                          program::Role role) {
  program::Buffer buffer;
  buffer.name = name;
  buffer.bytes = elemBytes(type.elem, static_cast<uint64_t>(type.physicalCount()));
  buffer.alignment = target_.alignment();
  buffer.role = role;
  if (type.halo)
    buffer.halo = program::Halo{type.elem, type.halo->lo, type.halo->hi, type.halo->fill};
  return program_.addBuffer(std::move(buffer));
}

void Emitter::declareBorders() {
  for (const Value* input : graph_->inputs())
    homes_[input] = {declare(input->name, input->type, program::Role::input)};
  // The first output of a computed value is where it is computed; every other output is a copy
  // (finishOutputs).
  for (size_t i = 0; i < graph_->outputs().size(); ++i) {
    const Value* value = graph_->outputs()[i];
    const uint32_t buffer = declare(graph_->outputNames()[i], value->type, program::Role::output);
    const Value* base = baseOf(value);
    if (base->producer && !base->isConstant()) homes_.try_emplace(base, Home{buffer});
  }
}

Status Emitter::declareValues() {
  for (const auto& node : graph_->nodes()) {
    if (isWithin(*node)) continue;
    for (const Value* value : node->results()) {
      if (node->kind == OpKind::Constant) {
        if (!graph_->isUsed(value)) continue;
        auto payload = value->payload().stored();
        if (!payload) return payload.status().context(fmt::format("constant '{}'", value->name));
        const uint32_t buffer = program_.addConstant(value->name, std::move(*payload));
        program_.buffers[buffer].alignment = target_.alignment();
        homes_[value] = {buffer};
      } else if (baseOf(value) == value && !homes_.count(value)) {
        homes_[value] = {declare(value->name, value->type, program::Role::temp)};
      }
    }
  }
  return Status::ok();
}

Status Emitter::emitNodes() {
  for (const auto& node : graph_->nodes()) {
    if (node->kind == OpKind::Loop) {
      CDL_TRY(emitLoop(*node));
      continue;
    }
    // Nothing is computed for results without elements.
    const bool empty = node->results().empty() || node->result()->type.count() == 0;
    if (node->kind == OpKind::Constant || node->kind == OpKind::Reshape || empty || isWithin(*node))
      continue;
    CDL_TRY(emitNode(*node));
  }
  return Status::ok();
}

const graph::Value* Emitter::baseOf(const Value* value) {
  while (value->producer && value->producer->kind == OpKind::Reshape)
    value = value->producer->operand(0);
  return value;
}

bool Emitter::isWithin(const Node& node) const {
  return (decompose::epilogueOf(node) || decompose::reductionOf(node)) &&
         !graph_->isOutput(node.result());
}

program::View Emitter::at(const Home& home, Elem elem, Shape dims) const {
  program::View view = program::denseView(home.buffer, elem, std::move(dims));
  view.offset = home.offset;
  std::copy(home.ivStrides.begin(), home.ivStrides.end(), view.ivStrides);
  return view;
}

void Emitter::add(program::Instr instr, const Node& node) {
  const Node* from = decompose::accumulatorOf(node);
  const std::string op = decompose::convertsLayout(node) ? std::string(kLayoutOrigin)
                                                         : graph::shownOp(from ? *from : node);
  for (const std::string& name : node.provenance) instr.provenance.push_back({name, op});
  if (instr.provenance.empty() && !node.results().empty())
    instr.provenance.push_back({node.result()->name, op});
  addLoops(instr);
  program_.instrs.push_back(std::move(instr));
}

void Emitter::finishOutputs() {
  const size_t first = graph_->inputs().size();
  for (size_t i = 0; i < graph_->outputs().size(); ++i) {
    const Value* value = graph_->outputs()[i];
    const auto buffer = static_cast<uint32_t>(first + i);
    if (homeOf(value).buffer == buffer || value->type.count() == 0) continue;
    const Shape flat{value->type.count()};
    program::Instr copy;
    copy.kind = CDL_KIND_COPY;
    copy.inputs = {dense(value, flat)};
    copy.outputs = {program::denseView(buffer, value->type.elem, flat)};
    if (const Node* node = baseOf(value)->producer) {
      add(std::move(copy), *node);
      continue;
    }
    copy.provenance = {{value->name, "output"}};
    program_.instrs.push_back(std::move(copy));
  }
}

program::View Emitter::viewOf(const decompose::NodeView& from) {
  if (!from.value) {
    const uint32_t zero = program_.addConstant("zero", Payload::splat(from.elem, 1, 0));
    program::View none = program::denseView(zero, from.elem, {1});
    none.dims = from.dims;
    none.strides = from.strides;
    return none;
  }
  program::View view = dense(from.value, from.dims);
  view.elem = from.elem;
  view.strides = from.strides;
  view.offset += from.offset;
  if (from.layout.isRowMajor()) return view;
  view.layout.padContent = static_cast<uint8_t>(from.layout.pad);
  for (const graph::Layout::Step& step : from.layout.steps) {
    view.layout.steps.push_back({step.dim, step.factor});
    view.layout.logicalRank = std::max<uint8_t>(view.layout.logicalRank, step.dim + 1);
  }
  return view;
}

void Emitter::addBorder(const Node& node) {
  const graph::TensorType& type = node.result()->type;
  const graph::Halo& halo = *type.halo;
  const Shape content = type.physicalDims();
  for (size_t d = 0; d < content.size(); ++d) {
    for (const auto& [start, width] :
         {std::pair<int64_t, int64_t>{0, halo.lo[d]}, {halo.lo[d] + content[d], halo.hi[d]}}) {
      if (width == 0) continue;
      program::View slab = dense(node.result(), content);
      slab.strides = type.physicalStrides();
      slab.dims[d] = width;
      slab.offset += start * slab.strides[d];
      for (size_t i = 0; i < d; ++i) slab.offset += halo.lo[i] * slab.strides[i];
      for (size_t i = d + 1; i < content.size(); ++i) slab.dims[i] += halo.lo[i] + halo.hi[i];
      capabilities::Walk walk = capabilities::coalesce({slab.dims, {slab.strides}});
      slab.dims = std::move(walk.dims);
      slab.strides = std::move(walk.strides[0]);
      program::Instr fill;
      fill.kind = CDL_KIND_FILL;
      fill.outputs = {std::move(slab)};
      fill.attrs = {program::Attr::ofBits(CDL_ATTR_VALUE, halo.fill)};
      add(std::move(fill), node);
    }
  }
}

Status Emitter::emitNode(const Node& node) {
  const auto described = decompose::instructionsOf(node);
  if (described.empty())
    return badArgument("{} '{}' has no instruction: it must be lowered first",
                       graph::opName(node.kind), node.userName());
  if (node.result()->type.halo) addBorder(node);
  for (const decompose::NodeInstr& from : described) {
    const capabilities::Answer answer = target_.query(decompose::describe(from));
    if (answer.support == capabilities::Support::none)
      return failure(Code::internal, "{} '{}' is emitted but '{}' does not take it: {}",
                     graph::opName(node.kind), node.userName(), target_.name(), answer.detail);
    program::Instr instr;
    instr.kind = from.kind;
    instr.fn = from.fn;
    instr.inout = from.kind == CDL_KIND_SCATTER;
    for (const decompose::NodeView& operand : from.operands)
      instr.inputs.push_back(viewOf(operand));
    instr.outputs = {viewOf(from.result)};
    for (const decompose::NodeView& other : from.others) instr.outputs.push_back(viewOf(other));
    for (const auto& [id, values] : from.attrs)
      instr.attrs.push_back({id, graph::instrAttrType(node, id), values});
    for (const decompose::NodeView& view : from.views) instr.inputs.push_back(viewOf(view));
    instr.prologue = static_cast<uint32_t>(from.prologue);
    const size_t first =
        from.kind == CDL_KIND_ELEMENTWISE || from.prologue ? 0 : from.operands.size();
    CDL_ASSIGN(instr.expr,
               program::resolveExpr(from.steps, instr.inputs, from.accumulator, first)
                   .context(fmt::format("{} '{}'", graph::opName(node.kind), node.userName())));
    add(std::move(instr), node);
  }
  return Status::ok();
}

Result<program::Program> emit(const graph::Graph& graph, const capabilities::Target& target) {
  return Emitter(graph, target).run();
}

} // namespace candela::lowering::emit
