// The gate between a plugin's capability table and the core: after it, every number in a Target can
// be trusted.
#include <algorithm>
#include <bit>
#include <cstring>

#include "core/compiler/capabilities/foreign.h"
#include "core/compiler/capabilities/rows.h"
#include "core/compiler/capabilities/target.h"

namespace candela::capabilities {
namespace {

// Far above what any honest table holds; keeps a hostile count from being walked or allocated.
constexpr uint32_t kMaxRows = 1 << 16, kMaxAtoms = 1 << 18, kMaxLayouts = 1 << 12, kMaxSpaces = 64;
constexpr uint32_t kMaxEngines = 64, kMaxFactor = 4096;
constexpr uint64_t kMaxAlignment = 1 << 16;
constexpr size_t kMaxName = 256;

Status checkArray(const char* what, const void* data, uint32_t count, uint32_t stride,
                  size_t record, uint32_t limit) {
  if (count == 0) return Status::ok();
  if (!data) return badArgument("{} {}s are declared but the table is null", count, what);
  if (count > limit) return badArgument("{} {}s are more than the limit of {}", count, what, limit);
  if (stride < record || stride % 8 != 0)
    return badArgument("{} stride {} is not a multiple of 8 of at least {} bytes", what, stride,
                       record);
  if (reinterpret_cast<uintptr_t>(data) % 8 != 0)
    return badArgument("the {} table is not 8-byte aligned", what);
  return Status::ok();
}

Status checkAtom(const cdl_atom_t& atom, const cdl_row_t& row) {
  if (atom.subject < CDL_ATOM_RANK || atom.subject > CDL_ATOM_DIM_PRODUCT)
    return badArgument("subject {} is unknown", atom.subject);
  if (atom.relation < CDL_REL_EQ || atom.relation > CDL_REL_IN)
    return badArgument("relation {} is unknown", atom.relation);
  const bool ofOperand = atom.subject != CDL_ATOM_ATTR;
  if (ofOperand && row.elem_count != 0 && atom.operand >= row.elem_count)
    return badArgument("operand {} of a row of {}", atom.operand, row.elem_count);
  if (atom.subject == CDL_ATOM_DIM) {
    const int dim = static_cast<int8_t>(atom.dim);
    if (dim < -CDL_MAX_RANK || dim >= CDL_MAX_RANK)
      return badArgument("dim {} is out of range", dim);
  }
  if (atom.subject == CDL_ATOM_ATTR) {
    if (!cdl_attr_facts(atom.attr) && row.kind != CDL_KIND_CUSTOM)
      return badArgument("attribute {} is unknown", atom.attr);
    if (atom.dim >= 8) return badArgument("value {} of an attribute is out of range", atom.dim);
  }
  if (atom.subject == CDL_ATOM_DIM_PRODUCT && (atom.attr == 0 || atom.attr >> CDL_MAX_RANK != 0))
    return badArgument("dim mask {:#x} is empty or names a dim above {}", atom.attr,
                       CDL_MAX_RANK - 1);
  if (atom.relation == CDL_REL_MOD && atom.a <= 0)
    return badArgument("modulus {} is not positive", atom.a);
  if (atom.relation == CDL_REL_IN && (atom.set_count == 0 || atom.set_count > std::size(atom.set)))
    return badArgument("set of {} values, expected 1 to {}", atom.set_count, std::size(atom.set));
  return Status::ok();
}

Status checkRow(const cdl_row_t& row, const cdl_capabilities_t& table) {
  const cdl_kind_facts_t* kind = cdl_kind_facts(row.kind);
  if (!kind) return badArgument("kind {} is unknown", row.kind);
  if (!cdl_fn_known(row.kind, row.fn))
    return badArgument("function {} of {} is unknown", row.fn, kind->name);
  if (row.elem_count > std::size(row.elems))
    return badArgument("{} element types, at most 8", row.elem_count);
  for (int i = 0; i < row.elem_count; ++i) {
    if (row.elems[i] != 0 && !isValidElem(row.elems[i]))
      return badArgument("element type {} of operand {} is unknown", row.elems[i], i);
    if (row.layouts[i] != 0 && row.layouts[i] >= table.layout_count)
      return badArgument("layout {} of operand {}, the table has {}", row.layouts[i], i,
                         table.layout_count);
  }
  if (row.support > CDL_SUPPORT_NATIVE) return badArgument("support {} is unknown", row.support);
  if (row.operand_class < CDL_CLASS_DENSE || row.operand_class > CDL_CLASS_AFFINE)
    return badArgument("operand class {} is unknown", row.operand_class);
  if ((row.flags & CDL_ROW_BY_COLUMNS) && row.kind != CDL_KIND_MATMUL)
    return badArgument("CDL_ROW_BY_COLUMNS is of MATMUL, not of {}", kind->name);
  if (uint64_t(row.first_atom) + row.atoms > table.atom_count)
    return badArgument("atoms {} to {}, the table has {}", row.first_atom,
                       uint64_t(row.first_atom) + row.atoms, table.atom_count);
  return Status::ok();
}

Status checkLayout(const cdl_layout_t& layout) {
  if (layout.opaque) return Status::ok();
  if (layout.count < 1 || layout.count > CDL_MAX_RANK)
    return badArgument("{} steps, expected 1 to 8", layout.count);
  if (layout.logical_rank < 1 || layout.logical_rank > CDL_MAX_RANK)
    return badArgument("logical rank {}, expected 1 to 8", layout.logical_rank);
  unsigned seen = 0;
  for (int i = 0; i < layout.count; ++i) {
    if (layout.dim[i] >= layout.logical_rank)
      return badArgument("step {} names dim {} of rank {}", i, layout.dim[i], layout.logical_rank);
    // A value of any extent must fit: the outermost step of each dim is the open one.
    const bool isOutermost = !(seen >> layout.dim[i] & 1);
    if (isOutermost != (layout.factor[i] == 0) || layout.factor[i] > kMaxFactor)
      return badArgument("factor {} of step {}, expected {}", layout.factor[i], i,
                         isOutermost ? "0" : fmt::format("1 to {}", kMaxFactor));
    seen |= 1u << layout.dim[i];
  }
  if (seen + 1 != 1u << layout.logical_rank)
    return badArgument("dims {:#x} of rank {} have a step", seen, layout.logical_rank);
  return Status::ok();
}

bool covers(const cdl_row_t& row, const RequiredRow& need) {
  if (row.kind != need.kind || row.fn != need.fn || row.support == CDL_SUPPORT_NONE) return false;
  if (row.operand_class < need.operandClass) return false;
  return takesElems(row, {need.elems, need.elemCount}, false);
}

// A row that is limited by atoms counts: what lies outside of the limits goes to another target.
Status checkRequired(uint32_t profiles, const std::vector<Target::Row>& rows) {
  for (const RequiredRow& need : requiredRows())
    if (need.isRequiredBy(profiles) && std::ranges::none_of(rows, [&](const Target::Row& entry) {
          return covers(entry.row, need);
        }))
      return badArgument(
          "profile {} is claimed{} but its required row {} (class {}) is missing",
          profileText(need.profile),
          need.beside == need.profile ? "" : fmt::format(" beside {}", profileText(need.beside)),
          need.text(), classText(need.operandClass));
  return Status::ok();
}

/// "FP32, FP16 or BF16"
std::string eitherOf(uint32_t profiles) {
  std::vector<const char*> names;
  for (unsigned p = 0; p < kProfileCount; ++p)
    if (profiles >> p & 1) names.push_back(profileText(p));
  const char* const last = names.back();
  names.pop_back();
  return names.empty() ? last : fmt::format("{} or {}", fmt::join(names, ", "), last);
}

Status checkProfiles(uint32_t profiles) {
  if (profiles >> kProfileCount != 0)
    return badArgument("profile mask {:#x} names unknown profiles", profiles);
  if (!(profiles >> CDL_PROFILE_BASE & 1))
    return badArgument("profile BASE is not claimed; claim it and FP32");
  if (std::popcount(profiles) < 2)
    return badArgument("only profile BASE is claimed, one more is needed");
  for (unsigned p = 0; p < kProfileCount; ++p) {
    const uint32_t beside = profilesBeside(p);
    if ((profiles >> p & 1) && beside && !(profiles & beside))
      return badArgument("profile {} is claimed without {}; claim one of them beside it",
                         profileText(p), eitherOf(beside));
  }
  return Status::ok();
}

} // namespace

Result<Target> Target::fromCapabilities(std::string name, const cdl_capabilities_t& table,
                                        bool isHost) {
  Target target;
  target.isHost_ = isHost;
  CDL_TRY(target.read(table).context(fmt::format("capabilities of '{}'", name)));
  target.name_ = std::move(name);
  return target;
}

Status Target::read(const cdl_capabilities_t& given) {
  if (given.header.major != CDL_ABI_MAJOR ||
      given.header.struct_size < CDL_OLDEST_cdl_capabilities_t)
    return failure(Code::incompatible,
                   "built against {}.{} with {} bytes, this core has {}.{} with {}",
                   given.header.major, given.header.minor, given.header.struct_size, CDL_ABI_MAJOR,
                   CDL_ABI_MINOR, sizeof(cdl_capabilities_t));
  const cdl_capabilities_t table = copyStruct(given);
  CDL_TRY(checkArray("row", table.rows, table.row_count, table.row_stride, CDL_OLDEST_cdl_row_t,
                     kMaxRows));
  CDL_TRY(checkArray("atom", table.atoms, table.atom_count, table.atom_stride,
                     CDL_OLDEST_cdl_atom_t, kMaxAtoms));
  CDL_TRY(checkArray("layout", table.layouts, table.layout_count, table.layout_stride,
                     CDL_OLDEST_cdl_layout_t, kMaxLayouts));
  CDL_TRY(checkArray("space", table.spaces, table.space_count, table.space_stride,
                     CDL_OLDEST_cdl_space_t, kMaxSpaces));
  CDL_TRY(checkProfiles(table.profiles));
  if (table.engine_count > kMaxEngines)
    return badArgument("{} engines are more than the limit of {}", table.engine_count, kMaxEngines);
  if (table.flags & ~uint32_t(CDL_DEVICE_FTZ_F32 | CDL_DEVICE_FTZ_F16 | CDL_DEVICE_DETERMINISTIC))
    return badArgument("device flags {:#x} are unknown", table.flags);
  profiles_ = table.profiles;
  engines_ = std::max(1u, table.engine_count);
  CDL_TRY(readLayouts(table));
  uint64_t atomsCopied = 0;
  for (uint32_t i = 0; i < table.row_count; ++i) {
    Row entry{recordAt(table.rows, table.row_stride, i), {}};
    const std::string name = fmt::format("row {} ({})", i, instrText(entry.row.kind, entry.row.fn));
    CDL_TRY(checkRow(entry.row, table).context(name));
    if ((atomsCopied += entry.row.atoms) > kMaxAtoms)
      return badArgument("rows refer to more than {} atoms", kMaxAtoms);
    for (uint32_t k = 0; k < entry.row.atoms; ++k) {
      entry.atoms.push_back(recordAt(table.atoms, table.atom_stride, entry.row.first_atom + k));
      CDL_TRY(
          checkAtom(entry.atoms.back(), entry.row).context(fmt::format("{}: atom {}", name, k)));
    }
    rows_.push_back(std::move(entry));
  }
  CDL_TRY(readSpaces(table));
  if (table.tiling) CDL_TRY(readTiling(*table.tiling).context("tiling"));
  if (!spaces_.empty()) alignment_ = spaces_[0].space.alignment;
  return checkRequired(profiles_, rows_);
}

Status Target::readLayouts(const cdl_capabilities_t& table) {
  layouts_.emplace_back(); // the table's own first record may be left out
  layoutNames_.emplace_back();
  const bool knowsNames = CDL_HAS(&table, layout_names);
  for (uint32_t i = 1; i < table.layout_count; ++i) {
    cdl_layout_t layout = recordAt(table.layouts, table.layout_stride, i);
    CDL_TRY(checkLayout(layout).context(fmt::format("layout {}", i)));
    std::string name;
    if (layout.opaque && knowsNames) {
      const char* given = table.layout_names ? table.layout_names[i] : nullptr;
      if (!given || !*given) return badArgument("layout {} is opaque and has no name", i);
      if (layout.logical_rank < 1 || layout.logical_rank > CDL_MAX_RANK)
        return badArgument("logical rank {} of layout {}, expected 1 to 8", layout.logical_rank, i);
      name = given;
    }
    layout.name = layout.opaque ? i : 0;
    layouts_.push_back(layout);
    layoutNames_.push_back(std::move(name));
  }
  return Status::ok();
}

Status Target::readSpaces(const cdl_capabilities_t& table) {
  if (table.space_count && !table.space_names)
    return badArgument("space_names is null with {} spaces", table.space_count);
  for (uint32_t i = 0; i < table.space_count; ++i) {
    const cdl_space_t space = recordAt(table.spaces, table.space_stride, i);
    const char* text = table.space_names[i];
    if (!text) return badArgument("space {} has no name", i);
    const size_t length = strnlen(text, kMaxName);
    if (length == 0 || length == kMaxName)
      return badArgument("space {} has a name of {} characters", i, length);
    if (!std::has_single_bit(space.alignment) || space.alignment > kMaxAlignment)
      return badArgument("space '{}': alignment {} is not a power of two up to {}", text,
                         space.alignment, kMaxAlignment);
    if (space.flags &
        ~uint32_t(CDL_SPACE_HOST_MAPPED | CDL_SPACE_LOCAL | CDL_SPACE_SUMS | CDL_SPACE_CONSTANTS))
      return badArgument("space '{}': flags {:#x} are unknown", text, space.flags);
    if ((space.flags & CDL_SPACE_SUMS) && !(space.flags & CDL_SPACE_LOCAL))
      return badArgument("space '{}' holds SUMS but is not LOCAL", text);
    if ((space.flags & CDL_SPACE_CONSTANTS) && (i == 0 || (space.flags & CDL_SPACE_LOCAL)))
      return badArgument("space '{}' is for constants but {}", text,
                         i == 0 ? "the default one" : "LOCAL");
    if ((space.flags & CDL_SPACE_CONSTANTS) && constantSpace())
      return badArgument("space '{}' is the second one for constants", text);
    spaces_.push_back({std::string(text, length), space});
  }
  return Status::ok();
}

Status Target::readTiling(const cdl_tiling_t& given) {
  if (given.header.major != CDL_ABI_MAJOR || given.header.struct_size < CDL_OLDEST_cdl_tiling_t)
    return failure(Code::incompatible,
                   "built against {}.{} with {} bytes, this core has {}.{} with {}",
                   given.header.major, given.header.minor, given.header.struct_size, CDL_ABI_MAJOR,
                   CDL_ABI_MINOR, sizeof(cdl_tiling_t));
  tiling_ = copyStruct(given);
  for (const auto& [name, engine] :
       {std::pair("compute", tiling_->compute_engine), std::pair("load", tiling_->load_engine),
        std::pair("store", tiling_->store_engine)})
    if (engine >= engines_)
      return badArgument("{}_engine {} of a device with {}", name, engine, engines_);
  return Status::ok();
}

} // namespace candela::capabilities
