#include "python/native/elements.h"

#include <array>
#include <bit>
#include <optional>

#include <candela/candela.hpp>

namespace candela::python {
namespace {

static_assert(std::endian::native == std::endian::little, "packed elements begin in the low bits");

constexpr Element kElements[] = {
    {CANDELA_F32, "f32", "float32", 32, "f", true},
    {CANDELA_F16, "f16", "float16", 16, "e", true},
    {CANDELA_BF16, "bf16", "bfloat16", 16, nullptr, true},
    {CANDELA_F64, "f64", "float64", 64, "d", true},
    {CANDELA_I8, "i8", "int8", 8, "b", true},
    {CANDELA_U8, "u8", "uint8", 8, "B", false},
    {CANDELA_I16, "i16", "int16", 16, "h", true},
    {CANDELA_U16, "u16", "uint16", 16, "H", false},
    {CANDELA_I32, "i32", "int32", 32, "i", true},
    {CANDELA_U32, "u32", "uint32", 32, "I", false},
    {CANDELA_I64, "i64", "int64", 64, "q", true},
    {CANDELA_U64, "u64", "uint64", 64, "Q", false},
    {CANDELA_BOOL, "bool", "bool", 8, "?", false},
    // The numbers of spec/types.toml for which candela.h has no name.
    {candela_elem_t(14), "i4", "int4", 4, nullptr, true},
    {candela_elem_t(15), "u4", "uint4", 4, nullptr, false},
    {candela_elem_t(16), "f8e4m3", "float8_e4m3fn", 8, nullptr, true},
    {candela_elem_t(17), "f8e5m2", "float8_e5m2", 8, nullptr, true},
    {candela_elem_t(18), "f8e4m3fnuz", "float8_e4m3fnuz", 8, nullptr, true},
    {candela_elem_t(19), "f8e5m2fnuz", "float8_e5m2fnuz", 8, nullptr, true},
    {candela_elem_t(20), "f8e8m0", "float8_e8m0fnu", 8, nullptr, false},
    {candela_elem_t(21), "f6e2m3", "float6_e2m3fn", 8, nullptr, true},
    {candela_elem_t(22), "f6e3m2", "float6_e3m2fn", 8, nullptr, true},
    {candela_elem_t(23), "f4e2m1", "float4_e2m1fn", 4, nullptr, false},
    {candela_elem_t(24), "i2", "int2", 2, nullptr, true},
    {candela_elem_t(25), "u2", "uint2", 2, nullptr, false},
};

/// A module, or nothing where it cannot be imported.
py::object importedOrNone(const char* name) {
  try {
    return py::module_::import(name);
  } catch (py::error_already_set& error) {
    if (!error.matches(PyExc_ImportError)) throw;
    return py::none();
  }
}

py::object findDtype(const Element& element) {
  const py::object numpy = importedOrNone("numpy");
  if (numpy.is_none()) return py::none();
  const bool isOfNumpy = element.format != nullptr;
  const py::object from = isOfNumpy ? numpy : importedOrNone("ml_dtypes");
  const char* const name = element.id == CANDELA_BOOL ? "bool_" : element.dtype;
  if (from.is_none() || !py::hasattr(from, name)) return py::none();
  return numpy.attr("dtype")(from.attr(name));
}

/// What an interpreter looks up once; it is never freed, as modules are not.
PyObject* cachedNdarray() {
  static PyObject* const ndarray =
      py::object(py::module_::import("numpy").attr("ndarray")).release().ptr();
  return ndarray;
}

} // namespace

const Element* elementOf(uint32_t id) {
  const bool isKnown = id >= 1 && id <= std::size(kElements);
  return isKnown ? &kElements[id - 1] : nullptr;
}

const Element* elementNamed(std::string_view name) {
  for (const Element& element : kElements)
    if (name == element.name || name == element.dtype) return &element;
  return nullptr;
}

const Element* elementOfFormat(std::string_view format, uint64_t itemBytes) {
  if (format.size() > 1 && std::string_view("@=<").find(format[0]) != std::string_view::npos)
    format.remove_prefix(1);
  if (format.size() != 1) return nullptr;
  // `l` has as many bytes as the standard of the format says, and others mean `i` and `q`.
  const std::string_view signedInts = "bhilqn";
  const std::string_view unsignedInts = "BHILQN";
  const bool isSigned = signedInts.find(format[0]) != std::string_view::npos;
  const bool isUnsigned = unsignedInts.find(format[0]) != std::string_view::npos;
  for (const Element& element : kElements) {
    if (!element.format) continue;
    const char own = element.format[0];
    const bool isOfKind = (isSigned && signedInts.find(own) != std::string_view::npos) ||
                          (isUnsigned && unsignedInts.find(own) != std::string_view::npos) ||
                          own == format[0];
    if (isOfKind && element.itemBytes() == itemBytes) return &element;
  }
  return nullptr;
}

const Element& elementFrom(const py::handle& dtype) {
  py::object name = py::reinterpret_borrow<py::object>(dtype);
  if (!py::isinstance<py::str>(name) && py::hasattr(name, "name")) name = name.attr("name");
  if (!py::isinstance<py::str>(name) && py::hasattr(name, "__name__")) name = name.attr("__name__");
  std::string text = py::str(name);
  if (text == "bool_") text = "bool";
  const Element* const element = elementNamed(text);
  if (!element) throw sdk::Error(CANDELA_UNSUPPORTED, "no element type '" + text + "'");
  return *element;
}

py::object dtypeOf(const Element& element) {
  static std::array<PyObject*, std::size(kElements)> known{};
  PyObject*& cached = known[element.id - 1];
  if (!cached) {
    py::object found = findDtype(element);
    if (found.is_none()) return found; // it may be installed later
    cached = found.release().ptr();
  }
  return py::reinterpret_borrow<py::object>(cached);
}

py::object arrayOn(const py::object& owner, const Element& element, const py::tuple& shape) {
  const py::object dtype = dtypeOf(element);
  if (dtype.is_none()) return dtype;
  PyObject* const arguments[] = {shape.ptr(), dtype.ptr(), owner.ptr()};
  PyObject* const array = PyObject_Vectorcall(cachedNdarray(), arguments, 3, nullptr);
  if (!array) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(array);
}

void unpackElements(const Element& element, const uint8_t* packed, uint64_t count, uint8_t* bytes) {
  const uint32_t perByte = 8 / element.bits;
  const uint32_t mask = (1u << element.bits) - 1;
  const uint32_t sign = element.isSigned ? 1u << (element.bits - 1) : 0;
  for (uint64_t i = 0; i < count; ++i) {
    const uint32_t bits = (packed[i / perByte] >> (i % perByte * element.bits)) & mask;
    bytes[i] = static_cast<uint8_t>((bits ^ sign) - sign);
  }
}

void packElements(const Element& element, const uint8_t* bytes, uint64_t count, uint8_t* packed) {
  const uint32_t perByte = 8 / element.bits;
  const uint32_t mask = (1u << element.bits) - 1;
  for (uint64_t i = 0; i < element.bytesOf(count); ++i) packed[i] = 0;
  for (uint64_t i = 0; i < count; ++i)
    packed[i / perByte] |= static_cast<uint8_t>((bytes[i] & mask) << (i % perByte * element.bits));
}

std::string typeText(const Element& element, const int64_t* dims, uint32_t rank) {
  std::string text = element.name;
  text += '[';
  for (uint32_t d = 0; d < rank; ++d) {
    if (d) text += ',';
    text += std::to_string(dims[d]);
  }
  return text + ']';
}

} // namespace candela::python
