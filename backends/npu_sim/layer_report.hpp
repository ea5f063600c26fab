// What layers count and take, and each instruction in time: text for the files of report= and
// timeline=.
#pragma once

#include "causes.hpp"
#include "compile.hpp"

#include "simulator/npu_device.h"
#include "simulator/timing/schedule.h"

#include <map>
#include <string>

namespace npu_sim {

/// A name as JSON shows it, without the quotes.
std::string jsonString(const std::string& name);

/// Of one program; neither counts nor time depend on data.
class LayerReport {
public:
  /// `compiled` and `configuration` must outlive it. `hasCauses`: instructions say which ones they
  /// waited for.
  LayerReport(const Compiled& compiled, const npu::Configuration& configuration,
              const std::string& program, bool hasCauses);

  /// What an instruction counted; on the functional model, once each time that it ended.
  void count(uint32_t instruction, const npu::Counters& counters);
  /// An instruction that ended, in the order of ends.
  void add(const npu::InstructionTime& time, bool isListed);
  void finish(const npu::TimeReport& time);

  /// `,"cycles":..,"time":{..},"layers":[..]`; without add and finish: `,"layers":[..]`.
  std::string text() const;
  /// Lines of JSON: the program, then its instructions.
  const std::string& timeline() const { return timeline_; }
  /// Of the PMU, where the schedule counted them.
  const npu::Counters& counters() const { return time_.counters; }

private:
  struct Layer {
    std::string fixed; ///< the compiler's part of its object, without the end
    npu::Counters counters{};
    uint64_t words = 0; ///< of the program that are its own
    std::array<int64_t, npu::kEngineCount> busy{};
    npu::StallCycles stalls{};
    int64_t start = -1, done = 0;
    uint64_t expanded = 0;     ///< bytes of constants as they are
    uint64_t compressed = 0;   ///< the same in memory
    uint64_t secondLoaded = 0; ///< bytes of the second memory
    uint64_t secondStored = 0; ///< the same
    CauseCycles causes{};      ///< of the cycles that are its own: those of all are the program's
  };
  void advance(const npu::InstructionTime& time, uint32_t layer);
  std::string engines(const std::array<int64_t, npu::kEngineCount>& cycles) const;
  std::string coresText() const;
  CauseCycles causesOf(const Layer& layer) const;
  std::string timeText() const;
  std::string secondText() const; ///< what the second memory did, of timeText

  const npu::Binary& binary_;
  const npu::Configuration& configuration_;
  std::string program_, timeline_;
  /// in the order of the program; one more at the end, of what belongs to none
  std::vector<Layer> layers_;
  std::vector<uint32_t> symbolOf_; ///< by instruction
  std::vector<uint32_t> layerOf_;  ///< by symbol
  int64_t frontier_ = 0;           ///< the last end of an instruction that is no load
  uint32_t last_ = 0;              ///< whose it was
  CycleCauses causes_;
  bool hasCauses_;
  bool hasTime_ = false;
  npu::TimeReport time_;
};

} // namespace npu_sim
