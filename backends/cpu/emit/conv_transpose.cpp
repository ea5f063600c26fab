// CONV2D transposed, by phases: y at stride * q + phase - pad sums what the taps of that phase
// (every stride-th) give of x at q and before. So it is one convolution with stride 1 of as many
// channels as there are phases times channels of y, whose results then go each to its place,
// through the epilogue. No zero is inserted, and none multiplied but where a kernel is no multiple
// of its stride.
#include "contraction.hpp"
#include "image.hpp"
#include "instructions.hpp"
#include "map.hpp"

#include <algorithm>

namespace cpu {

namespace {

/// One spatial dim: kernel and stride, taps of a phase (the most that any has), and the grid of q.
struct Way {
  int64_t kernel, stride, pad, out, taps, grid;

  Way(int64_t kernel, int64_t stride, int64_t pad, int64_t in, int64_t out)
      : kernel(kernel), stride(stride), pad(pad), out(out), taps((kernel + stride - 1) / stride),
        grid(std::max(in + taps - 1, (out + pad + stride - 1) / stride)) {}

  /// Taps that a phase has.
  int64_t tapsOf(int64_t phase) const {
    return phase < kernel ? (kernel - phase + stride - 1) / stride : 0;
  }
  /// The first q of a phase that is in y, and how many are.
  int64_t first(int64_t phase) const {
    return pad > phase ? (pad - phase + stride - 1) / stride : 0;
  }
  int64_t count(int64_t phase) const {
    // q at and behind it is not
    const int64_t end = out + pad > phase ? (out + pad - phase + stride - 1) / stride : 0;
    return std::max<int64_t>(0, end - first(phase));
  }
};

/// Vectors of as many pieces of `piece` lanes as there are vectors: piece k of vector i and piece i
/// of vector k change places.
void turn(Builder& b, Values& v, int piece) {
  const auto pieces = static_cast<int>(v.size());
  for (int step = 1; step < pieces; step *= 2)
    for (int i = 0; i < pieces; ++i) {
      if (i & step) continue;
      std::vector<int> first, second; // lanes of v[i], then of v[i + step]
      for (int k = 0; k < pieces; ++k)
        for (int lane = 0; lane < piece; ++lane) {
          first.push_back((k & step ? pieces + k - step : k) * piece + lane);
          second.push_back((k & step ? pieces + k : k + step) * piece + lane);
        }
      Value &a = v[static_cast<size_t>(i)], &c = v[static_cast<size_t>(i + step)];
      const Value even = b.shuffle(a, c, first), odd = b.shuffle(a, c, second);
      a = even;
      c = odd;
    }
}

} // namespace

bool emitConvTransposed(Lowering& lowering, const Operand& w, const Conv2d& g,
                        const cdl_expr_t* epilogue, const std::vector<std::optional<Image>>& views,
                        const Image& x, const Image& y, std::string& why) {
  if (x.isBlocked || y.isBlocked || w.rank != 4 || w.channelsLast)
    return why = "the layouts of a transposed one", false;
  if (g.dilation[0] != 1 || g.dilation[1] != 1) return why = "dilations of a transposed one", false;
  const Way down(w.dims[2], g.stride[0], g.begin[0], x.h, y.h),
      across(w.dims[3], g.stride[1], g.begin[1], x.w, y.w);
  const int64_t ins = x.c / g.group, outs = y.c / g.group, phases = down.stride * across.stride;

  // Channels of y in a panel: all phases of some side by side, or one phase of as many as it holds.
  const bool isShared = kPanel % phases == 0;
  const int64_t held = isShared ? kPanel / phases : kPanel, perPhase = (outs + held - 1) / held;
  Contraction c;
  c.batch = y.n;
  c.groups = g.group;
  c.panels = isShared ? perPhase : perPhase * phases;
  c.rows = down.grid;
  c.columns = across.grid;

  const int64_t channel = kPanel, tapColumn = ins * channel, tapRow = across.taps * tapColumn;
  const int64_t panel = down.taps * tapRow;
  const int64_t laneStep = isShared ? phases : 1;
  const auto placeOf = [&](int64_t phase) { return isShared ? phase : phase * perPhase * panel; };
  std::vector<Piece> pieces;
  for (int64_t phase = 0; phase < phases; ++phase) {
    const int64_t r = phase / across.stride, s = phase % across.stride, rows = down.tapsOf(r),
                  columns = across.tapsOf(s);
    // the last tap meets the first element
    const auto piece = [&](int64_t first, int64_t count, int64_t lanes) {
      pieces.push_back({{g.group, count, lanes, rows, columns, ins},
                        {ins * w.strides[0], held * w.strides[1], w.strides[1],
                         -down.stride * w.strides[2], -across.stride * w.strides[3], w.strides[0]},
                        {c.panels * panel, panel, laneStep, tapRow, tapColumn, channel},
                        first * held * w.strides[1] +
                            ((rows - 1) * down.stride + r) * w.strides[2] +
                            ((columns - 1) * across.stride + s) * w.strides[3],
                        placeOf(phase) + first * panel + (down.taps - rows) * tapRow +
                            (across.taps - columns) * tapColumn});
    };
    piece(0, outs / held, held);
    piece(outs / held, outs % held ? 1 : 0, outs % held);
  }
  std::erase_if(pieces, [](const Piece& piece) {
    return std::ranges::find(piece.dims, 0) != piece.dims.end();
  });
  c.b = packed(lowering, w, g.group * c.panels * panel, pieces);
  c.bGroup = c.panels * panel * 4;
  c.bPanel = panel * 4;

  const int64_t begin[] = {down.taps - 1, across.taps - 1},
                end[] = {down.grid - x.h, across.grid - x.w};
  const Image from = bordered(lowering, x, begin, end, 0);
  c.a = from.plane(ins);
  c.a.panel = c.a.lane = 0;
  c.axes = {{down.taps, from.view.bytes(from.row), tapRow * 4},
            {across.taps, from.view.bytes(from.column), tapColumn * 4},
            {ins, from.view.bytes(from.lane), channel * 4}};
  if (down.taps == 1 && across.taps == 1 && c.a.row == c.columns * c.a.column) {
    c.columns *= c.rows;
    c.rows = 1;
  }

  // Sums: [batch][group][panel][row][column][lane], as many lanes as there are.
  const int64_t lanes = c.panels == 1 ? (outs - 1) * laneStep + (isShared ? phases : 1) : kPanel;
  const int64_t row = across.grid * lanes, area = down.grid * row, groupArea = c.panels * area,
                batchArea = g.group * groupArea;
  const Arg sums = lowering.scratch(static_cast<uint64_t>(y.n * batchArea) * 4);
  c.lastLanes = static_cast<int>(lanes);
  c.y = {CDL_F32,   sums, batchArea * 4, groupArea * 4, area * 4, c.columns * lanes * 4,
         lanes * 4, 4};
  emitContraction(lowering, c);

  // All phases of a panel at once, where the phases of a row are neighbours in y and in the sums.
  const auto isRow = [&](const Image& image, bool orOne) {
    return image.view.bytes(image.column) == cdl_elem_bits(image.view.elem) / 8 ||
           (orOne && image.column == 0);
  };
  bool isWoven = isShared && lanes == kPanel && !down.pad && !across.pad &&
                 !(down.out % down.stride) && !(across.out % across.stride) && isRow(y, false);
  for (const auto& view : views) isWoven = isWoven && (!view || isRow(*view, true));
  const int64_t together = kPanel / across.stride; // columns of the sums that make a vector of y
  const int64_t woven = isWoven ? across.count(0) / together * together : 0;
  const auto weave = [&](int64_t first, int64_t count, int64_t some) {
    if (count == 0 || some == 0 || woven == 0) return;
    std::vector<const Image*> images = {&y};
    Key key("weave");
    key << y.n << g.group << outs << count << some << down.stride << across.stride << down.count(0)
        << woven << batchArea << groupArea << area << row;
    if (epilogue) key << exprKey(lowering, *epilogue);
    for (const auto& view : views)
      if (view) images.push_back(&*view);
    for (size_t i = 0; i < views.size(); ++i)
      if (views[i]) key << static_cast<int64_t>(i);
    std::vector<Arg> args = {sums};
    args[0].offset += first * area * 4;
    for (const Image* image : images) {
      key << image->view.elem << image->batch << image->lane << image->row << image->column;
      args.push_back(image->view.at);
      args.back().offset += image->view.bytes(first * held * image->lane);
    }
    const int64_t rows = down.count(0);
    lowering.call(
        key.text(), static_cast<uint64_t>(y.n * g.group * count * rows), args, [&](Builder& b) {
          b.loop(b.begin(), b.end(), 1, [&](Value unit) {
            Value rest = unit;
            const auto next = [&](int64_t extent) {
              const Value index = b.rem(rest, b.i64(extent), false);
              rest = b.div(rest, b.i64(extent), false);
              return index;
            };
            const Value q = next(rows), panelIndex = next(count), group = next(g.group),
                        batch = rest;
            const auto moved = [&](Value at, Value index, int64_t bytes) {
              return b.at(at, b.mul(index, b.i64(bytes)));
            };
            const Value from =
                moved(moved(moved(moved(b.arg(0), batch, batchArea * 4), group, groupArea * 4),
                            panelIndex, area * 4),
                      q, row * 4);
            Values bases;
            for (size_t i = 0; i < images.size(); ++i) {
              const Image& image = *images[i];
              Value at =
                  moved(b.arg(static_cast<int>(i + 1)), batch, image.view.bytes(image.batch));
              at = moved(at, group, image.view.bytes(outs * image.lane));
              at = moved(at, panelIndex, image.view.bytes(held * image.lane));
              bases.push_back(moved(at, q, image.view.bytes(down.stride * image.row)));
            }
            b.loop(b.i64(0), b.i64(woven), together, [&](Value column) {
              Values v;
              for (int64_t k = 0; k < together; ++k)
                v.push_back(
                    b.load(Ty::F32, kPanel, moved(from, column, kPanel * 4), k * kPanel * 4));
              turn(b, v, static_cast<int>(across.stride));
              for (int64_t k = 0; k < some * down.stride; ++k) {
                const int64_t channelOf = k / down.stride, rowOf = k % down.stride;
                const auto place = [&](size_t i) {
                  const Image& image = *images[i];
                  const Value at =
                      moved(bases[i], column, image.view.bytes(across.stride * image.column));
                  return b.at(at, image.view.bytes(channelOf * image.lane + rowOf * image.row));
                };
                Typed result{v[static_cast<size_t>(k)], CDL_F32};
                if (epilogue) {
                  std::vector<Typed> byIndex(views.size());
                  size_t image = 0;
                  for (size_t i = 0; i < views.size(); ++i) {
                    if (!views[i]) continue;
                    Ty ty = Ty::F32;
                    typeOf(views[i]->view.elem, ty);
                    const int64_t step = views[i]->view.bytes(views[i]->column);
                    byIndex[i] = {b.loadStrided(ty, kPanel, place(++image), step),
                                  views[i]->view.elem};
                  }
                  result = computeExpr(b, lowering.image, *epilogue, byIndex, &result);
                }
                b.store(b.splat(result.value, kPanel), place(0));
              }
            });
          });
        });
  };
  if (isWoven) weave(0, outs / held, held), weave(outs / held, outs % held ? 1 : 0, outs % held);

  // What is left, each phase to its places.
  const auto finish = [&](int64_t phase, int64_t first, int64_t count, int64_t some) {
    const int64_t r = phase / across.stride, s = phase % across.stride;
    const std::vector<int64_t> dims = {y.n,  g.group,       count,
                                       some, down.count(r), across.count(s) - woven};
    const auto of = [&](const Image& image) {
      return restrided(
          image.view, dims,
          {image.batch, outs * image.lane, held * image.lane, image.lane, down.stride * image.row,
           across.stride * image.column},
          first * held * image.lane + (down.first(r) * down.stride + r - down.pad) * image.row +
              ((across.first(s) + woven) * across.stride + s - across.pad) * image.column);
    };
    if (std::ranges::find(dims, 0) != dims.end()) return;
    const Operand acc = restrided(view(CDL_F32, {}, {}, sums), dims,
                                  {batchArea, groupArea, area, laneStep, row, lanes},
                                  (isShared ? phase : phase * perPhase * area) + first * area +
                                      down.first(r) * row + (across.first(s) + woven) * lanes);
    if (!epilogue) return copy(lowering, acc, of(y));
    std::vector<Operand> read = {acc};
    for (const auto& view : views)
      if (view) read.push_back(of(*view));
    map(lowering, "conv " + exprKey(lowering, *epilogue), read, of(y),
        [&](Builder& b, const std::vector<Typed>& loaded) {
          std::vector<Typed> byIndex(views.size());
          for (size_t i = 0, next = 1; i < views.size(); ++i)
            if (views[i]) byIndex[i] = loaded[next++];
          return computeExpr(b, lowering.image, *epilogue, byIndex, &loaded[0]);
        });
  };
  for (int64_t phase = 0; phase < phases; ++phase) {
    finish(phase, 0, outs / held, held);
    finish(phase, outs / held, outs % held ? 1 : 0, outs % held);
  }
  return true;
}

} // namespace cpu
