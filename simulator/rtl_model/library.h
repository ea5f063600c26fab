#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "simulator/config/configuration.h"
#include "simulator/result.h"
#include "simulator/rtl_model/pins.h"

namespace candela::npu {

/// The verilated NPU of one configuration as a shared library. It is made by Verilator and a
/// compiler when it is first asked for, which takes a minute or more, and kept in a cache: a folder
/// for what the configuration, the sources of `rtl/` and Verilator's version make of it.
class RtlLibrary {
public:
  /// What it can do besides running; it is built once for each.
  enum class Kind : uint8_t {
    kPlain,
    kWaves, ///< writes its signals (RtlTop::openWaves)
    kCounts ///< counts its lines; each NPU, when it goes, into a file below CANDELA_RTL_COVERAGE
  };
  /// Where the sources are, and where what is made of them is kept.
  struct Places {
    std::filesystem::path sources; ///< has the folders `rtl` and `simulator/rtl_model`
    std::filesystem::path cache;
    std::string verilator = "verilator", compiler = "c++";
  };
  /// As the process finds them: sources beside the program's libraries (`share/candela/npu_rtl`) or
  /// in CANDELA_NPU_RTL, the cache in CANDELA_CACHE_DIR, XDG_CACHE_HOME or ~/.cache, the compiler
  /// in CXX. Errors: no sources, no folder for a cache.
  static Result<Places> findPlaces();

  /// Finds or makes the library; processes that want the same one wait for each other. A library
  /// that is not what was written is made anew. Errors: a configuration that cannot be built, no
  /// Verilator, a source that does not compile.
  static Result<std::shared_ptr<RtlLibrary>> of(const Configuration& configuration,
                                                const Places& places, Kind kind = Kind::kPlain);
  /// Whether of() would find it. Where the answer is an error, so is that of of().
  static bool isMade(const Configuration& configuration, const Places& places,
                     Kind kind = Kind::kPlain);
  ~RtlLibrary();

  /// An NPU whose registers without a reset begin with random bits of `seed`; the library must
  /// outlive it. Null: the system gives no memory, or no threads.
  std::unique_ptr<RtlTop> make(int seed) const { return std::unique_ptr<RtlTop>(make_(seed)); }

private:
  RtlLibrary() = default;
  static Result<std::shared_ptr<RtlLibrary>> open(const std::filesystem::path& file);

  void* handle_ = nullptr;
  RtlTop* (*make_)(int) = nullptr;
};

} // namespace candela::npu
