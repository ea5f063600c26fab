// Types of elements.
#include <algorithm>
#include <cmath>

#include "core/compiler/import/tflite/step.h"

namespace candela::import::tflite {
namespace {

void writeQuantize(Step& step) { step.set(0, step.real(0)); }

/// Of halves a conversion.
void writeDequantize(Step& step) {
  const Name x = step.real(0);
  const Elem from = step.input(0).isQuantized() ? Elem::f32_ : step.input(0).elem;
  if (!isFloat(from)) reject("its input is {} without a scale", elemName(from));
  const Elem to = step.output(0).elem;
  step.set(0, from == to ? x : step.cast(x, to));
}

/// Stored numbers as they are, whatever their scale.
void writeCast(Step& step) { step.setStored(0, step.cast(step.stored(0), step.output(0).elem)); }

void writeBitcast(Step& step) {
  const Elem from = step.input(0).elem, to = step.output(0).elem;
  if (elemBits(from) != elemBits(to))
    refuse("from {} to {}, which has another size", elemName(from), elemName(to));
  step.setStored(
      0, step.add("BitCast", {step.stored(0)}, {{"to", static_cast<int64_t>(elemToOnnx(to))}}));
}

/// Rounds to numbers between min and max, moved so that 0 is one of them.
void writeFakeQuant(Step& step) {
  const auto& options = step.options<schema::FakeQuantOptions>();
  const int bits = options.num_bits();
  if (bits < 2 || bits > 16) reject("num_bits is {}, expected 2 to 16", bits);
  const double lowest = options.narrow_range() ? 1 : 0;
  const double highest = std::ldexp(1, bits) - 1;
  const double min = options.min();
  const double max = options.max();
  if (!(min <= 0 && max >= 0 && min < max))
    reject("its range is {} to {}, which has to hold 0", min, max);
  const auto scale = static_cast<float>((max - min) / (highest - lowest));
  const double zero = std::clamp(std::round(lowest - min / scale), lowest, highest);
  const Name least = step.number((lowest - zero) * scale, Elem::f32_);
  const Name most = step.number((highest - zero) * scale, Elem::f32_);
  const Name size = step.number(scale, Elem::f32_);
  const Name clipped = step.add("Clip", {step.real(0), least, most});
  const Name places = step.add("Div", {step.add("Sub", {clipped, least}), size});
  const Name half = step.number(0.5, Elem::f32_);
  const Name rounded = step.add("Floor", {step.add("Add", {places, half})});
  step.set(0, step.add("Add", {step.add("Mul", {rounded, size}), least}));
}

constexpr Operator kQuantization[] = {
    {schema::BuiltinOperator_BITCAST, 1, 1, 1, writeBitcast, "between types of one size"},
    {schema::BuiltinOperator_CAST, 1, 1, 1, writeCast, "no complex numbers"},
    {schema::BuiltinOperator_DEQUANTIZE, 1, 1, 1, writeDequantize},
    {schema::BuiltinOperator_FAKE_QUANT, 1, 1, 1, writeFakeQuant},
    {schema::BuiltinOperator_QUANTIZE, 1, 1, 1, writeQuantize},
};

} // namespace

std::span<const Operator> quantizationOperators() { return kQuantization; }

} // namespace candela::import::tflite
