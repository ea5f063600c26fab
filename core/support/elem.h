#pragma once

#include <optional>
#include <string_view>

#include "candela/cdl.h"

namespace candela {

/// Element types; the numbers of the ABI (spec/types.toml). `none` is no type.
enum class Elem : uint8_t {
  none = 0,
#define CANDELA_ELEM(name, id, bits, class_, onnx, storage) name##_ = id,
  CDL_ELEMS(CANDELA_ELEM)
#undef CANDELA_ELEM
};

inline constexpr int kElemCount = 26; ///< ids are below this

/// "f32", "bool", ...
std::string_view elemName(Elem elem);
std::optional<Elem> parseElem(std::string_view name);
/// Storage bits: 2 to 64.
int elemBits(Elem elem);
bool isFloat(Elem elem);
bool isSigned(Elem elem); ///< signed integers
bool isUnsigned(Elem elem);
inline bool isInteger(Elem elem) { return isSigned(elem) || isUnsigned(elem); }
bool isStorageOnly(Elem elem);
/// TensorProto.DataType, and back (nullopt: not one of ours).
int elemToOnnx(Elem elem);
std::optional<Elem> elemFromOnnx(int onnx);
bool isValidElem(unsigned id);
/// The bits that an element has, as the low ones of a word.
inline uint64_t elemMask(Elem elem) { return ~uint64_t(0) >> (64 - elemBits(elem)); }
/// How many elements share a byte: 4, 2, or 1 for those that have bytes of their own.
inline int elemsPerByte(Elem elem) { return elemBits(elem) < 8 ? 8 / elemBits(elem) : 1; }
inline bool isPacked(Elem elem) { return elemBits(elem) < 8; }
/// Bytes of `count` elements; those of less than 8 bits are packed, the first one in the low bits.
inline uint64_t elemBytes(Elem elem, uint64_t count) { return (count * elemBits(elem) + 7) / 8; }

/// Lowest and highest value of an integer type (bool: 0 and 1).
struct IntegerRange {
  __int128 lowest, highest;
};
IntegerRange integerRange(Elem elem);

} // namespace candela
