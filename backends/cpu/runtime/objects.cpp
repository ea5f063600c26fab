#include "objects.hpp"

#include <algorithm>

namespace cpu {

AlignedBytes packed(const std::vector<std::vector<char>>& objects) {
  std::vector<uint64_t> table{objects.size()};
  for (const std::vector<char>& object : objects) table.push_back(object.size());
  uint64_t at = padded(table.size() * sizeof(uint64_t));
  uint64_t end = at;
  for (const std::vector<char>& object : objects) end += padded(object.size());
  AlignedBytes bytes;
  bytes.resize(end);
  std::memcpy(bytes.data(), table.data(), table.size() * sizeof(uint64_t));
  for (const std::vector<char>& object : objects) {
    std::copy(object.begin(), object.end(), bytes.data() + at);
    at += padded(object.size());
  }
  return bytes;
}

bool unpack(const char* bytes, uint64_t size,
            std::vector<std::pair<const char*, uint64_t>>& objects) {
  uint64_t count = 0;
  if (size < sizeof count) return false;
  std::memcpy(&count, bytes, sizeof count);
  if (count > size / sizeof count - 1) return false;
  uint64_t at = padded((count + 1) * sizeof count);
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t each = 0;
    std::memcpy(&each, bytes + (i + 1) * sizeof each, sizeof each);
    if (at > size || each > size - at) return false;
    objects.emplace_back(bytes + at, each);
    at += padded(each);
  }
  return true;
}

} // namespace cpu
