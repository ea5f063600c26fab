// CONV2D transposed, by phases: y at stride * q + phase - pad sums what the taps of that phase
// (every stride-th) give of x at q and before. So it is one convolution with stride 1 of as many
// channels as there are phases times channels of y, whose results then go each to its place,
// through the epilogue. No zero is inserted, and none multiplied but where a kernel is no multiple
// of its stride. (The decomposition is known as sub-pixel convolution: Shi et al., "Is the
// deconvolution layer the same as a convolutional layer?", arXiv:1609.07009.)
#include "contraction.hpp"
#include "elementwise.hpp"
#include "image.hpp"
#include "instructions.hpp"

#include <algorithm>

namespace cpu {

namespace {

/// A spatial dim: kernel and stride, taps of a phase (the most that any has), and the grid of q.
struct PhaseAxis {
  int64_t kernel, stride, pad, out, taps, grid;

  PhaseAxis(int64_t kernel, int64_t stride, int64_t pad, int64_t in, int64_t out)
      : kernel(kernel), stride(stride), pad(pad), out(out), taps((kernel + stride - 1) / stride),
        grid(std::max(in + taps - 1, (out + pad + stride - 1) / stride)) {}

  /// How many taps a phase has.
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

/// Transposes vectors of as many pieces of `piece` lanes as there are vectors: piece k of vector i
/// and piece i of vector k change places.
void transposePieces(Builder& b, Values& v, int piece) {
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
      Value &low = v[static_cast<size_t>(i)], &high = v[static_cast<size_t>(i + step)];
      const Value even = b.shuffle(low, high, first);
      const Value odd = b.shuffle(low, high, second);
      low = even;
      high = odd;
    }
}

/// The sums of all phases in memory, [batch][group][panel][row][column][lane]: steps in elements.
struct PhaseSums {
  Arg at;
  int64_t lanes = 0, row = 0, area = 0, group = 0, batch = 0;
};

class TransposedConv {
public:
  TransposedConv(Lowering& lowering, const Operand& w, const Conv2d& conv,
                 const ImageEpilogue& epilogue, const ImageView& x, const ImageView& y)
      : lowering_(lowering), w_(w), conv_(conv), epilogue_(epilogue), x_(x), y_(y),
        down_(w.dims[2], conv.stride[0], conv.begin[0], x.h, y.h),
        across_(w.dims[3], conv.stride[1], conv.begin[1], x.w, y.w), ins_(x.c / conv.group),
        outs_(y.c / conv.group), phases_(down_.stride * across_.stride),
        sharesPanels_(kPanel % phases_ == 0), held_(sharesPanels_ ? kPanel / phases_ : kPanel),
        perPhase_((outs_ + held_ - 1) / held_), laneStep_(sharesPanels_ ? phases_ : 1) {}

  void emit() {
    sum();
    woven_ = wovenColumns();
    const std::vector<PanelRun> runs = panelRuns(outs_, held_);
    if (woven_)
      for (const PanelRun& run : runs) weave(run);
    for (int64_t phase = 0; phase < phases_; ++phase)
      for (const PanelRun& run : runs) scatter(phase, run);
  }

private:
  int64_t panels() const { return sharesPanels_ ? perPhase_ : perPhase_ * phases_; }

  /// The convolution with stride 1 of all phases.
  void sum() {
    Contraction c;
    c.batch = y_.n;
    c.groups = conv_.group;
    c.panels = panels();
    c.rows = down_.grid;
    c.columns = across_.grid;

    const int64_t channel = kPanel;
    const int64_t tapColumn = ins_ * channel;
    const int64_t tapRow = across_.taps * tapColumn;
    const int64_t panel = down_.taps * tapRow;
    c.b = packed(lowering_, w_, conv_.group * c.panels * panel, pieces(tapRow, tapColumn));
    c.bGroup = c.panels * panel * 4;
    c.bPanel = panel * 4;

    const int64_t begin[] = {down_.taps - 1, across_.taps - 1};
    const int64_t end[] = {down_.grid - x_.h, across_.grid - x_.w};
    const ImageView from = bordered(lowering_, x_, begin, end, 0);
    c.a = from.plane(ins_);
    c.a.panel = 0;
    c.a.lane = 0;
    const Operand& view = from.view;
    const SumAxis down{.count = down_.taps, .a = view.bytes(from.row), .b = tapRow * 4};
    const SumAxis across{.count = across_.taps, .a = view.bytes(from.column), .b = tapColumn * 4};
    const SumAxis channels{.count = ins_, .a = view.bytes(from.lane), .b = channel * 4};
    c.axes = {down, across, channels};
    if (down_.taps == 1 && across_.taps == 1 && c.a.row == c.columns * c.a.column) {
      c.columns *= c.rows;
      c.rows = 1;
    }

    placeSums(c.panels);
    c.lastLanes = static_cast<int>(sums_.lanes);
    c.y = {.elem = CDL_F32,
           .at = sums_.at,
           .batch = sums_.batch * 4,
           .group = sums_.group * 4,
           .panel = sums_.area * 4,
           .row = c.columns * sums_.lanes * 4,
           .column = sums_.lanes * 4,
           .lane = 4};
    emitContraction(lowering_, c);
  }

