// The vector engine: element by element, runs to one element, pools. An operation is cut into boxes
// that one descriptor can say, small enough that none writes what another element of it still
// reads.
#include "lowering.hpp"

#include <algorithm>
#include <array>
#include <optional>

namespace npu_sim {

namespace {

constexpr int64_t kStride = (int64_t{1} << 24) - 1;

namespace lanes = npu::descriptor::lanes;

/// What one operation of the vector engine goes over: views of the same dims. Operations of one
/// operand have no b; TABLE has a table.
struct LaneOperands {
  const DeviceView& a;
  const DeviceView& y;
  const DeviceView* b = nullptr;
  const DeviceView* table = nullptr;
  const npu::DescriptorValues* rescale = nullptr; ///< the second descriptor of some operations

  /// The operand of the walk that is the result.
  size_t result() const { return b ? 2 : 1; }
};

Walk walkOf(const LaneOperands& o) {
  Walk walk;
  walk.operands = o.b ? 3 : 2;
  for (int d = 0; d < o.y.rank; ++d) {
    const auto at = static_cast<size_t>(d);
    Walk::Dim dim{o.y.dims[at], {o.a.strides[at] * o.a.bytes, 0, 0}};
    if (o.b) dim.strides[1] = o.b->strides[at] * o.b->bytes;
    dim.strides[o.result()] = o.y.strides[at] * o.y.bytes;
    walk.dims.push_back(dim);
  }
  return walk;
}

/// Whether the box reads of an operand what it writes, element by element.
bool isSameWalk(const DeviceView& in, size_t operand, const LaneOperands& o, const Box& box) {
  const size_t y = o.result();
  return in.at + box.offsets[operand] == o.y.at + box.offsets[y] && in.bytes == o.y.bytes &&
         !box.repeats[operand] && box.strides[operand] == box.strides[y];
}

/// Whether the device may do the box at once: it writes no byte twice, and none that it still has
/// to read for another element.
bool mayRunAtOnce(const LaneOperands& o, const Box& box) {
  const auto y = static_cast<int>(o.result());
  if (!stepsOver(box, y, o.y.bytes)) return false;
  const Access out = accessOf(o.y, box, y, true);
  for (size_t operand = 0; operand < o.result(); ++operand) {
    const DeviceView& in = operand == 0 ? o.a : *o.b;
    const Access read = accessOf(in, box, static_cast<int>(operand), false);
    if (read.begin < out.end && out.begin < read.end && !isSameWalk(in, operand, o, box))
      return false;
  }
  return true;
}

npu::DescriptorValues lanesOf(const LaneOperands& o, const Box& box) {
  const size_t y = o.result();
  npu::DescriptorValues values{};
  values[lanes::kRun] = box.run;
  values[lanes::kLen1] = box.extents[0];
  values[lanes::kLen2] = box.extents[1];
  values[lanes::kAStride1] = box.strides[0][0];
  values[lanes::kAStride2] = box.strides[0][1];
  values[lanes::kBStride1] = o.b ? box.strides[1][0] : 0;
  values[lanes::kBStride2] = o.b ? box.strides[1][1] : 0;
  values[lanes::kOutStride1] = box.strides[y][0];
  values[lanes::kOutStride2] = box.strides[y][1];
  values[lanes::kAType] = static_cast<int64_t>(o.a.type());
  values[lanes::kBType] = static_cast<int64_t>(o.b ? o.b->type() : o.a.type());
  values[lanes::kOutType] = static_cast<int64_t>(o.y.type());
  values[lanes::kBScalar] = o.b && box.repeats[1];
  return values;
}

/// Does one operation, box by box.
void overLanes(LoweringState& l, const npu::Insn& insn, const LaneOperands& o) {
  for (const DeviceView* each : {&o.a, o.b, &o.y})
    if (each && !each->isLocal())
      throw Refusal{CDL_REASON_MEMORY, "an operand does not lie in the scratchpad"};
  const std::array<int64_t, 3> bytes{o.a.bytes, o.b ? o.b->bytes : o.y.bytes, o.y.bytes};
  BoxLimits limits;
  limits.dims = 2;
  limits.high.fill(kStride);
  limits.runMayRepeat = {false, o.b != nullptr, false};
  const auto isLegal = [&](const Box& box) { return mayRunAtOnce(o, box); };
  namespace f = npu::field::vbinary;
  forEachBox(walkOf(o), bytes, limits, isLegal, [&](const Box& box) {
    npu::Insn one = insn;
    one.values[f::kD] =
        l.stream.descriptor(npu::DescriptorKind::kLanes, lanesOf(o, box), o.rescale);
    one.values[f::kA] = o.a.at + box.offsets[0];
    std::vector<Access> accesses{accessOf(o.a, box, 0, false)};
    if (o.b) {
      one.values[f::kB] = o.b->at + box.offsets[1];
      accesses.push_back(accessOf(*o.b, box, 1, false));
    } else if (o.table) {
      const DeviceView& t = *o.table;
      one.values[f::kB] = t.at;
      accesses.push_back({Access::kScratchpad, t.at, t.at + t.dims[0] * t.bytes, false});
    }
    one.values[f::kDst] = o.y.at + box.offsets[o.result()];
    accesses.push_back(accessOf(o.y, box, static_cast<int>(o.result()), true));
    l.stream.add(one, accesses);
  });
}

npu::Insn vectorInsn(npu::Op op, int64_t fn) {
  static_assert(int{npu::field::vbinary::kFn} == int{npu::field::vunary::kFn});
  npu::Insn insn = insnFor(op, npu::Engine::kVector);
  insn.values[npu::field::vbinary::kFn] = fn;
  return insn;
}

npu::Insn unary(npu::UnaryFn fn) { return vectorInsn(npu::Op::kVunary, static_cast<int64_t>(fn)); }
npu::Insn binary(npu::BinaryFn fn) {
  return vectorInsn(npu::Op::kVbinary, static_cast<int64_t>(fn));
}

/// The part of a view where the dims of `index` have these indices.
DeviceView at(const DeviceView& o, const std::vector<int>& dims,
              const std::vector<int64_t>& index) {
  DeviceView part = o;
  for (size_t i = 0; i < dims.size(); ++i) {
    const auto d = static_cast<size_t>(dims[i]);
    part.at += index[i] * o.strides[d] * o.bytes;
    part.dims[d] = 1;
  }
  return part;
}

/// Lowers a RESCALE. Its parameters are numbers in a descriptor, so where they differ from element
/// to element one part of the result follows the other.
void rescale(LoweringState& l, const cdl::Op& op) {
  const DeviceView a = l.image.input(op, 0), y = l.image.output(op);
  const bool hasB = op.inputs() > 5;
  std::vector<DeviceView> parameters;
  for (const uint32_t i : {1u, 2u, 3u, 5u})
    if (i < op.inputs()) parameters.push_back(l.image.input(op, i));
  std::vector<int> varying;
  for (int d = 0; d < y.rank; ++d)
    for (const DeviceView& p : parameters)
      if (y.dims[static_cast<size_t>(d)] > 1 && p.strides[static_cast<size_t>(d)] != 0) {
        varying.push_back(d);
        break;
      }
  if (y.elements() == 0) return;
  const IntegerLimits limits = limitsOf(y.elem);
  std::vector<int64_t> index(varying.size(), 0);
  for (;;) {
    const auto number = [&](size_t p, const char* what) {
      return l.image.scalar(at(parameters[p], varying, index), what);
    };
    Scale scale;
    scale.aMult = number(0, "the multiplier");
    scale.shift = number(1, "the shift");
    scale.zero = number(2, "the zero point");
    if (hasB) scale.bMult = number(3, "the second multiplier");
    scale.aShift = static_cast<int32_t>(op.attr(CDL_ATTR_A_LEFT_SHIFT, 0));
    scale.bShift = static_cast<int32_t>(op.attr(CDL_ATTR_B_LEFT_SHIFT, 0));
    scale.low = static_cast<int32_t>(op.attr(CDL_ATTR_CLAMP_MIN, limits.low));
    scale.high = static_cast<int32_t>(op.attr(CDL_ATTR_CLAMP_MAX, limits.high));
    checkScale(scale, a.elem, hasB ? l.image.input(op, 4).elem : a.elem, y.elem);
    const npu::DescriptorValues values = rescaleValues(scale, y.type());
    const DeviceView from = at(a, varying, index), to = at(y, varying, index);
    if (hasB) {
      const DeviceView other = at(l.image.input(op, 4), varying, index);
      overLanes(l, binary(npu::BinaryFn::kScaledAdd),
                {.a = from, .y = to, .b = &other, .rescale = &values});
    } else {
      overLanes(l, unary(npu::UnaryFn::kRescale), {.a = from, .y = to, .rescale = &values});
    }
    size_t d = varying.size();
    while (d-- > 0 && ++index[d] == y.dims[static_cast<size_t>(varying[d])]) index[d] = 0;
    if (d == SIZE_MAX) return;
  }
}

/// A view whose dims are rows, pixels and channels; -1: it has no such dim.
struct PixelView {
  const DeviceView& view;
  int row = -1, pixel = -1, channel = -1;

