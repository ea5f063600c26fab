#include "conformance/tiers/ops/op_case.h"

#include <algorithm>
#include <cstring>

#include "candela/cdl_facts.h"
#include "conformance/port.h"
#include "core/compiler/driver/packing.h"
#include "core/compiler/driver/pipeline.h"
#include "core/compiler/lowering/decompose/lower.h"
#include "core/compiler/lowering/emit/emit.h"
#include "core/compiler/program/expr.h"
#include "core/compiler/program/image.h"
#include "core/support/out_of_memory.h"

namespace candela::conformance::tiers::ops {
namespace {

using program::Program, program::Role;

graph::Layout layoutOf(const program::Layout& from) {
  graph::Layout layout;
  for (const auto& step : from.steps) layout.steps.push_back({step.dim, step.factor});
  layout.pad = static_cast<graph::Layout::Pad>(from.padContent);
  return layout;
}
program::Layout layoutOf(const cdl_layout_t& from) {
  program::Layout layout;
  for (int i = 0; i < from.count; ++i) layout.steps.push_back({from.dim[i], from.factor[i]});
  layout.logicalRank = from.logical_rank;
  layout.padContent = from.pad_content;
  return layout;
}

graph::TensorType typeOn(Elem elem, const Shape& dims, const program::Layout& layout) {
  graph::TensorType type(elem, dims);
  type.layout = layoutOf(layout);
  return type;
}

/// body(index in memory, index in row-major order or -1 where rounding up adds something) for all
/// that lies in memory.
template <typename Body> void forEachPlace(const graph::TensorType& type, Body body) {
  const Shape dims = type.physicalDims(), shape = type.shape();
  const std::vector<int64_t> dense = denseStrides(shape);
  const int64_t count = type.physicalCount();
  for (int64_t p = 0; p < count; ++p) {
    Shape index(shape.size(), 0);
    int64_t rest = p;
    for (size_t d = dims.size(); d-- > 0; rest /= dims[d])
      index[type.layout.steps[d].dim] += rest % dims[d] * type.layout.stepOf(d);
    int64_t at = 0;
    for (size_t d = 0; d < shape.size(); ++d)
      at = index[d] < shape[d] && at >= 0 ? at + index[d] * dense[d] : -1;
    body(p, at);
  }
}

/// Only constants are rounded up, by packing, which adds zeros.
Tensor packed(const Tensor& tensor, const graph::TensorType& type) {
  Tensor out = orThrow(Tensor::zeros(tensor.elem, type.physicalDims()));
  forEachPlace(type, [&](int64_t p, int64_t at) {
    if (at >= 0)
      storeElement(out.elem, out.bytes.mutableData(), p,
                   loadElement(out.elem, tensor.bytes.data(), at));
  });
  return out;
}
Tensor unpacked(const Tensor& tensor, const graph::TensorType& type) {
  Tensor out = orThrow(Tensor::zeros(type.elem, type.shape()));
  forEachPlace(type, [&](int64_t p, int64_t at) {
    storeElement(out.elem, out.bytes.mutableData(), at,
                 loadElement(out.elem, tensor.bytes.data(), p));
  });
  return out;
}
judge::Interval packed(const judge::Interval& interval, const graph::TensorType& type) {
  const reference::Array none(type.elem, type.physicalDims());
  judge::Interval out{none, none};
  forEachPlace(type, [&](int64_t p, int64_t at) {
    out.lo.set(p, interval.lo.at(at));
    out.hi.set(p, interval.hi.at(at));
  });
  return out;
}

/// Buffers by the values that lie in them, and views of those.
class Writer {
public:
  explicit Writer(const OpTrial::Packer& packer) : packer_(packer) {}

  Program program;

