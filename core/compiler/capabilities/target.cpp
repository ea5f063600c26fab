#include "core/compiler/capabilities/target.h"

#include <algorithm>
#include <array>
#include <ranges>

#include "core/compiler/capabilities/atom_holds.h"
#include "core/compiler/capabilities/refusal.h"
#include "core/compiler/capabilities/rows.h"

namespace candela::capabilities {
namespace {

// How far a row got before it said no; the one that got furthest gives the reason.
enum Stage { kFn = 1, kElems, kSteps, kClass, kLayout, kAtoms, kTaken };

struct Objection {
  Stage stage = kFn;
  uint16_t reason = CDL_REASON_NO_ROW;
  std::string detail;
};

const std::vector<int64_t>* findAttr(const InstrDesc& desc, uint16_t id) {
  for (const auto& [key, values] : desc.attrs)
    if (key == id) return &values;
  return nullptr;
}

// The number that an atom speaks about; nullopt when the instruction has no such thing.
std::optional<int64_t> subjectOf(const cdl_atom_t& atom, const InstrDesc& desc) {
  if (atom.subject == CDL_ATOM_ATTR) {
    std::span<const int64_t> values = attrDefault(atom.attr);
    if (const auto* given = findAttr(desc, atom.attr)) values = *given;
    if (atom.dim >= values.size()) return std::nullopt;
    return values[atom.dim];
  }
  if (atom.operand >= desc.operands.size()) return std::nullopt;
  const OperandDesc& operand = desc.operands[atom.operand];
  const int rank = static_cast<int>(operand.dims.size());
  switch (atom.subject) {
  case CDL_ATOM_RANK: return rank;
  case CDL_ATOM_IS_CONST: return operand.isConstant;
  case CDL_ATOM_ELEMENTS: return elementCount(operand.dims);
  case CDL_ATOM_DIM: {
    int dim = static_cast<int8_t>(atom.dim);
    if (dim < 0) dim += rank;
    if (dim < 0 || dim >= rank) return std::nullopt;
    return operand.dims[dim];
  }
  default: {
    Shape dims;
    for (int d = 0; d < CDL_MAX_RANK; ++d) {
      if (!(atom.attr >> d & 1)) continue;
      if (d >= rank) return std::nullopt;
      dims.push_back(operand.dims[d]);
    }
    return elementCount(dims);
  }
  }
}

/// By CDL_ATOM_*: how a message names it, and the reason that it gives.
struct Subject {
  std::string_view text;
  uint16_t reason;
};
constexpr Subject kSubjects[] = {
    {},
    {"rank of operand {operand}", CDL_REASON_RANK},
    {"dim {dim} of operand {operand}", CDL_REASON_DIM},
    {"{attr}[{dim}]", CDL_REASON_ATTRIBUTE},
    {"constness of operand {operand}", CDL_REASON_NOT_CONSTANT},
    {"elements of operand {operand}", CDL_REASON_DIM},
    {"product of dims {mask:#x} of operand {operand}", CDL_REASON_DIM}};

std::string subjectText(const cdl_atom_t& atom) {
  return fmt::format(fmt::runtime(kSubjects[atom.subject].text), fmt::arg("operand", atom.operand),
                     fmt::arg("dim", static_cast<int8_t>(atom.dim)),
                     fmt::arg("attr", attrText(atom.attr)), fmt::arg("mask", atom.attr));
}

std::string relationText(const cdl_atom_t& atom) {
  switch (atom.relation) {
  case CDL_REL_EQ: return fmt::format("= {}", atom.a);
  case CDL_REL_LE: return fmt::format("<= {}", atom.a);
  case CDL_REL_GE: return fmt::format(">= {}", atom.a);
  case CDL_REL_MOD: return fmt::format("% {} = {}", atom.a, atom.b);
  default: return fmt::format("in {{{}}}", fmt::join(atom.set, atom.set + atom.set_count, ","));
  }
}

std::string elemsText(const InstrDesc& desc) {
  return fmt::format("{}", fmt::join(desc.operands | std::views::transform([](const auto& o) {
                                       return elemName(o.elem);
                                     }),
                                     ","));
}

std::string layoutText(const cdl_layout_t& layout, const std::string& name) {
  if (layout.opaque) return fmt::format("opaque '{}'", name);
  std::string text;
  for (int i = 0; i < layout.count; ++i)
    text += fmt::format("{}d{}{}", i ? "," : "", layout.dim[i],
                        layout.factor[i] ? fmt::format("%{}", layout.factor[i]) : "");
  return text.empty() ? "row-major" : text;
}

/// An operand lies as a row of the target asks.
bool liesAs(const OperandDesc& operand, const Target& target, uint16_t index) {
  const cdl_layout_t& asked = target.layouts()[index];
  if (!asked.opaque || !operand.layout.opaque) return sameLayout(asked, operand.layout);
  return asked.logical_rank == operand.layout.logical_rank && !operand.layoutName.empty() &&
         target.layoutName(index) == operand.layoutName;
}

Objection judge(const Target& target, size_t index, const InstrDesc& desc) {
  const Target::Row& entry = target.rows()[index];
  const cdl_row_t& row = entry.row;
  if (row.fn != desc.fn) return {};
  std::vector<uint8_t> elems;
  for (const OperandDesc& operand : desc.operands)
    elems.push_back(static_cast<uint8_t>(operand.elem));
  if (!takesElems(row, elems, desc.stepKinds != 0))
    return {kElems, CDL_REASON_DTYPE,
            fmt::format("{} of {} is in no row", instrText(desc.kind, desc.fn), elemsText(desc))};
  if (desc.stepKinds) {
    const bool takes = desc.kind == CDL_KIND_ELEMENTWISE || (row.flags & CDL_ROW_EPILOGUE);
    if (!takes || (desc.stepKinds & ~row.steps_mask))
      return {kSteps, CDL_REASON_ATTRIBUTE,
              fmt::format("steps {:#x} are outside {:#x} (row {})", desc.stepKinds,
                          takes ? row.steps_mask : 0, index)};
  }
  if (desc.prologueKinds) {
    const bool takes = row.flags & CDL_ROW_PROLOGUE;
    if (!takes || (desc.prologueKinds & ~row.steps_mask))
      return {kSteps, CDL_REASON_ATTRIBUTE,
              fmt::format("steps {:#x} of a prologue are outside {:#x} (row {})",
                          desc.prologueKinds, takes ? row.steps_mask : 0, index)};
  }
  for (size_t i = 0; i < desc.operands.size(); ++i) {
    OperandClass cls = desc.operands[i].cls;
    if (row.flags & CDL_ROW_BY_COLUMNS) cls = std::min(cls, desc.operands[i].byColumns);
    if (static_cast<uint8_t>(cls) > row.operand_class)
      return {kClass, CDL_REASON_OPERAND_CLASS,
              fmt::format("operand {} is {}, not {} (row {})", i,
                          classText(static_cast<unsigned>(desc.operands[i].cls)),
                          classText(row.operand_class), index)};
  }
  for (size_t i = 0; i < desc.operands.size(); ++i) {
    const uint16_t layout = i < std::size(row.layouts) ? row.layouts[i] : 0;
    if (!liesAs(desc.operands[i], target, layout))
      return {kLayout, CDL_REASON_LAYOUT,
              fmt::format("operand {} is {}, not {} (row {})", i,
                          layoutText(desc.operands[i].layout, desc.operands[i].layoutName),
                          layoutText(target.layouts()[layout], target.layoutName(layout)), index)};
  }
  for (const cdl_atom_t& atom : entry.atoms) {
    const std::optional<int64_t> value = subjectOf(atom, desc);
    if (value && atomHolds(atom, *value)) continue;
    return {kAtoms, kSubjects[atom.subject].reason,
            fmt::format("{} {}, expected {} (row {})", subjectText(atom),
                        value ? std::to_string(*value) : "is missing", relationText(atom), index)};
  }
  return {kTaken, CDL_REASON_NONE, ""};
}

} // namespace

std::string atomText(const cdl_atom_t& atom) {
  return subjectText(atom) + " " + relationText(atom);
}

bool sameLayout(const cdl_layout_t& a, const cdl_layout_t& b) {
  if (a.opaque && b.opaque) return a.name == b.name;
  return a.count == b.count && a.logical_rank == b.logical_rank && a.pad_content == b.pad_content &&
         a.opaque == b.opaque && std::equal(a.dim, a.dim + a.count, b.dim) &&
         std::equal(a.factor, a.factor + a.count, b.factor);
}

OperandClass classify(std::span<const int64_t> dims, std::span<const int64_t> strides) {
  for (int64_t dim : dims)
    if (dim == 0) return OperandClass::dense;
  bool broadcast = true, rowStrided = true, repeats = false, innermost = true;
  int64_t expected = 1;
  for (size_t d = dims.size(); d-- > 0;) {
    if (dims[d] == 1) continue;
    if (innermost) rowStrided = strides[d] == 0 || strides[d] == 1;
    rowStrided = rowStrided && strides[d] >= 0;
    innermost = false;
    if (strides[d] == 0) {
      repeats = true;
    } else {
      broadcast = broadcast && strides[d] == expected;
      expected *= dims[d];
    }
  }
  if (broadcast) return repeats ? OperandClass::broadcast : OperandClass::dense;
  return rowStrided ? OperandClass::rowStrided : OperandClass::affine;
}

void classifyInput(uint16_t kind, size_t index, std::span<const int64_t> strides,
                   OperandDesc& operand) {
  const Shape& dims = operand.dims;
  const bool isFactor = kind == CDL_KIND_MATMUL && index < 2 && dims.size() == 3;
  const size_t skip = isFactor && strides[0] == 0 ? 1 : 0;
  operand.cls = classify(std::span(dims).subspan(skip), strides.subspan(skip));
  if (!isFactor || index == 0) return;
  const std::array exchanged{dims[0], dims[2], dims[1]};
  const std::array steps{strides[0], strides[2], strides[1]};
  operand.byColumns = classify(std::span(exchanged).subspan(skip), std::span(steps).subspan(skip));
}

/// Whether a row that names no types takes all of these: those of claimed profiles that can be
/// computed with, and whatever else the table names but for products with scales, whose weights and
/// scales are no numbers that anything else computes with.
static bool namesAll(const std::vector<Target::Row>& rows, uint32_t profiles,
                     const InstrDesc& desc) {
  return std::ranges::all_of(desc.operands, [&](const OperandDesc& operand) {
    const auto elem = static_cast<uint8_t>(operand.elem);
    return (!isStorageOnly(operand.elem) && profilesCover(profiles, operand.elem)) ||
           std::ranges::any_of(rows, [&](const Target::Row& entry) {
             return entry.row.kind != CDL_KIND_SCALED_MATMUL &&
                    std::find(entry.row.elems, entry.row.elems + entry.row.elem_count, elem) !=
                        entry.row.elems + entry.row.elem_count;
           });
  });
}

bool takesElems(const cdl_row_t& row, std::span<const uint8_t> elems, bool hasExpr) {
  if (row.elem_count == 0) return true;
  if (row.elem_count != elems.size()) return false;
  for (size_t i = 0; i < elems.size(); ++i)
    if (row.elems[i] != 0 && row.elems[i] != elems[i]) return false;
  return hasExpr || !(row.flags & CDL_ROW_EPILOGUE) || row.elems[row.elem_count - 1] != 0;
}

Answer Target::query(const InstrDesc& desc) const {
  Answer best{Support::none, CDL_REASON_NO_ROW, "no row for " + instrText(desc.kind, desc.fn), -1};
  if (const std::string text = tooLarge(desc, spaces_); !text.empty())
    return {Support::none, CDL_REASON_MEMORY, refusalText(CDL_REASON_MEMORY, text), -1};
  Stage closest = kFn;
  for (size_t i = 0; i < rows_.size(); ++i) {
    if (rows_[i].row.kind != desc.kind || rows_[i].row.support == CDL_SUPPORT_NONE) continue;
    Objection objection = judge(*this, i, desc);
    if (objection.stage == kTaken && rows_[i].row.elem_count == 0 && !isHost_ &&
        !namesAll(rows_, profiles_, desc))
      objection = {kElems, CDL_REASON_DTYPE, elemsText(desc) + " are types that no row names"};
    if (objection.stage == kTaken) {
      const auto support = static_cast<Support>(rows_[i].row.support);
      if (support > best.support) best = {support, CDL_REASON_NONE, "", static_cast<int>(i)};
      if (support == Support::native) return best;
    } else if (best.support == Support::none && objection.stage > closest) {
      closest = objection.stage;
      best.reason = objection.reason;
      best.detail = std::move(objection.detail);
    }
  }
  // A type that no claimed profile has is the shorter explanation.
  if (best.support == Support::none && closest == kElems && !isHost_)
    for (const OperandDesc& operand : desc.operands)
      if (!profilesCover(profiles_, operand.elem)) {
        best.reason = CDL_REASON_PROFILE;
        best.detail = fmt::format("{} is outside every claimed profile", elemName(operand.elem));
        break;
      }
  if (closest == kFn && isHostOp(desc.kind)) best.reason = CDL_REASON_HOST_ONLY;
  if (best.support == Support::none) best.detail = refusalText(best.reason, best.detail);
  return best;
}

const Target::SpaceInfo* Target::constantSpace() const {
  const auto at = std::ranges::find_if(
      spaces_, [](const SpaceInfo& info) { return info.space.flags & CDL_SPACE_CONSTANTS; });
  return at == spaces_.end() ? nullptr : &*at;
}

Target Target::nativeOnly() const {
  Target target = *this;
  std::erase_if(target.rows_, [](const Row& row) { return row.row.support != CDL_SUPPORT_NATIVE; });
  return target;
}

bool Target::hasKind(uint16_t kind) const {
  return std::ranges::any_of(rows_, [&](const Row& entry) {
    return entry.row.kind == kind && entry.row.support != CDL_SUPPORT_NONE;
  });
}

} // namespace candela::capabilities
