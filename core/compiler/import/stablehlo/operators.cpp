#include <algorithm>
#include <map>
#include <span>

#include "core/compiler/import/stablehlo/model.h"
#include "core/compiler/import/stablehlo/step.h"

namespace candela::import::stablehlo {
namespace {

const std::map<std::string_view, const Operator*>& table() {
  static const std::map<std::string_view, const Operator*> all = [] {
    std::map<std::string_view, const Operator*> made;
#define FAMILY(family)                                                                             \
  for (const Operator& op : family##Operators()) made[op.name] = &op;
#include "core/compiler/import/stablehlo/operators/families.inc"
#undef FAMILY
    return made;
  }();
  return all;
}

} // namespace

const Operator* findOperator(std::string_view name) {
  const auto found = table().find(name);
  return found == table().end() ? nullptr : found->second;
}

std::vector<SupportedOperation> supportedOperations() {
  std::vector<SupportedOperation> all;
  for (const auto& [name, op] : table()) all.push_back({name, op->limits});
  return all;
}

} // namespace candela::import::stablehlo
