// Machine code in memory: places the sections of an ELF object that codegen made and resolves what
// they refer to. Needs no LLVM, so that running a stored executable does not load it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace cpu {

using KernelFn = void (*)(void* const* args, int64_t begin, int64_t end);

class Code {
public:
  Code() = default;
  ~Code();
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;

  /// Places the object, which lies 8-byte aligned; once. It may be damaged: false and error() then,
  /// and nothing outside of it was read. What its instructions do is not checked.
  bool place(const char* object, size_t size);
  /// The function of this name; null when the object does not define it.
  KernelFn find(const std::string& name) const;
  const std::string& error() const { return error_; }

private:
  struct Symbol {
    std::string name;
    uint64_t offset; // from memory_
  };
  bool fail(const std::string& text);

  char* memory_ = nullptr;
  size_t bytes_ = 0;
  std::vector<Symbol> functions_; // sorted by name
  std::string error_;
};

} // namespace cpu
