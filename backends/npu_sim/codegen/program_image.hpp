// A Program as the lowerings see it: where views lie on the device, and what is known of what they
// hold. Zero points, multipliers and shifts are numbers in descriptors and records, though a
// Program has them in buffers that earlier instructions fill: so the bytes of small buffers are
// followed through copies, instruction by instruction, as constant propagation does for variables.
#pragma once

#include <candela/backend.hpp>

#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "stream.hpp"

namespace npu_sim {

/// A view on the device. Strides in elements.
struct DeviceView : cdl::Shape {
  int memory = Access::kScratchpad;
  int64_t at = 0;    ///< byte of its first element
  int64_t bytes = 1; ///< of an element
  uint8_t elem = 0;
  uint32_t buffer = 0;

  bool isLocal() const { return memory == Access::kScratchpad; }
  npu::Type type() const;
  /// The bytes between its first and last element, both with it.
  Access access(bool write) const;
};

/// Whether two views step in the same way over as many elements, from wherever they begin.
bool stepsAlike(const DeviceView& a, const DeviceView& b);
/// Whether two views are of the same bytes in the same order.
bool isSameView(const DeviceView& a, const DeviceView& b);

/// What integers of a type there are; of other types those of i32.
struct IntegerLimits {
  int32_t low, high;
};
IntegerLimits limitsOf(uint8_t elem);
/// The bits of the lowest and of the highest value of a type; of floats those are infinite.
uint64_t lowestBits(uint8_t elem);
uint64_t highestBits(uint8_t elem);

/// Where the buffers of a Program lie in DRAM: one region for each class.
struct Layout {
  struct Part {
    uint32_t buffer = 0;
    int32_t region = 0; ///< -1: of a constant, `at` counts in the payloads
    int64_t at = 0, bytes = 0;
    uint8_t in = 0, out = 0; ///< 1: copied before, after an execution
    uint8_t zero[6]{};       ///< stored with the rest
  };
  std::vector<npu::Region> regions; ///< region 0 holds the constants
  std::vector<Part> parts;          ///< by buffer of the image; [0] unused
  uint64_t constantBytes = 0;       ///< of region 0
  std::vector<std::byte> constants; ///< what the program loads; empty where time alone is asked
};

/// One checked image. Throws Refusal for what does not fit into the device. Without payloads it
/// says what a program would be like, for time alone: numbers that are not known are others.
class ProgramImage {
public:
  ProgramImage(const cdl_image_t* image, const void* const* payloads, uint32_t localSpace,
               int64_t localBytes);

  const cdl_image_t* raw() const { return image_; }
  /// Hands over where everything lies, when all of the Program was lowered.
  Layout takeLayout();
  uint32_t instrs() const { return image_->instrs.count; }
  cdl::Op op(uint32_t i) const { return cdl::Op(image_, i, nullptr, nullptr); }

  DeviceView operand(const cdl_view_t& view) const;
  DeviceView input(const cdl::Op& op, uint32_t i) const;
  /// From now on the input is another view, of the same numbers.
  void readInstead(uint32_t instr, uint32_t input, const DeviceView& view) {
    instead_[{instr, input}] = view;
  }
  DeviceView output(const cdl::Op& op, uint32_t i = 0) const {
    return operand(*cdl_get_output(image_, &op.instr(), i));
  }

  /// Follows what is known: every instruction is shown before the next one is lowered.
  void advance(const cdl::Op& op);
  /// The element at these bytes of a buffer, where a constant stands there; of f32 its bits. Throws
  /// Refusal for one that needs more than 32 bits.
  std::optional<int32_t> known(const DeviceView& operand, int64_t element) const;
  /// The first `count` elements of 32 bits, one behind the other; nothing where one is not known.
  std::optional<std::vector<int32_t>> knownRow(const DeviceView& operand, int64_t count) const;
  /// The only value of the view; throws Refusal where it has several or is none that is known.
  int32_t scalar(const DeviceView& operand, const char* what) const;

