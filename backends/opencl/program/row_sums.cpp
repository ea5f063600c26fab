// Sums of products on a CPU.
//
// A work-item computes some neighbouring results, six as a rule, of 16 columns (channels): their
// sums stay in registers while it walks the axes of the sum, and each step reads 16 weights that
// lie side by side and multiplies them by one number of each result: Goto and van de Geijn,
// "Anatomy of high-performance matrix multiplication" (ACM TOMS 34(3), 2008) and, for convolutions
// on blocks of channels, Georganas et al., "Anatomy of high-performance deep learning convolutions
// on SIMD architectures" (SC 2018).
#include "panel_sums.hpp"

namespace program {

namespace {

/// What a kernel does where the window leaves the image to the left and to the right.
enum class Border {
  none,    ///< it does not, or what lies there counts for nothing
  zeros,   ///< it reads zeros instead
  guarded, ///< work-items that touch the border have a walk of their own, which asks at each number
};

class RowSumsWriter : PanelSums {
public:
  RowSumsWriter(const Instruction& instr, const Sums& sums, const Profile& profile)
      : PanelSums(instr, sums, pointsFor(sums.columns, profile.points)), unroll_(profile.unroll),
        border_(borderOf(sums)) {
    outside_ = border_ == Border::zeros && !s_.isInteger() ? w_.zeros() : a_;
  }

  KernelText write() {
    for (int64_t p = 0; p < points_; ++p) {
      w_.line("float16 f", p, " = 0.0f;");
      if (s_.isInteger()) w_.line("int16 t", p, " = 0;");
    }
    if (border_ == Border::guarded) {
      const Edge& edge = s_.edges[1];
      const int64_t reach = (points_ - 1) * edge.stride + (edge.kernel - 1) * edge.dilation;
      w_.line("const int left = col * ", edge.stride, " - ", edge.pad, ";");
      w_.line("if (left >= 0 && left + ", reach, " < ", edge.extent, ") {");
      walk(Border::none);
      w_.line("} else {");
    }
    walk(border_);
    if (border_ == Border::guarded) w_.line("}");
    std::string all;
    for (int64_t p = 0; p < points_; ++p)
      all += cdl::text(p ? ", " : "", s_.isInteger() ? "t" : "f", p);
    w_.line("const ", valueType(s_.sumElem(), kLanes), " sums[] = {", all, "};");
    return finish("sums");
  }

private:
  static Border borderOf(const Sums& sums) {
    if (!sums.edges[1].isNeeded(sums.columns)) return Border::none;
    const Axis& inner = sums.channels.back();
    // With few numbers between two looks at the border the looks would cost more than they.
    if (inner.count < kLanes) return Border::guarded;
    return sums.isInteger() || inner.count * inner.a <= kZeros ? Border::zeros : Border::guarded;
  }

  /// Walks all axes.
  void walk(Border border) {
    std::string aAt = "a";
    std::string bAt = "b";
    for (size_t c = 0; c + 1 < s_.channels.size(); ++c) loop(s_.channels[c], cdl::text("k", c));
    loop(s_.down, "kh");
    const Edge& edge = s_.edges[0];
    if (edge.isNeeded(s_.rows)) {
      w_.line("const int ih = (int)row * ", edge.stride, " + kh * ", edge.dilation, " - ", edge.pad,
              ";");
      w_.line("if (ih < 0 || ih >= ", edge.extent, ") continue;");
    }
    loop(s_.across, "kw");
    for (size_t c = 0; c + 1 < s_.channels.size(); ++c) {
      aAt += cdl::text(" + k", c, " * ", s_.channels[c].a);
      bAt += cdl::text(" + k", c, " * ", s_.channels[c].b);
    }
    w_.line("global const ", memoryType(s_.a->elem), "* at = ", aAt, " + kh * ", s_.down.a,
            " + kw * ", s_.across.a, ";");
    w_.line("global const ", memoryType(s_.b->elem), "* bt = ", bAt, " + kh * ", s_.down.b,
            " + kw * ", s_.across.b, ";");
    for (int64_t p = 0; p < points_; ++p) writePoint(p, border);
    if (s_.isInteger())
      sumIntegers(border);
    else
      sumFloats(border);
    for (size_t open = 0; open < s_.channels.size() + 1; ++open) w_.line("}");
  }

  void loop(const Axis& axis, const std::string& name) {
    w_.line("for (int ", name, " = 0; ", name, " < ", axis.count, "; ++", name, ") {");
  }

