// The constant weights of SCALED_MATMUL as its kernels read them; done once, when the model is
// compiled.
#include "scaled_product.hpp"

#include <candela/numerics.h>

#include <algorithm>
#include <cstring>
#include <limits>

namespace cpu {

namespace {

/// The elements of operand `index` while the model is compiled, where it is a constant. Elements of
/// few bits may begin within a byte, so that they are counted from the payload's first.
class ConstantReader {
public:
  ConstantReader(const Lowering& lowering, size_t index) {
    const cdl_instr_t* instr = cdl_get_instr(lowering.image, lowering.instr());
    view_ = cdl_get_input(lowering.image, instr, static_cast<uint32_t>(index));
    const cdl_buffer_t* buffer = cdl_get_buffer(lowering.image, view_->buffer);
    if (buffer->role != CDL_ROLE_CONSTANT || !lowering.constants) return;
    if (view_->iv_strides[0] || view_->iv_strides[1]) return;
    const cdl_constant_t* constant = cdl_get_constant(lowering.image, buffer->constant);
    payload_ = static_cast<const unsigned char*>(lowering.constants[buffer->constant]);
    bits_ = constant->bits;
    isKnown_ = payload_ || constant->form == 1;
  }
  bool isKnown() const { return isKnown_; }

  /// Where elements from this one on lie; null where it begins within a byte, or where there is one
  /// value for all.
  const unsigned char* bytesAt(int64_t element) const {
    const int64_t bit = (element + view_->offset) * cdl_elem_bits(view_->elem);
    return payload_ && bit % 8 == 0 ? payload_ + bit / 8 : nullptr;
  }

  /// The bits of the element that lies so far from the first.
  uint32_t bitsAt(int64_t element) const {
    const uint32_t width = cdl_elem_bits(view_->elem);
    if (!payload_) return static_cast<uint32_t>(bits_);
    element += view_->offset;
    if (width < 8) return cdl_packed_get(payload_, element, static_cast<int>(width));
    uint32_t value = 0;
    std::memcpy(&value, payload_ + element * (width / 8), width / 8);
    return value;
  }
  float realAt(int64_t element) const {
    const uint32_t bits = bitsAt(element);
    switch (view_->elem) {
    case CDL_I8: return static_cast<float>(static_cast<int8_t>(bits));
    case CDL_U8: return static_cast<float>(bits);
    case CDL_F16: return cdl_f16_to_f32(static_cast<uint16_t>(bits));
    case CDL_BF16: return cdl_bf16_to_f32(static_cast<uint16_t>(bits));
    case CDL_F8E4M3:
    case CDL_F8E5M2:
    case CDL_F8E8M0: return cdl_storage_to_f32(view_->elem, static_cast<uint8_t>(bits));
    default: return cdl_f32_of_bits(bits);
    }
  }
  float realAt(int64_t row, int64_t column) const {
    return realAt(row * view_->strides[0] + column * view_->strides[1]);
  }

private:
  const cdl_view_t* view_ = nullptr;
  const unsigned char* payload_ = nullptr;
  uint64_t bits_ = 0;
  bool isKnown_ = false;
};

/// Four neighbouring weights, packed, each in the low bits of a byte of its own.
uint32_t spread(uint32_t weights, int bits) {
  uint32_t bytes = 0;
  for (int i = 0; i < 4; ++i) bytes |= (weights >> (i * bits) & ((1u << bits) - 1)) << (i * 8);
  return bytes;
}

/// The weights of a column that one word holds, from `element` on: byte i holds weights i, i + 4
/// and so on, from its low bits up.
uint32_t wordOf(const ConstantReader& w, int bits, int64_t element, int64_t stride) {
  uint32_t word = 0;
  if (const unsigned char* bytes = stride == 1 ? w.bytesAt(element) : nullptr) {
    uint32_t packed = 0;
    std::memcpy(&packed, bytes, sizeof packed);
    if (bits == 8) return packed;
    for (int four = 0; four * bits < 8; ++four)
      word |= spread(packed >> (four * bits * 4), bits) << (four * bits);
    return word;
  }
  for (int i = 0; i < weightsOfWord(bits); ++i)
    word |= w.bitsAt(element + i * stride) << (i % 4 * 8 + i / 4 * bits);
  return word;
}

bool isNaNOfE4M3(uint32_t bits) { return (bits & 0x7f) == 0x7f; }

/// Of every weight in a word the highest bit.
uint32_t signsOf(int bits) {
  uint32_t signs = 0;
  for (int at = bits - 1; at < 32; at += bits) signs |= 1u << at;
  return signs;
}

} // namespace

PanelForm panelFormOf(const Lowering& lowering, const ScaledProduct& p) {
  return {lowering.isa.lanes(4), p.blocks, p.block / weightsOfWord(p.bits()), p.hasZeros()};
}

bool isKnownConstant(const Lowering& lowering, size_t index) {
  return ConstantReader(lowering, index).isKnown();
}

namespace {

/// Writes the panels, column after column and block after block.
class PanelWriter {
public:
  PanelWriter(const Lowering& lowering, const ScaledProduct& p, const PanelForm& form)
      : p_(p), form_(form), w_(lowering, 1), scales_(lowering, 2),
        zeros_(lowering, p.hasZeros() ? 3 : 2), flip_(p.offset() ? signsOf(p.bits()) : 0),
        bytes_(static_cast<size_t>((p.columns + form.lanes - 1) / form.lanes * form.panelBytes()),
               0) {}