  /// The first byte of a buffer of DRAM in its region.
  int64_t beginOf(uint32_t buffer) const { return layout_.parts[buffer].at; }
  /// Whether nothing reads the buffer but as numbers that the compiler takes: it is not filled.
  bool isImmediate(uint32_t buffer) const { return immediate_[buffer]; }
  /// Whether a product reads it as its second operand.
  bool holdsWeights(uint32_t buffer) const { return weights_[buffer]; }
  /// Whether what the instruction wrote there is read by `reader` alone.
  bool readsAlone(uint32_t writer, uint32_t reader, uint32_t buffer) const;

  /// The instructions that read what `writer` left in a buffer of its own, in order; nothing where
  /// that is mixed with what others left.
  std::optional<std::vector<uint32_t>> readsOf(uint32_t writer, uint32_t buffer) const;

  /// A place in DRAM for what one core hands to others: a view of the elements of `local`, side by
  /// side.
  DeviceView addHanded(const DeviceView& local);
  /// Adds bytes that the program loads; returns the offset in region 0, the same for the same
  /// bytes.
  int64_t addConstant(std::span<const std::byte> bytes);
  /// A view of a payload as the program loads it: in the order in which `to`, of the same dims,
  /// lies in its memory, so that bursts are whole.
  DeviceView packed(const DeviceView& payload, const DeviceView& to);

private:
  void findImmediates();
  void findTouches();
  void place(const void* const* payloads);
  void placeConstant(const cdl_buffer_t& buffer, const void* payload, Layout::Part& part);
  /// Memory of so many zeros; what is never written takes no room of the machine.
  std::byte* addContent(int64_t bytes);
  const std::byte* zeros(int64_t bytes);
  /// Where `count` elements of a constant stand from this one on; null where they do not.
  const void* knownBytes(const DeviceView& operand, int64_t element, int64_t count) const;
  int64_t reserveConstant(int64_t bytes);
  const std::vector<std::byte>& gathered(const DeviceView& payload);
  static void estimate(uint32_t constant, std::byte* to, int64_t elemBytes, int64_t bytes);
  /// The first byte of what a constant holds.
  const std::byte* contentOf(const DeviceView& payload) const {
    return contents_[cdl_get_buffer(image_, payload.buffer)->constant].bytes +
           (payload.at - layout_.parts[payload.buffer].at);
  }

  const cdl_image_t* image_;
  uint32_t localSpace_;
  Layout layout_;
  std::vector<bool> immediate_, weights_;
  std::vector<bool> isNumbers_; ///< by buffer: something reads it as numbers
  struct Touch {
    uint32_t instr;
    bool write;
    Access bytes;
    bool dense; ///< a write without holes
  };
  std::vector<std::vector<Touch>> touches_;                     ///< by buffer
  std::map<std::pair<uint32_t, uint32_t>, DeviceView> instead_; ///< by instruction and input
  /// What local buffers of few bytes hold; an empty one is not known.
  std::vector<std::vector<uint8_t>> values_;
  std::vector<std::vector<uint8_t>> isKnown_; ///< 1: known
  struct Content {
    const std::byte* bytes = nullptr; ///< null: no buffer holds it
    int64_t at = 0;                   ///< its place, were all of them one behind the other
  };
  std::vector<Content> contents_;   ///< by constant
  int64_t payloadBytes_ = 0;        ///< of all of them, one behind the other
  std::vector<std::byte> gathered_; ///< of the last view
  struct Free {
    void operator()(std::byte* bytes) const { std::free(bytes); }
  };
  std::vector<std::unique_ptr<std::byte, Free>> ownContents_; ///< that are no payload
  bool isEstimate_ = false;                                   ///< there are no payloads
  const std::byte* zeros_ = nullptr;                          ///< one of these
  int64_t zeroBytes_ = 0;                                     ///< that it has
  std::map<std::vector<int64_t>, int64_t> packed_;            ///< by view: where it lies
  struct Added {
    int64_t at = 0;
    size_t size = 0;
    std::vector<std::byte> bytes; ///< of an estimate, which has no constants
  };
  std::unordered_multimap<size_t, Added> added_; ///< by hash
};

/// Whether input `i` goes into the program as numbers.
bool isImmediateInput(const cdl::Op& op, uint32_t i);

} // namespace npu_sim
