// Random instructions of every row that the NPU claims NATIVE, each a Program of its own, and
// products with what follows them: tiled, compiled, run on the functional model with all checks,
// and compared bit by bit with the oracle.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

#include <nlohmann/json.hpp>

#include "conformance/judge/sum_bounds.h"
#include "conformance/port.h"
#include "conformance/tiers/primitives/fills.h"
#include "tests/backends/npu_sim/random_chains.h"
#include "tests/fuzz/arguments.h"

namespace candela::conformance {
namespace {

constexpr const char* kUsage =
    R"(Usage: npu_random_rows [--seed N] [--count N] [--npu PRESET] [--backend NAME] [--ops TEXT] [--end TEXT] [--json FILE]
  --seed N        the first seed (1); draw i of an op has seed N + i
  --count N       how many of each op must run on the device and agree (100)
  --npu PRESET    the configuration (gem16)
  --backend NAME  by name or path (npu_sim)
  --ops TEXT      only ops whose name begins so; chains of products are run where TEXT begins with "chain"
  --end TEXT      only ops whose name ends so
  --json FILE     counts by op
)";
constexpr uint64_t kMostDraws = 12; ///< for each one that counts
constexpr size_t kMostFailures = 20;

struct Arguments : FuzzArguments {
  std::string npu = "gem16", backend = "npu_sim", ops, end, json;
  Arguments() : FuzzArguments{.count = 100, .backends = {}} {}
};

using capabilities::Target;

/// What rows are counted as: kind and function; products with an epilogue that narrows, sums of two
/// and what has 16 bits apart from the others.
std::string opOf(const cdl_row_t& row) {
  std::string name = instrText(row.kind, row.fn);
  const auto last = static_cast<Elem>(row.elems[row.elem_count - 1]);
  if (row.kind == CDL_KIND_RESCALE && row.elem_count == 7) name += ".sum";
  if ((row.kind == CDL_KIND_CONV2D || row.kind == CDL_KIND_MATMUL) && elemBits(last) < 32)
    name += ".epilogue";
  for (uint8_t e = 0; e < row.elem_count; ++e)
    if (row.kind != CDL_KIND_COPY && row.kind != CDL_KIND_FILL &&
        static_cast<Elem>(row.elems[e]) == Elem::i16_)
      return name + ".i16";
  return name;
}

/// One instruction of one row. Values that no row speaks of, but that every instruction of a
/// network has, stay in their range: multipliers of 24 bits, shifts below 64, zero points of the
/// type that they belong to.
class Draw {
public:
  Draw(const std::string& address, const Target& target, const cdl_row_t& row,
       random::Random& random)
      : target_(target), row_(row), random_(random), builder_(address, row.kind, row.fn) {}

  CaseResult tryOut(Port& port) {
    make();
    const bool isAlone = isPrimitive(row_.kind) && !hasExpr_;
    return builder_.tryOut(port, isAlone ? judge::primitiveBounds : judge::exactBounds);
  }

private:
  void make() {
    switch (row_.kind) {
    case CDL_KIND_FILL: {
      const int bits = elemBits(result());
      uint64_t value = random_.oneIn(3) ? 0 : random_.bits();
      if (result() == Elem::bool_) value &= 1;
      if (bits < 64) value &= (uint64_t{1} << bits) - 1;
      builder_.attr(program::Attr::ofBits(CDL_ATTR_VALUE, value));
      return output(shape(0, 5));
    }
    case CDL_KIND_RESCALE: return rescale();
    case CDL_KIND_TABLE: return table();
    case CDL_KIND_REDUCE: {
      const Shape dims{extent(6), extent(random_.oneIn(4) ? 700 : 40), extent(40)};
      builder_.input(elem(0), dims, form(false), values(elem(0)));
      return output({dims[0], dims[2]});
    }
    case CDL_KIND_MATMUL: return product();
    case CDL_KIND_CONV2D: return convolution();
    case CDL_KIND_POOL2D: return pool();
    case CDL_KIND_CONVERT:
      builder_.attr(program::Attr::ofInt(CDL_ATTR_SATURATE, random_.below(2)));
      [[fallthrough]];
    default: return elementwise();
    }
  }