  uint32_t add(const graph::Value* value, Role role, Elem elem, int64_t count, uint32_t alignment) {
    program::Buffer buffer;
    buffer.name = value->name;
    buffer.role = role;
    buffer.alignment = alignment;
    buffer.bytes = elemBytes(elem, static_cast<uint64_t>(count));
    return buffers_[value] = program.addBuffer(std::move(buffer));
  }
  uint32_t bufferOf(const lowering::decompose::NodeView& view) {
    if (!view.value) return program.addConstant("zero", Payload::splat(view.elem, 1, 0));
    const auto found = buffers_.find(view.value);
    if (found != buffers_.end()) return found->second;
    return buffers_[view.value] = program.addConstant(view.value->name, view.value->payload());
  }
  program::View viewOf(const lowering::decompose::NodeView& from) {
    program::View view = program::denseView(bufferOf(from), from.elem, from.dims);
    view.strides = from.strides;
    view.offset = from.offset;
    return view;
  }
  /// A view of an epilogue, which is walked as the result is.
  Result<program::View> viewBeside(const lowering::decompose::NodeView& from,
                                   const program::View& result) {
    program::View view = viewOf(from);
    if (result.layout.isRowMajor()) return view;
    const graph::TensorType type = typeOn(from.elem, from.dims, result.layout);
    if (!type.layout.divides(from.dims))
      return failure(Code::unsupported, "an epilogue over blocks partly empty");
    view.dims = type.physicalDims();
    view.strides.clear();
    for (size_t d = 0; d < view.dims.size(); ++d)
      view.strides.push_back(from.strides[type.layout.steps[d].dim] * type.layout.stepOf(d));
    view.layout = result.layout;
    return view;
  }
  /// All of a value on a layout, whose buffer becomes as large as that.
  Result<program::View> viewOn(const lowering::decompose::NodeView& from,
                               const cdl_layout_t& record) {
    const program::Layout layout = layoutOf(record);
    // A dim that is walked again and again has one index in memory.
    Shape stored = from.dims;
    for (size_t d = 0; d < stored.size(); ++d)
      if (from.strides[d] == 0) stored[d] = std::min<int64_t>(stored[d], 1);
    const graph::TensorType type = typeOn(from.elem, stored, layout);
    if (!from.value || record.logical_rank != from.dims.size() ||
        type.count() != from.value->type.count() ||
        layout.padContent > static_cast<uint8_t>(graph::Layout::Pad::zero))
      return failure(Code::unsupported, "not a layout of {}", shapeText(from.dims));
    program::View view = program::denseView(bufferOf(from), from.elem, type.physicalDims());
    view.layout = layout;
    for (size_t d = 0; d < view.dims.size(); ++d) {
      const size_t dim = type.layout.steps[d].dim;
      if (stored[dim] == from.dims[dim]) continue;
      if (type.layout.stepOf(d) != 1 || view.dims[d] != 1)
        return failure(Code::unsupported, "{} repeats a dim that lies in blocks",
                       shapeText(from.dims));
      view.dims[d] = from.dims[dim];
      view.strides[d] = 0;
    }
    program::Buffer& buffer = program.buffers[view.buffer];
    if (buffer.role != Role::constant && !type.layout.divides(stored))
      return failure(Code::unsupported, "{} leaves a block partly empty", shapeText(stored));
    if (buffer.role == Role::constant) {
      // Packing rounds constants up to whole blocks, with zeros.
      CDL_ASSIGN(const Tensor tensor, from.value->tensor());
      const uint32_t constant =
          program.addConstant(buffer.name, Payload::data(packed(tensor, type)));
      view.buffer = buffers_[from.value] = constant;
    } else {
      buffer.bytes = elemBytes(from.elem, static_cast<uint64_t>(type.physicalCount()));
    }
    return view;
  }

