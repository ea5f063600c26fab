#pragma once

#include <map>

#include "tools/candela/support/model.h"

namespace candela::tool {

/// How long one instruction of a compiled model takes in one run.
struct InstrTime {
  uint32_t partition = 0, instr = 0; ///< instr counts from 1
  /// op: of the model; type: the element type of the first operand
  std::string node, op, kind, type;
  /// on: the backend of its Program; support: native, emulated, host
  std::string fn, on, support;
  std::string cls;                    ///< the largest class of its operands
  std::vector<std::string> operands;  ///< "f32[1,3,8,8]", results behind them
  double ms = 0;                      ///< the shortest over the runs; executions in a loop add up
  uint64_t executions = 0, bytes = 0; ///< per run; bytes: read and written
  uint64_t macs = 0;                  ///< multiply-accumulates of one run
  double gflops() const { return ms > 0 ? 2e-6 * static_cast<double>(macs) / ms : 0; }
  bool isInteger() const { return type == "i8" || type == "u8"; }
};

/// What the host did between instructions in one run.
struct StepTime {
  uint64_t count = 0, bytes = 0;
  double ms = 0;
};

/// Gathers the traces of some runs.
class ProfileSum {
public:
  void add(const std::string& traceJson);
  /// Of the shortest run, by name; those that hold others, and compiling, are not among them.
  const std::map<std::string, StepTime>& steps() const { return steps_; }
  /// The shortest run from its beginning to its end, as the trace saw it.
  double runMs() const { return runMs_; }
  bool empty() const { return instrs_.empty(); }
  /// The table of `candela run --profile`: the slowest `rows`.
  std::string text(const Json& report, size_t rows) const;
  Json json(const Json& report) const;
  /// In the order of the Programs. `report` (candela.placement/1) says the multiply-accumulates of
  /// each node; its products and convolutions share them evenly.
  std::vector<InstrTime> instrs(const Json& report) const;

private:
  std::map<std::pair<uint32_t, uint32_t>, InstrTime> instrs_;
  std::map<std::string, StepTime> steps_;
  double runMs_ = 0;
};

} // namespace candela::tool
