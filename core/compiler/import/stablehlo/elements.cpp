#include "core/compiler/import/stablehlo/elements.h"

#include <charconv>

#include "core/compiler/import/stablehlo/scanner.h"
#include "core/support/float_bits.h"

namespace candela::import::stablehlo {
namespace {

constexpr size_t kAlignmentBytes = 4; // in front of a resource

int digitOf(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/// The bytes that hex digits stand for.
std::string bytesOf(std::string_view hex) {
  if (hex.starts_with("0x")) hex.remove_prefix(2);
  if (hex.size() % 2 != 0) reject("{} hex digits, which make no whole bytes", hex.size());
  std::string bytes(hex.size() / 2, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) {
    const int high = digitOf(hex[2 * i]);
    const int low = digitOf(hex[2 * i + 1]);
    if (high < 0 || low < 0) reject("'{}' is no byte in hex digits", hex.substr(2 * i, 2));
    bytes[i] = static_cast<char>(high * 16 + low);
  }
  return bytes;
}

Tensor emptyTensor(Elem elem, Shape dims) {
  auto tensor = Tensor::zeros(elem, std::move(dims));
  if (!tensor) throw Refusal{tensor.status()};
  return *std::move(tensor);
}

/// Elements as bytes, the first one first; of bool also as bits.
Tensor fromBytes(const std::string& bytes, const Type& type) {
  const auto count = static_cast<uint64_t>(*elementCount(type.dims));
  const uint64_t width =
      elemBits(type.elem) < 8 ? 1 : static_cast<uint64_t>(elemBits(type.elem)) / 8;
  const auto loadAt = [&](uint64_t i) {
    uint64_t bits = 0;
    for (uint64_t k = 0; k < width; ++k)
      bits |= static_cast<uint64_t>(static_cast<uint8_t>(bytes[i * width + k])) << (8 * k);
    return bits;
  };
  const bool isBool = type.elem == Elem::bool_;
  const bool arePacked = isBool && bytes.size() == (count + 7) / 8 && bytes.size() != count;
  const bool isSplat = bytes.size() == width && count != 1 && !arePacked;
  if (!isSplat && !arePacked && bytes.size() != count * width)
    reject("{} bytes, but {} needs {}", bytes.size(), type.text(), count * width);
  Tensor tensor = emptyTensor(type.elem, isSplat ? Shape{} : type.dims);
  for (uint64_t i = 0; i < (isSplat ? 1 : count); ++i) {
    uint64_t bits = arePacked ? loadAt(i / 8) >> (i % 8) & 1 : loadAt(i);
    if (isBool) bits = bits != 0;
    storeElement(type.elem, tensor.bytes.mutableData(), static_cast<int64_t>(i),
                 bits & elemMask(type.elem));
  }
  return tensor;
}

template <typename T> T parsed(std::string_view text, int base = 10) {
  T value{};
  const char* end = text.data() + text.size();
  std::from_chars_result result{};
  if constexpr (std::is_floating_point_v<T>)
    result = std::from_chars(text.data(), end, value);
  else
    result = std::from_chars(text.data(), end, value, base);
  const bool isFar = std::is_floating_point_v<T> && result.ec == std::errc::result_out_of_range;
  if (isFar && result.ptr == end)
    return static_cast<T>(std::strtod(std::string(text).c_str(), nullptr));
  if (text.empty() || result.ec != std::errc() || result.ptr != end)
    reject("'{}' is no number of its type", text);
  return value;
}

uint64_t floatBits(Elem elem, std::string_view text) {
  if (text.starts_with("0x")) {
    const auto bits = parsed<uint64_t>(text.substr(2), 16);
    if ((bits & ~elemMask(elem)) != 0) reject("'{}' has more bits than {}", text, elemName(elem));
    return bits;
  }
  // Rounded once where the type is one of these.
  if (elem == Elem::f32_) return fromReal(elem, static_cast<double>(parsed<float>(text)));
  return fromReal(elem, parsed<double>(text));
}

uint64_t integerBits(Elem elem, std::string_view text) {
  const bool isNegative = text.starts_with("-");
  std::string_view digits = isNegative ? text.substr(1) : text;
  const bool isHex = digits.starts_with("0x");
  if (isHex) digits.remove_prefix(2);
  const auto magnitude = parsed<uint64_t>(digits, isHex ? 16 : 10);
  const __int128 value = isNegative ? -static_cast<__int128>(magnitude) : magnitude;
  const IntegerRange range = integerRange(elem);
  const bool isBits = isHex && !isNegative && (magnitude & ~elemMask(elem)) == 0;
  if (!isBits && (value < range.lowest || value > range.highest))
    reject("{} is no {}", text, elemName(elem));
  return static_cast<uint64_t>(value) & elemMask(elem);
}

/// Nested lists of numbers.
class ListReader {
public:
  ListReader(std::string_view literal, const Type& type) : scanner_(literal), type_(type) {}

  Tensor read() {
    if (!scanner_.isNext("[")) {
      Tensor one = emptyTensor(type_.elem, {});
      storeElement(type_.elem, one.bytes.mutableData(), 0, element());
      if (!scanner_.atEnd()) reject("more than one element without a list");
      return one;
    }
    Tensor tensor = emptyTensor(type_.elem, type_.dims);
    readList(tensor, 0);
    if (!scanner_.atEnd()) reject("something behind the list of elements");
    return tensor;
  }

private:
  void readList(Tensor& tensor, size_t depth) {
    if (depth >= type_.rank()) reject("lists are nested deeper than {} has dims", type_.text());
    scanner_.expect("[", "before a list of elements");
    int64_t count = 0;
    while (!scanner_.accept("]")) {
      if (count > 0) scanner_.expect(",", "between elements");
      if (++count > type_.dims[depth])
        reject("more than {} in a list of dim {} of {}", type_.dims[depth], depth, type_.text());
      if (depth + 1 < type_.rank())
        readList(tensor, depth + 1);
      else
        storeElement(type_.elem, tensor.bytes.mutableData(), next_++, element());
    }
    if (count != type_.dims[depth])
      reject("a list of {}, but dim {} of {} is {}", count, depth, type_.text(), type_.dims[depth]);
  }

  uint64_t element() {
    if (scanner_.accept("true")) return 1;
    if (scanner_.accept("false")) return 0;
    if (scanner_.isNext("(")) refuse("its elements are complex numbers");
    const std::string_view text = scanner_.number();
    if (text.empty()) scanner_.fail("expected an element");
    if (type_.elem == Elem::bool_) return integerBits(Elem::u8_, text) != 0;
    return isFloat(type_.elem) ? floatBits(type_.elem, text) : integerBits(type_.elem, text);
  }

  Scanner scanner_;
  const Type& type_;
  int64_t next_ = 0;
};

} // namespace

Tensor readElements(std::string_view literal, const Type& type) {
  if (!type.refusal.empty()) refuse("its type is {}", type.refusal);
  const auto count = static_cast<uint64_t>(*elementCount(type.dims));
  Scanner scanner(literal);
  if (scanner.isNext("\"")) return fromBytes(bytesOf(scanner.rawQuoted()), type);
  if (scanner.atEnd()) {
    if (count != 0) reject("no elements, but {} needs {}", type.text(), count);
    return emptyTensor(type.elem, type.dims);
  }
  // Each takes a digit at least, so that no text makes memory out of nothing.
  if (scanner.isNext("[") && count > literal.size())
    reject("a list of fewer elements than {} has", type.text());
  return ListReader(literal, type).read();
}

Tensor readResource(std::string_view hex, const Type& type) {
  if (!type.refusal.empty()) refuse("its type is {}", type.refusal);
  const std::string bytes = bytesOf(hex);
  if (bytes.size() < kAlignmentBytes) reject("a resource of {} bytes", bytes.size());
  return fromBytes(bytes.substr(kAlignmentBytes), type);
}

} // namespace candela::import::stablehlo
