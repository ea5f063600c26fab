#pragma once

#include <array>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "candela/cdl.h"
#include "core/support/payload.h"

/// One instruction on its way through soft, where a fault may take hold of it.
namespace candela::conformance::mutants {

using Index = std::array<int64_t, CDL_MAX_RANK>;

/// Where a buffer of the image lies: its bytes, and how many others of the same memory lie around
/// them.
struct Room {
  void* address = nullptr;
  uint64_t bytes = 0, before = 0, behind = 0;
};

/// What a faulty device remembers between instructions.
struct FaultMemory {
  std::map<std::string, std::vector<uint64_t>> results; ///< elements, by instruction
  std::map<std::string, uint64_t> runs;
  uint64_t calls = 0;
};

/// The instruction and all memory around it are copies, so that a fault can do to them what it
/// likes and stay in bounds: soft runs on the copies, and what has changed goes back to the
/// device's memory, as far as that reaches.
class Mutation {
public:
  Mutation(const cdl_image_t* image, uint32_t instr, const int64_t* loops,
           const std::vector<Room>& rooms, FaultMemory& memory);

  uint16_t kind() const { return instr_.kind; }
  uint16_t fn() const { return instr_.fn; }
  /// Views: inputs, then outputs. `view` is as given, whatever became of the copy.
  uint32_t inputs() const { return instr_.inputs; }
  uint32_t operands() const { return operands_; } ///< inputs without those of the epilogue
  uint32_t result() const { return instr_.inputs; }
  const cdl_view_t& view(uint32_t v) const { return views_[v]; }
  Elem elem(uint32_t v) const { return static_cast<Elem>(views_[v].elem); }
  bool hasExpr() const { return instr_.expr != 0; }
  bool inLoop() const { return instr_.loop != 0; }
  int64_t attr(uint16_t id, int64_t otherwise) const;
  /// Of this instruction of this image on this device.
  const std::string& key() const { return key_; }
  FaultMemory& memory() { return memory_; }

  // The copy that soft will run.
  cdl_instr_t& instr() { return *const_cast<cdl_instr_t*>(cdl_get_instr(copy(), index_)); }
  cdl_view_t& altered(uint32_t v) {
    return *const_cast<cdl_view_t*>(cdl_get_view(copy(), instr_.first_view + v));
  }
  void setAttr(uint16_t id, int64_t value);
  void forgetLoops() { loops_.fill(0); }

  /// An element of a view as given, in the copied memory; `at` may lead out of its dims by one.
  uint64_t get(uint32_t v, const Index& at) const;
  void set(uint32_t v, const Index& at, uint64_t bits);
  /// The same for what soft reads, without a trace of it on the device.
  void pretend(uint32_t v, const Index& at, uint64_t bits);
  /// The epilogue's last step becomes the identity.
  void dropLastStep();

  /// Runs soft on the copies; its code, and `message`.
  cdl_code_t run();
  /// The image as given, and which of its instructions this is.
  Bytes image() const {
    return Bytes::copyOf(reinterpret_cast<const std::byte*>(image_.data()), copy()->size);
  }
  uint32_t index() const { return index_; }
  /// Runs the instruction of this place in another image, which has `more` buffers behind those of
  /// this one.
  cdl_code_t runIn(const Bytes& image, const std::vector<void*>& more);
  /// Leaves the device's memory as it is.
  void drop() { dropped_ = true; }
  /// Brings what was changed to the device.
  void commit();

  std::string message;

private:
  const cdl_image_t* copy() const { return reinterpret_cast<const cdl_image_t*>(image_.data()); }
  std::byte* base(uint32_t buffer) { return staged_.at(buffer).data() + margin_; }
  const std::byte* base(uint32_t buffer) const { return staged_.at(buffer).data() + margin_; }
  int64_t element(uint32_t v, const Index& at) const;
  void stage(uint64_t margin);
  cdl_code_t runOn(const cdl_image_t* image, const std::vector<void*>& more);

  const cdl_instr_t instr_;
  const uint32_t index_;
  std::array<int64_t, CDL_MAX_LOOP_NESTING> loops_{}, given_{};
  const std::vector<Room>& rooms_;
  FaultMemory& memory_;
  std::vector<uint64_t> image_; ///< aligned as images are
  std::vector<cdl_view_t> views_;
  uint32_t operands_ = 0;
  uint64_t margin_ = 0;
  std::map<uint32_t, std::vector<std::byte>> staged_, pristine_;
  std::string key_;
  bool dropped_ = false;
};

/// Calls f(index) for each element of dims, in row-major order.
template <typename F> void forEachIndex(const cdl_view_t& view, F f) {
  for (uint32_t d = 0; d < view.rank; ++d)
    if (view.dims[d] == 0) return;
  for (Index at{};;) {
    f(static_cast<const Index&>(at));
    int d = view.rank - 1;
    while (d >= 0 && ++at[d] == view.dims[d]) at[d--] = 0;
    if (d < 0) return;
  }
}

} // namespace candela::conformance::mutants
