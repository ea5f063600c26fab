// Kernels to machine code. One of the three headers for emitters; none shows LLVM.
#pragma once

#include "builder.hpp"
#include "target.hpp"

namespace cpu {

/// The machine code of some kernels, as ELF objects for `isa`. One thread at a time calls it; where
/// there are many kernels it compiles on several.
class Codegen {
public:
  explicit Codegen(const Isa& isa, Target target = {});
  ~Codegen();
  /// Adds the kernel `name`.
  void kernel(const std::string& name, const std::function<void(Builder&)>& body);
  /// Adds a function that the linker shows to others, int32_t name(parameters), for every processor
  /// of the architecture. A parameter is a Ptr, or an I64, which stands for a size_t. It returns 0
  /// where body does not leave it before. Of a build ahead of time, behind the kernels that it
  /// calls.
  void entry(const std::string& name, const std::vector<Ty>& parameters,
             const std::function<void(Builder&)>& body);
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
  const Target target_;
  std::vector<std::unique_ptr<Part>> parts_;
  size_t kernels_ = 0;
};

} // namespace cpu
