// backends/opencl by the program API: the same product by all its kernels, its cache, what it tunes
// and times, and what it makes of errors of OpenCL.
#include "fakes.h"

#include <chrono>
#include <gmock/gmock.h>

extern "C" cdl_code_t opencl_backend_query(const cdl_host_t* host, cdl_plugin_t* out,
                                           cdl_error_t* error);

namespace {

// What OpenCL is made to do: the functions below stand before those of the library.
struct Fakes {
  std::string platform;     // its name; empty: the real one
  std::string buildOptions; // more of them
  cl_int bufferReturns = CL_SUCCESS;
  cl_int enqueueReturns = CL_SUCCESS;
  int builds = 0;
} fakes;

} // namespace

using candela::abi::real;

extern "C" cl_int clGetPlatformInfo(cl_platform_id platform, cl_platform_info what, size_t size,
                                    void* value, size_t* needed) {
  if (what != CL_PLATFORM_NAME || fakes.platform.empty())
    return real(&clGetPlatformInfo, "clGetPlatformInfo")(platform, what, size, value, needed);
  std::memcpy(value, fakes.platform.c_str(), fakes.platform.size() + 1);
  return CL_SUCCESS;
}
extern "C" cl_int clBuildProgram(cl_program program, cl_uint count, const cl_device_id* devices,
                                 const char* options, void(CL_CALLBACK* notify)(cl_program, void*),
                                 void* data) {
  ++fakes.builds;
  const std::string all = options + fakes.buildOptions;
  return real(&clBuildProgram, "clBuildProgram")(program, count, devices, all.c_str(), notify,
                                                 data);
}
extern "C" cl_mem clCreateBuffer(cl_context context, cl_mem_flags flags, size_t size, void* data,
                                 cl_int* code) {
  if (fakes.bufferReturns == CL_SUCCESS)
    return real(&clCreateBuffer, "clCreateBuffer")(context, flags, size, data, code);
  *code = fakes.bufferReturns;
  return nullptr;
}
extern "C" cl_int clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint dims,
                                         const size_t* offset, const size_t* global,
                                         const size_t* local, cl_uint waits, const cl_event* wait,
                                         cl_event* event) {
  if (fakes.enqueueReturns != CL_SUCCESS) return fakes.enqueueReturns;
  return real(&clEnqueueNDRangeKernel, "clEnqueueNDRangeKernel")(queue, kernel, dims, offset,
                                                                 global, local, waits, wait, event);
}

namespace candela::abi {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

constexpr int64_t kM = 37, kK = 19, kN = 21; // no multiple of any tile

/// y = a * b, and y = -y behind it.
struct Product {
  ImageBuilder m;
  uint32_t a = m.buffer(CDL_ROLE_INPUT, kM* kK * 4), b = m.buffer(CDL_ROLE_INPUT, kK* kN * 4);
  uint32_t product = m.buffer(CDL_ROLE_TEMP, kM* kN * 4);
  uint32_t y = m.buffer(CDL_ROLE_OUTPUT, kM* kN * 4);
  std::vector<float> left, right, expected;

  Product() {
    const auto view = [](uint32_t buffer, int64_t rows, int64_t columns) {
      return ImageBuilder::view(buffer, CDL_F32, {1, rows, columns});
    };
    m.instr(CDL_KIND_MATMUL, 0, {view(a, kM, kK), view(b, kK, kN), view(product, kM, kN)});
    m.instr(CDL_KIND_UNARY, CDL_UNARY_NEG, {view(product, kM, kN), view(y, kM, kN)});
    // Small whole numbers: every order of the sums is exact.
    for (int64_t i = 0; i < kM * kK; ++i) left.push_back(static_cast<float>(i * 7 % 11 - 5));
    for (int64_t i = 0; i < kK * kN; ++i) right.push_back(static_cast<float>(i * 5 % 13 - 6));
    for (int64_t i = 0; i < kM; ++i)
      for (int64_t j = 0; j < kN; ++j) {
        float sum = 0;
        for (int64_t k = 0; k < kK; ++k)
          sum += left[static_cast<size_t>(i * kK + k)] * right[static_cast<size_t>(k * kN + j)];
        expected.push_back(-sum);
      }
  }
  std::vector<float> runOn(Device& device) {
    return valuesOf<float>(
        device.run(Block(m.bytes()), {{a, bytesOf(left)}, {b, bytesOf(right)}})[y]);
  }
};

/// Each test begins with the real OpenCL.
class OpenClProgram : public testing::Test {
protected:
  OpenClProgram() { fakes = {}; }
  ~OpenClProgram() override { fakes = {}; }

