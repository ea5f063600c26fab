// Depthwise convolution of 8-bit integers with channels last: lanes are neighbouring channels. The
// rows of a column of the window stand four by four in the bytes of a lane, so that a dot product
// takes a column at once; results side by side share columns.
#include "depthwise_int8.hpp"

#include "ending.hpp"

#include <algorithm>
#include <map>

namespace cpu {

void emitDepthwiseInt8(Lowering& lowering, const DepthwiseInt8& d) {
  const Contraction& c = d.contraction;
  const int64_t fours = (d.kernel[0] + 3) / 4, weightPanel = d.kernel[1] * fours * kPanel * 4;
  const int points =
      static_cast<int>(std::min<int64_t>(lowering.isa.registers >= 32 ? 7 : 3, c.columns));
  Key key("depthwise");
  key << d.kernel[0] << d.kernel[1] << d.stride << d.dilation << d.row << d.column << c.batch
      << c.panels << c.rows << c.columns << c.lastLanes << c.aIsSigned << c.a.batch << c.a.panel
      << c.a.row;
  std::vector<Arg> args = {c.a.at, c.b};
  Ending::addArguments(lowering, c, args, key);
  const int lanes = lowering.isa.lanes(4);
  lowering.call(
      key.text(), UnitRows{c.batch, c.rows, c.panels, 1, 1, c.rows}, args, [&](Builder& b) {
        Ending ending(b, lowering, c);
        b.loop(b.begin(), b.end(), 1, [&](Value unit) {
          const Value panel = b.rem(unit, b.i64(c.panels), false),
                      rest = b.div(unit, b.i64(c.panels), false);
          const Value row = b.rem(rest, b.i64(c.rows), false),
                      batch = b.div(rest, b.i64(c.rows), false);
          const auto placed = [&](int arg, const Plane& p) {
            Value at = b.arg(arg);
            for (const auto& [index, step] :
                 {std::pair{batch, p.batch}, {row, p.row}, {panel, p.panel}})
              if (step) at = b.at(at, b.mul(index, b.i64(step)));
            return at;
          };
          const Value x = placed(0, c.a),
                      weights = b.at(b.arg(1), b.mul(panel, b.i64(weightPanel)));
          int arg = 2;
          const Bases bases = Ending::bases(c, arg, placed);

          // `count` results from `column` on, of the `live` lanes from `first` on.
          const auto results = [&](Value column, int count, int first, int live,
                                   const Ending::Shared& shared) {
            const Value from = b.at(b.at(x, b.mul(column, b.i64(d.stride * d.column))), first);
            std::map<int64_t, Values> columns; // of x, by their distance from the first one
            const auto columnOf = [&](int64_t at) {
              Values& made = columns[at];
              for (int64_t g = static_cast<int64_t>(made.size()); g < fours; ++g) {
                Value joined;
                for (int64_t r = g * 4; r < std::min(g * 4 + 4, d.kernel[0]); ++r) {
                  const Value there = b.at(from, r * d.row + at * d.column);
                  const Value loaded = live == lanes
                                           ? b.load(Ty::I8, lanes, there)
                                           : b.loadFirst(Ty::I8, lanes, there, b.i64(live));
                  const Value wide =
                      b.shl(b.cast(loaded, Ty::I32, false), b.i32(static_cast<int32_t>(r % 4 * 8)));
                  joined = r % 4 ? b.bitOr(joined, wide) : wide;
                }
                made.push_back(c.aIsSigned
                                   ? b.bitXor(joined, b.i32(static_cast<int32_t>(0x80808080u)))
                                   : joined);
              }
              return made;
            };
            Values sums(static_cast<size_t>(count), b.zero(Ty::I32, lanes));
            for (int64_t k = 0; k < d.kernel[1]; ++k)
              for (int64_t g = 0; g < fours; ++g) {
                const Value w =
                    b.load(Ty::I32, lanes, weights, ((k * fours + g) * kPanel + first) * 4);
                for (int p = 0; p < count; ++p) {
                  const Values column = columnOf(p * d.stride + k * d.dilation);
                  Value& sum = sums[static_cast<size_t>(p)];
                  sum = b.dot4(sum, column[static_cast<size_t>(g)], w);
                }
              }
            const Bases there = ending.moved(bases, column);
            for (int p = 0; p < count; ++p)
              ending.finish(sums[static_cast<size_t>(p)], there, shared, 0, p);
          };
          const auto whole = [&](int channels) {
            for (int first = 0; first < channels; first += lanes) {
              const int live = std::min(lanes, channels - first);
              const Ending::Shared shared = ending.shared(bases, 0, first, live);
              const int64_t tiles = c.columns / points, left = c.columns % points;
              b.loop(b.i64(0), b.i64(tiles * points), points,
                     [&](Value column) { results(column, points, first, live, shared); });
              if (left) results(b.i64(tiles * points), static_cast<int>(left), first, live, shared);
            }
          };
          if (c.lastLanes == kPanel) return whole(kPanel);
          const Value isLast = b.compare(Cmp::EQ, panel, b.i64(c.panels - 1));
          if (c.panels > 1) b.when(b.bitNot(isLast), [&] { whole(kPanel); });
          b.when(isLast, [&] { whole(c.lastLanes); });
        });
      });
}

} // namespace cpu
