#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "core/compiler/program/passes/tile/chain.h"
#include "core/compiler/program/passes/tile/machine.h"

/// What a device itself says that tiles cost.
namespace candela::program::passes::tile {

/// Everything of an instruction that its cost may follow from: all but names, places and waits.
std::string costKeyOf(const Instr& instr);

/// Asks a device for cycles of instructions on local memory, each shape once. It ranks; what is
/// legal is decided without it. Not for several threads at once.
class DeviceCosts {
public:
  /// Cycles that each instruction of a Program keeps its engine busy, without loops and waits,
  /// every buffer at offset 0 of its space; none at all where the device cannot say.
  using Ask = std::function<std::vector<double>(const Program& program)>;
  /// Cycles of a whole Program that is tiled and has its offsets; nullopt where the device cannot
  /// say.
  using AskWhole = std::function<std::optional<double>(const Program& program)>;
  explicit DeviceCosts(Ask ask, AskWhole askWhole = nullptr)
      : ask_(std::move(ask)), askWhole_(std::move(askWhole)) {}

  /// False once it knew none of what it was asked.
  bool knowsTiles() const { return knowsTiles_; }
  std::optional<double> cyclesOf(const Program& tiled) const {
    return askWhole_ ? askWhole_(tiled) : std::nullopt;
  }
  /// What the instructions take one by one; nullopt where the device cannot say.
  std::optional<double> sumOf(const Program& program) const;
  /// Which machine's plan was the fastest for Programs like this one, but for names and payloads;
  /// null: not asked yet.
  std::unique_ptr<Machine>& bestOf(const Program& whole);

  /// Cycles that the instructions of the chain take for each of these boxes, in `memory`; nullopt
  /// where one of them is not known. All that was not asked before goes to the device as one
  /// Program.
  std::vector<std::optional<double>> cyclesOf(const Chain& chain, const std::vector<Box>& boxes,
                                              const Space& memory, uint16_t engine);

private:
  Ask ask_;
  AskWhole askWhole_;
  bool knowsTiles_ = true;
  std::map<std::string, std::optional<double>> known_;   ///< by all that the cost may follow from
  std::map<std::string, std::unique_ptr<Machine>> best_; ///< the same; they name no device
};

} // namespace candela::program::passes::tile
