// Runs a small program of soft on arrays.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "core/runtime/host_executor/soft.h"
#include "core/support/worker_pool.h"
#include "tests/unit/runtime/host_executor/image_maker.h"
#include "tests/unit/runtime/host_executor/naive.h"

namespace candela::testing {

using Maker = ImageMaker;

class Machine {
public:
  Maker maker;

  /// A buffer that is `array`, which has to outlive the machine.
  uint32_t buffer(Array& array) {
    pointers_.push_back(array.data());
    bytes_.push_back(array.byteSize());
    return maker.buffer(array.byteSize());
  }
  cdl_view_t dense(Array& array, const Maker::Ints& dims) {
    return Maker::dense(buffer(array), array.elem(), dims);
  }
  cdl_view_t view(Array& array, const Maker::Ints& dims, const Maker::Ints& strides,
                  int64_t offset = 0) {
    return Maker::view(buffer(array), array.elem(), dims, strides, offset);
  }
  /// "" or the error of the program. On several threads, in the smallest parts, it leaves the same
  /// bits.
  std::string run() {
    const cdl_image_t* image = maker.finish();
    const std::vector<std::string> before = contents();
    const std::string answer = runOn(image, nullptr);
    const std::vector<std::string> alone = contents();
    for (const uint32_t threads : {2u, 3u, 8u}) {
      for (size_t b = 1; b < pointers_.size(); ++b)
        std::memcpy(pointers_[b], before[b].data(), bytes_[b]);
      const runtime::host_executor::Workers workers{&poolHost(), threads, 1};
      EXPECT_EQ(runOn(image, &workers), answer) << threads << " threads";
      const std::vector<std::string> shared = contents();
      for (size_t b = 1; b < pointers_.size(); ++b)
        EXPECT_TRUE(shared[b] == alone[b]) << "buffer " << b << " on " << threads << " threads";
    }
    return answer;
  }

private:
  static const cdl_host_t& poolHost() {
    static const cdl_host_t host = [] {
      WorkerPool::ofProcess().setThreads(8);
      cdl_host_t made{};
      made.header = CDL_HEADER(cdl_host_t);
      made.parallel_for = [](void*, uint32_t count, void (*body)(void*, uint32_t), void* arg) {
        WorkerPool::ofProcess().run(count, body, arg);
      };
      return made;
    }();
    return host;
  }
  std::vector<std::string> contents() const {
    std::vector<std::string> copies(1);
    for (size_t b = 1; b < pointers_.size(); ++b)
      copies.emplace_back(static_cast<const char*>(pointers_[b]), bytes_[b]);
    return copies;
  }
  std::string runOn(const cdl_image_t* image, const runtime::host_executor::Workers* workers) {
    char text[300] = "";
    cdl_error_t error{text, sizeof text, 0};
    const cdl_code_t code =
        runtime::host_executor::runAll(image, pointers_.data(), workers, &error);
    return code == CDL_OK ? "" : std::to_string(code) + " " + text;
  }

  std::vector<void*> pointers_{nullptr};
  std::vector<size_t> bytes_{0};
};

} // namespace candela::testing
