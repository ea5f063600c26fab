// Products with scales on a GPU.
//
// Many rows: the squares of results of tile_sums.cpp. While a group copies a part of the weights to
// local memory it makes them floats.
//
// A few rows: a group of work-items has one row and a panel of 16 columns. They share the bytes of
// some blocks, four neighbours each 16 that lie side by side, and leave their sums in local memory;
// then each of the 16 columns adds its blocks in order.
#include "scaled_sums.hpp"

namespace program {

namespace {

constexpr int64_t kFewRows = 8;

/// The square root of a square, or of the next smaller one.
int64_t rootOf(int64_t square) {
  int64_t root = 1;
  while ((root + 1) * (root + 1) <= square) ++root;
  return root;
}

class ScaledTilesWriter {
public:
  ScaledTilesWriter(const Instruction& instr, const ScaledSums& sums, const Profile& profile)
      : s_(sums), depth_(std::min(profile.tileDepth, sums.block)), side_(profile.tileResults),
        items_(profile.groupItems), itemsOfSide_(rootOf(profile.groupItems)),
        each_(side_ / itemsOfSide_), rowTiles_((sums.rows + side_ - 1) / side_),
        outTiles_((sums.outs + side_ - 1) / side_), operands_(instr, sums, w_) {
    a_ = sums.grid.hasScratch ? w_.scratch(0) : w_.pointer(*sums.grid.a);
    end_.emplace(instr, sums.grid, w_);
  }

  KernelText write() {
    begin();
    w_.line("for (int block = 0; block < ", s_.blocks, "; ++block) {");
    if (s_.isDynamic) eachResult("part[i][j] = 0.0f;");
    w_.line("for (int from = 0; from < ", s_.block, "; from += ", depth_, ") {");
    copyRows();
    copyWeights();
    w_.line("barrier(CLK_LOCAL_MEM_FENCE);");
    addPart();
    w_.line("barrier(CLK_LOCAL_MEM_FENCE);");
    w_.line("}");
    if (s_.isDynamic) addBlock();
    w_.line("}");
    finish();
    return w_.finish(rowTiles_ * outTiles_, items_);
  }

private:
  void begin() {
    w_.line("const int item = get_local_id(0), mine = item % ", itemsOfSide_, ", other = item / ",
            itemsOfSide_, ";");
    w_.line("const int firstRow = get_group_id(0) % ", rowTiles_, " * ", side_,
            ", firstOut = get_group_id(0) / ", rowTiles_, " * ", side_, ";");
    // A column more, so that a column's numbers lie in different banks.
    w_.line("local float aTile[", depth_, "][", side_ + 1, "], wTile[", depth_, "][", side_ + 1,
            "];");
    w_.line("float sum[", each_, "][", each_, "];");
    if (s_.isDynamic) w_.line("float part[", each_, "][", each_, "];");
    eachResult("sum[i][j] = 0.0f;");
  }

  void eachResult(const std::string& does) {
    w_.line("for (int i = 0; i < ", each_, "; ++i) for (int j = 0; j < ", each_, "; ++j) ", does);
  }

  /// Elements side by side are copied by neighbours.
  void copyRows() {
    w_.line("for (int e = item; e < ", side_ * depth_, "; e += ", items_, ") {");
    w_.line("const int t = e % ", depth_, ", i = e / ", depth_, ", row = firstRow + i;");
    w_.line("float value = 0.0f;");
    w_.line("if (row < ", s_.rows, " && from + t < ", s_.block, ") value = ", a_, "[(long)row * ",
            s_.grid.aSteps.column, " + block * ", s_.block, " + from + t];");
    w_.line("aTile[t][i] = value;");
    w_.line("}");
  }

