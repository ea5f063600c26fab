#include "tools/candela/simulate/what_if.h"

#include <algorithm>

#include "core/support/file.h"
#include "tools/candela/simulate/measure.h"
#include "tools/candela/support/temporary_file.h"

namespace candela::tool {

Json whatIf(const RunOptions& run, const npu::Configuration& npu) {
  using namespace npu::key;
  struct Change {
    const char* text;
    std::vector<int> keys;
    int factor; ///< 2, or -2 for a half
  };
  const Change changes[] = {
      {"as it is", {}, 1},
      {"half the bandwidth", {kDramWidthBits}, -2},
      {"twice the bandwidth", {kDramWidthBits}, 2},
      {"half the second memory's bandwidth", {kSecondWidthBits}, -2},
      {"twice the second memory's bandwidth", {kSecondWidthBits}, 2},
      {"half the rows", {kArrayRows}, -2},
      {"twice the rows", {kArrayRows}, 2},
      {"half the columns", {kArrayColumns, kAccumulatorBytes, kRequantLanes}, -2},
      {"twice the columns", {kArrayColumns, kAccumulatorBytes, kRequantLanes}, 2},
      {"half the scratchpad", {kScratchpadBytes}, -2},
      {"twice the scratchpad", {kScratchpadBytes}, 2},
      {"half the cores", {kCoresCount}, -2},
      {"twice the cores", {kCoresCount}, 2},
      {"twice the cores and the bandwidth", {kCoresCount, kDramWidthBits}, 2},
  };
  Json rows = Json::array();
  double cycles = 0;
  for (const Change& change : changes) {
    const auto cannotBeHalved = [&](int key) { return change.factor < 0 && npu[key] % 2 != 0; };
    if (std::ranges::any_of(change.keys, cannotBeHalved)) continue;
    const bool isOfSecond =
        std::ranges::find(change.keys, static_cast<int>(kSecondWidthBits)) != change.keys.end();
    if (isOfSecond && !npu.hasSecond()) continue;
    npu::Configuration other = npu;
    for (const int key : change.keys)
      other.values[static_cast<size_t>(key)] =
          change.factor > 0 ? npu[key] * change.factor : npu[key] / -change.factor;
    const std::string text = other.toml();
    if (!npu::parseConfiguration(text, "what-if")) continue; // there is no such configuration
    const TemporaryFile file;
    check(writeFile(file.path(), text.data(), text.size()), kWorkFailed);
    const Simulation simulation = simulateOnce(run, file.path(), "fast", "");
    const uint64_t now = simulation.measured.cycles();
    if (change.keys.empty()) cycles = static_cast<double>(now);
    rows.push_back({{"change", change.text},
                    {"cycles", now},
                    {"speed", cycles / std::max(1.0, static_cast<double>(now))},
                    {"dram_bytes", simulation.measured.dramBytes()}});
  }
  return rows;
}

void printWhatIf(const Json& rows, Console& console) {
  Table table({"what if (fast)", "cycles", "as fast", "DRAM"});
  for (const Json& row : rows)
    table.add({row["change"].get<std::string>(), countText(row["cycles"].get<uint64_t>()),
               fmt::format("{:.2f}x", row["speed"].get<double>()),
               bytesText(row["dram_bytes"].get<uint64_t>())});
  console.printText(table.text());
}

} // namespace candela::tool
