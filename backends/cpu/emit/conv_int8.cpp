// CONV2D on integers. Channels four by four meet in dot products, so x lies with its channels
// innermost: as it comes, or copied so once; where the result lies so too, sums end where they
// belong. What zero points and signs add to a sum is folded into a constant per output channel
// (Jacob et al., "Quantization and training of neural networks for efficient
// integer-arithmetic-only inference", CVPR 2018, section 2.3); a border that holds x's zero point
// makes that exact everywhere.
#include "depthwise_int8.hpp"
#include "elementwise.hpp"
#include "image.hpp"
#include "instructions.hpp"
#include "requantize.hpp"

#include <algorithm>

namespace cpu {

namespace {

int64_t roundUp(int64_t value, int64_t to) { return (value + to - 1) / to * to; }

/// Lays out x with a border of `value` and its channels innermost, `channels` of them per group in
/// memory (those beyond the real ones hold `value` too).
ImageView channelsInnermost(Lowering& lowering, const ImageView& x, int64_t groups,
                            int64_t channels, const int64_t begin[2], const int64_t end[2],
                            uint64_t value) {
  const int64_t ins = x.c / groups;
  const bool hasBorder = begin[0] || begin[1] || end[0] || end[1];
  if (x.lane == 1 && !x.isBlocked && channels == ins && x.column % 4 == 0)
    if (const auto inside = insideHalo(x, begin, end, value)) return *inside;
  ImageView to = x;
  to.isBlocked = false;
  to.h += begin[0] + end[0];
  to.w += begin[1] + end[1];
  to.c = groups * channels;
  to.lane = 1;
  to.block = kPanel;
  to.column = to.c;
  to.row = to.w * to.column;
  to.batch = to.h * to.row;
  const int64_t count = to.n * to.batch;
  to.view = view(x.view.elem, {}, {}, lowering.scratch(static_cast<uint64_t>(count) + 64));
  to.view.elem = x.view.elem;
  to.view.rank = 4;
  if (hasBorder || channels != ins) fill(lowering, restrided(to.view, {count}, {1}), value);
  const int64_t lanes = x.isBlocked ? kPanel : ins;
  const int64_t blocks = x.isBlocked ? ins / kPanel : 1;
  const int64_t group = x.isBlocked ? blocks * x.block : ins * x.lane;
  copy(lowering,
       restrided(x.view, {x.n, x.h, x.w, groups, blocks, lanes},
                 {x.batch, x.row, x.column, group, x.block, x.lane}),
       restrided(to.view, {x.n, x.h, x.w, groups, blocks, lanes},
                 {to.batch, to.row, to.column, channels, kPanel, 1},
                 begin[0] * to.row + begin[1] * to.column));
  return to;
}

/// Any integer convolution, widened to i32 before it multiplies: results along a row are the lanes.
struct WidenedConv {
  const ImageView& x; // with its border
  const Operand& w;
  const ImageView& y;
  const Conv2d& conv;
  const Operand* wZero; // null: 0
  int64_t xZero;

  void emit(Lowering& lowering) const {
    std::vector<Arg> args = {x.view.at, w.at, y.view.at};
    if (wZero) args.push_back(wZero->at);
    const auto lanes = static_cast<int>(std::min<int64_t>(lowering.isa.lanes(4), y.w));
    lowering.call(key().text(), static_cast<uint64_t>(y.n * y.c * y.h), args,
                  [&](Builder& b) { write(b, lanes); });
  }

private:
  /// What a unit, a row of results of one channel, begins with: addresses, and the zero point of
  /// its weights.
  struct Row {
    Value x, weights, y, zero;
  };

  Key key() const {
    Key key("widened conv");
    key << x.view.elem << x.c << x.batch << x.lane << x.row << x.column << y.n << y.c << y.h << y.w
        << y.batch << y.lane << y.row << y.column << xZero << conv.group << conv.stride[0]
        << conv.stride[1] << conv.dilation[0] << conv.dilation[1]
        << (wZero ? wZero->elements() : 0);
    key << (wZero ? wZero->strides[0] : 0) << w.elem;
    for (int d = 0; d < 4; ++d) key << w.dims[d] << w.strides[d];
    return key;
  }