  int64_t extent(int dim) const { return dim < 0 ? 1 : view.dims[static_cast<size_t>(dim)]; }
  /// Bytes from one to the next.
  int64_t step(int dim) const {
    return dim < 0 ? 0 : view.strides[static_cast<size_t>(dim)] * view.bytes;
  }
};

/// Does the windows of a tile of rows, pixels and channels.
void pool(LoweringState& l, const PixelView& x, const PixelView& y, npu::PoolFn fn,
          const PoolWindow& window) {
  namespace p = npu::descriptor::pooling;
  namespace f = npu::field::vpool;
  npu::DescriptorValues values{};
  values[p::kInH] = x.extent(x.row);
  values[p::kInW] = x.extent(x.pixel);
  values[p::kOutH] = y.extent(y.row);
  values[p::kOutW] = y.extent(y.pixel);
  values[p::kChannels] = y.extent(y.channel);
  values[p::kKernelH] = window.kernel[0];
  values[p::kKernelW] = window.kernel[1];
  values[p::kStrideH] = window.stride[0];
  values[p::kStrideW] = window.stride[1];
  values[p::kPadTop] = window.pad[0];
  values[p::kPadLeft] = window.pad[1];
  values[p::kInRowStride] = x.step(x.row);
  values[p::kInPixelStride] = x.step(x.pixel);
  values[p::kOutRowStride] = y.step(y.row);
  values[p::kOutPixelStride] = y.step(y.pixel);
  values[p::kAType] = static_cast<int64_t>(x.view.type());
  values[p::kOutType] = static_cast<int64_t>(y.view.type());
  Scale one;
  one.aMult = 1;
  const npu::DescriptorValues sum = rescaleValues(one, npu::Type::kI32);
  npu::Insn insn = insnFor(npu::Op::kVpool, npu::Engine::kVector);
  insn.values[f::kA] = x.view.at;
  insn.values[f::kDst] = y.view.at;
  insn.values[f::kD] = l.stream.descriptor(npu::DescriptorKind::kPooling, values, &sum);
  insn.values[f::kFn] = static_cast<int64_t>(fn);
  l.stream.add(insn, {x.view.access(false), y.view.access(true)});
}

} // namespace

void checkScale(const Scale& s, uint8_t a, uint8_t b, uint8_t y) {
  for (const int32_t mult : {s.aMult, s.bMult})
    if (mult < 0 || mult >= 1 << 24)
      throw Refusal{CDL_REASON_VENDOR, cdl::text("multiplier ", mult, " is none of 24 bits")};
  if (s.shift < 0 || s.shift > 63)
    throw Refusal{CDL_REASON_VENDOR, cdl::text("shift ", s.shift, " > 63")};
  const auto checkLeft = [](int32_t shift, uint8_t elem) {
    int32_t most = 30;
    if (elem == CDL_I32) most = 7;
    if (elem == CDL_I16) most = 22;
    if (shift < 0 || shift > most)
      throw Refusal{CDL_REASON_ATTRIBUTE,
                    cdl::text("left shift ", shift, " > ", most, " of ", cdl::elemName(elem))};
  };
  checkLeft(s.aShift, a);
  checkLeft(s.bShift, b);
  const IntegerLimits limits = limitsOf(y);
  if (s.zero < limits.low || s.zero > limits.high)
    throw Refusal{CDL_REASON_VENDOR, cdl::text("zero point ", s.zero, " is no ", cdl::elemName(y))};
}

npu::DescriptorValues rescaleValues(const Scale& s, npu::Type out) {
  namespace r = npu::descriptor::rescale;
  npu::DescriptorValues values{};
  values[r::kAMult] = s.aMult;
  values[r::kBMult] = s.bMult;
  values[r::kAShift] = s.aShift;
  values[r::kBShift] = s.bShift;
  values[r::kShift] = s.shift;
  values[r::kZp] = s.zero;
  values[r::kLow] = s.low;
  values[r::kHigh] = s.high;
  values[r::kOutType] = static_cast<int64_t>(out);
  return values;
}

void lowerBinary(LoweringState& l, npu::BinaryFn fn, const DeviceView& a, const DeviceView& b,
                 const DeviceView& y) {
  overLanes(l, binary(fn), {.a = a, .y = y, .b = &b});
}

npu::BinaryFn binaryOf(uint16_t fn) {
  switch (fn) {
  case CDL_BINARY_ADD: return npu::BinaryFn::kAdd;
  case CDL_BINARY_SUB: return npu::BinaryFn::kSub;
  case CDL_BINARY_MUL: return npu::BinaryFn::kMul;
  case CDL_BINARY_DIV: return npu::BinaryFn::kDiv;
  case CDL_BINARY_MIN: return npu::BinaryFn::kMin;
  case CDL_BINARY_MAX: return npu::BinaryFn::kMax;
  }
  throw Refusal{CDL_REASON_NO_ROW, "the vector engine has no such function"};
}

void lowerElementwise(LoweringState& l, const cdl::Op& op) {
  if (op.kind() == cdl::Kind::Rescale) return rescale(l, op);
  const DeviceView a = l.image.input(op, 0), y = l.image.output(op);
  switch (op.kind()) {
  case cdl::Kind::Convert: {
    // A number is true where it is not equal to 0: where its being equal is false.
    if (y.elem == CDL_BOOL && a.elem != CDL_BOOL) {
      const int64_t zero =
          l.records(std::vector<std::byte>(static_cast<size_t>(a.bytes), std::byte{0}));
      const auto zeroAs = [&](const DeviceView& like) {
        DeviceView number = like;
        number.memory = Access::kScratchpad;
        number.at = zero;
        number.strides = {};
        return number;
      };
      lowerBinary(l, npu::BinaryFn::kEqual, a, zeroAs(a), y);
      return lowerBinary(l, npu::BinaryFn::kEqual, y, zeroAs(y), y);
    }
    // Whatever is widened stays what it is.
    if (op.attr(CDL_ATTR_SATURATE, 0) == 0 || y.elem == CDL_I32 || npu::isFloat(y.type()))
      return overLanes(l, unary(npu::UnaryFn::kCopy), {.a = a, .y = y});
    Scale one; // times 1, within the bounds of the type
    one.aMult = 1;
    one.low = limitsOf(y.elem).low;
    one.high = limitsOf(y.elem).high;
    const npu::DescriptorValues values = rescaleValues(one, y.type());
    return overLanes(l, unary(npu::UnaryFn::kRescale), {.a = a, .y = y, .rescale = &values});
  }
  case cdl::Kind::Table: {
    DeviceView table = l.image.input(op, 1);
    if (table.strides[0] != 1) { // the device reads entries side by side
      DeviceView dense = table;
      dense.strides[0] = 1;
      dense.at = l.room(table.dims[0] * table.bytes);
      lowerCopy(l, table, dense);
      table = dense;
    }
    if (!table.isLocal())
      throw Refusal{CDL_REASON_MEMORY, "the table does not lie in the scratchpad"};
    return overLanes(l, unary(npu::UnaryFn::kTable), {.a = a, .y = y, .table = &table});
  }
  default: {
    const DeviceView b = l.image.input(op, 1);
    if (op.kind() != cdl::Kind::Compare) return lowerBinary(l, binaryOf(op.fn()), a, b, y);
    if (op.fn() != CDL_COMPARE_EQ && op.fn() != CDL_COMPARE_LT)
      throw Refusal{CDL_REASON_NO_ROW, "the vector engine has no such comparison"};
    return lowerBinary(l, op.fn() == CDL_COMPARE_EQ ? npu::BinaryFn::kEqual : npu::BinaryFn::kLess,
                       a, b, y);
  }
  }
}

namespace {

/// A reduction of x[O,R,I] to y[O,I] by one function, in the forms that instructions have.
struct Reduction {
  npu::BinaryFn combine;
  npu::ReduceFn ofRun;
  std::optional<npu::PoolFn> ofWindow; ///< of vpool, where that has it for the type
};

Reduction reductionOf(uint16_t fn, uint8_t elem) {
  switch (fn) {
  case CDL_REDUCE_MAX: return {npu::BinaryFn::kMax, npu::ReduceFn::kMax, npu::PoolFn::kMax};
  case CDL_REDUCE_MIN: return {npu::BinaryFn::kMin, npu::ReduceFn::kMin, std::nullopt};
  case CDL_REDUCE_SUM: {
    const bool hasSum = elem == CDL_I32 || elem == CDL_F32 || elem == CDL_BF16;
    const auto window = hasSum ? std::optional(npu::PoolFn::kSum) : std::nullopt;
    return {npu::BinaryFn::kAdd, npu::ReduceFn::kSum, window};
  }
  }
  throw Refusal{CDL_REASON_NO_ROW, "no such reduction"};
}

/// Terms that lie side by side are a run: all results are one walk over runs. Says whether it was
/// done.
bool reduceRuns(LoweringState& l, npu::ReduceFn fn, const DeviceView& x, const DeviceView& y) {
  constexpr int64_t kExtent = 65536;
  for (const int64_t extent : {x.dims[0], x.dims[1], x.dims[2]})
    if (extent > kExtent) return false;
  const std::array<int64_t, 2> from{x.strides[2] * x.bytes, x.strides[0] * x.bytes};
  const std::array<int64_t, 2> to{y.strides[1] * y.bytes, y.strides[0] * y.bytes};
  for (const int64_t stride : {from[0], from[1], to[0], to[1]})
    if (stride < 0 || stride > kStride) return false;
  const Access read = x.access(false);
  const Access written = y.access(true);
  const bool isApart = read.end <= written.begin || written.end <= read.begin;
  if ((x.strides[1] != 1 && x.dims[1] > 1) || !isApart) return false;
  npu::DescriptorValues values{};
  values[lanes::kRun] = x.dims[1];
  values[lanes::kLen1] = x.dims[2];
  values[lanes::kLen2] = x.dims[0];
  values[lanes::kAStride1] = from[0];
  values[lanes::kAStride2] = from[1];
  values[lanes::kOutStride1] = to[0];
  values[lanes::kOutStride2] = to[1];
  values[lanes::kAType] = static_cast<int64_t>(x.type());
  values[lanes::kBType] = static_cast<int64_t>(x.type());
  values[lanes::kOutType] = static_cast<int64_t>(y.type());
  namespace f = npu::field::vreduce;
  npu::Insn insn = insnFor(npu::Op::kVreduce, npu::Engine::kVector);
  insn.values[f::kA] = x.at;
  insn.values[f::kDst] = y.at;
  insn.values[f::kD] = l.stream.descriptor(npu::DescriptorKind::kLanes, values);
  insn.values[f::kFn] = static_cast<int64_t>(fn);
  l.stream.add(insn, {read, written});
  return true;
}

/// The part of x[1,R,I] from `first` on.
DeviceView termsFrom(const DeviceView& x, int64_t first, int64_t count) {
  DeviceView part = x;
  part.at += first * x.strides[1] * x.bytes;
  part.dims[1] = count;
  return part;
}

/// Results that lie side by side are channels, and their terms the places of a window: of the first
/// ones into y, of the others beside it and then into it. Says whether it was done.
bool reduceWindows(LoweringState& l, const Reduction& reduction, const DeviceView& x,
                   const DeviceView& y) {
  constexpr int64_t kPlaces = 256;
  const int64_t length = x.dims[1];
  const int64_t inner = x.dims[2];
  const bool isTile = inner <= 65536 && (x.strides[2] == 1 || inner == 1) &&
                      (y.strides[1] == 1 || inner == 1) && x.strides[1] >= 0 &&
                      x.strides[1] * x.bytes < 65536;
  const bool hasRoom = length <= kPlaces || inner * y.bytes <= l.recordsBytes;
  if (!reduction.ofWindow || !isTile || !hasRoom) return false;
  DeviceView beside = y;
  if (length > kPlaces) beside.at = l.room(inner * y.bytes);
  for (int64_t first = 0; first < length; first += kPlaces) {
    const DeviceView& to = first == 0 ? y : beside;
    const int64_t count = std::min(kPlaces, length - first);
    pool(l, {.view = termsFrom(x, first, count), .pixel = 1, .channel = 2},
         {.view = to, .channel = 1}, *reduction.ofWindow, {.kernel = {1, count}});
    if (first > 0) lowerBinary(l, reduction.combine, y, beside, y);
  }
  return true;
}

/// One place after the other, all results at once.
void reducePlaces(LoweringState& l, npu::BinaryFn combine, const DeviceView& x,
                  const DeviceView& y) {
  DeviceView place = y;
  place.rank = 1;
  place.dims = {x.dims[2]};
  place.strides = {y.strides[1]};
  for (int64_t r = 0; r < x.dims[1]; ++r) {
    DeviceView term = place;
    term.at = x.at + r * x.strides[1] * x.bytes;
    term.strides = {x.strides[2]};
    if (r == 0)
      overLanes(l, unary(npu::UnaryFn::kCopy), {.a = term, .y = place});
    else
      lowerBinary(l, combine, place, term, place);
  }
}

} // namespace

void lowerReduce(LoweringState& l, const cdl::Op& op) {
  const DeviceView x = l.image.input(op, 0);
  const DeviceView y = l.image.output(op);
  if (!x.isLocal() || !y.isLocal())
    throw Refusal{CDL_REASON_MEMORY, "an operand does not lie in the scratchpad"};
  if (x.dims[0] == 0 || x.dims[2] == 0) return;
  const Reduction reduction = reductionOf(op.fn(), x.elem);
  if (x.dims[1] == 0) { // what changes nothing that it is combined with
    uint64_t neutral = op.fn() == CDL_REDUCE_MAX ? lowestBits(y.elem) : highestBits(y.elem);
    if (op.fn() == CDL_REDUCE_SUM) neutral = 0;
    return lowerFill(l, y, neutral);
  }
  if (reduceRuns(l, reduction.ofRun, x, y)) return;
  for (int64_t o = 0; o < x.dims[0]; ++o) {
    DeviceView from = x;
    DeviceView to = y;
    from.at += o * x.strides[0] * x.bytes;
    to.at += o * y.strides[0] * y.bytes;
    from.dims[0] = to.dims[0] = 1;
    if (!reduceWindows(l, reduction, from, to)) reducePlaces(l, reduction.combine, from, to);
  }
}

void lowerPool(LoweringState& l, const cdl::Op& op) {
  const DeviceView x = l.image.input(op, 0), y = l.image.output(op); // by n, h, w, c
  PoolWindow window;
  DeviceView from = x, to = y;
  bool isWhole = true, isEmpty = false;
  for (uint32_t d = 0; d < 2; ++d) {
    const int64_t kernel = op.attr(CDL_ATTR_KERNEL, 1, d), stride = op.attr(CDL_ATTR_STRIDES, 1, d);
    const int64_t pad = op.attr(CDL_ATTR_PADS, 0, d), extent = x.dims[d + 1], outs = y.dims[d + 1];
    // Windows that lie in the padding alone are none of the device's.
    const auto reaches = [&](int64_t o) {
      return o * stride - pad < extent && o * stride - pad + kernel > 0;
    };
    int64_t first = 0, end = outs;
    while (first < outs && !reaches(first)) ++first;
    while (end > first && !reaches(end - 1)) --end;
    isWhole &= first == 0 && end == outs;
    isEmpty |= first == end;
    const int64_t start = first * stride - pad; // of the first window that reaches
    const int64_t skipped = std::max<int64_t>(start, 0);
    from.at += skipped * x.strides[d + 1] * x.bytes;
    from.dims[d + 1] -= skipped;
    to.at += first * y.strides[d + 1] * y.bytes;
    to.dims[d + 1] = end - first;
    window.kernel[d] = kernel;
    window.stride[d] = stride;
    window.pad[d] = std::max<int64_t>(-start, 0);
  }
  if (!isWhole) lowerFill(l, y, lowestBits(y.elem));
  if (isEmpty) return;
  const int64_t channels = y.dims[3];
  // A descriptor has its channels side by side: those of a view that repeats go one by one.
  const int64_t taken = channels > 1 && x.strides[3] == 0 ? 1 : channels;
  for (int64_t n = 0; n < y.dims[0]; ++n)
    for (int64_t c = 0; c < channels; c += taken) {
      DeviceView in = from, out = to;
      in.at += (n * x.strides[0] + c * x.strides[3]) * x.bytes;
      out.at += (n * y.strides[0] + c * y.strides[3]) * y.bytes;
      in.dims[0] = out.dims[0] = 1;
      in.dims[3] = out.dims[3] = taken;
      pool(l, {.view = in, .row = 1, .pixel = 2, .channel = 3},
           {.view = out, .row = 1, .pixel = 2, .channel = 3}, npu::PoolFn::kMax, window);
    }
}

} // namespace npu_sim
