#include <algorithm>

#include "core/compiler/import/caffe2/step.h"

namespace candela::import::caffe2 {
namespace {

const std::map<std::string_view, const Operator*>& table() {
  static const std::map<std::string_view, const Operator*> all = [] {
    std::map<std::string_view, const Operator*> made;
#define FAMILY(family)                                                                             \
  for (const Operator& op : family##Operators()) made[op.type] = &op;
#include "core/compiler/import/caffe2/operators/families.inc"
#undef FAMILY
    return made;
  }();
  return all;
}

} // namespace

const Operator* findOperator(std::string_view type) {
  const auto found = table().find(type);
  return found == table().end() ? nullptr : found->second;
}

std::vector<const Operator*> allOperators() {
  std::vector<const Operator*> all;
  for (const auto& [type, op] : table()) all.push_back(op);
  return all;
}

} // namespace candela::import::caffe2
