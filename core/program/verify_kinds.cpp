#include <algorithm>

#include "core/program/verify_internal.h"

namespace candela::program {

namespace {

constexpr int64_t kMaxInt = INT32_MAX;

Status verifyValues(const Attr& attr, size_t count, int64_t lowest, int64_t highest) {
  if (attr.values.size() != count) return badModel("{} values, expected {}", attr.values.size(), count);
  for (int64_t value : attr.values)
    if (value < lowest || value > highest) return badModel("{} is not within {} .. {}", value, lowest, highest);
  return Status::ok();
}

Status verifyAttr(const Instr& instr, const Attr& attr) {
  if (attr.type < 1 || attr.type > 4) return badModel("type {} is not within 1 .. 4", attr.type);
  if (attr.values.empty() || attr.values.size() > (attr.type == 3 ? 8 : 1))
    return badModel("{} values, expected 1{}", attr.values.size(), attr.type == 3 ? " to 8" : "");
  if (instr.kind == CDL_KIND_CUSTOM) return Status::ok();
  if (!kindTakesAttr(instr.kind, attr.id)) return badModel("the kind does not take it");
  if (attr.type != attrType(attr.id)) return badModel("type {}, expected {}", attr.type, attrType(attr.id));
  switch (attr.id) {
  case CDL_ATTR_SATURATE:
  case CDL_ATTR_ACCUMULATE:
  case CDL_ATTR_TRANSPOSED:
  case CDL_ATTR_COUNT_INCLUDE_PAD:
  case CDL_ATTR_SELECT_LAST: return verifyValues(attr, 1, 0, 1);
  case CDL_ATTR_A_LEFT_SHIFT:
  case CDL_ATTR_B_LEFT_SHIFT: return verifyValues(attr, 1, 0, 63);
  case CDL_ATTR_GROUP: return verifyValues(attr, 1, 1, kMaxInt);
  case CDL_ATTR_STRIDES:
  case CDL_ATTR_DILATIONS:
  case CDL_ATTR_KERNEL: return verifyValues(attr, 2, 1, kMaxInt);
  case CDL_ATTR_PADS: return verifyValues(attr, 4, 0, kMaxInt);
  case CDL_ATTR_VALUE: {
    const Elem elem = instr.outputs[0].elem;
    const auto bits = static_cast<uint64_t>(attr.values[0]);
    return fitsElem(bits, elem) ? Status::ok() : badModel("{:#x} has more bits than {}", bits, elemName(elem));
  }
  default: return Status::ok();
  }
}

// ---- Shapes
// ----------------------------------------------------------------------------------------------------------

/// A logical dim as far as a view tells it: a blocked layout rounds it up, so that any extent of
/// the last block may be meant.
struct Extent {
  int64_t low = 0, high = 0;
};
bool agree(Extent a, Extent b) { return std::max(a.low, b.low) <= std::min(a.high, b.high); }

std::vector<Extent> logicalDims(const View& view) {
  std::vector<Extent> dims;
  if (view.layout.isRowMajor() || view.layout.opaque) {
    for (int64_t dim : view.dims) dims.push_back({dim, dim});
    return dims;
  }
  dims.assign(view.layout.logicalRank, {0, 1});
  std::vector<int64_t> outer(dims.size(), -1);
  for (size_t i = 0; i < view.dims.size(); ++i) {
    const uint8_t d = view.layout.steps[i].dim;
    if (outer[d] < 0) outer[d] = view.dims[i];
    dims[d].high = static_cast<int64_t>(static_cast<__int128>(dims[d].high) * view.dims[i]); // count() is below 2^48
  }
  for (size_t d = 0; d < dims.size(); ++d) {
    const int64_t block = outer[d] > 0 ? dims[d].high / outer[d] : 0;
    dims[d].low = block ? dims[d].high - block + 1 : 0;
  }
  return dims;
}

std::string extentText(Extent e) {
  return e.low == e.high ? fmt::format("{}", e.low) : fmt::format("{}..{}", e.low, e.high);
}

/// The views of an instruction by their logical dims, each with a name for messages.
class Shapes {
public:
  explicit Shapes(const Instr& instr) : instr_(instr) {}

