// The text of a kernel that is written for one instruction: its shapes, strides and steps are
// literals. Equal texts are one kernel, whatever memory they are called with.
#pragma once

#include "../opencl.hpp"
#include "profile.hpp"

namespace program {

constexpr int kLanes = 16;                // elements that kernels compute side by side
constexpr int64_t kElementsOfItem = 4096; // that a work-item of a CPU takes, about
constexpr int64_t kZeros = 1024;          // numbers of f32 that every device holds as zeros

constexpr uint32_t kScratch = UINT32_MAX; // the buffer of what one kernel leaves the next

/// The memory of a parameter: a place in a buffer of the image, which loops move. Buffer 0, which
/// no image has, is that of the zeros.
struct Place {
  uint32_t buffer;
  int64_t offset;                        // bytes
  int64_t perLoop[CDL_MAX_LOOP_NESTING]; // bytes
};

/// A kernel with the memory that it is called with. Parameter m<i> is a buffer, o<i> the bytes
/// before its first element.
struct KernelText {
  std::string body;
  size_t groups = 0;
  size_t groupItems = 1; ///< work-items of a group
  std::vector<Place> places;
};

/// An instruction of a checked image, as those who write kernels look at it.
class Instruction {
public:
  Instruction(const cdl_image_t* image, uint32_t index)
      : image_(image), instr_(cdl_get_instr(image, index)) {}

  const cdl_image_t* image() const { return image_; }
  const cdl_instr_t& operator*() const { return *instr_; }
  const cdl_instr_t* operator->() const { return instr_; }
  const cdl_view_t& input(uint32_t i) const { return *cdl_get_input(image_, instr_, i); }
  const cdl_view_t& y() const { return *cdl_get_output(image_, instr_, 0); }
  uint32_t operands() const { return cdl_operand_count(image_, instr_); }
  int64_t attr(uint16_t id, int64_t missing, uint32_t i = 0) const {
    const cdl_attr_t* attr = cdl_find_attr(image_, instr_, id);
    return attr && i < attr->count ? attr->values[i] : missing;
  }
  /// The steps of its expression.
  std::vector<cdl_step_t> steps() const;
  /// The border around the view's content in memory; null: there is none.
  const cdl_halo_t* haloOf(const cdl_view_t& view) const;

private:
  const cdl_image_t* image_;
  const cdl_instr_t* instr_;
};

/// f16 or bf16: moved as their bits; expressions compute them in f32 and round.
bool isHalf(uint8_t elem);
bool isKnownElem(uint8_t elem);
int64_t elementsOf(const cdl_view_t& view);
/// "float", "char" and so on: what memory holds of an element type.
const char* memoryType(uint8_t elem);
/// What steps compute with: "float" or "int", "float16" or "int16".
std::string valueType(uint8_t elem, int lanes);
/// The integer `x` as one of this element type holds it; a float as it is.
std::string wrapped(uint8_t elem, const std::string& x);
/// Whether kernels know these steps.
bool canCompute(const std::vector<cdl_step_t>& steps);

/// Writes one kernel, line by line.
class Writer {
public:
  /// Adds a line of `parts`, as cdl::text joins them.
  template <class... Parts> void line(const Parts&... parts) {
    body_ += "  " + cdl::text(parts...) + "\n";
  }
  /// Makes the view a parameter: the name of a pointer to its first element, or, where elements are
  /// smaller than bytes, to the buffer.
  std::string pointer(const cdl_view_t& view);
  /// The name of a pointer to kZeros zeros.
  std::string zeros();
  /// That of a pointer to floats from this byte of the scratch on.
  std::string scratch(int64_t bytes);
  /// The value of `lanes` elements from `at` on, `stride` apart.
  static std::string load(uint8_t elem, int lanes, const std::string& at, int64_t stride);
  /// Stores `value` there.
  void store(uint8_t elem, int lanes, const std::string& at, int64_t stride,
             const std::string& value);
  /// Computes steps first .. end; `load(i)` is the value of input i, `acc` that of what carries
  /// them. Returns the name of the last one's value.
  using Load = std::function<std::string(uint32_t input)>;
  std::string compute(const std::vector<cdl_step_t>& steps, size_t first, size_t end, int lanes,
                      const std::string& acc, const Load& load);

  /// For work-items that each are a group, or groups of some.
  KernelText finish(int64_t groups, int64_t groupItems = 1) {
    return {std::move(body_), static_cast<size_t>(groups), static_cast<size_t>(groupItems),
            std::move(places_)};
  }
  /// Names the work-item `id` and ends those beyond `items`: for kernels of independent work-items.
  void beginItems(int64_t items);
  /// Ends such a kernel.
  KernelText finishItems(int64_t items) {
    return finish((items + kItemsOfGroup - 1) / kItemsOfGroup, kItemsOfGroup);
  }

private:
  static constexpr int64_t kItemsOfGroup = 64;

  std::string body_;
  std::vector<Place> places_;
  int names_ = 0;
};

// Each writes the kernel of an instruction that it knows; false: it does not.
bool writeSums(const Instruction& instr, const Profile& profile, KernelText& text);
bool writeWindow(const Instruction& instr, const Profile& profile, KernelText& text);
/// Of an epilogue behind a sum of nothing.
bool writeEmptySums(const Instruction& instr, const Profile& profile, KernelText& text);
bool writeMap(const Instruction& instr, const Profile& profile, KernelText& text);
bool writeGather(const Instruction& instr, const Profile& profile, KernelText& text);
bool writeReduction(const Instruction& instr, const Profile& profile, KernelText& text);
/// Writes kernels that run one after the other, and what they want of scratch; none: it knows none.
void writeScaledSums(const Instruction& instr, const Profile& profile,
                     std::vector<KernelText>& texts, uint64_t& scratchBytes);

} // namespace program
