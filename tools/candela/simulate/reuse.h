#pragma once

#include "core/compiler/driver/kept_models.h"
#include "core/compiler/program/passes/tile/kept_plans.h"

/// Simulations of one process that take from each other.
namespace candela::tool {

/// While one lives, simulations of this thread keep what others can take: parsed models, plans of
/// equal Programs for equal tiling numbers (tile::KeptPlans says by what they are found), and in
/// the backend programs of equal images for configurations that differ in what only time reads (its
/// option `reuse`). What they report is what they would report alone.
class Reuse {
public:
  Reuse();
  ~Reuse();
  Reuse(const Reuse&) = delete;
  Reuse& operator=(const Reuse&) = delete;

  static bool isOn();

private:
  driver::KeptModels models_;
  program::passes::tile::KeptPlans plans_;
};

} // namespace candela::tool
