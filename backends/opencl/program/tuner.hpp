// The fastest of some kernels for an instruction, by trial on the device.
#pragma once

#include "text.hpp"

namespace program {

/// Writes the kernel of an instruction for a profile; false: no writer knows it.
bool writeKernel(const Instruction& instr, const Profile& profile, KernelText& text);

/// The whole text of kernels named k1, k2, ... with these bodies.
std::string programText(const std::vector<const KernelText*>& kernels);

class Tuner {
public:
  Tuner(OpenCl& device, const Profile& profile) : device_(device), profile_(profile) {}

  /// Replaces `text`, which is the kernel for the profile itself, by the one that takes least time
  /// here. What was found is kept in the host's cache, by device, driver and text; a kernel that
  /// does not build or run is no candidate. Takes a lock of the device.
  cdl::Status choose(const Instruction& instr, KernelText& text);

private:
  std::vector<Profile> candidates() const;
  /// Nanoseconds of the device, the least of some runs; the largest number where it fails.
  uint64_t timeOf(const Instruction& instr, const KernelText& text);

  OpenCl& device_;
  const Profile profile_;
};

} // namespace program