  void write(Builder& b, int lanes) const {
    b.loop(b.begin(), b.end(), 1, [&](Value unit) {
      const Row row = rowOf(b, unit);
      const int64_t whole = y.w / lanes * lanes;
      b.loop(b.i64(0), b.i64(whole), lanes,
             [&](Value column) { writeResults(b, row, column, lanes); });
      if (whole < y.w)
        b.loop(b.i64(whole), b.i64(y.w), 1, [&](Value column) { writeResults(b, row, column, 1); });
    });
  }

  Row rowOf(Builder& b, Value unit) const {
    const int64_t outs = y.c / conv.group, ins = w.dims[1];
    const Value row = b.remainder(unit, y.h), rest = b.quotient(unit, y.h);
    const Value out = b.remainder(rest, y.c), batch = b.quotient(rest, y.c);
    Row at;
    at.x = moved(b,
                 moved(b, moved(b, b.arg(0), batch, bytes(x, x.batch)), b.quotient(out, outs),
                       bytes(x, ins * x.lane)),
                 row, bytes(x, conv.stride[0] * x.row));
    at.weights = moved(b, b.arg(1), out, w.bytes(w.strides[0]));
    at.y = moved(b, moved(b, moved(b, b.arg(2), batch, bytes(y, y.batch)), out, bytes(y, y.lane)),
                 row, bytes(y, y.row));
    at.zero = b.i32(0);
    if (!wZero) return at;
    const bool isOne = wZero->elements() == 1;
    const Value zeroAt =
        isOne ? b.arg(3) : moved(b, b.arg(3), out, wZero->bytes(wZero->strides[0]));
    at.zero = widened(b, wZero->elem, 1, zeroAt, 0);
    return at;
  }

  /// Writes `width` neighbours of a row from `column` on.
  void writeResults(Builder& b, const Row& row, Value column, int width) const {
    const Values zero = {b.zero(Ty::I32, width)};
    const Values sum = b.loop(w.dims[1], zero, [&](Value channel, const Values& channels) {
      return b.loop(w.dims[2], channels, [&](Value down, const Values& rows) {
        return b.loop(w.dims[3], rows, [&](Value across, const Values& taps) {
          const int64_t step = bytes(x, conv.stride[1] * x.column);
          Value at = moved(b, moved(b, row.x, channel, bytes(x, x.lane)), down,
                           bytes(x, conv.dilation[0] * x.row));
          at = moved(b, moved(b, at, across, bytes(x, conv.dilation[1] * x.column)), column, step);
          const Value v =
              b.sub(widened(b, x.view.elem, width, at, step), b.i32(static_cast<int32_t>(xZero)));
          const Value wAt = moved(b,
                                  moved(b, moved(b, row.weights, channel, w.bytes(w.strides[1])),
                                        down, w.bytes(w.strides[2])),
                                  across, w.bytes(w.strides[3]));
          return Values{b.add(taps[0], b.mul(v, b.sub(widened(b, w.elem, 1, wAt, 0), row.zero)))};
        });
      });
    });
    b.storeStrided(sum[0], moved(b, row.y, column, bytes(y, y.column)), bytes(y, y.column));
  }

  static int64_t bytes(const ImageView& image, int64_t elements) {
    return image.view.bytes(elements);
  }
  static Value moved(Builder& b, Value base, Value index, int64_t step) {
    return b.at(base, b.mul(index, b.i64(step)));
  }
  static Value widened(Builder& b, uint8_t elem, int width, Value at, int64_t stride) {
    return b.cast(b.loadStrided(Ty::I8, width, at, stride), Ty::I32, isSignedElem(elem));
  }
};

/// The weights w[O, I, KH, KW], or in a layout {o/16, kh, kw, i/4, o%16, i%4}.
struct Weights {
  Operand view;
  const char* payload = nullptr; // null: no constant
  bool isPacked = false;
  int64_t ins = 0, kernel[2] = {1, 1}; // ins: per group, in a layout rounded up to fours

