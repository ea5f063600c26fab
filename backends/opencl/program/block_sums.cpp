// Products of matrices on a CPU whose right side nobody has packed: where it is computed, as in
// attention, or comes from outside.
//
// A work-item copies a block of 256 rows of its 16 columns to memory of its own, in the order in
// which they are read, and then walks its results with it, six at a time: the packing of Goto and
// van de Geijn (see row_sums.cpp). Rows a power of two apart, which fall into few sets of a cache,
// and columns that do not lie side by side are paid for once in a block, not at each result.
#include "panel_sums.hpp"

namespace program {

namespace {

constexpr int64_t kDepth = kExact; // rows of a block: with its 16 columns 16 KB
constexpr int64_t kMostTiles = 8;  // of results of a work-item

class BlockSumsWriter : PanelSums {
public:
  BlockSumsWriter(const Instruction& instr, const Sums& sums, const Profile& profile)
      : PanelSums(instr, sums, resultsFor(sums, profile)), axis_(sums.channels.back()),
        tile_(std::min(profile.points, sums.columns)), unroll_(profile.unroll) {}

  KernelText write() {
    const std::string zero = cdl::text("(", valueType(s_.sumElem(), kLanes), ")(0)");
    w_.line("float block[", std::min(kDepth, axis_.count) * kLanes, "];");
    w_.line(valueType(s_.sumElem(), kLanes), " sums[", points_, "];");
    w_.line("for (int p = 0; p < ", points_, "; ++p) sums[p] = ", zero, ";");
    w_.line("for (int from = 0; from < ", axis_.count, "; from += ", kDepth, ") {");
    w_.line("const int count = min(", kDepth, ", ", axis_.count, " - from);");
    copyBlock();
    w_.line("for (int first = 0; first < ", points_, "; first += ", tile_, ") {");
    if (s_.columns % points_ != 0) w_.line("if (col + first >= ", s_.columns, ") break;");
    sumTile();
    w_.line("} }");
    return finish("sums");
  }

private:
  /// A multiple of the tile; work-items get about as many each.
  static int64_t resultsFor(const Sums& sums, const Profile& profile) {
    const int64_t tile = std::min(profile.points, sums.columns);
    const int64_t items = (sums.columns + tile * kMostTiles - 1) / (tile * kMostTiles);
    const int64_t results = (sums.columns + items - 1) / items;
    return (results + tile - 1) / tile * tile;
  }

  void copyBlock() {
    const std::string type = memoryType(s_.b->elem);
    w_.line("global const ", type, "* bt = b + (long)from * ", axis_.b, ";");
    if (s_.bSteps.lane == 1 && !s_.hasTail()) {
      w_.line("for (int k = 0; k < count; ++k) vstore16(convert_float16(vload16(0, bt + (long)k * ",
              axis_.b, "))", s_.bZero ? " - bZero" : "", ", 0, block + k * 16);");
      return;
    }
    // Lanes beyond the last one are that one again.
    w_.line("_Pragma(\"nounroll\")");
    w_.line("for (int e = 0; e < 16; ++e) {");
    w_.line("global const ", type, "* be = bt + (long)", s_.hasTail() ? "min(e, live - 1)" : "e",
            " * ", s_.bSteps.lane, ";");
    w_.line("_Pragma(\"nounroll\")");
    w_.line("for (int k = 0; k < count; ++k) block[k * 16 + e] = (float)be[(long)k * ", axis_.b,
            "]", s_.bZero ? " - z[e]" : "", ";");
    w_.line("}");
  }

  /// Adds what the block brings to some neighbouring results. Beyond the last one it is that again.
  void sumTile() {
    const int64_t depth = std::min(kDepth, axis_.count);
    for (int64_t p = 0; p < tile_; ++p) {
      w_.line("float16 f", p, " = ", s_.isInteger() ? "0.0f" : cdl::text("sums[first + ", p, "]"),
              ";");
      w_.line("global const ", memoryType(s_.a->elem), "* a", p, " = a + (long)min(first + ", p,
              ", ", s_.columns - 1, " - col) * ", s_.aSteps.column, " + (long)from * ", axis_.a,
              ";");
      if (!s_.isInteger()) continue;
      w_.line("float n", p, "[", depth, "];");
      w_.line("for (int k = 0; k < count; ++k) n", p, "[k] = (float)a", p, "[(long)k * ", axis_.a,
              "]", s_.aZero ? " - aZero" : "", ";");
    }
    w_.line("_Pragma(\"unroll ", unroll_, "\")");
    w_.line("for (int k = 0; k < count; ++k) {");
    w_.line("const float16 wv = vload16(0, block + k * 16);");
    for (int64_t p = 0; p < tile_; ++p) {
      const std::string number = s_.isInteger() ? cdl::text("n", p, "[k]")
                                                : cdl::text("a", p, "[(long)k * ", axis_.a, "]");
      w_.line("f", p, " = fma((float16)(", number, "), wv, f", p, ");");
    }
    w_.line("}");
    for (int64_t p = 0; p < tile_; ++p)
      w_.line("sums[first + ", p, "] ",
              s_.isInteger() ? cdl::text("+= convert_int16(f", p, ")") : cdl::text("= f", p), ";");
  }

  const Axis axis_;
  const int64_t tile_, unroll_;
};

} // namespace

KernelText writeBlockSums(const Instruction& instr, const Sums& sums, const Profile& profile) {
  return BlockSumsWriter(instr, sums, profile).write();
}

} // namespace program
