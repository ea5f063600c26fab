#pragma once

#include <gtest/gtest.h>

#include <regex>
#include <string>

namespace candela::testing {

/// A tiling is refused with both numbers, and what is there is the smaller one.
inline void expectBothNumbers(const std::string& message) {
  std::smatch match;
  ASSERT_TRUE(
      std::regex_search(message, match,
                        std::regex("needs? (\\d+) bytes of memory '\\w+', which has (\\d+)")) ||
      std::regex_search(message, match, std::regex("has (\\d+) instructions, at most (\\d+)")))
      << message;
  EXPECT_GT(std::stoull(match[1]), std::stoull(match[2])) << message;
}

} // namespace candela::testing
