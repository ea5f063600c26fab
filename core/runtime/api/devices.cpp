// Devices and buffers of async.h.
#include <cstdlib>
#include <dlpack/dlpack.h>

#include "core/compiler/driver/steady_json.h"
#include "core/runtime/api/arguments.h"
#include "core/runtime/api/objects.h"
#include "core/support/text/scan.h"

using namespace candela;
using namespace runtime::api;
using runtime::session::BufferRef, runtime::session::RunStats, runtime::session::Transfers;

namespace {

Result<runtime::plugin::Options> parseDeviceOptions(const char* const* options) {
  runtime::plugin::Options parsed;
  for (const char* const* o = options; o && *o; ++o) {
    CDL_ASSIGN(auto option, splitOption(*o));
    parsed[std::move(option.first)] = std::move(option.second);
  }
  return parsed;
}

std::string profilesText(const capabilities::Target& target) {
  std::vector<std::string_view> names;
#define CANDELA_PROFILE(name, id, elems)                                                           \
  if (target.claims(id)) names.push_back(#name);
  CDL_PROFILES(CANDELA_PROFILE)
#undef CANDELA_PROFILE
  return fmt::format("{}", fmt::join(names, " "));
}

/// A buffer that is made or fails as a whole.
template <typename F> Status createBuffer(candela_buffer_t** out, F&& fill) {
  if (!out) return badArgument("nowhere to put the buffer");
  *out = nullptr;
  auto buffer = std::make_unique<candela_buffer>();
  buffer->transfers = std::make_shared<Transfers>();
  CDL_TRY(fill(*buffer)); // last: after a failure nothing is released that is the caller's
  *out = buffer.release();
  return Status::ok();
}

Status fillBuffer(candela_buffer& buffer, candela_device* device, uint64_t bytes) {
  if (bytes == 0) return badArgument("a buffer of 0 bytes, expected at least 1");
  CDL_ASSIGN(const Bytes zeros, Bytes::allocate(bytes));
  buffer.bytes = bytes;
  if (!device) {
    buffer.host = std::make_shared<Bytes>(zeros);
    buffer.at = BufferRef::onHost(zeros.data());
    return Status::ok();
  }
  const uint64_t alignment = std::max<uint64_t>(device->device->target().alignment(), 64);
  CDL_ASSIGN(buffer.at.memory, device->device->allocateWith(zeros, 0, alignment));
  buffer.at.host = static_cast<std::byte*>(buffer.at.memory->mapped());
  buffer.at.device = device->device;
  buffer.at.space = 1;
  buffer.transfers = device->transfers;
  return Status::ok();
}

Status checkRange(const candela_buffer_t* buffer, uint64_t offset, uint64_t bytes) {
  if (!buffer) return badArgument("no buffer");
  if (offset <= buffer->bytes && bytes <= buffer->bytes - offset) return Status::ok();
  return badArgument("{} bytes from offset {} leave a buffer of {}", bytes, offset, buffer->bytes);
}

Status move(Transfers& transfers, const BufferRef& from, const BufferRef& to, uint64_t bytes) {
  RunStats stats;
  return transfers.move(from, to, bytes, stats);
}

// ---- DLPack

constexpr uint8_t kDlBool = 6; // of later versions than 0.6; no other meaning there

struct DlType {
  Elem elem;
  uint8_t code, bits;
};
constexpr DlType kDlTypes[] = {
    {Elem::f32_, kDLFloat, 32}, {Elem::f16_, kDLFloat, 16}, {Elem::bf16_, kDLBfloat, 16},
    {Elem::f64_, kDLFloat, 64}, {Elem::i8_, kDLInt, 8},     {Elem::u8_, kDLUInt, 8},
    {Elem::i16_, kDLInt, 16},   {Elem::u16_, kDLUInt, 16},  {Elem::i32_, kDLInt, 32},
    {Elem::u32_, kDLUInt, 32},  {Elem::i64_, kDLInt, 64},   {Elem::u64_, kDLUInt, 64},
    {Elem::bool_, kDlBool, 8}};

Status checkDense(const DLTensor& tensor, std::span<const int64_t> dims) {
  if (!tensor.strides) return Status::ok();
  const std::vector<int64_t> dense = denseStrides(dims);
  for (size_t d = 0; d < dims.size(); ++d)
    if (dims[d] > 1 && tensor.strides[d] != dense[d])
      return failure(Code::unsupported, "a DLPack tensor of shape {} with a stride of {} in dim {}",
                     shapeText(dims), tensor.strides[d], d);
  return Status::ok();
}

Status readDlpack(const DLTensor& tensor, candela_tensor_t& description) {
  if (tensor.device.device_type != kDLCPU)
    return failure(Code::unsupported, "a DLPack tensor on device type {}, expected the CPU (1)",
                   int(tensor.device.device_type));
  if (tensor.ndim < 0 || tensor.ndim > CANDELA_MAX_RANK)
    return failure(Code::unsupported, "a DLPack tensor of rank {}", tensor.ndim);
  const auto known = std::ranges::find_if(kDlTypes, [&](const DlType& type) {
    return type.code == tensor.dtype.code && type.bits == tensor.dtype.bits;
  });
  if (known == std::end(kDlTypes) || tensor.dtype.lanes != 1)
    return failure(Code::unsupported, "a DLPack tensor of type code {}, {} bits, {} lanes",
                   tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes);
  const Shape dims(tensor.shape, tensor.shape + tensor.ndim);
  const auto elements = elementCount(dims);
  if (!elements) return badArgument("a DLPack tensor of impossible shape {}", shapeText(dims));
  CDL_TRY(checkDense(tensor, dims));
  describeType(known->elem, dims, description);
  description.data = nullptr;
  description.bytes = elemBytes(known->elem, static_cast<uint64_t>(*elements));
  return Status::ok();
}

Status wrapHost(candela_buffer& buffer, void* data, uint64_t bytes) {
  if (!data || bytes == 0) return badArgument("a buffer of {} bytes at {}", bytes, fmt::ptr(data));
  if (reinterpret_cast<uintptr_t>(data) % CANDELA_ALIGNMENT != 0)
    return badArgument("bytes at {}, which is not aligned to {}", fmt::ptr(data),
                       CANDELA_ALIGNMENT);
  buffer.at = BufferRef::onHost(static_cast<std::byte*>(data));
  buffer.bytes = bytes;
  return Status::ok();
}

/// A DLPack tensor of a buffer, and what it needs as long as it lives.
struct OwnedTensor {
  DLManagedTensor managed{};
  std::vector<int64_t> dims;
  candela_buffer buffer;
};

Status fillTensor(OwnedTensor& owned, const candela_tensor_t& description) {
  if (!owned.buffer.at.host)
    return failure(Code::unsupported, "the host does not see the memory of the buffer");
  const auto elem = static_cast<Elem>(description.elem);
  const auto known = std::ranges::find(kDlTypes, elem, &DlType::elem);
  if (known == std::end(kDlTypes) || description.rank > CANDELA_MAX_RANK)
    return badArgument("element type {} or rank {} is out of range", int(description.elem),
                       description.rank);
  owned.dims.assign(description.dims, description.dims + description.rank);
  const auto elements = elementCount(owned.dims);
  const uint64_t bytes = elemBytes(elem, static_cast<uint64_t>(elements.value_or(0)));
  if (!elements || bytes > owned.buffer.bytes)
    return badArgument("{} needs {} bytes, the buffer has {}", typeText(elem, owned.dims), bytes,
                       owned.buffer.bytes);
  DLTensor& tensor = owned.managed.dl_tensor;
  tensor.data = owned.buffer.at.host;
  tensor.device = {kDLCPU, 0};
  tensor.ndim = static_cast<int>(owned.dims.size());
  tensor.dtype = {known->code, known->bits, 1};
  tensor.shape = owned.dims.data();
  owned.managed.manager_ctx = &owned;
  owned.managed.deleter = [](DLManagedTensor* self) {
    delete static_cast<OwnedTensor*>(self->manager_ctx);
  };
  return Status::ok();
}

} // namespace

extern "C" {

char* candela_devices_json(const char* const* paths) {
  return guardedText([&] {
    driver::SteadyJson devices = driver::SteadyJson::array(), errors = driver::SteadyJson::array();
    std::vector<std::string> names = runtime::plugin::listPlugins();
    for (const char* const* path = paths; path && *path; ++path) names.emplace_back(*path);
    for (const std::string& name : names) {
      const auto plugin = runtime::plugin::findPlugin(name);
      if (!plugin) {
        errors.push_back({{"origin", name}, {"error", plugin.status().message()}});
        continue;
      }
      for (uint32_t index = 0; index < (*plugin)->deviceCount(); ++index)
        devices.push_back({{"id", text::deviceNameText((*plugin)->name(), index)},
                           {"backend", (*plugin)->name()},
                           {"version", (*plugin)->version()},
                           {"description", (*plugin)->description()},
                           {"index", index},
                           {"origin", (*plugin)->origin()}});
    }
    const driver::SteadyJson all = {
        {"schema", "candela.devices/1"}, {"devices", devices}, {"errors", errors}};
    return text::shownJson(all.dump(1, ' ', false, driver::SteadyJson::error_handler_t::replace));
  });
}

candela_status_t candela_device_open(const char* name, const char* const* options,
                                     candela_device_t** device, char* error, size_t error_size) {
  if (device) *device = nullptr;
  return guarded(error, error_size, [&]() -> Status {
    if (!name || !device) return badArgument("no name, or nowhere to put the device");
    CDL_ASSIGN(const runtime::plugin::Options parsed, parseDeviceOptions(options));
    CDL_ASSIGN(const runtime::plugin::FoundDevice found, runtime::plugin::findDevice(name));
    auto made = std::make_unique<candela_device>();
    CDL_ASSIGN(made->device, found.open(parsed));
    made->transfers = std::make_shared<Transfers>();
    made->id = made->device->id();
    made->name = made->device->name();
    made->backend = made->device->plugin().name();
    made->version = made->device->plugin().version();
    made->profiles = profilesText(made->device->target());
    *device = made.release();
    return Status::ok();
  });
}

void candela_device_close(candela_device_t* device) { delete device; }

candela_status_t candela_device_properties(const candela_device_t* device,
                                           candela_device_properties_t* properties) {
  return guarded(nullptr, 0, [&]() -> Status {
    if (!device || !properties) return badArgument("no device, or nowhere to put its properties");
    const capabilities::Target& target = device->device->target();
    const cdl_space_t& space = target.spaces().front().space;
    candela_device_properties_t filled{};
    filled.index = device->device->index();
    filled.id = device->id.c_str();
    filled.name = device->name.c_str();
    filled.backend = device->backend.c_str();
    filled.version = device->version.c_str();
    filled.profiles = device->profiles.c_str();
    filled.host_mapped = (space.flags & CDL_SPACE_HOST_MAPPED) != 0;
    filled.compiles = device->device->compiles();
    filled.capacity_bytes = space.capacity_bytes;
    filled.alignment = space.alignment;
    return fillStruct(*properties, filled);
  });
}

candela_status_t candela_device_memory(const candela_device_t* device,
                                       candela_device_memory_t* memory) {
  return guarded(nullptr, 0, [&]() -> Status {
    if (!device || !memory) return badArgument("no device, or nowhere to put the figures");
    const runtime::plugin::MemoryUse use = device->device->memoryUse();
    candela_device_memory_t filled{};
    filled.bytes_in_use = use.now;
    filled.most_bytes = use.most;
    return fillStruct(*memory, filled);
  });
}

candela_status_t candela_buffer_create(candela_device_t* device, uint64_t bytes,
                                       candela_buffer_t** buffer, char* error, size_t error_size) {
  return guarded(error, error_size, [&] {
    return createBuffer(buffer,
                        [&](candela_buffer& made) { return fillBuffer(made, device, bytes); });
  });
}

candela_status_t candela_buffer_wrap(void* data, uint64_t bytes, void (*release)(void* context),
                                     void* context, candela_buffer_t** buffer, char* error,
                                     size_t error_size) {
  return guarded(error, error_size, [&] {
    return createBuffer(buffer, [&](candela_buffer& made) -> Status {
      CDL_TRY(wrapHost(made, data, bytes));
      if (release)
        made.host = std::shared_ptr<const void>(data, [=](const void*) { release(context); });
      return Status::ok();
    });
  });
}

void candela_buffer_free(candela_buffer_t* buffer) { delete buffer; }

uint64_t candela_buffer_bytes(const candela_buffer_t* buffer) { return buffer ? buffer->bytes : 0; }

void* candela_buffer_data(const candela_buffer_t* buffer) {
  return buffer ? buffer->at.host : nullptr;
}

candela_status_t candela_buffer_write(candela_buffer_t* buffer, uint64_t offset, const void* from,
                                      uint64_t bytes, char* error, size_t error_size) {
  return guarded(error, error_size, [&]() -> Status {
    CDL_TRY(checkRange(buffer, offset, bytes));
    if (!from && bytes) return badArgument("no bytes to write");
    return move(*buffer->transfers, BufferRef::onHost(static_cast<const std::byte*>(from)),
                buffer->from(offset), bytes);
  });
}

candela_status_t candela_buffer_read(const candela_buffer_t* buffer, uint64_t offset, void* to,
                                     uint64_t bytes, char* error, size_t error_size) {
  return guarded(error, error_size, [&]() -> Status {
    CDL_TRY(checkRange(buffer, offset, bytes));
    if (!to && bytes) return badArgument("nowhere to read to");
    return move(*buffer->transfers, buffer->from(offset),
                BufferRef::onHost(static_cast<const std::byte*>(to)), bytes);
  });
}

candela_status_t candela_buffer_copy(candela_buffer_t* to, uint64_t to_offset,
                                     const candela_buffer_t* from, uint64_t from_offset,
                                     uint64_t bytes, char* error, size_t error_size) {
  return guarded(error, error_size, [&]() -> Status {
    CDL_TRY(checkRange(to, to_offset, bytes).context("to"));
    CDL_TRY(checkRange(from, from_offset, bytes).context("from"));
    return move(*to->transfers, from->from(from_offset), to->from(to_offset), bytes);
  });
}

candela_status_t candela_buffer_from_dlpack(DLManagedTensor* tensor, candela_tensor_t* description,
                                            candela_buffer_t** buffer, char* error,
                                            size_t error_size) {
  return guarded(error, error_size, [&] {
    return createBuffer(buffer, [&](candela_buffer& made) -> Status {
      if (!tensor || !description) return badArgument("no tensor, or nowhere to describe it");
      CDL_TRY(readDlpack(tensor->dl_tensor, *description));
      std::byte* const data =
          static_cast<std::byte*>(tensor->dl_tensor.data) + tensor->dl_tensor.byte_offset;
      CDL_TRY(wrapHost(made, data, description->bytes));
      made.host = std::shared_ptr<const void>(tensor, [tensor](const void*) {
        if (tensor->deleter) tensor->deleter(tensor);
      });
      return Status::ok();
    });
  });
}

candela_status_t candela_buffer_to_dlpack(candela_buffer_t* buffer,
                                          const candela_tensor_t* description,
                                          DLManagedTensor** tensor, char* error,
                                          size_t error_size) {
  if (tensor) *tensor = nullptr;
  return guarded(error, error_size, [&]() -> Status {
    if (!buffer || !description || !tensor)
      return badArgument("no buffer, no description, or nowhere to put the tensor");
    auto owned = std::make_unique<OwnedTensor>();
    owned->buffer = *buffer;
    CDL_TRY(fillTensor(*owned, *description));
    *tensor = &owned.release()->managed;
    return Status::ok();
  });
}

} // extern "C"
