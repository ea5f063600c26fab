#include "tools/candela/stepper.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/pipeline/pipeline.h"
#include "core/program/image.h"
#include "core/reference/interp/interp.h"
#include "tools/candela/verdict.h"

namespace candela::tool {
namespace {

using program::kNone;
using program::Program;
using program::Role;

/// The bytes of every buffer of a Program; what nothing wrote yet is NaN, or -1.
class Contents {
public:
  explicit Contents(const Program& program) {
    for (const program::Buffer& buffer : program.buffers)
      bytes_.emplace_back(buffer.role == Role::constant ? 0 : buffer.bytes,
                          buffer.role == Role::state ? std::byte{0} : std::byte{0xff});
  }
  std::vector<std::byte>& operator[](uint32_t buffer) { return bytes_[buffer]; }

private:
  std::vector<std::vector<std::byte>> bytes_;
};

bool isWritten(const program::Instr& instr, uint32_t buffer) {
  return std::ranges::any_of(instr.outputs, [&](const program::View& view) { return view.buffer == buffer; });
}

LoneInstr isolate(const Program& whole, uint32_t index, const int64_t* loops) {
  LoneInstr lone;
  Program& p = lone.program;
  p.name = "alone";
  p.engines = whole.engines;
  p.spaces = whole.spaces;
  program::Instr instr = whole.instrs[index];
  instr.waits.clear();
  instr.loop = instr.group = kNone;
  std::map<uint32_t, uint32_t> moved;
  for (auto* views : {&instr.inputs, &instr.outputs})
    for (program::View& view : *views) {
      for (int l = 0; l < CDL_MAX_LOOP_NESTING; ++l) view.offset += view.ivStrides[l] * loops[l], view.ivStrides[l] = 0;
      const auto [at, isNew] = moved.try_emplace(view.buffer, static_cast<uint32_t>(p.buffers.size()));
      if (isNew) {
        program::Buffer buffer = whole.buffers[view.buffer];
        if (buffer.role == Role::constant) {
          p.constants.push_back(whole.constants[buffer.constant]);
          buffer.constant = static_cast<uint32_t>(p.constants.size() - 1);
        } else {
          buffer.role = isWritten(instr, view.buffer) ? Role::inout : Role::input;
          buffer.offset = 0;
          buffer.space = 0; // where bound buffers lie
        }
        p.buffers.push_back(std::move(buffer));
        lone.origin.push_back(view.buffer);
      }
      view.buffer = at->second;
    }
  p.instrs.push_back(std::move(instr));
  return lone;
}

template <typename T> T inStep(Result<T> result, const std::string& name, const char* what) {
  if (!result) fail(kWorkFailed, "{} alone {}: {}", name, what, result.status().message());
  return std::move(result).value();
}

} // namespace

Stepper::Stepper(const runtime::Bundle& bundle, Devices devices) : bundle_(bundle), devices_(std::move(devices)) {
  std::map<std::string, const Bytes*> byHash;
  for (const runtime::BundleConstant& constant : bundle.constants) byHash[hashText(constant.hash)] = &constant.bytes;
  const program::PayloadSource payloads = [&](const cdl_constant_t& record) -> Result<Payload> {
    Hash hash;
    std::copy(std::begin(record.hash), std::end(record.hash), hash.begin());
    const auto at = byHash.find(hashText(hash));
    if (at == byHash.end()) return Status(Code::bad_model, "the bundle does not hold it");
    const Elem elem = static_cast<Elem>(record.elem);
    return Payload::data({elem, {static_cast<int64_t>(record.bytes * 8 / elemBits(elem))}, *at->second});
  };
  for (const runtime::BundlePartition& partition : bundle.partitions)
    programs_.push_back(check(program::fromImage(partition.image, payloads), kWorkFailed));
}

uint64_t Stepper::executions() const {
  uint64_t count = 0;
  for (const runtime::BundlePartition& partition : bundle_.partitions)
    count += runtime::executions(reinterpret_cast<const cdl_image_t*>(partition.image.data()));
  return count;
}

std::optional<std::vector<Tensor>> Stepper::run(std::span<const Tensor> inputs,
                                                const std::function<bool(const Verdict&, const LoneInstr&)>& visit) {
  std::vector<Tensor> values(bundle_.values.size());
  for (size_t v = 0; v < values.size(); ++v)
    if (const runtime::BundleValue& value = bundle_.values[v]; value.constant != runtime::kNoConstant)
      values[v] = {value.elem, value.dims, bundle_.constants[value.constant].bytes};
  for (size_t i = 0; i < inputs.size(); ++i) values[bundle_.inputs[i]] = inputs[i];
  for (const runtime::BundleStep& step : bundle_.steps) {
    if (step.kind == runtime::StepKind::copy) {
      values[step.outputs[0]] = values[step.inputs[0]];
      continue;
    }
    const Program& program = programs_[step.partition];
    const runtime::BundlePartition& partition = bundle_.partitions[step.partition];
    const auto device = devices_.find(partition.backend);
    Contents contents(program);
    size_t nextIn = 0, nextOut = 0;
    for (uint32_t b = 0; b < program.buffers.size(); ++b)
      if (program.buffers[b].role == Role::input || program.buffers[b].role == Role::inout) {
        const Bytes& bytes = values[step.inputs[nextIn++]].bytes;
        std::copy_n(bytes.data(), contents[b].size(), contents[b].data());
      }
    const auto* image = reinterpret_cast<const cdl_image_t*>(partition.image.data());
    int64_t loops[CDL_MAX_LOOP_NESTING] = {};
    for (uint32_t i = 1; i < image->instrs.count; i = cdl_next_instr(image, i, loops)) {
      const std::string name = program.instrName(i - 1);
      LoneInstr lone = isolate(program, i - 1, loops);
      const auto session =
          inStep(pipeline::compileProgram(lone.program, name, device == devices_.end() ? nullptr : device->second),
                 name, "does not compile");
      const runtime::Bundle& own = session->bundle();
      for (uint32_t b = 0; b < lone.program.buffers.size(); ++b) {
        if (lone.program.buffers[b].role == Role::constant) continue;
        const runtime::BundleValue& port = own.values[own.inputs[lone.inputs.size()]];
        const std::vector<std::byte>& bytes = contents[lone.origin[b]];
        lone.inputs.push_back({port.elem, port.dims, Bytes::copyOf(bytes.data(), bytes.size())});
      }
      lone.got = inStep(session->run(lone.inputs), name, "does not run");
      lone.want = inStep(reference::interpret(lone.program, lone.inputs), name, "does not run on the reference");
      Verdict verdict = judge(lone);
      verdict.partition = step.partition;
      verdict.instr = i;
      verdict.backend = partition.backend.empty() ? "soft" : partition.backend;
      verdict.name = name;
      if (!visit(verdict, lone)) return std::nullopt;
      for (uint32_t b = 0, next = 0; b < lone.program.buffers.size(); ++b)
        if (lone.program.buffers[b].role == Role::inout) {
          const Bytes& bytes = lone.got[next++].bytes;
          std::copy_n(bytes.data(), bytes.size(), contents[lone.origin[b]].data());
        }
    }
    for (uint32_t b = 0; b < program.buffers.size(); ++b)
      if (program.buffers[b].role == Role::output || program.buffers[b].role == Role::inout) {
        const runtime::BundleValue& value = bundle_.values[step.outputs[nextOut]];
        values[step.outputs[nextOut++]] = {value.elem, value.dims,
                                           Bytes::copyOf(contents[b].data(), contents[b].size())};
      }
  }
  std::vector<Tensor> outputs;
  for (const uint32_t v : bundle_.outputs) outputs.push_back(values[v]);
  return outputs;
}

} // namespace candela::tool
