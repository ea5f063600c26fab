#include "core/compiler/capabilities/target.h"

#include <gmock/gmock.h>

#include <random>

#include "core/compiler/capabilities/idle_rows.h"
#include "core/compiler/capabilities/views.h"
#include "tests/unit/compiler/capabilities/tables.h"

namespace candela::capabilities {
namespace {

using testing::HasSubstr;

Table fp32() { return Table::required({CDL_PROFILE_BASE, CDL_PROFILE_FP32}); }

InstrDesc matmul(int64_t b, int64_t m, int64_t k, int64_t n, Elem elem = Elem::f32_) {
  InstrDesc desc;
  desc.kind = CDL_KIND_MATMUL;
  desc.operands = {{elem, {b, m, k}}, {elem, {b, k, n}}, {elem, {b, m, n}}};
  return desc;
}

void expectRefused(Table table, const std::string& why) {
  auto target = table.target();
  ASSERT_FALSE(target.isOk()) << why;
  EXPECT_THAT(target.status().message(), HasSubstr(why));
}

TEST(Capabilities, RequiredRowsOfEveryProfileAreAccepted) {
  auto target = Table::all().target();
  ASSERT_TRUE(target.isOk()) << target.status().message();
  EXPECT_TRUE(target->claims(CDL_PROFILE_INT16));
  EXPECT_EQ(target->rows().size(), requiredRows().size());
}

TEST(Capabilities, EachMissingRequiredRowIsNamed) {
  const Table full = fp32();
  for (size_t i = 0; i < full.rows.size(); ++i) {
    Table table = full;
    const cdl_row_t gone = table.rows[i];
    table.rows.erase(table.rows.begin() + static_cast<std::ptrdiff_t>(i));
    auto target = table.target();
    ASSERT_FALSE(target.isOk()) << instrText(gone.kind, gone.fn);
    EXPECT_THAT(target.status().message(),
                HasSubstr("required row " + instrText(gone.kind, gone.fn)));
  }
}

TEST(Capabilities, ANarrowerOperandClassIsNoRequiredRow) {
  Table table = fp32();
  for (cdl_row_t& row : table.rows)
    if (row.kind == CDL_KIND_COPY) row.operand_class = CDL_CLASS_ROW_STRIDED;
  expectRefused(table, "required row copy i32,i32 (class affine) is missing");
}

TEST(Capabilities, ProfileRule) {
  Table table = fp32();
  table.profiles = 1 << CDL_PROFILE_BASE;
  expectRefused(table, "one more is needed");
  table.profiles = 1 << CDL_PROFILE_FP32;
  expectRefused(table, "BASE is not claimed");
  table.profiles = 1 << kProfileCount | 3;
  expectRefused(table, "profile mask 0x203 names unknown profiles");
}

constexpr unsigned kNarrow[] = {CDL_PROFILE_FP8, CDL_PROFILE_INT4W, CDL_PROFILE_MX};
constexpr unsigned kFloats[] = {CDL_PROFILE_FP32, CDL_PROFILE_FP16, CDL_PROFILE_BF16};

TEST(Capabilities, AProfileOfNarrowTypesStandsBesideAFloatOne) {
  for (const unsigned narrow : kNarrow) {
    const std::string name = profileText(narrow);
    expectRefused(Table::required({CDL_PROFILE_BASE, narrow}),
                  "profile " + name +
                      " is claimed without FP32, FP16 or BF16; claim one of them beside it");
    expectRefused(Table::required({CDL_PROFILE_BASE, CDL_PROFILE_INT8, narrow}),
                  "profile " + name + " is claimed without FP32, FP16 or BF16");
    for (const unsigned beside : kFloats) {
      auto target = Table::required({CDL_PROFILE_BASE, beside, narrow}).target();
      ASSERT_TRUE(target.isOk()) << name << ": " << target.status().message();
      EXPECT_TRUE(target->claims(narrow));
    }
  }
}

/// How many of the rows are products of narrow types that end in this type.
size_t productsInto(const Table& table, uint8_t elem) {
  return static_cast<size_t>(std::ranges::count_if(table.rows, [&](const cdl_row_t& row) {
    return row.kind == CDL_KIND_SCALED_MATMUL && row.elems[row.elem_count - 1] == elem;
  }));
}

TEST(Capabilities, TheirRowsAreThoseOfEachFloatProfileBeside) {
  for (const unsigned narrow : kNarrow) {
    const Table one = Table::required({CDL_PROFILE_BASE, CDL_PROFILE_FP16, narrow});
    EXPECT_GT(productsInto(one, CDL_F16), 4u);
    EXPECT_EQ(productsInto(one, CDL_F32) + productsInto(one, CDL_BF16), 0u);
    const Table two =
        Table::required({CDL_PROFILE_BASE, CDL_PROFILE_FP16, CDL_PROFILE_BF16, narrow});
    EXPECT_EQ(productsInto(two, CDL_F16), productsInto(two, CDL_BF16));
    // What stands for one float profile is not enough where another is claimed.
    Table more = one;
    more.profiles |= 1u << CDL_PROFILE_BF16;
    for (const RequiredRow& row : requiredRows())
      if (row.profile == CDL_PROFILE_BF16)
        more.add(row.kind, row.fn, {row.elems, row.elems + row.elemCount}, row.operandClass);
    expectRefused(more, fmt::format("profile {} is claimed beside BF16 but its required row",
                                    profileText(narrow)));
  }
}

TEST(Capabilities, EachMissingProductOfANarrowProfileIsNamed) {
  for (const unsigned narrow : kNarrow) {
    const Table full = Table::required({CDL_PROFILE_BASE, CDL_PROFILE_FP32, narrow});
    for (size_t i = 0; i < full.rows.size(); ++i) {
      const cdl_row_t gone = full.rows[i];
      if (gone.kind != CDL_KIND_SCALED_MATMUL) continue;
      Table table = full;
      table.rows.erase(table.rows.begin() + static_cast<std::ptrdiff_t>(i));
      std::string types;
      for (int k = 0; k < gone.elem_count; ++k)
        types += fmt::format("{}{}", k ? "," : "", elemName(static_cast<Elem>(gone.elems[k])));
      expectRefused(table,
                    fmt::format("required row scaled_matmul.exact {} (class broadcast)", types));
    }
  }
}

TEST(Capabilities, RowsWithoutTypesTakeNoWeightsOfProducts) {
  const auto moves = [](Elem elem) {
    return InstrDesc{CDL_KIND_ELEMENTWISE, 0, {{elem, {8}}, {elem, {8}}}, {}, 0, 0};
  };
  Table table = Table::required(
      {CDL_PROFILE_BASE, CDL_PROFILE_FP32, CDL_PROFILE_FP8, CDL_PROFILE_INT4W, CDL_PROFILE_MX});
  table.add(CDL_KIND_ELEMENTWISE, 0, {}, CDL_CLASS_AFFINE);
  const auto target = table.target();
  ASSERT_TRUE(target.isOk()) << target.status().message();
  EXPECT_EQ(target->query(moves(Elem::f32_)).support, Support::native);
  EXPECT_EQ(target->query(moves(Elem::f8e4m3_)).support,
            Support::native); // COPY and CONVERT have it
  for (const Elem elem : {Elem::i4_, Elem::u4_, Elem::f4e2m1_, Elem::f8e8m0_})
    EXPECT_EQ(target->query(moves(elem)).support, Support::none) << elemName(elem);
}

TEST(Capabilities, HostileTables) {
  const auto broken = [](auto&& damage, const char* why) {
    Table table = fp32();
    table.add(CDL_KIND_MATMUL, 0, {CDL_F32, CDL_F32, CDL_F32});
    table.limit(CDL_ATOM_RANK, CDL_REL_LE, 0, 3);
    table.view();
    damage(table);
    // view() would mend what the damage did to the struct, so it is not called again.
    auto target = Target::fromCapabilities("acme", table.table, false);
    ASSERT_FALSE(target.isOk()) << why;
    EXPECT_THAT(target.status().message(), HasSubstr(why));
  };
  broken([](Table& t) { t.table.rows = nullptr; }, "rows are declared but the table is null");
  broken([](Table& t) { t.table.row_count = 0xffffffff; }, "more than the limit");
  broken([](Table& t) { t.table.row_stride = 8; }, "row stride 8");
  broken([](Table& t) { t.table.row_stride = sizeof(cdl_row_t) + 1; }, "row stride");
  broken([](Table& t) { t.table.atoms = nullptr; }, "atoms are declared but the table is null");
  broken([](Table& t) { t.table.spaces = nullptr; }, "spaces are declared but the table is null");
  broken([](Table& t) { t.table.space_names = nullptr; }, "space_names is null");
  broken([](Table& t) { t.spaceNames[0] = nullptr; }, "has no name");
  broken([](Table& t) { t.spaces[0].alignment = 48; }, "alignment 48");
  broken([](Table& t) { t.spaces[0].flags = 16; }, "space 'memory': flags 0x10 are unknown");
  broken([](Table& t) { t.spaces[0].flags = CDL_SPACE_SUMS; },
         "space 'memory' holds SUMS but is not LOCAL");
  broken([](Table& t) { t.spaces[0].flags = CDL_SPACE_CONSTANTS; },
         "space 'memory' is for constants but the default one");
  broken([](Table& t) { t.table.engine_count = 1000; }, "1000 engines");
  static cdl_tiling_t tiling;
  tiling = {};
  broken([](Table& t) { t.table.tiling = &tiling; }, "tiling: built against 0.0 with 0 bytes");
  tiling.header = CDL_HEADER(cdl_tiling_t);
  tiling.load_engine = 2;
  broken([](Table& t) { t.table.tiling = &tiling, t.table.engine_count = 2; },
         "tiling: load_engine 2 of a device with 2");
  broken([](Table& t) { t.table.flags = 1 << 9; }, "device flags");
  broken([](Table& t) { t.table.header.struct_size = 8; }, "built against");
  broken([](Table& t) { t.table.header.major = 9; }, "built against 9");
  broken([](Table& t) { t.rows.back().kind = 99; }, "kind 99 is unknown");
  broken([](Table& t) { t.rows.back().fn = 7; }, "function 7 of matmul is unknown");
  broken([](Table& t) { t.rows.back().elem_count = 9; }, "9 element types");
  broken([](Table& t) { t.rows.back().elems[1] = 200; }, "element type 200");
  broken([](Table& t) { t.rows.back().layouts[2] = 1; }, "layout 1 of operand 2");
  const auto layout = [](std::initializer_list<std::pair<uint8_t, uint32_t>> steps, uint8_t rank) {
    return [steps = std::vector(steps), rank](Table& t) {
      cdl_layout_t& added = t.layouts.emplace_back();
      added.logical_rank = rank;
      for (const auto& [dim, factor] : steps) {
        added.dim[added.count] = dim;
        added.factor[added.count++] = factor;
      }
      t.table.layouts = t.layouts.data();
      t.table.layout_count = static_cast<uint32_t>(t.layouts.size());
    };
  };
  broken(layout({{0, 0}, {2, 0}}, 2), "layout 1: step 1 names dim 2 of rank 2");
  broken(layout({{0, 0}, {1, 16}}, 2), "layout 1: factor 16 of step 1, expected 0");
  broken(layout({{0, 0}, {1, 0}, {1, 0}}, 2), "layout 1: factor 0 of step 2, expected 1 to 4096");
  broken(layout({{0, 0}, {0, 5000}}, 1), "factor 5000 of step 1");
  broken(layout({{0, 0}}, 2), "layout 1: dims 0x1 of rank 2 have a step");
  broken([](Table& t) { t.rows.back().support = 3; }, "support 3");
  broken([](Table& t) { t.rows.back().operand_class = 0; }, "operand class 0");
  broken(
      [](Table& t) {
        t.rows.back().kind = CDL_KIND_COPY;
        t.rows.back().fn = 0;
        t.rows.back().flags = CDL_ROW_BY_COLUMNS;
      },
      "CDL_ROW_BY_COLUMNS is of MATMUL, not of copy");
  broken([](Table& t) { t.rows.back().first_atom = 0xffffffff; },
         "atoms 4294967295 to 4294967296, the table has 1");
  broken([](Table& t) { t.atoms[0].subject = 77; }, "subject 77");
  broken([](Table& t) { t.atoms[0].relation = 0; }, "relation 0");
  broken([](Table& t) { t.atoms[0].operand = 3; }, "operand 3 of a row of 3");
  broken([](Table& t) { t.atoms[0] = {CDL_ATOM_DIM, CDL_REL_MOD, 0, 0, 0, 0, 0, 0, {}}; },
         "modulus 0");
  broken([](Table& t) { t.atoms[0] = {CDL_ATOM_DIM, CDL_REL_IN, 0, 0, 0, 7, 0, 0, {}}; },
         "set of 7 values");
  broken([](Table& t) { t.atoms[0] = {CDL_ATOM_DIM, CDL_REL_EQ, 0, 100, 0, 0, 0, 0, {}}; },
         "dim 100");
  broken([](Table& t) { t.atoms[0] = {CDL_ATOM_ATTR, CDL_REL_EQ, 0, 0, 999, 0, 0, 0, {}}; },
         "attribute 999");
  broken(
      [](Table& t) { t.atoms[0] = {CDL_ATOM_DIM_PRODUCT, CDL_REL_LE, 0, 0, 0x100, 0, 0, 0, {}}; },
      "dim mask");
}

TEST(Capabilities, RandomBytesInRowsAndAtomsNeverCrash) {
  std::mt19937 random(1);
  int accepted = 0;
  for (int round = 0; round < 3000; ++round) {
    Table table = fp32();
    table.add(CDL_KIND_MATMUL, 0, {CDL_F32, CDL_F32, CDL_F32});
    table.limit(CDL_ATOM_RANK, CDL_REL_LE, 0, 3);
    cdl_row_t& row = table.rows.back();
    auto* bytes = reinterpret_cast<uint8_t*>(&row);
    auto* atom = reinterpret_cast<uint8_t*>(&table.atoms[0]);
    for (int k = 0; k < 2; ++k) {
      bytes[random() % sizeof row] = static_cast<uint8_t>(random());
      atom[random() % sizeof table.atoms[0]] = static_cast<uint8_t>(random());
    }
    auto target = table.target();
    if (!target) continue;
    ++accepted;
    target->query(matmul(1, 2, 3, 4));
    InstrDesc none;
    none.kind = CDL_KIND_MATMUL;
    target->query(none);
  }
  EXPECT_GT(accepted, 100);
}

TEST(Capabilities, ALongerRowOfANewerPluginIsRead) {
  Table table = fp32();
  struct Longer {
    cdl_row_t row;
    uint64_t more;
  };
  std::vector<Longer> longer;
  for (const cdl_row_t& row : table.rows) longer.push_back({row, ~uint64_t(0)});
  table.view();
  table.table.rows = &longer[0].row;
  table.table.row_stride = sizeof(Longer);
  auto target = Target::fromCapabilities("acme", table.table, false);
  ASSERT_TRUE(target.isOk()) << target.status().message();
  EXPECT_EQ(target->query(matmul(1, 2, 3, 4)).support, Support::native);
}

TEST(Query, NativeBeforeEmulatedBeforeNone) {
  Table table = Table::required({CDL_PROFILE_BASE, CDL_PROFILE_FP32}, CDL_SUPPORT_EMULATED);
  table.add(CDL_KIND_MATMUL, 0, {CDL_F32, CDL_F32, CDL_F32});
  table.limit(CDL_ATOM_DIM, CDL_REL_MOD, 1, 16).dim = static_cast<uint8_t>(-1);
  auto target = table.target();
  ASSERT_TRUE(target.isOk());
  EXPECT_EQ(target->query(matmul(1, 8, 8, 32)).support, Support::native);
  EXPECT_EQ(target->query(matmul(1, 8, 8, 30)).support, Support::emulated);
  EXPECT_EQ(target->query(matmul(1, 8, 8, 32, Elem::f64_)).support, Support::none);
}

TEST(Query, ARowWithoutTypesTakesThoseThatTheTableNames) {
  Table table = fp32();
  table.add(CDL_KIND_ELEMENTWISE, 0, {});
  table.add(CDL_KIND_COPY, 0, {CDL_F64, CDL_F64});
  auto target = table.target();
  ASSERT_TRUE(target.isOk()) << target.status().message();
  const auto asked = [&](Elem elem) {
    InstrDesc desc;
    desc.kind = CDL_KIND_ELEMENTWISE;
    desc.operands = {{Elem::f32_, {8}}, {elem, {8}}};
    return target->query(desc);
  };
  EXPECT_EQ(asked(Elem::f32_).support, Support::native);
  EXPECT_EQ(asked(Elem::i32_).support, Support::native) << "of a claimed profile";
  EXPECT_EQ(asked(Elem::f64_).support, Support::native) << "of another row";
  EXPECT_EQ(asked(Elem::f16_).support, Support::none);
  EXPECT_EQ(asked(Elem::f16_).reason, CDL_REASON_PROFILE);
}

TEST(Query, AnyResultOfAnEpilogueIsNoPromiseWithoutOne) {
  Table table = fp32();
  table.add(CDL_KIND_MATMUL, 0, {CDL_F16, CDL_F16, 0});
  table.rows.back().flags = CDL_ROW_EPILOGUE;
  table.rows.back().steps_mask = 1 << CDL_KIND_CONVERT;
  auto target = table.target();
  ASSERT_TRUE(target.isOk()) << target.status().message();
  InstrDesc desc = matmul(1, 8, 8, 8, Elem::f16_);
  EXPECT_EQ(target->query(desc).support, Support::none);
  desc.stepKinds = 1 << CDL_KIND_CONVERT;
  EXPECT_EQ(target->query(desc).support, Support::native);
  std::erase_if(table.rows, [](const cdl_row_t& row) {
    return row.kind == CDL_KIND_MATMUL && row.elems[0] == CDL_F32;
  });
  table.add(CDL_KIND_MATMUL, 0, {CDL_F32, CDL_F32, 0});
  table.rows.back().flags = CDL_ROW_EPILOGUE;
  target = table.target();
  EXPECT_THAT(target.status().message(), HasSubstr("its required row matmul f32,f32,f32"));
}

TEST(Query, TheReasonIsThatOfTheClosestRow) {
  Table table = fp32();
  std::erase_if(table.rows, [](const cdl_row_t& row) { return row.kind == CDL_KIND_MATMUL; });
  table.add(CDL_KIND_MATMUL, 0, {CDL_F32, CDL_F32, CDL_F32});
  table.limit(CDL_ATOM_DIM, CDL_REL_LE, 0, 32).dim = 2;
  auto target = table.target();
  ASSERT_TRUE(target.isOk()) << target.status().message();
  const Answer answer = target->query(matmul(1, 8, 33, 8));
  EXPECT_EQ(answer.support, Support::none);
  EXPECT_EQ(answer.reason, CDL_REASON_DIM);
  EXPECT_THAT(answer.detail, HasSubstr("dim 2 of operand 0 33, expected <= 32 (row"));

  InstrDesc strided = matmul(1, 8, 8, 8);
  strided.operands[0].cls = OperandClass::rowStrided;
  EXPECT_EQ(target->query(strided).reason, CDL_REASON_OPERAND_CLASS);
  InstrDesc blocked = matmul(1, 8, 8, 8);
  blocked.operands[1].layout = {2, 2, 0, 0, 0, {0, 1}, {0, 0}};
  EXPECT_EQ(target->query(blocked).reason, CDL_REASON_LAYOUT);
  EXPECT_EQ(target->query(matmul(1, 8, 8, 8, Elem::f64_)).reason, CDL_REASON_PROFILE);
  EXPECT_EQ(target->query(matmul(1, 8, 8, 8, Elem::i32_)).reason, CDL_REASON_DTYPE);
  InstrDesc fused = matmul(1, 8, 8, 8);
  fused.stepKinds = 1 << CDL_KIND_BINARY;
  EXPECT_EQ(target->query(fused).reason, CDL_REASON_ATTRIBUTE);
  InstrDesc softmax;
  softmax.kind = CDL_KIND_SOFTMAX;
  EXPECT_EQ(target->query(softmax).reason, CDL_REASON_NO_ROW);
  EXPECT_FALSE(target->hasKind(CDL_KIND_SOFTMAX));
  EXPECT_TRUE(target->hasKind(CDL_KIND_UNARY));
  InstrDesc tanh;
  tanh.kind = CDL_KIND_UNARY;
  tanh.fn = CDL_UNARY_TANH;
  EXPECT_EQ(target->query(tanh).reason, CDL_REASON_NO_ROW);
}

TEST(Query, ColumnsSideBySideAreARowOfTheirOwnFlag) {
  const auto described = [](const Shape& strides) {
    InstrDesc desc = matmul(2, 8, 8, 8);
    classifyInput(CDL_KIND_MATMUL, 1, strides, desc.operands[1]);
    return desc;
  };
  const InstrDesc columns = described({64, 1, 8});
  const InstrDesc apart = described({200, 1, 12}); // between columns there is room
  const InstrDesc repeated = described({0, 1, 8});
  const InstrDesc scattered = described({1, 2, 16});
  InstrDesc left = matmul(2, 8, 8, 8);
  classifyInput(CDL_KIND_MATMUL, 0, Shape{64, 1, 8}, left.operands[0]);
  for (const uint8_t cls : {CDL_CLASS_DENSE, CDL_CLASS_ROW_STRIDED})
    for (const bool byColumns : {false, true}) {
      Table table = fp32();
      std::erase_if(table.rows, [](const cdl_row_t& row) { return row.kind == CDL_KIND_MATMUL; });
      cdl_row_t& row = table.add(CDL_KIND_MATMUL, 0, {CDL_F32, CDL_F32, CDL_F32});
      row.operand_class = cls;
      row.flags = byColumns ? CDL_ROW_BY_COLUMNS : 0;
      const auto target = table.target();
      ASSERT_TRUE(target.isOk()) << target.status().message();
      const auto isTaken = [&](const InstrDesc& desc) {
        return target->query(desc).support == Support::native;
      };
      EXPECT_TRUE(isTaken(matmul(2, 8, 8, 8)));
      EXPECT_EQ(isTaken(columns), byColumns);
      EXPECT_EQ(isTaken(repeated), byColumns);
      EXPECT_EQ(isTaken(apart), byColumns && cls == CDL_CLASS_ROW_STRIDED);
      EXPECT_FALSE(isTaken(scattered));
      EXPECT_FALSE(isTaken(left));
    }
}

/// MATMUL whose second operand lies in layout 1 or 2, opaque ones of rank 3.
Table packing(std::vector<const char*>& names) {
  Table table = fp32();
  cdl_layout_t opaque{};
  opaque.opaque = 1;
  opaque.logical_rank = 3;
  table.layouts.insert(table.layouts.end(), 2, opaque);
  for (const uint16_t layout : {1, 2})
    table.add(CDL_KIND_MATMUL, 0, {CDL_F32, CDL_F32, CDL_F32}).layouts[1] = layout;
  table.view();
  table.table.layout_names = names.data();
  return table;
}

/// What a target says of B in the opaque layout of this name.
Answer askPacked(const Target& target, const char* name) {
  InstrDesc packed = matmul(1, 8, 8, 8);
  packed.operands[1].layout = target.layouts()[1];
  packed.operands[1].layoutName = name;
  return target.query(packed);
}

TEST(Query, OpaqueLayoutsAreToldApartByTheirNames) {
  std::vector<const char*> names{nullptr, "panels", "tiles"};
  const Table table = packing(names);
  const auto target = Target::fromCapabilities("acme", table.table, false);
  ASSERT_TRUE(target.isOk()) << target.status().message();
  EXPECT_FALSE(sameLayout(target->layouts()[1], target->layouts()[2]));
  EXPECT_EQ(askPacked(*target, "panels").row + 1, askPacked(*target, "tiles").row);
  const Answer unknown = askPacked(*target, "stripes");
  EXPECT_EQ(unknown.reason, CDL_REASON_LAYOUT);
  EXPECT_THAT(unknown.detail, HasSubstr("operand 1 is opaque 'stripes', not"));
  EXPECT_EQ(target->query(matmul(1, 8, 8, 8)).support, Support::native) << "by the required row";
}

TEST(Capabilities, OpaqueLayoutsNeedNames) {
  std::vector<const char*> names{nullptr, "panels", ""};
  const Table table = packing(names);
  const auto target = Target::fromCapabilities("acme", table.table, false);
  ASSERT_FALSE(target.isOk());
  EXPECT_THAT(target.status().message(), HasSubstr("layout 2 is opaque and has no name"));
}

TEST(Capabilities, RowsOnOpaqueLayoutsOfOldTablesAreNeverTaken) {
  std::vector<const char*> names;
  Table table = packing(names);
  table.table.header.struct_size = offsetof(cdl_capabilities_t, layout_names);
  const auto target = Target::fromCapabilities("acme", table.table, false);
  ASSERT_TRUE(target.isOk()) << target.status().message();
  EXPECT_EQ(askPacked(*target, "").reason, CDL_REASON_LAYOUT);
  EXPECT_EQ(target->query(matmul(1, 8, 8, 8)).support, Support::native);
}

TEST(Query, Atoms) {
  const auto answer = [](auto&& limit, InstrDesc desc) {
    Table table = fp32();
    table.add(CDL_KIND_CONV2D, 0, {CDL_F32, CDL_F32, CDL_F32});
    limit(table);
    auto target = table.target();
    EXPECT_TRUE(target.isOk()) << target.status().message();
    return target->query(desc).reason;
  };
  InstrDesc conv;
  conv.kind = CDL_KIND_CONV2D;
  conv.operands = {
      {Elem::f32_, {1, 16, 8, 8}}, {Elem::f32_, {4, 16, 3, 3}}, {Elem::f32_, {1, 4, 6, 6}}};
  EXPECT_EQ(answer([](Table& t) { t.limit(CDL_ATOM_RANK, CDL_REL_EQ, 0, 4); }, conv),
            CDL_REASON_NONE);
  EXPECT_EQ(answer([](Table& t) { t.limit(CDL_ATOM_RANK, CDL_REL_EQ, 0, 3); }, conv),
            CDL_REASON_RANK);
  EXPECT_EQ(answer([](Table& t) { t.limit(CDL_ATOM_IS_CONST, CDL_REL_EQ, 1, 1); }, conv),
            CDL_REASON_NOT_CONSTANT);
  EXPECT_EQ(answer([](Table& t) { t.limit(CDL_ATOM_ELEMENTS, CDL_REL_GE, 0, 1025); }, conv),
            CDL_REASON_DIM);
  EXPECT_EQ(
      answer([](Table& t) { t.limit(CDL_ATOM_DIM_PRODUCT, CDL_REL_LE, 1, 9).attr = 0xc; }, conv),
      CDL_REASON_NONE);
  EXPECT_EQ(
      answer([](Table& t) { t.limit(CDL_ATOM_DIM_PRODUCT, CDL_REL_LE, 1, 8).attr = 0xc; }, conv),
      CDL_REASON_DIM);
  EXPECT_EQ(answer([](Table& t) { t.limit(CDL_ATOM_DIM, CDL_REL_LE, 0, 8).dim = 5; }, conv),
            CDL_REASON_DIM);
  // Group is left out of the question: its default is 1.
  EXPECT_EQ(answer([](Table& t) { t.limit(CDL_ATOM_ATTR, CDL_REL_EQ, 0, 1).attr = CDL_ATTR_GROUP; },
                   conv),
            CDL_REASON_NONE);
  const auto strideIn12 = [](Table& t) {
    cdl_atom_t& atom = t.limit(CDL_ATOM_ATTR, CDL_REL_IN, 0, 0);
    atom.attr = CDL_ATTR_STRIDES;
    atom.dim = 1;
    atom.set_count = 2;
    atom.set[0] = 1;
    atom.set[1] = 2;
  };
  EXPECT_EQ(answer(strideIn12, conv), CDL_REASON_NONE);
  conv.attrs = {{CDL_ATTR_STRIDES, {1, 3}}};
  EXPECT_EQ(answer(strideIn12, conv), CDL_REASON_ATTRIBUTE);
}

/// "3 row 2 takes all of it" for each idle row behind the required ones, counted from there.
std::vector<std::string> idle(Table& table, size_t first) {
  std::vector<std::string> texts;
  const auto target = table.target().orAbort();
  for (const IdleRow& row : idleRows(target)) {
    EXPECT_GE(row.row, first) << row.text << ": " << row.why;
    texts.push_back(fmt::format("{} {}", row.row - first, row.why));
  }
  return texts;
}

TEST(IdleRows, NameAtomsThatContradictEachOther) {
  Table table = fp32();
  const size_t first = table.rows.size();
  const auto conv = [&] { table.add(CDL_KIND_CONV2D, 0, {CDL_F32, CDL_F32, CDL_F32}); };
  conv();
  table.limit(CDL_ATOM_RANK, CDL_REL_EQ, 0, 4);
  table.limit(CDL_ATOM_DIM, CDL_REL_LE, 0, 64).dim = 1;
  table.limit(CDL_ATOM_DIM, CDL_REL_GE, 0, 8).dim = 1;
  table.limit(CDL_ATOM_DIM, CDL_REL_MOD, 0, 16).dim = 1;
  conv();
  table.limit(CDL_ATOM_DIM, CDL_REL_LE, 1, 8).dim = 2;
  table.limit(CDL_ATOM_DIM, CDL_REL_GE, 1, 9).dim = 2;
  conv();
  table.limit(CDL_ATOM_IS_CONST, CDL_REL_EQ, 1, 2);
  conv();
  table.limit(CDL_ATOM_RANK, CDL_REL_EQ, 0, 4);
  table.limit(CDL_ATOM_DIM, CDL_REL_GE, 0, 1).dim = 4;
  conv();
  table.limit(CDL_ATOM_DIM, CDL_REL_MOD, 0, 4, 1).dim = 3;
  table.limit(CDL_ATOM_DIM, CDL_REL_MOD, 0, 6, 2).dim = 3;
  EXPECT_THAT(
      idle(table, first),
      testing::ElementsAre("1 dim 2 of operand 1 >= 9 contradicts dim 2 of operand 1 <= 8",
                           "2 constness of operand 1 = 2 is never so",
                           "3 dim 4 of operand 0 >= 1 asks for a dim that rank 4 does not have",
                           "4 dim 3 of operand 0 % 6 = 2 contradicts dim 3 of operand 0 % 4 = 1"));
}

TEST(IdleRows, NameTypesThatNoProductHas) {
  Table table = fp32();
  const size_t first = table.rows.size();
  table.add(CDL_KIND_MATMUL, 0, {CDL_F8E4M3, CDL_F8E4M3, CDL_F32});
  table.add(CDL_KIND_MATMUL, 0, {CDL_I8, CDL_I8, CDL_F32});
  table.add(CDL_KIND_MATMUL, 0, {CDL_I8, CDL_I8, CDL_I8}).flags = CDL_ROW_EPILOGUE;
  table.add(CDL_KIND_CONV2D, 0, {CDL_F32, CDL_I8, CDL_F32}).flags = CDL_ROW_EPILOGUE;
  table.add(CDL_KIND_SCALED_MATMUL, CDL_SCALED_MATMUL_EXACT,
            {CDL_F8E4M3, CDL_F8E4M3, CDL_F32, CDL_F32});
  table.add(CDL_KIND_SCALED_MATMUL, CDL_SCALED_MATMUL_DYNAMIC,
            {CDL_F32, CDL_F8E4M3, CDL_F32, CDL_F32});
  table.add(CDL_KIND_SCALED_MATMUL, CDL_SCALED_MATMUL_EXACT, {CDL_F32, CDL_I4, CDL_I8, CDL_F32});
  EXPECT_THAT(idle(table, first),
              testing::ElementsAre("0 no product of f8e4m3 and f8e4m3 gives f32",
                                   "1 no product of i8 and i8 gives f32",
                                   "3 there is no product of f32 and i8", "5 w cannot be f8e4m3",
                                   "6 w_scale cannot be i8"));
}

TEST(IdleRows, NameWhatAnotherRowTakes) {
  Table table = fp32();
  const size_t first = table.rows.size();
  const auto conv = [&](uint8_t cls = CDL_CLASS_DENSE) -> cdl_row_t& {
    return table.add(CDL_KIND_CONV2D, 0, {CDL_F32, CDL_F32, CDL_F32}, cls);
  };
  conv(); // 0: the next but one takes more
  table.limit(CDL_ATOM_DIM, CDL_REL_LE, 0, 64).dim = 1;
  conv().flags = CDL_ROW_EPILOGUE; // 1: other instructions
  table.limit(CDL_ATOM_DIM, CDL_REL_LE, 0, 32).dim = 1;
  conv(CDL_CLASS_BROADCAST); // 2
  table.limit(CDL_ATOM_DIM, CDL_REL_LE, 0, 128).dim = 1;
  conv(CDL_CLASS_BROADCAST); // 3: the same again
  table.limit(CDL_ATOM_DIM, CDL_REL_LE, 0, 128).dim = 1;
  conv(CDL_CLASS_AFFINE); // 4: narrower elsewhere
  table.limit(CDL_ATOM_RANK, CDL_REL_EQ, 0, 4);
  table.limit(CDL_ATOM_IS_CONST, CDL_REL_EQ, 1, 1);
  conv(); // 5: no part of any
  EXPECT_THAT(idle(table, first),
              testing::ElementsAre("0 row " + std::to_string(first + 2) + " takes all of it",
                                   "3 row " + std::to_string(first + 2) + " takes all of it"));
}

TEST(IdleRows, AreNoneOfTheRequiredOnes) {
  Table table = fp32();
  EXPECT_THAT(idle(table, 0), testing::ElementsAre());
}

TEST(Classify, Classes) {
  const auto of = [](Shape dims, std::vector<int64_t> strides) { return classify(dims, strides); };
  EXPECT_EQ(of({2, 3, 4}, {12, 4, 1}), OperandClass::dense);
  EXPECT_EQ(of({}, {}), OperandClass::dense);
  EXPECT_EQ(of({2, 1, 4}, {4, 99, 1}), OperandClass::dense); // the stride of extent 1 means nothing
  EXPECT_EQ(of({2, 0}, {7, 7}), OperandClass::dense);
  EXPECT_EQ(of({2, 3, 4}, {0, 1, 0}), OperandClass::broadcast);
  EXPECT_EQ(of({2, 3}, {0, 0}), OperandClass::broadcast);
  EXPECT_EQ(of({2, 3, 4}, {24, 8, 1}), OperandClass::rowStrided);
  EXPECT_EQ(of({2, 3, 4}, {100, 0, 1}), OperandClass::rowStrided);
  EXPECT_EQ(of({3, 4}, {1, 3}), OperandClass::affine);
  EXPECT_EQ(of({4}, {-1}), OperandClass::affine);
  EXPECT_EQ(of({3, 4}, {-4, 1}), OperandClass::affine);
  EXPECT_EQ(of({3, 4}, {8, 2}), OperandClass::affine);
}

TEST(Views, CoalesceKeepsTheOrderOfVisits) {
  std::mt19937 random(7);
  for (int round = 0; round < 500; ++round) {
    Shape dims;
    std::vector<int64_t> a, b;
    for (size_t d = random() % 5; d-- > 0;) {
      dims.push_back(1 + random() % 3);
      a.push_back(static_cast<int64_t>(random() % 4) * (1 + random() % 3));
    }
    b = denseStrides(dims);
    const auto visits = [](const Walk& walk) {
      std::vector<std::pair<int64_t, int64_t>> all;
      for (int64_t i = 0; i < *elementCount(walk.dims); ++i) {
        int64_t rest = i, x = 0, y = 0;
        for (size_t d = walk.dims.size(); d-- > 0; rest /= walk.dims[d]) {
          x += rest % walk.dims[d] * walk.strides[0][d];
          y += rest % walk.dims[d] * walk.strides[1][d];
        }
        all.emplace_back(x, y);
      }
      return all;
    };
    const Walk before{dims, {a, b}}, after = coalesce(before);
    EXPECT_EQ(visits(before), visits(after));
    EXPECT_LE(after.dims.size(), std::max<size_t>(1, dims.size()));
  }
}

TEST(Views, BroadcastWalksAreShort) {
  const Shape x{2, 3, 4, 5};
  const auto dense = broadcastStrides(x, x), bias = broadcastStrides({3, 1, 1}, x);
  EXPECT_EQ(coalesce({x, {dense, dense}}).dims, Shape{120});
  const Walk channel = coalesce({x, {dense, bias}});
  EXPECT_EQ(channel.dims, (Shape{2, 3, 20}));
  EXPECT_EQ(channel.strides[1], (std::vector<int64_t>{0, 1, 0}));
  EXPECT_EQ(coalesce({{}, {{}, {}}}).dims, Shape{1});
  EXPECT_EQ(coalesce({{2, 0}, {{0, 1}}}).dims, Shape{0});
}

} // namespace
} // namespace candela::capabilities
