// SCALED_MATMUL of f32 rows and constant weights of 2 to 16 bits: a[M,K], w[N,G,S], y[M,N].
//
// A row at a time, such a product does nothing but read its weights, so they are packed once, when
// the model is compiled, in the order in which they are read: panels of as many columns as a vector
// has lanes, block after block; of a block first the scales and zero points, then words of 32 bits
// in each lane, which hold four to sixteen whole numbers of a column (two or four floats of each
// lane lie one vector after the other instead). Columns in lanes make a scale one vector and add
// the blocks of a column in order, which is what numerics.h asks of `dynamic`.
//
// `dynamic`: a kernel rounds each block of a to i8 and keeps the sum of it, by which zero points
// come off all at once. Weights are then unsigned, and products of u4 and i8 are summed in pairs
// and in 16 bits, as far as 32 of them fit there; those of u8 have no room in 16. `exact`: weights
// become f32 in registers. Rows of a go by tiles, for which the weights are decoded once.
#include "elementwise.hpp"
#include "scaled_product.hpp"

#include <algorithm>

namespace cpu {

namespace {

constexpr int kRows = 4; // of a tile
constexpr int kWordsOfChunk =
    4; // of 4 bits: 32 products, 15 * 127 at most each, of which 16 bits hold 16
constexpr int64_t kLine = 64;       // bytes of the cache
constexpr int64_t kLongBlock = 128; // weights
// bytes before they are used that weights of a single row are asked for, which nothing else hides
constexpr int64_t kAhead = 2048;

/// Divides long blocks into equal ones, so that memory is asked for a little at a time. A rounded
/// block has one step, and stays.
void divideBlocks(ScaledProduct& p) {
  const int64_t whole = std::max(weightsOfWord(p.bits()), kScaledBlockLanes);
  for (int64_t block = kLongBlock; block >= whole; block -= whole) {
    if (p.block <= kLongBlock || p.block % block != 0) continue;
    p.pieces = p.block / block;
    p.blocks *= p.pieces;
    p.block = block;
  }
}

ScaledProduct scaledProductOf(const Lowering& lowering, const cdl_instr_t& instr) {
  ScaledProduct p;
  p.in = operandsOf(lowering, instr);
  p.y = p.in.back();
  p.in.pop_back();
  p.operands = cdl_operand_count(lowering.image, &instr);
  p.epilogue = instr.expr ? cdl_get_expr(lowering.image, instr.expr) : nullptr;
  p.isDynamic = instr.fn == CDL_SCALED_MATMUL_DYNAMIC;
  p.rows = p.in[0].dims[0];
  p.depth = p.in[0].dims[1];
  p.columns = p.in[1].dims[0];
  p.blocks = p.in[1].dims[1];
  p.block = p.in[1].dims[2];
  if (!p.isDynamic) divideBlocks(p);
  return p;
}

/// Writes the kernel of products with whole numbers, and of few rows: a unit is a panel.
class ProductKernel : ScaledKernel {
public:
  using ScaledKernel::ScaledKernel;

  void write() {
    b_.loop(b_.begin(), b_.end(), 1, [&](Value unit) {
      const Value panel = b_.add(unit, b_.i64(group_.first));
      const Value weights = b_.at(b_.arg(2), panel, form_.panelBytes());
      const int64_t whole = p_.rows / kRows * kRows;
      if (whole)
        b_.loop(b_.i64(0), b_.i64(whole), kRows, [&](Value m) { tile(weights, panel, m, kRows); });
      if (whole < p_.rows) tile(weights, panel, b_.i64(whole), static_cast<int>(p_.rows - whole));
    });
  }

private:
  void tile(Value weights, Value panel, Value m, int rows) {
    Values rowAt, recordAt;
    for (int r = 0; r < rows; ++r) {
      const Value row = b_.add(m, b_.i64(r));
      rowAt.push_back(b_.at(b_.arg(0), row, aRowBytes()));
      recordAt.push_back(b_.at(b_.arg(1), row, p_.blocks * kBlockRecord));
    }
    const Values sums =
        b_.loop(p_.blocks, Values(static_cast<size_t>(rows), b_.zero(Ty::F32, lanes_)),
                [&](Value g, const Values& carried) {
                  const Value block = b_.at(weights, g, form_.blockBytes());
                  if (rows == 1 && !hasLongBlocks()) askAhead(block, form_.blockBytes());
                  Values at, records;
                  for (int r = 0; r < rows; ++r) {
                    at.push_back(b_.at(rowAt[r], g, p_.block * (p_.isDynamic ? 1 : 4)));
                    records.push_back(b_.at(recordAt[r], g, kBlockRecord));
                  }
                  return p_.isDynamic ? wholeBlock(block, at, records, carried)
                                      : realBlock(block, at, carried);
                });
    for (int r = 0; r < rows; ++r) finish(sums[r], b_.add(m, b_.i64(r)), panel);
  }

