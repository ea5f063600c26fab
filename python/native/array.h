#pragma once

#include "python/native/tensor.h"

namespace candela::python {

/// An array that Python gave, as an argument of the library: a Tensor, or whatever has the buffer
/// protocol, DLPack or __array__. It is read where it lies, if it is dense and row-major; else it
/// is copied. The array is held as long as this. Not movable.
class Argument {
public:
  Argument() = default;
  ~Argument();
  Argument(const Argument&) = delete;
  Argument& operator=(const Argument&) = delete;

  /// `what` names it in messages: "input 'x'". Throws sdk::Error.
  void read(const py::handle& array, const std::string& what);
  /// The same of memory that is written to, which is never a copy.
  void readWritable(const py::handle& array, const std::string& what);

  bool isGiven() const { return element_ != nullptr; }
  const Element& element() const { return *element_; }
  const candela_tensor_t& tensor() const { return argument_.tensor; }
  /// With a buffer where that has to be used: the host does not see the memory.
  const candela_argument_t& argument() const { return argument_; }
  bool isVisible() const { return argument_.buffer == nullptr; }

private:
  void readTensor(Tensor& tensor);
  bool readBuffer(const py::handle& array, const std::string& what, const Element* element,
                  int flags);
  bool readBits(const py::handle& array, const std::string& what, int flags);
  bool readDlpack(const py::handle& array);
  void readByNumpy(const py::handle& array, const std::string& what);
  void makeContiguous(const std::string& what, int flags);
  void pack();
  void describe(const Element& element, const std::vector<int64_t>& dims, void* data);

  const Element* element_ = nullptr;
  candela_argument_t argument_{};
  py::object keeps_;
  Tensor::Hold hold_; ///< of a Tensor, which may be freed meanwhile
  Py_buffer view_{};
  std::unique_ptr<uint8_t[]> copy_;
};

} // namespace candela::python