  /// The weights of each phase in its panels; its last tap meets the first element.
  std::vector<PackedPiece> pieces(int64_t tapRow, int64_t tapColumn) const {
    const int64_t panel = down_.taps * tapRow;
    std::vector<PackedPiece> found;
    for (int64_t phase = 0; phase < phases_; ++phase) {
      const int64_t r = phase / across_.stride, s = phase % across_.stride;
      const int64_t rows = down_.tapsOf(r), columns = across_.tapsOf(s);
      if (rows == 0 || columns == 0 || ins_ == 0) continue;
      for (const PanelRun& run : panelRuns(outs_, held_))
        found.push_back(
            {.dims = {conv_.group, run.count, run.lanes, rows, columns, ins_},
             .srcStrides = {ins_ * w_.strides[0], held_ * w_.strides[1], w_.strides[1],
                            -down_.stride * w_.strides[2], -across_.stride * w_.strides[3],
                            w_.strides[0]},
             .dstStrides = {panels() * panel, panel, laneStep_, tapRow, tapColumn, kPanel},
             .src = run.first * held_ * w_.strides[1] +
                    ((rows - 1) * down_.stride + r) * w_.strides[2] +
                    ((columns - 1) * across_.stride + s) * w_.strides[3],
             .dst = (sharesPanels_ ? phase : phase * perPhase_ * panel) + run.first * panel +
                    (down_.taps - rows) * tapRow + (across_.taps - columns) * tapColumn});
    }
    return found;
  }

  /// Places the sums; as many lanes of a panel lie in memory as there are.
  void placeSums(int64_t panels) {
    sums_.lanes = kPanel;
    if (panels == 1) sums_.lanes = (outs_ - 1) * laneStep_ + (sharesPanels_ ? phases_ : 1);
    sums_.row = across_.grid * sums_.lanes;
    sums_.area = down_.grid * sums_.row;
    sums_.group = panels * sums_.area;
    sums_.batch = conv_.group * sums_.group;
    sums_.at = lowering_.scratch(static_cast<uint64_t>(y_.n * sums_.batch) * 4);
  }

  /// The columns of the sums from which all phases of a panel go to y at once: where the phases of
  /// a row are neighbours in y and in the sums. 0 where they are not.
  int64_t wovenColumns() const {
    const auto isRow = [](const ImageView& image) {
      return image.view.bytes(image.column) == cdl_elem_bits(image.view.elem) / 8;
    };
    const bool isWhole = !(down_.out % down_.stride) && !(across_.out % across_.stride);
    if (!sharesPanels_ || sums_.lanes != kPanel || down_.pad || across_.pad || !isWhole ||
        !isRow(y_))
      return 0;
    for (const auto& view : epilogue_.views)
      if (view && !isRow(*view) && view->column != 0) return 0;
    return across_.count(0) / together() * together();
  }

  /// The columns of the sums that make a vector of y.
  int64_t together() const { return kPanel / across_.stride; }

  /// What a woven kernel writes and reads beside the sums: y, then the epilogue's images.
  std::vector<const ImageView*> wovenImages() const {
    std::vector<const ImageView*> images = {&y_};
    for (const auto& view : epilogue_.views)
      if (view) images.push_back(&*view);
    return images;
  }

  void weave(const PanelRun& run) {
    const std::vector<const ImageView*> images = wovenImages();
    const int64_t rows = down_.count(0);
    Key key("weave");
    key << y_.n << conv_.group << outs_ << run.count << run.lanes << down_.stride << across_.stride
        << rows << woven_ << sums_.batch << sums_.group << sums_.area << sums_.row;
    if (epilogue_.expr) key << exprKey(lowering_, *epilogue_.expr);
    for (size_t i = 0; i < epilogue_.views.size(); ++i)
      if (epilogue_.views[i]) key << static_cast<int64_t>(i);
    std::vector<Arg> args = {sums_.at};
    args[0].offset += run.first * sums_.area * 4;
    for (const ImageView* image : images) {
      key << image->view.elem << image->batch << image->lane << image->row << image->column;
      args.push_back(image->view.at);
      args.back().offset += image->view.bytes(run.first * held_ * image->lane);
    }
    const auto units = static_cast<uint64_t>(y_.n * conv_.group * run.count * rows);
    lowering_.call(key.text(), units, args, [&](Builder& b) {
      b.loop(b.begin(), b.end(), 1, [&](Value unit) { weaveRow(b, unit, run, images); });
    });
  }

