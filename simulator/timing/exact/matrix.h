#pragma once

#include <deque>

#include "simulator/timing/exact/channels.h"

namespace candela::npu::exact {

/// What a walk of the matrix engine goes over: fields of a window, with those of mm and ldw in it.
struct MatrixShape {
  int64_t act = 0, wgt = 0; ///< addresses
  int64_t inH = 0, inW = 0;
  int64_t outH = 1, outW = 1;
  int64_t planes = 1, planeRows = 1;
  int64_t cin = 1, cout = 1;
  int64_t kernelH = 1, kernelW = 1;
  int64_t strideH = 1, strideW = 1;
  int64_t dilationH = 1, dilationW = 1;
  int64_t padTop = 0, padLeft = 0;
  int64_t taps = 1;
  int64_t rowStride = 0, pixelStride = 0, weightPitch = 0;
  bool isWide = false, isDepthwise = false, isTransposed = false, isFlat = false;
  int64_t rows = 1, columns = 1; ///< of the array
  bool isPacked() const { return taps != 1 && !isDepthwise; }
  int64_t allTaps() const { return kernelH * kernelW; }
  int64_t terms() const { return allTaps() * cin; }
};

/// As rtl/matrix/cdl_npu_im2col.sv: a read for each segment of an activation vector.
class ActivationWalk {
public:
  void start(const MatrixShape& shape);
  bool isActive() const { return isActive_; }
  /// Of the request: its address, and the elements from and to that it needs.
  int64_t address() const;
  int64_t from() const { return valid().first; }
  int64_t to() const { return valid().second; }
  bool isSegmentFirst() const { return left_ == groupTerms_; }
  bool isSegmentLast() const { return left_ == segmentTerms(); }
  bool isPassFirst() const { return ox_ == 0 && oy_ == 0 && plane_ == 0; }
  bool isPassLast() const {
    return ox_ + 1 == s_.outW && oy_ + 1 == s_.outH && plane_ + 1 == s_.planes;
  }
  bool isBlockFirst() const { return isFirstPass_; }
  bool isBlockLast() const { return groupLeft_ == groupTerms_; }
  bool isLast() const;
  void step();

private:
  /// A term of the sum: the first tap of a stretch of terms that follow one another in the
  /// scratchpad, and how many terms of the stretch are before it; depthwise the channel.
  struct Place {
    int64_t kx = 0, ky = 0, term = 0;
  };
  std::pair<int64_t, int64_t> valid() const;
  int64_t stretch() const { return (isContiguous_ ? s_.kernelW : 1) * s_.cin; }
  int64_t segmentTerms() const;
  int64_t mostTerms() const;
  Place behind() const;
  void beginBlock();
  void beginVector();
  void beginGroup();

  MatrixShape s_;
  bool isActive_ = false, isFirstPass_ = true, isContiguous_ = false;
  Place place_, groupPlace_;
  /// Terms from there to the end of the vector and of all, and of a vector; depthwise: taps.
  int64_t left_ = 0, groupLeft_ = 0, groupTerms_ = 0;
  int64_t rowsBefore_ = 0, n_ = 0, plane_ = 0, oy_ = 0, ox_ = 0;
};

/// As rtl/matrix/cdl_npu_weight_walker.sv: a read for each row of a tile, transposed each column.
class WeightWalk {
public:
  void start(const MatrixShape& shape);
  bool isActive() const { return isActive_; }
  bool isThere() const;
  int64_t address() const { return at_; }
  int64_t count() const;
  bool isTileFirst() const { return index_ == 0; }
  bool isTileLast() const;
  bool isLast() const { return isTileLast() && blockEnds() && columnsLeft() <= s_.columns; }
  void step();

private:
  int64_t groupTaps() const { return std::min(tapsLeft_, s_.taps); }
  int64_t rowsLeft() const { return s_.isPacked() ? groupTaps() * s_.cin : s_.cin - c_; }
  int64_t tileRows() const { return std::min(rowsLeft(), s_.rows); }
  int64_t columnsLeft() const { return s_.cout - n_; }
  int64_t tileColumns() const { return std::min(columnsLeft(), s_.columns); }
  bool channelsEnd() const { return s_.isPacked() || rowsLeft() <= s_.rows; }
  bool blockEnds() const;
  void stepDepthwise();

  MatrixShape s_;
  bool isActive_ = false;
  int64_t index_ = 0, n_ = 0, c_ = 0, tapsLeft_ = 0, outsLeft_ = 0, tile_ = 0, block_ = 0, at_ = 0;
};

/// As rtl/matrix/cdl_npu_matrix.sv, in cycles alone.
class MatrixEngine : public Engine {
public:
  explicit MatrixEngine(const Configuration& configuration) : configuration_(configuration) {}
  void begin(const Operation& operation, int64_t base) override;
  void ask() override;
  void clock() override;
  bool movesData() const override { return activations.isGranted || weights.isGranted; }
  /// What it does to the accumulators in this cycle.
  void useAccumulators(AccumulatorPorts& ports) const;

  PortRequest activations, weights;

private:
  struct Sum {
    int64_t cycle; ///< in which it stands at the accumulators
    int64_t row;
    bool adds, isLast;
  };
  void startWalks();
  void pushSum(bool isSumLast);
  void clockDepthwise();
  void clockArray();
  void end();

  const Configuration& configuration_;
  Operation operation_;
  bool isMm_ = false, isLdw_ = false, isConv_ = false, isDepthwise_ = false, isRunning_ = false;
  int setup_ = 0;
  int64_t now_ = 0, endsAt_ = -1;
  MatrixShape shape_;
  ActivationWalk act_;
  WeightWalk wgt_;
  bool isLoaded_ = false, isFree_ = false, isActServed_ = false, isWgtServed_ = false;
  struct Weights {
    int64_t k = 0, n = 0;
  };
  Weights shadow_, active_;
  int64_t accBlock_ = 0, accAt_ = 0;
  std::deque<Sum> sums_;
};

} // namespace candela::npu::exact
