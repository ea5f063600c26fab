// The way from instructions to calls of kernels. An emitter asks for memory, describes each kernel once, and says how
// it is called; equal kernels are compiled once.
#pragma once

#include "../codegen/codegen.hpp"
#include "../runtime/binary.hpp"

#include <map>
#include <set>

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
bool isSignedElem(uint8_t elem);

/// The steps of a layout are these (logical dim, factor).
bool hasSteps(const cdl_layout_t& layout, std::initializer_list<std::pair<int, uint32_t>> steps);

class Lowering {
public:
  Lowering(const cdl_image_t* image, const void* const* constants, const Isa& isa)
      : image(image), constants(constants), isa(isa), codegen_(isa) {
    binary_.tier = isa.tier;
  }

  const cdl_image_t* const image;
  const void* const* const constants;
  const Isa& isa;

  Operand operand(const cdl_view_t& view) const;
  /// Starts an instruction; what it asks of scratch() may overlap the scratch of others.
  void begin(uint32_t instr);
  uint32_t instr() const { return instr_; }
  /// Says that the calls of an earlier instruction do the work of `instr` too.
  void done(uint32_t instr) { done_.insert(instr); }
  bool isDone(uint32_t instr) const { return done_.count(instr) != 0; }
  /// Memory for this instruction, 64-byte aligned, with `slack` readable bytes behind it.
  Arg scratch(uint64_t bytes);
  /// A constant of the executable, 64-byte aligned; equal ones are one.
  Arg own(const void* data, uint64_t bytes);
  /// The kernel that `key` names completely: body is called when it is new. Then calls it.
  void call(const std::string& key, uint64_t units, const std::vector<Arg>& args,
            const std::function<void(Builder&)>& body);

  /// The calls, the code and the constants of all instructions; false and error() when LLVM fails. Once.
  bool finish(Binary& binary);
  std::string assembly() { return codegen_.assembly(); }
  const std::string& error() const { return codegen_.error(); }

private:
  /// Makes what arguments read of the image's constants the executable's own.
  void takeConstants();

  Codegen codegen_;
  Binary binary_;
  std::map<std::string, uint32_t> kernels_;
  std::set<uint32_t> done_;
  struct Owned {
    Arg at;
    uint64_t bytes;
  };
  std::multimap<uint64_t, Owned> owned_; // by digest
  uint32_t instr_ = 0;
  uint64_t scratchUsed_ = 0;
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