  /// Asks for memory that far behind what is read now.
  void askAhead(Value from, int64_t bytes) {
    for (int64_t line = 0; line < bytes; line += kLine) b_.prefetch(from, kAhead + line);
  }
  /// Whether a block is too much to ask for at once.
  bool hasLongBlocks() const { return form_.words > 2 * kWordsOfChunk; }

  int64_t aRowBytes() const {
    return p_.isDynamic ? p_.held() : p_.in[0].bytes(p_.in[0].strides[0]);
  }

  /// The words of a block, some at a time: body(address of the first one's vector, its number as
  /// bytes into a row of `elementBytes` elements, how many, carried).
  Values chunks(Value block, int64_t elementBytes, int most, Values carried,
                const std::function<Values(Value, Value, int, const Values&)>& body) {
    const int64_t whole = form_.words / most;
    const int rest = static_cast<int>(form_.words % most);
    const Value words = b_.at(block, form_.wordsAt());
    const auto chunk = [&](Value i, int count, const Values& c) {
      const Value word = b_.mul(i, b_.i64(most));
      return body(b_.at(words, word, form_.vectorBytes()),
                  b_.mul(word, b_.i64(perWord_ * elementBytes)), count, c);
    };
    if (whole == 1)
      carried = chunk(b_.i64(0), most, carried);
    else if (whole > 1)
      carried =
          b_.loop(whole, carried, [&](Value i, const Values& c) { return chunk(i, most, c); });
    return rest ? chunk(b_.i64(whole), rest, carried) : carried;
  }

  Values wholeBlock(Value block, const Values& at, const Values& records, const Values& sums) {
    const size_t rows = at.size();
    Values products = chunks(block, 1, kWordsOfChunk, Values(rows, b_.zero(Ty::I32, lanes_)),
                             [&](Value words, Value offset, int count, const Values& c) {
                               return wholeChunk(words, offset, count, at, c);
                             });
    const Value scale = b_.load(Ty::F32, lanes_, block);
    Values next;
    for (size_t r = 0; r < rows; ++r) {
      Value real = b_.cast(products[r], Ty::F32, true);
      const Value off = b_.splat(b_.load(Ty::F32, 1, records[r], 4), lanes_);
      if (form_.hasZeros)
        real = b_.fma(b_.load(Ty::F32, lanes_, block, form_.vectorBytes()), off, real);
      else if (p_.offset())
        real = b_.sub(real, off);
      const Value factor = b_.mul(b_.splat(b_.load(Ty::F32, 1, records[r]), lanes_), scale);
      next.push_back(b_.fma(real, factor, sums[r]));
    }
    return next;
  }

  Values wholeChunk(Value words, Value offset, int count, const Values& at, const Values& sums) {
    const bool inFours = b_.isa().hasDot4 || bits_ == 8;
    if (at.size() == 1 && hasLongBlocks()) askAhead(words, count * form_.vectorBytes());
    Values next = sums;
    Values pairs(at.size());
    for (int i = 0; i < count; ++i) {
      const Value word = b_.load(Ty::I32, lanes_, words, i * form_.vectorBytes());
      const Values fours = foursOf(word);
      for (size_t r = 0; r < at.size(); ++r)
        for (size_t f = 0; f < fours.size(); ++f) {
          const int64_t place = i * perWord_ + static_cast<int64_t>(f) * 4;
          const Value a = b_.splat(b_.load(Ty::I32, 1, b_.at(at[r], offset), place), lanes_);
          if (inFours) {
            next[r] = b_.dot4(next[r], fours[f], a);
            continue;
          }
          const Value pair = b_.dotPairs(fours[f], a);
          pairs[r] = place == 0 ? pair : b_.add(pairs[r], pair);
        }
    }
    const Value ones = b_.splat(b_.i32(0x00010001), lanes_);
    for (size_t r = 0; r < at.size() && !inFours; ++r)
      next[r] = b_.add(next[r], b_.dot2(b_.reinterpret(pairs[r], Ty::I32, lanes_), ones));
    return next;
  }

