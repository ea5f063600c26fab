#include "python/native/tensor.h"

#include <cstdlib>
#include <cstring>
#include <dlpack/dlpack.h>

#include "python/native/array.h"

namespace candela::python {
namespace {

constexpr size_t kAlignment = 64; ///< bytes: a line of the cache
/// So many that their bits, up to 64 of each, are counted in 64 bits.
constexpr uint64_t kMostElements = uint64_t(INT64_MAX) / 64;
constexpr const char* kCapsule = "dltensor";
constexpr const char* kUsedCapsule = "used_dltensor";

[[noreturn]] void fail(candela_status_t status, const std::string& message) {
  throw sdk::Error(status, message);
}

std::vector<Py_ssize_t> denseStrides(const std::vector<int64_t>& dims, uint32_t itemBytes) {
  std::vector<Py_ssize_t> strides(dims.size());
  Py_ssize_t stride = itemBytes;
  for (size_t d = dims.size(); d-- > 0;) {
    strides[d] = stride;
    stride *= static_cast<Py_ssize_t>(std::max<int64_t>(dims[d], 1));
  }
  return strides;
}

std::shared_ptr<void> hostMemory(uint64_t bytes) {
  const uint64_t rounded =
      (std::max<uint64_t>(bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
  void* const data = std::aligned_alloc(kAlignment, rounded);
  if (!data) fail(CANDELA_OUT_OF_MEMORY, "cannot allocate " + std::to_string(bytes) + " bytes");
  return {data, std::free};
}

/// A capsule that nobody took its tensor out of.
void destroyCapsule(PyObject* capsule) {
  if (!PyCapsule_IsValid(capsule, kCapsule)) return;
  auto* const tensor = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule, kCapsule));
  if (tensor && tensor->deleter) tensor->deleter(tensor);
}

} // namespace

uint64_t elementCount(const std::vector<int64_t>& dims) {
  uint64_t count = 1;
  for (const int64_t dim : dims) {
    const bool isPossible = dim >= 0 && !__builtin_mul_overflow(count, uint64_t(dim), &count);
    if (!isPossible || count > kMostElements)
      fail(CANDELA_INVALID_ARGUMENT, "a shape with a dim of " + std::to_string(dim));
  }
  return count;
}

// ---- Device

Device::Device(const std::string& name, const std::vector<std::string>& options)
    : generation_(processGeneration()) {
  const Outside outside;
  const uint32_t made = generation_;
  device_ = std::shared_ptr<sdk::Device>(new sdk::Device(sdk::Device::open(name, options)),
                                         [made](sdk::Device* device) {
                                           if (made == processGeneration()) delete device;
                                         });
}

candela_device_t* Device::get() const {
  checkProcess(generation_, "the device");
  return device_->get();
}

candela_device_properties_t Device::properties() const {
  checkProcess(generation_, "the device");
  return device_->properties();
}

candela_device_memory_t Device::memory() const {
  checkProcess(generation_, "the device");
  return device_->memory();
}

// ---- Tensor

Tensor::Tensor(const Element& element, std::vector<int64_t> dims)
    : element_(&element), dims_(std::move(dims)), extents_(dims_.begin(), dims_.end()),
      strides_(denseStrides(dims_, element.itemBytes())), generation_(processGeneration()) {}

std::shared_ptr<Tensor> Tensor::onMemory(const Element& element, std::vector<int64_t> dims,
                                         void* data, std::shared_ptr<void> memory) {
  std::shared_ptr<Tensor> tensor(new Tensor(element, std::move(dims)));
  tensor->data_ = data;
  tensor->memory_ = std::move(memory);
  return tensor;
}

std::shared_ptr<Tensor> Tensor::onHost(const Element& element, std::vector<int64_t> dims) {
  std::shared_ptr<void> memory = hostMemory(element.bytesOf(elementCount(dims)));
  void* const data = memory.get();
  return onMemory(element, std::move(dims), data, std::move(memory));
}

std::shared_ptr<Tensor> Tensor::create(const std::vector<int64_t>& dims, const Element& element,
                                       const Device* device) {
  const uint64_t bytes = element.bytesOf(elementCount(dims));
  if (!device) {
    std::shared_ptr<Tensor> zeros = onHost(element, dims);
    std::memset(zeros->data(), 0, bytes);
    return zeros;
  }
  candela_device_t* const on = device->get();
  std::shared_ptr<Tensor> tensor(new Tensor(element, dims));
  candela_buffer_t* buffer = nullptr;
  checkOutside([&](char* error, size_t size) {
    return candela_buffer_create(on, std::max<uint64_t>(bytes, 1), &buffer, error, size);
  });
  tensor->setBuffer(buffer);
  tensor->data_ = candela_buffer_data(buffer);
  tensor->deviceId_ = device->properties().id;
  return tensor;
}

void Tensor::setBuffer(candela_buffer_t* buffer) {
  const uint32_t made = generation_;
  buffer_ = std::shared_ptr<candela_buffer_t>(buffer, [made](candela_buffer_t* owned) {
    if (made == processGeneration()) candela_buffer_free(owned);
  });
}

std::shared_ptr<Tensor> Tensor::fromDlpack(const py::object& other) {
  const py::object capsule =
      PyCapsule_CheckExact(other.ptr()) ? other : py::object(other.attr("__dlpack__")());
  if (!PyCapsule_IsValid(capsule.ptr(), kCapsule))
    fail(CANDELA_INVALID_ARGUMENT, "__dlpack__ gave no capsule 'dltensor', or a used one");
  auto* const managed =
      static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule.ptr(), kCapsule));
  candela_tensor_t described{};
  candela_buffer_t* buffer = nullptr;
  sdk::detail::check([&](char* error, size_t size) {
    return candela_buffer_from_dlpack(managed, &described, &buffer, error, size);
  });
  PyCapsule_SetName(capsule.ptr(), kUsedCapsule);
  const Element& element = *elementOf(described.elem);
  std::shared_ptr<Tensor> tensor(
      new Tensor(element, std::vector<int64_t>(described.dims, described.dims + described.rank)));
  tensor->setBuffer(buffer);
  tensor->data_ = candela_buffer_data(buffer);
  return tensor;
}