  /// A constant as the device lays it out itself.
  Result<program::View> viewPacked(const lowering::decompose::NodeView& from,
                                   const cdl_layout_t& record, const std::string& layout) {
    if (!from.value || !from.value->isConstant())
      return failure(Code::unsupported, "an opaque layout of what is no constant");
    const program::View plain = viewOf(from);
    if (!program::passes::pack::canBePacked(program, plain, record.logical_rank))
      return failure(Code::unsupported, "not an opaque layout of {}", shapeText(from.dims));
    program::View view = program::passes::pack::opaqueView(plain, layout);
    if (!packer_) return view;
    CDL_ASSIGN(const Tensor content, from.value->tensor());
    CDL_ASSIGN(const Bytes bytes, packer_(layout, content.bytes, plain));
    const Tensor packed{Elem::u8_, {static_cast<int64_t>(bytes.size())}, bytes};
    view.buffer = buffers_[from.value] =
        program.addConstant(from.value->name, Payload::data(packed));
    return view;
  }

private:
  const OpTrial::Packer& packer_;
  std::map<const graph::Value*, uint32_t> buffers_;
};

bool isBlocked(std::span<const cdl_layout_t> layouts) {
  return std::ranges::any_of(
      layouts, [](const cdl_layout_t& layout) { return layout.count != 0 || layout.opaque; });
}

/// TEMP buffers one behind the other.
void placeTemps(Program& program) {
  uint64_t end = 0;
  for (program::Buffer& buffer : program.buffers) {
    if (buffer.role != Role::temp) continue;
    const uint64_t alignment = std::max<uint64_t>(buffer.alignment, 64);
    buffer.offset = (end + alignment - 1) / alignment * alignment;
    end = buffer.offset + buffer.bytes;
  }
}

/// Packs as the device does, and sees to it that it does so alike each time, and says so when it
/// cannot write.
OpTrial::Packer strictPackerOf(const std::shared_ptr<runtime::plugin::Device>& device) {
  const OpTrial::Packer packer = driver::packerOf(device);
  if (!packer) return nullptr;
  return [device, packer](const std::string& layout, const Bytes& content,
                          const program::View& view) -> Result<Bytes> {
    CDL_ASSIGN(const Bytes once, packer(layout, content, view));
    CDL_ASSIGN(const Bytes again, packer(layout, content, view));
    if (once.size() != again.size() || std::memcmp(once.data(), again.data(), once.size()) != 0)
      return failure(Code::internal, "pack_constant wrote {} bytes, and others at the next call",
                     once.size());
    const Status unwritten = driver::pack(*device, layout, content, view, 0).status();
    if (unwritten.code() != Code::io)
      return failure(Code::internal, "pack_constant returned {} where nothing could be written",
                     codeName(unwritten.code()));
    return once;
  };
}

bool same(const std::vector<Tensor>& a, std::span<const Tensor> b) {
  return std::ranges::equal(a, b, [](const Tensor& x, const Tensor& y) {
    return x.bytes.size() == y.bytes.size() &&
           (x.bytes.size() == 0 ||
            std::memcmp(x.bytes.data(), y.bytes.data(), x.bytes.size()) == 0);
  });
}

} // namespace

Result<OpTrial> OpTrial::make(OpCase made, std::string_view address) {
  OpTrial trial;
  trial.case_ = std::move(made);
  trial.address_ = address;
  trial.seed_ = seedOf(address);
  CDL_ASSIGN(Built whole, trial.build(trial.case_.whole));
  CDL_ASSIGN(Built parts, trial.build(trial.case_.parts ? trial.case_.parts : trial.case_.whole));
  std::vector<lowering::decompose::NodeInstr> instrs =
      lowering::decompose::instructionsOf(*whole.results[0]->producer);
  if (instrs.size() != 1)
    return failure(Code::internal, "{}: {} instructions, not one", address, instrs.size());
  trial.instr_ = std::move(instrs[0]);
  if (trial.case_.change) trial.case_.change(trial.instr_, whole.operands);
  trial.whole_ = std::make_shared<const Built>(std::move(whole));
  trial.parts_ = std::make_shared<const Built>(std::move(parts));
  return trial;
}

Result<OpTrial::Built> OpTrial::build(const OpCase::Write& write) const {
  Built built;
  for (size_t i = 0; i < case_.operands.size(); ++i) {
    const OpCase::Operand& operand = case_.operands[i];
    if (operand.constant) {
      random::Random random(splitmix64(seed_ ^ 0xC0 ^ i << 8));
      Tensor content = operand.fill(elementCount(operand.dims).value_or(0), random);
      content.dims = operand.dims;
      built.operands.push_back(built.graph.addConstant(std::move(content)));
    } else {
      built.operands.push_back(
          built.graph.addInput(fmt::format("x{}", i), {operand.elem, operand.dims}));
    }
  }
  CDL_ASSIGN(built.results, write(built.graph, built.operands).context(address_));
  for (graph::Value* result : built.results) built.graph.addOutput(result, result->name);
  return built;
}

Result<Program> OpTrial::program(const capabilities::Target& target,
                                 std::span<const cdl_layout_t> layouts,
                                 const Packer& packer) const {
  Writer writer(packer);
  writer.program.spaces = {defaultSpace(target)};
  const uint32_t alignment = target.alignment();
  for (size_t i = 0; i < case_.operands.size(); ++i) {
    const bool isResult = case_.accumulates && i + 1 == case_.operands.size();
    if (case_.operands[i].constant || isResult) continue;
    writer.add(whole_->operands[i], Role::input, case_.operands[i].elem,
               whole_->operands[i]->type.count(), alignment);
  }
  const Role role = case_.accumulates ? Role::inout : Role::output;
  std::vector<const lowering::decompose::NodeView*> results = {&instr_.result};
  for (const lowering::decompose::NodeView& other : instr_.others) results.push_back(&other);
  for (const lowering::decompose::NodeView* result : results)
    writer.add(result->value, role, result->elem, result->value->type.count(), alignment);

  program::Instr instr;
  instr.kind = instr_.kind;
  instr.fn = instr_.fn;
  instr.inout = case_.accumulates;
  instr.provenance = {{address_, std::string(kindName(instr_.kind))}};
  for (const auto& [id, values] : instr_.attrs)
    instr.attrs.push_back({id, cdl_attr_facts(id)->type, values});
  const auto viewAt = [&](const lowering::decompose::NodeView& from,
                          size_t i) -> Result<program::View> {
    if (i >= layouts.size() || !isBlocked({&layouts[i], 1})) return writer.viewOf(from);
    if (layouts[i].opaque)
      return writer.viewPacked(from, layouts[i], target.layoutName(layouts[i].name));
    return writer.viewOn(from, layouts[i]);
  };
  for (size_t i = 0; i < instr_.operands.size(); ++i) {
    CDL_ASSIGN(program::View view, viewAt(instr_.operands[i], i));
    instr.inputs.push_back(std::move(view));
  }
  CDL_ASSIGN(program::View resultView, viewAt(instr_.result, instr_.operands.size()));
  instr.outputs.push_back(std::move(resultView));
  for (const lowering::decompose::NodeView& other : instr_.others)
    instr.outputs.push_back(writer.viewOf(other));
  for (const lowering::decompose::NodeView& from : instr_.views) {
    CDL_ASSIGN(program::View view, writer.viewBeside(from, instr.outputs[0]));
    instr.inputs.push_back(std::move(view));
  }
  instr.prologue = static_cast<uint32_t>(instr_.prologue);
  const size_t first =
      instr_.kind == CDL_KIND_ELEMENTWISE || instr_.prologue ? 0 : instr_.operands.size();
  CDL_ASSIGN(instr.expr,
             program::resolveExpr(instr_.steps, instr.inputs, instr_.accumulator, first));
  writer.program.instrs.push_back(std::move(instr));
  CDL_TRY(program::verify(writer.program).context("the suite made a program that is none"));
  return std::move(writer.program);
}

std::vector<std::vector<cdl_layout_t>> OpTrial::layouts(const capabilities::Target& target) const {
  if (!case_.onClaimedLayouts) return {{}};
  std::vector<std::vector<cdl_layout_t>> tuples;
  for (const capabilities::Target::Row& entry : target.rows()) {
    const cdl_row_t& row = entry.row;
    if (row.kind != instr_.kind || row.fn != instr_.fn || row.support != CDL_SUPPORT_NATIVE)
      continue;
    std::vector<cdl_layout_t> tuple;
    for (size_t i = 0; i < std::min(std::size(row.layouts), instr_.operands.size() + 1); ++i)
      tuple.push_back(target.layouts()[row.layouts[i]]);
    const bool isKnown = std::ranges::any_of(tuples, [&](const auto& other) {
      return std::ranges::equal(other, tuple, capabilities::sameLayout);
    });
    if (!isBlocked(tuple) || isKnown) continue;
    const auto program = this->program(target, tuple);
    if (!program) continue;
    const Bytes image = program::toImage(*program);
    const auto* header = reinterpret_cast<const cdl_image_t*>(image.data());
    if (target.query(runtime::plugin::describe(header, 1)).support == capabilities::Support::native)
      tuples.push_back(tuple);
  }
  return tuples;
}

Result<Program> OpTrial::decomposition(const capabilities::Target& target) const {
  const capabilities::Target native = target.nativeOnly();
  CDL_ASSIGN(Built built, build(case_.parts ? case_.parts : case_.whole));
  CDL_TRY(lowering::decompose::lower(built.graph, native, {.toPrimitives = true}));
  CDL_ASSIGN(Program program, lowering::emit::emit(built.graph, native));
  placeTemps(program);
  return program;
}

std::vector<Tensor> OpTrial::inputs(uint64_t salt) const {
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < case_.operands.size(); ++i) {
    const OpCase::Operand& operand = case_.operands[i];
    if (operand.constant) continue;
    random::Random random(splitmix64(seed_ ^ salt << 32 ^ i << 8));
    tensors.push_back(operand.fill(elementCount(operand.dims).value_or(0), random));
    tensors.back().dims = operand.dims;
  }
  return tensors;
}

