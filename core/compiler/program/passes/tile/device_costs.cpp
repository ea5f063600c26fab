#include "core/compiler/program/passes/tile/device_costs.h"

#include <algorithm>
#include <numeric>

#include "core/compiler/program/passes/tile/emission.h"

namespace candela::program::passes::tile {

std::string costKeyOf(const Instr& instr) {
  std::string key = fmt::format("{}.{}.{}.{}", instr.kind, instr.fn, instr.inout, instr.engine);
  for (const Attr& attr : instr.attrs)
    key += fmt::format(";{}={}", attr.id, fmt::join(attr.values, ","));
  for (const auto* views : {&instr.inputs, &instr.outputs})
    for (const View& view : *views) {
      key += fmt::format("|{}[{}][{}]", static_cast<int>(view.elem), fmt::join(view.dims, ","),
                         fmt::join(view.strides, ","));
      for (const Layout::Step& step : view.layout.steps)
        key += fmt::format("{}%{} ", step.dim, step.factor);
    }
  for (const Step& step : instr.expr) {
    key += fmt::format("({}.{}.{}", step.kind, step.fn, static_cast<int>(step.elem));
    for (const Operand& in : step.in)
      key += fmt::format(" {}:{}", static_cast<int>(in.source), in.index);
  }
  return key;
}

std::optional<double> DeviceCosts::sumOf(const Program& program) const {
  const std::vector<double> cycles = ask_(program);
  if (cycles.empty()) return std::nullopt;
  return std::accumulate(cycles.begin(), cycles.end(), 0.0);
}

std::unique_ptr<Machine>& DeviceCosts::bestOf(const Program& whole) {
  std::string key;
  for (const Buffer& buffer : whole.buffers)
    key += fmt::format("{}.{} ", static_cast<int>(buffer.role), buffer.bytes);
  for (const Instr& instr : whole.instrs) {
    key += costKeyOf(instr);
    for (const auto* views : {&instr.inputs, &instr.outputs})
      for (const View& view : *views) key += fmt::format("@{}.{}", view.buffer, view.offset);
  }
  return best_[key];
}

std::vector<std::optional<double>> DeviceCosts::cyclesOf(const Chain& chain,
                                                         const std::vector<Box>& boxes,
                                                         const Space& memory, uint16_t engine) {
  Program program;
  program.engines = engine + 1u;
  program.spaces.push_back(memory);
  std::vector<std::vector<std::string>> keys;
  std::vector<std::string> asked;
  for (const Box& box : boxes) {
    keys.emplace_back();
    for (size_t l = 0; l < chain.links.size(); ++l) {
      Instr instr = tileOf(chain, l, box);
      instr.engine = engine;
      keys.back().push_back(costKeyOf(instr));
      if (instr.kind == CDL_KIND_COPY || !known_.try_emplace(keys.back().back()).second) continue;
      for (auto* views : {&instr.inputs, &instr.outputs})
        for (View& view : *views) {
          Buffer buffer;
          buffer.name = "tile";
          buffer.space = 1;
          uint64_t count = 1;
          for (size_t d = 0; d < view.dims.size(); ++d)
            if (view.strides[d]) count *= static_cast<uint64_t>(view.dims[d]);
          buffer.bytes = elemBytes(view.elem, count);
          buffer.offset = 0;
          buffer.alignment = memory.alignment;
          view.buffer = program.addBuffer(std::move(buffer));
        }
      program.instrs.push_back(std::move(instr));
      asked.push_back(keys.back().back());
    }
  }
  if (!asked.empty()) {
    const std::vector<double> cycles = ask_(program);
    knowsTiles_ = !cycles.empty();
    for (size_t i = 0; i < asked.size() && cycles.size() == asked.size(); ++i)
      known_[asked[i]] = cycles[i];
  }
  std::vector<std::optional<double>> result;
  for (const std::vector<std::string>& links : keys) {
    result.emplace_back(0);
    for (size_t l = 0; l < links.size(); ++l) {
      if (chain.links[l].work.kind == CDL_KIND_COPY) continue;
      const std::optional<double>& cycles = known_[links[l]];
      if (result.back())
        result.back() = cycles ? std::optional(*result.back() + *cycles) : std::nullopt;
    }
  }
  return result;
}

} // namespace candela::program::passes::tile
