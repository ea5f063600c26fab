#include "window.hpp"

#include "elementwise.hpp"
#include "epilogue.hpp"
#include "instructions.hpp"

#include <algorithm>
#include <bit>
#include <limits>

namespace cpu {

namespace {

constexpr int64_t kVectorsAlong = 8;  // of a row at once
constexpr int64_t kUnrolledTaps = 25; // larger windows are loops

} // namespace

void placeImages(Window& w, const ImageView& x, const ImageView& y,
                 const std::vector<std::optional<ImageView>>& views) {
  const bool isBlocked = y.isBlocked, isLast = y.view.channelsLast;
  w.lanes = isBlocked ? kPanel : 1;
  while (isLast && w.lanes < w.mostLanes && y.c % (w.lanes * 2) == 0) w.lanes *= 2;
  w.batch = y.n;
  w.channels = isBlocked ? y.c / kPanel : y.c / w.lanes;
  w.rows = y.h;
  w.columns = y.w;
  w.xRow = x.view.bytes(x.row);
  w.xColumn = x.view.bytes(x.column);
  const auto placed = [&](const ImageView& image, int64_t rowStep, int64_t columnStep) {
    Plane plane = image.plane(kPanel, rowStep, columnStep);
    if (!isBlocked) plane.panel = image.view.bytes(w.lanes * image.lane);
    return plane;
  };
  w.x = placed(x, w.stride[0], w.stride[1]);
  w.y = placed(y, 1, 1);
  for (const std::optional<ImageView>& view : views)
    w.views.push_back(view ? std::optional(placed(*view, 1, 1)) : std::nullopt);
}

namespace {

/// Writes the kernel of a window. Lanes are neighbouring results of a row, or channels.
class WindowKernel {
public:
  WindowKernel(const Lowering& lowering, const Window& w)
      : lowering_(lowering), w_(w), ty_(isHalves(w) ? Ty::F32 : tyOf(w.x.elem)),
        alongColumns_(w.lanes == 1), lanes_(lanesOf(lowering, w)) {}

  void write(Builder& b) {
    b.loop(b.begin(), b.end(), 1, [&](Value unit) {
      place(b, unit);
      if (alongColumns_)
        rowAlongColumns(b);
      else
        rowOfBlocks(b);
    });
  }

private:
  /// The `count` results side by side from `column` on, `width` lanes each; vector `vector` of the
  /// block. Along columns the lanes are neighbouring results, and `count` vectors of them follow
  /// each other.
  struct Points {
    Value column;
    int count, width, vector;
  };

  /// Whether it is of bf16, which becomes f32 in registers.
  static bool isHalves(const Window& w) { return w.x.elem == CDL_BF16; }
  static int lanesOf(const Lowering& lowering, const Window& w) {
    const int registerLanes = lowering.isa.lanes(isHalves(w) ? 4 : sizeOf(tyOf(w.x.elem)));
    if (w.lanes > 1) return std::min(registerLanes, w.lanes);
    return static_cast<int>(std::min<int64_t>(registerLanes, w.columns));
  }
  bool isProduct() const { return w_.fn == Window::Fn::PRODUCT; }
  bool isMax() const { return w_.fn == Window::Fn::MAX; }

  /// The addresses of a unit: a row of results of one block of channels.
  void place(Builder& b, Value unit) {
    const Value row = b.remainder(unit, w_.rows), rest = b.quotient(unit, w_.rows);
    const Value channel = b.remainder(rest, w_.channels);
    const Value batch = b.quotient(rest, w_.channels);
    const auto placed = [&](int arg, const Plane& p) {
      const Value at = b.at(b.at(b.arg(arg), batch, p.batch), channel, p.panel);
      return b.at(at, row, p.row);
    };
    int arg = 0;
    x_ = placed(arg++, w_.x);
    y_ = placed(arg++, w_.y);
    weights_ = isProduct() ? placed(arg++, w_.weights) : x_;
    divisor_ = w_.divisor ? placed(arg++, *w_.divisor) : x_;
    views_.assign(w_.views.size(), Value());
    for (size_t i = 0; i < w_.views.size(); ++i)
      if (w_.epilogue && w_.views[i]) views_[i] = placed(arg++, *w_.views[i]);
  }

