// Kernels to machine code. One of the two headers of this folder; neither shows LLVM.
#pragma once

#include "builder.hpp"

namespace cpu {

/// The machine code of some kernels, as an ELF object for `isa`. One thread at a time.
class Codegen {
public:
  explicit Codegen(const Isa& isa);
  ~Codegen();
  /// Adds the kernel `name`.
  void kernel(const std::string& name, const std::function<void(Builder&)>& body);
  /// The object of all kernels that were added; on failure empty, and error() says why. Once.
  std::vector<char> object();
  /// Their assembly text, for tests and --dump; before object().
  std::string assembly();
  const std::string& error() const;
  /// "19.1.7"
  static std::string version();

private:
  struct State;
  std::unique_ptr<State> state_;
};

} // namespace cpu
