#include "python/native/array.h"

#include <algorithm>

namespace candela::python {
namespace {

std::string classOf(const py::handle& object) { return Py_TYPE(object.ptr())->tp_name; }

/// Of a dtype that has a name; "" of what is no array.
std::string dtypeName(const py::handle& array) {
  if (!py::hasattr(array, "dtype")) return "";
  const py::object dtype = array.attr("dtype");
  return py::hasattr(dtype, "name") ? std::string(py::str(dtype.attr("name"))) : "";
}

} // namespace

Argument::~Argument() {
  if (view_.obj) PyBuffer_Release(&view_);
}

void Argument::describe(const Element& element, const std::vector<int64_t>& dims, void* data) {
  if (dims.size() > CANDELA_MAX_RANK)
    throw sdk::Error(CANDELA_UNSUPPORTED,
                     "an array of rank " + std::to_string(dims.size()) + ", above 16");
  element_ = &element;
  argument_.tensor.elem = element.id;
  argument_.tensor.rank = static_cast<uint32_t>(dims.size());
  std::copy(dims.begin(), dims.end(), argument_.tensor.dims);
  argument_.tensor.data = data;
  argument_.tensor.bytes = element.bytesOf(elementCount(dims));
}

void Argument::readTensor(Tensor& tensor) {
  tensor.checkUsable();
  describe(tensor.element(), tensor.dims(), tensor.data());
  if (!tensor.isVisible()) argument_.buffer = tensor.buffer();
  hold_ = tensor.hold();
}

bool Argument::readBuffer(const py::handle& array, const std::string& what, const Element* element,
                          int flags) {
  if (!PyObject_CheckBuffer(array.ptr())) return false;
  if (PyObject_GetBuffer(array.ptr(), &view_, PyBUF_RECORDS_RO | flags) != 0) {
    // Arrays of ml_dtypes have no format; what is read-only has none to write to.
    PyErr_Clear();
    view_.obj = nullptr;
    return false;
  }
  const std::string_view format = view_.format ? view_.format : "B";
  if (!element) element = elementOfFormat(format, static_cast<uint64_t>(view_.itemsize));
  if (!element)
    throw sdk::Error(CANDELA_UNSUPPORTED, what + ": an array of format '" + std::string(format) +
                                              "', which is no element type in this order of bytes");
  const std::vector<int64_t> dims(view_.shape, view_.shape + view_.ndim);
  describe(*element, dims, view_.buf);
  makeContiguous(what, flags);
  if (element->isPacked()) pack();
  return true;
}

void Argument::makeContiguous(const std::string& what, int flags) {
  if (PyBuffer_IsContiguous(&view_, 'C')) return;
  if (flags & PyBUF_WRITABLE)
    throw sdk::Error(CANDELA_INVALID_ARGUMENT,
                     what + ": an array with strides, expected a dense row-major one");
  copy_ = std::make_unique<uint8_t[]>(static_cast<size_t>(view_.len));
  if (PyBuffer_ToContiguous(copy_.get(), &view_, view_.len, 'C') != 0)
    throw py::error_already_set();
  argument_.tensor.data = copy_.get();
}

void Argument::pack() {
  const auto count = static_cast<uint64_t>(view_.len);
  auto packed = std::make_unique<uint8_t[]>(element_->bytesOf(count));
  packElements(*element_, static_cast<const uint8_t*>(argument_.tensor.data), count, packed.get());
  argument_.tensor.data = packed.get();
  copy_ = std::move(packed);
}

/// Of ml_dtypes: its bits, as integers that the buffer protocol knows.
bool Argument::readBits(const py::handle& array, const std::string& what, int flags) {
  const Element* const element = elementNamed(dtypeName(array));
  if (!element || element->format || !py::hasattr(array, "view")) return false;
  if ((flags & PyBUF_WRITABLE) && element->isPacked())
    throw sdk::Error(CANDELA_UNSUPPORTED, what + ": " + element->name +
                                              " is packed, and an array of NumPy is not: expected "
                                              "a candela.Tensor");
  const py::object bits = array.attr("view")(element->itemBytes() == 1 ? "u1" : "u2");
  return readBuffer(bits, what, element, flags);
}

bool Argument::readDlpack(const py::handle& array) {
  if (!py::hasattr(array, "__dlpack__")) return false;
  const auto tensor = Tensor::fromDlpack(py::reinterpret_borrow<py::object>(array));
  keeps_ = py::cast(tensor);
  readTensor(*tensor);
  return true;
}

/// What DLPack cannot give without a copy, and what has __array__ alone.
void Argument::readByNumpy(const py::handle& array, const std::string& what) {
  const bool isSequence = py::isinstance<py::list>(array) || py::isinstance<py::tuple>(array);
  if (isSequence)
    throw sdk::Error(CANDELA_UNSUPPORTED,
                     what + ": a " + classOf(array) + ", and sequences are no inputs of a call");
  const bool isArray = py::hasattr(array, "__array__") || py::hasattr(array, "__dlpack__");
  if (!isArray)
    throw sdk::Error(CANDELA_INVALID_ARGUMENT,
                     what + ": a " + classOf(array) +
                         " is no array, expected the buffer protocol, DLPack or __array__");
  const py::object numpy = py::module_::import("numpy");
  const char* const from = py::hasattr(array, "__array__") ? "asarray" : "from_dlpack";
  const py::object made = numpy.attr(from)(array);
  keeps_ = made;
  if (readBuffer(made, what, nullptr, 0) || readBits(made, what, 0)) return;
  throw sdk::Error(CANDELA_UNSUPPORTED, what + ": an array of dtype '" + dtypeName(made) +
                                            "', which is no element type");
}

void Argument::read(const py::handle& array, const std::string& what) {
  keeps_ = py::reinterpret_borrow<py::object>(array);
  if (py::isinstance<Tensor>(array)) return readTensor(array.cast<Tensor&>());
  if (readBuffer(array, what, nullptr, 0) || readBits(array, what, 0)) return;
  try {
    if (readDlpack(array)) return;
  } catch (const sdk::Error&) {
    // strides or an alignment that Candela does not take where it lies
  }
  readByNumpy(array, what);
}

void Argument::readWritable(const py::handle& array, const std::string& what) {
  keeps_ = py::reinterpret_borrow<py::object>(array);
  if (py::isinstance<Tensor>(array)) return readTensor(array.cast<Tensor&>());
  if (readBuffer(array, what, nullptr, PyBUF_WRITABLE)) return;
  if (readBits(array, what, PyBUF_WRITABLE)) return;
  const bool isReadOnly = PyObject_CheckBuffer(array.ptr()) != 0;
  if (!isReadOnly && readDlpack(array)) return;
  throw sdk::Error(CANDELA_INVALID_ARGUMENT,
                   what + ": a " + classOf(array) + " is no memory that can be written to");
}

} // namespace candela::python