  /// Writes as many vectors as keep both units busy while each sum waits for itself, then what is
  /// left in halves.
  void rowAlongColumns(Builder& b) {
    const int64_t all = w_.columns / lanes_, most = std::min<int64_t>(all, kVectorsAlong);
    const int64_t turns = all / most;
    b.loop(b.i64(0), b.i64(turns * most * lanes_), most * lanes_,
           [&](Value column) { compute(b, {column, static_cast<int>(most), lanes_, 0}); });
    int64_t done = turns * most * lanes_;
    if (const int64_t rest = all - turns * most)
      compute(b, {b.i64(done), static_cast<int>(rest), lanes_, 0});
    done = all * lanes_;
    for (int width = lanes_ / 2; done < w_.columns; width /= 2) {
      if (width > w_.columns - done) continue;
      compute(b, {b.i64(done), 1, width, 0});
      done += width;
    }
  }

  void rowOfBlocks(Builder& b) {
    const int together = lowering_.isa.registers >= 32 ? 7 : 4;
    const int64_t whole = w_.columns / together * together;
    const int vectors = (w_.lanes + lanes_ - 1) / lanes_;
    for (int v = 0; v < vectors; ++v) {
      if (whole)
        b.loop(b.i64(0), b.i64(whole), together,
               [&](Value column) { compute(b, {column, together, lanes_, v}); });
      if (whole < w_.columns)
        compute(b, {b.i64(whole), static_cast<int>(w_.columns - whole), lanes_, v});
    }
  }

  // Addresses and elements of some points.

  Value moved(Builder& b, const Points& points, Value base, const Plane& p) const {
    const Value at = b.at(base, points.column, p.column);
    return alongColumns_ ? at : b.at(at, points.vector * lanes_ * p.lane);
  }
  int64_t laneStep(const Plane& p) const { return alongColumns_ ? p.column : p.lane; }
  int64_t apart(const Points& points, const Plane& p, int which) const {
    return which * (alongColumns_ ? points.width : 1) * p.column;
  }
  /// The elements of result number `which`, from the address of the first one.
  Value element(Builder& b, const Points& points, const Plane& p, Value first, int which) const {
    return b.loadStrided(tyOf(p.elem), points.width, b.at(first, apart(points, p, which)),
                         laneStep(p));
  }

  /// The same of x, to compute with.
  Value factor(Builder& b, const Points& points, Value first, int which) const {
    const Value bits = element(b, points, w_.x, first, which);
    if (!isHalves(w_)) return bits;
    return cpu::compute(b, CDL_KIND_CONVERT, CDL_CONVERT_TRUNC, CDL_F32, false, {{bits, w_.x.elem}})
        .value;
  }

  void compute(Builder& b, const Points& points) const {
    const Values sums = taps(b, points);
    const Value to = moved(b, points, y_, w_.y);
    for (int p = 0; p < points.count; ++p) {
      const Value result = finished(b, points, p, sums[static_cast<size_t>(p)]);
      b.storeStrided(b.splat(result, points.width), b.at(to, apart(points, w_.y, p)),
                     laneStep(w_.y));
    }
  }

  /// Combines all taps of the points.
  Values taps(Builder& b, const Points& points) const {
    const Value from = moved(b, points, x_, w_.x);
    const int first = isMax() ? 1 : 0; // the maximum begins with the first tap
    Values acc;
    for (int p = 0; p < points.count; ++p)
      acc.push_back(first ? factor(b, points, from, p) : b.zero(ty_, points.width));
    const int64_t taps = w_.kernel[0] * w_.kernel[1];
    if (taps <= kUnrolledTaps) {
      for (int64_t t = first; t < taps; ++t) {
        const int64_t offset = t / w_.kernel[1] * w_.dilation[0] * w_.xRow +
                               t % w_.kernel[1] * w_.dilation[1] * w_.xColumn;
        const Value weight = weightAt(b, points, b.i64(t));
        acc = tap(b, points, b.at(from, offset), weight, std::move(acc));
      }
      return acc;
    }
    return b.loop(w_.kernel[0], acc, [&](Value kh, const Values& outer) {
      return b.loop(w_.kernel[1], outer, [&](Value kw, const Values& inner) {
        const Value at = b.at(b.at(from, b.mul(kh, b.i64(w_.dilation[0] * w_.xRow))),
                              b.mul(kw, b.i64(w_.dilation[1] * w_.xColumn)));
        const Value weight = weightAt(b, points, b.add(b.mul(kh, b.i64(w_.kernel[1])), kw));
        return tap(b, points, at, weight, inner);
      });
    });
  }

