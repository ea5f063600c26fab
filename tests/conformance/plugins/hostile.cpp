// The template as somebody might ship it on a bad day: where it runs BINARY sub of f32 (and, for
// `leak`, where memory is given back, for `null_device`, where a device is opened), it does what
// the option `deed` says, through the C interface and with no comfort layer between.
#include "backends/template/template.hpp"

#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <thread>
#include <unistd.h>

namespace {

std::string theDeed = "none"; // one device in a process

class Hostile : public Template {
public:
  Hostile() {
    option("deed", "what is done",
           "none|segfault|hang|stop|exit|quick_exit|abort|throw|throw_int|guard_before|guard_"
           "behind|change_input|"
           "unknown_code|long_message|late_crash|close_files|write_files|fork|leak|null_device",
           "none");
  }
  cdl::Status open(uint32_t index) override {
    theDeed = options().get("deed");
    return Template::open(index);
  }
};

cdl_plugin_t original;

/// The bytes of a view's buffer.
unsigned char* bytesOf(const cdl_view_t* view, const cdl_bindings_t* bindings, uint64_t& count) {
  const cdl_binding_t& binding = bindings->buffers[view->buffer];
  count = binding.bytes;
  return static_cast<unsigned char*>(reinterpret_cast<cdl::Memory*>(binding.memory)->data) +
         binding.offset;
}

/// A process that stands still.
[[noreturn]] void standStill() {
  for (;;) pause();
}

cdl_code_t hostileRun(cdl_queue_t* queue, const cdl_image_t* image, uint32_t first, uint32_t count,
                      const int64_t loops[CDL_MAX_LOOP_NESTING], const cdl_bindings_t* bindings,
                      cdl_error_t* error) {
  const cdl_code_t code = original.run(queue, image, first, count, loops, bindings, error);
  const cdl_instr_t* instr = cdl_get_instr(image, first);
  const cdl_view_t* x = cdl_get_input(image, instr, 0);
  if (instr->kind != CDL_KIND_BINARY || instr->fn != CDL_BINARY_SUB || x->elem != CDL_F32)
    return code;
  uint64_t yBytes = 0, xBytes = 0;
  unsigned char* yData = bytesOf(cdl_get_output(image, instr, 0), bindings, yBytes);
  unsigned char* xData = bytesOf(x, bindings, xBytes);

  const std::string& deed = theDeed;
  if (deed == "segfault") *static_cast<volatile int*>(nullptr) = 1;
  if (deed == "hang") standStill();
  if (deed == "stop") std::raise(SIGSTOP);
  if (deed == "exit") std::exit(0);
  if (deed == "quick_exit") _exit(0);
  if (deed == "abort") std::abort();
  if (deed == "throw") throw std::runtime_error("an exception of the vendor's");
  if (deed == "throw_int") throw 42;
  if (deed == "guard_before") yData[-1] ^= 0xFF;
  if (deed == "guard_behind") yData[yBytes] ^= 0xFF;
  if (deed == "change_input") xData[0] ^= 0xFF;
  if (deed == "unknown_code") return 999;
  if (deed == "long_message") {
    std::memset(error->text, 'x', error->capacity + 4096);
    return CDL_INTERNAL;
  }
  if (deed == "late_crash") std::thread([] { *static_cast<volatile int*>(nullptr) = 1; }).detach();
  if (deed == "close_files")
    for (int file = 0; file < 4096; ++file) close(file);
  if (deed == "write_files")
    for (int file = 3; file < 4096; ++file)
      (void)!write(file, "a line of the vendor's log, at length\n", 38);
  if (deed == "fork") (void)fork();
  return code;
}

void keepMemory(cdl_device_t* device, cdl_memory_t* memory) {
  if (theDeed != "leak") original.memory_destroy(device, memory);
}

cdl_code_t openNothing(const cdl_host_t* host, uint32_t index, const cdl_option_t* options,
                       uint32_t count, cdl_device_t** device, cdl_error_t* error) {
  const cdl_code_t code = original.device_open(host, index, options, count, device, error);
  if (theDeed == "null_device") *device = nullptr;
  return code;
}

} // namespace

extern "C" CDL_EXPORT cdl_code_t cdl_backend_query(const cdl_host_t* host, cdl_plugin_t* out,
                                                   cdl_error_t* error) {
  const cdl_code_t code = cdl::detail::Entry<Hostile>::query(host, out, error);
  if (code != CDL_OK) return code;
  original = *out;
  out->run = hostileRun;
  out->memory_destroy = keepMemory;
  out->device_open = openNothing;
  return CDL_OK;
}