  int8_t at(int64_t o, int64_t i, int64_t r, int64_t s) const {
    const int64_t* by = view.strides;
    const int64_t offset = isPacked ? o / kPanel * by[0] + r * by[1] + s * by[2] + i / 4 * by[3] +
                                          o % kPanel * by[4] + i % 4 * by[5]
                                    : o * by[0] + i * by[1] + r * by[2] + s * by[3];
    return static_cast<int8_t>(payload[offset]);
  }
  int64_t sumOf(int64_t o) const {
    int64_t sum = 0;
    for (int64_t i = 0; i < ins; ++i)
      for (int64_t r = 0; r < kernel[0]; ++r)
        for (int64_t s = 0; s < kernel[1]; ++s) sum += at(o, i, r, s);
    return sum;
  }
};

std::optional<Weights> weightsOf(const Lowering& lowering, const Operand& view) {
  Weights w;
  w.view = view;
  w.payload = payloadOf(lowering, view);
  w.isPacked = view.rank == 6;
  if (view.rank != 4 && !(w.isPacked && w.payload && view.isDense())) return std::nullopt;
  w.ins = w.isPacked ? view.dims[3] * 4 : view.dims[1];
  for (int d = 0; d < 2; ++d) w.kernel[d] = view.dims[d + (w.isPacked ? 1 : 2)];
  return w;
}

class ConvInt8 {
public:
  ConvInt8(Lowering& lowering, const cdl_instr_t& instr, const Conv2d& g)
      : lowering_(lowering), g_(g), in_(operandsOf(lowering, instr)), sums_(in_.back()),
        operands_(cdl_operand_count(lowering.image, &instr)),
        epilogue_{.expr = instr.expr ? cdl_get_expr(lowering.image, instr.expr) : nullptr,
                  .views = std::vector<std::optional<ImageView>>(in_.size() - 1)} {}

  bool emit(std::string& why) {
    const std::optional<ImageView> x = imageOf(in_[0]), y = imageOf(sums_);
    const std::optional<Weights> w = weightsOf(lowering_, in_[1]);
    if (in_[1].elem != CDL_I8 || (sums_.elem != CDL_I32 && !epilogue_.expr))
      return refuse(why, "its element types");
    if (!x || !y || !w || y->isBlocked) return refuse(why, "its layouts");
    x_ = *x;
    y_ = *y;
    w_ = *w;
    for (size_t i = operands_; i < epilogue_.views.size(); ++i)
      if (!(epilogue_.views[i] = imageOf(in_[i])) || epilogue_.views[i]->isBlocked ||
          in_[i].channelsLast != sums_.channelsLast)
        return refuse(why, "the layout of what its epilogue reads");
    if (operands_ > 2 && !knownInteger(lowering_, in_[2], xZero_))
      return refuse(why, "a zero point that is no constant");
    outs_ = y_.c / g_.group;
    panels_ = (outs_ + kPanel - 1) / kPanel;
    int64_t wZero = 0;
    const bool symmetric = operands_ < 4 || (in_[3].elements() == 1 &&
                                             knownInteger(lowering_, in_[3], wZero) && wZero == 0);
    const bool isDepthwise = w_.ins == 1 && outs_ == 1 && g_.group > 1;
    // Groups that end within a block: only those of whole fours can be dot products.
    splitsBlocks_ = x_.isBlocked && w_.ins % kPanel != 0;
    joinsTaps_ =
        !w_.isPacked && w_.ins % 4 != 0 && g_.group == 1 && g_.dilation[1] == 1 && w_.kernel[1] > 1;
    const int64_t run = w_.ins * g_.group * (joinsTaps_ ? w_.kernel[1] : 1);
    const bool hasDots = isDepthwise ? sums_.channelsLast && x_.lane == 1
                                     : run >= 4 && !(w_.ins == 1 && g_.group > 1) &&
                                           !(splitsBlocks_ && w_.ins % 4 != 0);
    if (!w_.payload || !symmetric || !hasDots) {
      widened();
      return true;
    }
    // A constant bias joins the constant of each channel, and then a RESCALE that ends the
    // epilogue, or stands behind the instruction, joins the kernel.
    const int channelDim = sums_.channelsLast ? 3 : 1;
    cdl_expr_t rest = epilogue_.expr ? *epilogue_.expr : cdl_expr_t{};
    if (epilogue_.expr)
      follower_ = followerInEpilogue(lowering_, lowering_.instr(), rest, in_, channelDim,
                                     sums_.channelsLast);
    if (follower_) --rest.steps;
    bias_ = rest.steps ? constantBias(lowering_, rest, in_, channelDim, y_.c)
                       : std::vector<int32_t>(static_cast<size_t>(y_.c), 0);
    if (!bias_)
      follower_.reset();
    else if (!follower_)
      follower_ = followerOf(lowering_, lowering_.instr(), sums_, channelDim, sums_.channelsLast);
    c_.batch = y_.n;
    c_.rows = y_.h;
    c_.columns = y_.w;
    c_.factors = Factors::BYTES;
    c_.aIsSigned = in_[0].elem == CDL_I8;
    c_.accElem = CDL_I32;
    isDepthwise ? depthwise() : dots();
    return true;
  }

private:
  uint64_t border() const { return static_cast<uint64_t>(xZero_) & 0xff; }

