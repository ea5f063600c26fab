// What soft runs, as rows: enumerated from the same functions that look up the kernels.
#include <iterator>
#include <vector>

#include "core/soft/block.h"
#include "core/soft/elements.h"
#include "core/soft/soft.h"

namespace candela::soft {
namespace {

constexpr uint8_t kArithmetic[] = {CDL_F32, CDL_F16, CDL_BF16, CDL_F64, CDL_I8,  CDL_U8,  CDL_I16,
                                   CDL_U16, CDL_I32, CDL_U32,  CDL_I64, CDL_U64, CDL_BOOL};
constexpr uint8_t kStored[] = {CDL_F8E4M3, CDL_F8E5M2};
constexpr uint64_t kSteps = UINT64_C(1) << CDL_KIND_UNARY | UINT64_C(1) << CDL_KIND_BINARY |
                            UINT64_C(1) << CDL_KIND_COMPARE | UINT64_C(1) << CDL_KIND_SELECT |
                            UINT64_C(1) << CDL_KIND_CONVERT;

class Rows {
public:
  Rows() {
    addMoves();
    addBlockOps();
    addIndexed();
    addReductions();
    addMatmul();
    addQuantized();
    addComposites();
  }
  const std::vector<cdl_row_t>& rows() const { return rows_; }

private:
  void add(uint16_t kind, uint16_t fn, std::initializer_list<uint8_t> elems, uint64_t steps = 0) {
    cdl_row_t row{};
    row.kind = kind;
    row.fn = fn;
    row.elem_count = static_cast<uint8_t>(elems.size());
    row.support = CDL_SUPPORT_NATIVE;
    row.operand_class = CDL_CLASS_AFFINE;
    row.flags = CDL_ROW_DYNAMIC_LOOPS;
    if (steps && kind != CDL_KIND_ELEMENTWISE) row.flags |= CDL_ROW_EPILOGUE;
    row.steps_mask = steps;
    std::copy(elems.begin(), elems.end(), row.elems);
    rows_.push_back(row);
  }

