// A compiled program on the functional model.
#pragma once

#include "compile.hpp"

#include "simulator/npu_device.h"

#include <memory>
#include <mutex>
#include <string>

namespace npu_sim {

struct RunOptions {
  npu::FunctionalOptions functional;
  std::string report; ///< file that takes a line of counts for each execution; empty: none
};

class NpuExecutable final : public cdl::Executable {
public:
  NpuExecutable(const cdl_image_t* image, Compiled compiled, npu::Configuration configuration, RunOptions options,
                std::string madeBy)
      : image_(image), compiled_(std::move(compiled)), configuration_(std::move(configuration)),
        options_(std::move(options)), madeBy_(std::move(madeBy)) {}

  cdl::Status execute(const cdl::Addresses& buffers) override;
  cdl::Status save(const cdl::Writer& to) const override;

  /// Loads the program into a first device: what the device refuses shows here.
  cdl::Status prepare();

private:
  /// A device with the program; devices are kept for executions that follow.
  cdl::Status borrow(std::unique_ptr<npu::Device>& device);

  /// One that adds up the time of each instruction of the image.
  cdl::Status observe(std::unique_ptr<npu::Device>& device, std::vector<uint64_t>& spent);

  const cdl_image_t* image_;
  Compiled compiled_;
  npu::Configuration configuration_;
  RunOptions options_;
  std::string madeBy_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<npu::Device>> idle_;
};

/// What save() wrote. INCOMPATIBLE: of another specification of the instruction set, or another configuration.
cdl::Status loadCompiled(const cdl_image_t* image, const void* blob, uint64_t size, const std::string& madeBy,
                         const npu::Configuration& configuration, Compiled& compiled);

} // namespace npu_sim
