// Capabilities: what a backend claims, collected in its constructor and turned into the tables of
// cdl.h.
#pragma once

#include "candela/backend/ops.hpp"
#include "candela/cdl_rows.inc"

#include <algorithm>
#include <initializer_list>
#include <map>
#include <optional>
#include <vector>

namespace cdl {

/// BASE, FP32, FP16, BF16, INT8 or INT16; or, beside FP32, FP16 or BF16, products of narrow types:
/// FP8, INT4W or MX.
enum class Profile : uint8_t {
#define CDL_X(name, id, elems) name = id,
  CDL_PROFILES(CDL_X)
#undef CDL_X
};

/// NATIVE: the backend's function runs. EMULATED: the host runs it, visibly. ABSENT: no row, the
/// core works around it.
enum class Support : uint8_t {
  ABSENT = CDL_SUPPORT_NONE,
  EMULATED = CDL_SUPPORT_EMULATED,
  NATIVE = CDL_SUPPORT_NATIVE
};

/// One condition of a row, written as an expression: rank() <= 3, dim(2) % 16 == 0,
/// in(attr(CDL_ATTR_GROUP), {1, 2}).
using Atom = cdl_atom_t;

/// What a condition speaks about; compared, it becomes an Atom.
struct Subject {
  Atom atom{};
};
struct Remainder {
  Atom atom{};
};

namespace detail {
inline Subject subject(uint8_t what, int operand, int dim = 0, uint16_t attr = 0) {
  Subject s;
  s.atom.subject = what;
  s.atom.operand = static_cast<uint8_t>(operand);
  s.atom.dim = static_cast<uint8_t>(dim);
  s.atom.attr = attr;
  return s;
}
inline Atom relate(Atom atom, uint8_t relation, int64_t a, int64_t b = 0) {
  atom.relation = relation;
  atom.a = a;
  atom.b = b;
  return atom;
}
} // namespace detail

// Operands are counted as in the instruction: inputs, then results. Negative dims count from the
// end.
inline Subject rank(int operand = 0) { return detail::subject(CDL_ATOM_RANK, operand); }
inline Subject dim(int d, int operand = 0) { return detail::subject(CDL_ATOM_DIM, operand, d); }
inline Subject elements(int operand = 0) { return detail::subject(CDL_ATOM_ELEMENTS, operand); }
inline Subject attr(uint16_t id, int value = 0) {
  return detail::subject(CDL_ATOM_ATTR, 0, value, id);
}
/// The product of the dims whose bits are set in `mask`.
inline Subject dimProduct(uint16_t mask, int operand = 0) {
  return detail::subject(CDL_ATOM_DIM_PRODUCT, operand, 0, mask);
}
inline Atom isConst(int operand) {
  return detail::relate(detail::subject(CDL_ATOM_IS_CONST, operand).atom, CDL_REL_EQ, 1);
}

inline Atom operator==(const Subject& s, int64_t value) {
  return detail::relate(s.atom, CDL_REL_EQ, value);
}
inline Atom operator<=(const Subject& s, int64_t value) {
  return detail::relate(s.atom, CDL_REL_LE, value);
}
inline Atom operator>=(const Subject& s, int64_t value) {
  return detail::relate(s.atom, CDL_REL_GE, value);
}
inline Remainder operator%(const Subject& s, int64_t value) {
  return Remainder{detail::relate(s.atom, CDL_REL_MOD, value)};
}
inline Atom operator==(const Remainder& r, int64_t value) {
  return detail::relate(r.atom, CDL_REL_MOD, r.atom.a, value);
}
/// At most six values.
inline Atom in(const Subject& s, std::initializer_list<int64_t> values) {
  if (values.size() > 6)
    throw std::invalid_argument(text("in() takes at most 6 values, got ", values.size()));
  Atom atom = detail::relate(s.atom, CDL_REL_IN, 0);
  for (int64_t value : values) atom.set[atom.set_count++] = value;
  return atom;
}

/// Collects claims; build() makes the tables. The required rows come from the specification
/// (cdl_rows.inc).
class Capabilities {
public:
  /// Claims a profile; BASE comes with it. Of FP8, INT4W and MX the rows are those for each of
  /// FP32, FP16 and BF16 that is claimed too, in whatever order.
  void claim(Profile profile) {
    profiles_ |= 1u << static_cast<unsigned>(profile) | 1u << CDL_PROFILE_BASE;
  }
  /// How all rows of a kind that a profile requires are supported; ABSENT: there is no row at all.
  /// Without it: NATIVE when the backend overrides the kind's function. EMULATED leaves native() to
  /// name what the function does take.
  void support(Kind kind, Support support) { kinds_[id(kind)].support = support; }
  /// The NATIVE rows of a kind hold only where all atoms do; beyond that it is EMULATED.
  void limit(Kind kind, std::initializer_list<Atom> atoms) {
    kinds_[id(kind)].limits.assign(atoms);
  }
  /// The strides that the backend's functions of this kind take (CDL_CLASS_*), where more than
  /// required.
  void operandClass(Kind kind, cdl_operand_class_t operandClass) {
    kinds_[id(kind)].operandClass = static_cast<uint8_t>(operandClass);
  }
  /// The NATIVE rows of MATMUL take `b` by columns too.
  void byColumns() { kinds_[id(Kind::MatMul)].byColumns = true; }
  /// The NATIVE rows of a kind take an epilogue of these kinds of steps.
  void epilogue(Kind kind, std::initializer_list<Kind> steps) {
    for (Kind step : steps) kinds_[id(kind)].steps |= uint64_t(1) << id(step);
  }
  /// The NATIVE rows of REDUCE take a prologue too, of the steps that epilogue() named.
  void prologue(Kind kind) { kinds_[id(kind)].hasPrologue = true; }
  /// An additional NATIVE row: types of the operands, then of the results.
  void native(Kind kind, uint16_t fn, std::initializer_list<uint8_t> elems,
              cdl_operand_class_t operandClass = CDL_CLASS_DENSE) {
    if (elems.size() > 8) throw std::invalid_argument("a row has at most 8 element types");
    cdl_row_t row{};
    row.kind = id(kind);
    row.fn = fn;
    row.operand_class = static_cast<uint8_t>(operandClass);
    for (uint8_t elem : elems) row.elems[row.elem_count++] = elem;
    extra_.push_back({row, {}, true});
  }
  /// A physical layout, for native() below: its dims outer to inner, each named by its letter in
  /// `dims`, which are the logical ones in order. layout("nchw", "n,c/16,h,w,c%16") puts 16
  /// neighbouring channels innermost.
  uint16_t layout(const std::string& dims, const std::string& steps) {
    cdl_layout_t record{};
    record.logical_rank = static_cast<uint8_t>(dims.size());
    for (size_t at = 0; at < steps.size();
         at = std::min(steps.find(',', at), steps.size() - 1) + 1) {
      const std::string step = steps.substr(at, steps.find(',', at) - at);
      const size_t dim = dims.find(step[0]), block = step.find('%');
      if (dim == std::string::npos || record.count == CDL_MAX_RANK)
        throw std::invalid_argument("layout " + steps + " of dims " + dims + ": " + step);
      record.dim[record.count] = static_cast<uint8_t>(dim);
      record.factor[record.count++] =
          block == std::string::npos ? 0
                                     : static_cast<uint32_t>(std::stoul(step.substr(block + 1)));
    }
    return addLayout(record, "");
  }
  /// A layout of constants of this rank that only the backend knows: what Backend::packConstant
  /// writes for `name`, a literal. A row for native() below that asks it of an operand is taken
  /// beside one that takes the operand as it is, where that is a constant.
  uint16_t opaqueLayout(const char* name, int rank) {
    cdl_layout_t record{};
    record.logical_rank = static_cast<uint8_t>(rank);
    record.opaque = 1;
    return addLayout(record, name);
  }
  /// An additional NATIVE row on these layouts (0: row-major) of the operands, then of the results,
  /// where all atoms hold. Atoms see dims as they lie in memory. What takes ROW_STRIDED may be
  /// given views inside of halos.
  void native(Kind kind, uint16_t fn, std::initializer_list<uint8_t> elems,
              std::initializer_list<uint16_t> layouts, std::initializer_list<Atom> atoms = {},
              cdl_operand_class_t operandClass = CDL_CLASS_ROW_STRIDED) {
    if (layouts.size() != elems.size())
      throw std::invalid_argument("a row needs one layout per element type");
    native(kind, fn, elems, operandClass);
    std::copy(layouts.begin(), layouts.end(), extra_.back().row.layouts);
    extra_.back().atoms.assign(atoms);
  }
  /// The row that native() added last takes no epilogue, whatever its kind does.
  void withoutEpilogue() { extra_.back().takesEpilogue = false; }
  /// A memory space. The first one declared is the default space; none declared: unlimited host
  /// memory.
  void space(const char* name, uint32_t flags, uint64_t capacityBytes, uint32_t alignment,
             uint32_t banks = 0) {
    spaces_.push_back(cdl_space_t{0, flags, capacityBytes, alignment, banks});
    spaceNames_.push_back(name);
  }
  void engines(uint32_t count) { engines_ = count; }
  void deviceFlags(uint32_t flags) { flags_ = flags; } // CDL_DEVICE_*
  /// Engines and costs by which tiles for LOCAL spaces are chosen; its header is filled in here.
  void tiling(const cdl_tiling_t& tiling) {
    tiling_ = tiling;
    tiling_->header = CDL_HEADER(cdl_tiling_t);
  }

