#pragma once

#include <algorithm>
#include <string>

#include "candela/cdl.h"

namespace candela::capabilities {

/// Whether the atom is true of a subject of this value.
inline bool atomHolds(const cdl_atom_t& atom, int64_t value) {
  switch (atom.relation) {
  case CDL_REL_EQ: return value == atom.a;
  case CDL_REL_LE: return value <= atom.a;
  case CDL_REL_GE: return value >= atom.a;
  case CDL_REL_MOD: return value % atom.a == atom.b;
  default:
    return std::find(atom.set, atom.set + atom.set_count, value) != atom.set + atom.set_count;
  }
}

/// "rank of operand 0 = 2"
std::string atomText(const cdl_atom_t& atom);

} // namespace candela::capabilities