  Values tap(Builder& b, const Points& points, Value at, Value weight, Values in) const {
    for (int p = 0; p < points.count; ++p) {
      const Value value = factor(b, points, at, p);
      Value& sum = in[static_cast<size_t>(p)];
      switch (w_.fn) {
      case Window::Fn::PRODUCT: sum = b.fma(value, weight, sum); break;
      case Window::Fn::MAX: sum = b.max(sum, value, isSignedElem(w_.x.elem)); break;
      case Window::Fn::AVERAGE: sum = b.add(sum, value); break;
      }
    }
    return in;
  }

  Value weightAt(Builder& b, const Points& points, Value index) const {
    if (!isProduct()) return index;
    const Value at = b.at(weights_, b.mul(index, b.i64(w_.weightTap)));
    return alongColumns_ ? b.splat(b.load(Ty::F32, 1, at), points.width)
                         : b.load(Ty::F32, points.width, at, points.vector * lanes_ * 4);
  }

  /// What becomes of a sum before it is stored.
  Value finished(Builder& b, const Points& points, int which, Value sum) const {
    Typed result{sum, w_.x.elem};
    if (w_.divisor) {
      const Value first = moved(b, points, divisor_, *w_.divisor);
      result.value = b.div(result.value, element(b, points, *w_.divisor, first, which));
    }
    if (isHalves(w_)) result = sumOfHalves(b, lowering_.image, w_.epilogue, result.value);
    if (!w_.epilogue) return result.value;
    std::vector<Typed> in(w_.views.size());
    for (size_t i = 0; i < w_.views.size(); ++i)
      if (const std::optional<Plane>& view = w_.views[i])
        in[i] = {element(b, points, *view, moved(b, points, views_[i], *view), which), view->elem};
    return computeExpr(b, lowering_.image, *w_.epilogue, in, &result).value;
  }

