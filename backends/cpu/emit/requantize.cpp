#include "requantize.hpp"

#include "instructions.hpp"

#include <cmath>
#include <cstring>

namespace cpu {

namespace {

/// Where the element of a broadcast view lies that belongs to flat element `index` of the result.
int64_t offsetOf(const Operand& o, int64_t index) {
  int64_t offset = 0;
  for (int d = o.rank; d-- > 0;) {
    offset += index % o.dims[d] * o.strides[d];
    index /= o.dims[d];
  }
  return offset;
}

std::optional<int32_t> constantAt(const Lowering& lowering, const Operand& o, int64_t offset) {
  int32_t value;
  if (const char* payload = payloadOf(lowering, o)) {
    std::memcpy(&value, payload + offset * 4, 4);
    return value;
  }
  const cdl_buffer_t* buffer = cdl_get_buffer(lowering.image, o.at.buffer);
  if (buffer->role != CDL_ROLE_CONSTANT) return std::nullopt;
  const cdl_constant_t* constant = cdl_get_constant(lowering.image, buffer->constant);
  if (constant->form != 1) return std::nullopt;
  return static_cast<int32_t>(static_cast<uint32_t>(constant->bits));
}

/// The value of each channel of a dense result of these dims; nullopt where a channel has more than
/// one. Strides are not negative: where the first and the last element of a channel lie at one
/// place, all of them do.
std::optional<std::vector<int32_t>> perChannel(const Lowering& lowering, const Operand& o,
                                               const Operand& dense, int channelDim) {
  int64_t inner = 1, outer = 1;
  for (int d = 0; d < channelDim; ++d) outer *= dense.dims[d];
  for (int d = channelDim + 1; d < dense.rank; ++d) inner *= dense.dims[d];
  const int64_t channels = dense.dims[channelDim];
  for (int d = 0; d < o.rank; ++d)
    if (o.strides[d] < 0) return std::nullopt;
  std::vector<int32_t> values;
  for (int64_t c = 0; c < channels; ++c) {
    const int64_t first = offsetOf(o, c * inner);
    if (offsetOf(o, c * inner + inner - 1) != first ||
        offsetOf(o, ((outer - 1) * channels + c) * inner + inner - 1) != first)
      return std::nullopt;
    const auto value = constantAt(lowering, o, first);
    if (!value) return std::nullopt;
    values.push_back(*value);
  }
  return values;
}

/// The only instruction that reads what `writer` makes, when it is a RESCALE right behind it but
/// for the FILLs of its result's border; 0 when there is none.
uint32_t onlyRescaleOf(const Lowering& lowering, uint32_t writer, uint32_t buffer) {
  const cdl_image_t* image = lowering.image;
  if (cdl_get_buffer(image, buffer)->role != CDL_ROLE_TEMP || cdl_get_instr(image, writer)->loop)
    return 0;
  uint32_t uses = 0;
  for (uint32_t i = 1; i < image->instrs.count; ++i) {
    const cdl_instr_t& instr = *cdl_get_instr(image, i);
    for (uint32_t v = 0; v < uint32_t(instr.inputs) + instr.outputs; ++v)
      uses += cdl_get_input(image, &instr, v)->buffer == buffer;
  }
  uint32_t next = writer + 1;
  const auto kindOf = [&](uint32_t i) {
    return i < image->instrs.count ? cdl_get_instr(image, i)->kind : 0;
  };
  while (kindOf(next) == CDL_KIND_FILL) ++next;
  if (uses != 2 || kindOf(next) != CDL_KIND_RESCALE || cdl_get_instr(image, next)->loop) return 0;
  const auto written = [&](uint32_t i) {
    const cdl_instr_t& instr = *cdl_get_instr(image, i);
    return cdl_get_input(image, &instr, instr.inputs)->buffer;
  };
  for (uint32_t i = writer + 1; i < next; ++i)
    if (written(i) != written(next)) return 0;
  return next;
}

/// A view of the same elements over the dims of `dense`, which a RESCALE walks with it; nullopt
/// where no strides do that.
std::optional<Operand> over(const Operand& view, const Operand& dense) {
  if (view.elements() != dense.elements()) return std::nullopt;
  Operand result = dense;
  result.elem = view.elem;
  result.at = view.at;
  result.halo = nullptr;
  int64_t step = 1;
  for (int d = dense.rank; d-- > 0; step *= dense.dims[d])
    result.strides[d] = dense.dims[d] > 1 ? offsetOf(view, step) : step;
  const int64_t row = dense.dims[dense.rank - 1];
  for (int64_t flat = 0; flat < dense.elements(); flat += row)
    for (const int64_t at : {flat, flat + row / 2, flat + row - 1})
      if (offsetOf(result, at) != offsetOf(view, at)) return std::nullopt;
  return result;
}

/// Whether lanes follow each other in memory where they do in `dense`: kernels load and store whole
/// vectors.
bool keepsLanes(const Operand& view, const Operand& dense) {
  for (int d = 0; d < dense.rank; ++d)
    if (dense.dims[d] > 1 && dense.strides[d] == 1 && view.strides[d] != 1) return false;
  return true;
}

bool isSame(const Operand& a, const Operand& b) {
  return a.at.buffer == b.at.buffer && a.at.offset == b.at.offset;
}

/// The constant that all elements are, if they are one.
std::optional<int32_t> uniform(const Lowering& lowering, const Operand& o) {
  for (int d = 0; d < o.rank; ++d)
    if (o.dims[d] != 1 && o.strides[d] != 0) return std::nullopt;
  return constantAt(lowering, o, 0);
}

/// The RESCALE behind `writer` that joins a follower's result with another tensor, if it can be
/// done with it.
void addJoin(const Lowering& lowering, uint32_t writer, Follower& f, const Operand& sums) {
  const cdl_image_t* image = lowering.image;
  const uint32_t index = onlyRescaleOf(lowering, writer, f.y.at.buffer);
  if (!index) return;
  const cdl_instr_t& next = *cdl_get_instr(image, index);
  const std::vector<Operand> in = operandsOf(lowering, next);
  if (next.inputs != 6) return;
  const int own = isSame(in[0], f.y) ? 0 : 4, foreign = 4 - own;
  if (!isSame(in[own], f.y) || in[own].elem != f.y.elem) return;
  for (const Operand& o : {in[0], in[4], in[6]})
    if (cdl_elem_bits(o.elem) != 8) return;
  const auto first = over(in[own], sums), other = over(in[foreign], sums), y = over(in[6], sums);
  const auto a = uniform(lowering, in[own + 1]), b = uniform(lowering, in[foreign + 1]);
  const auto shift = uniform(lowering, in[2]), zero = uniform(lowering, in[3]);
  if (!first || !other || !y || !a || !b || !shift || !zero) return;
  if (!keepsLanes(*other, *first) || !keepsLanes(*y, *first)) return;
  for (int d = 0; d < sums.rank; ++d)
    if (first->strides[d] != f.y.strides[d]) return;
  JoinRescale joining;
  joining.form = rescaleForm(lowering, next, y->elem);
  const int64_t left[2] = {joining.form.aLeftShift, joining.form.bLeftShift};
  if (left[0] > 30 || left[1] > 30) return;
  joining.a = int64_t(*a) << left[own / 4];
  joining.b = int64_t(*b) << left[foreign / 4];
  joining.shift = *shift;
  joining.zero = *zero;
  if (!joining.isNarrow() || std::abs(joining.zero) > 255) return;
  f.join = joining;
  f.other = *other;
  f.y = *y;
  f.instrs.push_back(index);
}

/// Scales as integers: multiplier / 2^shift, both held in f64.
struct WordScales {
  std::vector<double> multipliers, shifts;
  bool isUniform = true; // one shift for all
};

/// Multipliers of 31 bits and shifts of 1 .. 62, one for all channels where no scale loses a bit by
/// that; nullopt where a scale is too large.
std::optional<WordScales> wordScalesOf(const std::vector<double>& scales) {
  constexpr int kBits = 31;
  WordScales words;
  int least = 62;
  for (const double scale : scales) {
    int exponent = 0;
    const double fraction = std::frexp(scale, &exponent);
    // No i32 is half of the result's unit then.
    const bool isNothing = std::abs(scale) < 0x1p-32;
    const int shift = kBits - exponent;
    if (!isNothing && shift < 1) return std::nullopt;
    words.multipliers.push_back(isNothing ? 0 : std::ldexp(fraction, kBits));
    words.shifts.push_back(isNothing ? 0 : shift);
    if (!isNothing) least = std::min(least, shift);
  }
  std::vector<double> shared;
  for (size_t c = 0; c < scales.size(); ++c) {
    if (words.multipliers[c] == 0) words.shifts[c] = least;
    shared.push_back(std::ldexp(words.multipliers[c], least - static_cast<int>(words.shifts[c])));
    words.isUniform &= shared[c] == std::trunc(shared[c]);
  }
  if (!words.isUniform) return words;
  words.multipliers = shared;
  words.shifts.assign(scales.size(), least);
  return words;
}

/// Whether kernels of the instruction set can scale sums by these.
bool canScale(const Isa& isa, const std::vector<double>& scales) {
  return isa.scalesInF64 || wordScalesOf(scales);
}

/// Sets one scale and one zero point per channel.
void setScales(Follower& f, const std::vector<int32_t>& multiplier,
               const std::vector<int32_t>& shift, const std::vector<int32_t>& zero) {
  for (size_t c = 0; c < multiplier.size(); ++c) {
    const int s = std::max(shift[c], 0);
    f.scales.push_back(
        std::ldexp(static_cast<double>(multiplier[c]), static_cast<int>(f.form.aLeftShift) - s));
    f.zeros.push_back(zero[c]);
  }
}

} // namespace

std::optional<Follower> followerInEpilogue(const Lowering& lowering, uint32_t index,
                                           const cdl_expr_t& epilogue,
                                           const std::vector<Operand>& in, int channelDim,
                                           bool joins) {
  const cdl_step_t& last = *cdl_get_step(lowering.image, epilogue.first_step + epilogue.steps - 1);
  const bool readsRest = epilogue.steps == 1 ? last.in[0].source == CDL_FROM_ACC
                                             : last.in[0].source == CDL_FROM_STEP &&
                                                   last.in[0].index == epilogue.steps - 2;
  if (last.kind != CDL_KIND_RESCALE || !readsRest || last.in[0].elem != CDL_I32)
    return std::nullopt;
  const Operand& y = in.back();
  std::optional<std::vector<int32_t>> numbers[3]; // multiplier, shift, zero
  for (int k = 0; k < 3; ++k) {
    if (last.in[k + 1].source != CDL_FROM_VIEW) return std::nullopt;
    numbers[k] = perChannel(lowering, in[last.in[k + 1].index], y, channelDim);
    if (!numbers[k]) return std::nullopt;
  }
  Follower f;
  f.y = y;
  f.form = stepForm(last);
  setScales(f, *numbers[0], *numbers[1], *numbers[2]);
  if (!canScale(lowering.isa, f.scales)) return std::nullopt;
  if (!joins) return f;
  addJoin(lowering, index, f, y);
  if (f.join && !canWriteEarly(lowering, *cdl_get_instr(lowering.image, index), f)) {
    f.join.reset(), f.instrs.clear(), f.y = y;
  }
  return f;
}

std::optional<Follower> followerOf(const Lowering& lowering, uint32_t index, const Operand& sums,
                                   int channelDim, bool joins) {
  if (!sums.isDense()) return std::nullopt;
  const uint32_t at = onlyRescaleOf(lowering, index, sums.at.buffer);
  if (!at) return std::nullopt;
  const cdl_instr_t& next = *cdl_get_instr(lowering.image, at);
  if (next.inputs != 4) return std::nullopt;
  const std::vector<Operand> in = operandsOf(lowering, next);
  Follower f;
  f.instrs = {at};
  if (!isSame(in[0], sums) || !in[0].isDense() || in[0].elements() != sums.elements() ||
      cdl_elem_bits(in.back().elem) > 32)
    return std::nullopt;
  const auto y = over(in.back(), sums);
  const auto multiplier = perChannel(lowering, in[1], sums, channelDim),
             shift = perChannel(lowering, in[2], sums, channelDim);
  const auto zero = perChannel(lowering, in[3], sums, channelDim);
  if (!y || !keepsLanes(*y, sums) || !multiplier || !shift || !zero) return std::nullopt;
  f.y = *y;
  f.form = rescaleForm(lowering, next, f.y.elem);
  setScales(f, *multiplier, *shift, *zero);
  if (!canScale(lowering.isa, f.scales)) return std::nullopt;
  if (joins) addJoin(lowering, at, f, sums);
  const cdl_instr_t& product = *cdl_get_instr(lowering.image, index);
  if (canWriteEarly(lowering, product, f)) return f;
  return std::nullopt;
}

void follow(Lowering& lowering, const Follower& f, int64_t groups, int64_t panels, Contraction& c) {
  Requantize r;
  r.form = f.form;
  r.uniformZero = static_cast<int64_t>(f.zeros[0]);
  bool isF32 = lowering.isa.scalesInF32 && cdl_elem_bits(f.y.elem) == 8;
  bool hasOneZero = true;
  for (size_t i = 0; i < f.scales.size(); ++i) {
    hasOneZero &= f.zeros[i] == f.zeros[0];
    isF32 &= saturatesInF32(f.form, f.scales[i], r.uniformZero);
  }
  if (isF32 && hasOneZero) {
    r.scaling = Scaling::F32;
    r.scale = panelsOf(lowering, f.scales, groups, panels, CDL_F32);
  } else if (lowering.isa.scalesInF64) {
    r.zero = panelsOf(lowering, f.zeros, groups, panels, CDL_F64);
    r.scale = panelsOf(lowering, f.scales, groups, panels, CDL_F64);
  } else {
    const WordScales words = *wordScalesOf(f.scales);
    r.scaling = Scaling::WORDS;
    r.scale = panelsOf(lowering, words.multipliers, groups, panels, CDL_I32);
    r.uniformShift = static_cast<int64_t>(words.shifts[0]);
    if (!words.isUniform) r.shift = panelsOf(lowering, words.shifts, groups, panels, CDL_I32);
    if (!hasOneZero) r.zero = panelsOf(lowering, f.zeros, groups, panels, CDL_I32);
  }
  c.requantize = r;
  for (uint32_t instr : f.instrs) lowering.done(instr);
}

std::optional<std::vector<int32_t>> constantBias(const Lowering& lowering,
                                                 const cdl_expr_t& epilogue,
                                                 const std::vector<Operand>& in, int channelDim,
                                                 int64_t channels) {
  if (epilogue.steps != 1) return std::nullopt;
  const cdl_step_t& step = *cdl_get_step(lowering.image, epilogue.first_step);
  if (step.kind != CDL_KIND_BINARY || step.fn != CDL_BINARY_ADD || step.elem != CDL_I32)
    return std::nullopt;
  const int view = step.in[0].source == CDL_FROM_VIEW ? 0 : 1;
  if (step.in[view].source != CDL_FROM_VIEW || step.in[1 - view].source != CDL_FROM_ACC)
    return std::nullopt;
  const auto values = perChannel(lowering, in[step.in[view].index], in.back(), channelDim);
  return values && static_cast<int64_t>(values->size()) == channels ? values : std::nullopt;
}

Plane panelsOf(Lowering& lowering, const std::vector<double>& values, int64_t groups,
               int64_t panels, uint8_t elem) {
  std::vector<double> laid(static_cast<size_t>(groups * panels * kPanel), 0);
  const auto perGroup = static_cast<int64_t>(values.size()) / groups;
  for (int64_t c = 0; c < groups * perGroup; ++c)
    laid[static_cast<size_t>(c / perGroup * panels * kPanel + c % perGroup)] =
        values[static_cast<size_t>(c)];
  const int64_t size = elem == CDL_F64 ? 8 : 4;
  Plane plane;
  plane.elem = elem;
  plane.group = panels * kPanel * size;
  plane.panel = kPanel * size;
  plane.lane = size;
  if (elem == CDL_F32) {
    const std::vector<float> narrow(laid.begin(), laid.end());
    plane.at = lowering.own(narrow.data(), narrow.size() * 4);
  } else if (elem == CDL_I32) {
    const std::vector<int32_t> words(laid.begin(), laid.end());
    plane.at = lowering.own(words.data(), words.size() * 4);
  } else {
    plane.at = lowering.own(laid.data(), laid.size() * 8);
  }
  return plane;
}

bool canWriteEarly(const Lowering& lowering, const cdl_instr_t& instr, const Follower& f) {
  const cdl_buffer_t& to = *cdl_get_buffer(lowering.image, f.y.at.buffer);
  const auto meets = [&](uint32_t buffer) {
    const cdl_buffer_t& from = *cdl_get_buffer(lowering.image, buffer);
    if (buffer == f.y.at.buffer) return true;
    if (from.role != CDL_ROLE_TEMP || to.role != CDL_ROLE_TEMP || from.space != to.space)
      return false;
    if (from.offset == CDL_UNPLACED || to.offset == CDL_UNPLACED) return true;
    return from.offset < to.offset + to.bytes && to.offset < from.offset + from.bytes;
  };
  for (uint32_t i = 0; i < instr.inputs; ++i)
    if (meets(cdl_get_input(lowering.image, &instr, i)->buffer)) return false;
  if (!f.join || !meets(f.other.at.buffer)) return true;
  // What is joined may be overwritten element by element.
  const cdl_buffer_t& from = *cdl_get_buffer(lowering.image, f.other.at.buffer);
  bool isAlike = from.offset != CDL_UNPLACED && to.offset != CDL_UNPLACED && &from != &to &&
                 from.offset + static_cast<uint64_t>(f.other.at.offset) ==
                     to.offset + static_cast<uint64_t>(f.y.at.offset);
  for (int d = 0; d < f.y.rank; ++d) isAlike &= f.other.strides[d] == f.y.strides[d];
  return isAlike;
}

} // namespace cpu