Result<judge::Expectation> OpTrial::expect(std::span<const Tensor> inputs) const {
  judge::Expectation expected;
  CDL_ASSIGN(expected.outputs, reference::run(parts_->graph, inputs));
  std::vector<judge::Interval> intervals;
  for (const Tensor& input : inputs) {
    CDL_ASSIGN(judge::Interval interval, judge::Interval::of(input));
    intervals.push_back(std::move(interval));
  }
  CDL_ASSIGN(expected.intervals, judge::analyze(parts_->graph, intervals, driver::hostTarget()));
  expected.bits.assign(expected.outputs.size(), false);
  return expected;
}

Trial OpTrial::trialOn(Program program) const {
  // What each fed or read buffer holds, in logical dims.
  std::vector<graph::TensorType> fed, read;
  size_t next = 0;
  std::vector<graph::TensorType> inputs, outputs;
  for (const graph::Value* input : parts_->graph.inputs()) inputs.push_back(input->type);
  for (const graph::Value* output : parts_->graph.outputs()) outputs.push_back(output->type);
  size_t nextOut = 0;
  for (uint32_t b = 0; b < program.buffers.size(); ++b) {
    const Role role = program.buffers[b].role;
    program::Layout layout;
    for (const program::Instr& instr : program.instrs)
      for (const auto* views : {&instr.inputs, &instr.outputs})
        for (const program::View& view : *views)
          if (view.buffer == b && !view.layout.isRowMajor() &&
              view.strides == denseStrides(view.dims))
            layout = view.layout; // else it is walked so, and lies in rows
    if (role == Role::input || role == Role::inout) inputs[next++].layout = layoutOf(layout);
    if (role == Role::output || role == Role::inout) outputs[nextOut++].layout = layoutOf(layout);
  }
  struct Judged {
    std::vector<Tensor> inputs;
    judge::Expectation expected;
  };
  Trial trial{std::move(program), {}, {}};
  trial.inputs = [this, inputs](uint64_t salt) -> Result<std::vector<Tensor>> {
    std::vector<Tensor> tensors = this->inputs(salt);
    for (size_t i = 0; i < tensors.size(); ++i)
      if (!inputs[i].layout.isRowMajor()) tensors[i] = packed(tensors[i], inputs[i]);
    return tensors;
  };
  // Two of the three runs have the same inputs.
  const auto known = std::make_shared<std::vector<Judged>>();
  trial.judge = [this, inputs, outputs, known](
                    const Program&, std::span<const Tensor> given) -> Result<judge::Expectation> {
    std::vector<Tensor> logical(given.begin(), given.end());
    for (size_t i = 0; i < logical.size(); ++i)
      if (!inputs[i].layout.isRowMajor()) logical[i] = unpacked(logical[i], inputs[i]);
    for (const Judged& judged : *known)
      if (same(judged.inputs, logical)) return judged.expected;
    CDL_ASSIGN(judge::Expectation expected, expect(logical));
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i].layout.isRowMajor()) continue;
      expected.outputs[i] = packed(expected.outputs[i], outputs[i]);
      expected.intervals[i] = packed(expected.intervals[i], outputs[i]);
    }
    known->push_back({std::move(logical), expected});
    return expected;
  };
  return trial;
}

