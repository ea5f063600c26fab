#include <algorithm>

#include "core/compiler/import/term.h"

/// Elements that move to places which are known at import.
namespace candela::import {
namespace {

/// Of integers the wrapping cast keeps the bits; bool has but two of all bytes.
Status importBitCast(NodeContext& context) {
  const auto given = need(context.maybe<int64_t>("to"));
  if (!given) return badModel("attribute 'to' is missing");
  const auto to =
      *given >= 0 && *given <= INT32_MAX ? elemFromOnnx(static_cast<int>(*given)) : std::nullopt;
  if (!to) return failure(Code::unsupported, "bits of element type {}", *given);
  const Term x = termOf(context, 0);
  const Elem from = x.elem();
  if (elemBits(from) != elemBits(*to))
    return badModel("elements of {} have {} bits, those of {} {}", elemName(from), elemBits(from),
                    elemName(*to), elemBits(*to));
  const bool plain = !isFloat(from) && !isFloat(*to) && !isStorageOnly(from) && !isStorageOnly(*to);
  if (plain) return context.set(x.cast(*to));
  const auto numeric = [](Elem elem) { return elem == Elem::bool_ ? Elem::u8_ : elem; };
  return context.set(
      make(OpKind::Bitcast, {x.cast(numeric(from))}, {{"to", numeric(*to)}}).cast(*to));
}

/// Pieces along an axis: of the sizes given, else of one size, of which the last may fall short
/// since opset 18.
Status importSplit(NodeContext& context) {
  const Term x = termOf(context, 0);
  const auto pieces = static_cast<int64_t>(context.node.outputs.size());
  const int64_t axis = need(resolveAxis(attrOf<int64_t>(context, "axis", 0), x.rank())),
                extent = x.dim(axis);
  auto sizes = need(context.intsAttrOrInput("split", 1, 13));
  if (context.opset < 13 && context.input(1))
    return badModel("input 'split' needs opset 13, the model has {}", context.opset);
  const auto count =
      context.opset < 18 ? std::nullopt : need(context.maybe<int64_t>("num_outputs"));
  if (sizes && count) return badModel("both input 'split' and attribute 'num_outputs' are given");
  if (count.value_or(pieces) != pieces)
    return badModel("num_outputs is {} but there are {}", *count, pieces);
  if (!sizes) {
    if (context.opset < 18 && extent % pieces != 0)
      return badModel("a dim of {} is not {} equal pieces", extent, pieces);
    const int64_t size = extent / pieces + (extent % pieces != 0);
    sizes.emplace(pieces, size);
    sizes->back() = extent - size * (pieces - 1);
  }
  if (static_cast<int64_t>(sizes->size()) != pieces)
    return badModel("split has {} sizes but there are {} outputs", sizes->size(), pieces);
  int64_t first = 0;
  for (int64_t i = 0; i < pieces; ++i) {
    const int64_t size = (*sizes)[i];
    if (size < 0 || size > extent - first)
      return badModel("split [{}] of a dim of {}", fmt::join(*sizes, ","), extent);
    if (context.wants(i)) context.set(i, x.slice(axis, size ? first : 0, size).value());
    first += size;
  }
  if (first != extent) return badModel("split [{}] of a dim of {}", fmt::join(*sizes, ","), extent);
  return Status::ok();
}

Status importTile(NodeContext& context) {
  Term x = termOf(context, 0);
  const auto repeats = need(context.neededInts("repeats", 1, 1));
  if (static_cast<int64_t>(repeats.size()) != x.rank())
    return badModel("{} repeats for an input of rank {}", repeats.size(), x.rank());
  Shape shape = x.shape();
  for (size_t d = shape.size(); d-- > 0;) {
    if (repeats[d] < 0)
      return badModel("repeats [{}] have a negative one", fmt::join(repeats, ","));
    if (repeats[d] == 1) continue;
    const auto inner = elementCount(std::span(shape).subspan(d));
    if (__builtin_mul_overflow(shape[d], repeats[d], &shape[d]) || !inner || !elementCount(shape))
      return badModel("its result of {} times repeats [{}] is impossibly large",
                      x.value()->type.text(), fmt::join(repeats, ","));
    if (elementCount(shape) == 0) continue;
    const int64_t outer = x.count() / *inner;
    x = x.reshape({outer, 1, *inner}).expand({outer, repeats[d], *inner}).reshape(shape);
  }
  return context.set(elementCount(shape) == 0 ? full(context.build, 0, shape, x.elem()) : x);
}

/// Blocks of b x b pixels and channels: in mode DCR the block stands before the channels, in CRD
/// behind them.
template <bool toSpace, int modeSince> Status importBlocks(NodeContext& context) {
  const Term x = termOf(context, 0);
  const int64_t b = attrOf<int64_t>(context, "blocksize", 0);
  const std::string mode =
      context.opset < modeSince ? "DCR" : attrOf<std::string>(context, "mode", "DCR");
  if (mode != "DCR" && mode != "CRD") return badModel("mode '{}' is not DCR or CRD", mode);
  if (x.rank() != 4) return badModel("input has rank {}, expected 4", x.rank());
  if (b < 1 || b > INT16_MAX) return badModel("blocksize is {}, expected 1 to {}", b, INT16_MAX);
  const int64_t n = x.dim(0), c = x.dim(1), h = x.dim(2), w = x.dim(3);
  const bool fits =
      toSpace ? c % (b * b) == 0 : h % b == 0 && w % b == 0 && c <= INT64_MAX / (b * b);
  if (!fits) return badModel("{} does not divide into blocks of {}", x.value()->type.text(), b);
  const bool first = mode == "DCR";
  if (toSpace) {
    const int64_t channels = c / (b * b);
    const Term parts =
        x.reshape(first ? Shape{n, b, b, channels, h, w} : Shape{n, channels, b, b, h, w});
    const Term moved = parts.transpose(first ? Shape{0, 3, 4, 1, 5, 2} : Shape{0, 1, 4, 2, 5, 3});
    return context.set(moved.reshape({n, channels, h * b, w * b}));
  }
  const Term parts = x.reshape({n, c, h / b, b, w / b, b});
  const Term moved = parts.transpose(first ? Shape{0, 3, 5, 1, 2, 4} : Shape{0, 1, 3, 5, 2, 4});
  return context.set(moved.reshape({n, c * b * b, h / b, w / b}));
}

/// The upper or lower triangle; k moves the diagonal to the right, at run time too.
Status importTrilu(NodeContext& context) {
  const Term x = termOf(context, 0);
  const bool upper = need(context.flagAttr("upper", true));
  if (x.rank() < 2) return badModel("input has rank {}, expected at least 2", x.rank());
  const int64_t rows = x.dim(-2), columns = x.dim(-1);
  if (rows > INT32_MAX / 2 || columns > INT32_MAX / 2)
    return failure(Code::unsupported, "{} is too large", x.value()->type.text());
  Term diagonal = iota(context.build, rows, Elem::i32_).reshape({rows, 1});
  if (context.input(1)) {
    const Term k = termOf(context, 1);
    if (isFloat(k.elem()) || k.count() != 1)
      return badModel("k is {}, expected one integer", k.value()->type.text());
    const auto least = -static_cast<double>(rows), most = static_cast<double>(columns);
    diagonal = diagonal + max(min(saturated(k, Elem::i32_).reshape({}), most), least);
  }
  const Term column = iota(context.build, columns, Elem::i32_);
  const Term isOut = upper ? less(column, diagonal) : less(diagonal, column);
  return context.set(select(isOut, 0, x));
}

/// The middle of each dim, or zeros around it; an odd one is at the end.
Status importCenterCropPad(NodeContext& context) {
  const Term x = termOf(context, 0);
  const auto wanted = need(context.neededInts("shape", 1, 1));
  const auto axes = need(resolveAxes(attrOf(context, "axes", allAxes(context)), x.rank()));
  if (wanted.size() != axes.size())
    return badModel("shape has {} dims for {} axes", wanted.size(), axes.size());
  std::vector<int64_t> lo(x.rank(), 0), hi(x.rank(), 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    if (wanted[i] < 0)
      return badModel("shape [{}] has a dim of {}", fmt::join(wanted, ","), wanted[i]);
    const int64_t grows = wanted[i] - x.dim(axes[i]);
    lo[axes[i]] = grows / 2;
    hi[axes[i]] = grows - grows / 2;
  }
  return context.set(x.pad(lo, hi));
}

constexpr Operator kRearrangeOperators[] = {
    {"BitCast", 1, 1, 1, importBitCast},
    {"CenterCropPad", 2, 2, 1, importCenterCropPad},
    {"DepthToSpace", 1, 1, 1, importBlocks<true, 11>},
    {"SpaceToDepth", 1, 1, 1, importBlocks<false, 28>},
    {"Split", 1, 2, INT16_MAX, importSplit},
    {"Tile", 2, 2, 1, importTile},
    {"Trilu", 1, 2, 1, importTrilu},
};

} // namespace

std::span<const Operator> rearrangeOperators() { return kRearrangeOperators; }

} // namespace candela::import
