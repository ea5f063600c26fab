// A small host: loads a plugin, runs an image through whichever door it has, and reads every buffer
// back.
#pragma once

#include "image_builder.h"

#include <candela/backend.hpp>

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <map>

namespace candela::abi {

inline cdl_backend_query_fn load(const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL); // never closed, as by the runtime
  if (!library) ADD_FAILURE() << dlerror();
  return library ? reinterpret_cast<cdl_backend_query_fn>(dlsym(library, CDL_BACKEND_QUERY_SYMBOL))
                 : nullptr;
}

inline cdl_host_t currentHost() {
  cdl_host_t host{};
  host.header = CDL_HEADER(cdl_host_t);
  return host;
}

/// The bytes of some numbers.
template <class T> std::vector<uint8_t> bytesOf(const std::vector<T>& values) {
  std::vector<uint8_t> bytes(values.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}
template <class T> std::vector<T> valuesOf(const std::vector<uint8_t>& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

using Buffers = std::map<uint32_t, std::vector<uint8_t>>;

class Device {
public:
  explicit Device(cdl_backend_query_fn query, const std::vector<cdl_option_t>& options = {},
                  const cdl_host_t& host = currentHost()) {
    table.header = CDL_HEADER(cdl_plugin_t);
    code = query(&host, &table, error());
    if (code == CDL_OK)
      code = table.device_open(&host, 0, options.data(), static_cast<uint32_t>(options.size()),
                               &device, error());
    if (code == CDL_OK) code = table.queue_create(device, &queue, error());
  }
  ~Device() {
    if (queue) table.queue_destroy(device, queue);
    if (device) table.device_close(device);
  }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  /// Runs the image with these contents (others are 0xa5); afterwards all buffers, or nothing with
  /// `code` set.
  Buffers run(const Block& block, const Buffers& contents) {
    const cdl_image_t* image = block.image();
    code = cdl_image_check(block.data(), block.size(), error());
    if (code != CDL_OK) return {};
    std::vector<cdl_binding_t> bindings(image->buffers.count);
    Buffers all;
    for (uint32_t i = 1; i < image->buffers.count; ++i) {
      auto& bytes = all[i];
      auto given = contents.find(i);
      bytes = given != contents.end() ? given->second
                                      : std::vector<uint8_t>(cdl_get_buffer(image, i)->bytes, 0xa5);
      EXPECT_EQ(bytes.size(), cdl_get_buffer(image, i)->bytes) << "buffer " << i;
      EXPECT_EQ(table.memory_create(device, 0, bytes.size(), 64, &bindings[i].memory, error()),
                CDL_OK)
          << text;
      EXPECT_EQ(
          table.queue_write(queue, bindings[i].memory, 0, bytes.data(), bytes.size(), error()),
          CDL_OK)
          << text;
      bindings[i].bytes = bytes.size();
    }
    const cdl_bindings_t bound = {CDL_HEADER(cdl_bindings_t), image->buffers.count, 0,
                                  bindings.data()};
    code = table.compile ? runProgram(image, bound) : runInstrs(image, bound);
    for (uint32_t i = 1; i < image->buffers.count; ++i) {
      if (code == CDL_OK) { // a queue whose work failed takes no more
        EXPECT_EQ(table.queue_read(queue, bindings[i].memory, 0, all[i].data(), all[i].size(),
                                   error(true)),
                  CDL_OK);
      }
      table.memory_destroy(device, bindings[i].memory);
    }
    return code == CDL_OK ? all : Buffers();
  }

  cdl_error_t* error(bool keepText = false) {
    if (!keepText) text[0] = 0;
    error_ = {keepText ? nullptr : text, sizeof text, 0};
    return &error_;
  }
  int32_t vendorCode() const { return vendorCode_; }

  cdl_plugin_t table{};
  cdl_device_t* device = nullptr;
  cdl_queue_t* queue = nullptr;
  cdl_code_t code = CDL_OK;
  char text[300] = "";
  cdl_refusal_t refusal{};

private:
  cdl_code_t runInstrs(const cdl_image_t* image, const cdl_bindings_t& bound) {
    return cdl::forEachInstr(image,
                             [&](uint32_t i, const int64_t* loops) {
                               const cdl_code_t c =
                                   table.run(queue, image, i, 1, loops, &bound, error());
                               vendorCode_ = error_.vendor_code;
                               return c == CDL_OK ? cdl::ok() : cdl::error(c, text);
                             })
        .code();
  }
  cdl_code_t runProgram(const cdl_image_t* image, const cdl_bindings_t& bound) {
    cdl_executable_t* executable = nullptr;
    refusal = {CDL_HEADER(cdl_refusal_t), 0, 0};
    const std::vector<const void*> constants(image->constants.count);
    cdl_code_t c = table.compile(device, image, constants.data(), &executable, &refusal, error());
    if (c != CDL_OK) return c;
    c = table.execute(queue, executable, &bound, nullptr, 0, {queue, ++submitted_}, error());
    if (c == CDL_OK) c = table.queue_wait(queue, submitted_, UINT64_MAX, error());
    table.executable_destroy(device, executable);
    return c;
  }

  cdl_error_t error_{};
  int32_t vendorCode_ = 0;
  uint64_t submitted_ = 0;
};

} // namespace candela::abi
