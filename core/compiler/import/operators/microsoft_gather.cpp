#include <algorithm>

#include "core/compiler/import/operators/microsoft.h"
#include "core/compiler/import/operators/storage.h"

/// Rows of a table that is stored in few bits: what is gathered is dequantized, never the table.
namespace candela::import {
namespace {

/// How GatherBlockQuantized stores its table.
struct QuantizedTable {
  int64_t bits;  ///< of a number in bytes
  int64_t block; ///< 0: all of the axis
  int64_t gatherAxis;
  int64_t quantizeAxis;
};

bool isEightBitFloat(Elem elem) {
  return isFloat(elem) && elemBits(elem) == 8 && elem != Elem::f8e8m0_;
}

QuantizedTable readQuantizedTable(NodeContext& context, const Term& data) {
  QuantizedTable table{};
  table.bits = attrOf<int64_t>(context, "bits", 4);
  table.block = attrOf<int64_t>(context, "block_size", 128);
  table.gatherAxis = need(resolveAxis(attrOf<int64_t>(context, "gather_axis", 0), data.rank()));
  table.quantizeAxis = need(resolveAxis(attrOf<int64_t>(context, "quantize_axis", 1), data.rank()));
  const bool isWhole = table.block == 0 && isFloat(data.elem());
  const bool isPower = table.block >= 16 && (table.block & (table.block - 1)) == 0;
  if (!isWhole && !isPower)
    need(badModel("block_size is {}, expected a power of two from 16 on", table.block));
  if (!isFloat(data.elem()) && table.bits != 2 && table.bits != 4 && table.bits != 8)
    need(badModel("bits is {}, expected 2, 4 or 8", table.bits));
  if (table.gatherAxis == table.quantizeAxis)
    need(failure(Code::unsupported, "gather_axis and quantize_axis are both {}", table.gatherAxis));
  if (data.elem() == Elem::u8_ && table.gatherAxis != 0)
    need(badModel("gather_axis is {} of data in bytes, expected 0", table.gatherAxis));
  return table;
}

/// A constant of packed integers as the bytes that hold them, where its rows are whole bytes.
std::optional<Term> asBytes(const Term& packed) {
  const int64_t each = isPacked(packed.elem()) ? 8 / elemBits(packed.elem()) : 1;
  if (!packed.value()->isConstant() || packed.dim(-1) % each != 0) return std::nullopt;
  Tensor bytes = need(packed.value()->tensor());
  bytes.elem = Elem::u8_;
  bytes.dims.back() /= each;
  return Term(packed.build(), packed.build().constant(std::move(bytes)));
}

/// Integers in the low bits of bytes, whose highest one of `bits` is a sign.
Term signExtended(const Term& bytes, int64_t bits) {
  const double half = static_cast<double>(int64_t{1} << (bits - 1));
  return bitXor(bytes, half).cast(Elem::i32_) - half;
}

/// Slices of a table along an axis; what is packed stays so until it is gathered.
Term gatheredNumbers(const Term& table, const Term& places, int64_t axis, int64_t bits) {
  const auto rows = [&](const Term& x) {
    return make(OpKind::Gather, {x, places}, {{"axis", axis}});
  };
  if (table.elem() == Elem::u8_) return unpackedBits(rows(table), bits);
  if (!isPacked(table.elem())) return rows(table);
  const auto bytes =
      isInteger(table.elem()) && axis + 1 < table.rank() ? asBytes(table) : std::nullopt;
  if (!bytes) {
    const Elem wide = isSigned(table.elem()) ? Elem::i8_ : Elem::u8_;
    return rows(table.cast(isInteger(table.elem()) ? wide : Elem::f32_));
  }
  const Term numbers = unpackedBits(rows(*bytes), elemBits(table.elem()));
  return isSigned(table.elem()) ? signExtended(numbers, elemBits(table.elem())) : numbers;
}

/// The scales' dims: those of the numbers, but along the quantized axis one for each block. Of
/// floats, a dim of 1 is for all.
void checkScaleDims(const Term& scales, const Shape& numbers, const QuantizedTable& table,
                    bool broadcasts) {
  Shape expected = numbers;
  int64_t& quantized = expected[static_cast<size_t>(table.quantizeAxis)];
  quantized = table.block == 0 ? 1 : (quantized + table.block - 1) / table.block;
  bool fits = scales.rank() == std::ssize(numbers);
  for (size_t d = 0; fits && d < expected.size(); ++d) {
    const int64_t dim = scales.dim(static_cast<int64_t>(d));
    fits = dim == expected[d] || (broadcasts && dim == 1);
  }
  if (!fits) need(badModel("scales are {}, expected {}", scales.text(), shapeText(expected)));
}

/// What is gathered along with numbers of this shape, in a shape that broadcasts to them.
Term besideNumbers(const Term& gathered, int64_t axis, int64_t block, const Shape& numbers) {
  const int64_t dim = numbers[static_cast<size_t>(axis)];
  return gathered.dim(axis) == 1 ? gathered : inBlocks(gathered, axis, block, dim);
}

/// y where the place lies in the table, 0 elsewhere.
Term zeroOutside(const Term& y, const Term& places, int64_t axis, int64_t extent) {
  const Term isInside = logicalAnd(lessOrEqual(places.number(-static_cast<double>(extent)), places),
                                   less(places, places.number(static_cast<double>(extent))));
  Shape shape(static_cast<size_t>(y.rank()), 1);
  for (int64_t d = 0; d < places.rank(); ++d) shape[static_cast<size_t>(axis + d)] = places.dim(d);
  return select(isInside.reshape(shape), y, y.number(0));
}

/// Zero points in the order of the scales, gathered; nullopt: 0.
std::optional<Term> gatheredZeros(NodeContext& context, const Term& data, const Term& places,
                                  const QuantizedTable& table, const Shape& scales) {
  const bool isBytes = data.elem() == Elem::u8_;
  if (!context.input(3)) {
    if (!isBytes) return std::nullopt;
    return full(context.build, static_cast<double>(int64_t{1} << (table.bits - 1)), {}, Elem::i32_);
  }
  const Term zeros = termOf(context, 3);
  if (zeros.elem() != data.elem() || isFloat(data.elem()))
    need(badModel("zero_points are {} beside data {}", zeros.text(), data.text()));
  Shape expected = scales;
  if (isBytes) expected.back() = (expected.back() * table.bits + 7) / 8;
  if (zeros.shape() != expected)
    need(badModel("zero_points are {}, expected {}", zeros.text(), shapeText(expected)));
  const Term gathered = gatheredNumbers(zeros, places, table.gatherAxis, table.bits);
  return isBytes ? gathered.slice(-1, 0, scales.back()) : gathered;
}

/// (data[places] - zero_points) * scales, in blocks along an axis that is not the gathered one.
Status importGatherBlockQuantized(NodeContext& context) {
  needBounded(context);
  const Term data = termOf(context, 0);
  const Term places = termOf(context, 1);
  const Term scales = termOf(context, 2);
  const bool isKnown = data.elem() == Elem::u8_ || data.elem() == Elem::i4_ ||
                       data.elem() == Elem::u4_ || data.elem() == Elem::f4e2m1_ ||
                       isEightBitFloat(data.elem());
  if (data.rank() < 1 || !isKnown) return badModel("data is {}", data.text());
  const QuantizedTable table = readQuantizedTable(context, data);
  Shape numbers = data.shape();
  if (data.elem() == Elem::u8_) numbers.back() *= 8 / table.bits;
  if (!isFloat(scales.elem()) || scales.elem() == Elem::f64_)
    return badModel("scales are {}", scales.text());
  checkScaleDims(scales, numbers, table, isFloat(data.elem()));
  const int64_t extent = data.dim(table.gatherAxis);
  const Term gathered = gatheredNumbers(data, places, table.gatherAxis, table.bits);
  const bool isOfAll = scales.dim(table.gatherAxis) == 1 && extent != 1;
  Shape shared = scales.shape();
  shared.erase(shared.begin() + table.gatherAxis);
  shared.insert(shared.begin() + table.gatherAxis, static_cast<size_t>(places.rank()), 1);
  const Term scale = isOfAll ? scales.reshape(shared)
                             : make(OpKind::Gather, {scales, places}, {{"axis", table.gatherAxis}});
  const bool isBehind = table.quantizeAxis > table.gatherAxis;
  const int64_t axis = table.quantizeAxis + (isBehind ? places.rank() - 1 : 0);
  const auto beside = [&](const Term& x) {
    return besideNumbers(x, axis, table.block, gathered.shape());
  };
  std::optional<Term> zero = gatheredZeros(context, data, places, table, scales.shape());
  if (zero && zero->rank() > 0) zero = beside(*zero);
  const Term real =
      dequantizeBy(gathered, beside(widened(scale)), zero ? &*zero : nullptr).cast(scales.elem());
  return context.set(zeroOutside(real, places, table.gatherAxis, extent));
}

constexpr Operator kMicrosoftGatherOperators[] = {
    {"com.microsoft.GatherBlockQuantized", 3, 4, 1, importGatherBlockQuantized},
};

} // namespace

std::span<const Operator> microsoft_gatherOperators() { return kMicrosoftGatherOperators; }

} // namespace candela::import
