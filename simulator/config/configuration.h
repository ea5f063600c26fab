#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/isa/registers.h"
#include "simulator/result.h"

namespace candela::npu {

/// The values of a key that the hardware description (rtl/top) can be built with.
enum class Hardware : uint8_t {
  kEvery,       ///< all that the key may have
  kPowersOfTwo, ///< of the numbers those
  kDefault      ///< the default
};

/// One key of a configuration (docs/reference/npu_configuration.md).
struct KeyInfo {
  std::string_view name; ///< "section.key"
  std::string_view unit; ///< empty: none
  std::string_view text; ///< what it says
  bool isString;
  int64_t low, high; ///< of an integer
  int64_t preset;    ///< the default; of a string with values: the index
  bool powerOfTwo;
  bool isHashed; ///< a program depends on it
  Hardware hardware;
  std::span<const std::string_view> values; ///< of a string that has to be one of them; else empty
};

#include "simulator/config/generated/config.inc"

/// One NPU: numbers by key::k<Section><Key>. A value type.
struct Configuration {
  std::string name;
  std::array<int64_t, key::kCount> values{}; ///< of a string with values: its index

  /// By key::k<Section><Key>.
  int64_t operator[](int key) const { return values[key]; }
  /// Of the array of multipliers.
  int rows() const { return static_cast<int>(values[key::kArrayRows]); }
  int columns() const { return static_cast<int>(values[key::kArrayColumns]); }
  /// array.dataflow: sums stay in the array, whose rows are output positions.
  bool isOutputStationary() const { return values[key::kArrayDataflow] != 0; }
  uint32_t scratchpadBytes() const { return static_cast<uint32_t>(values[key::kScratchpadBytes]); }
  /// Whether something lies in the second memory, and whether that is flash.
  bool hasSecond() const { return values[key::kSecondHolds] != 0; }
  bool isSecondFlash() const;
  /// Whether constants lie in memory without their zeros.
  bool compressesConstants() const { return values[key::kWeightsCompression] != 0; }
  /// Types of 16 bits and accumulators of 40.
  bool hasInt16() const { return values[key::kFeaturesInt16] != 0; }
  /// The types bf16 and f32, and sums of f32.
  bool hasBf16() const { return values[key::kFeaturesBf16] != 0; }
  /// Accumulator rows of columns() i32 (with int16: of 40 bits), as many in each bank.
  uint32_t accumulatorRows() const {
    const int64_t banks = values[key::kAccumulatorBanks];
    return static_cast<uint32_t>(values[key::kAccumulatorBytes] / (4 * columns() * banks) * banks);
  }
  /// 1 to 16, each with all of the engines and memories above.
  size_t cores() const { return static_cast<size_t>(values[key::kCoresCount]); }
  /// DMA engines of each direction, 1 to 4.
  int loadChannels() const { return static_cast<int>(values[key::kDmaLoadChannels]); }
  int storeChannels() const { return static_cast<int>(values[key::kDmaStoreChannels]); }
  /// Instructions that the queue of an engine holds.
  size_t queueDepth() const { return static_cast<size_t>(values[key::kCommandQueueDepth]); }
  /// The engines that it has, bit n for engine n.
  uint32_t engines() const;
  /// Of everything but the name: what a binary carries.
  uint64_t hash() const;
  /// The value of a key as TOML shows it.
  std::string valueText(int key) const;
  /// A file that parses to this configuration again.
  std::string toml() const;
};

/// The memories of a device: dram.* and second.*.
enum class MemoryId : uint8_t { kDram, kSecond };
/// Where the regions of a class lie.
MemoryId memoryOf(const Configuration& configuration, RegionClass kind);

/// A setting that no hardware description has: a key and its value as TOML shows them.
struct ModelOnly {
  std::string_view key; ///< "section.key"; lives as long as the process
  std::string value;
};
/// Those of a configuration, in the order of the keys; empty: rtl/top can be built for it as far as
/// single keys say.
std::vector<ModelOnly> modelOnly(const Configuration& configuration);
/// "array.rows = 24, array.columns = 20" of all of them; empty where there is none.
std::string modelOnlyText(const Configuration& configuration);
/// Refuses what the hardware description does not have; `what` follows it. Error: the settings by
/// name and value.
Outcome needHardware(const Configuration& configuration, std::string_view what);

/// Refuses a second memory and constants that are compressed, for engines that have one, of bytes.
/// Error: the key and its value.
Outcome needOneCoreAndMemory(const Configuration& configuration, std::string_view what);

/// `file` stands in messages. Errors: TOML that is none, an unknown section or key, a value of
/// another type or out of its range, and numbers that contradict each other.
Result<Configuration> parseConfiguration(std::string_view text, std::string_view file);

/// The preset of that name, or the file at that path: what has a '/' or ends in .toml. Errors:
/// there is no such preset, the file cannot be read, and those of parseConfiguration.
Result<Configuration> findConfiguration(const std::string& nameOrPath);

/// A configuration that the simulator brings along.
struct Preset {
  std::string_view name;
  std::string_view toml; ///< the text of its file
};
/// All of them; they live as long as the process.
std::span<const Preset> presets();

} // namespace candela::npu