  void addMoves() {
    for (uint8_t e : kArithmetic) add(CDL_KIND_COPY, 0, {e, e}), add(CDL_KIND_FILL, 0, {e});
    for (uint8_t e : kStored) add(CDL_KIND_COPY, 0, {e, e}), add(CDL_KIND_FILL, 0, {e});
  }
  void addBlockOps() {
    for (uint16_t fn = 0; fn <= CDL_CONVERT_FLOOR; ++fn)
      for (uint8_t from = CDL_F32; from <= CDL_F8E5M2; ++from)
        for (uint8_t to = CDL_F32; to <= CDL_F8E5M2; ++to)
          if (findConvert(fn, from, to, false)) add(CDL_KIND_CONVERT, fn, {from, to});
    for (uint8_t e : kArithmetic) {
      for (uint16_t fn = 0; fn <= CDL_BINARY_REM; ++fn)
        if (findBinary(fn, e)) add(CDL_KIND_BINARY, fn, {e, e, e});
      for (uint16_t fn = 0; fn <= CDL_COMPARE_LT; ++fn) add(CDL_KIND_COMPARE, fn, {e, e, CDL_BOOL});
      for (uint16_t fn = 0; fn <= CDL_UNARY_SIGMOID; ++fn)
        if (findUnary(fn, e)) add(CDL_KIND_UNARY, fn, {e, e});
      add(CDL_KIND_SELECT, 0, {CDL_BOOL, e, e, e});
    }
    add(CDL_KIND_ELEMENTWISE, 0, {}, kSteps);
  }
  void addIndexed() {
    for (uint8_t e : kArithmetic)
      for (uint8_t index : {CDL_I32, CDL_I64}) {
        for (uint16_t fn = 0; fn <= CDL_GATHER_ZERO; ++fn) add(CDL_KIND_GATHER, fn, {e, index, e});
        for (uint16_t fn = 0; fn <= CDL_SCATTER_MUL; ++fn) add(CDL_KIND_SCATTER, fn, {index, e, e});
        for (uint16_t fn = 0; fn <= CDL_ARG_REDUCE_MIN; ++fn) add(CDL_KIND_ARG_REDUCE, fn, {e, index});
      }
  }
  // With an epilogue the result has the type that the expression gives: 0, any.
  void addReductions() {
    for (uint8_t e : kArithmetic)
      for (uint16_t fn = 0; fn <= CDL_REDUCE_PROD; ++fn) {
        add(CDL_KIND_REDUCE, fn, {e, e});
        add(CDL_KIND_REDUCE, fn, {e, 0}, kSteps);
      }
  }
  void addMatmul() {
    for (uint8_t e : {CDL_F32, CDL_F16, CDL_BF16, CDL_F64, CDL_I32, CDL_U32, CDL_I64, CDL_U64}) {
      add(CDL_KIND_MATMUL, 0, {e, e, e});
      add(CDL_KIND_MATMUL, 0, {e, e, 0}, kSteps);
    }
    constexpr uint8_t integer[][3] = {{CDL_I8, CDL_I8, CDL_I32},  {CDL_U8, CDL_I8, CDL_I32},
                                      {CDL_I8, CDL_U8, CDL_I32},  {CDL_U8, CDL_U8, CDL_I32},
                                      {CDL_I16, CDL_I8, CDL_I64}, {CDL_I16, CDL_I16, CDL_I64}};
    for (const auto& [a, b, y] : integer)
      for (uint64_t steps : {uint64_t{0}, kSteps}) {
        const uint8_t result = steps ? uint8_t{0} : y;
        add(CDL_KIND_MATMUL, 0, {a, b, result}, steps);
        for (uint8_t za : {a, uint8_t{CDL_I32}}) {
          add(CDL_KIND_MATMUL, 0, {a, b, za, result}, steps);
          for (uint8_t zb : {b, uint8_t{CDL_I32}}) add(CDL_KIND_MATMUL, 0, {a, b, za, zb, result}, steps);
        }
      }
  }
  void addQuantized() {
    constexpr uint8_t integers[] = {CDL_I8, CDL_U8, CDL_I16, CDL_U16, CDL_I32, CDL_U32, CDL_I64};
    for (uint8_t a : integers)
      for (uint8_t y : integers) {
        add(CDL_KIND_RESCALE, 0, {a, CDL_I32, CDL_I32, CDL_I32, y});
        for (uint8_t b : integers)
          if (a != CDL_I64 && b != CDL_I64) add(CDL_KIND_RESCALE, 0, {a, CDL_I32, CDL_I32, CDL_I32, b, CDL_I32, y});
      }
    for (uint8_t y : kArithmetic)
      for (uint8_t x : {CDL_I8, CDL_U8}) add(CDL_KIND_TABLE, 0, {x, y, y});
    add(CDL_KIND_TABLE, 0, {CDL_I16, CDL_I16, CDL_I16});
  }
  void addComposites() {
    for (uint8_t e : {CDL_F32, CDL_F16, CDL_BF16, CDL_F64}) {
      for (uint16_t fn = 0; fn <= CDL_SOFTMAX_LOG_SOFTMAX; ++fn) add(CDL_KIND_SOFTMAX, fn, {e, e});
      for (uint16_t fn = 0; fn <= CDL_NORM_RMS; ++fn) {
        add(CDL_KIND_NORM, fn, {e, e});
        add(CDL_KIND_NORM, fn, {e, e, e});
        add(CDL_KIND_NORM, fn, {e, e, e, e});
      }
    }
  }

  std::vector<cdl_row_t> rows_;
};

} // namespace

const cdl_capabilities_t& capabilities() {
  static const Rows rows;
  static const cdl_capabilities_t table = [] {
    static const cdl_layout_t layout{};
    static const cdl_space_t space{0, CDL_SPACE_HOST_MAPPED, 0, 64, 0};
    static const char* const spaceNames[] = {"host"};
    cdl_capabilities_t t{};
    t.header = CDL_HEADER(cdl_capabilities_t);
    t.profiles = (1u << CDL_PROFILE_BASE) | (1u << CDL_PROFILE_FP32) | (1u << CDL_PROFILE_FP16) |
                 (1u << CDL_PROFILE_BF16) | (1u << CDL_PROFILE_INT8) | (1u << CDL_PROFILE_INT16);
    t.row_count = static_cast<uint32_t>(rows.rows().size());
    t.row_stride = sizeof(cdl_row_t);
    t.rows = rows.rows().data();
    t.atom_stride = sizeof(cdl_atom_t);
    t.layout_count = 1;
    t.layout_stride = sizeof(cdl_layout_t);
    t.layouts = &layout;
    t.space_count = 1;
    t.space_stride = sizeof(cdl_space_t);
    t.spaces = &space;
    t.space_names = spaceNames;
    t.engine_count = 1;
    t.flags = CDL_DEVICE_DETERMINISTIC;
    return t;
  }();
  return table;
}

} // namespace candela::soft
