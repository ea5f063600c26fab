#include "core/compiler/import/tflite/window.h"

#include <algorithm>

namespace candela::import::tflite {

Name channelsFirst(Step& step, const Name& x, int64_t rank) {
  const Name before = step.writer().channelsFirst(x);
  if (!before.empty()) return before;
  Ints perm = {0, rank - 1};
  for (int64_t i = 1; i < rank - 1; ++i) perm.push_back(i);
  return step.transpose(x, perm);
}

Name channelsLast(Step& step, const Name& x, int64_t rank) {
  Ints perm = {0};
  for (int64_t i = 2; i < rank; ++i) perm.push_back(i);
  perm.push_back(1);
  const Name y = step.transpose(x, perm);
  step.writer().noteLayout(y, x);
  return y;
}

void needRank(const Step& step, size_t input, int64_t rank) {
  if (step.input(input).rank() != rank)
    reject("input {} has rank {}, expected {}", input, step.input(input).rank(), rank);
}

Ints extents(const char* what, const Ints& values) {
  for (const int64_t value : values)
    if (value < 1) reject("{} is {}, expected at least 1", what, value);
  return values;
}

std::string padText(schema::Padding padding) {
  if (padding == schema::Padding_SAME) return "SAME_UPPER";
  if (padding == schema::Padding_VALID) return "VALID";
  reject("padding is {}, expected SAME or VALID", static_cast<int>(padding));
}

} // namespace candela::import::tflite