  /// The numbers of result p under this tap. Beyond the last result it is that one again.
  void writePoint(int64_t p, Border border) {
    const Edge& edge = s_.edges[1];
    const bool isPartial = s_.columns % points_ != 0;
    const std::string column =
        isPartial ? cdl::text("min(", p, ", ", s_.columns - 1, " - col)") : cdl::text(p);
    std::string from = cdl::text("at + ", column, " * ", s_.aSteps.column);
    if (border != Border::none) {
      w_.line("const int w", p, " = (col + ", column, ") * ", edge.stride, " + kw * ",
              edge.dilation, " - ", edge.pad, ";");
      w_.line("const int i", p, " = w", p, " >= 0 && w", p, " < ", edge.extent, ";");
      from = cdl::text("i", p, " ? ", from, " : ", outside_);
    }
    w_.line("global const ", memoryType(s_.a->elem), "* a", p, " = ", from, ";");
  }

  /// Whether 16 weights can be read as they lie.
  bool hasWholeWeights() const {
    return s_.bSteps.lane == 1 && (s_.hasPaddedWeights || !s_.hasTail());
  }
  /// Says how often the innermost loop is unrolled: what gathers its weights would take compilers
  /// very long.
  void unroll() {
    w_.line("_Pragma(\"", hasWholeWeights() ? cdl::text("unroll ", unroll_) : "nounroll", "\")");
  }

  /// 16 weights at `from`.
  std::string weights(const std::string& from) {
    const std::string type = memoryType(s_.b->elem);
    if (hasWholeWeights()) return "convert_float16(vload16(0, " + from + "))";
    w_.line(type, " part[16];");
    w_.line("_Pragma(\"nounroll\")");
    w_.line("for (int e = 0; e < 16; ++e) part[e] = (", from, ")[",
            s_.hasTail() ? "min(e, live - 1)" : "e", " * ", s_.bSteps.lane, "];");
    return "convert_float16(vload16(0, part))";
  }

  void sumFloats(Border border) {
    const Axis& axis = s_.channels.back();
    unroll();
    w_.line("for (int k = 0; k < ", axis.count, "; ++k) {");
    const std::string loaded = weights(cdl::text("bt + (long)k * ", axis.b));
    w_.line("const float16 wv = ", loaded, ";");
    for (int64_t p = 0; p < points_; ++p) {
      std::string number = cdl::text("a", p, "[(long)k * ", axis.a, "]");
      if (border == Border::guarded) number = cdl::text("(i", p, " ? ", number, " : 0.0f)");
      w_.line("f", p, " = fma((float16)(", number, "), wv, f", p, ");");
    }
    w_.line("}");
  }

  void sumIntegers(Border border) {
    const Axis& axis = s_.channels.back();
    const int64_t part = std::min(axis.count, kExact);
    const bool isEven = axis.count % part == 0;
    w_.line("for (int from = 0; from < ", axis.count, "; from += ", part, ") {");
    if (isEven)
      w_.line("const int count = ", part, ";");
    else
      w_.line("const int count = min(", part, ", ", axis.count, " - from);");
    for (int64_t p = 0; p < points_; ++p) widen(p, part, isEven, border);
    unroll();
    w_.line("for (int k = 0; k < count; ++k) {");
    const std::string loaded = weights(cdl::text("bt + (long)(from + k) * ", axis.b));
    w_.line("const float16 wv = ", loaded, s_.bZero ? " - bZero" : "", ";");
    for (int64_t p = 0; p < points_; ++p)
      w_.line("f", p, " = fma((float16)(n", p, "[k]), wv, f", p, ");");
    w_.line("}");
    for (int64_t p = 0; p < points_; ++p)
      w_.line("t", p, " += convert_int16(f", p, "); f", p, " = 0.0f;");
    w_.line("}");
  }

  /// The numbers of result p of one part of the axis as floats, less their zero point.
  void widen(int64_t p, int64_t part, bool isEven, Border border) {
    const Axis& axis = s_.channels.back();
    const std::string zero = s_.aZero ? " - aZero" : "";
    w_.line("float n", p, "[", part, "];");
    const std::string factor = border == Border::none ? "" : cdl::text(" * (float)i", p);
    if (axis.a == 1 && isEven && part % kLanes == 0)
      w_.line("for (int k = 0; k < count; k += 16) vstore16((convert_float16(vload16(0, a", p,
              " + from + k))", zero, ")", factor, ", 0, n", p, " + k);");
    else
      w_.line("for (int k = 0; k < count; ++k) n", p, "[k] = ((float)a", p, "[(long)(from + k) * ",
              axis.a, "]", zero, ")", factor, ";");
  }

  const int64_t unroll_;
  const Border border_;
  std::string outside_; // what is read left and right of the image
};

} // namespace

KernelText writeRowSums(const Instruction& instr, const Sums& sums, const Profile& profile) {
  return RowSumsWriter(instr, sums, profile).write();
}

} // namespace program
