#pragma once

#include <fmt/format.h>

#include <array>
#include <stdexcept>
#include <string>
#include <vector>

#include "simulator/func/execution.h"

namespace candela::rtl {

/// Fields by name, as docs/reference/npu_isa.md has them; those not named are 0, of less-one fields
/// 1.
using Fields = std::vector<std::pair<std::string_view, int64_t>>;

template <size_t N>
void setFields(std::span<const npu::FieldInfo> infos, const Fields& fields,
               std::array<int64_t, N>& values) {
  for (size_t i = 0; i < infos.size(); ++i) values[i] = infos[i].minusOne;
  for (const auto& [name, value] : fields) {
    bool known = false;
    for (size_t i = 0; i < infos.size(); ++i)
      if (infos[i].name == name) values[i] = value, known = true;
    if (!known) throw std::invalid_argument("no field " + std::string(name));
  }
}

/// An instruction with all that goes to its engine, index registers added.
struct Sent {
  npu::Insn insn;
  npu::Word word;
  npu::DescriptorBits d{}, second{};
};
inline npu::DescriptorBits descriptorOf(npu::DescriptorKind kind, const Fields& fields) {
  npu::DescriptorValues values{};
  setFields(npu::descriptorInfo(kind).fields, fields, values);
  const npu::Result<npu::DescriptorBits> bits = npu::encodeDescriptor(kind, values);
  if (!bits) throw std::invalid_argument(bits.message());
  return *bits;
}
inline Sent sent(std::string_view op, const Fields& fields, const npu::DescriptorBits& d,
                 const npu::DescriptorBits& second = {}) {
  const npu::OpInfo& info = *npu::opInfo(op);
  Sent s;
  s.insn.op = info.op;
  s.insn.engine = static_cast<uint8_t>(__builtin_ctz(info.engines));
  setFields(info.fields, fields, s.insn.values);
  const npu::Result<npu::Word> word = npu::encode(s.insn);
  if (!word) throw std::invalid_argument(word.message());
  s.word = *word;
  s.d = d, s.second = second;
  return s;
}
inline npu::Configuration configurationOf(const std::string& text) {
  npu::Result<npu::Configuration> configuration = npu::parseConfiguration(text, "bench");
  if (!configuration) throw std::invalid_argument(configuration.message());
  return *configuration;
}

/// How an instruction reads in a message.
inline std::string textOf(std::string_view op, const Fields& fields, const Fields& d) {
  std::string text(op);
  for (const Fields* all : {&fields, &d})
    for (const auto& [name, value] : *all) text += fmt::format(" {}={}", name, value);
  return text;
}

/// The functional model of the engines, one instruction at a time and without checks of order.
struct Model {
  explicit Model(const npu::Configuration& c) : configuration(c), memory(c, false, 0, dram) {
    memory.reset();
  }
  void run(const Sent& s) {
    npu::Execution e{configuration,
                     npu::plainKernels(),
                     memory,
                     matrix,
                     budget,
                     s.insn,
                     s.d,
                     s.second,
                     npu::Accessor{1, s.insn.engine, &clock, &accesses}};
    try {
      switch (static_cast<npu::Engine>(s.insn.engine)) {
      case npu::Engine::kMatrix: return npu::runMatrix(e);
      case npu::Engine::kRequant: return npu::runRequant(e);
      case npu::Engine::kVector: return npu::runVector(e);
      default: return npu::runDma(e);
      }
    } catch (const npu::FaultSignal& fault) {
      throw std::runtime_error(fault.text);
    }
  }
  /// Accumulator (row, column), with all its bits.
  int64_t accumulator(int64_t row, int64_t column) {
    if (!configuration.hasInt16()) return memory.row(row)[column];
    std::vector<int64_t> values(static_cast<size_t>(configuration.columns()));
    memory.readWide(row, configuration.columns(), values.data());
    return values[static_cast<size_t>(column)];
  }

  npu::Configuration configuration;
  npu::DramRegions dram;
  npu::Memory memory;
  npu::MatrixState matrix;
  uint64_t budget = UINT64_MAX;
  npu::Clock clock{};
  std::vector<npu::Access> accesses{{}, {}};
};

} // namespace candela::rtl
