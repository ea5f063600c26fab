#include "core/compiler/import/stablehlo/broadcast.h"

#include <algorithm>

#include "core/support/float_bits.h"

namespace candela::import::stablehlo {
namespace {

constexpr int64_t kMostFolded = 64; // elements

Shape joined(const Shape& a, const Shape& b) {
  if (a.empty()) return b;
  if (b.empty()) return a;
  Shape all = a;
  for (size_t i = 0; i < all.size(); ++i)
    if (all[i] == 1) all[i] = b[i];
  return all;
}

bool isFoldable(const Value& value) {
  return value.constant && !isFloat(value.type.elem) && value.constant->count() <= kMostFolded &&
         elemBits(value.type.elem) >= 8;
}

} // namespace

Operands elementwiseOperands(Step& step, bool scalarsToo) {
  Operands all;
  const Type& result = step.output();
  for (size_t i = 0; i < step.inputCount(); ++i) {
    const Type& type = step.type(i);
    const bool isScalar = scalarsToo && type.rank() == 0;
    if (type.dims != result.dims && !isScalar)
      reject("operand {} is {}, but its result is {}", i, type.text(), result.text());
    all.names.push_back(step.kept(i));
    all.kept = joined(all.kept, step.input(i).kept);
  }
  return all;
}

Operands floatOperand(Step& step) {
  const Type& type = step.type(0);
  if (!isFloat(type.elem)) refuse("operand 0 is {}, expected floats", type.text());
  step.expectElem(type.elem);
  return elementwiseOperands(step);
}

bool foldIntegers(Step& step, const std::function<int64_t(const Ints&)>& formula) {
  const Elem elem = step.output().elem;
  if (elemBits(elem) < 8) return false;
  std::vector<Ints> all;
  Shape kept;
  for (size_t i = 0; i < step.inputCount(); ++i) {
    const Value& value = step.input(i);
    const bool fits = value.type.dims == step.output().dims || value.type.rank() == 0;
    if (!isFoldable(value) || !fits) return false;
    if (value.constant->count() != 1) {
      if (!kept.empty() && kept != value.kept) return false;
      kept = value.kept;
    }
    all.push_back(value.constant->toInts());
  }
  auto made = Tensor::zeros(elem, kept);
  if (!made) return false;
  for (int64_t k = 0; k < made->count(); ++k) {
    Ints elements;
    for (const Ints& values : all)
      elements.push_back(values.size() == 1 ? values[0] : values[static_cast<size_t>(k)]);
    const int64_t value = formula(elements);
    const uint64_t bits = isFloat(elem) ? fromReal(elem, static_cast<double>(value))
                                        : static_cast<uint64_t>(value) & elemMask(elem);
    storeElement(elem, made->bytes.mutableData(), k, bits);
  }
  step.setConstant(*std::move(made));
  return true;
}

Name bitsConstant(Step& step, uint64_t bits, Elem elem) {
  auto one = Tensor::zeros(elem, {});
  if (!one) throw Refusal{one.status()};
  storeElement(elem, one->bytes.mutableData(), 0, bits & elemMask(elem));
  return step.constant(*std::move(one));
}

} // namespace candela::import::stablehlo
