// What soft runs, as rows: enumerated from the same functions that look up the kernels.
#include <span>
#include <vector>

#include "core/runtime/host_executor/block.h"
#include "core/runtime/host_executor/call.h"
#include "core/runtime/host_executor/soft.h"

namespace candela::runtime::host_executor {
namespace {

constexpr uint8_t kStored[] = {CDL_F32,        CDL_F16,        CDL_BF16,   CDL_F64,    CDL_I8,
                               CDL_U8,         CDL_I16,        CDL_U16,    CDL_I32,    CDL_U32,
                               CDL_I64,        CDL_U64,        CDL_BOOL,   CDL_F8E4M3, CDL_F8E5M2,
                               CDL_F8E4M3FNUZ, CDL_F8E5M2FNUZ, CDL_F8E8M0, CDL_F6E2M3, CDL_F6E3M2,
                               CDL_F4E2M1,     CDL_I4,         CDL_U4,     CDL_I2,     CDL_U2};
constexpr std::span kArithmetic(kStored, 13), kFloats(kStored, 4), kRescaled(kStored + 4, 7);
constexpr uint64_t kSteps = UINT64_C(1) << CDL_KIND_UNARY | UINT64_C(1) << CDL_KIND_BINARY |
                            UINT64_C(1) << CDL_KIND_COMPARE | UINT64_C(1) << CDL_KIND_SELECT |
                            UINT64_C(1) << CDL_KIND_CONVERT | UINT64_C(1) << CDL_KIND_RESCALE;

using Elems = std::vector<uint8_t>;

struct Rows : std::vector<cdl_row_t> {
  void add(uint16_t kind, uint16_t fn, const Elems& elems, uint64_t steps = 0) {
    cdl_row_t row{};
    row.kind = kind;
    row.fn = fn;
    row.elem_count = static_cast<uint8_t>(elems.size());
    row.support = CDL_SUPPORT_NATIVE;
    row.operand_class = CDL_CLASS_AFFINE;
    row.flags = CDL_ROW_DYNAMIC_LOOPS;
    if (steps && kind != CDL_KIND_ELEMENTWISE) row.flags |= CDL_ROW_EPILOGUE;
    if (kind == CDL_KIND_REDUCE) row.flags |= CDL_ROW_PROLOGUE;
    if (kind == CDL_KIND_REDUCE) steps = kSteps;
    row.steps_mask = steps;
    std::copy(elems.begin(), elems.end(), row.elems);
    push_back(row);
  }
  /// For every function of the kind.
  void addAll(uint16_t kind, const Elems& elems) {
    for (uint16_t fn = 0; cdl_fn_known(kind, fn); ++fn) add(kind, fn, elems);
  }
  /// Plain, with a result of one of these types, and with an epilogue: then it has what the
  /// expression gives, any.
  void addFinished(uint16_t kind, uint16_t fn, Elems elems, const Elems& results) {
    elems.push_back(0);
    add(kind, fn, elems, kSteps);
    for (const uint8_t result : results) {
      elems.back() = result;
      add(kind, fn, elems);
    }
  }