  Elem elem(size_t operand) const { return static_cast<Elem>(row_.elems[operand]); }
  Elem result() const { return elem(row_.elem_count - 1u); }

  /// 1 .. about `most`, small ones more often; rarely 0.
  int64_t extent(int64_t most) {
    if (random_.oneIn(80)) return 0;
    return 1 + random_.below(random_.oneIn(3) ? most : std::min<int64_t>(most, 9));
  }
  Shape shape(int least, int most) {
    Shape dims(static_cast<size_t>(random_.between(least, most)));
    int64_t room = random_.oneIn(30) ? 30000 : random_.oneIn(4) ? 3000 : 300;
    for (int64_t& dim : dims) {
      dim = extent(std::min<int64_t>(room, random_.oneIn(8) ? room : 40));
      room = std::max<int64_t>(room / std::max<int64_t>(dim, 1), 1);
    }
    for (size_t d = dims.size(); d-- > 1;)
      std::swap(dims[d], dims[static_cast<size_t>(random_.below(static_cast<int64_t>(d) + 1))]);
    return dims;
  }
  /// A form that the row's class takes, or one that it does not and that is drawn again.
  const char* form(bool isOutput) {
    static constexpr const char* kBoth[] = {"dense",    "offset",  "rows",     "transposed",
                                            "negative", "strided", "reversed", "rotated"};
    if (random_.oneIn(2)) return "dense";
    if (row_.operand_class == CDL_CLASS_DENSE) return "offset";
    if (row_.operand_class == CDL_CLASS_BROADCAST) {
      static constexpr const char* kRepeated[] = {"offset",  "broadcast", "splat",
                                                  "channel", "columns",   "broadcast_in"};
      return isOutput ? "offset" : random_.of(kRepeated);
    }
    if (row_.operand_class == CDL_CLASS_ROW_STRIDED) return random_.oneIn(2) ? "rows" : "offset";
    if (isOutput) return random_.of(kBoth);
    return random_.of(kViewForms);
  }
  TrialBuilder::Fill values(Elem of) {
    if (isInteger(of) && random_.oneIn(4)) // few different ones
      return tiers::primitives::integers(
          of, [least = isSigned(of) ? -2 : 0](int64_t, random::Random& random) -> __int128 {
            return random.between(least, 2);
          });
    return numbers(of, isFloat(of)        ? random::Data::wide
                       : random_.oneIn(4) ? random::Data::extremes
                                          : random::Data::bits);
  }
  void output(const Shape& dims, TrialBuilder::Fill before = {}) {
    builder_.output(result(), dims, form(true), std::move(before));
  }

  void elementwise() {
    const Shape dims = shape(0, 5);
    const bool isInPlace = elem(0) == result() && row_.kind != CDL_KIND_COPY && random_.oneIn(8);
    for (size_t o = 0; o + 1 < row_.elem_count; ++o)
      builder_.input(elem(o), dims, form(isInPlace && o == 0), values(elem(o)));
    if (isInPlace) {
      builder_.outputIn(0, result());
      return;
    }
    output(dims);
  }

  TrialBuilder::Fill multipliers() {
    return tiers::primitives::integers(Elem::i32_, [](int64_t, random::Random& random) -> __int128 {
      return random.oneIn(20) ? random.below(1 << 24) : random.between(1 << 23, (1 << 24) - 1);
    });
  }
  /// About as many bits are left as the result has.
  TrialBuilder::Fill shifts(int bits) {
    return tiers::primitives::integers(
        Elem::i32_,
        [fitting = bits - elemBits(result())](int64_t, random::Random& random) -> __int128 {
          return random.oneIn(12) ? random.below(64)
                                  : std::clamp<int64_t>(fitting + random.between(-1, 5), 0, 63);
        });
  }
  TrialBuilder::Fill zeros(Elem of) {
    return tiers::primitives::integers(
        Elem::i32_, [range = integerRange(of)](int64_t, random::Random& random) -> __int128 {
          if (random.oneIn(3)) return 0;
          return random.between(static_cast<int64_t>(range.lowest),
                                static_cast<int64_t>(range.highest));
        });
  }

