// What the tests of backends/opencl stand on: functions of OpenCL behind those that a test defines,
// and a host with a cache.
#pragma once

#include "tests/abi/host.h"

#include <CL/cl.h>

namespace candela::abi {

/// The library's function of this name, behind the one that the test defines.
template <class F> F real(F, const char* name) {
  return reinterpret_cast<F>(dlsym(RTLD_NEXT, name));
}

/// A host that keeps what plugins give it.
struct Cache {
  std::map<std::string, std::string> entries;
  int hits = 0;
  int puts = 0;

  cdl_host_t host() {
    cdl_host_t host = currentHost();
    host.context = this;
    host.cache_get = [](void* context, const void* key, uint64_t keySize,
                        uint64_t* size) -> const void* {
      auto* cache = static_cast<Cache*>(context);
      const auto found = cache->entries.find(std::string(static_cast<const char*>(key), keySize));
      if (found == cache->entries.end()) return nullptr;
      ++cache->hits;
      *size = found->second.size();
      return found->second.data();
    };
    host.cache_put = [](void* context, const void* key, uint64_t keySize, const void* data,
                        uint64_t size) {
      auto* cache = static_cast<Cache*>(context);
      ++cache->puts;
      cache->entries[std::string(static_cast<const char*>(key), keySize)] =
          std::string(static_cast<const char*>(data), size);
    };
    return host;
  }
};

} // namespace candela::abi
