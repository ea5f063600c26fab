#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "simulator/binary/binary.h"
#include "simulator/config/configuration.h"

namespace candela::npu {

/// Fields by name, as the manual has them; those not named are 0, of less-one fields 1.
using Fields = std::vector<std::pair<std::string_view, int64_t>>;

inline int64_t fieldOf(const Fields& fields, std::string_view name, int64_t otherwise = 0) {
  for (const auto& [known, value] : fields)
    if (known == name) return value;
  return otherwise;
}

template <size_t N>
void setFields(std::span<const FieldInfo> infos, const Fields& fields,
               std::array<int64_t, N>& values) {
  for (size_t i = 0; i < infos.size(); ++i)
    values[i] = fieldOf(fields, infos[i].name, infos[i].minusOne);
  for (const auto& [name, value] : fields) {
    bool known = false;
    for (const FieldInfo& info : infos) known |= info.name == name;
    if (!known) throw std::invalid_argument("no field " + std::string(name));
  }
}

struct Tokens {
  int semaphore = 0, count = 0;
};

/// Programs for tests, instruction by instruction.
class ProgramBuilder {
public:
  explicit ProgramBuilder(const Configuration& configuration) {
    binary.configurationName = configuration.name;
    binary.configurationHash = configuration.hash();
  }
  Binary binary;

  void descriptor(int d, DescriptorKind kind, const Fields& fields) {
    DescriptorValues values{};
    setFields(descriptorInfo(kind).fields, fields, values);
    const Result<DescriptorBits> bits = encodeDescriptor(kind, values);
    if (!bits) throw std::invalid_argument(bits.message());
    for (int word = 0; word < 4; ++word)
      op("setd", {{"d", d},
                  {"word", word},
                  {"value", static_cast<int64_t>((*bits)[static_cast<size_t>(word)])}});
  }
  void op(std::string_view name, const Fields& fields, Tokens wait = {}, Tokens signal = {},
          int engine = -1) {
    const OpInfo& info = *opInfo(name);
    Insn insn;
    insn.op = info.op;
    insn.engine = static_cast<uint8_t>(engine < 0 ? __builtin_ctz(info.engines) : engine);
    setFields(info.fields, fields, insn.values);
    insn.waitSemaphore = static_cast<uint8_t>(wait.semaphore);
    insn.waitCount = static_cast<uint8_t>(wait.count);
    insn.signalSemaphore = static_cast<uint8_t>(signal.semaphore);
    insn.signalCount = static_cast<uint8_t>(signal.count);
    const Result<Word> word = encode(insn);
    if (!word) throw std::invalid_argument(word.message());
    binary.code.push_back(*word);
  }
  void fence() { op("fence", {{"mask", 0xffe}}); }
};

} // namespace candela::npu