  void rescale() {
    const Shape dims = shape(0, 4);
    const Elem a = elem(0);
    const bool isSum = row_.elem_count == 7;
    static constexpr const char* kScales[] = {"splat", "splat", "channel", "columns"};
    const char* scale = random_.of(kScales);
    if (isForm(dims, scale) && std::string_view(scale) != "splat" && dims.size() > 1 &&
        *elementCount(dims) > 3000)
      scale = "splat";
    const auto most = [](Elem elem) {
      return elemBits(elem) == 8 ? 30 : elemBits(elem) == 16 ? 22 : 7;
    };
    const int left = random_.oneIn(2) ? static_cast<int>(random_.below(most(a) + 1)) : 0;
    const int leftB =
        isSum && random_.oneIn(2) ? static_cast<int>(random_.below(most(elem(4)) + 1)) : 0;
    builder_.input(a, dims, form(false), values(a));
    builder_.constant(Elem::i32_, dims, scale, multipliers());
    builder_.constant(Elem::i32_, dims, random_.oneIn(2) ? "splat" : scale,
                      shifts(elemBits(a) + 24 + std::max(left, leftB)));
    builder_.constant(Elem::i32_, dims, random_.oneIn(4) ? scale : "splat", zeros(result()));
    if (isSum) {
      builder_.input(elem(4), dims, form(false), values(elem(4)));
      builder_.constant(Elem::i32_, dims, random_.oneIn(2) ? "splat" : scale, multipliers());
    }
    if (left) builder_.attr(program::Attr::ofInt(CDL_ATTR_A_LEFT_SHIFT, left));
    if (leftB) builder_.attr(program::Attr::ofInt(CDL_ATTR_B_LEFT_SHIFT, leftB));
    if (random_.oneIn(3)) {
      const auto [low, high] = limits();
      builder_.attr(program::Attr::ofInt(CDL_ATTR_CLAMP_MIN, low))
          .attr(program::Attr::ofInt(CDL_ATTR_CLAMP_MAX, high));
    }
    output(dims);
  }

  /// Bounds within the result's type.
  std::pair<int64_t, int64_t> limits() {
    const IntegerRange range = integerRange(result());
    const auto at = [&] {
      return random_.between(static_cast<int64_t>(range.lowest),
                             static_cast<int64_t>(range.highest));
    };
    const int64_t a = at(), b = at();
    return {std::min(a, b), std::max(a, b)};
  }

  void table() {
    const Shape dims = shape(0, 4);
    const int64_t entries = elem(0) == Elem::i16_ ? 513 : 256;
    builder_.input(elem(0), dims, form(false), values(elem(0)));
    const char* kept = random_.oneIn(6) ? "negative" : random_.oneIn(6) ? "offset" : "dense";
    if (random_.oneIn(2))
      builder_.constant(result(), {entries}, kept, numbers(result(), random::Data::bits));
    else
      builder_.input(result(), {entries}, kept, numbers(result(), random::Data::bits));
    output(dims);
  }

  // ---- Products

  program::Layout layout(size_t operand) const {
    const cdl_layout_t& from = target_.layouts()[row_.layouts[operand]];
    program::Layout layout;
    if (from.count == 0) return layout;
    layout.logicalRank = from.logical_rank;
    for (uint8_t s = 0; s < from.count; ++s) layout.steps.push_back({from.dim[s], from.factor[s]});
    return layout;
  }
  /// As they lie in memory: layouts here are permutations.
  Shape physical(const Shape& logical, size_t operand) const {
    const cdl_layout_t& to = target_.layouts()[row_.layouts[operand]];
    if (to.count == 0) return logical;
    Shape dims;
    for (uint8_t s = 0; s < to.count; ++s) dims.push_back(logical[to.dim[s]]);
    return dims;
  }
  void operand(size_t i, const Shape& logical, const char* form, bool isConstant,
               const TrialBuilder::Fill& fill) {
    const Shape dims = physical(logical, i);
    if (isConstant)
      builder_.constant(elem(i), dims, form, fill);
    else
      builder_.input(elem(i), dims, form, fill);
    builder_.laidOut(layout(i));
  }

