// The way from instructions to calls of kernels. An emitter asks for memory, describes each kernel
// once, and says how it is called; equal kernels are compiled once.
#pragma once

#include "../codegen/codegen.hpp"
#include "../runtime/binary.hpp"
#include "../runtime/object_code.hpp"
#include "arena.hpp"

#include <algorithm>
#include <map>

namespace cpu {

/// A view of an instruction: dims and strides in elements.
struct Operand {
  uint8_t elem = 0;
  int rank = 0;
  int64_t dims[CDL_MAX_RANK] = {}, strides[CDL_MAX_RANK] = {};
  uint16_t layout = 0;
  bool channelsLast = false;        // of a layout {n, h, w, c}: its dims are these
  const cdl_halo_t* halo = nullptr; // of its buffer
  Arg at;                           // the first element

  int64_t elements() const;
  int64_t bytes(int64_t elements) const { return elements * cdl_elem_bits(elem) / 8; }
  bool isDense() const;
};

/// The type in registers of an element type; false for those that no kernel computes on.
bool typeOf(uint8_t elem, Ty& ty);
/// Whether it is f16 or bf16: moved as their bits; expressions compute them in f32 and round.
bool isHalf(uint8_t elem);
/// The type in registers of an element type that kernels compute on or move; the bits of a half.
Ty tyOf(uint8_t elem);
bool isSignedElem(uint8_t elem);

/// Reports why an emitter does not take an instruction. Always false, for the emitter to return.
inline bool refuse(std::string& why, const char* reason) {
  why = reason;
  return false;
}

/// Whether the steps of a layout are these (logical dim, factor).
bool hasSteps(const cdl_layout_t& layout, std::initializer_list<std::pair<int, uint32_t>> steps);

/// How the units of a call follow the rows of the result: unit (o * tiles + t) * inner + i is part
/// of tile t, and the first t tiles hold t * points of all `rows` rows of `width` points each. The
/// last tile ends with the last row.
struct UnitRows {
  int64_t outer = 1, tiles = 0, inner = 1; // tiles 0: nobody knows
  int64_t points = 1, width = 1, rows = 0;

  /// How many rows the first `count` tiles hold at least a part of.
  int64_t touched(int64_t count) const {
    return count >= tiles ? rows : std::min(rows, (count * points + width - 1) / width);
  }
  /// The fewest first tiles that finish so many rows.
  int64_t tilesFor(int64_t count) const {
    return count >= rows ? tiles : std::min(tiles, (count * width + points - 1) / points);
  }
};

/// The units of work of a call.
struct Units {
  Units(uint64_t count) : count(count) {} // NOLINT: a number of them is all that most calls say
  Units(const UnitRows& rows)
      : count(static_cast<uint64_t>(rows.outer * rows.tiles * rows.inner)), rows(rows) {} // NOLINT
  uint64_t count;
  UnitRows rows;
};

/// Collects the calls of an executable, and the kernels, constants and memory that they need.
class Lowering {
public:
  Lowering(const cdl_image_t* image, const void* const* constants, const Isa& isa,
           const Target& target = {})
      : image(image), constants(constants), isa(isa), target_(target), codegen_(isa, target) {
    binary_.tier = isa.tier;
  }

  const cdl_image_t* const image;
  const void* const* const constants;
  const Isa& isa;

  Operand operand(const cdl_view_t& view) const;
  /// Starts an instruction; what it asks of scratch() may overlap the scratch of others, unless
  /// both stand in one group that runs in bands.
  void begin(uint32_t instr);
  uint32_t instr() const { return instr_; }
  /// Says that the calls of an earlier instruction do the work of `instr` too.
  void done(uint32_t instr) { done_[instr] = instr_; }
  bool isDone(uint32_t instr) const { return done_.count(instr) != 0; }
  /// The instructions that the calls of `instr` do too.
  std::vector<uint32_t> doneBy(uint32_t instr) const;
  /// Memory for this instruction, 64-byte aligned.
  Arg scratch(uint64_t bytes);
  /// A constant of the executable, 64-byte aligned; equal ones are one.
  Arg own(const void* data, uint64_t bytes);
  /// Calls the kernel that `key` names completely; writes it by `body` when it is new.
  void call(const std::string& key, const Units& units, const std::vector<Arg>& args,
            const std::function<void(Builder&)>& body);
  /// The calls so far, in the order in which they run, and how the units of each follow rows. Both
  /// may be rearranged.
  std::vector<Call>& calls() { return binary_.calls; }
  const std::vector<UnitRows>& rowsOfCalls() const { return rows_; }

  /// The calls, the code and the constants of all instructions; false and error() when LLVM fails.
  /// Once.
  bool finish(Binary& binary);
  /// The same of a build ahead of time, as object code.
  bool finishAhead(ObjectCode& object);
  std::string assembly() { return codegen_.assembly(); }
  std::string error() const { return codegen_.error(); }

private:
  /// Makes what arguments read of the image's constants the executable's own.
  void takeConstants();
  /// What kernels need while each instruction runs.
  std::vector<Working> working() const;
  /// The function of a kernel.
  std::string kernelName(uint32_t kernel) const;
  /// Of the constants, which are all there.
  cdl_object_weights_t weightsHeader() const;

  const Target target_;
  Codegen codegen_;
  Binary binary_;
  std::map<std::string, uint32_t> kernels_;
  std::map<uint32_t, uint32_t> done_; // by whom
  std::vector<UnitRows> rows_;        // of each call
  struct Owned {
    Arg at;
    uint64_t bytes;
  };
  std::multimap<uint64_t, Owned> owned_; // by digest
  uint32_t instr_ = 0;
  uint64_t scratchUsed_ = 0;
  std::map<uint32_t, uint64_t> scratchOf_; // by instruction: where what it asked for ends
};

/// Appends numbers to a key.
class Key {
public:
  explicit Key(std::string text) : text_(std::move(text)) {}
  Key& operator<<(int64_t number) {
    text_ += ' ';
    text_ += std::to_string(number);
    return *this;
  }
  Key& operator<<(const std::string& text) {
    text_ += ' ';
    text_ += text;
    return *this;
  }
  const std::string& text() const { return text_; }

private:
  std::string text_;
};

} // namespace cpu
