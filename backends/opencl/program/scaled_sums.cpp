// Which products with scales there are kernels for, and the kernel that writes out a.
#include "scaled_sums.hpp"

namespace program {

namespace {

/// A view [rows, columns] in the grid of the results.
Steps stepsOfMatrix(const cdl_view_t& view) {
  return {0, 0, kLanes * view.strides[1], view.strides[1], 0, view.strides[0]};
}

bool isMoved(const cdl_view_t& view) {
  for (const int64_t stride : view.iv_strides)
    if (stride) return true;
  return false;
}

bool describeScaled(const Instruction& instr, const Profile& profile, ScaledSums& s) {
  if (instr.operands() > 4 || !canCompute(instr.steps())) return false;
  s.grid.a = &instr.input(0);
  s.grid.y = &instr.y();
  s.w = &instr.input(1);
  s.scale = &instr.input(2);
  if (instr.operands() > 3) s.zero = &instr.input(3);
  s.isDynamic = instr->fn == CDL_SCALED_MATMUL_DYNAMIC;
  s.isPacked = cdl_get_layout(instr.image(), s.w->layout)->opaque != 0;
  s.rows = s.grid.a->dims[0];
  s.depth = s.grid.a->dims[1];
  s.outs = s.w->dims[0];
  s.blocks = s.w->dims[1];
  s.block = s.w->dims[2];
  // A loop could move to a weight that begins within a byte.
  if (s.bits() < 8 && isMoved(*s.w)) return false;
  // Of many rows the products take most of the time, and those of floats take less.
  s.hasShorts =
      s.isDynamic && s.isPacked && s.bits() == 4 && !profile.isGpu() && s.rows <= profile.points;
  Sums& grid = s.grid;
  grid.columns = s.rows;
  grid.outs = s.outs;
  grid.hasScratch = s.isDynamic || s.held() != s.depth || grid.a->strides[1] != 1;
  grid.aSteps.column = grid.hasScratch ? s.blocks * s.written() : grid.a->strides[0];
  grid.ySteps = stepsOfMatrix(*grid.y);
  grid.views.resize(instr->inputs);
  for (uint32_t i = instr.operands(); i < instr->inputs; ++i)
    grid.views[i] = stepsOfMatrix(instr.input(i));
  return true;
}

/// Writes a in whole blocks, zeros behind its last element. Where it is rounded, the steps of all
/// blocks follow the numbers; cdl_dynamic_step and cdl_dynamic_i8 in numerics.h say how.
class BlocksWriter {
public:
  explicit BlocksWriter(const ScaledSums& sums) : s_(sums), stride_(sums.grid.a->strides[1]) {}

  KernelText write() {
    const cdl_view_t& a = *s_.grid.a;
    w_.beginItems(s_.rows * s_.blocks);
    w_.line("const long row = id / ", s_.blocks, ", first = id % ", s_.blocks, " * ", s_.block,
            ";");
    w_.line("const int count = min(", s_.block, "L, ", s_.depth, " - first);");
    w_.line("global const float* from = ", w_.pointer(a), " + row * ", a.strides[0], " + first * ",
            stride_, ";");
    w_.line("global float* to = ", w_.scratch(0), " + id * ", s_.written(), ";");
    if (s_.isDynamic) writeStep();
    if (s_.hasShorts)
      writeShorts();
    else
      writeFloats();
    return w_.finishItems(s_.rows * s_.blocks);
  }

private:
  void writeFloats() {
    eachNumber([&](int lanes) {
      const std::string zero = cdl::text("(", valueType(CDL_F32, lanes), ")(0.0f)");
      const std::string x = s_.isDynamic ? "(isUsed ? rint(x * perStep) : " + zero + ")" : "x";
      w_.store(CDL_F32, lanes, "to + s", 1, x);
    });
    w_.line("for (; s < ", s_.block, "; ++s) to[s] = 0.0f;");
  }

