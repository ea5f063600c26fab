#include <algorithm>

#include "core/compiler/import/tflite/model.h"
#include "core/compiler/import/tflite/step.h"

namespace candela::import::tflite {
namespace {

const std::map<int, const Operator*>& table() {
  static const std::map<int, const Operator*> all = [] {
    std::map<int, const Operator*> made;
#define FAMILY(family)                                                                             \
  for (const Operator& op : family##Operators()) made[op.code] = &op;
#include "core/compiler/import/tflite/operators/families.inc"
#undef FAMILY
    return made;
  }();
  return all;
}

} // namespace

const Operator* findOperator(schema::BuiltinOperator code) {
  const auto found = table().find(code);
  return found == table().end() ? nullptr : found->second;
}

void writeUnknown(Step& step) {
  Attributes attributes;
  if (step.op().code == schema::BuiltinOperator_CUSTOM)
    attributes = customAttributes(*step.op().table);
  std::vector<Name> inputs;
  for (size_t i = 0; i < step.inputCount(); ++i)
    inputs.push_back(step.has(i) ? step.stored(i) : "");
  const std::vector<Name> results = step.addAll(step.op().name.c_str(), std::move(inputs),
                                                step.outputCount(), std::move(attributes), kDomain);
  for (size_t i = 0; i < results.size(); ++i) step.setStored(i, results[i]);
}

std::vector<SupportedOperator> supportedOperators() {
  std::vector<SupportedOperator> all;
  for (const auto& [code, op] : table())
    all.push_back({schema::EnumNameBuiltinOperator(op->code), op->limits});
  std::ranges::sort(all, {}, &SupportedOperator::name);
  return all;
}

std::vector<std::string_view> unsupportedOperators() {
  std::vector<std::string_view> all;
  for (const schema::BuiltinOperator code : schema::EnumValuesBuiltinOperator())
    if (!findOperator(code) && code != schema::BuiltinOperator_CUSTOM &&
        code != schema::BuiltinOperator_PLACEHOLDER_FOR_GREATER_OP_CODES)
      all.push_back(schema::EnumNameBuiltinOperator(code));
  std::ranges::sort(all);
  return all;
}

} // namespace candela::import::tflite
