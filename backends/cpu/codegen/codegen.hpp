// Kernels to machine code. One of the two headers of this folder; neither shows LLVM.
#pragma once

#include "builder.hpp"

namespace cpu {

/// The machine code of some kernels, as ELF objects for `isa`. One thread at a time calls it; where
/// there are many kernels it compiles on several.
class Codegen {
public:
  explicit Codegen(const Isa& isa);
  ~Codegen();
  /// Adds the kernel `name`.
  void kernel(const std::string& name, const std::function<void(Builder&)>& body);
  /// Objects that together hold all kernels that were added, the same ones whatever the number of
  /// threads; where error() is not empty afterwards it says why there are none. Once.
  std::vector<std::vector<char>> objects();
  /// Their assembly text, for tests and --dump; before objects().
  std::string assembly();
  /// Empty: nothing went wrong so far.
  std::string error() const;
  /// "19.1.7"
  static std::string version();

private:
  class Part;
  /// The part that takes the next kernel.
  Part& nextPart();

  const Isa& isa_;
  std::vector<std::unique_ptr<Part>> parts_;
  size_t kernels_ = 0;
};

} // namespace cpu
