#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "simulator/config/configuration.h"
#include "simulator/isa/codec.h"
#include "simulator/isa/registers.h"
#include "simulator/result.h"

namespace candela::npu {

inline constexpr size_t kMaxRegions = 16; ///< of a program

/// A part of DRAM that the program uses; instructions name it by its index.
struct Region {
  std::string name;
  RegionClass kind = RegionClass::kActivations;
  uint64_t bytes = 0; ///< up to 2^32
  bool operator==(const Region&) const = default;
};

/// What the instructions first .. first + count - 1 belong to.
struct Symbol {
  uint32_t first = 0, count = 0;
  std::string node;  ///< the ONNX node
  uint32_t tile = 0; ///< of that node, from 0 on
  bool operator==(const Symbol&) const = default;
};

/// The instructions of one core: those from `first` on.
struct CoreCode {
  uint32_t first = 0;
  uint32_t count = 0;
  bool operator==(const CoreCode&) const = default;
};

/// A program with all that it brings along. A value type.
struct Binary {
  /// Of the configuration that it was made for: a preset's, or what a file calls itself.
  std::string configurationName;
  uint64_t configurationHash = 0;
  /// at most kMaxRegions, names unique, one of class constants at most
  std::vector<Region> regions;
  std::vector<Word> code;
  std::vector<std::byte> constants; ///< as long as the region of class constants, or empty
  std::vector<Symbol> symbols;      ///< in the order of `first`, disjoint, each of one core
  /// Of each core, one behind the other, all of the code together; empty: all of it is core 0's.
  std::vector<CoreCode> cores;

  bool operator==(const Binary&) const = default;
  /// "Conv_12 tile 3: ", or nothing for an instruction without a symbol.
  std::string origin(uint32_t instruction) const;
  /// At least 1.
  size_t coreCount() const { return cores.empty() ? 1 : cores.size(); }
  /// The instructions of a core; none of one that has no code.
  CoreCode codeOf(size_t core) const;
  /// The core of an instruction.
  size_t coreOf(uint32_t instruction) const;
  /// "core 2 ", or nothing where there is one core.
  std::string coreText(uint32_t instruction) const;
};

/// What an instruction asks of other cores that the configuration does not have. Errors: post and
/// await where there is one core, a core or an engine that is not there.
Outcome checkCores(const Insn& insn, const Configuration& configuration);
/// Whether the cores of a program fit the configuration. Errors: more of them than it has.
Outcome checkCores(const Binary& binary, const Configuration& configuration);

/// The bytes of a file that readBinary reads as the same binary.
std::vector<std::byte> writeBinary(const Binary& binary);
/// Reads nothing outside of `bytes`, whatever they hold. Instructions are not decoded. Errors: no
/// such file, of another version of the instructions, a checksum or a section that is not right.
Result<Binary> readBinary(std::span<const std::byte> bytes);
/// The checksum that a file of these bytes must carry.
uint64_t binaryChecksum(std::span<const std::byte> bytes);

} // namespace candela::npu