  std::vector<char> write() {
    for (int64_t n = 0; n < p_.columns; ++n)
      for (int64_t g = 0; g < p_.blocks; ++g) writeBlock(n, g);
    return std::move(bytes_);
  }

private:
  template <class T> void store(int64_t at, const T& value) {
    std::memcpy(bytes_.data() + at, &value, sizeof value);
  }

  void writeBlock(int64_t n, int64_t g) {
    const int64_t panel = n / form_.lanes * form_.panelBytes() + g * form_.blockBytes();
    const int64_t lane = n % form_.lanes;
    const int64_t first = p_.firstOf(n, g);
    float scale = scales_.realAt(n, g / p_.pieces);
    if (p_.hasFloatWeights())
      scale = writeFloats(panel + form_.wordsAt(), lane, first, p_.depth - g * p_.block, scale);
    else
      writeWords(panel + form_.wordsAt() + lane * 4, first);
    store(panel + lane * 4, scale);
    if (p_.hasZeros())
      store(panel + form_.vectorBytes() + lane * 4,
            zeros_.realAt(n, g / p_.pieces) + static_cast<float>(p_.offset()));
  }

  void writeWords(int64_t at, int64_t first) {
    const int64_t stride = p_.in[1].strides[2];
    const int64_t wordStride = weightsOfWord(p_.bits()) * stride;
    for (int64_t word = 0; word < form_.words; ++word)
      store(at + word * form_.vectorBytes(),
            flip_ ^ wordOf(w_, p_.bits(), first + word * wordStride, stride));
  }

  /// The floats of a block, of which `live` count, one vector after the other; the others stay 0.
  /// Returns the scale: f8e4m3 loses its NaN on the way to f32, so the scale is that then, which
  /// makes the same of every sum.
  float writeFloats(int64_t at, int64_t lane, int64_t first, int64_t live, float scale) {
    const int64_t size = p_.bits() / 8;
    const int64_t stride = p_.in[1].strides[2];
    for (int64_t k = 0; k < std::min(live, p_.block); ++k) {
      const uint32_t bits = w_.bitsAt(first + k * stride);
      std::memcpy(bytes_.data() + at + (k * form_.lanes + lane) * size, &bits,
                  static_cast<size_t>(size));
      if (p_.in[1].elem == CDL_F8E4M3 && isNaNOfE4M3(bits))
        scale = std::numeric_limits<float>::quiet_NaN();
    }
    return scale;
  }

  const ScaledProduct& p_;
  const PanelForm& form_;
  const ConstantReader w_;
  const ConstantReader scales_;
  const ConstantReader zeros_;
  const uint32_t flip_; ///< makes signed weights unsigned ones
  std::vector<char> bytes_;
};

} // namespace

std::vector<char> packPanels(const Lowering& lowering, const ScaledProduct& p,
                             const PanelForm& form) {
  return PanelWriter(lowering, p, form).write();
}

} // namespace cpu