  Product product_;
};

TEST_F(OpenClProgram, IsRightInEachStyleAndWithPartOfTheDevice) {
  for (const std::vector<cdl_option_t>& options :
       {std::vector<cdl_option_t>{}, {{"style", "cpu"}}, {{"style", "gpu"}}, {{"threads", "1"}}}) {
    Device device(opencl_backend_query, options);
    EXPECT_EQ(product_.runOn(device), product_.expected)
        << device.text << " with " << (options.empty() ? "no option" : options[0].name);
  }
}

TEST_F(OpenClProgram, RefusesThreadsThatAreNoNumber) {
  const Device device(opencl_backend_query, {{"threads", "two"}});
  EXPECT_EQ(device.code, CDL_INVALID_ARGUMENT);
  EXPECT_THAT(device.text, HasSubstr("two"));
}

TEST_F(OpenClProgram, LeavesBinariesToADriverThatKeepsThem) {
  fakes.platform = "Portable Computing Language";
  Cache cache;
  Device device(opencl_backend_query, {}, cache.host());
  EXPECT_EQ(product_.runOn(device), product_.expected) << device.text;
  EXPECT_EQ(cache.puts, 0);
}

TEST_F(OpenClProgram, KeepsBinariesAndMendsDamagedOnes) {
  fakes.platform = "a driver without a cache";
  Cache cache;
  const auto run = [&] {
    Device device(opencl_backend_query, {}, cache.host());
    EXPECT_EQ(product_.runOn(device), product_.expected) << device.text;
  };
  run();
  ASSERT_THAT(cache.entries, SizeIs(1));
  EXPECT_THAT(cache.entries.begin()->first, HasSubstr(" a program "));
  run();
  EXPECT_EQ(cache.puts, 1) << "what the cache held was built anew";
  cache.entries.begin()->second[30] ^= 1;
  run();
  EXPECT_EQ(cache.puts, 2) << "a damaged binary was not replaced";
}

TEST_F(OpenClProgram, DoesWithoutACacheThatKeepsNothing) {
  fakes.platform = "a driver without a cache";
  cdl_host_t host = currentHost();
  host.cache_get = [](void*, const void*, uint64_t, uint64_t*) -> const void* { return nullptr; };
  host.cache_put = [](void*, const void*, uint64_t, const void*, uint64_t) {};
  Device device(opencl_backend_query, {}, host);
  EXPECT_EQ(product_.runOn(device), product_.expected) << device.text;
}

TEST_F(OpenClProgram, TriesKernelsOnce) {
  Cache cache;
  const auto buildsOf = [&] {
    fakes.builds = 0;
    Device device(opencl_backend_query, {{"tune", "on"}}, cache.host());
    EXPECT_EQ(product_.runOn(device), product_.expected) << device.text;
    return fakes.builds;
  };
  EXPECT_GT(buildsOf(), 3);
  EXPECT_EQ(cache.puts, 1);
  EXPECT_THAT(cache.entries.begin()->first, HasSubstr(" tuned "));
  EXPECT_EQ(buildsOf(), 1);
}

TEST_F(OpenClProgram, TellsTimesOnTheClockOfTheHost) {
  Device device(opencl_backend_query);
  ASSERT_EQ(product_.runOn(device), product_.expected) << device.text; // all is built
  const uint64_t before = cdl::Timings::now();
  ASSERT_EQ(device.table.profile_begin(device.queue, device.error()), CDL_OK);
  product_.runOn(device);
  cdl_profile_record_t records[4] = {};
  uint32_t count = 0;
  ASSERT_EQ(device.table.profile_end(device.queue, records, 4, &count, device.error()), CDL_OK);
  const uint64_t after = cdl::Timings::now();
  ASSERT_EQ(count, 2u);
  EXPECT_GE(records[0].start_ns, before);
  EXPECT_LE(records[0].start_ns, records[0].end_ns);
  EXPECT_LE(records[0].end_ns, records[1].start_ns) << "the queue is in order";
  EXPECT_LE(records[1].end_ns, after);
}

TEST_F(OpenClProgram, ErrorsOfTheCompilerComeWithItsLog) {
  fakes.buildOptions = " -Drescaled=1";
  Device device(opencl_backend_query);
  product_.runOn(device);
  EXPECT_EQ(device.code, CDL_INTERNAL);
  EXPECT_THAT(device.text, HasSubstr("kernels of a program"));
  EXPECT_THAT(device.text, HasSubstr("error:"));
  fakes.buildOptions.clear();
  EXPECT_EQ(product_.runOn(device), product_.expected) << "nothing is wrong afterwards";
}

TEST_F(OpenClProgram, MemoryThatRunsOutIsAnError) {
  Device device(opencl_backend_query);
  ASSERT_EQ(device.code, CDL_OK) << device.text;
  fakes.bufferReturns = CL_MEM_OBJECT_ALLOCATION_FAILURE;
  cdl_memory_t* memory = nullptr;
  EXPECT_EQ(device.table.memory_create(device.device, 0, 4096, 64, &memory, device.error()),
            CDL_OUT_OF_MEMORY);
  EXPECT_THAT(device.text, HasSubstr("4096 bytes of device memory"));
  const Device other(opencl_backend_query); // which has no room for its zeros
  EXPECT_EQ(other.code, CDL_OUT_OF_MEMORY);
  fakes.bufferReturns = CL_SUCCESS;
  EXPECT_EQ(product_.runOn(device), product_.expected) << "nothing is wrong afterwards";
}

TEST_F(OpenClProgram, ADeviceThatIsLostInAKernelStaysLost) {
  Device device(opencl_backend_query);
  fakes.enqueueReturns = CL_DEVICE_NOT_AVAILABLE;
  product_.runOn(device);
  EXPECT_EQ(device.code, CDL_DEVICE_LOST);
  EXPECT_THAT(device.text, HasSubstr("CL_DEVICE_NOT_AVAILABLE"));
  fakes.enqueueReturns = CL_SUCCESS;
  cdl_memory_t* memory = nullptr;
  EXPECT_EQ(device.table.memory_create(device.device, 0, 64, 64, &memory, device.error()),
            CDL_DEVICE_LOST);
  Device again(opencl_backend_query);
  EXPECT_EQ(product_.runOn(again), product_.expected) << again.text;
}

} // namespace
} // namespace candela::abi
