#include "window.hpp"

#include "instructions.hpp"
#include "map.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace cpu {

namespace {

constexpr int64_t kVectorsAlong = 8; // of a row at once

void addKey(Key& key, const Plane& p) {
  key << p.elem << p.batch << p.panel << p.row << p.column << p.lane;
}

} // namespace

void placeImages(Window& w, const Image& x, const Image& y,
                 const std::vector<std::optional<Image>>& views) {
  const bool isBlocked = y.isBlocked, isLast = y.view.channelsLast;
  w.lanes = isBlocked ? kPanel : 1;
  while (isLast && w.lanes < 64 && y.c % (w.lanes * 2) == 0) w.lanes *= 2;
  w.batch = y.n;
  w.channels = isBlocked ? y.c / kPanel : y.c / w.lanes;
  w.rows = y.h;
  w.columns = y.w;
  w.xRow = x.view.bytes(x.row);
  w.xColumn = x.view.bytes(x.column);
  const auto placed = [&](const Image& image, int64_t rowStep, int64_t columnStep) {
    Plane plane = image.plane(kPanel, rowStep, columnStep);
    if (!isBlocked) plane.panel = image.view.bytes(w.lanes * image.lane);
    return plane;
  };
  w.x = placed(x, w.stride[0], w.stride[1]);
  w.y = placed(y, 1, 1);
  for (const std::optional<Image>& view : views)
    w.views.push_back(view ? std::optional(placed(*view, 1, 1)) : std::nullopt);
}