  /// Of two neighbours the first, and the second less 16 times the first: what scaled_shorts.cpp
  /// multiplies by. Each stands in both halves of a word.
  void writeShorts() {
    w_.line("global int* words = (global int*)to;");
    w_.line("int16 totals = 0;");
    w_.line("int before = 0, total = 0, s = 0;");
    if (stride_ == 1) {
      w_.line("for (; s + 16 <= count; s += 16) {");
      w_.line("const float16 x = vload16(0, from + s);");
      w_.line("const int16 v = convert_int16(isUsed ? rint(x * perStep) : (float16)(0.0f));");
      w_.line("int16 word = v;");
      w_.line("word.odd -= 16 * v.even;");
      w_.line("vstore16(word & 0xffff | word << 16, 0, words + s);");
      w_.line("totals += v;");
      w_.line("}");
    }
    w_.line("for (; s < ", s_.written(), "; ++s) {");
    w_.line("const float x = s < count ? from[(long)s * ", stride_, "] : 0.0f;");
    w_.line("const int v = isUsed ? (int)rint(x * perStep) : 0;");
    w_.line("const int word = s % 2 ? v - 16 * before : v;");
    w_.line("words[s] = word & 0xffff | word << 16;");
    w_.line("before = v;");
    w_.line("total += v;");
    w_.line("}");
    w_.line("int each[16];");
    w_.line("vstore16(totals, 0, each);");
    w_.line("for (int e = 0; e < 16; ++e) total += each[e];");
    w_.line(w_.scratch(s_.totalsAt()), "[id] = (float)total;");
  }

  /// Goes over the block by vectors, and then one by one; x is what there is at s.
  template <class Body> void eachNumber(const Body& body) {
    w_.line("int s = 0;");
    if (stride_ == 1) {
      w_.line("for (; s + 16 <= count; s += 16) {");
      w_.line("const float16 x = vload16(0, from + s);");
      body(kLanes);
      w_.line("}");
    }
    w_.line("for (; s < count; ++s) {");
    w_.line("const float x = from[(long)s * ", stride_, "];");
    body(1);
    w_.line("}");
  }

  /// The largest magnitude, what it is divided into, and whether any number counts.
  void writeStep() {
    w_.line("float largest = 0.0f;");
    w_.line("{");
    w_.line("float16 most = 0.0f;");
    eachNumber([&](int lanes) {
      const std::string to = lanes == 1 ? "largest" : "most";
      w_.line("const ", valueType(CDL_F32, lanes), " size = fabs(x);");
      w_.line(to, " = LARGER(", to, ", size);");
    });
    w_.line("float parts[16];");
    w_.line("vstore16(most, 0, parts);");
    w_.line("for (int e = 0; e < 16; ++e) {");
    w_.line("const float part = parts[e];");
    w_.line("largest = LARGER(largest, part);");
    w_.line("} }");
    w_.line("const int isUsed = largest >= 0x1p-100f && largest <= FLT_MAX;");
    w_.line("const float perStep = isUsed ? quotient(127.0f, largest) : 0.0f;");
    w_.line("float step = isUsed ? quotient(largest, 127.0f) : NAN;");
    w_.line("if (largest < 0x1p-100f) step = 0.0f;");
    w_.line(w_.scratch(s_.stepsAt()), "[id] = step;");
  }

  const ScaledSums& s_;
  const int64_t stride_;
  Writer w_;
};

} // namespace

void writeScaledSums(const Instruction& instr, const Profile& profile,
                     std::vector<KernelText>& texts, uint64_t& scratchBytes) {
  ScaledSums sums;
  if (elementsOf(instr.y()) == 0 || !describeScaled(instr, profile, sums)) return;
  if (sums.grid.hasScratch) {
    texts.push_back(BlocksWriter(sums).write());
    scratchBytes = static_cast<uint64_t>(sums.scratchBytes());
  }
  if (profile.isGpu())
    texts.push_back(writeScaledTiles(instr, sums, profile));
  else if (sums.hasShorts)
    texts.push_back(writeScaledShorts(instr, sums, profile));
  else
    texts.push_back(writeScaledPanels(instr, sums, profile));
}

} // namespace program