uint64_t Tensor::elements() const { return elementCount(dims_); }

py::tuple Tensor::shape() const {
  py::tuple shape(dims_.size());
  for (size_t d = 0; d < dims_.size(); ++d) shape[d] = py::int_(dims_[d]);
  return shape;
}

void Tensor::checkUsable() const {
  if (isFreed_) fail(CANDELA_INVALID_ARGUMENT, "the tensor was freed");
  if (deviceId_ != "host") checkProcess(generation_, "the tensor");
}

candela_tensor_t Tensor::description() const {
  candela_tensor_t description{};
  if (dims_.size() > CANDELA_MAX_RANK) fail(CANDELA_UNSUPPORTED, "a tensor of rank above 16");
  description.elem = element_->id;
  description.rank = static_cast<uint32_t>(dims_.size());
  std::copy(dims_.begin(), dims_.end(), description.dims);
  description.bytes = bytes();
  return description;
}

candela_buffer_t* Tensor::buffer() {
  checkUsable();
  if (buffer_) return buffer_.get();
  const auto release = [](void* context) { delete static_cast<std::shared_ptr<void>*>(context); };
  auto keeps = std::make_unique<std::shared_ptr<void>>(memory_);
  candela_buffer_t* buffer = nullptr;
  sdk::detail::check([&](char* error, size_t size) {
    return candela_buffer_wrap(data_, bytes(), release, keeps.get(), &buffer, error, size);
  });
  keeps.release();
  setBuffer(buffer);
  return buffer;
}

void Tensor::free() {
  if (views_)
    throw py::buffer_error("the tensor's memory is in use by " + std::to_string(views_) +
                           " views of the buffer protocol");
  isFreed_ = true;
  buffer_.reset();
  memory_.reset();
  data_ = nullptr;
}

void Tensor::write(const py::object& array) {
  checkUsable();
  Argument from;
  from.read(array, "the array");
  const candela_tensor_t& given = from.tensor();
  const std::vector<int64_t> dims(given.dims, given.dims + given.rank);
  if (&from.element() != element_ || dims != dims_)
    fail(CANDELA_INVALID_ARGUMENT,
         "the tensor is " + typeText(*element_, dims_.data(), uint32_t(dims_.size())) + " but " +
             typeText(from.element(), given.dims, given.rank) + " was given");
  if (given.bytes == 0) return;
  candela_buffer_t* const to = buffer();
  candela_buffer_t* const source = from.argument().buffer;
  const Hold held = hold(); // against free() in another thread
  checkOutside([&](char* error, size_t size) {
    if (source) return candela_buffer_copy(to, 0, source, 0, given.bytes, error, size);
    return candela_buffer_write(to, 0, given.data, given.bytes, error, size);
  });
}