void emitWindow(Lowering& lowering, const Window& w) {
  Key key("window");
  key << static_cast<int>(w.fn) << w.kernel[0] << w.kernel[1] << w.stride[0] << w.stride[1]
      << w.dilation[0] << w.dilation[1] << w.batch << w.channels << w.rows << w.columns << w.lanes
      << w.xRow << w.xColumn << w.weightTap;
  addKey(key, w.x), addKey(key, w.y), addKey(key, w.weights);
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
  Ty ty = Ty::F32;
  typeOf(w.x.elem, ty);
  const bool alongColumns = w.lanes == 1;
  const int registerLanes = lowering.isa.lanes(sizeOf(ty));
  const int lanes = alongColumns ? static_cast<int>(std::min<int64_t>(registerLanes, w.columns))
                                 : std::min(registerLanes, w.lanes);
  const int vectors = alongColumns ? 1 : (w.lanes + lanes - 1) / lanes;
  const auto taps = w.kernel[0] * w.kernel[1];
  const bool unrolls = taps <= 25;

  const UnitRows units{w.batch * w.channels, w.rows, 1, 1, 1, w.rows};
  lowering.call(key.text(), units, args, [&](Builder& b) {
    b.loop(b.begin(), b.end(), 1, [&](Value unit) {
      const Value row = b.rem(unit, b.i64(w.rows), false), rest = b.div(unit, b.i64(w.rows), false);
      const Value channel = b.rem(rest, b.i64(w.channels), false),
                  batch = b.div(rest, b.i64(w.channels), false);
      const auto placed = [&](int arg, const Plane& p) {
        Value at = b.arg(arg);
        if (p.batch) at = b.at(at, b.mul(batch, b.i64(p.batch)));
        if (p.panel) at = b.at(at, b.mul(channel, b.i64(p.panel)));
        return p.row ? b.at(at, b.mul(row, b.i64(p.row))) : at;
      };
      int arg = 0;
      const Value x = placed(arg++, w.x), y = placed(arg++, w.y);
      const Value weights = w.fn == Window::Fn::PRODUCT ? placed(arg++, w.weights) : x;
      const Value divisor = w.divisor ? placed(arg++, *w.divisor) : x;
      Values views(w.views.size());
      for (size_t i = 0; i < w.views.size(); ++i)
        if (w.epilogue && w.views[i]) views[i] = placed(arg++, *w.views[i]);

      // `count` results side by side from `column` on, `width` lanes each; vector v of the block.
      // Along columns the lanes are neighbouring results, and `count` vectors of them follow each
      // other.
      const auto points = [&](Value column, int count, int width, int v) {
        const auto moved = [&](Value base, const Plane& p) {
          Value at = p.column ? b.at(base, b.mul(column, b.i64(p.column))) : base;
          return alongColumns ? at : b.at(at, v * lanes * p.lane);
        };
        const auto element = [&](uint8_t elem, Value at, int64_t step) {
          Ty own = Ty::F32;
          typeOf(elem, own);
          return b.loadStrided(own, width, at, step);
        };
        const auto laneStep = [&](const Plane& p) { return alongColumns ? p.column : p.lane; };
        const auto apart = [&](const Plane& p, int which) {
          return which * (alongColumns ? width : 1) * p.column;
        };
        const Value from = moved(x, w.x);
        Values acc;
        const auto tap = [&](Value at, Value weight, Values in) {
          for (int p = 0; p < count; ++p) {
            const Value value = element(w.x.elem, b.at(at, apart(w.x, p)), laneStep(w.x));
            if (w.fn == Window::Fn::PRODUCT)
              in[p] = b.fma(value, weight, in[p]);
            else
              in[p] = w.fn == Window::Fn::MAX ? b.max(in[p], value, isSignedElem(w.x.elem))
                                              : b.add(in[p], value);
          }
          return in;
        };
        const auto weightAt = [&](Value index) {
          if (w.fn != Window::Fn::PRODUCT) return index;
          const Value at = b.at(weights, b.mul(index, b.i64(w.weightTap)));
          return alongColumns ? b.splat(b.load(Ty::F32, 1, at), width)
                              : b.load(Ty::F32, width, at, v * lanes * 4);
        };
        const int first = w.fn == Window::Fn::MAX ? 1 : 0; // the maximum begins with the first tap
        for (int p = 0; p < count; ++p)
          acc.push_back(first ? element(w.x.elem, b.at(from, apart(w.x, p)), laneStep(w.x))
                              : b.zero(ty, width));
        if (unrolls) {
          for (int64_t t = first; t < taps; ++t)
            acc = tap(b.at(from, t / w.kernel[1] * w.dilation[0] * w.xRow +
                                     t % w.kernel[1] * w.dilation[1] * w.xColumn),
                      weightAt(b.i64(t)), acc);
        } else {
          acc = b.loop(w.kernel[0], acc, [&](Value kh, const Values& outer) {
            return b.loop(w.kernel[1], outer, [&](Value kw, const Values& inner) {
              const Value at = b.at(b.at(from, b.mul(kh, b.i64(w.dilation[0] * w.xRow))),
                                    b.mul(kw, b.i64(w.dilation[1] * w.xColumn)));
              return tap(at, weightAt(b.add(b.mul(kh, b.i64(w.kernel[1])), kw)), inner);
            });
          });
        }
        const Value to = moved(y, w.y);
        for (int p = 0; p < count; ++p) {
          Typed result{acc[p], w.x.elem};
          if (w.divisor)
            result.value =
                b.div(result.value,
                      element(CDL_F32, b.at(moved(divisor, *w.divisor), apart(*w.divisor, p)),
                              laneStep(*w.divisor)));
          if (w.epilogue) {
            std::vector<Typed> in(w.views.size());
            for (size_t i = 0; i < w.views.size(); ++i)
              if (w.views[i])
                in[i] = {element(w.views[i]->elem,
                                 b.at(moved(views[i], *w.views[i]), apart(*w.views[i], p)),
                                 laneStep(*w.views[i])),
                         w.views[i]->elem};
            result = computeExpr(b, lowering.image, *w.epilogue, in, &result);
          }
          result.value = b.splat(result.value, width);
          b.storeStrided(result.value, b.at(to, apart(w.y, p)), laneStep(w.y));
        }
      };

      if (alongColumns) {
        // As many vectors as keep both units busy while each sum waits for itself, then what is
        // left in halves.
        const int64_t all = w.columns / lanes, most = std::min<int64_t>(all, kVectorsAlong);
        const int64_t turns = all / most;
        b.loop(b.i64(0), b.i64(turns * most * lanes), most * lanes,
               [&](Value column) { points(column, static_cast<int>(most), lanes, 0); });
        int64_t done = turns * most * lanes;
        if (const int64_t rest = all - turns * most)
          points(b.i64(done), static_cast<int>(rest), lanes, 0);
        done = all * lanes;
        for (int width = lanes / 2; done < w.columns; width /= 2)
          if (width <= w.columns - done) points(b.i64(done), 1, width, 0), done += width;
        return;
      }
      const int together = lowering.isa.registers >= 32 ? 7 : 4;
      const int64_t whole = w.columns / together * together;
      for (int v = 0; v < vectors; ++v) {
        if (whole)
          b.loop(b.i64(0), b.i64(whole), together,
                 [&](Value column) { points(column, together, lanes, v); });
        if (whole < w.columns) points(b.i64(whole), static_cast<int>(w.columns - whole), lanes, v);
      }
    });
  });
}