  /// The unsigned weights of a word, four at a time, each in a byte of its own.
  Values foursOf(Value word) {
    if (bits_ == 8) return {word};
    const Value mask = b_.i32(0x01010101 * ((1 << bits_) - 1));
    Values fours;
    for (int at = 0; at < 8; at += bits_)
      fours.push_back(b_.bitAnd(at ? b_.shr(word, b_.i32(at), false) : word, mask));
    return fours;
  }

  /// Sums of a row in as many parts as keep the multipliers busy.
  static int partsOf(size_t rows) { return std::max(1, 4 / static_cast<int>(rows)); }

  Values realBlock(Value block, const Values& at, const Values& sums) {
    const size_t rows = at.size();
    const auto parts = static_cast<size_t>(partsOf(rows));
    const Value zero = form_.hasZeros ? b_.load(Ty::F32, lanes_, block, form_.vectorBytes())
                                      : b_.zero(Ty::F32, lanes_);
    const Values products =
        chunks(block, 4, kWordsOfChunk, Values(rows * parts, b_.zero(Ty::F32, lanes_)),
               [&](Value words, Value offset, int count, const Values& c) {
                 return realChunk(words, offset, count, at, zero, c);
               });
    const Value scale = b_.load(Ty::F32, lanes_, block);
    Values next;
    for (size_t r = 0; r < rows; ++r) {
      Value sum = products[r * parts];
      for (size_t part = 1; part < parts; ++part) sum = b_.add(sum, products[r * parts + part]);
      next.push_back(b_.fma(sum, scale, sums[r]));
    }
    return next;
  }

