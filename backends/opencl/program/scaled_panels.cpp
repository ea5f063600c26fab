// Products with scales on a CPU: a work-item has a panel of 16 columns and some rows of a.
//
// A few rows, as a decoder has, do nothing but read the weights, which become floats in registers.
// Many rows would do so again and again: there a work-item decodes some blocks to memory of its own
// first, as block_sums.cpp packs a right side, and then walks all its rows with them.
#include "scaled_sums.hpp"

#include <numeric>

namespace program {

namespace {

class ScaledRowsWriter : PanelSums {
public:
  ScaledRowsWriter(const Instruction& instr, const ScaledSums& sums, const Profile& profile)
      : PanelSums(instr, sums.grid, pointsFor(sums.rows, profile.points)), sums_(sums),
        operands_(instr, sums, w_), chains_(std::max<int64_t>(1, 4 / points_)),
        unroll_(profile.unroll) {}

  KernelText write() {
    for (int64_t p = 0; p < points_; ++p) w_.line("float16 f", p, " = 0.0f;");
    w_.line("for (int block = 0; block < ", sums_.blocks, "; ++block) {");
    w_.line("const float16 scale = ", operands_.scales("block"), ";");
    if (operands_.hasZero()) w_.line("const float16 zero = ", operands_.zeros("block"), ";");
    w_.line("global const uchar* bytes = (global const uchar*)", operands_.bytes(), " + panel * ",
            sums_.panelBytes(), " + block * ", sums_.vectors() * kLanes, ";");
    for (int64_t p = 0; p < points_; ++p) beginPoint(p);
    sumBlock();
    for (int64_t p = 0; p < points_; ++p) addBlock(p);
    w_.line("}");
    return finishFloats();
  }

private:
  void beginPoint(int64_t p) {
    w_.line("global const float* a", p, " = a + (long)", columnOf(p), " * ", s_.aSteps.column,
            " + block * ", sums_.block, ";");
    for (int64_t c = 0; c < chains_; ++c) w_.line("float16 t", p, "c", c, " = 0.0f;");
  }

  void sumBlock() {
    const int64_t whole = sums_.block / sums_.perByte();
    const int64_t together = std::min(unroll_, std::max<int64_t>(1, whole));
    const int64_t rest = whole % together;
    w_.line("for (int v = 0; v < ", whole - rest, "; v += ", together, ") {");
    for (int64_t i = 0; i < together; ++i)
      addVector(cdl::text("(v + ", i, ")"), i, sums_.perByte());
    w_.line("}");
    for (int64_t i = whole - rest; i < whole; ++i) addVector(cdl::text(i), i, sums_.perByte());
    const int64_t last = sums_.block % sums_.perByte();
    if (last) addVector(cdl::text(whole), whole, last);
  }

  /// Adds `count` weights of each byte of a vector.
  void addVector(const std::string& vector, int64_t number, int64_t count) {
    const int64_t per = sums_.perByte();
    w_.line("{");
    w_.line("const uchar16 q = vload16(", vector, ", bytes);");
    for (int64_t at = 0; at < count; ++at) {
      const int64_t chain = (number * per + at) % chains_;
      w_.line("const float16 w", at, " = ", operands_.weights("q", kLanes, at),
              operands_.less("zero"), ";");
      for (int64_t p = 0; p < points_; ++p)
        w_.line("t", p, "c", chain, " = fma((float16)(a", p, "[", vector, " * ", per, " + ", at,
                "]), w", at, ", t", p, "c", chain, ");");
    }
    w_.line("}");
  }

  void addBlock(int64_t p) {
    std::string sum = cdl::text("t", p, "c0");
    for (int64_t c = 1; c < chains_; ++c) sum += cdl::text(" + t", p, "c", c);
    const std::string step = operands_.step("col + " + columnOf(p), "block");
    w_.line("f", p, " = fma(", sum, ", scale", sums_.isDynamic ? " * " + step : "", ", f", p, ");");
  }

  const ScaledSums& sums_;
  ScaledOperands operands_;
  const int64_t chains_; // in which the sum of a block goes, so that no addition waits for another
  const int64_t unroll_;
};

constexpr int64_t kDecoded = 256;    // elements of a column that a work-item decodes at once
constexpr int64_t kMostOfTiles = 24; // of rows of a work-item

class ScaledBlocksWriter : PanelSums {
public:
  ScaledBlocksWriter(const Instruction& instr, const ScaledSums& sums, const Profile& profile)
      : PanelSums(instr, sums.grid, rowsFor(sums.rows, profile)), sums_(sums),
        operands_(instr, sums, w_), tile_(std::min(profile.points, sums.rows)),
        unroll_(profile.unroll), part_(partOf(sums)),
        parts_(std::max<int64_t>(1, kDecoded / part_)), all_(sums.held() / part_) {}

  KernelText write() {
    // Vectors, so that none of them lies in two lines of the cache.
    w_.line("float16 decoded[", std::min(parts_, all_) * part_, "];");
    if (sums_.isDynamic) w_.line("float16 scales[", parts_, "];");
    w_.line("float16 sums[", points_, "];");
    w_.line("for (int p = 0; p < ", points_, "; ++p) sums[p] = 0.0f;");
    w_.line("for (int from = 0; from < ", all_, "; from += ", parts_, ") {");
    w_.line("const int count = min(", parts_, ", ", all_, " - from);");
    decode();
    w_.line("for (int first = 0; first < ", points_, "; first += ", tile_, ") {");
    if (s_.columns % points_ != 0) w_.line("if (col + first >= ", s_.columns, ") break;");
    sumTile();
    w_.line("} }");
    return finish("sums");
  }

private:
  /// A multiple of the tile; work-items get about as many each.
  static int64_t rowsFor(int64_t rows, const Profile& profile) {
    const int64_t tile = std::min(profile.points, rows);
    const int64_t items = (rows + tile * kMostOfTiles - 1) / (tile * kMostOfTiles);
    const int64_t each = (rows + items - 1) / items;
    return (each + tile - 1) / tile * tile;
  }
  /// What is decoded at once of a block: all of it, unless it is long and a power of two divides
  /// it.
  static int64_t partOf(const ScaledSums& sums) {
    const int64_t part = std::gcd(sums.block, kDecoded);
    return sums.block <= kDecoded || part < 32 ? sums.block : part;
  }

