#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "simulator/binary/binary.h"
#include "simulator/config/configuration.h"

namespace candela::npu {

/// The program of a text (simulator/isa/README.md). `file` stands in messages, with the line;
/// `configuration` wins over the text's .config, one of them must be there.
Result<Binary> assemble(std::string_view text, std::string_view file,
                        const std::optional<Configuration>& configuration = {});

/// The text of one instruction, without what stands for nothing.
std::string insnText(const Insn& insn);

/// A text that assembles to this binary again, given its configuration. Errors: a word that is no
/// instruction.
Result<std::string> disassemble(const Binary& binary);

} // namespace candela::npu
