#pragma once

#include <candela/candela.h>

#include <cstdint>
#include <string>
#include <string_view>

#include <pybind11/pybind11.h>

/// Element types: the numbers of the embedding API beside their names in NumPy, ml_dtypes and the
/// buffer protocol.
namespace candela::python {

namespace py = pybind11;

struct Element {
  candela_elem_t id;
  const char* name;   ///< of Candela: "f32"
  const char* dtype;  ///< of NumPy or ml_dtypes: "float32"
  uint32_t bits;      ///< in a tensor of Candela; elements of less than 8 lie packed
  const char* format; ///< of the buffer protocol; nullptr where it has none
  bool isSigned;

  /// Of one element in an array of NumPy, which packs nothing.
  uint32_t itemBytes() const { return bits < 8 ? 1 : bits / 8; }
  bool isPacked() const { return bits < 8; }
  /// Of a packed tensor of Candela.
  uint64_t bytesOf(uint64_t elements) const { return (elements * bits + 7) / 8; }
};

/// nullptr where there is none, as where only a run knows the type.
const Element* elementOf(uint32_t id);
/// By its name here, in NumPy or in ml_dtypes.
const Element* elementNamed(std::string_view name);
/// By a format of the buffer protocol in this machine's order of bytes, and bytes of an item.
const Element* elementOfFormat(std::string_view format, uint64_t itemBytes);
/// By its name, or by an object with a name: a dtype of NumPy or one of its classes. Throws
/// sdk::Error with CANDELA_UNSUPPORTED.
const Element& elementFrom(const py::handle& dtype);

/// The dtype of NumPy, or None where neither NumPy nor ml_dtypes has it or can be imported.
py::object dtypeOf(const Element& element);
/// An ndarray on the memory of `owner`, which has the buffer protocol; None as of dtypeOf.
py::object arrayOn(const py::object& owner, const Element& element, const py::tuple& shape);

/// Bytes for each element, as ml_dtypes keeps int4 and its like, from packed ones.
void unpackElements(const Element& element, const uint8_t* packed, uint64_t count, uint8_t* bytes);
/// The other way.
void packElements(const Element& element, const uint8_t* bytes, uint64_t count, uint8_t* packed);

/// "f32[2,3]".
std::string typeText(const Element& element, const int64_t* dims, uint32_t rank);

} // namespace candela::python