  Values realChunk(Value words, Value offset, int count, const Values& at, Value zero,
                   const Values& sums) {
    const int parts = partsOf(at.size());
    if (at.size() == 1 && hasLongBlocks()) askAhead(words, count * form_.vectorBytes());
    Values next = sums;
    for (int i = 0; i < count; ++i) {
      const Values weights = weightsAt(b_.at(words, i * form_.vectorBytes()));
      for (int k = 0; k < perWord_; ++k) {
        Value weight = weights[k];
        if (form_.hasZeros) weight = b_.sub(weight, zero);
        for (size_t r = 0; r < at.size(); ++r) {
          const int place = i * perWord_ + k;
          const Value a = b_.load(Ty::F32, 1, b_.at(at[r], offset), int64_t(place) * 4);
          Value& sum = next[r * static_cast<size_t>(parts) + static_cast<size_t>(place % parts)];
          sum = b_.fma(weight, b_.splat(a, lanes_), sum);
        }
      }
    }
    return next;
  }
};

/// Rows of a as the exact product reads them: dense, with zeros up to whole blocks.
Operand wholeRows(Lowering& lowering, const ScaledProduct& p) {
  const Operand& a = p.in[0];
  if (a.strides[1] == 1 && p.held() == p.depth) return a;
  const Arg at = lowering.scratch(static_cast<uint64_t>(p.rows * p.held() * 4));
  const Operand whole = view(CDL_F32, {p.rows, p.held()}, {p.held(), 1}, at);
  const int64_t rest = p.held() - p.depth;
  if (rest) fill(lowering, restrided(whole, {p.rows, rest}, {p.held(), 1}, p.depth), 0);
  copy(lowering, a, restrided(whole, {p.rows, p.depth}, {p.held(), 1}));
  return whole;
}

bool isTaken(const Lowering& lowering, const ScaledProduct& p, std::string& why) {
  if (p.in[0].elem != CDL_F32 || p.operands > 4) return refuse(why, "its operands");
  if (!p.epilogue && p.y.elem != CDL_F32) return refuse(why, "its element types");
  const uint8_t w = p.in[1].elem;
  const bool isPacked =
      w == CDL_I2 || w == CDL_U2 || w == CDL_I4 || w == CDL_U4 || (w == CDL_F4E2M1 && !p.isDynamic);
  const bool isFloat = isFloatWeight(w) && !p.isDynamic;
  if (!isPacked && !isFloat && w != CDL_I8 && w != CDL_U8) return refuse(why, "its weights");
  const int64_t most = p.isDynamic ? mostInWholeBlock(p.bits()) : kMostInScaledBlock;
  const bool isWhole = p.block % kScaledBlockLanes == 0 && p.block % weightsOfWord(p.bits()) == 0;
  if (!isWhole || p.block > most) return refuse(why, "its blocks");
  for (size_t i = 1; i < p.operands; ++i)
    if (!isKnownConstant(lowering, i)) return refuse(why, "weights of a run");
  if (p.epilogue && !canComputeExpr(lowering.image, *p.epilogue))
    return refuse(why, "a step of its expression");
  return true;
}

/// What the code of a product depends on.
void addTo(Key& key, const Lowering& lowering, const ScaledProduct& p, const PanelGroup& group) {
  key << p.rows << p.depth << p.blocks << p.block << p.bits() << p.isSigned() << p.hasZeros()
      << p.in[1].elem << group.first << group.together << group.live << p.in[0].strides[0]
      << p.in[0].strides[1] << static_cast<int64_t>(p.operands);
  for (size_t i = p.operands; i < p.in.size(); ++i)
    key << p.in[i].elem << p.in[i].strides[0] << p.in[i].strides[1];
  key << p.y.elem << p.y.strides[0] << p.y.strides[1];
  if (p.epilogue) key << exprKey(lowering, *p.epilogue);
}

/// Which kernel a product has.
enum class Way : uint8_t { wholeNumbers, fewRows, manyRows };

Way wayOf(const ScaledProduct& p, const PanelForm& form) {
  if (p.isDynamic) return Way::wholeNumbers;
  return hasManyRows(p, form) ? Way::manyRows : Way::fewRows;
}

void emitPanels(Lowering& lowering, const ScaledProduct& p, const PanelForm& form,
                const std::vector<Arg>& args, const PanelGroup& group) {
  if (group.count == 0) return;
  static constexpr const char* kNames[] = {"dynamic scaled matmul", "exact scaled matmul",
                                           "exact scaled matmul of many rows"};
  const Way way = wayOf(p, form);
  Key key(kNames[static_cast<size_t>(way)]);
  addTo(key, lowering, p, group);
  lowering.call(key.text(), static_cast<uint64_t>(group.count), args, [&](Builder& b) {
    if (way == Way::manyRows) return writeManyRows(b, lowering, p, form, group);
    ProductKernel(b, lowering, p, form, group).write();
  });
}

} // namespace

bool emitScaledMatmul(Lowering& lowering, const cdl_instr_t& instr, std::string& why) {
  ScaledProduct p = scaledProductOf(lowering, instr);
  if (!isTaken(lowering, p, why)) return false;
  if (p.y.elements() == 0) return true;
  const PanelForm form = panelFormOf(lowering, p);
  const std::vector<char> panels = packPanels(lowering, p, form);
  std::vector<Arg> args;
  if (p.isDynamic) {
    const RoundedRows rounded = emitRounding(lowering, p);
    args = {rounded.numbers, rounded.blocks};
  } else {
    p.in[0] = wholeRows(lowering, p);
    args = {p.in[0].at, p.in[0].at};
  }
  args.push_back(lowering.own(panels.data(), panels.size()));
  args.push_back(p.y.at);
  for (size_t i = p.operands; i < p.in.size(); ++i) args.push_back(p.in[i].at);
  const int together = wayOf(p, form) == Way::manyRows ? kPanelsTogether : 1;
  const int64_t whole = p.columns / form.lanes;
  const int64_t groups = whole / together;
  const int rest = static_cast<int>(p.columns % form.lanes);
  emitPanels(lowering, p, form, args, {0, groups, together, form.lanes});
  emitPanels(lowering, p, form, args, {groups * together, whole % together, 1, form.lanes});
  emitPanels(lowering, p, form, args, {whole, rest ? 1 : 0, 1, rest});
  return true;
}

} // namespace cpu
