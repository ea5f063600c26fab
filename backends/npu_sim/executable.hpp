// A compiled program on the functional model.
#pragma once

#include "compile.hpp"
#include "layer_report.hpp"

#include "simulator/npu_device.h"

#include <memory>
#include <mutex>
#include <string>

namespace npu_sim {

struct RunOptions {
  npu::FunctionalOptions functional;
  std::string report; ///< file that takes a line of counts for each execution; empty: none
  std::string binary; ///< folder that takes the program; empty: none
  int number = 1;     ///< of the program among those of its device: from 2 on part of file names
  /// file that takes a line for each instruction of each execution; empty: none
  std::string timeline;
  bool hasTime = false, hasData = true; ///< without data: counts and time alone, outputs are zero
  npu::Fidelity fidelity = npu::Fidelity::kAccurate;
  bool isSystemc = false; ///< values and time in one simulation, with data alone
  bool isRtl = false;     ///< of the hardware description, with data alone
  bool isLockstep = false;
  npu::WaveOptions waves; ///< of the hardware description
  /// One run says values and time.
  bool isJoint() const { return isSystemc || isRtl; }
};

class NpuExecutable final : public cdl::Executable {
public:
  NpuExecutable(const cdl_image_t* image, Compiled compiled, npu::Configuration configuration,
                RunOptions options, std::string madeBy)
      : image_(image), compiled_(std::move(compiled)), configuration_(std::move(configuration)),
        options_(std::move(options)), madeBy_(std::move(madeBy)) {}

  cdl::Status execute(const cdl::Addresses& buffers) override;
  cdl::Status save(const cdl::Writer& to) const override;

  /// Loads the program into a first device, if one will run it: what the device refuses shows here.
  cdl::Status prepare();

private:
  /// A device with the program; devices are kept for executions that follow.
  cdl::Status borrow(std::unique_ptr<npu::Device>& device);
  cdl::Status make(npu::TimedOptions options, std::unique_ptr<npu::Device>& device) const;

  /// Time, and counts of layers by the execution of these options (by SystemC time too). Neither
  /// depends on data: once is enough.
  cdl::Status count(npu::TimedOptions& options, std::unique_ptr<LayerReport>& layers) const;
  /// The line of an execution, and of its instructions.
  cdl::Status write(const npu::RunReport& report);

  /// Adds up the time of each instruction of the image.
  void observe(npu::FunctionalOptions& options, std::vector<uint64_t>& spent) const;

  const cdl_image_t* image_;
  Compiled compiled_;
  npu::Configuration configuration_;
  RunOptions options_;
  std::string madeBy_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<npu::Device>> idle_;
  std::unique_ptr<LayerReport> layers_; ///< of the first execution that is reported
};

/// What save() wrote. INCOMPATIBLE: of another specification of the instruction set, or another
/// configuration.
cdl::Status loadCompiled(const cdl_image_t* image, const void* blob, uint64_t size,
                         const std::string& madeBy, const npu::Configuration& configuration,
                         Compiled& compiled);

} // namespace npu_sim
