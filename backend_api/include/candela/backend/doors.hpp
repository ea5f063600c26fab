// The two ways into a backend: PrimitiveBackend runs instructions one by one, ProgramBackend
// compiles whole Programs.
#pragma once

#include "candela/backend/device.hpp"

namespace cdl {

/// The primitive API. Override what the device does itself, publicly; the rest is EMULATED by the
/// host. Each function runs one instruction to its end; one queue calls one at a time, several
/// queues at the same time.
class PrimitiveBackend : public Backend {
public:
  using Backend::Backend;

#define CDL_X(Struct, function, NAME)                                                              \
  virtual Status function(const Struct& op) { return missing(op); }
  CDL_OPS(CDL_X)
#undef CDL_X

  /// Runs one instruction by the function of its kind.
  Status dispatch(const Op& op) {
    switch (op.kind()) {
#define CDL_X(Struct, function, NAME)                                                              \
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
  int64_t values[CDL_MAX_LOOP_NESTING] = {};
  for (uint32_t i = 1; i < image->instrs.count; i = cdl_next_instr(image, i, values)) {
    Status status = body(i, static_cast<const int64_t*>(values));
    if (!status.isOk()) return status;
  }
  return ok();
}

/// What compile made of one Program. Executions are re-entrant: no state but in the bindings.
class Executable {
public:
  virtual ~Executable() = default;
  /// buffers.address(i, bytes) is where buffer i of the image lies; the scratch comes after the
  /// last one. When buffers.timings() is not null, it takes a record of each instruction.
  virtual Status execute(const Addresses& buffers) = 0;
  /// Bytes of scratch that each execution gets.
  virtual uint64_t scratchBytes() const { return 0; }
  /// How instruction i is supported.
  virtual Support support(uint32_t instr) const {
    (void)instr;
    return Support::NATIVE;
  }
  /// Writes what ProgramBackend::load reads.
  virtual Status save(const Writer& to) const {
    (void)to;
    return unsupported("this executable cannot be stored");
  }
  /// Writes object code as candela/cdl_object.h says, where ProgramBackend::emits.
  virtual Status emit(const Writer& to) const {
    (void)to;
    return unsupported("this executable was not compiled ahead of time");
  }
};

/// The program API. compile sees a checked image; what it cannot do it refuses with refused(instr,
/// reason, text).
class ProgramBackend : public Backend {
public:
  using Backend::Backend;
  /// `image` lives as long as the executable; constants[i] is the payload of constant i (null: a
  /// splat), during the call only.
  virtual Status compile(const cdl_image_t* image, const void* const* constants,
                         std::unique_ptr<Executable>& executable) = 0;
  /// Override it, and Executable::save, where executables can be stored. Executables then hold the
  /// constants that they read: buffers of the role CONSTANT have no binding, and a stored one comes
  /// without the payloads. `blob` is aligned to 64 bytes and lives, unchanged, as long as the
  /// executable, so large parts can be used where they lie. It may be damaged, or made by another
  /// version or for another device: BAD_MODEL or INCOMPATIBLE then, naming what does not fit.
  virtual Status load(const cdl_image_t* image, const void* blob, uint64_t size,
                      std::unique_ptr<Executable>& executable) {
    (void)image, (void)blob, (void)size, (void)executable;
    return unsupported("this backend loads no stored executables");
  }
  /// Whether there are executables with object code for a build ahead of time (Executable::emit):
  /// of devices that were opened for one.
  virtual bool emits() const { return false; }
  /// Override it where the device knows what instruction `instr`, or with 0 the whole image, would
  /// cost. The image comes without payloads: a constant is a splat, or its numbers are unknown.
  /// Pure.
  virtual Status cost(const cdl_image_t* image, uint32_t instr, cdl_cost_t& cost) {
    (void)image, (void)instr, (void)cost;
    return unsupported("this backend prices nothing");
  }
};

} // namespace cdl