  /// Writes one row of q of a panel: all phases of its channels, in rows of y.
  void weaveRow(Builder& b, Value unit, const PanelRun& run,
                const std::vector<const ImageView*>& images) const {
    Value rest = unit;
    const auto next = [&](int64_t extent) {
      const Value index = b.remainder(rest, extent);
      rest = b.quotient(rest, extent);
      return index;
    };
    const Value q = next(down_.count(0)), panelIndex = next(run.count), group = next(conv_.group);
    const Value batch = rest;
    Value from = b.at(b.arg(0), batch, sums_.batch * 4);
    from = b.at(from, group, sums_.group * 4);
    from = b.at(from, panelIndex, sums_.area * 4);
    from = b.at(from, q, sums_.row * 4);
    Values bases;
    for (size_t i = 0; i < images.size(); ++i) {
      const ImageView& image = *images[i];
      Value at = b.at(b.arg(static_cast<int>(i + 1)), batch, image.view.bytes(image.batch));
      at = b.at(at, group, image.view.bytes(outs_ * image.lane));
      at = b.at(at, panelIndex, image.view.bytes(held_ * image.lane));
      bases.push_back(b.at(at, q, image.view.bytes(down_.stride * image.row)));
    }
    b.loop(b.i64(0), b.i64(woven_), together(), [&](Value column) {
      Values v;
      for (int64_t k = 0; k < together(); ++k)
        v.push_back(b.load(Ty::F32, kPanel, b.at(from, column, kPanel * 4), k * kPanel * 4));
      transposePieces(b, v, static_cast<int>(across_.stride));
      for (int64_t k = 0; k < run.lanes * down_.stride; ++k)
        writeWoven(b, v[static_cast<size_t>(k)], k, column, bases, images);
    });
  }

  /// A vector of neighbours in y, of row and channel number k of a panel, through the epilogue.
  void writeWoven(Builder& b, Value sum, int64_t k, Value column, const Values& bases,
                  const std::vector<const ImageView*>& images) const {
    const int64_t channel = k / down_.stride, row = k % down_.stride;
    const auto place = [&](size_t i) {
      const ImageView& image = *images[i];
      const Value at = b.at(bases[i], column, image.view.bytes(across_.stride * image.column));
      return b.at(at, image.view.bytes(channel * image.lane + row * image.row));
    };
    Typed result{sum, CDL_F32};
    if (epilogue_.expr) {
      std::vector<Typed> byIndex(epilogue_.views.size());
      size_t image = 0;
      for (size_t i = 0; i < byIndex.size(); ++i) {
        const std::optional<ImageView>& read = epilogue_.views[i];
        if (!read) continue;
        const int64_t step = read->view.bytes(read->column);
        byIndex[i] = {b.loadStrided(tyOf(read->view.elem), kPanel, place(++image), step),
                      read->view.elem};
      }
      result = computeExpr(b, lowering_.image, *epilogue_.expr, byIndex, &result);
    }
    b.store(b.splat(result.value, kPanel), place(0));
  }

  /// What is not woven of a phase, each result to its place.
  void scatter(int64_t phase, const PanelRun& run) {
    const int64_t r = phase / across_.stride, s = phase % across_.stride;
    const std::vector<int64_t> dims = {y_.n,      conv_.group,    run.count,
                                       run.lanes, down_.count(r), across_.count(s) - woven_};
    if (std::ranges::find(dims, 0) != dims.end()) return;
    const int64_t firstRow = down_.first(r), firstColumn = across_.first(s) + woven_;
    const auto placed = [&](const ImageView& image) {
      const int64_t row = firstRow * down_.stride + r - down_.pad;
      const int64_t column = firstColumn * across_.stride + s - across_.pad;
      return restrided(image.view, dims,
                       {image.batch, outs_ * image.lane, held_ * image.lane, image.lane,
                        down_.stride * image.row, across_.stride * image.column},
                       run.first * held_ * image.lane + row * image.row + column * image.column);
    };
    const int64_t first = (sharesPanels_ ? phase : phase * perPhase_ * sums_.area) +
                          run.first * sums_.area + firstRow * sums_.row + firstColumn * sums_.lanes;
    const Operand acc =
        restrided(view(CDL_F32, {}, {}, sums_.at), dims,
                  {sums_.batch, sums_.group, sums_.area, laneStep_, sums_.row, sums_.lanes}, first);
    epilogue_.apply(lowering_, acc, y_, placed);
  }

  Lowering& lowering_;
  const Operand& w_;
  const Conv2d& conv_;
  const ImageEpilogue& epilogue_;
  const ImageView &x_, &y_;
  const PhaseAxis down_, across_;
  const int64_t ins_, outs_; // channels per group
  const int64_t phases_;
  // Channels of y in a panel: all phases of some side by side, or one phase of as many as it holds.
  const bool sharesPanels_;
  const int64_t held_, perPhase_; // channels per panel, panels per phase
  const int64_t laneStep_;        // between channels of a panel
  PhaseSums sums_;
  int64_t woven_ = 0;
};

} // namespace

bool emitConvTransposed(Lowering& lowering, const Operand& w, const Conv2d& conv,
                        const ImageEpilogue& epilogue, const ImageView& x, const ImageView& y,
                        std::string& why) {
  if (x.isBlocked || y.isBlocked || w.rank != 4 || w.channelsLast)
    return refuse(why, "the layouts of a transposed one");
  if (conv.dilation[0] != 1 || conv.dilation[1] != 1)
    return refuse(why, "dilations of a transposed one");
  TransposedConv(lowering, w, conv, epilogue, x, y).emit();
  return true;
}

} // namespace cpu
