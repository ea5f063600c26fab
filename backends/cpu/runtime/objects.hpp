// ELF objects one after the other, as an executable holds them: how many, the size of each, then
// their bytes; the table and every object begin at a multiple of 64 bytes.
#pragma once

#include "aligned.hpp"

#include <cstdint>
#include <utility>
#include <vector>

namespace cpu {

AlignedBytes packed(const std::vector<std::vector<char>>& objects);

/// Where each object lies, and its size. False where `size` bytes do not hold what the table says.
bool unpack(const char* bytes, uint64_t size,
            std::vector<std::pair<const char*, uint64_t>>& objects);

} // namespace cpu