  /// Columns side by side are: that is how panels lie. Others are copied along the sum.
  void copyWeights() {
    w_.line("for (int e = item; e < ", side_ * depth_, "; e += ", items_, ") {");
    if (s_.isPacked)
      w_.line("const int i = e % ", side_, ", t = e / ", side_, ", out = firstOut + i;");
    else
      w_.line("const int t = e % ", depth_, ", i = e / ", depth_, ", out = firstOut + i;");
    const std::string scale = s_.isDynamic ? "" : " * " + operands_.scale("out", "block");
    w_.line("float value = 0.0f;");
    w_.line("if (out < ", s_.outs, " && from + t < ", s_.block,
            ") value = ", operands_.weight("out", "block", "(from + t)"), scale, ";");
    w_.line("wTile[t][i] = value;");
    w_.line("}");
  }

  void addPart() {
    const std::string to = s_.isDynamic ? "part" : "sum";
    w_.line("for (int t = 0; t < ", depth_, "; ++t) {");
    w_.line("float x[", each_, "], y[", each_, "];");
    w_.line("for (int i = 0; i < ", each_, "; ++i) x[i] = aTile[t][mine + i * ", itemsOfSide_,
            "];");
    w_.line("for (int j = 0; j < ", each_, "; ++j) y[j] = wTile[t][other + j * ", itemsOfSide_,
            "];");
    eachResult(cdl::text(to, "[i][j] = fma(x[i], y[j], ", to, "[i][j]);"));
    w_.line("}");
  }

  void addBlock() {
    w_.line("for (int i = 0; i < ", each_, "; ++i) for (int j = 0; j < ", each_, "; ++j) {");
    w_.line("const int row = min(firstRow + mine + i * ", itemsOfSide_, ", ", s_.rows - 1,
            "), out = min(firstOut + other + j * ", itemsOfSide_, ", ", s_.outs - 1, ");");
    w_.line("sum[i][j] = fma(part[i][j], ", operands_.step("row", "block"), " * (",
            operands_.scale("out", "block"), "), sum[i][j]);");
    w_.line("}");
  }

  void finish() {
    w_.line("for (int i = 0; i < ", each_, "; ++i) for (int j = 0; j < ", each_, "; ++j) {");
    w_.line("const int col = firstRow + mine + i * ", itemsOfSide_,
            ", out = firstOut + other + j * ", itemsOfSide_, ";");
    w_.line("if (col >= ", s_.rows, " || out >= ", s_.outs, ") continue;");
    w_.line("const long n = 0, g = 0, row = 0, panel = out / ", kLanes, ";");
    w_.line("const int lane = out % ", kLanes, ";");
    end_->write(1, "lane", "", "sum[i][j]");
    w_.line("}");
  }

  const ScaledSums& s_;
  const int64_t depth_, side_, items_, itemsOfSide_;
  const int64_t each_; // results a side of a work-item's square, itemsOfSide_ apart
  const int64_t rowTiles_, outTiles_;
  Writer w_;
  ScaledOperands operands_;
  std::string a_;
  std::optional<SumsEnd> end_;
};

class ScaledRowWriter {
public:
  ScaledRowWriter(const Instruction& instr, const ScaledSums& sums, const Profile& profile)
      : s_(sums), items_(profile.groupItems), together_(profile.groupItems / kItemsOfBlock),
        panels_((sums.outs + kLanes - 1) / kLanes), operands_(instr, sums, w_) {
    a_ = sums.grid.hasScratch ? w_.scratch(0) : w_.pointer(*sums.grid.a);
    end_.emplace(instr, sums.grid, w_);
  }

  KernelText write() {
    begin();
    w_.line("for (int from = 0; from < ", s_.blocks, "; from += ", together_, ") {");
    sumPart();
    w_.line("barrier(CLK_LOCAL_MEM_FENCE);");
    joinParts();
    w_.line("barrier(CLK_LOCAL_MEM_FENCE);");
    w_.line("if (item < 16) for (int i = 0; i < min(", together_, ", ", s_.blocks,
            " - from); ++i) total = fma(products[i][item], factors[i][item], total);");
    w_.line("}");
    w_.line("if (item >= 16 || panel * 16 + item >= ", s_.outs, ") return;");
    w_.line("const long n = 0, g = 0, row = 0;");
    end_->write(1, "item", "", "total");
    return w_.finish(panels_ * s_.rows, items_);
  }

private:
  static constexpr int64_t kItemsOfBlock = 16; // four for its columns, four for its elements