  void widened() {
    const ImageView x = x_.isBlocked
                            ? channelsInnermost(lowering_, x_, 1, x_.c, g_.begin, g_.end, border())
                            : bordered(lowering_, x_, g_.begin, g_.end, border());
    ImageView sums = y_;
    if (epilogue_.expr) {
      sums.lane = y_.h * y_.w;
      sums.block = kPanel * sums.lane;
      sums.row = y_.w;
      sums.column = 1;
      sums.batch = y_.c * sums.lane;
      sums.view =
          view(CDL_I32, {}, {}, lowering_.scratch(static_cast<uint64_t>(y_.n * sums.batch) * 4));
    }
    const WidenedConv conv{.x = x,
                           .w = w_.view,
                           .y = sums,
                           .conv = g_,
                           .wZero = operands_ > 3 ? &in_[3] : nullptr,
                           .xZero = xZero_};
    conv.emit(lowering_);
    if (!epilogue_.expr) return;
    const std::vector<int64_t> dims = {y_.n, y_.c, y_.h, y_.w};
    const auto of = [&](const ImageView& image) {
      return restrided(image.view, dims, {image.batch, image.lane, image.row, image.column});
    };
    epilogue_.apply(lowering_, of(sums), y_, of);
  }

  /// Says what becomes of the sums, when they end in a result with channels last.
  void endInPlace() {
    const ImageView to = follower_ ? *imageOf(follower_->y) : y_;
    c_.y = to.plane(outs_);
    if (follower_ && follower_->join)
      c_.join = Join{*follower_->join, imageOf(follower_->other)->plane(outs_)};
    if (bias_) return;
    c_.epilogue = epilogue_.expr;
    for (const auto& v : epilogue_.views)
      c_.views.push_back(v ? std::optional(v->plane(outs_)) : std::nullopt);
  }

  /// Adds the constant of each channel: its bias, and what a zero point of x that is `moved` adds.
  /// Group after group begins a panel.
  void addBias(int64_t moved) {
    const int64_t perGroup = c_.panels * kPanel, channels = y_.c / c_.groups;
    std::vector<int32_t> bias(static_cast<size_t>(c_.groups * perGroup), 0);
    for (int64_t o = 0; o < y_.c; ++o) {
      int64_t sum = 0;
      if (bias_) sum += (*bias_)[static_cast<size_t>(o)];
      if (moved) sum -= moved * w_.sumOf(o);
      bias[static_cast<size_t>(o / channels * perGroup + o % channels)] = static_cast<int32_t>(sum);
    }
    Plane add;
    add.elem = CDL_I32;
    add.at = lowering_.own(bias.data(), bias.size() * 4);
    add.group = perGroup * 4;
    add.panel = kPanel * 4;
    add.lane = 4;
    c_.bias = add;
  }

