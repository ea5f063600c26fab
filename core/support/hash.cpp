#include "core/support/hash.h"

#include <openssl/evp.h>

#include <cstring>

#include "core/support/out_of_memory.h"

namespace candela {
namespace {

/// Of several pieces as if they were one.
Hash sha256Of(std::initializer_list<std::pair<const void*, uint64_t>> pieces) {
  const std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context(EVP_MD_CTX_new(),
                                                                   EVP_MD_CTX_free);
  // The library looks up its implementation, which takes memory, and needs none afterwards.
  if (!context || EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) != 1)
    throw OutOfMemory("no memory for a SHA-256");
  for (const auto& [data, size] : pieces)
    if (size) CDL_CHECK(EVP_DigestUpdate(context.get(), data, size) == 1);
  Hash hash;
  unsigned size = 0;
  CDL_CHECK(EVP_DigestFinal_ex(context.get(), hash.data(), &size) == 1 && size == hash.size());
  return hash;
}

} // namespace

Hash sha256(const void* data, uint64_t size) { return sha256Of({{data, size}}); }

Status checkImageHash(const Bytes& image) {
  if (image.size() < sizeof(cdl_image_t))
    return badModel("an image of {} bytes is too short", image.size());
  constexpr size_t kBefore = offsetof(cdl_image_t, hash), kAfter = kBefore + sizeof(Hash);
  const Hash zero{};
  const Hash hash = sha256Of({{image.data(), kBefore},
                              {zero.data(), zero.size()},
                              {image.data() + kAfter, image.size() - kAfter}});
  Hash written;
  std::memcpy(written.data(), image.data() + kBefore, written.size());
  if (hash == written) return Status::ok();
  return badModel("image: hash {} but it says {}", hashText(hash), hashText(written));
}

std::string hashText(const Hash& hash) {
  std::string text;
  for (uint8_t byte : hash) text += fmt::format("{:02x}", byte);
  return text;
}

} // namespace candela
