#include "core/support/hash.h"

#include <openssl/evp.h>

#include "core/support/status.h"

namespace candela {

Hasher::Hasher() : context_(EVP_MD_CTX_new()) {
  CDL_CHECK(context_ && EVP_DigestInit_ex(static_cast<EVP_MD_CTX*>(context_), EVP_sha256(), nullptr) == 1);
}
Hasher::~Hasher() { EVP_MD_CTX_free(static_cast<EVP_MD_CTX*>(context_)); }

void Hasher::add(const void* data, uint64_t size) {
  if (size) CDL_CHECK(EVP_DigestUpdate(static_cast<EVP_MD_CTX*>(context_), data, size) == 1);
}

Hash Hasher::finish() {
  Hash hash;
  unsigned size = 0;
  CDL_CHECK(EVP_DigestFinal_ex(static_cast<EVP_MD_CTX*>(context_), hash.data(), &size) == 1 && size == hash.size());
  return hash;
}

Hash sha256(const void* data, uint64_t size) {
  Hasher hasher;
  hasher.add(data, size);
  return hasher.finish();
}

std::string hashText(const Hash& hash) {
  std::string text;
  for (uint8_t byte : hash) text += fmt::format("{:02x}", byte);
  return text;
}

} // namespace candela
