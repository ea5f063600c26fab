#pragma once

#include <candela/async.hpp>

#include <memory>
#include <optional>
#include <vector>

#include "python/native/elements.h"

namespace candela::python {

/// An open device. Models and tensors hold it as long as they need it.
class Device {
public:
  Device(const std::string& name, const std::vector<std::string>& options);

  candela_device_t* get() const;
  candela_device_properties_t properties() const;
  candela_device_memory_t memory() const;

private:
  std::shared_ptr<sdk::Device> device_;
  uint32_t generation_;
};

/// A dense row-major tensor on the host or on a device. Threads: one at a time, as NumPy's arrays.
class Tensor {
public:
  /// Zeros; on the host where there is no device.
  static std::shared_ptr<Tensor> create(const std::vector<int64_t>& dims, const Element& element,
                                        const Device* device);
  /// Memory of the host that is not set to anything.
  static std::shared_ptr<Tensor> onHost(const Element& element, std::vector<int64_t> dims);
  /// Memory of the host that `memory` keeps.
  static std::shared_ptr<Tensor> onMemory(const Element& element, std::vector<int64_t> dims,
                                          void* data, std::shared_ptr<void> memory);
  /// The memory of another library's tensor, without a copy.
  static std::shared_ptr<Tensor> fromDlpack(const py::object& other);

  const Element& element() const { return *element_; }
  const std::vector<int64_t>& dims() const { return dims_; }
  uint64_t elements() const;
  /// Of the whole tensor, packed.
  uint64_t bytes() const { return element_->bytesOf(elements()); }
  py::tuple shape() const;
  /// "host", or "acme:1".
  const std::string& device() const { return deviceId_; }
  bool isVisible() const { return data_ != nullptr; }

  /// Throws sdk::Error where it was freed or belongs to another process.
  void checkUsable() const;
  /// Null where the host does not see it.
  void* data() const { return data_; }
  /// For whatever takes a buffer; of host memory it is made on demand.
  candela_buffer_t* buffer();
  /// What keeps its memory, for whoever uses that longer than free() waits.
  struct Hold {
    std::shared_ptr<candela_buffer_t> buffer;
    std::shared_ptr<void> memory;
  };
  Hold hold() const { return {buffer_, memory_}; }

  /// Gives the memory back. Throws py::buffer_error while something looks at it.
  void free();
  void write(const py::object& array);
  /// An ndarray on the same memory where the host sees it and NumPy has the type, else a copy.
  py::object numpy();
  /// The ndarray of a tensor on the host that nobody else has; it is not freed any more.
  static py::object arrayOf(std::shared_ptr<Tensor> owner);
  void copyTo(Tensor& other);
  py::capsule dlpack();

  /// The buffer protocol.
  static int getBuffer(PyObject* self, Py_buffer* view, int flags);
  static void releaseBuffer(PyObject* self, Py_buffer* view);

private:
  Tensor(const Element& element, std::vector<int64_t> dims);
  void setBuffer(candela_buffer_t* buffer);
  bool fillView(Py_buffer& view, int flags);
  candela_tensor_t description() const;

  const Element* element_;
  std::vector<int64_t> dims_;
  std::vector<Py_ssize_t> extents_; ///< dims_, as the buffer protocol wants them
  std::vector<Py_ssize_t> strides_; ///< bytes
  std::shared_ptr<candela_buffer_t> buffer_;
  std::shared_ptr<void> memory_;
  void* data_ = nullptr;
  std::string deviceId_ = "host";
  uint32_t generation_;
  uint32_t views_ = 0; ///< of the buffer protocol
  bool isFreed_ = false;
};

/// Product of dims; throws sdk::Error for a dim below 0 and for too many elements.
uint64_t elementCount(const std::vector<int64_t>& dims);

/// Makes a call of the library without the interpreter's lock and throws where it fails.
template <typename F> void checkOutside(F&& call);

} // namespace candela::python

#include "python/native/process.h"

template <typename F> void candela::python::checkOutside(F&& call) {
  const Outside outside;
  sdk::detail::check(std::forward<F>(call));
}
