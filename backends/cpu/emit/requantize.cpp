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

/// One value per channel of a dense result of these dims; nullopt where a channel has more than one. Strides are not
/// negative: where the first and the last element of a channel lie at one place, all of them do.
std::optional<std::vector<int32_t>> perChannel(const Lowering& lowering, const Operand& o, const Operand& dense,
                                               int channelDim) {
  int64_t inner = 1, outer = 1;
  for (int d = 0; d < dense.rank; ++d) (d < channelDim ? outer : inner) *= d == channelDim ? 1 : dense.dims[d];
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

} // namespace

std::optional<Follower> followerOf(const Lowering& lowering, uint32_t index, const Operand& sums, int channelDim) {
  const cdl_image_t* image = lowering.image;
  if (index + 1 >= image->instrs.count || !sums.isDense()) return std::nullopt;
  const cdl_instr_t& next = *cdl_get_instr(image, index + 1);
  if (next.kind != CDL_KIND_RESCALE || next.inputs != 4 || next.loop || cdl_get_instr(image, index)->loop)
    return std::nullopt;
  if (cdl_get_buffer(image, sums.at.buffer)->role != CDL_ROLE_TEMP) return std::nullopt;
  uint32_t uses = 0;
  for (uint32_t v = 1; v < image->views.count; ++v) uses += cdl_get_view(image, v)->buffer == sums.at.buffer;
  if (uses != 2) return std::nullopt; // written once, read once
  std::vector<Operand> in = operandsOf(lowering, next);
  Follower f;
  f.instr = &next;
  f.y = in.back();
  if (in[0].at.buffer != sums.at.buffer || in[0].at.offset != sums.at.offset || !in[0].isDense() || !f.y.isDense() ||
      in[0].elements() != sums.elements() || cdl_elem_bits(f.y.elem) > 32)
    return std::nullopt;
  const auto multiplier = perChannel(lowering, in[1], sums, channelDim),
             shift = perChannel(lowering, in[2], sums, channelDim);
  const auto zero = perChannel(lowering, in[3], sums, channelDim);
  if (!multiplier || !shift || !zero) return std::nullopt;
  f.form = rescaleForm(lowering, next, f.y.elem);
  for (size_t c = 0; c < multiplier->size(); ++c) {
    const int s = std::max((*shift)[c], 0);
    f.scales.push_back(std::ldexp(static_cast<double>((*multiplier)[c]), static_cast<int>(f.form.aLeftShift) - s));
    f.zeros.push_back((*zero)[c]);
  }
  return f;
}

std::optional<std::vector<int32_t>> constantBias(const Lowering& lowering, const cdl_expr_t& epilogue,
                                                 const std::vector<Operand>& in, int channelDim, int64_t channels) {
  if (epilogue.steps != 1) return std::nullopt;
  const cdl_step_t& step = *cdl_get_step(lowering.image, epilogue.first_step);
  if (step.kind != CDL_KIND_BINARY || step.fn != CDL_BINARY_ADD || step.elem != CDL_I32) return std::nullopt;
  const int view = step.in[0].source == CDL_FROM_VIEW ? 0 : 1;
  if (step.in[view].source != CDL_FROM_VIEW || step.in[1 - view].source != CDL_FROM_ACC) return std::nullopt;
  const auto values = perChannel(lowering, in[step.in[view].index], in.back(), channelDim);
  return values && static_cast<int64_t>(values->size()) == channels ? values : std::nullopt;
}

Plane panelsOf(Lowering& lowering, const std::vector<double>& values, int64_t groups, int64_t panels) {
  std::vector<double> laid(static_cast<size_t>(groups * panels * kPanel), 0);
  const auto perGroup = static_cast<int64_t>(values.size()) / groups;
  for (int64_t c = 0; c < groups * perGroup; ++c)
    laid[static_cast<size_t>(c / perGroup * panels * kPanel + c % perGroup)] = values[static_cast<size_t>(c)];
  Plane plane;
  plane.elem = CDL_F64, plane.at = lowering.own(laid.data(), laid.size() * 8);
  plane.group = panels * kPanel * 8, plane.panel = kPanel * 8, plane.lane = 8;
  return plane;
}

bool canWriteEarly(const Lowering& lowering, const cdl_instr_t& instr, const Operand& y) {
  const cdl_buffer_t& to = *cdl_get_buffer(lowering.image, y.at.buffer);
  for (uint32_t i = 0; i < instr.inputs; ++i) {
    const cdl_view_t& view = *cdl_get_input(lowering.image, &instr, i);
    const cdl_buffer_t& from = *cdl_get_buffer(lowering.image, view.buffer);
    if (view.buffer == y.at.buffer) return false;
    if (from.role != CDL_ROLE_TEMP || to.role != CDL_ROLE_TEMP || from.space != to.space) continue;
    if (from.offset == CDL_UNPLACED || to.offset == CDL_UNPLACED) return false;
    if (from.offset < to.offset + to.bytes && to.offset < from.offset + from.bytes) return false;
  }
  return true;
}

} // namespace cpu
