// The tier `primitives` asks for every row that any profile requires, by names that stay.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "candela/cdl_rows.inc"
#include "conformance/suite.h"
#include "core/compiler/capabilities/rows.h"
#include "core/support/elem.h"
#include "core/support/kinds.h"

namespace candela::conformance {
namespace {

std::vector<Case> listed(Size size) {
  Selection selection;
  selection.size = size;
  return tiers::primitives::primitiveCases(selection).orAbort();
}
/// The same, listed once.
const std::vector<Case>& casesOf(Size size) {
  static std::map<Size, std::vector<Case>> known;
  std::vector<Case>& cases = known[size];
  if (cases.empty()) cases = listed(size);
  return cases;
}

/// "gather/clamp_f32_i32" of "primitives:gather/clamp_f32_i32:shape=...".
std::set<std::string> rowsOf(Size size) {
  std::set<std::string> rows;
  for (const Case& one : casesOf(size)) {
    const std::string rest = one.address.substr(one.address.find(':') + 1);
    rows.insert(rest.substr(0, rest.find(':')));
  }
  return rows;
}

/// How the families name a row: what its last element types follow from is left out.
std::string rowName(uint16_t kind, uint16_t fn, const std::vector<Elem>& elems) {
  std::string name = fmt::format("{}/", kindName(kind));
  const auto add = [&](std::string_view word) {
    name += fmt::format("{}{}", name.back() == '/' ? "" : "_", word);
  };
  if (const std::string_view text = fnName(kind, fn); !text.empty()) add(text);
  switch (kind) {
  case CDL_KIND_GATHER: add(elemName(elems[0])), add(elemName(elems[1])); break;
  case CDL_KIND_SCATTER: add(elemName(elems[1])), add(elemName(elems[0])); break;
  case CDL_KIND_REDUCE: add(elemName(elems[0])); break;
  case CDL_KIND_RESCALE: add(elemName(elems[0])), add(elemName(elems.back())); break;
  default: add(elemName(elems[0])), add(elemName(elems[1])); break; // MATMUL, TABLE
  }
  return name;
}

TEST(PrimitiveRows, EveryRequiredRowHasCasesOfEverySize) {
  const std::set<std::string> rows[] = {rowsOf(Size::quick), rowsOf(Size::full),
                                        rowsOf(Size::nightly)};
  int required = 0;
#define CDL_X(profile, kind, fn, count, e0, e1, e2, e3, e4, cls, tenths)                           \
  if (kind == CDL_KIND_GATHER || kind == CDL_KIND_SCATTER || kind == CDL_KIND_REDUCE ||            \
      kind == CDL_KIND_MATMUL || kind == CDL_KIND_RESCALE || kind == CDL_KIND_TABLE) {             \
    std::vector<Elem> elems{Elem(e0), Elem(e1), Elem(e2), Elem(e3), Elem(e4)};                     \
    elems.resize(count);                                                                           \
    const std::string name = rowName(kind, fn, elems);                                             \
    for (const auto& named : rows) EXPECT_TRUE(named.contains(name)) << name;                      \
    ++required;                                                                                    \
  }
  CDL_REQUIRED_ROWS(CDL_X)
#undef CDL_X
  EXPECT_GT(required, 80);
}

TEST(PrimitiveRows, EveryProductOfANarrowProfileHasCasesOfEverySize) {
  int required = 0;
  for (const Size size : {Size::quick, Size::full, Size::nightly}) {
    const std::set<std::string> rows = rowsOf(size);
    for (const capabilities::RequiredRow& row : capabilities::requiredRows()) {
      if (row.kind != CDL_KIND_SCALED_MATMUL) continue;
      std::string name = fmt::format("scaled_matmul/{}", fnName(row.kind, row.fn));
      for (int i = 0; i < row.elemCount; ++i)
        name += fmt::format("_{}", elemName(static_cast<Elem>(row.elems[i])));
      EXPECT_TRUE(rows.contains(name)) << name;
      ++required;
    }
  }
  EXPECT_GT(required, 150);
}

TEST(PrimitiveRows, OptionalFunctionsAndVariantsAreAskedForToo) {
  const std::set<std::string> rows = rowsOf(Size::nightly);
  for (const char* row :
       {"scatter/mul_f32_i32", "scatter/set_bool_i32", "gather/zero_f32_i64", "matmul/f32_f32_acc",
        "matmul/u8_i8_zan", "matmul/f32_f32_relu", "rescale/i8_u8_i8", "table/u8_f32",
        "reduce/sum_f32_clamped", "refused/rescale_i32_9"})
    EXPECT_TRUE(rows.contains(row)) << row;
}

TEST(PrimitiveRows, AddressesAreUniqueAndStayInOrder) {
  std::set<std::string> all;
  for (const Case& one : casesOf(Size::nightly))
    EXPECT_TRUE(all.insert(one.address).second) << one.address;
  for (const Size size : {Size::quick, Size::full}) {
    const std::vector<Case>&first = casesOf(size), second = listed(size);
    ASSERT_EQ(first.size(), second.size());
    for (size_t i = 0; i < first.size(); ++i) {
      EXPECT_EQ(first[i].address, second[i].address);
      EXPECT_TRUE(all.contains(first[i].address)) << first[i].address;
    }
  }
}

} // namespace
} // namespace candela::conformance