bool emitPool(Lowering& lowering, const cdl_instr_t& instr, std::string& why) {
  const std::vector<Operand> in = operandsOf(lowering, instr);
  std::vector<std::optional<Image>> images;
  for (const Operand& o : in) {
    images.push_back(imageOf(o));
    if (!images.back() || images.back()->isBlocked != images[0]->isBlocked ||
        images.back()->view.channelsLast != images[0]->view.channelsLast)
      return why = "its layouts", false;
  }
  const uint8_t elem = in[0].elem;
  const Image y = *images.back();
  images.pop_back();
  Ty ty;
  if (elem != CDL_F32 && instr.fn == CDL_POOL2D_AVERAGE)
    return why = "an average of integers", false;
  if (!typeOf(elem, ty)) return why = "its element type", false;
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
    if (!canComputeExpr(lowering.image, *w.epilogue)) return why = "a step of its epilogue", false;
  }
  uint64_t lowest = 0; // what padding counts as
  if (w.fn == Window::Fn::MAX) {
    const float inf = -INFINITY;
    const double wideInf = -INFINITY;
    if (elem == CDL_F32)
      std::memcpy(&lowest, &inf, 4);
    else if (elem == CDL_F64)
      std::memcpy(&lowest, &wideInf, 8);
    else if (isSignedElem(elem))
      lowest = uint64_t(1) << (cdl_elem_bits(elem) - 1);
  }
  const Image& input = *images[0];
  if (w.fn == Window::Fn::AVERAGE) {
    const bool all = attrOf(lowering, instr, CDL_ATTR_COUNT_INCLUDE_PAD, 0) != 0;
    // How many taps of a window that begins at `at` lie within 0 .. size - 1.
    const auto taps = [&](int64_t at, int d, int64_t size) {
      int64_t count = 0;
      for (int64_t k = 0; k < w.kernel[d]; ++k)
        count += all || (at + k * w.dilation[d] >= 0 && at + k * w.dilation[d] < size);
      return std::max<int64_t>(count, 1);
    };
    std::vector<float> counts;
    for (int64_t r = 0; r < y.h; ++r)
      for (int64_t c = 0; c < y.w; ++c)
        counts.push_back(static_cast<float>(taps(r * w.stride[0] - begin[0], 0, input.h) *
                                            taps(c * w.stride[1] - begin[1], 1, input.w)));
    Plane divisor;
    divisor.elem = CDL_F32;
    divisor.at = lowering.own(counts.data(), counts.size() * 4);
    divisor.row = y.w * 4;
    divisor.column = 4;
    w.divisor = divisor;
  }
  const Image x = bordered(lowering, input, begin, end, lowest);
  images[0].reset(); // not the epilogue's
  placeImages(w, x, y, images);
  emitWindow(lowering, w);
  return true;
}

} // namespace cpu
