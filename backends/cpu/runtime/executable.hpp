// An executable: machine code and the list of its calls. Holds no type of LLVM and none of the
// emitters, so that a stored executable runs without them.
#pragma once

#include "binary.hpp"
#include "code.hpp"
#include "threads.hpp"

#include <candela/backend.hpp>

#include <deque>

namespace cpu {

class CpuExecutable final : public cdl::Executable {
public:
  /// What `binary` points to lives as long as the executable, and so does the image.
  CpuExecutable(const cdl_image_t* image, Binary binary, Threads& threads);
  /// Places the code. Once, before execute.
  cdl::Status place();

  cdl::Status execute(const cdl::Addresses& buffers) override;
  uint64_t scratchBytes() const override { return tables().bytes; }
  cdl::Status save(const cdl::Writer& to) const override;

private:
  /// Thread `t` of `total`.
  struct Share {
    int t, total;
  };
  /// Null: no object has it.
  KernelFn find(const std::string& kernel) const;
  /// The instruction at which the calls of `instr` run: the first one of a group in bands, which
  /// interleaves them.
  uint32_t placeOf(uint32_t instr) const;
  /// What an execution looks up stands in its scratch, behind what kernels use, so that it
  /// allocates nothing.
  struct Tables {
    // bytes from the start: per buffer; of all arguments; of one call, per thread
    uint64_t bases, pointers, moved;
    uint64_t bytes; // the whole scratch
  };
  Tables tables() const;
  /// What a thread does of one execution. `pointers`: all arguments as the first run of every loop
  /// has them; `moved`: room for those of one call.
  void work(Share share, void* const* pointers, void** moved, Barrier& barrier,
            cdl::Timings* timings) const;

  const cdl_image_t* image_;
  Binary binary_;
  Threads& threads_;
  std::deque<Code> code_; ///< an object each
  std::vector<KernelFn> kernels_;
  int mostUnits_ = 1;               // of any call: more threads have no work
  std::vector<bool> isLittle_;      // per instruction: in a loop, and too little to be shared out
  uint32_t mostArgs_ = 0;           // of any call
  std::vector<uint32_t> firstCall_; // per instruction as placeOf() says, and one past the last
};

} // namespace cpu
