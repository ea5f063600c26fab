#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tools/candela/support/console.h"

/// When each instruction of a simulated model ran: what npu_sim's option timeline=FILE wrote, all
/// programs on one clock.
namespace candela::tool {

struct TimedInstruction {
  uint64_t start = 0, done = 0; ///< cycles since the first program began; host steps take none
  uint32_t engine = 0;          ///< index in Timeline::engines
  uint32_t op = 0;              ///< in ops
  uint32_t stall = 0;           ///< in kStallCauses: what it waited for most
  int32_t layer = -1;           ///< in the layers of the report; -1: belongs to none
  uint32_t instruction = 0;     ///< in the program's code
  uint32_t tile = 0;
  uint64_t bytes = 0; ///< moved by DMA
  /// what gave the tokens that it took: index, semaphore
  std::vector<std::pair<uint32_t, std::string>> after;
};

inline constexpr const char* kStallCauses[] = {"none", "queue", "semaphore",
                                               "bank", "dram",  "core"};

struct Timeline {
  std::vector<std::string> engines, ops;
  std::vector<TimedInstruction> instructions; ///< of one program in the order of their ends
};

/// `engines` in the order of their rows; `layers`: those of the report, each with `name` and
/// `program`. Throws Failure when a line of the file is not what the backend writes.
Timeline readTimeline(const std::string& path, const std::vector<std::string>& engines,
                      const Json& layers);

/// Chrome's trace format for ui.perfetto.dev: one track for each engine, an arrow for each token,
/// the node in `args`.
std::string chromeTrace(const Timeline& timeline, const Json& report);

} // namespace candela::tool
