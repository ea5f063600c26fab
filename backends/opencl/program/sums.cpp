// MATMUL and CONV2D: sums of products over a grid of results.
//
// A work-item computes up to six neighbouring results of 16 columns (channels): their sums stay in
// registers while it walks the axes of the sum, and each step reads 16 weights that lie side by
// side and multiplies them by one number of each result: Goto and van de Geijn, "Anatomy of
// high-performance matrix multiplication" (ACM TOMS 34(3), 2008) and, for convolutions on blocks of
// channels, Georganas et al., "Anatomy of high-performance deep learning convolutions on SIMD
// architectures" (SC 2018).
//
// Products of 8 bits are summed in f32 too, which CPUs multiply and add fastest: less their zero
// points, both factors are below 256, so that a sum of 256 of them is below 2^24 and exact. Such
// sums are then added as integers.
#include "image.hpp"

#include <optional>

namespace program {

namespace {

constexpr int64_t kPoints = 6;  // with 16 lanes what the registers of AVX2 hold
constexpr int64_t kExact = 256; // products of 8 bits whose sum f32 holds

/// How an operand steps through the grid, in elements.
struct Steps {
  int64_t batch = 0, group = 0, panel = 0, lane = 0, row = 0, column = 0;

  bool canBeFlat(int64_t columns) const { return row == columns * column; }
};

/// An axis of the sum.
struct Axis {
  int64_t count = 1, a = 0, b = 0;
};

/// Where rows or columns of the window leave the image.
struct Edge {
  int64_t kernel = 1, stride = 1, dilation = 1, pad = 0, extent = 0;
  bool isFree = true; // what lies outside can be read, and counts for nothing

  bool isNeeded(int64_t results) const {
    if (isFree) return false;
    return pad != 0 || (results - 1) * stride + (kernel - 1) * dilation >= extent;
  }
};

/// y[batch, group, panel * 16 + lane, row, column] = sum over axes of a * b.
struct Sums {
  const cdl_view_t *a = nullptr, *b = nullptr, *y = nullptr;
  const cdl_view_t *aZero = nullptr, *bZero = nullptr;
  int64_t batch = 1, groups = 1, outs = 0, rows = 1, columns = 1;
  Steps aSteps, bSteps, ySteps;
  std::vector<std::optional<Steps>> views; // that the epilogue reads, by index of the inputs
  std::vector<Axis> channels;              // outer to inner, the last one innermost
  Axis down, across;                       // of the window
  int64_t aOffset = 0;           // of the first tap of the first result, which may be a pad
  std::array<Edge, 2> edges;     // of rows, of columns
  bool hasPaddedWeights = false; // lanes beyond `outs` can be read
  bool accumulates = false;

  bool isInteger() const { return a->elem != CDL_F32; }
  int64_t panels() const { return (outs + kLanes - 1) / kLanes; }
  bool hasTail() const { return outs % kLanes != 0; }
};

/// The number of results up to `most` with which the fewest are computed in vain; of equal ones
/// the larger.
int64_t pointsFor(int64_t columns, int64_t most) {
  int64_t best = 1, least = INT64_MAX;
  for (int64_t points = 1; points <= std::min(most, columns); ++points) {
    // A step costs the read of its weights beside the products.
    const int64_t cost = (columns + points - 1) / points * (points + 1);
    if (cost > least) continue;
    least = cost;
    best = points;
  }
  return best;
}

class SumsWriter {
public:
  SumsWriter(const Instruction& instr, const Sums& sums)
      : instr_(instr), s_(sums), points_(pointsFor(sums.columns, kPoints)),
        tiles_((sums.columns + points_ - 1) / points_) {}

  KernelText write() {
    writePlace();
    for (int64_t p = 0; p < points_; ++p) {
      w_.line("float16 f", p, " = 0.0f;");
      if (s_.isInteger()) w_.line("int16 t", p, " = 0;");
    }
    const bool hasEdge = s_.edges[1].isNeeded(s_.columns);
    if (hasEdge) {
      const Edge& edge = s_.edges[1];
      const int64_t reach = (points_ - 1) * edge.stride + (edge.kernel - 1) * edge.dilation;
      w_.line("const int left = col * ", edge.stride, " - ", edge.pad, ";");
      w_.line("if (left >= 0 && left + ", reach, " < ", edge.extent, ") {");
      walk(false);
      w_.line("} else {");
    }
    walk(hasEdge);
    if (hasEdge) w_.line("}");
    finish();
    return w_.finish(s_.batch * s_.groups * s_.panels() * s_.rows * tiles_);
  }

private:
  static std::string at(const Steps& s) {
    return cdl::text("n * ", s.batch, " + g * ", s.group, " + panel * ", s.panel, " + row * ",
                     s.row, " + (long)col * ", s.column);
  }