  const std::vector<Extent>& of(const View& view) {
    for (const auto& [known, dims] : known_)
      if (known == &view) return dims;
    known_.emplace_back(&view, logicalDims(view));
    return known_.back().second;
  }
  Status rank(std::string_view name, const View& view, size_t expected) {
    const size_t rank = of(view).size();
    return rank == expected ? Status::ok() : badModel("{} has rank {}, expected {}", name, rank, expected);
  }
  Status same(std::string_view what, const View& a, size_t da, const View& b, size_t db) {
    return equal(what, of(a)[da], of(b)[db]);
  }
  Status equal(std::string_view what, Extent a, Extent b) {
    if (agree(a, b)) return Status::ok();
    return badModel("{} {} and {} differ", what, extentText(a), extentText(b));
  }
  /// All operands have the output's dims.
  Status allAlike() {
    const View& y = instr_.outputs[0];
    for (size_t i = 0; i < instr_.operandCount(); ++i)
      if (const View& x = instr_.inputs[i]; x.dims != y.dims)
        return badModel("input {} has shape {} but the result {}", i, shapeText(x.dims), shapeText(y.dims));
    return Status::ok();
  }

private:
  const Instr& instr_;
  std::vector<std::pair<const View*, std::vector<Extent>>> known_;
};

// ---- Types
// -----------------------------------------------------------------------------------------------------------

Status sameElem(std::string_view a, const View& x, std::string_view b, const View& y) {
  if (x.elem == y.elem) return Status::ok();
  return badModel("{} has type {} but {} has {}", a, elemName(x.elem), b, elemName(y.elem));
}
Status takes(bool ok, std::string_view name, Elem elem) {
  return ok ? Status::ok() : badModel("{} cannot have type {}", name, elemName(elem));
}
bool isIndex(Elem elem) { return elem == Elem::i32_ || elem == Elem::i64_; }
bool isRealFloat(Elem elem) { return isFloat(elem) && !isStorageOnly(elem); }

/// The types that a contraction's own result may have.
bool contracts(Elem a, Elem b, Elem y) {
  const auto narrow = [](Elem e) { return e == Elem::i8_ || e == Elem::u8_; };
  if (!(a == b || (isInteger(a) && isInteger(b))) || !isNumber(a) || !isNumber(b)) return false;
  if (isFloat(a)) return y == a || (y == Elem::f32_ && (a == Elem::f16_ || a == Elem::bf16_));
  if (a == b && y == a && elemBits(a) >= 32) return true;
  if (narrow(a) && narrow(b)) return y == Elem::i32_;
  return elemBits(a) <= 16 && elemBits(b) <= 16 && y == Elem::i64_;
}

/// What an epilogue leaves open: the result's own type is the accumulator's, and accumulating needs
/// y to hold it.
Status verifyContraction(const Instr& instr) {
  const View &a = instr.inputs[0], &b = instr.inputs[1], &y = instr.outputs[0];
  const Elem own = accumulatorElem(instr);
  if (own != Elem::none && !contracts(a.elem, b.elem, own))
    return badModel("no product of {} and {} gives {}", elemName(a.elem), elemName(b.elem), elemName(own));
  const bool accumulates = instr.intAttr(CDL_ATTR_ACCUMULATE, 0) != 0;
  if (accumulates != instr.inout)
    return badModel("the result is {} but accumulate is {}", instr.inout ? "@inout" : "@out", accumulates ? 1 : 0);
  if (accumulates && own != y.elem)
    return badModel("accumulates {} in a result of {}", elemName(own), elemName(y.elem));
  for (size_t i = 2; i < instr.operandCount(); ++i) {
    CDL_TRY(takes(isInteger(a.elem), "operand with a zero point", a.elem));
    CDL_TRY(sameElem("zero point", instr.inputs[i], "its operand", instr.inputs[i - 2]));
  }
  return Status::ok();
}

Status verifyZeroPoint(const Instr& instr, size_t index, Extent channels) {
  if (index >= instr.operandCount()) return Status::ok();
  const View& view = instr.inputs[index];
  if (view.dims.size() > 1 || !view.layout.isRowMajor())
    return badModel("zero point of rank {}, expected at most 1", view.dims.size());
  const int64_t count = view.count();
  if (count == 1 || (count > 1 && agree(channels, {count, count}))) return Status::ok();
  return badModel("zero point has {} elements, expected 1 or {}", count, extentText(channels));
}

// ---- Kinds
// -----------------------------------------------------------------------------------------------------------

/// Bits of magnitude of an operand. Sums of products stay below 2^39 by the integer law.
int magnitudeBits(Elem elem) { return elem == Elem::i64_ ? 39 : elemBits(elem) - (isSigned(elem) ? 1 : 0); }

/// The aligned products and their sum stay within 63 bits; a multiplier has 24.
Status verifyRescale(const Instr& instr) {
  const auto& in = instr.inputs;
  const View& y = instr.outputs[0];
  const auto rescales = [](Elem e) { return isInteger(e) && isNumber(e) && e != Elem::u64_; };
  if (in.size() == 5) return badModel("5 inputs, expected 4 or 6");
  for (size_t i = 0; i < in.size(); ++i)
    CDL_TRY(takes(i == 0 || i == 4 ? rescales(in[i].elem) : in[i].elem == Elem::i32_, fmt::format("input {}", i),
                  in[i].elem));
  CDL_TRY(takes(rescales(y.elem), "y", y.elem));
  const int sum = in.size() == 6 ? 1 : 0;
  for (size_t i = 0; i < in.size(); i += 4) {
    const int64_t shift = instr.intAttr(i ? CDL_ATTR_B_LEFT_SHIFT : CDL_ATTR_A_LEFT_SHIFT, 0);
    const int64_t bits = magnitudeBits(in[i].elem) + 24 + sum + shift;
    if (bits > 63)
      return badModel("{} of type {} with left shift {} needs {} bits, at most 63", i ? "b" : "a", elemName(in[i].elem),
                      shift, bits);
  }
  const IntegerRange range = integerRange(y.elem);
  const auto lowest = static_cast<int64_t>(range.lowest), highest = static_cast<int64_t>(range.highest);
  const int64_t low = instr.intAttr(CDL_ATTR_CLAMP_MIN, lowest);
  const int64_t high = instr.intAttr(CDL_ATTR_CLAMP_MAX, highest);
  if (low < lowest || high > highest || low > high)
    return badModel("clamps to {} .. {}, which {} does not hold", low, high, elemName(y.elem));
  return Status::ok();
}

Status verifyElementwise(const Instr& instr, Shapes& shapes) {
  const View& y = instr.outputs[0];
  const auto& in = instr.inputs;
  CDL_TRY(shapes.allAlike());
  switch (instr.kind) {
  case CDL_KIND_COPY: return sameElem("x", in[0], "y", y);
  case CDL_KIND_CONVERT: return takes(elemBits(y.elem) != 4, "y", y.elem);
  case CDL_KIND_BINARY:
    CDL_TRY(takes(binaryTakes(instr.fn, in[0].elem), "a", in[0].elem));
    CDL_TRY(sameElem("a", in[0], "b", in[1]));
    return sameElem("a", in[0], "y", y);
  case CDL_KIND_COMPARE:
    CDL_TRY(takes(!isStorageOnly(in[0].elem), "a", in[0].elem));
    CDL_TRY(sameElem("a", in[0], "b", in[1]));
    return takes(y.elem == Elem::bool_, "y", y.elem);
  case CDL_KIND_SELECT:
    CDL_TRY(takes(in[0].elem == Elem::bool_, "cond", in[0].elem));
    CDL_TRY(takes(!isStorageOnly(in[1].elem), "a", in[1].elem));
    CDL_TRY(sameElem("a", in[1], "b", in[2]));
    return sameElem("a", in[1], "y", y);
  case CDL_KIND_UNARY:
    CDL_TRY(takes(unaryTakes(instr.fn, in[0].elem), "x", in[0].elem));
    return sameElem("x", in[0], "y", y);
  case CDL_KIND_RESCALE: return verifyRescale(instr);
  default: return Status::ok(); // elementwise: the expr was typed
  }
}

Status verifyGather(const Instr& instr, Shapes& shapes) {
  const bool scatter = instr.kind == CDL_KIND_SCATTER;
  const View& index = instr.inputs[scatter ? 0 : 1];
  const View& part = scatter ? instr.inputs[1] : instr.outputs[0];  // [O, K, I]
  const View& whole = scatter ? instr.outputs[0] : instr.inputs[0]; // [O, N, I]
  const char* partName = scatter ? "updates" : "y";
  const char* wholeName = scatter ? "y" : "x";
  CDL_TRY(takes(isIndex(index.elem), "index", index.elem));
  CDL_TRY(sameElem(partName, part, wholeName, whole));
  CDL_TRY(takes(elemBits(part.elem) != 4, partName, part.elem));
  if (scatter) {
    if (!instr.inout) return badModel("the result is @out, expected @inout");
    CDL_TRY(takes(instr.fn == CDL_SCATTER_SET || !isStorageOnly(part.elem), "y", part.elem));
  }
  CDL_TRY(shapes.rank("index", index, 1));
  CDL_TRY(shapes.rank(partName, part, 3));
  CDL_TRY(shapes.rank(wholeName, whole, 3));
  CDL_TRY(shapes.same("outer dims", whole, 0, part, 0));
  CDL_TRY(shapes.same("inner dims", whole, 2, part, 2));
  if (instr.kind == CDL_KIND_GATHER && instr.fn == CDL_GATHER_CLAMP && whole.dims[1] == 0 && part.count() != 0)
    return badModel("no place to clamp an index to in x of shape {}", shapeText(whole.dims));
  return shapes.same("numbers of indices", index, 0, part, 1);
}

Status verifyReduce(const Instr& instr, Shapes& shapes) {
  const View &x = instr.inputs[0], &y = instr.outputs[0];
  CDL_TRY(shapes.rank("x", x, 3));
  CDL_TRY(shapes.rank("y", y, 2));
  CDL_TRY(shapes.same("outer dims", x, 0, y, 0));
  CDL_TRY(shapes.same("inner dims", x, 2, y, 1));
  if (instr.kind == CDL_KIND_ARG_REDUCE) {
    CDL_TRY(takes(isNumber(x.elem), "x", x.elem));
    if (x.dims[1] == 0 && y.count() != 0) return badModel("no extreme along x of shape {}", shapeText(x.dims));
    return takes(isIndex(y.elem), "y", y.elem);
  }
  CDL_TRY(takes(!isStorageOnly(x.elem), "x", x.elem));
  const Elem own = accumulatorElem(instr);
  const bool widened = own == Elem::f32_ && (x.elem == Elem::f16_ || x.elem == Elem::bf16_) && !instr.expr.empty();
  if (own != Elem::none && own != x.elem && !widened)
    return badModel("x has type {} but its reduction {}", elemName(x.elem), elemName(own));
  return Status::ok();
}

Status verifySort(const Instr& instr, Shapes& shapes) {
  const View &x = instr.inputs[0], &y = instr.outputs[0], &index = instr.outputs[1];
  CDL_TRY(takes(!isStorageOnly(x.elem), "x", x.elem));
  CDL_TRY(sameElem("x", x, "y", y));
  CDL_TRY(takes(index.elem == Elem::i32_, "index", index.elem));
  CDL_TRY(shapes.rank("x", x, 3));
  CDL_TRY(shapes.rank("y", y, 3));
  if (index.dims != y.dims) return badModel("y has shape {} but index {}", shapeText(y.dims), shapeText(index.dims));
  CDL_TRY(shapes.same("outer dims", x, 0, y, 0));
  CDL_TRY(shapes.same("inner dims", x, 2, y, 2));
  const Extent sorted = shapes.of(x)[1], kept = shapes.of(y)[1];
  if (kept.low <= sorted.high) return Status::ok();
  return badModel("keeps {} of {} elements", extentText(kept), extentText(sorted));
}

Status verifyMatmul(const Instr& instr, Shapes& shapes) {
  const View &a = instr.inputs[0], &b = instr.inputs[1], &y = instr.outputs[0];
  CDL_TRY(verifyContraction(instr));
  CDL_TRY(shapes.rank("a", a, 3));
  CDL_TRY(shapes.rank("b", b, 3));
  CDL_TRY(shapes.rank("y", y, 3));
  CDL_TRY(shapes.same("inner dims", a, 2, b, 1));
  CDL_TRY(shapes.same("batches of a and b,", a, 0, b, 0));
  CDL_TRY(shapes.same("batches of a and y,", a, 0, y, 0));
  CDL_TRY(shapes.same("rows of a and y,", a, 1, y, 1));
  CDL_TRY(shapes.same("columns of b and y,", b, 2, y, 2));
  CDL_TRY(verifyZeroPoint(instr, 2, {1, 1}));
  return verifyZeroPoint(instr, 3, shapes.of(y)[2]);
}

std::vector<int64_t> values(const Instr& instr, uint16_t id, std::vector<int64_t> otherwise) {
  const Attr* attr = instr.attr(id);
  return attr ? attr->values : otherwise;
}

/// The spatial dims of a window op: `reach` is the extent of the dilated kernel.
struct Window {
  std::vector<int64_t> strides, pads, dilations;
  explicit Window(const Instr& instr)
      : strides(values(instr, CDL_ATTR_STRIDES, {1, 1})), pads(values(instr, CDL_ATTR_PADS, {0, 0, 0, 0})),
        dilations(values(instr, CDL_ATTR_DILATIONS, {1, 1})) {}
  __int128 padded(size_t d, int64_t extent) const { return static_cast<__int128>(extent) + pads[d] + pads[d + 2]; }
  __int128 reach(size_t d, int64_t kernel) const { return static_cast<__int128>(kernel - 1) * dilations[d] + 1; }
};

Status verifyOutputExtent(size_t d, __int128 expected, __int128 slack, Extent y) {
  const auto at = [](__int128 v) { return static_cast<int64_t>(std::clamp<__int128>(v, 0, INT64_MAX)); };
  if (agree(y, {at(expected), at(expected + slack)})) return Status::ok();
  return badModel("the result's spatial dim {} is {}, expected {}", d, extentText(y), at(expected));
}

Status verifyConv(const Instr& instr, Shapes& shapes) {
  const View &x = instr.inputs[0], &w = instr.inputs[1], &y = instr.outputs[0];
  CDL_TRY(verifyContraction(instr));
  CDL_TRY(shapes.rank("x", x, 4));
  CDL_TRY(shapes.rank("w", w, 4));
  CDL_TRY(shapes.rank("y", y, 4));
  const auto xs = shapes.of(x), ws = shapes.of(w), ys = shapes.of(y);
  const int64_t group = instr.intAttr(CDL_ATTR_GROUP, 1);
  const bool transposed = instr.intAttr(CDL_ATTR_TRANSPOSED, 0) != 0;
  // w[O, C/group, KH, KW], transposed w[C, O/group, KH, KW]
  const Extent outer = transposed ? xs[1] : ys[1], inner = transposed ? ys[1] : xs[1];
  const Extent perGroup{(inner.low + group - 1) / group, inner.high / group};
  CDL_TRY(shapes.equal("batches of x and y,", xs[0], ys[0]));
  CDL_TRY(shapes.equal(transposed ? "channels of x and w," : "channels of y and w,", outer, ws[0]));
  if (!agree(perGroup, ws[1]))
    return badModel("{} has {} channels but weight expects {} x group {}", transposed ? "result" : "input",
                    extentText(inner), extentText(ws[1]), group);
  if (outer.low == outer.high && outer.low % group)
    return badModel("{} channels are no multiple of group {}", outer.low, group);
  const Window window(instr);
  for (size_t d = 0; d < 2; ++d) {
    if (xs[2 + d].low != xs[2 + d].high || ws[2 + d].low != ws[2 + d].high) continue; // blocked: only its owner knows
    const __int128 reach = window.reach(d, ws[2 + d].low), stride = window.strides[d];
    if (transposed) {
      const __int128 full =
          (static_cast<__int128>(xs[2 + d].low) - 1) * stride + reach - window.pads[d] - window.pads[d + 2];
      CDL_TRY(verifyOutputExtent(d, full, stride - 1, ys[2 + d]));
      continue;
    }
    const __int128 padded = window.padded(d, xs[2 + d].low);
    if (ws[2 + d].low == 0 || padded < reach)
      return badModel("kernel of {} is larger than the padded input of {} in spatial dim {}",
                      static_cast<int64_t>(reach), static_cast<int64_t>(padded), d);
    CDL_TRY(verifyOutputExtent(d, (padded - reach) / stride + 1, 0, ys[2 + d]));
  }
  CDL_TRY(verifyZeroPoint(instr, 2, {1, 1}));
  return verifyZeroPoint(instr, 3, ys[1]);
}

Status verifyPool(const Instr& instr, Shapes& shapes) {
  const View &x = instr.inputs[0], &y = instr.outputs[0];
  const Attr* kernel = instr.attr(CDL_ATTR_KERNEL);
  if (!kernel) return badModel("attribute kernel is missing");
  const Elem own = accumulatorElem(instr);
  CDL_TRY(takes(instr.fn == CDL_POOL2D_AVERAGE ? isRealFloat(x.elem) : isNumber(x.elem), "x", x.elem));
  if (own != Elem::none && own != x.elem)
    return badModel("x has type {} but its pooling {}", elemName(x.elem), elemName(own));
  CDL_TRY(shapes.rank("x", x, 4));
  CDL_TRY(shapes.rank("y", y, 4));
  CDL_TRY(shapes.same("batches of x and y,", x, 0, y, 0));
  CDL_TRY(shapes.same("channels of x and y,", x, 1, y, 1));
  const Window window(instr);
  for (size_t d = 0; d < 2; ++d) {
    const Extent in = shapes.of(x)[2 + d];
    if (in.low != in.high) continue;
    const __int128 padded = window.padded(d, in.low), reach = window.reach(d, kernel->values[d]);
    if (padded < reach)
      return badModel("kernel of {} is larger than the padded input of {} in spatial dim {}",
                      static_cast<int64_t>(reach), static_cast<int64_t>(padded), d);
    CDL_TRY(verifyOutputExtent(d, (padded - reach) / window.strides[d] + 1, 0, shapes.of(y)[2 + d]));
  }
  return Status::ok();
}

Status verifyTable(const Instr& instr, Shapes& shapes) {
  const View &x = instr.inputs[0], &table = instr.inputs[1], &y = instr.outputs[0];
  if (x.dims != y.dims) return badModel("x has shape {} but y {}", shapeText(x.dims), shapeText(y.dims));
  const bool wide = x.elem == Elem::i16_;
  CDL_TRY(takes(wide || x.elem == Elem::i8_ || x.elem == Elem::u8_, "x", x.elem));
  CDL_TRY(sameElem("table", table, "y", y));
  CDL_TRY(takes(wide ? y.elem == Elem::i16_ : !isStorageOnly(y.elem), "table", y.elem));
  CDL_TRY(shapes.rank("table", table, 1));
  const int64_t entries = wide ? 513 : 256;
  return shapes.equal("numbers of table entries", shapes.of(table)[0], {entries, entries});
}

Status verifySoftmaxOrNorm(const Instr& instr, Shapes& shapes) {
  const View &x = instr.inputs[0], &y = instr.outputs[0];
  const bool norm = instr.kind == CDL_KIND_NORM;
  CDL_TRY(takes(isRealFloat(x.elem), "x", x.elem));
  CDL_TRY(sameElem("x", x, "y", y));
  CDL_TRY(shapes.rank("x", x, norm ? 2 : 3));
  if (x.dims != y.dims) return badModel("x has shape {} but y {}", shapeText(x.dims), shapeText(y.dims));
  for (size_t i = 1; i < instr.inputs.size(); ++i) {
    const char* name = i == 1 ? "scale" : "bias";
    CDL_TRY(sameElem(name, instr.inputs[i], "x", x));
    CDL_TRY(shapes.rank(name, instr.inputs[i], 1));
    CDL_TRY(shapes.same("lengths of rows and scale or bias,", x, 1, instr.inputs[i], 0));
  }
  return Status::ok();
}

Status verifyAttention(const Instr& instr, Shapes& shapes) {
  const View &q = instr.inputs[0], &k = instr.inputs[1], &v = instr.inputs[2], &y = instr.outputs[0];
  static constexpr std::string_view kNames[] = {"q", "k", "v", "mask"};
  CDL_TRY(takes(isRealFloat(q.elem), "q", q.elem));
  for (size_t i = 0; i < instr.inputs.size(); ++i) {
    CDL_TRY(shapes.rank(kNames[i], instr.inputs[i], 3));
    CDL_TRY(shapes.same("batches", q, 0, instr.inputs[i], 0));
    CDL_TRY(sameElem(kNames[i], instr.inputs[i], "q", q));
  }
  CDL_TRY(sameElem("y", y, "q", q));
  CDL_TRY(shapes.rank("y", y, 3));
  CDL_TRY(shapes.same("batches", q, 0, y, 0));
  CDL_TRY(shapes.same("depths of q and k,", q, 2, k, 2));
  CDL_TRY(shapes.same("lengths of k and v,", k, 1, v, 1));
  CDL_TRY(shapes.same("lengths of q and y,", q, 1, y, 1));
  CDL_TRY(shapes.same("depths of v and y,", v, 2, y, 2));
  if (instr.inputs.size() < 4) return Status::ok();
  CDL_TRY(shapes.same("rows of mask and q,", instr.inputs[3], 1, q, 1));
  return shapes.same("columns of mask and rows of k,", instr.inputs[3], 2, k, 1);
}

} // namespace

Status verifyAttrs(const Instr& instr) {
  if (instr.attrs.size() > 16) return badModel("{} attributes exceed 16", instr.attrs.size());
  for (size_t i = 0; i < instr.attrs.size(); ++i) {
    const Attr& attr = instr.attrs[i];
    const std::string name = attrName(attr.id).empty() ? fmt::format("{}", attr.id) : std::string(attrName(attr.id));
    if (instr.attr(attr.id) != &attr) return badModel("attribute {} stands twice", name);
    CDL_TRY(verifyAttr(instr, attr).context("attribute " + name));
  }
  return Status::ok();
}

Status verifyKind(const Instr& instr) {
  Shapes shapes(instr);
  const bool accumulates = instr.kind == CDL_KIND_MATMUL || instr.kind == CDL_KIND_CONV2D;
  if (instr.inout && !accumulates && instr.kind != CDL_KIND_SCATTER && instr.kind != CDL_KIND_CUSTOM)
    return badModel("the kind never reads its result, expected @out");
  switch (instr.kind) {
  case CDL_KIND_FILL: return instr.attr(CDL_ATTR_VALUE) ? Status::ok() : badModel("attribute value is missing");
  case CDL_KIND_GATHER:
  case CDL_KIND_SCATTER: return verifyGather(instr, shapes);
  case CDL_KIND_REDUCE:
  case CDL_KIND_ARG_REDUCE: return verifyReduce(instr, shapes);
  case CDL_KIND_MATMUL: return verifyMatmul(instr, shapes);
  case CDL_KIND_SORT: return verifySort(instr, shapes);
  case CDL_KIND_TABLE: return verifyTable(instr, shapes);
  case CDL_KIND_CONV2D: return verifyConv(instr, shapes);
  case CDL_KIND_POOL2D: return verifyPool(instr, shapes);
  case CDL_KIND_SOFTMAX:
  case CDL_KIND_NORM: return verifySoftmaxOrNorm(instr, shapes);
  case CDL_KIND_ATTENTION: return verifyAttention(instr, shapes);
  case CDL_KIND_CUSTOM: return Status::ok();
  default: return verifyElementwise(instr, shapes);
  }
}

} // namespace candela::program
