#pragma once

#include "simulator/timing/exact/channels.h"
#include "simulator/timing/exact/results.h"

namespace candela::npu::exact {

/// As rtl/requant/cdl_npu_requant_walker.sv: the table, then for each group of channels its records
/// and positions.
class RequantWalk {
public:
  enum class State : uint8_t { kIdle, kTable, kRecords, kValues };
  void start(const Configuration& configuration, const Operation& operation);
  State state() const { return state_; }

  int64_t constantAddress() const;
  int64_t constantBytes() const; ///< that are left of the table, or of the records
  bool isInside() const;
  bool isWindowLast() const { return isMove_ || windowEnds(); }
  int64_t row() const { return windowRow_ + x(); }
  int64_t count() const;
  int64_t sideAddress() const;
  int64_t residualAddress() const;
  bool isLast() const;
  void step();

private:
  int64_t x() const { return left_ + px_; }
  int64_t y() const { return top_ + py_; }
  int64_t groupCount() const;
  int64_t blockCount() const;
  int64_t moveLeft() const { return groupCount() - moved_; }
  bool windowEnds() const;
  bool outsEnd() const;
  bool allEnds() const { return channels_ - channel_ == groupCount(); }
  void beginGroup();
  void stepWithin();
  void stepOutput();

  State state_ = State::kIdle;
  bool isMove_ = false, isHalves_ = false, isUpper_ = false;
  int64_t columns_ = 1, lanes_ = 1, width_ = 1, wordSums_ = 1, tableBytes_ = 256;
  int sumLog2_ = 2, sideLog2_ = 0, residualLog2_ = 0;
  int64_t acc_ = 0, side_ = 0, residual_ = 0, params_ = 0, table_ = 0;
  int64_t outH_ = 1, outW_ = 1, channels_ = 1;
  int64_t inH_ = 1, inW_ = 1, accPitch_ = 0;
  int64_t poolH_ = 1, poolW_ = 1, poolStrideH_ = 1, poolStrideW_ = 1;
  int64_t padTop_ = 0, padLeft_ = 0;
  int64_t rowStride_ = 0, pixelStride_ = 0, residualRow_ = 0, residualPixel_ = 0;

  int64_t index_ = 0, moved_ = 0;
  int64_t channel_ = 0, inBlock_ = 0, blockRow_ = 0;
  int64_t oy_ = 0, ox_ = 0, py_ = 0, px_ = 0;
  int64_t top_ = 0, left_ = 0, outRow_ = 0, windowRow_ = 0;
};

/// As rtl/requant/cdl_npu_requant.sv, in cycles alone.
class RequantEngine : public Engine {
public:
  explicit RequantEngine(const Configuration& configuration) : configuration_(configuration) {}
  void begin(const Operation& operation, int64_t base) override;
  void ask() override;
  /// Behind ask(): what the accumulators grant.
  void useAccumulators(const AccumulatorPorts& ports);
  void clock() override;
  bool movesData() const override { return read.isGranted || hasRow_; }

  PortRequest read, write;

private:
  bool wantsRead() const;
  bool wantsRow() const;
  int64_t latency() const;

  const Configuration& configuration_;
  Operation operation_;
  bool isMove_ = false, isLoad_ = false, hasResidual_ = false, isLongTable_ = false;
  int setup_ = 0;
  int64_t now_ = 0;
  RequantWalk walk_;
  Results results_;
  bool isReadServed_ = false, isRowServed_ = false, hasRow_ = false, putsRow_ = false,
       isWalked_ = false;
};

} // namespace candela::npu::exact