  Rows() {
    for (const uint8_t e : kStored) add(CDL_KIND_COPY, 0, {e, e});
    for (const uint8_t e : kStored)
      if (!isPackedElem(e)) {
        add(CDL_KIND_FILL, 0, {e});
        for (const uint8_t index : {CDL_I32, CDL_I64}) addAll(CDL_KIND_GATHER, {e, index, e});
      }
    for (const uint8_t from : kStored)
      for (const uint8_t to : kStored) addAll(CDL_KIND_CONVERT, {from, to});
    add(CDL_KIND_ELEMENTWISE, 0, {}, kSteps);
    for (const uint8_t e : kArithmetic) {
      for (uint16_t fn = 0; cdl_fn_known(CDL_KIND_BINARY, fn); ++fn)
        if (findBinary(fn, e)) add(CDL_KIND_BINARY, fn, {e, e, e});
      for (uint16_t fn = 0; cdl_fn_known(CDL_KIND_UNARY, fn); ++fn)
        if (findUnary(fn, e)) add(CDL_KIND_UNARY, fn, {e, e});
      for (uint16_t fn = 0; cdl_fn_known(CDL_KIND_REDUCE, fn); ++fn)
        addFinished(CDL_KIND_REDUCE, fn, {e}, {e});
      addAll(CDL_KIND_COMPARE, {e, e, CDL_BOOL});
      addAll(CDL_KIND_SORT, {e, e, CDL_I32});
      add(CDL_KIND_SELECT, 0, {CDL_BOOL, e, e, e});
      for (const uint8_t index : {CDL_I32, CDL_I64}) {
        addAll(CDL_KIND_SCATTER, {index, e, e});
        if (e != CDL_BOOL) addAll(CDL_KIND_ARG_REDUCE, {e, index});
      }
      for (const uint8_t x : {CDL_I8, CDL_U8}) add(CDL_KIND_TABLE, 0, {x, e, e});
      for (const uint8_t b : kArithmetic) addMatmul(e, b);
    }
    add(CDL_KIND_TABLE, 0, {CDL_I16, CDL_I16, CDL_I16});
    addScaledMatmul();
    for (const uint8_t a : kRescaled)
      for (const uint8_t y : kRescaled) {
        add(CDL_KIND_RESCALE, 0, {a, CDL_I32, CDL_I32, CDL_I32, y});
        for (const uint8_t b : kRescaled)
          if (a != CDL_I64 && b != CDL_I64)
            add(CDL_KIND_RESCALE, 0, {a, CDL_I32, CDL_I32, CDL_I32, b, CDL_I32, y});
      }
    for (const uint8_t e : kFloats) {
      addAll(CDL_KIND_SOFTMAX, {e, e});
      for (const Elems& elems : {Elems{e, e}, Elems{e, e, e}, Elems{e, e, e, e}})
        addAll(CDL_KIND_NORM, elems);
    }
  }
  /// Of any types that the check of Programs lets pass: there are too many to name each.
  void addScaledMatmul() {
    constexpr uint8_t any = 0;
    Elems operands{any, any, any};
    for (int count = 3; count <= 5; ++count, operands.push_back(any))
      for (const uint16_t fn : {CDL_SCALED_MATMUL_EXACT, CDL_SCALED_MATMUL_DYNAMIC})
        if (count < 5 || fn == CDL_SCALED_MATMUL_EXACT) // else a gets its own scales
          addFinished(CDL_KIND_SCALED_MATMUL, fn, operands, {CDL_F32, CDL_F16, CDL_BF16});
  }
  void addMatmul(uint8_t a, uint8_t b) {
    Elems sums;
    for (const uint8_t y : kArithmetic)
      if (hasProduct(a, b, y)) sums.push_back(y);
    if (sums.empty()) return;
    addFinished(CDL_KIND_MATMUL, 0, {a, b}, sums);
    if (cdl_elem_bits(a) > 16 || isFloatElem(a)) return; // no zero points
    for (const uint8_t za : {a, uint8_t{CDL_I32}}) {
      addFinished(CDL_KIND_MATMUL, 0, {a, b, za}, sums);
      for (const uint8_t zb : {b, uint8_t{CDL_I32}})
        addFinished(CDL_KIND_MATMUL, 0, {a, b, za, zb}, sums);
    }
  }
};

} // namespace

const cdl_capabilities_t& capabilities() {
  static const Rows rows;
  static const cdl_layout_t layout{};
  static const cdl_space_t space{0, CDL_SPACE_HOST_MAPPED, 0, 64, 0};
  static const char* const spaceName = "host";
  constexpr uint32_t profiles =
      (1u << CDL_PROFILE_BASE) | (1u << CDL_PROFILE_FP32) | (1u << CDL_PROFILE_FP16) |
      (1u << CDL_PROFILE_BF16) | (1u << CDL_PROFILE_INT8) | (1u << CDL_PROFILE_INT16) |
      (1u << CDL_PROFILE_FP8) | (1u << CDL_PROFILE_INT4W) | (1u << CDL_PROFILE_MX);
  static const cdl_capabilities_t table{.header = CDL_HEADER(cdl_capabilities_t),
                                        .profiles = profiles,
                                        .row_count = static_cast<uint32_t>(rows.size()),
                                        .row_stride = sizeof(cdl_row_t),
                                        .rows = rows.data(),
                                        .atom_count = 0,
                                        .atom_stride = sizeof(cdl_atom_t),
                                        .atoms = nullptr,
                                        .layout_count = 1,
                                        .layout_stride = sizeof(cdl_layout_t),
                                        .layouts = &layout,
                                        .space_count = 1,
                                        .space_stride = sizeof(cdl_space_t),
                                        .spaces = &space,
                                        .space_names = &spaceName,
                                        .engine_count = 1,
                                        .flags = CDL_DEVICE_DETERMINISTIC,
                                        .tiling = nullptr,
                                        .layout_names = nullptr};
  return table;
}

} // namespace candela::runtime::host_executor
