#pragma once

#include "tools/candela/support/console.h"

namespace candela::tool {

struct MutantArguments {
  int jobs = 1;
  std::string onnxData;
  std::string query;                   ///< of names
  std::vector<std::string> tiers = {}; ///< that try; empty: all
};

/// Runs all mutants and prints the kill matrix; fails when one survives.
void conformMutants(const MutantArguments& arguments, Console& console);

} // namespace candela::tool
