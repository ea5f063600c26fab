// What rounds ties another way fails `quick` in every row that rounds, so that a port which claims
// that row alone fails too.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "conformance/port.h"
#include "conformance/report/query.h"
#include "conformance/suite.h"
#include "core/support/text/scan.h"

namespace candela::conformance {
namespace {

using Outcome = CaseResult::Outcome;

/// Faults, and the rows whose cases must show them: globs of the part of an address behind its
/// tier.
struct Place {
  std::vector<const char*> faults;
  const char* tier;
  std::vector<const char*> rows;
};
const Place kPlaces[] = {
    {{"rescale.half_up", "rescale.half_away"}, "primitives", {"rescale/*_*"}},
    {{"convert.half_up", "convert.half_away"},
     "primitives",
     {"convert/f32_i*:fn=rne", "convert/f32_u*:fn=rne", "convert/f16_i*:fn=rne",
      "convert/f64_i*:fn=rne", "convert/bf16_u*:fn=rne", "convert/f32_f16:fn=trunc",
      "convert/f32_bf16:fn=trunc", "convert/f64_*f*:fn=trunc", "convert/i32_f32:fn=trunc",
      "convert/i32_*f16:fn=trunc", "convert/i64_f32:fn=trunc", "convert/u32_*f*:fn=trunc",
      "convert/f32_f8e?m?*:fn=trunc"}},
    {{"binary.half_up", "binary.half_away"},
     "primitives",
     {"binary/add_*f*", "binary/sub_*f*", "binary/mul_*f*"}},
    {{"unary.half_up", "unary.half_away"}, "primitives", {"unary/round_even_*f*"}},
    {{"scatter.half_up"}, "primitives", {"scatter/add_f32*", "scatter/add_*f16*"}},
    {{"reduce.half_up", "reduce.half_away"},
     "primitives",
     {"reduce/sum_f32", "reduce/sum_f16", "reduce/sum_bf16"}},
    {{"matmul.half_up", "matmul.half_away"},
     "primitives",
     {"matmul/f32_f32", "matmul/f16_f16", "matmul/bf16_bf16"}},
    {{"table.half_even"}, "primitives", {"table/i16_i16"}},
    {{"expression.half_up.whole", "expression.half_away.whole"},
     "ops",
     {"elementwise/quantize_*", "elementwise/round_*", "elementwise/even_*", "epilogue/*_quantize",
      "epilogue/*_bytes", "prologue/rounded_*"}},
    {{"expression.half_up.float", "expression.half_away.float"},
     "ops",
     {"elementwise/narrow*", "elementwise/float_*", "elementwise/halves_*",
      "epilogue/reducesum-i32_real"}},
    {{"expression.half_up.rescale", "expression.half_away.rescale"},
     "ops",
     {"elementwise/rescale-*", "epilogue/*_rescale-*", "prologue/rescaled_*"}},
};

/// The row of a case, and of a conversion its rounding: "convert/f32_i8:fn=rne".
std::string rowWithin(const std::string& address) {
  std::string row(report::rowOf(address));
  row = row.substr(row.find(':') + 1);
  const size_t fn = address.find(":fn=");
  return fn == address.npos ? row : row + address.substr(fn, address.find(';', fn) - fn);
}

/// Those that no wrong tie shows: means of windows are not exact, so that where they lie is open;
/// f8e8m0 ties up.
bool isOpen(const std::string& row) {
  return row.starts_with("epilogue/average-") || row.find("f8e8m0") != row.npos;
}

class Ties : public testing::TestWithParam<Place> {};

TEST_P(Ties, ShowInEveryRowOfQuick) {
  const Place& place = GetParam();
  Selection quick;
  quick.size = Size::quick;
  const std::vector<Case> cases = findTier(place.tier)->list(quick).orAbort();
  for (const char* fault : place.faults) {
    Port faulty("soft", {{"fault", fault}});
    std::map<const char*, size_t> shown; // by glob
    std::map<std::string, std::set<Outcome>> rows;
    for (const Case& one : cases) {
      const std::string row = rowWithin(one.address);
      const auto glob = std::ranges::find_if(
          place.rows, [&](const char* rows) { return report::matchesQuery(row, rows); });
      if (glob == place.rows.end() || isOpen(row)) continue;
      ++shown[*glob];
      std::set<Outcome>& outcomes = rows[row];
      if (!outcomes.contains(Outcome::failed)) outcomes.insert(one.run(faulty).outcome);
    }
    for (const char* glob : place.rows)
      EXPECT_GT(shown[glob], 0u) << glob << " names no row of quick";
    for (const auto& [row, outcomes] : rows)
      EXPECT_TRUE(outcomes.contains(Outcome::failed) || outcomes == std::set{Outcome::unsupported})
          << fault << " passes " << place.tier << ":" << row;
  }
}

INSTANTIATE_TEST_SUITE_P(Place, Ties, testing::ValuesIn(kPlaces), [](const auto& info) {
  std::string name = info.param.faults[0];
  std::ranges::replace(name, '.', '_');
  return name;
});

} // namespace
} // namespace candela::conformance
