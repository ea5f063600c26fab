#pragma once

#include <initializer_list>
#include <vector>

#include "core/compiler/capabilities/rows.h"
#include "core/compiler/capabilities/target.h"

namespace candela::capabilities {

/// A capability table under construction.
struct Table {
  uint32_t profiles = 0;
  std::vector<cdl_row_t> rows;
  std::vector<cdl_atom_t> atoms;
  std::vector<cdl_layout_t> layouts{cdl_layout_t{}};
  std::vector<cdl_space_t> spaces{{0, CDL_SPACE_HOST_MAPPED, 0, 64, 0}};
  std::vector<const char*> spaceNames{"memory"};
  cdl_capabilities_t table{};

  /// Claims the profiles with every required row and nothing else.
  static Table required(std::initializer_list<unsigned> claimed,
                        uint8_t support = CDL_SUPPORT_NATIVE) {
    Table t;
    for (unsigned profile : claimed) t.profiles |= 1u << profile;
    for (const RequiredRow& row : requiredRows())
      if (row.isRequiredBy(t.profiles))
        t.add(row.kind, row.fn, {row.elems, row.elems + row.elemCount}, row.operandClass, support);
    return t;
  }
  static Table all() {
    return required({CDL_PROFILE_BASE, CDL_PROFILE_FP32, CDL_PROFILE_FP16, CDL_PROFILE_BF16,
                     CDL_PROFILE_INT8, CDL_PROFILE_INT16, CDL_PROFILE_FP8, CDL_PROFILE_INT4W,
                     CDL_PROFILE_MX});
  }
  cdl_row_t& add(uint16_t kind, uint16_t fn, std::vector<uint8_t> elems,
                 uint8_t operandClass = CDL_CLASS_DENSE, uint8_t support = CDL_SUPPORT_NATIVE) {
    cdl_row_t row{};
    row.kind = kind;
    row.fn = fn;
    row.elem_count = static_cast<uint8_t>(elems.size());
    for (size_t i = 0; i < elems.size(); ++i) row.elems[i] = elems[i];
    row.operand_class = operandClass;
    row.support = support;
    rows.push_back(row);
    return rows.back();
  }
  /// An atom of the last row.
  cdl_atom_t& limit(uint8_t subject, uint8_t relation, uint8_t operand, int64_t a, int64_t b = 0) {
    if (rows.back().atoms++ == 0) rows.back().first_atom = static_cast<uint32_t>(atoms.size());
    cdl_atom_t atom{};
    atom.subject = subject;
    atom.relation = relation;
    atom.operand = operand;
    atom.a = a;
    atom.b = b;
    atoms.push_back(atom);
    return atoms.back();
  }
  const cdl_capabilities_t& view() {
    table.header = CDL_HEADER(cdl_capabilities_t);
    table.profiles = profiles;
    table.rows = rows.data();
    table.row_count = static_cast<uint32_t>(rows.size());
    table.row_stride = sizeof(cdl_row_t);
    table.atoms = atoms.data();
    table.atom_count = static_cast<uint32_t>(atoms.size());
    table.atom_stride = sizeof(cdl_atom_t);
    table.layouts = layouts.data();
    table.layout_count = static_cast<uint32_t>(layouts.size());
    table.layout_stride = sizeof(cdl_layout_t);
    table.spaces = spaces.data();
    table.space_count = static_cast<uint32_t>(spaces.size());
    table.space_stride = sizeof(cdl_space_t);
    table.space_names = spaceNames.data();
    table.engine_count = 1;
    return table;
  }
  Result<Target> target(const char* name = "acme", bool isHost = false) {
    return Target::fromCapabilities(name, view(), isHost);
  }
};

} // namespace candela::capabilities
