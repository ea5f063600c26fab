// Weights with their scales and zero points, as kernels read them and as they are packed.
#include "scaled_sums.hpp"

namespace program {

namespace {

/// A number in memory as a float.
std::string numberAt(uint8_t elem, const std::string& pointer, const std::string& index) {
  switch (elem) {
  case CDL_F16: return cdl::text("vload_half(", index, ", (global const half*)", pointer, ")");
  case CDL_BF16:
    return cdl::text("as_float((uint)((global const ushort*)", pointer, ")[", index, "] << 16)");
  default: return cdl::text("(float)", pointer, "[", index, "]");
  }
}

/// 16 that lie side by side.
std::string numbersAt(uint8_t elem, const std::string& pointer, const std::string& index) {
  switch (elem) {
  case CDL_F16:
    return cdl::text("vload_half16(0, (global const half*)", pointer, " + ", index, ")");
  case CDL_BF16:
    return cdl::text("as_float16(convert_uint16(vload16(0, (global const ushort*)", pointer, " + ",
                     index, ")) << 16)");
  default: return cdl::text("convert_float16(vload16(0, ", pointer, " + ", index, "))");
  }
}

} // namespace

ScaledOperands::ScaledOperands(const Instruction& instr, const ScaledSums& sums, Writer& writer)
    : s_(sums), writer_(writer), w_(writer.pointer(*sums.w)) {
  const auto perBlock = [&](const cdl_view_t* view) {
    if (!view) return PerBlock{};
    return PerBlock{view, writer_.pointer(*view),
                    cdl_get_layout(instr.image(), view->layout)->opaque != 0};
  };
  scale_ = perBlock(sums.scale);
  zero_ = perBlock(sums.zero);
  if (sums.isDynamic) steps_ = writer.scratch(sums.stepsAt());
  if (sums.hasShorts) totals_ = writer.scratch(sums.totalsAt());
}

std::string ScaledOperands::ofPanel(const PerBlock& operand, const std::string& block) {
  const uint8_t elem = operand.view->elem;
  if (operand.isPacked)
    return numbersAt(elem, operand.pointer,
                     cdl::text("(panel * ", s_.blocks, " + ", block, ") * 16"));
  if (operand.view->strides[0] == 0) return "(float16)(" + ofColumn(operand, "0", block) + ")";
  const std::string name = cdl::text("each", names_++);
  const std::string column = cdl::text("min((int)panel * 16 + e, ", s_.outs - 1, ")");
  writer_.line("float ", name, "[16];");
  writer_.line("for (int e = 0; e < 16; ++e) ", name, "[e] = ", ofColumn(operand, column, block),
               ";");
  return "vload16(0, " + name + ")";
}

std::string ScaledOperands::ofColumn(const PerBlock& operand, const std::string& column,
                                     const std::string& block) const {
  const int64_t* strides = operand.view->strides;
  const std::string plain =
      cdl::text("(long)(", column, ") * ", strides[0], " + (", block, ") * ", strides[1]);
  const std::string packed = cdl::text("((long)(", column, ") / 16 * ", s_.blocks, " + (", block,
                                       ")) * 16 + (", column, ") % 16");
  return numberAt(operand.view->elem, operand.pointer, operand.isPacked ? packed : plain);
}

std::string ScaledOperands::bitsOf(const std::string& column, const std::string& block,
                                   const std::string& element) const {
  const int64_t per = s_.perByte();
  if (s_.isPacked)
    return cdl::text(w_, "[(long)(", column, ") / 16 * ", s_.panelBytes(), " + ((", block, ") * ",
                     s_.vectors(), " + (", element, ") / ", per, ") * 16 + (", column,
                     ") % 16] >> (", element, ") % ", per, " * ", s_.bits());
  const int64_t* strides = s_.w->strides;
  const int64_t first = per > 1 ? s_.w->offset : 0; // pointers to bytes include it
  const std::string at = cdl::text("(", first, "L + (", column, ") * ", strides[0], "L + (", block,
                                   ") * ", strides[1], " + (", element, ") * ", strides[2], ")");
  return cdl::text(w_, "[", at, " / ", per, "] >> ", at, " % ", per, " * ", s_.bits());
}

std::string ScaledOperands::weight(const std::string& column, const std::string& block,
                                   const std::string& element) const {
  std::string number = bitsOf(column, block, element);
  if (s_.bits() < 8) number = cdl::text("((", number, ") & ", (1 << s_.bits()) - 1, ")");
  if (s_.excess())
    number = cdl::text("((", number, s_.isPacked ? "" : " ^ 8", ") - ", s_.excess(), ")");
  const std::string zero = hasZero() ? ofColumn(zero_, column, block) : "";
  return cdl::text("((float)(", number, ")", less(zero), ")");
}

std::string ScaledOperands::weights(const std::string& bytes, int lanes, int64_t at) const {
  std::string number = bytes;
  if (s_.bits() < 8) {
    number = at == 0 ? number : cdl::text("(", number, " >> (uchar)", at * s_.bits(), ")");
    number = cdl::text("(", number, " & (uchar)", (1 << s_.bits()) - 1, ")");
  }
  if (s_.excess()) number = cdl::text("(", number, " - (uchar)", s_.excess(), ")");
  if (s_.isSigned()) number = cdl::text("as_char", lanes, "(", number, ")");
  return cdl::text("convert_float", lanes, "(", number, ")");
}

std::string ScaledOperands::step(const std::string& row, const std::string& block) const {
  return cdl::text(steps_, "[(long)(", row, ") * ", s_.blocks, " + (", block, ")]");
}

std::string ScaledOperands::total(const std::string& row, const std::string& block) const {
  return cdl::text(totals_, "[(long)(", row, ") * ", s_.blocks, " + (", block, ")]");
}

namespace {

/// The bits of an element that lies so far from the first one.
uint32_t bitsAt(const cdl::Operand& operand, int64_t element) {
  const int64_t width = cdl_elem_bits(operand.elem);
  const int64_t bit = element * width;
  const auto* bytes = static_cast<const unsigned char*>(operand.data) + (bit >> 3);
  if (width < 8) return bytes[0] >> (bit & 7) & ((1u << width) - 1);
  uint32_t value = 0;
  std::memcpy(&value, bytes, static_cast<size_t>(width / 8));
  return value;
}

/// The panel of weights of some columns from `first` on.
void packWeights(const cdl::Operand& w, int64_t first, std::vector<unsigned char>& panel) {
  const int64_t width = cdl_elem_bits(w.elem);
  const int64_t per = 8 / width;
  const int64_t vectors = (w.dims[2] + per - 1) / per;
  const uint32_t flip = w.elem == CDL_I4 ? 8 : 0; // of signed weights to unsigned ones
  panel.assign(static_cast<size_t>(w.dims[1] * vectors * kLanes), 0);
  for (int64_t e = 0; e < std::min<int64_t>(kLanes, w.dims[0] - first); ++e)
    for (int64_t g = 0; g < w.dims[1]; ++g) {
      const int64_t from = (first + e) * w.strides[0] + g * w.strides[1];
      unsigned char* to = &panel[static_cast<size_t>(g * vectors * kLanes + e)];
      for (int64_t s = 0; s < w.dims[2]; ++s) {
        const uint32_t bits = bitsAt(w, from + s * w.strides[2]) ^ flip;
        to[s / per * kLanes] |= static_cast<unsigned char>(bits << (s % per * width));
      }
    }
}

/// Of numbers that belong to blocks.
void packPerBlock(const cdl::Operand& x, int64_t first, std::vector<unsigned char>& panel) {
  const auto bytes = static_cast<int64_t>(cdl_elem_bits(x.elem) / 8);
  panel.assign(static_cast<size_t>(x.dims[1] * kLanes * bytes), 0);
  for (int64_t e = 0; e < std::min<int64_t>(kLanes, x.dims[0] - first); ++e)
    for (int64_t g = 0; g < x.dims[1]; ++g) {
      const uint32_t bits = bitsAt(x, (first + e) * x.strides[0] + g * x.strides[1]);
      std::memcpy(&panel[static_cast<size_t>((g * kLanes + e) * bytes)], &bits,
                  static_cast<size_t>(bytes));
    }
}

} // namespace

cdl::Status packPanels(const std::string& layout, const cdl::Operand& constant,
                       const cdl::Writer& to) {
  const bool hasWeights = layout == kWeightPanels;
  if (!hasWeights && layout != kBlockPanels) return cdl::unsupported("no layout '" + layout + "'");
  std::vector<unsigned char> panel;
  for (int64_t first = 0; first < constant.dims[0]; first += kLanes) {
    if (hasWeights)
      packWeights(constant, first, panel);
    else
      packPerBlock(constant, first, panel);
    if (cdl::Status status = to.write(panel.data(), panel.size()); !status.isOk()) return status;
  }
  return cdl::ok();
}

} // namespace program
