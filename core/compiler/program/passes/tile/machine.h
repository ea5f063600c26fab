#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/compiler/capabilities/target.h"
#include "core/support/status.h"

/// What the tiler knows of a device: numbers that its backend declares.
namespace candela::program::passes::tile {

/// A memory that only explicit copies fill.
struct LocalMemory {
  std::string name;           ///< of the space in the Program
  uint64_t capacityBytes = 0; ///< above 0
  uint32_t alignment = 64;    ///< bytes, a power of two from 8 on, of every buffer
  /// Holds the sums of products alone, which then lie nowhere else; the memory before it in the
  /// list holds the rest.
  bool sums = false;
};

class DeviceCosts; // device_costs.h

/// Declared costs, for the choice between tilings that are all right.
struct TileCosts {
  double bytesPerCycle = 16;        ///< of a copy from or to memory
  uint32_t copyCycles = 64;         ///< of a copy before its first byte
  uint32_t instrCycles = 32;        ///< of any other instruction before its first element
  uint32_t rows = 16, columns = 16; ///< of the array that multiplies: products of one cycle
  uint32_t lanes = 16;              ///< elements per cycle of all else
  /// Stores of a chain stand behind its loads where there is room for its results, and each waits
  /// for the last load of each buffer in front of it, if another engine loads: a memory that reads
  /// and writes in turn loses time at each turn.
  bool storesLast = false;
  /// Local memory is packed as tightly as may be. Otherwise bytes are taken again as late as may
  /// be.
  bool packs = false;
  /// Asked what the best tilings by these numbers take to compute; null: these numbers alone.
  std::shared_ptr<DeviceCosts> device;
};

struct Machine {
  /// the one next to the default space first, the one that is computed on last
  std::vector<LocalMemory> memories;
  TileCosts costs;
  /// Engines of the Program that copy from memory, copy to it, and compute.
  uint16_t loadEngine = 0, storeEngine = 0, computeEngine = 0;
  /// Whose rows say how operands may lie; null: in any way.
  std::shared_ptr<const capabilities::Target> target;
};

/// A machine from text: memories and settings, comma-separated.
/// "l2=64K,l1=8K:align=32,bytes_per_cycle=8,engines=3". A memory is
/// NAME=BYTES[K|M|G][:align=N][:sums]; settings are bytes_per_cycle, copy_cycles, instr_cycles,
/// rows, columns, lanes, stores_last (0 or 1), and engines: 1 for all instructions, or 3 (compute
/// 0, load 1, store 2). Failure: invalid_argument naming the word.
Result<Machine> parseMachine(std::string_view text);
/// What a backend declares in cdl_tiling_t, the numbers above where it leaves them open.
TileCosts declaredCosts(const capabilities::Target& target);
/// What a backend declares: its local memories in their order, engines and costs (cdl_tiling_t),
/// the numbers above where it leaves them open; nullopt where it declares no local memory. With
/// three engines or more, unless it says otherwise, the second one loads and the third one stores.
std::optional<Machine> machineOf(const capabilities::Target& target);
/// Refuses a machine that cannot be: no memory, a capacity of 0, an alignment that is no power of
/// two, sums in the only memory, names twice.
Status checkMachine(const Machine& machine);

} // namespace candela::program::passes::tile
