#include "core/compiler/capabilities/idle_rows.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

#include "core/compiler/capabilities/atom_holds.h"
#include "core/compiler/capabilities/rows.h"
#include "core/support/scaled_product.h"

namespace candela::capabilities {
namespace {

constexpr int64_t kLowest = std::numeric_limits<int64_t>::min(),
                  kHighest = std::numeric_limits<int64_t>::max();

/// What an atom speaks of.
auto subjectKey(const cdl_atom_t& atom) {
  const bool hasDim = atom.subject == CDL_ATOM_DIM || atom.subject == CDL_ATOM_ATTR;
  const bool hasAttr = atom.subject == CDL_ATOM_ATTR || atom.subject == CDL_ATOM_DIM_PRODUCT;
  const bool hasOperand = atom.subject != CDL_ATOM_ATTR;
  const uint8_t operand = hasOperand ? atom.operand : 0;
  const uint8_t dim = hasDim ? atom.dim : 0;
  const uint16_t attr = hasAttr ? atom.attr : 0;
  return std::tuple(atom.subject, operand, dim, attr);
}

/// The values that an atom names, if it names them one by one.
std::vector<int64_t> namedBy(const cdl_atom_t& atom) {
  if (atom.relation == CDL_REL_EQ) return {atom.a};
  if (atom.relation == CDL_REL_IN) return {atom.set, atom.set + atom.set_count};
  return {};
}

/// The highest rank that an atom of a rank leaves.
int64_t highestRankOf(const cdl_atom_t& atom) {
  const std::vector<int64_t> named = namedBy(atom);
  if (!named.empty()) return *std::ranges::max_element(named);
  return atom.relation == CDL_REL_LE ? atom.a : CDL_MAX_RANK;
}

struct Bounds {
  int64_t low = kLowest, high = kHighest;
};
/// What a subject may be, whatever a row says.
Bounds boundsOf(uint8_t subject) {
  if (subject == CDL_ATOM_ATTR) return {};
  if (subject == CDL_ATOM_IS_CONST) return {0, 1};
  return {0, subject == CDL_ATOM_RANK ? CDL_MAX_RANK : kHighest};
}

/// Whether some value is what all of these atoms, of one subject, ask for.
bool canHold(const std::vector<cdl_atom_t>& atoms) {
  const auto holds = [&](int64_t value) {
    return std::ranges::all_of(atoms,
                               [&](const cdl_atom_t& atom) { return atomHolds(atom, value); });
  };
  Bounds bounds = boundsOf(atoms[0].subject);
  const auto isPossible = [&](int64_t value) {
    return value >= bounds.low && value <= bounds.high && holds(value);
  };
  int64_t period = 1;
  for (const cdl_atom_t& atom : atoms) {
    if (const std::vector<int64_t> named = namedBy(atom); !named.empty())
      return std::ranges::any_of(named, isPossible);
    if (atom.relation == CDL_REL_LE) bounds.high = std::min(bounds.high, atom.a);
    if (atom.relation == CDL_REL_GE) bounds.low = std::max(bounds.low, atom.a);
    if (atom.relation == CDL_REL_MOD)
      period = std::min<int64_t>(period * std::min<int64_t>(atom.a, 1 << 20), 1 << 20);
  }
  if (bounds.low > bounds.high) return false;
  // Remainders repeat; where their common period is long, they are taken to meet.
  if (period == 1 || period == 1 << 20) return true;
  const int64_t first = std::max<int64_t>(bounds.low, 0);
  for (int64_t value = first; value - first < period && value <= bounds.high; ++value)
    if (holds(value)) return true;
  return false;
}

/// Atoms of one row that contradict each other; empty: none do.
std::string contradictionOf(const Target::Row& row) {
  using Key = decltype(subjectKey(cdl_atom_t{}));
  std::map<Key, std::vector<cdl_atom_t>> bySubject;
  std::map<uint8_t, int64_t> highestRank;
  for (const cdl_atom_t& atom : row.atoms) {
    std::vector<cdl_atom_t>& atoms = bySubject[subjectKey(atom)];
    atoms.push_back(atom);
    if (!canHold(atoms)) {
      if (atoms.size() == 1) return fmt::format("{} is never so", atomText(atom));
      const auto against = std::ranges::find_if(
          atoms, [&](const cdl_atom_t& other) { return !canHold({other, atom}); });
      return fmt::format("{} contradicts {}", atomText(atom),
                         atomText(against != atoms.end() ? *against : atoms[0]));
    }
    if (atom.subject != CDL_ATOM_RANK) continue;
    const int64_t most = highestRankOf(atom);
    const auto [at, isNew] = highestRank.try_emplace(atom.operand, most);
    at->second = std::min(at->second, most);
  }
  for (const cdl_atom_t& atom : row.atoms) {
    if (atom.subject != CDL_ATOM_DIM || !highestRank.contains(atom.operand)) continue;
    const int dim = static_cast<int8_t>(atom.dim);
    if ((dim < 0 ? -dim : dim + 1) > highestRank[atom.operand])
      return fmt::format("{} asks for a dim that rank {} does not have", atomText(atom),
                         highestRank[atom.operand]);
  }
  return "";
}

/// What a row asks of an operand's type; none: anything, or there is no such operand.
Elem elemOf(const cdl_row_t& row, size_t operand) {
  const bool isInput = operand + 1 < row.elem_count;
  return isInput ? static_cast<Elem>(row.elems[operand]) : Elem::none;
}

/// Why MATMUL and CONV2D have no product of a row's types. What an epilogue makes of the sums is
/// open, so that any type of theirs will do.
std::string whyNoProduct(const cdl_row_t& row) {
  const Elem a = elemOf(row, 0);
  const Elem b = elemOf(row, 1);
  const auto y = static_cast<Elem>(row.elems[row.elem_count - 1]);
  if (a == Elem::none || b == Elem::none) return "";
  const bool isOpen = y == Elem::none || (row.flags & CDL_ROW_EPILOGUE);
  for (unsigned sum = 1; isOpen && sum < kElemCount; ++sum)
    if (isProduct(a, b, static_cast<Elem>(sum))) return "";
  if (isOpen) return fmt::format("there is no product of {} and {}", elemName(a), elemName(b));
  if (isProduct(a, b, y)) return "";
  return fmt::format("no product of {} and {} gives {}", elemName(a), elemName(b), elemName(y));
}

std::string whyNoScaledProduct(const cdl_row_t& row) {
  ScaledProductTypes types;
  types.isDynamic = row.fn == CDL_SCALED_MATMUL_DYNAMIC;
  types.a = elemOf(row, 0);
  types.w = elemOf(row, 1);
  types.wScale = elemOf(row, 2);
  types.wZero = elemOf(row, 3);
  types.aScale = elemOf(row, 4);
  const auto y = static_cast<Elem>(row.elems[row.elem_count - 1]);
  const bool isOpen = y == Elem::none || (row.flags & CDL_ROW_EPILOGUE);
  types.y = isOpen ? Elem::f32_ : y;
  const bool isNamed = types.a != Elem::none && types.w != Elem::none && types.wScale != Elem::none;
  return isNamed ? candela::whyNoScaledProduct(types) : "";
}

/// Types that no instruction of a Program has together; empty: one has, or the row does not say.
std::string whyNoTypes(const cdl_row_t& row) {
  if (row.elem_count < 3) return "";
  switch (row.kind) {
  case CDL_KIND_MATMUL:
  case CDL_KIND_CONV2D: return whyNoProduct(row);
  case CDL_KIND_SCALED_MATMUL: return whyNoScaledProduct(row);
  default: return "";
  }
}

/// Whether whatever is true of `atoms` makes this one true.
bool follows(const cdl_atom_t& atom, const std::vector<cdl_atom_t>& atoms) {
  return std::ranges::any_of(atoms, [&](const cdl_atom_t& given) {
    if (subjectKey(given) != subjectKey(atom)) return false;
    if (const std::vector<int64_t> named = namedBy(given); !named.empty())
      return std::ranges::all_of(named, [&](int64_t value) { return atomHolds(atom, value); });
    if (given.relation != atom.relation) return false;
    if (given.relation == CDL_REL_LE) return given.a <= atom.a;
    if (given.relation == CDL_REL_GE) return given.a >= atom.a;
    return given.a % atom.a == 0 && given.b % atom.a == atom.b;
  });
}

/// A result of any type is promised with an expression alone.
bool needsExpr(const cdl_row_t& row) {
  return (row.flags & CDL_ROW_EPILOGUE) && row.elem_count > 0 && row.elems[row.elem_count - 1] == 0;
}

bool takesSteps(const cdl_row_t& row) {
  return row.kind == CDL_KIND_ELEMENTWISE || (row.flags & (CDL_ROW_EPILOGUE | CDL_ROW_PROLOGUE));
}

/// Whether the row takes every instruction that `other` takes, and as well.
bool takesAllOf(const Target& target, const Target::Row& entry, const Target::Row& of) {
  const cdl_row_t &row = entry.row, &other = of.row;
  if (row.kind != other.kind || row.fn != other.fn || row.support < other.support) return false;
  if (row.operand_class < other.operand_class || (other.flags & ~row.flags)) return false;
  if (needsExpr(row) && !needsExpr(other)) return false;
  if (takesSteps(other) && (other.steps_mask & ~row.steps_mask)) return false;
  if (row.elem_count != 0) {
    if (row.elem_count != other.elem_count) return false;
    for (size_t i = 0; i < row.elem_count; ++i)
      if (row.elems[i] != 0 && row.elems[i] != other.elems[i]) return false;
  }
  for (size_t i = 0; i < std::size(row.layouts); ++i)
    if (!sameLayout(target.layouts()[row.layouts[i]], target.layouts()[other.layouts[i]]))
      return false;
  return std::ranges::all_of(entry.atoms,
                             [&](const cdl_atom_t& atom) { return follows(atom, of.atoms); });
}

std::string rowText(const cdl_row_t& row) {
  std::string text = instrText(row.kind, row.fn);
  for (size_t i = 0; i < row.elem_count; ++i)
    text += fmt::format("{}{}", i ? "," : " ",
                        row.elems[i] ? elemName(static_cast<Elem>(row.elems[i])) : "any");
  return text;
}

} // namespace

std::vector<IdleRow> idleRows(const Target& target) {
  const std::vector<Target::Row>& rows = target.rows();
  std::vector<IdleRow> idle;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].row.support == CDL_SUPPORT_NONE) continue;
    std::string why = whyNoTypes(rows[i].row);
    if (why.empty()) why = contradictionOf(rows[i]);
    if (!why.empty()) {
      idle.push_back({i, rowText(rows[i].row), std::move(why)});
      continue;
    }
    // what the host does besides is no fault
    if (rows[i].row.support != CDL_SUPPORT_NATIVE) continue;
    for (size_t k = 0; k < rows.size(); ++k) {
      const bool isFirst = k < i || !takesAllOf(target, rows[i], rows[k]);
      if (k == i || !isFirst || !takesAllOf(target, rows[k], rows[i]) ||
          !contradictionOf(rows[k]).empty())
        continue;
      idle.push_back({i, rowText(rows[i].row), fmt::format("row {} takes all of it", k)});
      break;
    }
  }
  return idle;
}

} // namespace candela::capabilities
