#pragma once

#include <functional>

#include "core/compiler/capabilities/target.h"
#include "core/compiler/program/program.h"

/// Constants in layouts that only a device knows.
namespace candela::program::passes::pack {

/// What a device makes of a constant for its layout of this name: `content` holds the constant,
/// `view` says how its elements lie in there.
/// Failure: unsupported where there is no such layout, or not for this view.
using Packer =
    std::function<Result<Bytes>(const std::string& layout, const Bytes& content, const View& view)>;

/// Gives operands that are constants the opaque layouts that a native row of the target asks of
/// them, where the row takes everything else of the instruction as it is and the packer knows the
/// constant; returns how many views changed. The first such row of the table counts. An operand
/// keeps its dims; its buffer becomes as long as what the packer wrote. Constants that are read in
/// several ways stay for those who read them otherwise.
/// Failures: those of the packer, but for unsupported; out_of_memory.
Result<int> packConstants(Program& program, const capabilities::Target& target,
                          const Packer& packer);

/// An operand that is a constant as it lies in an opaque layout, before it is packed.
View opaqueView(View plain, const std::string& layout);

/// Whether a constant's operand can be asked for in an opaque layout of this rank: it lies in rows,
/// the same in every round of a loop.
bool canBePacked(const Program& program, const View& view, uint8_t logicalRank);

} // namespace candela::program::passes::pack
