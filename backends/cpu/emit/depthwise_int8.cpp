// Depthwise convolution of 8-bit integers with channels last: lanes are neighbouring channels. The
// rows of a column of the window stand four by four in the bytes of a lane, so that a dot product
// takes a column at once; results side by side share columns.
#include "depthwise_int8.hpp"

#include "epilogue.hpp"

#include <algorithm>
#include <map>

namespace cpu {

namespace {

/// Writes the units of a depthwise convolution: a row of results of one panel of channels.
class DepthwiseKernel {
public:
  DepthwiseKernel(Builder& b, const Lowering& lowering, const DepthwiseInt8& d)
      : b(b), d_(d), c_(d.contraction), epilogue_(b, lowering, c_), lanes_(b.isa().lanes(4)),
        fours_((d.kernel[0] + 3) / 4),
        points_(static_cast<int>(std::min<int64_t>(b.isa().registers >= 32 ? 7 : 3, c_.columns))) {}

  void write(Value unit) {
    const Value panel = b.remainder(unit, c_.panels);
    const Value rest = b.quotient(unit, c_.panels);
    const Value row = b.remainder(rest, c_.rows);
    const Value batch = b.quotient(rest, c_.rows);
    const auto placed = [&](int arg, const Plane& p) {
      return b.at(b.at(b.at(b.arg(arg), batch, p.batch), row, p.row), panel, p.panel);
    };
    x_ = placed(0, c_.a);
    weights_ = b.at(b.arg(1), b.mul(panel, b.i64(d_.kernel[1] * fours_ * kPanel * 4)));
    int arg = 2;
    bases_ = EpilogueWriter::bases(c_, arg, placed);
    if (c_.lastLanes == kPanel) return writeRow(kPanel);
    const Value isLast = b.compare(Cmp::EQ, panel, b.i64(c_.panels - 1));
    if (c_.panels > 1) b.when(b.bitNot(isLast), [&] { writeRow(kPanel); });
    b.when(isLast, [&] { writeRow(c_.lastLanes); });
  }

private:
  /// The lanes of a panel that one vector holds, and what their results share.
  struct Lanes {
    int first, live;
    EpilogueWriter::Shared shared;
  };

  void writeRow(int channels) {
    for (int first = 0; first < channels; first += lanes_) {
      const int live = std::min(lanes_, channels - first);
      const Lanes lanes{first, live, epilogue_.shared(bases_, 0, first, live)};
      const int64_t tiles = c_.columns / points_, left = c_.columns % points_;
      b.loop(b.i64(0), b.i64(tiles * points_), points_,
             [&](Value column) { writePoints(column, points_, lanes); });
      if (left) writePoints(b.i64(tiles * points_), static_cast<int>(left), lanes);
    }
  }

  /// Writes `count` results from `column` on.
  void writePoints(Value column, int count, const Lanes& lanes) {
    const Value from = b.at(b.at(x_, b.mul(column, b.i64(d_.stride * d_.column))), lanes.first);
    std::map<int64_t, Values> columns; // of x, by their distance from the first one
    Values sums(static_cast<size_t>(count), b.zero(Ty::I32, lanes_));
    for (int64_t k = 0; k < d_.kernel[1]; ++k)
      for (int64_t g = 0; g < fours_; ++g) {
        const Value w =
            b.load(Ty::I32, lanes_, weights_, ((k * fours_ + g) * kPanel + lanes.first) * 4);
        for (int p = 0; p < count; ++p) {
          const int64_t at = p * d_.stride + k * d_.dilation;
          if (columns[at].empty()) columns[at] = columnAt(from, at, lanes.live);
          Value& sum = sums[static_cast<size_t>(p)];
          sum = b.dotBytes(sum, columns[at][static_cast<size_t>(g)], w);
        }
      }
    const Bases there = epilogue_.moved(bases_, column);
    for (int p = 0; p < count; ++p)
      epilogue_.finish(sums[static_cast<size_t>(p)], there, lanes.shared, 0, p);
  }

  /// A column of x under the kernel, by fours of its rows: one in each byte of a lane.
  Values columnAt(Value from, int64_t column, int live) {
    Values fours;
    for (int64_t g = 0; g < fours_; ++g) {
      Value joined;
      for (int64_t r = g * 4; r < std::min(g * 4 + 4, d_.kernel[0]); ++r) {
        const Value there = b.at(from, r * d_.row + column * d_.column);
        const Value loaded = live == lanes_ ? b.load(Ty::I8, lanes_, there)
                                            : b.loadFirst(Ty::I8, lanes_, there, b.i64(live));
        const Value wide =
            b.shl(b.cast(loaded, Ty::I32, false), b.i32(static_cast<int32_t>(r % 4 * 8)));
        joined = r % 4 ? b.bitOr(joined, wide) : wide;
      }
      if (takesOtherSign(b.isa(), c_.aIsSigned))
        joined = b.bitXor(joined, b.i32(static_cast<int32_t>(0x80808080u)));
      fours.push_back(joined);
    }
    return fours;
  }

  Builder& b;
  const DepthwiseInt8& d_;
  const Contraction& c_;
  EpilogueWriter epilogue_;
  const int lanes_;
  const int64_t fours_; // of rows of the kernel
  const int points_;    // results side by side
  Value x_, weights_;   // of the unit at hand
  Bases bases_;
};

} // namespace

void emitDepthwiseInt8(Lowering& lowering, const DepthwiseInt8& d) {
  const Contraction& c = d.contraction;
  Key key("depthwise");
  key << d.kernel[0] << d.kernel[1] << d.stride << d.dilation << d.row << d.column << c.batch
      << c.panels << c.rows << c.columns << c.lastLanes << c.aIsSigned << c.a.batch << c.a.panel
      << c.a.row;
  std::vector<Arg> args = {c.a.at, c.b};
  EpilogueWriter::addArguments(lowering, c, args, key);
  const UnitRows units{.outer = c.batch, .tiles = c.rows, .inner = c.panels, .rows = c.rows};
  lowering.call(key.text(), units, args, [&](Builder& b) {
    DepthwiseKernel kernel(b, lowering, d);
    b.loop(b.begin(), b.end(), 1, [&](Value unit) { kernel.write(unit); });
  });
}

} // namespace cpu
