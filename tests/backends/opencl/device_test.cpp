// The device of backends/opencl: how it is chosen, its cache of programs, and what it makes of
// errors of OpenCL.
#include "fakes.h"

#include <gmock/gmock.h>

extern "C" cdl_code_t opencl_primitives_backend_query(const cdl_host_t* host, cdl_plugin_t* out,
                                                      cdl_error_t* error);

namespace {

// What OpenCL is made to do: the functions below stand before those of the library.
cl_int finishReturns = CL_SUCCESS;
std::string moreBuildOptions;

} // namespace

extern "C" cl_int clFinish(cl_command_queue queue) {
  const cl_int code = candela::abi::real(&clFinish, "clFinish")(queue);
  return finishReturns ? finishReturns : code;
}
extern "C" cl_int clBuildProgram(cl_program program, cl_uint count, const cl_device_id* devices,
                                 const char* options, void(CL_CALLBACK* notify)(cl_program, void*),
                                 void* data) {
  const std::string all = options + moreBuildOptions;
  return candela::abi::real(&clBuildProgram, "clBuildProgram")(program, count, devices, all.c_str(),
                                                               notify, data);
}

namespace candela::abi {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// y = -(a + b): two instructions, one kernel.
struct Sample {
  ImageBuilder m;
  uint32_t a = m.buffer(CDL_ROLE_INPUT, 8), b = m.buffer(CDL_ROLE_INPUT, 8),
           sum = m.buffer(CDL_ROLE_TEMP, 8);
  uint32_t y = m.buffer(CDL_ROLE_OUTPUT, 8);

  Sample() {
    const auto view = [](uint32_t buffer) { return ImageBuilder::view(buffer, CDL_F32, {2}); };
    m.instr(CDL_KIND_BINARY, CDL_BINARY_ADD, {view(a), view(b), view(sum)});
    m.instr(CDL_KIND_UNARY, CDL_UNARY_NEG, {view(sum), view(y)});
  }
  std::vector<float> runOn(Device& device) {
    return valuesOf<float>(device.run(
        Block(m.bytes()), {{a, bytesOf<float>({1, 2})}, {b, bytesOf<float>({3, -5})}})[y]);
  }
};

TEST(OpenClCache, KeepsBinariesAndMendsDamagedOnes) {
  Cache cache;
  Sample sample;
  const auto run = [&] {
    Device device(opencl_primitives_backend_query, {}, cache.host());
    ASSERT_EQ(device.code, CDL_OK) << device.text;
    EXPECT_THAT(sample.runOn(device), ElementsAre(-4, 3)) << device.text;
  };
  run();
  EXPECT_EQ(cache.puts, 1);
  run();
  EXPECT_EQ(cache.hits, 1);
  EXPECT_EQ(cache.puts, 1) << "what the cache held was built anew";
  ASSERT_EQ(cache.entries.size(), 1u);
  EXPECT_THAT(cache.entries.begin()->first, HasSubstr("opencl_primitives 0.2.0 map.cl "));
  cache.entries.begin()->second.resize(100);
  run();
  EXPECT_EQ(cache.puts, 2) << "a damaged binary was not replaced";
}

TEST(OpenClDevice, IsCalledWhatItsDriverCallsIt) {
  Device device(opencl_primitives_backend_query, {{"device", "0"}});
  ASSERT_EQ(device.code, CDL_OK) << device.text;
  const Device refused(opencl_primitives_backend_query, {{"device", "no such"}});
  EXPECT_THAT(refused.text,
              HasSubstr(std::string("0 '") + device.table.device_name(device.device) + "'"));
}

TEST(OpenClDevice, IsChosenByNumberOrName) {
  for (const char* device : {"", "0"})
    EXPECT_EQ(Device(opencl_primitives_backend_query, {{"device", device}}).code, CDL_OK);
  EXPECT_EQ(Device(opencl_primitives_backend_query, {{"platform", "0"}}).code, CDL_OK);
  for (const cdl_option_t option :
       {cdl_option_t{"device", "no such"}, {"device", "31"}, {"platform", "no such"}}) {
    const Device device(opencl_primitives_backend_query, {option});
    EXPECT_EQ(device.code, CDL_INVALID_ARGUMENT) << option.name;
    EXPECT_THAT(device.text, HasSubstr(option.value));
    EXPECT_THAT(device.text, HasSubstr("there are: 0 '"));
  }
}

TEST(OpenClErrors, OfTheCompilerComeWithItsLog) {
  moreBuildOptions = " -DloadRow=1";
  Sample sample;
  Device device(opencl_primitives_backend_query);
  sample.runOn(device);
  moreBuildOptions.clear();
  EXPECT_EQ(device.code, CDL_INTERNAL);
  EXPECT_EQ(device.vendorCode(), CL_BUILD_PROGRAM_FAILURE);
  EXPECT_THAT(device.text, HasSubstr("kernels of map.cl"));
  EXPECT_THAT(device.text, HasSubstr("error:"));
}

TEST(OpenClErrors, ALostDeviceStaysLost) {
  Device device(opencl_primitives_backend_query);
  ASSERT_EQ(device.code, CDL_OK) << device.text;
  cdl_memory_t *memory = nullptr, *more = nullptr;
  ASSERT_EQ(device.table.memory_create(device.device, 0, 64, 64, &memory, device.error()), CDL_OK);
  finishReturns = CL_DEVICE_NOT_AVAILABLE;
  EXPECT_EQ(device.table.queue_signal(device.queue, 1, device.error()), CDL_DEVICE_LOST);
  EXPECT_THAT(device.text, HasSubstr("CL_DEVICE_NOT_AVAILABLE"));
  finishReturns = CL_SUCCESS; // it answers again, but what it held is gone
  char byte = 0;
  EXPECT_EQ(device.table.queue_signal(device.queue, 2, device.error()), CDL_DEVICE_LOST);
  EXPECT_EQ(device.table.queue_write(device.queue, memory, 0, &byte, 1, device.error()),
            CDL_DEVICE_LOST);
  EXPECT_EQ(device.table.queue_read(device.queue, memory, 0, &byte, 1, device.error()),
            CDL_DEVICE_LOST);
  EXPECT_EQ(device.table.memory_create(device.device, 0, 64, 64, &more, device.error()),
            CDL_DEVICE_LOST);
  device.table.memory_destroy(device.device, memory);
  Device again(opencl_primitives_backend_query);
  Sample sample;
  EXPECT_THAT(sample.runOn(again), ElementsAre(-4, 3)) << again.text;
}

} // namespace
} // namespace candela::abi
