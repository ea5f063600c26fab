#include "panel_sums.hpp"

namespace program {

int64_t pointsFor(int64_t columns, int64_t most) {
  int64_t best = 1;
  int64_t least = INT64_MAX;
  for (int64_t points = 1; points <= std::min(most, columns); ++points) {
    // A step costs the read of its weights beside the products.
    const int64_t cost = (columns + points - 1) / points * (points + 1);
    if (cost > least) continue;
    least = cost;
    best = points;
  }
  return best;
}

PanelSums::PanelSums(const Instruction& instr, const Sums& sums, int64_t points)
    : s_(sums), points_(points), tiles_((sums.columns + points - 1) / points) {
  writePlace();
  writeOperands();
  end_.emplace(instr, sums, w_);
}

/// The place of the work-item in the grid. Neighbours share weights.
void PanelSums::writePlace() {
  const int64_t area = tiles_ * s_.rows;
  const int64_t panels = s_.panels();
  w_.line("const long id = get_global_id(0);");
  w_.line("const int col = id % ", tiles_, " * ", points_, ";");
  w_.line("const long row = id / ", tiles_, " % ", s_.rows, ", panel = id / ", area, " % ", panels,
          ";");
  w_.line("const long g = id / ", area * panels, " % ", s_.groups, ", n = id / ",
          area * panels * s_.groups, ";");
  if (s_.hasTail())
    w_.line("const int live = min(", kLanes, ", ", s_.outs, " - (int)panel * ", kLanes, ");");
}

void PanelSums::writeOperands() {
  a_ = s_.hasScratch ? w_.scratch(0) : w_.pointer(*s_.a);
  w_.line("global const ", memoryType(s_.a->elem), "* a = ", a_, " + ", s_.aOffset, " + ",
          placeOf(s_.aSteps), ";");
  if (!s_.b) return;
  const std::string b = w_.pointer(*s_.b);
  w_.line("global const ", memoryType(s_.b->elem), "* b = ", b, " + ", placeOf(s_.bSteps), ";");
  if (!s_.isInteger()) return;
  if (s_.aZero) w_.line("const float aZero = *", w_.pointer(*s_.aZero), ";");
  if (s_.bZero) writeZeroPoints(w_.pointer(*s_.bZero));
}

/// The zero points of the weights of 16 lanes.
void PanelSums::writeZeroPoints(const std::string& zeros) {
  const cdl_view_t& view = *s_.bZero;
  const int64_t stride = elementsOf(view) > 1 ? view.strides[0] : 0;
  w_.line("float z[16];");
  w_.line("for (int e = 0; e < 16; ++e) z[e] = ", zeros, "[(g * ", s_.outs, " + min((int)panel * ",
          kLanes, " + e, ", s_.outs - 1, ")) * ", stride, "];");
  w_.line("const float16 bZero = vload16(0, z);");
}

KernelText PanelSums::finishFloats() {
  std::string all;
  for (int64_t p = 0; p < points_; ++p) all += cdl::text(p ? ", f" : "f", p);
  w_.line("const float16 sums[] = {", all, "};");
  return finish("sums");
}

std::string PanelSums::columnOf(int64_t p) const {
  if (s_.columns % points_ == 0) return cdl::text(p);
  return cdl::text("min(", p, ", ", s_.columns - 1, " - col)");
}

KernelText PanelSums::finish(const std::string& sums) {
  w_.line("for (int p = 0; p < ", points_, "; ++p) {");
  if (s_.columns % points_) w_.line("if (col + p >= ", s_.columns, ") break;");
  if (s_.hasTail()) w_.line("if (live == 16) {");
  end_->write(kLanes, "", "p", sums + "[p]");
  if (s_.hasTail()) {
    w_.line("} else {");
    w_.line(valueType(s_.sumElem(), 1), " lanes[16];");
    w_.line("vstore16(", sums, "[p], 0, lanes);");
    w_.line("for (int e = 0; e < live; ++e) {");
    end_->write(1, "e", "p", "lanes[e]");
    w_.line("} }");
  }
  w_.line("}");
  return w_.finish(s_.batch * s_.groups * s_.panels() * s_.rows * tiles_);
}

} // namespace program
