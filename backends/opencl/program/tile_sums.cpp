// Sums of products on a GPU: a matrix product whose left side may be the windows of an image, which
// nobody writes out.
//
// A group of work-items computes a square of results. It walks the axis of the sum in parts: all of
// its work-items copy a part of both operands to local memory, side by side, and then each adds
// what belongs to its own small square of results, which stays in registers: Volkov and Demmel,
// "Benchmarking GPUs to tune dense linear algebra" (SC 2008). That the windows are found by
// arithmetic while they are copied is the implicit product of Chetlur et al., "cuDNN: Efficient
// primitives for deep learning" (arXiv:1410.0759).
#include "sums.hpp"

namespace program {

namespace {

class TileSumsWriter {
public:
  TileSumsWriter(const Instruction& instr, const Sums& sums, const Profile& profile)
      : s_(sums), depth_(profile.tileDepth), side_(profile.tileResults), items_(profile.groupItems),
        itemsOfSide_(sideOf(profile.groupItems)), each_(side_ / itemsOfSide_),
        results_(sums.rows * sums.columns), resultTiles_((results_ + side_ - 1) / side_),
        outTiles_((sums.outs + side_ - 1) / side_), steps_(stepsOf(sums)) {
    a_ = w_.pointer(*s_.a);
    b_ = w_.pointer(*s_.b);
    end_.emplace(instr, sums, w_);
  }

  KernelText write() {
    writePlace();
    const char* number = s_.isInteger() ? "short" : "float";
    // A column more, so that a column's numbers lie in different banks.
    w_.line("local ", number, " aTile[", depth_, "][", side_ + 1, "], bTile[", depth_, "][",
            side_ + 1, "];");
    w_.line(sumType(), " sum[", each_, "][", each_, "];");
    w_.line("for (int i = 0; i < ", each_, "; ++i) for (int j = 0; j < ", each_,
            "; ++j) sum[i][j] = 0;");
    w_.line("for (int from = 0; from < ", steps_, "; from += ", depth_, ") {");
    copyLeft();
    copyRight();
    w_.line("barrier(CLK_LOCAL_MEM_FENCE);");
    addPart();
    w_.line("barrier(CLK_LOCAL_MEM_FENCE);");
    w_.line("}");
    finish();
    return w_.finish(s_.batch * s_.groups * resultTiles_ * outTiles_, items_);
  }

private:
  static int64_t sideOf(int64_t items) {
    int64_t side = 1;
    while ((side + 1) * (side + 1) <= items) ++side;
    return side;
  }
  static int64_t stepsOf(const Sums& sums) {
    int64_t steps = sums.down.count * sums.across.count;
    for (const Axis& axis : sums.channels) steps *= axis.count;
    return steps;
  }
  const char* sumType() const { return s_.isInteger() ? "int" : "float"; }

  void writePlace() {
    const int64_t tiles = resultTiles_ * outTiles_;
    w_.line("const int item = get_local_id(0), mine = item % ", itemsOfSide_, ", other = item / ",
            itemsOfSide_, ";");
    w_.line("const long group = get_group_id(0);");
    w_.line("const int firstResult = group % ", resultTiles_, " * ", side_, ", firstOut = group / ",
            resultTiles_, " % ", outTiles_, " * ", side_, ";");
    w_.line("const long g = group / ", tiles, " % ", s_.groups, ", n = group / ", tiles * s_.groups,
            ";");
    if (s_.aZero) w_.line("const int aZero = *", w_.pointer(*s_.aZero), ";");
    if (s_.bZero) bZeros_ = w_.pointer(*s_.bZero);
  }

  /// Where step `k` of the sum lies in an operand: adds to `at`, and names kh and kw, its tap.
  void writeStep(int64_t Axis::* stride) {
    w_.line("int rest = k;");
    w_.line("long at = 0;");
    const auto take = [&](const Axis& axis, const std::string& name) {
      w_.line("const int ", name, " = rest % ", axis.count, ";");
      w_.line("rest /= ", axis.count, ";");
      w_.line("at += (long)", name, " * ", axis.*stride, ";");
    };
    take(s_.channels.back(), "inner");
    take(s_.across, "kw");
    take(s_.down, "kh");
    for (size_t c = s_.channels.size() - 1; c-- > 0;) take(s_.channels[c], cdl::text("k", c));
  }

  /// A loop in which the work-items copy one tile together. What lies side by side in memory is
  /// copied by neighbours.
  void eachOfTile(bool alongSteps) {
    w_.line("for (int e = item; e < ", side_ * depth_, "; e += ", items_, ") {");
    if (alongSteps)
      w_.line("const int t = e % ", depth_, ", i = e / ", depth_, ", k = from + t;");
    else
      w_.line("const int i = e % ", side_, ", t = e / ", side_, ", k = from + t;");
  }