  /// The place of the work-item in the grid. Neighbours share weights.
  void writePlace() {
    const int64_t area = tiles_ * s_.rows, panels = s_.panels();
    w_.line("const long id = get_global_id(0);");
    w_.line("const int col = id % ", tiles_, " * ", points_, ";");
    w_.line("const long row = id / ", tiles_, " % ", s_.rows, ", panel = id / ", area, " % ",
            panels, ";");
    w_.line("const long g = id / ", area * panels, " % ", s_.groups, ", n = id / ",
            area * panels * s_.groups, ";");
    if (s_.hasTail())
      w_.line("const int live = min(", kLanes, ", ", s_.outs, " - (int)panel * ", kLanes, ");");
    const std::string a = w_.pointer(*s_.a), b = w_.pointer(*s_.b);
    w_.line("global const ", memoryType(s_.a->elem), "* first = ", a, ", *a = ", a, " + ",
            s_.aOffset, " + ", at(s_.aSteps), ";");
    w_.line("global const ", memoryType(s_.b->elem), "* b = ", b, " + ", at(s_.bSteps), ";");
    if (!s_.isInteger()) return;
    if (s_.aZero) w_.line("const float aZero = *", w_.pointer(*s_.aZero), ";");
    if (s_.bZero) writeZeros(w_.pointer(*s_.bZero));
  }

  /// The zero points of the weights of 16 lanes.
  void writeZeros(const std::string& zeros) {
    const cdl_view_t& view = *s_.bZero;
    const int64_t stride = elementsOf(view) > 1 ? view.strides[0] : 0;
    w_.line("float z[16];");
    w_.line("for (int e = 0; e < 16; ++e) z[e] = ", zeros, "[(g * ", s_.outs,
            " + min((int)panel * ", kLanes, " + e, ", s_.outs - 1, ")) * ", stride, "];");
    w_.line("const float16 bZero = vload16(0, z);");
  }

  /// Walks all axes. Guarded: what lies left and right of the image counts for nothing.
  void walk(bool isGuarded) {
    std::string aAt = "a", bAt = "b";
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
    for (int64_t p = 0; p < points_; ++p) writePoint(p, isGuarded);
    if (s_.isInteger())
      sumIntegers(isGuarded);
    else
      sumFloats(isGuarded);
    for (size_t open = 0; open < s_.channels.size() + 1; ++open) w_.line("}");
  }

  void loop(const Axis& axis, const std::string& name) {
    w_.line("for (int ", name, " = 0; ", name, " < ", axis.count, "; ++", name, ") {");
  }

  /// The numbers of result p under this tap. Beyond the last result it is that one again.
  void writePoint(int64_t p, bool isGuarded) {
    const Edge& edge = s_.edges[1];
    const bool isPartial = s_.columns % points_ != 0;
    const std::string column =
        isPartial ? cdl::text("min(", p, ", ", s_.columns - 1, " - col)") : cdl::text(p);
    if (isGuarded) {
      w_.line("const int w", p, " = (col + ", column, ") * ", edge.stride, " + kw * ",
              edge.dilation, " - ", edge.pad, ";");
      w_.line("const int i", p, " = w", p, " >= 0 && w", p, " < ", edge.extent, ";");
      w_.line("global const ", memoryType(s_.a->elem), "* a", p, " = i", p, " ? at + ", column,
              " * ", s_.aSteps.column, " : first;");
      return;
    }
    w_.line("global const ", memoryType(s_.a->elem), "* a", p, " = at + ", column, " * ",
            s_.aSteps.column, ";");
  }

  /// Whether 16 weights can be read as they lie.
  bool hasWholeWeights() const {
    return s_.bSteps.lane == 1 && (s_.hasPaddedWeights || !s_.hasTail());
  }
  /// Says how often the innermost loop is unrolled: what gathers its weights would take compilers
  /// very long.
  void unroll() { w_.line("_Pragma(\"", hasWholeWeights() ? "unroll 4" : "nounroll", "\")"); }

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