  void begin() {
    w_.line("const int item = get_local_id(0), four = item % 4, share = item / 4 % 4, mine = item "
            "/ ",
            kItemsOfBlock, ";");
    w_.line("const int col = get_group_id(0) / ", panels_, ";");
    w_.line("const long panel = get_group_id(0) % ", panels_, ";");
    w_.line("global const float* a = ", a_, " + (long)col * ", s_.grid.aSteps.column, ";");
    w_.line("local float parts[", together_, "][4][16], products[", together_, "][16], factors[",
            together_, "][16];");
    w_.line("float total = 0.0f;");
  }

  /// What an item has of its block: four columns, every fourth vector.
  void sumPart() {
    w_.line("const int block = min(from + mine, ", s_.blocks - 1, ");");
    if (operands_.hasZero()) {
      w_.line("float4 zero;");
      for (int64_t e = 0; e < 4; ++e)
        w_.line("zero.s", e, " = ", operands_.zero(columnOf(cdl::text("four * 4 + ", e)), "block"),
                ";");
    }
    w_.line("global const uchar* bytes = (global const uchar*)", operands_.bytes(), " + panel * ",
            s_.panelBytes(), " + block * ", s_.vectors() * kLanes, " + four * 4;");
    w_.line("float4 sum = 0.0f;");
    w_.line("for (int v = share; v < ", s_.vectors(), "; v += 4) {");
    w_.line("const uchar4 q = vload4(v * 4, bytes);");
    for (int64_t at = 0; at < s_.perByte(); ++at) {
      const std::string element = cdl::text("v * ", s_.perByte(), " + ", at);
      const std::string isThere =
          s_.block % s_.perByte() ? cdl::text("if (", element, " < ", s_.block, ") ") : "";
      w_.line(isThere, "sum = fma((float4)(a[block * ", s_.block, " + ", element, "]), ",
              operands_.weights("q", 4, at), operands_.less("zero"), ", sum);");
    }
    w_.line("}");
    w_.line("vstore4(sum, four, parts[mine][share]);");
  }

  /// The sums of whole blocks with what each is multiplied by.
  void joinParts() {
    const std::string step = s_.isDynamic ? " * " + operands_.step("col", "of") : "";
    w_.line("for (int e = item; e < ", together_ * kLanes, "; e += ", items_, ") {");
    w_.line("const int i = e / 16, lane = e % 16, of = min(from + i, ", s_.blocks - 1, ");");
    w_.line("products[i][lane] = (parts[i][0][lane] + parts[i][1][lane]) + (parts[i][2][lane] + "
            "parts[i][3][lane]);");
    w_.line("factors[i][lane] = ", operands_.scale(columnOf("lane"), "of"), step, ";");
    w_.line("}");
  }

  std::string columnOf(const std::string& lane) const {
    return cdl::text("min((int)panel * 16 + ", lane, ", ", s_.outs - 1, ")");
  }

  const ScaledSums& s_;
  const int64_t items_;
  const int64_t together_; // blocks that a group sums at once
  const int64_t panels_;
  Writer w_;
  ScaledOperands operands_;
  std::string a_;
  std::optional<SumsEnd> end_;
};

} // namespace

KernelText writeScaledTiles(const Instruction& instr, const ScaledSums& sums,
                            const Profile& profile) {
  if (sums.isPacked && sums.rows <= kFewRows) return ScaledRowWriter(instr, sums, profile).write();
  return ScaledTilesWriter(instr, sums, profile).write();
}

} // namespace program
