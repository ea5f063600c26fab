#include "tools/candela/debug/stepper.h"

#include <algorithm>

#include "core/compiler/program/image.h"
#include "tools/candela/support/console.h"

namespace candela::tool {

using program::Role;

Stepper::Stepper(const runtime::bundle::Bundle& bundle, std::span<const Tensor> inputs)
    : bundle_(bundle), inputs_(inputs.begin(), inputs.end()) {
  std::map<std::string, const Bytes*> byHash;
  for (const runtime::bundle::BundleConstant& constant : bundle.constants)
    byHash[hashText(constant.hash)] = &constant.bytes;
  const program::PayloadSource payloads = [&](const cdl_constant_t& record) -> Result<Payload> {
    Hash hash;
    std::copy(std::begin(record.hash), std::end(record.hash), hash.begin());
    const auto at = byHash.find(hashText(hash));
    if (at == byHash.end()) return Status(Code::bad_model, "the bundle does not hold it");
    const Elem elem = static_cast<Elem>(record.elem);
    return Payload::data(
        {elem, {static_cast<int64_t>(record.bytes * 8 / elemBits(elem))}, *at->second});
  };
  for (const runtime::bundle::BundleStep& step : bundle.steps) {
    if (step.kind == runtime::bundle::StepKind::copy) continue;
    const Bytes& image = bundle.partitions[step.partition].image;
    Part& part = parts_.emplace_back();
    part.step = &step;
    part.program = check(program::fromImage(image, payloads), kWorkFailed);
    part.tape.emplace(part.program, reinterpret_cast<const cdl_image_t*>(image.data()));
    size_t next = 0;
    for (uint32_t b = 0; b < part.program.buffers.size(); ++b)
      if (const Role role = part.program.buffers[b].role;
          role == Role::output || role == Role::inout)
        writers_[step.outputs[next++]] = {parts_.size() - 1, b};
  }
}

const std::string& Stepper::backend(size_t part) const {
  return bundle_.partitions[parts_[part].step->partition].backend;
}

uint64_t Stepper::executions() const {
  uint64_t count = 0;
  for (const Part& part : parts_) count += part.tape->executions().size();
  return count;
}

std::optional<Stepper::Place> Stepper::place(uint64_t number) const {
  for (size_t p = 0; p < parts_.size(); ++p) {
    if (number < parts_[p].tape->executions().size()) return Place{p, static_cast<size_t>(number)};
    number -= parts_[p].tape->executions().size();
  }
  return std::nullopt;
}

Tensor Stepper::value(uint32_t index) const {
  const runtime::bundle::BundleValue& value = bundle_.values[index];
  if (const auto writer = writers_.find(index); writer != writers_.end()) {
    const auto [part, buffer] = writer->second;
    const Tape& tape = *parts_[part].tape;
    const std::span<std::byte> bytes = tape.before(tape.executions().size(), buffer);
    return {value.elem, value.dims, Bytes::copyOf(bytes.data(), bytes.size())};
  }
  if (value.constant != runtime::bundle::kNoConstant)
    return {value.elem, value.dims, bundle_.constants[value.constant].bytes};
  for (size_t i = 0; i < bundle_.inputs.size(); ++i)
    if (bundle_.inputs[i] == index) return inputs_[i];
  for (const runtime::bundle::BundleStep& step : bundle_.steps)
    if (step.kind == runtime::bundle::StepKind::copy && step.outputs[0] == index)
      return this->value(step.inputs[0]);
  return {};
}

void Stepper::run(const Question& question, const Devices& devices,
                  const std::shared_ptr<runtime::plugin::Device>& against,
                  const std::function<void(uint64_t)>& begin,
                  const std::function<bool(const Finding&)>& visit) {
  uint64_t number = 0;
  for (const Part& part : parts_) {
    const Tape& tape = *part.tape;
    const std::string& backend = bundle_.partitions[part.step->partition].backend;
    const auto device = devices.find(backend);
    size_t next = 0;
    for (uint32_t b = 0; b < part.program.buffers.size(); ++b) {
      if (const Role role = part.program.buffers[b].role;
          role != Role::input && role != Role::inout)
        continue;
      const Bytes bytes = value(part.step->inputs[next++]).bytes;
      std::copy_n(bytes.data(), std::min<uint64_t>(bytes.size(), tape.initial(b).size()),
                  tape.initial(b).data());
    }
    // What is on the host has none to be compared with, and no door to come by.
    Question own = question;
    if (backend.empty()) own.against.reset();
    for (size_t e = 0; e < tape.executions().size(); ++e, ++number) {
      begin(number);
      const Trial trial = isolate(part.program, tape, e);
      std::vector<Tensor> results;
      Finding finding = examine(trial, own, device == devices.end() ? nullptr : device->second,
                                against, &results);
      Verdict place = describe(part.program, tape.executions()[e].instr);
      finding.verdict.name = place.name;
      finding.verdict.node = place.node;
      finding.verdict.op = place.op;
      finding.verdict.kind = place.kind;
      finding.verdict.types = place.types;
      finding.verdict.instr = place.instr;
      finding.verdict.partition = part.step->partition;
      finding.verdict.backend = backend.empty() ? "soft" : backend;
      if (!visit(finding)) return;
      // Results are the buffers in the order in which isolate finds them.
      std::vector<uint32_t> found;
      const program::Instr& instr = part.program.instrs[tape.executions()[e].instr];
      for (const auto* views : {&instr.inputs, &instr.outputs})
        for (const program::View& view : *views)
          if (std::ranges::find(found, view.buffer) == found.end() &&
              part.program.buffers[view.buffer].role != Role::constant)
            found.push_back(view.buffer);
      for (size_t i = 0; i < results.size(); ++i) {
        if (std::ranges::none_of(instr.outputs,
                                 [&](const auto& view) { return view.buffer == found[i]; }))
          continue;
        const std::span<std::byte> to = tape.after(e, found[i]);
        std::copy_n(results[i].bytes.data(), to.size(), to.data());
      }
    }
  }
}

std::vector<Tensor> Stepper::outputs() const {
  std::vector<Tensor> outputs;
  for (const uint32_t v : bundle_.outputs) outputs.push_back(value(v));
  return outputs;
}

} // namespace candela::tool