void Tensor::copyTo(Tensor& other) {
  checkUsable();
  other.checkUsable();
  if (other.bytes() != bytes())
    fail(CANDELA_INVALID_ARGUMENT, "a tensor of " + std::to_string(bytes()) +
                                       " bytes does not fit one of " +
                                       std::to_string(other.bytes()));
  if (bytes() == 0) return;
  candela_buffer_t* const from = buffer();
  candela_buffer_t* const to = other.buffer();
  const Hold fromHeld = hold(); // against free() in another thread
  const Hold toHeld = other.hold();
  const uint64_t size = bytes();
  checkOutside([&](char* error, size_t errorSize) {
    return candela_buffer_copy(to, 0, from, 0, size, error, errorSize);
  });
}

py::object Tensor::numpy() {
  checkUsable();
  if (isVisible()) {
    auto held = std::make_shared<Hold>(hold());
    return arrayOf(onMemory(*element_, dims_, data_, std::move(held)));
  }
  const std::shared_ptr<Tensor> copy = onHost(*element_, dims_);
  copyTo(*copy);
  return arrayOf(copy);
}

py::object Tensor::arrayOf(std::shared_ptr<Tensor> owner) {
  const Element& element = *owner->element_;
  if (element.isPacked()) {
    const std::shared_ptr<Tensor> bytes = onHost(*elementNamed("u8"), owner->dims_);
    unpackElements(element, static_cast<const uint8_t*>(owner->data_), owner->elements(),
                   static_cast<uint8_t*>(bytes->data_));
    owner = bytes;
  }
  ++owner->views_; // NumPy holds the object, but no view of the buffer protocol
  py::object array = arrayOn(py::cast(owner), element, owner->shape());
  if (array.is_none())
    fail(CANDELA_UNSUPPORTED,
         std::string("NumPy has no ") + element.dtype + " here: it comes with numpy or ml_dtypes");
  return array;
}

py::capsule Tensor::dlpack() {
  const candela_tensor_t description = this->description();
  candela_buffer_t* const from = buffer();
  DLManagedTensor* tensor = nullptr;
  sdk::detail::check([&](char* error, size_t size) {
    return candela_buffer_to_dlpack(from, &description, &tensor, error, size);
  });
  return py::capsule(tensor, kCapsule, destroyCapsule);
}

// ---- Buffer protocol

bool Tensor::fillView(Py_buffer& view, int flags) {
  checkUsable();
  if (!isVisible()) fail(CANDELA_UNSUPPORTED, "the host does not see the memory of the tensor");
  const bool wantsFormat = (flags & PyBUF_FORMAT) == PyBUF_FORMAT;
  const bool hasItems = element_->format != nullptr || (!wantsFormat && !element_->isPacked());
  if (!hasItems)
    fail(CANDELA_UNSUPPORTED,
         std::string("the buffer protocol has no format for ") + element_->name);
  view.buf = data_;
  view.len = static_cast<Py_ssize_t>(bytes());
  view.itemsize = element_->itemBytes();
  view.readonly = 0;
  view.format = wantsFormat ? const_cast<char*>(element_->format) : nullptr;
  view.ndim = static_cast<int>(dims_.size());
  view.shape = (flags & PyBUF_ND) == PyBUF_ND ? extents_.data() : nullptr;
  view.strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? strides_.data() : nullptr;
  view.suboffsets = nullptr;
  view.internal = nullptr;
  ++views_;
  return true;
}

int Tensor::getBuffer(PyObject* self, Py_buffer* view, int flags) {
  view->obj = nullptr;
  try {
    py::handle(self).cast<Tensor&>().fillView(*view, flags);
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_BufferError, error.what());
    return -1;
  }
  view->obj = py::handle(self).inc_ref().ptr();
  return 0;
}

void Tensor::releaseBuffer(PyObject* self, Py_buffer*) {
  --py::handle(self).cast<Tensor&>().views_;
}

} // namespace candela::python
