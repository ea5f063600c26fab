// Products with scales on a CPU of rounded rows and weights of 4 bits: sums in 16 bits, of which a
// vector holds twice as many as of floats.
//
// A byte of a panel is x = w0 + 16 * w1, for two elements of the sum. What they bring is
//   a0 * w0 + a1 * w1 = a0 * x + (a1 - 16 * a0) * w1
// so that the byte need not be taken apart but for w1 = x >> 4. Products wrap at 16 bits, which
// does not matter: the sum of 16 elements, at most 16 * 15 * 127, is within them.
#include "scaled_sums.hpp"

namespace program {

namespace {

constexpr int64_t kVectorsOfSum = 8; // 16 elements

class ScaledShortsWriter : PanelSums {
public:
  ScaledShortsWriter(const Instruction& instr, const ScaledSums& sums, const Profile& profile)
      : PanelSums(instr, sums.grid, pointsFor(sums.rows, profile.points)), sums_(sums),
        operands_(instr, sums, w_) {}

  KernelText write() {
    for (int64_t p = 0; p < points_; ++p) w_.line("float16 f", p, " = 0.0f;");
    w_.line("for (int block = 0; block < ", sums_.blocks, "; ++block) {");
    w_.line("const float16 scale = ", operands_.scales("block"), ";");
    writeZero();
    w_.line("global const uchar* bytes = (global const uchar*)", operands_.bytes(), " + panel * ",
            sums_.panelBytes(), " + block * ", sums_.vectors() * kLanes, ";");
    for (int64_t p = 0; p < points_; ++p) {
      w_.line("global const int* a", p, " = (global const int*)a + (long)", columnOf(p), " * ",
              s_.aSteps.column, " + block * ", sums_.written(), ";");
      w_.line("int16 t", p, " = 0;");
    }
    sumBlock();
    for (int64_t p = 0; p < points_; ++p) addBlock(p);
    w_.line("}");
    return finishFloats();
  }

private:
  bool hasZero() const { return operands_.hasZero() || sums_.excess(); }

  /// What the weights in panels are too large by.
  void writeZero() {
    const std::string zeros = operands_.hasZero() ? operands_.zeros("block") : "(float16)(0.0f)";
    if (hasZero()) w_.line("const float16 zero = ", zeros, " + ", sums_.excess(), ".0f;");
  }

  void sumBlock() {
    const int64_t whole = sums_.vectors() / kVectorsOfSum;
    const int64_t rest = sums_.vectors() % kVectorsOfSum;
    if (whole) {
      w_.line("for (int v = 0; v < ", whole * kVectorsOfSum, "; v += ", kVectorsOfSum, ") {");
      sumVectors("v + ", kVectorsOfSum);
      w_.line("}");
    }
    if (!rest) return;
    w_.line("{");
    sumVectors(cdl::text(whole * kVectorsOfSum, " + "), rest);
    w_.line("}");
  }

  void sumVectors(const std::string& first, int64_t count) {
    for (int64_t p = 0; p < points_; ++p) w_.line("ushort16 s", p, " = 0;");
    for (int64_t i = 0; i < count; ++i) {
      w_.line("{");
      w_.line("const ushort16 x = convert_ushort16(vload16(", first, i, ", bytes)), high = x >> ",
              "(ushort)4;");
      for (int64_t p = 0; p < points_; ++p) {
        const std::string at = cdl::text("(", first, i, ") * 2");
        w_.line("s", p, " += as_ushort16((int8)(a", p, "[", at, "])) * x;");
        w_.line("s", p, " += as_ushort16((int8)(a", p, "[", at, " + 1])) * high;");
      }
      w_.line("}");
    }
    for (int64_t p = 0; p < points_; ++p)
      w_.line("t", p, " += convert_int16(as_short16(s", p, "));");
  }

  void addBlock(int64_t p) {
    const std::string row = "col + " + columnOf(p);
    const std::string excess =
        hasZero() ? " - zero * " + operands_.total(row, "block") : std::string();
    w_.line("f", p, " = fma(convert_float16(t", p, ")", excess, ", scale * ",
            operands_.step(row, "block"), ", f", p, ");");
  }

  const ScaledSums& sums_;
  ScaledOperands operands_;
};

} // namespace

KernelText writeScaledShorts(const Instruction& instr, const ScaledSums& sums,
                             const Profile& profile) {
  return ScaledShortsWriter(instr, sums, profile).write();
}

} // namespace program
