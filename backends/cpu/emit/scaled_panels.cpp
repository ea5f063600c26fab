// The constant weights of SCALED_MATMUL as its kernels read them; done once, when the model is
// compiled.
#include "scaled_product.hpp"

#include <candela/numerics.h>

#include <cstring>

namespace cpu {

namespace {

/// The elements of operand `index` while the model is compiled, where it is a constant. Elements of
/// 4 bits may begin within a byte, so that they are counted from the payload's first.
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

  /// Where elements of 4 bits from this one on lie; null where one begins within a byte, or where
  /// there is one value for all.
  const unsigned char* bytesAt(int64_t element) const {
    element += view_->offset;
    return payload_ && element % 2 == 0 ? payload_ + element / 2 : nullptr;
  }

  /// The bits of the element that lies so far from the first.
  uint32_t bitsAt(int64_t element) const {
    const uint32_t width = cdl_elem_bits(view_->elem);
    if (!payload_) return static_cast<uint32_t>(bits_);
    element += view_->offset;
    if (width == 4) return payload_[element / 2] >> (element % 2 * 4) & 15;
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

/// The four halves of two bytes, each in the low half of a byte of its own.
uint32_t spread(uint32_t halves) {
  const uint32_t bytes = (halves | halves << 8) & 0x00ff00ff;
  return (bytes | bytes << 4) & 0x0f0f0f0f;
}

/// Eight weights of a column from `element` on: byte i holds weight i in its low half and weight i
/// + 4 in the other.
uint32_t wordOf(const ConstantReader& w, int64_t element, int64_t stride) {
  if (const unsigned char* bytes = stride == 1 ? w.bytesAt(element) : nullptr) {
    uint32_t packed = 0;
    std::memcpy(&packed, bytes, sizeof packed);
    return spread(packed & 0xffff) | spread(packed >> 16) << 4;
  }
  uint32_t word = 0;
  for (int i = 0; i < kScaledWord; ++i)
    word |= w.bitsAt(element + i * stride) << (i % 4 * 8 + i / 4 * 4);
  return word;
}

} // namespace

PanelForm panelFormOf(const Lowering& lowering, const ScaledProduct& p) {
  return {lowering.isa.lanes(4), p.blocks, p.block / kScaledWord, p.hasZeros()};
}

bool isKnownConstant(const Lowering& lowering, size_t index) {
  return ConstantReader(lowering, index).isKnown();
}

std::vector<char> packPanels(const Lowering& lowering, const ScaledProduct& p,
                             const PanelForm& form) {
  const ConstantReader w(lowering, 1), scales(lowering, 2), zeros(lowering, p.hasZeros() ? 3 : 2);
  const Operand& weights = p.in[1];
  const int64_t panels = (p.columns + form.lanes - 1) / form.lanes;
  std::vector<char> bytes(static_cast<size_t>(panels * form.panelBytes()), 0);
  const auto store = [&](int64_t at, const auto& value) {
    std::memcpy(bytes.data() + at, &value, sizeof value);
  };
  const uint32_t flip = p.offset() ? 0x88888888 : 0; // of signed weights to unsigned ones
  for (int64_t n = 0; n < p.columns; ++n)
    for (int64_t g = 0; g < p.blocks; ++g) {
      const int64_t at =
          n / form.lanes * form.panelBytes() + g * form.blockBytes() + n % form.lanes * 4;
      store(at, scales.realAt(n, g));
      if (p.hasZeros())
        store(at + form.vectorBytes(), zeros.realAt(n, g) + static_cast<float>(p.offset()));
      const int64_t first = n * weights.strides[0] + g * weights.strides[1];
      for (int64_t word = 0; word < form.words; ++word)
        store(at + form.wordsAt() + word * form.vectorBytes(),
              flip ^
                  wordOf(w, first + word * kScaledWord * weights.strides[2], weights.strides[2]));
    }
  return bytes;
}

} // namespace cpu
