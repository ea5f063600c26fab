#include "simulator/rtl_model/parameters.h"

#include <fmt/format.h>

#include <algorithm>

#include "simulator/timing/dram.h"
#include "simulator/timing/exact/buildable.h"

namespace candela::npu {
namespace {

struct Parameter {
  std::string_view name;
  int key;
};
constexpr Parameter kParameters[] = {
    {"Rows", key::kArrayRows},
    {"Columns", key::kArrayColumns},
    {"ScratchpadBytes", key::kScratchpadBytes},
    {"ScratchpadBanks", key::kScratchpadBanks},
    {"BankWidth", key::kScratchpadBankWidth},
    {"AccBytes", key::kAccumulatorBytes},
    {"AccBanks", key::kAccumulatorBanks},
    {"RequantLanes", key::kRequantLanes},
    {"VectorLanes", key::kVectorLanes},
    {"LoadChannels", key::kDmaLoadChannels},
    {"StoreChannels", key::kDmaStoreChannels},
    {"BurstBytes", key::kDmaBurstBytes},
    {"Outstanding", key::kDmaOutstanding},
    {"QueueDepth", key::kCommandQueueDepth},
};

} // namespace

Result<std::vector<std::string>> rtlParameters(const Configuration& c) {
  if (Outcome bad = needHardware(c, "there is nothing to build")) return *bad;
  if (Outcome bad = checkBuildable(c)) return *bad;
  std::vector<std::string> arguments;
  for (const Parameter& parameter : kParameters)
    arguments.push_back(fmt::format("-G{}={}", parameter.name, c[parameter.key]));
  const int64_t burst = c[key::kDmaBurstBytes];
  arguments.push_back(fmt::format("-GBeatBytes={}", std::min(burst, c[key::kDmaBeatBytes])));
  arguments.push_back(fmt::format("-GFetchBytes={}", std::max(burst, Dram(c).granule())));
  arguments.push_back(fmt::format("-GInt16=1'b{}", c.hasInt16() ? 1 : 0));
  arguments.push_back(fmt::format("-GConfigHash=64'h{:016x}", c.hash()));
  return arguments;
}

} // namespace candela::npu