CaseResult OpTrial::tryOut(Port& port) const {
  using Outcome = CaseResult::Outcome;
  const auto device = port.device();
  if (!device) return CaseResult::of(device.status());
  const capabilities::Target& target = (*device)->target();
  const auto tuples = layouts(target);
  if (tuples.empty())
    return CaseResult::unsupported(
        fmt::format("no row of {} takes it on blocked layouts", instrText(instr_.kind, instr_.fn)));
  CaseResult result = CaseResult::passed();
  const Packer packer = strictPackerOf(*device);
  Work work;
  size_t unpacked = 0;
  for (const auto& tuple : tuples) {
    auto made = program(target, tuple, packer);
    if (made.status().code() == Code::unsupported && isBlocked(tuple)) {
      ++unpacked;
      continue;
    }
    if (!made) return CaseResult::of(made.status());
    CaseResult one = conformance::tryOut(trialOn(std::move(*made)), port);
    work += one.work;
    if (one.outcome != Outcome::passed) result = std::move(one);
    result.work = work;
    if (result.outcome != Outcome::passed && result.outcome != Outcome::mistrusted) return result;
  }
  if (unpacked == tuples.size())
    return CaseResult::unsupported("the device packs no constant of this shape");
  const bool isEmpty = std::ranges::all_of(
      parts_->results, [](const graph::Value* value) { return value->type.count() == 0; });
  if (isEmpty || case_.onClaimedLayouts) return result;
  auto parts = decomposition(target);
  if (!parts)
    return parts.status().code() == Code::unsupported ? result : CaseResult::of(parts.status());
  const CaseResult other = conformance::tryOut(trialOn(std::move(*parts)), port);
  if (other.outcome != Outcome::failed) return result;
  result.outcome = Outcome::failed;
  result.reason = "its decomposition into primitives: " + other.reason;
  return result;
}

} // namespace candela::conformance::tiers::ops
