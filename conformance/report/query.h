#pragma once

#include "conformance/case.h"

/// Which cases: by address, and by part.
namespace candela::conformance::report {

/// The part of an address before its first colon.
std::string_view tierOf(std::string_view address);
/// The part before its second one, "primitives:binary/add_f32"; the whole address where there is
/// none.
std::string_view rowOf(std::string_view address);

/// Whether an address is what a query says: the same text, or a glob, with or without the tier in
/// front; or a glob and terms of which each stands in the address, in any order, "*" for all
/// others: "primitives:matmul/i8_i8:data=extremes;*".
bool matchesQuery(const std::string& address, const std::string& query);
/// The addresses that one of the queries matches, as indices; all where there is no query. A query
/// that is an address itself matches nothing else.
std::vector<size_t> matchingCases(const std::vector<Case>& cases,
                                  const std::vector<std::string>& queries);

/// Shard K of N, both from "K/N" with 1 <= K <= N. Failure: invalid_argument.
struct Shard {
  uint64_t index = 1, count = 1;
  bool holds(size_t i) const { return i % count == index - 1; }
  std::string text() const { return fmt::format("{}/{}", index, count); }
};
Result<Shard> parseShard(const std::string& given);

} // namespace candela::conformance::report