  const Lowering& lowering_;
  const Window& w_;
  const Ty ty_;
  const bool alongColumns_;
  const int lanes_;
  Value x_, y_, weights_, divisor_; // of the unit at hand
  Values views_;
};

} // namespace

void emitWindow(Lowering& lowering, const Window& w) {
  Key key("window");
  key << static_cast<int>(w.fn) << w.kernel[0] << w.kernel[1] << w.stride[0] << w.stride[1]
      << w.dilation[0] << w.dilation[1] << w.batch << w.channels << w.rows << w.columns << w.lanes
      << w.xRow << w.xColumn << w.weightTap;
  addKey(key, w.x);
  addKey(key, w.y);
  addKey(key, w.weights);
  std::vector<Arg> args = {w.x.at, w.y.at};
  if (w.fn == Window::Fn::PRODUCT) args.push_back(w.weights.at);
  if (w.divisor) {
    key << "divisor";
    addKey(key, *w.divisor);
    args.push_back(w.divisor->at);
  }
  if (w.epilogue) {
    key << exprKey(lowering, *w.epilogue);
    for (size_t i = 0; i < w.views.size(); ++i)
      if (w.views[i]) {
        key << static_cast<int64_t>(i);
        addKey(key, *w.views[i]);
        args.push_back(w.views[i]->at);
      }
  }
  const UnitRows units{.outer = w.batch * w.channels, .tiles = w.rows, .rows = w.rows};
  lowering.call(key.text(), units, args, [&](Builder& b) { WindowKernel(lowering, w).write(b); });
}

namespace {

/// The bits of the padding of a maximum: what no element is below.
uint64_t lowestBits(uint8_t elem) {
  if (elem == CDL_F32) return std::bit_cast<uint32_t>(-std::numeric_limits<float>::infinity());
  if (elem == CDL_BF16) return 0xff80; // minus infinity
  if (elem == CDL_F64) return std::bit_cast<uint64_t>(-std::numeric_limits<double>::infinity());
  return isSignedElem(elem) ? uint64_t(1) << (cdl_elem_bits(elem) - 1) : 0;
}

/// How many elements each average is of. `all`: padding counts too.
Plane divisorOf(Lowering& lowering, const Window& w, const int64_t begin[2], const ImageView& x,
                const ImageView& y, bool all) {
  // Taps of a window that begins at `at` that lie within 0 .. size - 1.
  const auto taps = [&](int64_t at, int d, int64_t size) {
    int64_t count = 0;
    for (int64_t k = 0; k < w.kernel[d]; ++k)
      count += all || (at + k * w.dilation[d] >= 0 && at + k * w.dilation[d] < size);
    return std::max<int64_t>(count, 1);
  };
  std::vector<float> counts;
  for (int64_t r = 0; r < y.h; ++r)
    for (int64_t c = 0; c < y.w; ++c)
      counts.push_back(static_cast<float>(taps(r * w.stride[0] - begin[0], 0, x.h) *
                                          taps(c * w.stride[1] - begin[1], 1, x.w)));
  Plane divisor;
  divisor.elem = CDL_F32;
  divisor.at = lowering.own(counts.data(), counts.size() * 4);
  divisor.row = y.w * 4;
  divisor.column = 4;
  return divisor;
}

} // namespace

bool emitPool(Lowering& lowering, const cdl_instr_t& instr, std::string& why) {
  const std::vector<Operand> in = operandsOf(lowering, instr);
  std::vector<std::optional<ImageView>> images;
  for (const Operand& o : in) {
    images.push_back(imageOf(o));
    if (!images.back() || images.back()->isBlocked != images[0]->isBlocked ||
        images.back()->view.channelsLast != images[0]->view.channelsLast)
      return refuse(why, "its layouts");
  }
  const uint8_t elem = in[0].elem;
  const ImageView y = *images.back();
  images.pop_back();
  Ty ty;
  if (elem != CDL_F32 && instr.fn == CDL_POOL2D_AVERAGE)
    return refuse(why, "an average of other types than f32");
  if (elem != CDL_BF16 && !typeOf(elem, ty)) return refuse(why, "its element type");
  Window w;
  w.fn = instr.fn == CDL_POOL2D_MAX ? Window::Fn::MAX : Window::Fn::AVERAGE;
  int64_t begin[2], end[2];
  for (uint32_t d = 0; d < 2; ++d) {
    w.kernel[d] = attrOf(lowering, instr, CDL_ATTR_KERNEL, 1, d);
    w.stride[d] = attrOf(lowering, instr, CDL_ATTR_STRIDES, 1, d);
    w.dilation[d] = attrOf(lowering, instr, CDL_ATTR_DILATIONS, 1, d);
    begin[d] = attrOf(lowering, instr, CDL_ATTR_PADS, 0, d);
    end[d] = attrOf(lowering, instr, CDL_ATTR_PADS, 0, d + 2);
  }
  if (instr.expr) {
    w.epilogue = cdl_get_expr(lowering.image, instr.expr);
    if (!canComputeExpr(lowering.image, *w.epilogue)) return refuse(why, "a step of its epilogue");
  }
  const uint64_t padding = w.fn == Window::Fn::MAX ? lowestBits(elem) : 0;
  const ImageView& input = *images[0];
  if (w.fn == Window::Fn::AVERAGE)
    w.divisor = divisorOf(lowering, w, begin, input, y,
                          attrOf(lowering, instr, CDL_ATTR_COUNT_INCLUDE_PAD, 0) != 0);
  const ImageView x = bordered(lowering, input, begin, end, padding);
  images[0].reset(); // not the epilogue's
  placeImages(w, x, y, images);
  emitWindow(lowering, w);
  return true;
}

} // namespace cpu