  /// `overridden`: bit k says that the backend has its own function of kind k. Valid as long as
  /// this object; once.
  const cdl_capabilities_t* build(uint64_t overridden) {
    if (built_.header.struct_size) return &built_;
#define CDL_X(profile, kind, fn, elems, e0, e1, e2, e3, e4, cls, ulp)                              \
  required(profile,                                                                                \
           cdl_row_t{kind, fn, elems, 0, cls, 0, {e0, e1, e2, e3, e4, 0, 0, 0}, {}, 0, 0, 0},      \
           overridden);
    CDL_REQUIRED_ROWS(CDL_X)
#undef CDL_X
#define CDL_X(profile, beside, kind, fn, elems, e0, e1, e2, e3, e4, e5, cls, ulp)                  \
  if (profiles_ >> (beside) & 1)                                                                   \
    required(profile,                                                                              \
             cdl_row_t{kind, fn, elems, 0, cls, 0, {e0, e1, e2, e3, e4, e5, 0, 0}, {}, 0, 0, 0},   \
             overridden);
    CDL_REQUIRED_ROWS_BESIDE(CDL_X)
#undef CDL_X
    for (const Extra& extra : extra_)
      if (supportOf(extra.row.kind, ~uint64_t(0)) != Support::ABSENT)
        addNative(extra.row, extra.atoms, extra.takesEpilogue);
    if (spaces_.empty()) space("host", CDL_SPACE_HOST_MAPPED, 0, 64);
    built_ = cdl_capabilities_t{CDL_HEADER(cdl_capabilities_t),
                                profiles_,
                                static_cast<uint32_t>(rows_.size()),
                                sizeof(cdl_row_t),
                                rows_.data(),
                                static_cast<uint32_t>(atoms_.size()),
                                sizeof(cdl_atom_t),
                                atoms_.data(),
                                static_cast<uint32_t>(layouts_.size()),
                                sizeof(cdl_layout_t),
                                layouts_.data(),
                                static_cast<uint32_t>(spaces_.size()),
                                sizeof(cdl_space_t),
                                spaces_.data(),
                                spaceNames_.data(),
                                engines_,
                                flags_,
                                tiling_ ? &*tiling_ : nullptr,
                                layoutNames_.data()};
    return &built_;
  }

private:
  struct KindClaim {
    std::optional<Support> support;
    std::vector<Atom> limits;
    uint8_t operandClass = 0;
    uint64_t steps = 0;
    bool hasPrologue = false;
    bool byColumns = false;
  };

