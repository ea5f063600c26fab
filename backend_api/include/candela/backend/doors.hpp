// The two ways into a backend: PrimitiveBackend runs instructions one by one, ProgramBackend
// compiles whole Programs.
#ifndef CANDELA_BACKEND_DOORS_HPP
#define CANDELA_BACKEND_DOORS_HPP

#include "candela/backend/device.hpp"

#include <memory>

namespace cdl {

/// Every kind: X(Struct, function).
#define CDL_OPS(X)                                                                                                     \
  X(Copy, copy)                                                                                                        \
  X(Fill, fill)                                                                                                        \
  X(Convert, convert)                                                                                                  \
  X(Binary, binary)                                                                                                    \
  X(Compare, compare)                                                                                                  \
  X(Select, select)                                                                                                    \
  X(Gather, gather)                                                                                                    \
  X(Scatter, scatter)                                                                                                  \
  X(Reduce, reduce)                                                                                                    \
  X(MatMul, matMul)                                                                                                    \
  X(Unary, unary)                                                                                                      \
  X(Rescale, rescale)                                                                                                  \
  X(Table, table)                                                                                                      \
  X(Conv2d, conv2d)                                                                                                    \
  X(Pool2d, pool2d)                                                                                                    \
  X(Elementwise, elementwise)                                                                                          \
  X(Softmax, softmax)                                                                                                  \
  X(Norm, norm)                                                                                                        \
  X(Attention, attention)                                                                                              \
  X(ArgReduce, argReduce)                                                                                              \
  X(Sort, sort)                                                                                                        \
  X(Custom, custom)

/// Door 1. Override what the device does itself, publicly; the rest is EMULATED by the host. Each
/// function runs one instruction to its end; one queue calls one at a time, several queues at the
/// same time.
class PrimitiveBackend : public Backend {
public:
  using Backend::Backend;

#define CDL_X(Struct, function)                                                                                        \
  virtual Status function(const Struct& op) { return missing(op); }
  CDL_OPS(CDL_X)
#undef CDL_X

  /// Runs one instruction by the function of its kind.
  Status dispatch(const Op& op) {
    switch (op.kind()) {
#define CDL_X(Struct, function)                                                                                        \
  case Kind::Struct: return function(Struct{op});
      CDL_OPS(CDL_X)
#undef CDL_X
    }
    return missing(op);
  }

private:
  static Status missing(const Op& op) {
    return unsupported(kindName(op.instr().kind) + " has no function in this backend");
  }
};

/// Calls body(index, loop values) for every execution of every instruction of a checked image in
/// order, until one returns an error.
template <class F> Status forEachInstr(const cdl_image_t* image, F&& body) {
  const auto outermost = [image](uint32_t loop) {
    const uint32_t parent = cdl_get_loop(image, loop)->parent;
    return loop && parent ? parent : loop;
  };
  const auto range = [&](auto& self, uint32_t first, uint32_t end, uint32_t inside, int64_t* values) -> Status {
    for (uint32_t i = first; i < end;) {
      const uint32_t own = cdl_get_instr(image, i)->loop;
      const uint32_t next = own == inside ? 0 : inside ? own : outermost(own);
      if (next == 0) {
        Status status = body(i, static_cast<const int64_t*>(values));
        if (!status.isOk()) return status;
        ++i;
        continue;
      }
      const cdl_loop_t* loop = cdl_get_loop(image, next);
      const int level = inside ? 1 : 0;
      for (uint64_t trip = 0; trip < loop->trip; ++trip) {
        values[level] = static_cast<int64_t>(trip);
        Status status = self(self, loop->first, loop->first + loop->count, next, values);
        if (!status.isOk()) return status;
      }
      values[level] = 0;
      i = loop->first + loop->count;
    }
    return ok();
  };
  int64_t values[CDL_MAX_LOOP_NESTING] = {};
  return range(range, 1, image->instrs.count, 0, values);
}

/// What compile made of one Program. Executions are re-entrant: no state but in the bindings.
class Executable {
public:
  virtual ~Executable() = default;
  /// buffers.address(i, bytes) is where buffer i of the image lies; the scratch comes after the
  /// last one.
  virtual Status execute(const Addresses& buffers) = 0;
  /// Bytes of scratch that each execution gets.
  virtual uint64_t scratchBytes() const { return 0; }
  /// How instruction i is supported.
  virtual Support support(uint32_t instr) const {
    (void)instr;
    return Support::NATIVE;
  }
};

/// Door 2. compile sees a checked image; what it cannot do it refuses with refused(instr, reason,
/// text).
class ProgramBackend : public Backend {
public:
  using Backend::Backend;
  /// `image` lives as long as the executable; constants[i] is the payload of constant i (null: a
  /// splat), during the call only.
  virtual Status compile(const cdl_image_t* image, const void* const* constants,
                         std::unique_ptr<Executable>& executable) = 0;
};

} // namespace cdl

#endif