  void copyLeft() {
    eachOfTile(s_.channels.back().a == 1 && s_.aSteps.column != 1);
    w_.line("const int result = firstResult + i;");
    w_.line(s_.isInteger() ? "short" : "float", " value = 0;");
    w_.line("if (result < ", results_, " && k < ", steps_, ") {");
    w_.line("const long row = result / ", s_.columns, ", col = result % ", s_.columns,
            ", panel = 0;");
    writeStep(&Axis::a);
    std::string inside = "1";
    for (size_t d = 0; d < 2; ++d) {
      const Edge& edge = s_.edges[d];
      if (!edge.isNeeded(d ? s_.columns : s_.rows)) continue;
      const char* name = d ? "iw" : "ih";
      w_.line("const int ", name, " = (int)", d ? "col" : "row", " * ", edge.stride, " + ",
              d ? "kw" : "kh", " * ", edge.dilation, " - ", edge.pad, ";");
      inside += cdl::text(" && ", name, " >= 0 && ", name, " < ", edge.extent);
    }
    w_.line("if (", inside, ") value = (", a_, " + ", s_.aOffset, " + at + ", placeOf(s_.aSteps),
            ")[0]", s_.aZero ? " - aZero" : "", ";");
    w_.line("}");
    w_.line("aTile[t][i] = value;");
    w_.line("}");
  }

  void copyRight() {
    eachOfTile(s_.channels.back().b == 1 && s_.bSteps.lane != 1);
    w_.line("const int out = firstOut + i;");
    w_.line(s_.isInteger() ? "short" : "float", " value = 0;");
    w_.line("if (out < ", s_.outs, " && k < ", steps_, ") {");
    w_.line("const long row = 0, col = 0, panel = out / ", kLanes, ";");
    writeStep(&Axis::b);
    w_.line("value = (", b_, " + at + ", placeOf(s_.bSteps), ")[out % ", kLanes, " * ",
            s_.bSteps.lane, "]", s_.bZero ? zeroPoint() : "", ";");
    w_.line("}");
    w_.line("bTile[t][i] = value;");
    w_.line("}");
  }

  std::string zeroPoint() const {
    const int64_t stride = elementsOf(*s_.bZero) > 1 ? s_.bZero->strides[0] : 0;
    return cdl::text(" - ", bZeros_, "[(g * ", s_.outs, " + out) * ", stride, "]");
  }

  /// Adds the part of the sum that lies in local memory.
  void addPart() {
    w_.line("for (int t = 0; t < ", depth_, "; ++t) {");
    w_.line(sumType(), " x[", each_, "], y[", each_, "];");
    for (int64_t i = 0; i < each_; ++i) {
      w_.line("x[", i, "] = aTile[t][mine + ", i * itemsOfSide_, "];");
      w_.line("y[", i, "] = bTile[t][other + ", i * itemsOfSide_, "];");
    }
    for (int64_t i = 0; i < each_; ++i)
      for (int64_t j = 0; j < each_; ++j) {
        const std::string sum = cdl::text("sum[", i, "][", j, "]");
        if (s_.isInteger())
          w_.line(sum, " += x[", i, "] * y[", j, "];");
        else
          w_.line(sum, " = fma(x[", i, "], y[", j, "], ", sum, ");");
      }
    w_.line("}");
  }

  void finish() {
    w_.line("for (int i = 0; i < ", each_, "; ++i) for (int j = 0; j < ", each_, "; ++j) {");
    w_.line("const int result = firstResult + mine + i * ", itemsOfSide_,
            ", out = firstOut + other + j * ", itemsOfSide_, ";");
    w_.line("if (result >= ", results_, " || out >= ", s_.outs, ") continue;");
    w_.line("const long row = result / ", s_.columns, ", col = result % ", s_.columns,
            ", panel = out / ", kLanes, ";");
    w_.line("const int lane = out % ", kLanes, ";");
    end_->write(1, "lane", "", "sum[i][j]");
    w_.line("}");
  }

  const Sums& s_;
  const int64_t depth_, side_, items_, itemsOfSide_;
  const int64_t each_;    // results a side of a work-item's square, itemsOfSide_ apart
  const int64_t results_; // of an image: rows * columns
  const int64_t resultTiles_, outTiles_;
  const int64_t steps_; // of a sum
  std::string a_, b_, bZeros_;
  Writer w_;
  std::optional<SumsEnd> end_;
};

} // namespace

KernelText writeTileSums(const Instruction& instr, const Sums& sums, const Profile& profile) {
  return TileSumsWriter(instr, sums, profile).write();
}

} // namespace program