  /// Weights less their zero points; where a is not rounded, times their scales.
  void decode() {
    const int64_t inBlock = sums_.block / part_;
    w_.line("for (int i = 0; i < count; ++i) {");
    w_.line("const int part = from + i, block = part / ", inBlock, ";");
    w_.line("const float16 scale = ", operands_.scales("block"), ";");
    if (sums_.isDynamic) w_.line("scales[i] = scale;");
    w_.line("float16* to = decoded + i * ", part_, ";");
    if (sums_.isPacked)
      decodePanel();
    else
      decodePlain();
    w_.line("}");
  }

  void decodePanel() {
    const int64_t per = sums_.perByte();
    const int64_t inBlock = sums_.block / part_;
    if (operands_.hasZero()) w_.line("const float16 zero = ", operands_.zeros("block"), ";");
    w_.line("global const uchar* bytes = (global const uchar*)", operands_.bytes(), " + panel * ",
            sums_.panelBytes(), " + (block * ", sums_.vectors(), " + part % ", inBlock, " * ",
            part_ / per, ") * 16;");
    w_.line("for (int v = 0; v < ", part_ / per, "; ++v) {");
    w_.line("const uchar16 q = vload16(v, bytes);");
    for (int64_t at = 0; at < per; ++at) decodeVector("v", at);
    w_.line("}");
    if (part_ % per == 0) return;
    w_.line("const uchar16 q = vload16(", part_ / per, ", bytes);");
    for (int64_t at = 0; at < part_ % per; ++at) decodeVector(cdl::text(part_ / per), at);
  }

  void decodeVector(const std::string& vector, int64_t at) {
    const std::string scale = sums_.isDynamic ? "" : " * scale";
    w_.line("to[", vector, " * ", sums_.perByte(), " + ", at, "] = (",
            operands_.weights("q", kLanes, at), operands_.less("zero"), ")", scale, ";");
  }

  /// Weights that nobody has packed.
  void decodePlain() {
    const std::string column = cdl::text("min((int)panel * 16 + e, ", sums_.outs - 1, ")");
    const std::string element = cdl::text("(part % ", sums_.block / part_, " * ", part_, " + k)");
    w_.line("float each[16];");
    w_.line("vstore16(scale, 0, each);");
    w_.line("_Pragma(\"nounroll\")");
    w_.line("for (int e = 0; e < 16; ++e) {");
    w_.line("_Pragma(\"nounroll\")");
    w_.line("for (int k = 0; k < ", part_,
            "; ++k) ((float*)to)[k * 16 + e] = ", operands_.weight(column, "block", element),
            sums_.isDynamic ? "" : " * each[e]", ";");
    w_.line("}");
  }

  /// Adds what the decoded blocks bring to some neighbouring rows. Beyond the last one it is that
  /// again.
  void sumTile() {
    for (int64_t p = 0; p < tile_; ++p) {
      w_.line("const int row", p, " = min(first + ", p, ", ", s_.columns - 1, " - col);");
      w_.line("global const float* a", p, " = a + (long)row", p, " * ", s_.aSteps.column,
              " + (long)from * ", part_, ";");
    }
    if (sums_.isDynamic) {
      w_.line("for (int i = 0; i < count; ++i) {");
      sumElements("0.0f", cdl::text(part_), cdl::text("i * ", part_, " + "));
      for (int64_t p = 0; p < tile_; ++p)
        w_.line("sums[first + ", p, "] = fma(f", p, ", scales[i] * ",
                operands_.step(cdl::text("col + row", p), "from + i"), ", sums[first + ", p, "]);");
      w_.line("}");
      return;
    }
    sumElements("sums[first + ", cdl::text("count * ", part_), "");
    for (int64_t p = 0; p < tile_; ++p) w_.line("sums[first + ", p, "] = f", p, ";");
  }

  /// The sums f<p> of `count` elements, from `first` on; they begin with `begin`, or with that
  /// element of an array.
  void sumElements(const std::string& begin, const std::string& count, const std::string& first) {
    for (int64_t p = 0; p < tile_; ++p)
      w_.line("float16 f", p, " = ", begin, sums_.isDynamic ? "" : cdl::text(p, "]"), ";");
    w_.line("_Pragma(\"unroll ", unroll_, "\")");
    w_.line("for (int k = 0; k < ", count, "; ++k) {");
    w_.line("const float16 wv = decoded[", first, "k];");
    for (int64_t p = 0; p < tile_; ++p)
      w_.line("f", p, " = fma((float16)(a", p, "[", first, "k]), wv, f", p, ");");
    w_.line("}");
  }

  const ScaledSums& sums_;
  ScaledOperands operands_;
  const int64_t tile_, unroll_;
  const int64_t part_;  // elements of a block, or of a part of a long one
  const int64_t parts_; // that are decoded at once
  const int64_t all_;   // of a column
};

} // namespace

KernelText writeScaledPanels(const Instruction& instr, const ScaledSums& sums,
                             const Profile& profile) {
  if (sums.isPacked && sums.rows <= profile.points)
    return ScaledRowsWriter(instr, sums, profile).write();
  return ScaledBlocksWriter(instr, sums, profile).write();
}

} // namespace program
