#pragma once

#include "core/compiler/program/program.h"

namespace candela::program {

/// Bytes that an instruction touches, over all iterations of its loops; strided views count with
/// the gaps between their elements. Two accesses can meet only in the same region: a buffer, or the
/// arena of a space for placed TEMP buffers.
struct Access {
  uint64_t region = 0;
  uint64_t begin = 0, end = 0;
  bool write = false;
  bool overlaps(const Access& other) const {
    return region == other.region && begin < other.end && other.begin < end;
  }
};

/// Reads first, then writes. Views without elements touch nothing.
std::vector<Access> accessesOf(const Program& program, const Instr& instr);
Access accessOf(const Program& program, const Instr& instr, const View& view, bool write);

/// For each instruction the earlier ones that it must stay behind, ascending, but for those that
/// follow by way of others.
std::vector<std::vector<uint32_t>> directDependences(const Program& program);

/// Waits become the direct dependences within each block.
void rebuildWaits(Program& program);

} // namespace candela::program