  void zeroPoints() {
    for (size_t o = 2; o + 1 < row_.elem_count; ++o)
      builder_.constant(elem(o), {1}, "dense", values(elem(o)));
  }

  /// The result of a product over `terms` terms, with what stands behind it.
  void ending(const Shape& logical, int64_t terms) {
    using Source = program::Operand::Source;
    const size_t y = row_.elem_count - 1u;
    const Shape dims = physical(logical, y);
    const program::Layout form = layout(y);
    const Elem sum = elem(0) == Elem::i16_ ? Elem::i64_ : Elem::i32_;
    auto views = static_cast<uint16_t>(y);
    program::Expr expr;
    const auto before = [&] {
      return expr.empty() ? program::Operand{Source::acc, sum, 0}
                          : program::Operand{Source::step, expr.back().elem,
                                             static_cast<uint16_t>(expr.size() - 1)};
    };
    const auto view = [&](Elem of, const char* how, bool isConstant,
                          const TrialBuilder::Fill& fill) {
      if (isConstant)
        builder_.constant(of, dims, how, fill);
      else
        builder_.input(of, dims, how, fill);
      builder_.laidOut(form);
      return program::Operand{Source::view, of, views++};
    };
    const auto binary = [&](uint16_t fn, const program::Operand& other, uint64_t imm = 0) {
      const program::Operand first = before();
      program::Step step{CDL_KIND_BINARY, fn, first.elem, false, {first, other}, imm};
      if (random_.oneIn(4)) std::swap(step.in[0], step.in[1]);
      expr.push_back(std::move(step));
    };
    const program::Operand number{Source::constant, sum, 0};
    if (elemBits(result()) >= 32) {
      if (random_.oneIn(3)) {
        builder_.attr(program::Attr::ofInt(CDL_ATTR_ACCUMULATE, 1));
        builder_.output(result(), dims, random_.oneIn(4) ? "rows" : "dense", values(result()));
        builder_.laidOut(form);
        return;
      }
      static constexpr uint16_t kFns[] = {CDL_BINARY_ADD, CDL_BINARY_MUL, CDL_BINARY_MIN,
                                          CDL_BINARY_MAX};
      if (result() == Elem::i32_ && random_.oneIn(3))
        for (int64_t steps = random_.between(1, 3); steps > 0; --steps) {
          if (random_.oneIn(2))
            binary(random_.of(kFns), number, random_.bits() & 0xffffffff);
          else
            binary(random_.of(kFns), view(sum, random_.oneIn(2) ? "columns" : "dense",
                                          random_.oneIn(2), values(sum)));
        }
    } else {
      // Biases have 32 bits; two of them together too where sums do not wrap there.
      const int64_t most = sum == Elem::i32_ ? INT32_MAX : INT32_MAX / 2;
      const TrialBuilder::Fill biases =
          tiers::primitives::integers(sum, [most](int64_t, random::Random& random) -> __int128 {
            return random.oneIn(9) ? random.between(-most, most) : random.between(-40000, 40000);
          });
      if (random_.oneIn(2)) binary(CDL_BINARY_ADD, view(sum, "columns", true, biases));
      if (random_.oneIn(8))
        binary(CDL_BINARY_ADD, number,
               static_cast<uint64_t>(random_.between(-5000, 5000)) &
                   (sum == Elem::i32_ ? 0xffffffff : UINT64_MAX));
      if (sum == Elem::i32_ && random_.oneIn(6))
        binary(CDL_BINARY_ADD, view(sum, random_.oneIn(2) ? "columns" : "dense", false, biases));
      const char* scale = random_.oneIn(2) ? "columns" : "splat";
      int bits = elemBits(elem(0)) + 8 + 24 - 1;
      for (int64_t k = terms; k > 1; k /= 4) ++bits; // digits at random: sums grow by the root
      program::Step step{CDL_KIND_RESCALE, 0, result(), false, {before()}, 0};
      step.in.push_back(view(Elem::i32_, scale, true, multipliers()));
      step.in.push_back(view(Elem::i32_, scale, true, shifts(bits)));
      step.in.push_back(view(Elem::i32_, "splat", true, zeros(result())));
      const IntegerRange range = integerRange(result());
      const auto [low, high] = random_.oneIn(3) ? limits()
                                                : std::pair(static_cast<int64_t>(range.lowest),
                                                            static_cast<int64_t>(range.highest));
      step.imm = static_cast<uint64_t>(high) << 32 | (static_cast<uint64_t>(low) & 0xffffffff);
      expr.push_back(std::move(step));
      const uint64_t mask = (uint64_t{1} << elemBits(result())) - 1;
      const program::Operand bound{Source::constant, result(), 0};
      if (random_.oneIn(5))
        binary(CDL_BINARY_MAX, bound, static_cast<uint64_t>(limits().first) & mask);
      if (random_.oneIn(5))
        binary(CDL_BINARY_MIN, bound, static_cast<uint64_t>(limits().second) & mask);
    }
    hasExpr_ = !expr.empty();
    if (hasExpr_) builder_.expr(std::move(expr)).trustSteps();
    builder_.output(result(), dims, random_.oneIn(4) ? "rows" : "dense");
    builder_.laidOut(form);
  }

