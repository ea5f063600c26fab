#pragma once

#include "simulator/isa/codec.h"

namespace candela::npu::exact {

/// One side of a transfer, piece by piece, as rtl/dma/cdl_npu_box_walker.sv walks it.
class BoxWalker {
public:
  struct Pads {
    int64_t left = 0, right = 0, top = 0, bottom = 0;
    bool any() const { return left || right || top || bottom; }
  };
  struct Side {
    int64_t address;
    int64_t strides[3];
    Pads pads;
  };
  /// Pieces of up to `words` bytes, or with 0 bursts that end at multiples of `burst`. Steps are
  /// possible some cycles later.
  void start(const DescriptorValues& d, const Side& side, int64_t words, int64_t burst);
  /// A cycle has passed.
  void tick();
  bool isActive() const { return isWalking_ && wait_ == 0; }

  int64_t address() const { return address_; }
  int64_t bytes() const;
  bool isPadding() const { return part_ != Part::kData; }
  bool isLast() const;
  void step();

private:
  enum class Part : uint8_t { kLeft, kData, kRight, kAll };
  struct Runs {
    int64_t count, bytes;
  };
  static constexpr int kSetup = 3; ///< cycles behind that of the start, before the first step

  bool runEnds() const;
  bool partEnds() const { return runEnds() && runs_ == 1; }
  bool rowEnds() const;
  bool planeEnds() const { return rowEnds() && row_ == rows() - 1; }
  int64_t limit() const;
  int64_t rows() const { return len2_ + pads_.top + pads_.bottom; }
  int64_t rightRuns() const { return isPacked_ ? pads_.right != 0 : pads_.right; }
  int64_t leftRuns() const { return isPacked_ ? pads_.left != 0 : pads_.left; }
  bool join(int64_t stride, int64_t length, bool& mayJoin);
  Part partOf(int64_t row) const;
  Runs runsOf(Part part) const;
  void beginPart(Part part);

  int64_t words_ = 0, burst_ = 1, strides_[3] = {};
  Pads pads_;
  bool isPacked_ = false, isWalking_ = false;
  int wait_ = 0;
  int64_t run_ = 0, leftBytes_ = 0, rightBytes_ = 0, len1_ = 0, len2_ = 0;
  Part part_ = Part::kData;
  int64_t address_ = 0, runAddress_ = 0, rowAddress_ = 0, planeAddress_ = 0;
  int64_t left_ = 0, runs_ = 0, row_ = 0, planes_ = 0;
};

} // namespace candela::npu::exact