  void sumFloats(bool isGuarded) {
    const Axis& axis = s_.channels.back();
    unroll();
    w_.line("for (int k = 0; k < ", axis.count, "; ++k) {");
    const std::string loaded = weights(cdl::text("bt + (long)k * ", axis.b));
    w_.line("const float16 wv = ", loaded, ";");
    for (int64_t p = 0; p < points_; ++p) {
      const std::string number = cdl::text("a", p, "[(long)k * ", axis.a, "]");
      const std::string guarded =
          isGuarded ? cdl::text("(i", p, " ? ", number, " : 0.0f)") : number;
      w_.line("f", p, " = fma((float16)(", guarded, "), wv, f", p, ");");
    }
    w_.line("}");
  }

  void sumIntegers(bool isGuarded) {
    const Axis& axis = s_.channels.back();
    const int64_t part = std::min(axis.count, kExact);
    const bool isEven = axis.count % part == 0;
    w_.line("for (int from = 0; from < ", axis.count, "; from += ", part, ") {");
    if (isEven)
      w_.line("const int count = ", part, ";");
    else
      w_.line("const int count = min(", part, ", ", axis.count, " - from);");
    for (int64_t p = 0; p < points_; ++p) widen(p, part, isEven, isGuarded);
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
  void widen(int64_t p, int64_t part, bool isEven, bool isGuarded) {
    const Axis& axis = s_.channels.back();
    const std::string zero = s_.aZero ? " - aZero" : "";
    w_.line("float n", p, "[", part, "];");
    const std::string factor = isGuarded ? cdl::text(" * (float)i", p) : "";
    if (axis.a == 1 && isEven && part % kLanes == 0)
      w_.line("for (int k = 0; k < count; k += 16) vstore16((convert_float16(vload16(0, a", p,
              " + from + k))", zero, ")", factor, ", 0, n", p, " + k);");
    else
      w_.line("for (int k = 0; k < count; ++k) n", p, "[k] = ((float)a", p, "[(long)(from + k) * ",
              axis.a, "]", zero, ")", factor, ";");
  }

  /// The epilogue of all results, one after the other.
  void finish() {
    const char* sum = s_.isInteger() ? "int16" : "float16";
    std::string all;
    for (int64_t p = 0; p < points_; ++p)
      all += cdl::text(p ? ", " : "", s_.isInteger() ? "t" : "f", p);
    w_.line("const ", sum, " sums[] = {", all, "};");
    std::vector<std::string> pointers(instr_->inputs);
    for (size_t i = 0; i < s_.views.size(); ++i)
      if (s_.views[i]) pointers[i] = w_.pointer(instr_.input(static_cast<uint32_t>(i)));
    const std::string y = w_.pointer(*s_.y);
    w_.line("for (int p = 0; p < ", points_, "; ++p) {");
    if (s_.columns % points_) w_.line("if (col + p >= ", s_.columns, ") break;");
    if (s_.hasTail()) w_.line("if (live == 16) {");
    end(kLanes, "", "sums[p]", pointers, y);
    if (s_.hasTail()) {
      w_.line("} else {");
      w_.line(valueType(sumElem(), 1), " lanes[16];");
      w_.line("vstore16(sums[p], 0, lanes);");
      w_.line("for (int e = 0; e < live; ++e) {");
      end(1, " + e", "lanes[e]", pointers, y);
      w_.line("} }");
    }
    w_.line("}");
  }

  uint8_t sumElem() const { return s_.isInteger() ? CDL_I32 : CDL_F32; }

  void end(int lanes, const std::string& lane, const std::string& sum,
           const std::vector<std::string>& pointers, const std::string& y) {
    const auto place = [&](const std::string& pointer, const Steps& s) {
      return cdl::text(pointer, " + ", at(s), " + p * ", s.column,
                       lane.empty() ? "" : cdl::text(" + (long)e * ", s.lane));
    };
    const std::string to = place(y, s_.ySteps);
    std::string acc = sum;
    if (s_.accumulates) acc += " + " + Writer::load(s_.y->elem, lanes, to, s_.ySteps.lane);
    w_.line("const ", valueType(sumElem(), lanes), " acc", lanes, " = ", acc, ";");
    const std::vector<cdl_step_t> steps = instr_.steps();
    const std::string value =
        w_.compute(steps, 0, steps.size(), lanes, cdl::text("acc", lanes), [&](uint32_t i) {
          return Writer::load(instr_.input(i).elem, lanes, place(pointers[i], *s_.views[i]),
                              s_.views[i]->lane);
        });
    w_.store(s_.y->elem, lanes, to, s_.ySteps.lane, value);
  }

  const Instruction& instr_;
  const Sums& s_;
  const int64_t points_, tiles_;
  Writer w_;
};

/// The steps of an image in a grid of `perGroup` channels per group; those of an image in blocks
/// are whole blocks.
Steps stepsOf(const Image& image, int64_t perGroup) {
  const int64_t group = image.isBlocked() ? perGroup / kLanes * image.block : perGroup * image.lane;
  return {image.batch, group, image.block, image.lane, image.row, image.column};
}

/// The axes and steps of the weights of `sums`, in any of the layouts that are claimed.
bool placeWeights(const Image& x, int64_t perGroup, Sums& sums) {
  const cdl_view_t& w = *sums.b;
  const bool isBlocked = x.isBlocked();
  int64_t down = 0, across = 0;
  if (w.rank == 6 && w.dims[4] == kLanes && w.dims[5] == kLanes) { // o/16,i/16,k,l,i%16,o%16
    sums.channels = {{w.dims[1], x.block, w.strides[1]}, {kLanes, x.lane, w.strides[4]}};
    sums.bSteps.panel = w.strides[0];
    sums.bSteps.lane = w.strides[5];
    down = 2;
    across = 3;
  } else if (w.rank == 5) { // o/16,k,l,i,o%16
    sums.channels = {{w.dims[3], x.lane, w.strides[3]}};
    sums.bSteps.panel = w.strides[0];
    sums.bSteps.lane = w.strides[4];
    down = 1;
    across = 2;
  } else if (w.rank == 4) {
    sums.channels = {{w.dims[1], x.lane, w.strides[1]}};
    sums.bSteps.panel = kLanes * w.strides[0];
    sums.bSteps.lane = w.strides[0];
    sums.bSteps.group = sums.outs * w.strides[0];
    down = 2;
    across = 3;
  } else {
    return false;
  }
  sums.hasPaddedWeights = w.rank > 4;
  if (w.rank > 4 && sums.groups > 1) return false;
  // Row-major weights of an image in blocks walk blocks too.
  if (isBlocked && sums.channels.size() == 1 && perGroup % kLanes == 0) {
    const Axis lanes = sums.channels[0];
    sums.channels = {{perGroup / kLanes, x.block, lanes.b * kLanes}, {kLanes, x.lane, lanes.b}};
  } else if (isBlocked && w.rank != 6) {
    return false;
  }
  sums.down = {w.dims[down], 0, w.strides[down]};
  sums.across = {w.dims[across], 0, w.strides[across]};
  return true;
}

/// Moves x to the first element of its halo, where that is a border as the window wants it.
void useHalo(const Instruction& instr, const cdl_view_t& x, Sums& sums) {
  const cdl_halo_t* halo = instr.haloOf(x);
  if (!halo || halo->rank != x.rank || x.iv_strides[0] || x.iv_strides[1]) return;
  if (sums.isInteger() || halo->fill != 0) return;
  const int first = x.layout && x.rank == 4 ? 1 : 2;
  int64_t step = 1, offset = 0;
  for (int d = x.rank - 1; d >= 0; --d) {
    if (x.strides[d] != step && (x.dims[d] != 1 || halo->lo[d] || halo->hi[d])) return;
    offset += halo->lo[d] * step;
    step *= x.dims[d] + halo->lo[d] + halo->hi[d];
  }
  if (x.offset != offset) return; // a part of the content
  for (int d = 0; d < 2; ++d) {
    Edge& edge = sums.edges[static_cast<size_t>(d)];
    const int64_t results = d ? sums.columns : sums.rows;
    const int64_t last = (results - 1) * edge.stride + (edge.kernel - 1) * edge.dilation - edge.pad;
    if (edge.pad > halo->lo[first + d] || last >= edge.extent + int64_t{halo->hi[first + d]})
      return;
  }
  for (Edge& edge : sums.edges) edge.isFree = true;
}

/// Joins the rows of results into one where each reads its own pixel alone.
void flatten(Sums& sums) {
  for (const Edge& edge : sums.edges)
    if (edge.kernel != 1 || edge.isNeeded(&edge == &sums.edges[0] ? sums.rows : sums.columns))
      return;
  bool isFlat = sums.aSteps.canBeFlat(sums.columns) && sums.ySteps.canBeFlat(sums.columns);
  for (const auto& view : sums.views) isFlat = isFlat && (!view || view->canBeFlat(sums.columns));
  if (!isFlat) return;
  sums.columns *= sums.rows;
  sums.rows = 1;
  sums.edges = {};
}

bool describeConvolution(const Instruction& instr, Sums& sums) {
  Image x, y;
  if (!imageOf(instr, *sums.a, x) || !imageOf(instr, *sums.y, y)) return false;
  if (instr.attr(CDL_ATTR_TRANSPOSED, 0)) return false;
  sums.batch = y.n;
  sums.groups = instr.attr(CDL_ATTR_GROUP, 1);
  sums.outs = y.c / sums.groups;
  sums.rows = y.h;
  sums.columns = y.w;
  const int64_t perGroup = x.c / sums.groups;
  const bool isInBlocks = y.isBlocked();
  if (isInBlocks && sums.outs % kLanes) return false;
  if (!placeWeights(x, perGroup, sums)) return false;
  sums.ySteps = stepsOf(y, sums.outs);
  sums.aSteps = stepsOf(x, perGroup);
  sums.aSteps.panel = 0;
  const std::array<int64_t, 2> kernels = {sums.down.count, sums.across.count};
  const std::array<int64_t, 2> extents = {x.h, x.w};
  for (uint32_t d = 0; d < 2; ++d)
    sums.edges[d] = {kernels[d],
                     instr.attr(CDL_ATTR_STRIDES, 1, d),
                     instr.attr(CDL_ATTR_DILATIONS, 1, d),
                     instr.attr(CDL_ATTR_PADS, 0, d),
                     extents[d],
                     false};
  sums.down.a = sums.edges[0].dilation * x.row;
  sums.across.a = sums.edges[1].dilation * x.column;
  sums.aOffset = -sums.edges[0].pad * x.row - sums.edges[1].pad * x.column;
  sums.aSteps.row = x.row * sums.edges[0].stride;
  sums.aSteps.column = x.column * sums.edges[1].stride;
  for (uint32_t i = instr.operands(); i < instr->inputs; ++i) {
    Image view;
    if (!imageOf(instr, instr.input(i), view)) return false;
    sums.views[i] = stepsOf(view, sums.outs);
  }
  useHalo(instr, *sums.a, sums);
  return true;
}

bool describeProduct(const Instruction& instr, Sums& sums) {
  const cdl_view_t &a = *sums.a, &b = *sums.b, &y = *sums.y;
  if (a.rank != 3 || y.rank != 3) return false;
  const auto matrix = [](const cdl_view_t& view) {
    return Steps{view.strides[0], 0, kLanes * view.strides[2], view.strides[2], 0, view.strides[1]};
  };
  sums.batch = y.dims[0];
  sums.columns = y.dims[1];
  sums.outs = y.dims[2];
  sums.aSteps = {a.strides[0], 0, 0, 0, 0, a.strides[1]};
  sums.ySteps = matrix(y);
  sums.hasPaddedWeights = b.rank == 4; // b,n/16,k,n%16
  if (b.rank == 4) {
    sums.bSteps = {b.strides[0], 0, b.strides[1], b.strides[3], 0, 0};
    sums.channels = {{a.dims[2], a.strides[2], b.strides[2]}};
  } else {
    sums.bSteps = {b.strides[0], 0, kLanes * b.strides[2], b.strides[2], 0, 0};
    sums.channels = {{a.dims[2], a.strides[2], b.strides[1]}};
  }
  for (uint32_t i = instr.operands(); i < instr->inputs; ++i) {
    if (instr.input(i).rank != 3) return false;
    sums.views[i] = matrix(instr.input(i));
  }
  return true;
}

} // namespace

bool writeSums(const Instruction& instr, KernelText& text) {
  Sums sums;
  sums.a = &instr.input(0);
  sums.b = &instr.input(1);
  sums.y = &instr.y();
  if (instr.operands() > 2) sums.aZero = &instr.input(2);
  if (instr.operands() > 3) sums.bZero = &instr.input(3);
  const bool isInteger = sums.a->elem == CDL_I8 || sums.a->elem == CDL_U8;
  const bool isFloat = sums.a->elem == CDL_F32 && sums.b->elem == CDL_F32 && !sums.aZero;
  if (!isFloat && !(isInteger && sums.b->elem == CDL_I8)) return false;
  sums.views.resize(instr->inputs);
  sums.accumulates = instr.attr(CDL_ATTR_ACCUMULATE, 0) != 0;
  const bool isKnown = instr->kind == CDL_KIND_MATMUL ? describeProduct(instr, sums)
                                                      : describeConvolution(instr, sums);
  if (!isKnown || !canCompute(instr.steps()) || elementsOf(*sums.y) == 0) return false;
  if (elementsOf(*sums.a) == 0 || elementsOf(*sums.b) == 0) return false;
  if (instr->kind == CDL_KIND_CONV2D) flatten(sums);
  text = SumsWriter(instr, sums).write();
  return true;
}

} // namespace program