  void product() {
    int64_t m = extent(90), n = extent(90), k = extent(random_.oneIn(6) ? 1500 : 90);
    const int64_t b = random_.oneIn(3) ? extent(3) : 1;
    while (b * m * n * k > 60000) (m > n ? m : n > 4 ? n : k) /= 2;
    operand(0, {b, m, k}, random_.oneIn(4) ? "rows" : "dense", false, values(elem(0)));
    operand(1, {b, k, n}, random_.oneIn(4) ? "rows" : "dense", random_.oneIn(2), values(elem(1)));
    zeroPoints();
    ending({b, m, n}, k);
  }

  struct Windows {
    Shape kernel, strides, pads, dilations, in, out;
  };
  Windows windows(int64_t mostKernel, bool mayDilate, int64_t mostIn) {
    Windows w{{1, 1}, {1, 1}, {0, 0, 0, 0}, {1, 1}, {1, 1}, {1, 1}};
    for (size_t d = 0; d < 2; ++d) {
      w.kernel[d] = random_.oneIn(3)    ? 1
                    : random_.oneIn(12) ? random_.between(1, mostKernel)
                                        : random_.between(1, 4);
      w.strides[d] = random_.oneIn(2)    ? 1
                     : random_.oneIn(10) ? random_.between(1, 16)
                                         : random_.between(1, 3);
      if (mayDilate && random_.oneIn(5)) w.dilations[d] = random_.between(1, 4);
      for (const size_t side : {d, d + 2})
        if (random_.oneIn(2)) w.pads[side] = random_.below(w.kernel[d]);
      const int64_t reach = (w.kernel[d] - 1) * w.dilations[d] + 1;
      const int64_t least = std::max<int64_t>(reach - w.pads[d] - w.pads[d + 2], 1);
      w.in[d] = least + random_.below(mostIn);
      w.out[d] = (w.in[d] + w.pads[d] + w.pads[d + 2] - reach) / w.strides[d] + 1;
    }
    using program::Attr;
    builder_.attr(Attr::ofInts(CDL_ATTR_STRIDES, w.strides))
        .attr(Attr::ofInts(CDL_ATTR_PADS, w.pads));
    builder_.attr(Attr::ofInts(CDL_ATTR_DILATIONS, w.dilations));
    return w;
  }

