#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

/// Structs and records of a plugin that was built against another minor version, as this one knows
/// them: what a longer one has more is cut, what a shorter one lacks is 0.
namespace candela::capabilities {

template <typename T> T copyStruct(const T& from) {
  T copy{};
  memcpy(&copy, &from, std::min<size_t>(from.header.struct_size, sizeof(T)));
  return copy;
}

/// Record `index` of an array with the writer's stride, which holds at least what the oldest plugin
/// knows.
template <typename T> T recordAt(const T* data, uint32_t stride, uint32_t index) {
  T record{};
  memcpy(&record, reinterpret_cast<const char*>(data) + uint64_t(stride) * index,
         std::min<size_t>(stride, sizeof(T)));
  return record;
}

} // namespace candela::capabilities
