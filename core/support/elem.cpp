#include "core/support/elem.h"

#include <array>

namespace candela {
namespace {

struct ElemInfo {
  std::string_view name;
  int bits = 0, kind = 0, onnx = 0;
  bool storageOnly = false;
};

constexpr std::array<ElemInfo, kElemCount> makeTable() {
  std::array<ElemInfo, kElemCount> table{};
  table[0] = {"none", 0, -1, 0, false};
#define CANDELA_ELEM(name, id, bits, class_, onnx, storage)                                        \
  table[id] = {#name, bits, class_, onnx, storage};
  CDL_ELEMS(CANDELA_ELEM)
#undef CANDELA_ELEM
  return table;
}
constexpr std::array<ElemInfo, kElemCount> kTable = makeTable();

const ElemInfo& info(Elem elem) { return kTable[static_cast<size_t>(elem)]; }

} // namespace

std::string_view elemName(Elem elem) { return info(elem).name; }

std::optional<Elem> parseElem(std::string_view name) {
  for (int i = 1; i < kElemCount; ++i)
    if (kTable[i].name == name) return static_cast<Elem>(i);
  return std::nullopt;
}

int elemBits(Elem elem) { return info(elem).bits; }
bool isFloat(Elem elem) { return info(elem).kind == 0; }
bool isSigned(Elem elem) { return info(elem).kind == 1; }
bool isUnsigned(Elem elem) { return info(elem).kind == 2; }
bool isStorageOnly(Elem elem) { return info(elem).storageOnly; }
int elemToOnnx(Elem elem) { return info(elem).onnx; }

std::optional<Elem> elemFromOnnx(int onnx) {
  for (int i = 1; i < kElemCount; ++i)
    if (kTable[i].onnx == onnx) return static_cast<Elem>(i);
  return std::nullopt;
}

bool isValidElem(unsigned id) { return id > 0 && id < kElemCount; }

IntegerRange integerRange(Elem elem) {
  if (elem == Elem::bool_) return {0, 1};
  const int bits = elemBits(elem);
  if (isSigned(elem)) return {-(__int128(1) << (bits - 1)), (__int128(1) << (bits - 1)) - 1};
  return {0, (__int128(1) << bits) - 1};
}

} // namespace candela