  void convolution() {
    const Windows w = windows(20, true, 12);
    int64_t inputs = extent(40), outputs = extent(40), group = 1;
    if (random_.oneIn(4)) // depthwise
      group = extent(60), inputs = 1, outputs = 1;
    else if (random_.oneIn(5))
      group = random_.between(2, 4), inputs = extent(9), outputs = extent(9);
    group = std::max<int64_t>(group, 1), inputs = std::max<int64_t>(inputs, 1),
    outputs = std::max<int64_t>(outputs, 1);
    const int64_t n = random_.oneIn(6) ? 2 : 1,
                  each = w.kernel[0] * w.kernel[1] * w.out[0] * w.out[1] * n;
    while (each * inputs * outputs * group > 60000 && inputs * outputs * group > 1)
      (inputs > 1 ? inputs : outputs > 1 ? outputs : group) /= 2;
    builder_.attr(program::Attr::ofInt(CDL_ATTR_GROUP, group));
    operand(0, {n, inputs * group, w.in[0], w.in[1]}, random_.oneIn(5) ? "rows" : "dense", false,
            values(elem(0)));
    operand(1, {outputs * group, inputs, w.kernel[0], w.kernel[1]}, "dense", random_.oneIn(2),
            values(elem(1)));
    zeroPoints();
    ending({n, outputs * group, w.out[0], w.out[1]}, inputs * w.kernel[0] * w.kernel[1]);
  }

  void pool() {
    const Windows w = windows(30, false, 14);
    builder_.attr(program::Attr::ofInts(CDL_ATTR_KERNEL, w.kernel));
    const int64_t n = random_.oneIn(6) ? 2 : 1, channels = extent(50);
    operand(0, {n, channels, w.in[0], w.in[1]}, random_.oneIn(5) ? "rows" : "dense", false,
            values(elem(0)));
    builder_.output(result(), physical({n, channels, w.out[0], w.out[1]}, 1),
                    random_.oneIn(4) ? "rows" : "dense");
    builder_.laidOut(layout(1));
  }