  void depthwise() {
    DepthwiseInt8 d;
    const int64_t fours = (w_.kernel[0] + 3) / 4;
    for (int k = 0; k < 2; ++k) d.kernel[k] = w_.kernel[k];
    c_.panels = (y_.c + kPanel - 1) / kPanel;
    c_.lastLanes = static_cast<int>(y_.c - (c_.panels - 1) * kPanel);
    if (follower_) follow(lowering_, *follower_, 1, c_.panels, c_);
    outs_ = y_.c;
    endInPlace();
    addBias(xZero_ + signMove(lowering_.isa, c_.aIsSigned));
    std::vector<char> weights(static_cast<size_t>(c_.panels * w_.kernel[1] * fours * kPanel * 4),
                              0);
    for (int64_t o = 0; o < y_.c; ++o)
      for (int64_t r = 0; r < w_.kernel[0]; ++r)
        for (int64_t s = 0; s < w_.kernel[1]; ++s)
          weights[static_cast<size_t>(
              (((o / kPanel * w_.kernel[1] + s) * fours + r / 4) * kPanel + o % kPanel) * 4 +
              r % 4)] = w_.at(o, 0, r, s);
    c_.b = lowering_.own(weights.data(), weights.size());
    const ImageView x = bordered(lowering_, x_, g_.begin, g_.end, border());
    c_.a = x.plane(y_.c, g_.stride[0], g_.stride[1]);
    d.stride = g_.stride[1];
    d.dilation = g_.dilation[1];
    d.row = g_.dilation[0] * x.row;
    d.column = x.column;
    d.contraction = c_;
    emitDepthwiseInt8(lowering_, d);
  }

  /// Packs weights by panels of 16 channels, then taps, then fours of `channels` per tap (or of all
  /// channels along a row of taps).
  Arg packWeights(int64_t taps, int64_t depth) {
    std::vector<char> packed(static_cast<size_t>(g_.group * panels_ * taps * depth * kPanel), 0);
    for (int64_t o = 0; o < y_.c; ++o)
      for (int64_t r = 0; r < w_.kernel[0]; ++r)
        for (int64_t s = 0; s < w_.kernel[1]; ++s)
          for (int64_t i = 0; i < w_.ins; ++i) {
            const int64_t tap = joinsTaps_ ? r : r * w_.kernel[1] + s,
                          at = joinsTaps_ ? s * w_.ins + i : i;
            const int64_t panel = o / outs_ * panels_ + o % outs_ / kPanel,
                          lane = o % outs_ % kPanel;
            packed[static_cast<size_t>((panel * taps + tap) * depth * kPanel + at / 4 * 4 * kPanel +
                                       lane * 4 + at % 4)] = w_.at(o, i, r, s);
          }
    return lowering_.own(packed.data(), packed.size());
  }

