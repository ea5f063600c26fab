#ifndef CANDELA_CORE_SUPPORT_HASH_H
#define CANDELA_CORE_SUPPORT_HASH_H

#include <array>
#include <cstdint>
#include <string>

namespace candela {

/// SHA-256.
using Hash = std::array<uint8_t, 32>;

Hash sha256(const void* data, uint64_t size);

/// SHA-256 of several pieces as if they were one.
class Hasher {
public:
  Hasher();
  ~Hasher();
  Hasher(const Hasher&) = delete;
  Hasher& operator=(const Hasher&) = delete;
  void add(const void* data, uint64_t size);
  Hash finish();

private:
  void* context_;
};

/// 64 lower-case hexadecimal digits.
std::string hashText(const Hash& hash);

} // namespace candela

#endif