  const Target& target_;
  const cdl_row_t& row_;
  random::Random& random_;
  TrialBuilder builder_;
  bool hasExpr_ = false;
};

/// The lines that the backend's report= takes, each one's counts.
class Counts {
public:
  explicit Counts(uint64_t process)
      : path_(std::filesystem::temp_directory_path() / fmt::format("npu_random_rows_{}", process)) {
  }
  ~Counts() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  std::string path() const { return path_.string(); }
  /// Whether no execution since the last question sent an instruction to the vector engine.
  bool wereWithoutVector() const {
    std::ifstream file(path_);
    bool all = false;
    for (std::string line; std::getline(file, line);) {
      all = line.find("\"instructions_vector\":0,") != std::string::npos;
      if (!all) break;
    }
    file.close();
    std::ofstream(path_, std::ios::trunc);
    return all;
  }

private:
  std::filesystem::path path_;
};

int run(const Arguments& arguments) {
  const Counts counts(static_cast<uint64_t>(getpid()));
  Port port(arguments.backend, {{"npu", arguments.npu}, {"report", counts.path()}});
  const auto device = port.device();
  if (!device) {
    fmt::print(stderr, "npu_random_rows: {}\n", device.status().message());
    return 2;
  }
  const Target& target = (*device)->target();
  std::map<std::string, std::vector<const cdl_row_t*>> ops;
  for (const Target::Row& row : target.rows())
    if (const std::string op = opOf(row.row); row.row.support == CDL_SUPPORT_NATIVE &&
                                              op.starts_with(arguments.ops) &&
                                              op.ends_with(arguments.end))
      ops[op].push_back(&row.row);
  const bool hasInt16 = target.claims(CDL_PROFILE_INT16);
  for (const char* chain : kChains)
    if (!arguments.ops.empty() && std::string(chain).starts_with(arguments.ops)) ops[chain];
  if (ops.empty()) {
    fmt::print(stderr, "npu_random_rows: no row of '{}' is NATIVE\n", arguments.ops);
    return 2;
  }
  fmt::print("npu={}, seeds from {}\n", arguments.npu, arguments.seed);
  nlohmann::ordered_json report{
      {"npu", arguments.npu}, {"seed", arguments.seed}, {"count", arguments.count}};
  size_t failures = 0;
  for (const auto& [op, rows] : ops) {
    uint64_t agreed = 0, drawn = 0, inOnePass = 0; // of chains
    std::set<const cdl_row_t*> reached;
    nlohmann::ordered_json failed = nlohmann::ordered_json::array();
    for (; agreed < arguments.count && drawn < kMostDraws * arguments.count &&
           failed.size() < kMostFailures;
         ++drawn) {
      const std::string address = fmt::format("npu_rows:{}:{}", op, arguments.seed + drawn);
      random::Random random(seedOf(address));
      const cdl_row_t* const row = rows.empty() ? nullptr : random.of(rows);
      const auto chained = [&] {
        static constexpr Elem kElems[] = {Elem::i8_, Elem::u8_, Elem::i16_};
        const Elem elem = kElems[random.below(hasInt16 ? 3 : 2)];
        const auto trial = chainOf(op, elem, defaultSpace(target), random);
        return trial ? tryOut(*trial, port) : CaseResult::of(trial.status());
      };
      const CaseResult result = row ? Draw(address, target, *row, random).tryOut(port) : chained();
      inOnePass += counts.wereWithoutVector() && !row;
      using Outcome = CaseResult::Outcome;
      // not of the row
      if (result.outcome == Outcome::unsupported || result.outcome == Outcome::emulated) continue;
      if (result.outcome == Outcome::passed) {
        ++agreed;
        if (row) reached.insert(row);
        continue;
      }
      const std::string again = fmt::format("--npu {} --ops {} --seed {} --count 1", arguments.npu,
                                            op, arguments.seed + drawn);
      fmt::print("{}: {}\n  again: npu_random_rows {}\n", op, result.reason, again);
      failed.push_back({{"reason", result.reason}, {"again", again}});
    }
    // Where a pool is in one pass is the tiler's choice: windows over several tiles are not.
    const bool isReached = rows.empty() ? inOnePass > 0 || op.find("pool2d") != std::string::npos
                                        : reached.size() == rows.size();
    const bool isWhole = agreed == arguments.count && failed.empty() &&
                         (isReached || agreed < 20 * std::max<size_t>(rows.size(), 1));
    if (rows.empty())
      fmt::print("{:26} {} agree, {} drawn, {} in one pass, {} failed\n", op, agreed, drawn,
                 inOnePass, failed.size());
    else
      fmt::print("{:26} {} agree, {} drawn, {} of {} rows, {} failed\n", op, agreed, drawn,
                 reached.size(), rows.size(), failed.size());
    failures += !isWhole;
    report["ops"].push_back({{"op", op},
                             {"agreed", agreed},
                             {"drawn", drawn},
                             {"rows", rows.size()},
                             {"rows_reached", reached.size()},
                             {"in_one_pass", inOnePass},
                             {"failed", failed}});
  }
  fmt::print("{} ops, {} not as they should be\n", ops.size(), failures);
  if (!arguments.json.empty() && !(std::ofstream(arguments.json) << report.dump(2) << '\n')) {
    fmt::print(stderr, "npu_random_rows: {} cannot be written\n", arguments.json);
    return 2;
  }
  return failures ? 1 : 0;
}

} // namespace
} // namespace candela::conformance

int main(int count, char** words) {
  candela::conformance::Arguments arguments;
  if (!candela::conformance::parseArguments(count, words, arguments,
                                            {{"--npu", &arguments.npu},
                                             {"--backend", &arguments.backend},
                                             {"--ops", &arguments.ops},
                                             {"--end", &arguments.end},
                                             {"--json", &arguments.json}})) {
    fmt::print(stderr, "{}", candela::conformance::kUsage);
    return 2;
  }
  return candela::conformance::run(arguments);
}