  void dots() {
    const int64_t kh = w_.kernel[0], kw = w_.kernel[1], channels = roundUp(w_.ins, 4);
    c_.groups = g_.group;
    c_.panels = panels_;
    const int64_t depth = joinsTaps_ ? roundUp(kw * w_.ins, 4) : channels,
                  taps = joinsTaps_ ? kh : kh * kw;
    int64_t perGroup = joinsTaps_ ? w_.ins : channels; // channels in memory
    if (splitsBlocks_) perGroup = x_.c;
    const ImageView x = channelsInnermost(lowering_, x_, splitsBlocks_ ? 1 : g_.group, perGroup,
                                          g_.begin, g_.end, border());
    c_.a = {.elem = in_[0].elem,
            .at = x.view.at,
            .batch = x.batch,
            .group = channels,
            .row = g_.stride[0] * x.row,
            .column = g_.stride[1] * x.column};
    c_.b = w_.isPacked ? w_.view.at : packWeights(taps, depth);
    const int64_t tap = depth * kPanel;
    c_.bPanel = taps * tap;
    c_.bGroup = panels_ * c_.bPanel;
    c_.axes = {{kh, g_.dilation[0] * x.row, (joinsTaps_ ? 1 : kw) * tap},
               {depth / 4, 4, 4 * kPanel}};
    if (!joinsTaps_) c_.axes.insert(c_.axes.begin() + 1, {kw, g_.dilation[1] * x.column, tap});
    if (follower_) follow(lowering_, *follower_, g_.group, panels_, c_);
    if (sums_.channelsLast) {
      c_.lastLanes = static_cast<int>(outs_ - (panels_ - 1) * kPanel);
      endInPlace();
      const bool isFlat = kh == 1 && kw == 1 && c_.a.row == c_.columns * c_.a.column &&
                          c_.y.row == c_.columns * c_.y.column &&
                          (!c_.join || c_.join->other.row == c_.columns * c_.join->other.column) &&
                          !c_.epilogue;
      if (isFlat) {
        c_.flatten();
      }
      addBias(xZero_ + signMove(lowering_.isa, c_));
      return emitContraction(lowering_, c_);
    }
    inPanels();
  }

  /// Leaves sums in panels, and takes them from there into a row-major result.
  void inPanels() {
    const uint8_t elem = follower_ ? follower_->y.elem : uint8_t(CDL_I32);
    const int64_t size = cdl_elem_bits(elem) / 8;
    const int64_t area = y_.h * y_.w * kPanel;
    const int64_t groupArea = panels_ * area;
    const int64_t batchArea = g_.group * groupArea;
    if (w_.kernel[0] == 1 && w_.kernel[1] == 1 && c_.a.row == c_.columns * c_.a.column) {
      c_.flatten();
    }
    const Arg sums = lowering_.scratch(static_cast<uint64_t>(y_.n * batchArea * size));
    c_.y = {.elem = elem,
            .at = sums,
            .batch = batchArea * size,
            .group = groupArea * size,
            .panel = area * size,
            .row = c_.columns * kPanel * size,
            .column = kPanel * size,
            .lane = size};
    addBias(xZero_ + signMove(lowering_.isa, c_));
    emitContraction(lowering_, c_);
    ImageView to = y_;
    if (follower_) to = *imageOf(follower_->y);
    for (const PanelRun& run : panelRuns(outs_, kPanel)) {
      const std::vector<int64_t> dims = {y_.n, g_.group, run.count, run.lanes, y_.h, y_.w};
      const auto of = [&](const ImageView& image) { return panelsOf(image, run, outs_, dims); };
      const Operand from =
          restrided(view(elem, {}, {}, sums), dims,
                    {batchArea, groupArea, area, 1, y_.w * kPanel, kPanel}, run.first * area);
      if (bias_)
        copy(lowering_, from, of(to));
      else
        epilogue_.apply(lowering_, from, y_, of);
    }
  }

  Lowering& lowering_;
  const Conv2d& g_;
  const std::vector<Operand> in_;
  // the result of the instruction: the sums, or what its epilogue makes of them
  const Operand sums_;
  const size_t operands_;
  ImageEpilogue epilogue_;
  ImageView x_, y_;
  Weights w_;
  int64_t xZero_ = 0, outs_ = 0, panels_ = 0; // outs_, panels_: per group
  bool splitsBlocks_ = false,
       joinsTaps_ = false; // joinsTaps_: of few channels, a whole row of taps is one run of bytes
  std::optional<std::vector<int32_t>> bias_;
  std::optional<Follower> follower_;
  Contraction c_;
};

} // namespace

bool emitConvInt8(Lowering& lowering, const cdl_instr_t& instr, const Conv2d& g, std::string& why) {
  return ConvInt8(lowering, instr, g).emit(why);
}

} // namespace cpu