  uint16_t addLayout(const cdl_layout_t& record, const char* name) {
    layouts_.push_back(record);
    layoutNames_.push_back(name);
    return static_cast<uint16_t>(layouts_.size() - 1);
  }

  static uint16_t id(Kind kind) { return static_cast<uint16_t>(kind); }

  Support supportOf(uint16_t kind, uint64_t overridden) const {
    auto known = kinds_.find(kind);
    if (known != kinds_.end() && known->second.support) return *known->second.support;
    return overridden >> kind & 1 ? Support::NATIVE : Support::EMULATED;
  }

  void required(unsigned profile, cdl_row_t row, uint64_t overridden) {
    if (!(profiles_ >> profile & 1)) return;
    for (const cdl_row_t& known : rows_) // u8 belongs to BASE and to INT8
      if (known.kind == row.kind && known.fn == row.fn && known.elem_count == row.elem_count &&
          std::memcmp(known.elems, row.elems, sizeof row.elems) == 0)
        return;
    const Support support = supportOf(row.kind, overridden);
    if (support == Support::ABSENT) return;
    if (support == Support::NATIVE) addNative(row);
    if (support == Support::NATIVE && kinds_[row.kind].limits.empty()) return;
    row.support = CDL_SUPPORT_EMULATED;
    row.flags = CDL_ROW_DYNAMIC_LOOPS;
    rows_.push_back(row);
  }

  void addNative(cdl_row_t row, const std::vector<Atom>& atoms = {}, bool takesEpilogue = true) {
    row.support = CDL_SUPPORT_NATIVE;
    row.flags = CDL_ROW_DYNAMIC_LOOPS;
    const KindClaim& claim = kinds_[row.kind];
    if (claim.operandClass > row.operand_class) row.operand_class = claim.operandClass;
    const uint64_t steps = takesEpilogue ? claim.steps : 0;
    if (steps) row.flags |= CDL_ROW_EPILOGUE;
    if (steps && claim.hasPrologue) row.flags |= CDL_ROW_PROLOGUE;
    if (claim.byColumns) row.flags |= CDL_ROW_BY_COLUMNS;
    row.steps_mask = steps;
    row.first_atom = static_cast<uint32_t>(atoms_.size());
    for (const auto* all : {&atoms, &claim.limits})
      atoms_.insert(atoms_.end(), all->begin(), all->end());
    row.atoms = static_cast<uint32_t>(atoms_.size()) - row.first_atom;
    rows_.push_back(row);
  }

  struct Extra {
    cdl_row_t row;
    std::vector<Atom> atoms;
    bool takesEpilogue = true;
  };

  uint32_t profiles_ = 0, engines_ = 1, flags_ = CDL_DEVICE_DETERMINISTIC;
  std::map<uint16_t, KindClaim> kinds_;
  std::vector<Extra> extra_;
  std::vector<cdl_row_t> rows_;
  std::vector<cdl_layout_t> layouts_{cdl_layout_t{}};
  std::vector<const char*> layoutNames_{""};
  std::vector<cdl_atom_t> atoms_;
  std::vector<cdl_space_t> spaces_;
  std::vector<const char*> spaceNames_;
  std::optional<cdl_tiling_t> tiling_;
  cdl_capabilities_t built_{};
};

} // namespace cdl
