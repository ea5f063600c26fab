#pragma once

#include <gtest/gtest.h>

#include "tests/unit/compiler/capabilities/tables.h"

namespace candela::testing {

/// A target that has convolutions, pools and products row-major and in blocks of 4, and takes every
/// stride elsewhere.
inline capabilities::Target blocking() {
  using capabilities::Table;
  Table t = Table::all();
  for (cdl_row_t& row : t.rows)
    if (row.kind != CDL_KIND_MATMUL && row.kind != CDL_KIND_REDUCE)
      row.operand_class = CDL_CLASS_AFFINE;
  const auto layout = [&](uint8_t rank, std::initializer_list<std::pair<uint8_t, uint32_t>> steps) {
    cdl_layout_t record{};
    record.logical_rank = rank;
    for (const auto& [dim, factor] : steps) {
      record.dim[record.count] = dim;
      record.factor[record.count++] = factor;
    }
    t.layouts.push_back(record);
    return static_cast<uint16_t>(t.layouts.size() - 1);
  };
  const uint16_t image = layout(4, {{0, 0}, {1, 0}, {2, 0}, {3, 0}, {1, 4}});
  const uint16_t weights = layout(4, {{0, 0}, {1, 0}, {2, 0}, {3, 0}, {1, 4}, {0, 4}});
  const uint16_t narrow = layout(4, {{0, 0}, {2, 0}, {3, 0}, {1, 0}, {0, 4}});
  const uint16_t columns = layout(3, {{0, 0}, {2, 0}, {1, 0}, {2, 4}});
  const auto add = [&](uint16_t kind, uint16_t fn, std::vector<uint16_t> layouts) {
    cdl_row_t& row =
        t.add(kind, fn, std::vector<uint8_t>(layouts.size(), CDL_F32), CDL_CLASS_ROW_STRIDED);
    for (size_t i = 0; i < layouts.size(); ++i) row.layouts[i] = layouts[i];
    row.flags = CDL_ROW_EPILOGUE;
    row.steps_mask = uint64_t(1) << CDL_KIND_BINARY;
  };
  const auto ungrouped = [&] { t.limit(CDL_ATOM_ATTR, CDL_REL_EQ, 0, 1).attr = CDL_ATTR_GROUP; };
  add(CDL_KIND_CONV2D, 0, {0, 0, 0});
  add(CDL_KIND_CONV2D, 0, {image, weights, image}), ungrouped();
  add(CDL_KIND_CONV2D, 0, {image, narrow, image});
  t.limit(CDL_ATOM_DIM, CDL_REL_EQ, 1, 1).dim = 3;
  add(CDL_KIND_CONV2D, 0, {0, narrow, image}), ungrouped();
  add(CDL_KIND_CONV2D, 0, {image, weights, 0}), ungrouped();
  for (const uint16_t fn : {CDL_POOL2D_MAX, CDL_POOL2D_AVERAGE}) {
    add(CDL_KIND_POOL2D, fn, {0, 0});
    add(CDL_KIND_POOL2D, fn, {image, image});
  }
  add(CDL_KIND_MATMUL, 0, {0, columns, 0});
  t.limit(CDL_ATOM_IS_CONST, CDL_REL_EQ, 1, 1);
  t.add(CDL_KIND_ELEMENTWISE, 0, {}, CDL_CLASS_AFFINE).steps_mask = ~uint64_t(0);
  auto target = t.target();
  EXPECT_TRUE(target.isOk()) << target.status().message();
  return *target;
}

} // namespace candela::testing
