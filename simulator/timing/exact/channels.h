#pragma once

#include <deque>

#include "simulator/timing/compute.h"
#include "simulator/timing/exact/box_walker.h"
#include "simulator/timing/exact/ports.h"

namespace candela::npu::exact {

/// A request of a channel, or of the fetch, to the memory.
struct BurstRequest {
  bool isValid = false;
  int64_t address = 0, bytes = 0;
  bool isTaken = false;
};

/// What all engines have: an instruction at a time, ports, and an end.
class Engine {
public:
  virtual ~Engine() = default;
  /// Takes an instruction in this cycle.
  virtual void begin(const Operation& operation, int64_t base) = 0;
  /// Says what its ports ask for in this cycle.
  virtual void ask() = 0;
  /// The cycle passes.
  virtual void clock() = 0;
  /// High in the cycle behind the last write.
  bool isDone() const { return isDone_; }
  /// Whether it moves data in this cycle, once ports are granted.
  virtual bool movesData() const = 0;

protected:
  bool isDone_ = false;
};

/// Sizes of a channel.
struct ChannelSizes {
  explicit ChannelSizes(const Configuration& configuration);
  int64_t width, burst, beat, outstanding, longest, depth;
  int64_t beatsOf(int64_t address, int64_t bytes) const {
    return (address + bytes - 1) / beat - address / beat + 1;
  }
  /// Bytes of the burst's beat behind `taken` others.
  int64_t beatBytes(int64_t address, int64_t bytes, int64_t taken) const {
    return std::min(bytes - taken, beat - (address + taken) % beat);
  }
};

/// As rtl/dma/cdl_npu_dma_load.sv, in cycles alone.
class LoadChannel : public Engine {
public:
  explicit LoadChannel(const Configuration& configuration) : sizes_(configuration) {}
  void begin(const Operation& operation, int64_t base) override;
  void ask() override;
  void clock() override;
  bool movesData() const override { return hasBeat || read.isGranted; }

  PortRequest read, write;
  BurstRequest burst;
  bool hasBeat = false; ///< set by the memory in this cycle

private:
  struct Flight {
    int64_t address, bytes;
  };
  int64_t takeBeat(bool& burstEnds);
  void startWalks();

  ChannelSizes sizes_;
  Operation operation_;
  int64_t base_ = 0;
  bool isCopy_ = false, isFill_ = false, isRunning_ = false, isWalked_ = false;
  int setup_ = 0;
  BoxWalker far_, near_;
  int64_t reserved_ = 0, inFlight_ = 0, taken_ = 0, level_ = 0, came_ = 0, underWay_ = 0;
  std::deque<Flight> flights_;
  bool nearCame_ = false;
  Flight nearPiece_{}; ///< the piece of the step before
  std::deque<Flight> results_;
};

/// As rtl/dma/cdl_npu_dma_store.sv.
class StoreChannel : public Engine {
public:
  explicit StoreChannel(const Configuration& configuration) : sizes_(configuration) {}
  void begin(const Operation& operation, int64_t base) override;
  void ask() override;
  void clock() override;
  bool movesData() const override { return hasData() && mayPut; }

  /// It offers a beat in this cycle, and it is the last of its burst.
  bool hasData() const { return hasBeat_; }
  bool isLastBeat() const { return isLastBeat_; }

  PortRequest read;
  BurstRequest burst;
  bool mayPut = false, hasAnswer = false; ///< set by the memory in this cycle

private:
  struct Flight {
    int64_t address, bytes;
  };
  void startWalks();
  int64_t popBeat();

  ChannelSizes sizes_;
  Operation operation_;
  int64_t base_ = 0;
  bool isRunning_ = false, isWalked_ = false, hasBeat_ = false, isLastBeat_ = false;
  int setup_ = 0;
  BoxWalker far_, near_;
  int64_t reserved_ = 0, came_ = 0, unclaimed_ = 0, inFlight_ = 0, taken_ = 0;
  std::deque<Flight> bursts_;
};

} // namespace candela::npu::exact
