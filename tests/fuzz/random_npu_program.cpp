#include "tests/fuzz/random_npu_program.h"

#include <algorithm>
#include <deque>

#include "simulator/isa/grammar.h"
#include "tests/unit/simulator/program_builder.h"

namespace candela::npu {
namespace {

constexpr int64_t kArea = 65536;
constexpr int kFromControl = kControlSemaphores, kToControl = kControlSemaphores + 1;
constexpr int kScratchpad = 0, kRows = 1, kRegions = 2; ///< memories: the regions of DRAM follow
using Clock = std::array<uint32_t, kEngineCount>;

void join(Clock& into, const Clock& other) {
  for (size_t i = 0; i < into.size(); ++i) into[i] = std::max(into[i], other[i]);
}
int64_t lowestOf(Type type) { return type == Type::kI8 ? -128 : type == Type::kI16 ? -32768 : 0; }
int64_t highestOf(Type type) { return type == Type::kI8 ? 127 : type == Type::kI16 ? 32767 : 255; }

struct Span {
  int memory;
  int64_t from, to;
  bool isWrite;
  bool conflicts(const Span& other) const {
    return memory == other.memory && from < other.to && other.from < to &&
           (isWrite || other.isWrite);
  }
};
struct Touch {
  Span span;
  int engine;
  uint32_t epoch;
};
struct Descriptor {
  DescriptorKind kind;
  DescriptorValues v{};
  int64_t& operator[](int field) { return v[static_cast<size_t>(field)]; }
};
/// A draft that does not fit: the next one may.
struct Unfit {};

class Writer {
public:
  Writer(const Configuration& configuration, uint64_t seed)
      : c_(configuration), program_(configuration), random_(seed),
        valid_(configuration.accumulatorRows()) {
    for (int engine = 1; engine < kEngineCount; ++engine)
      if (configuration.engines() >> engine & 1) engines_.push_back(engine);
  }

  Binary write(int instructions) {
    begin();
    for (int i = 0; i < instructions; ++i) {
      if (draw(0, 15) == 0) loop();
      if (draw(0, 9) == 0) fence(static_cast<uint32_t>(random_()) & c_.engines() & ~1u);
      if (draw(0, 15) == 0) idleRegister();
      instruction();
    }
    fence(c_.engines() & ~1u);
    transferAll("store", 2, kArea, kArea);
    control("halt", {});
    return std::move(program_.binary);
  }

private:
  int64_t draw(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random_() % static_cast<uint64_t>(high - low + 1));
  }
  bool chance() { return random_() % 2; }
  int64_t zeroOf(Type type) { return draw(lowestOf(type), highestOf(type)); }
  Type narrowType() {
    return c_.hasInt16() && chance() ? Type::kI16 : chance() ? Type::kI8 : Type::kU8;
  }
  Type anyType() { return draw(0, 3) ? narrowType() : Type::kI32; }

  void begin() {
    program_.binary.constants.resize(kArea);
    for (std::byte& byte : program_.binary.constants) byte = static_cast<std::byte>(random_());
    program_.binary.regions = {{"constants", RegionClass::kConstants, kArea},
                               {"in", RegionClass::kInput, kArea},
                               {"out", RegionClass::kOutput, 2 * kArea}};
    const int64_t row = 4 * c_.columns(), rows = c_.accumulatorRows();
    transferAll("load", 1, 0, rows * row);
    program_.descriptor(0, DescriptorKind::kEpilogue,
                        {{"out_w", rows}, {"channels", c_.columns()}, {"pixel_stride", row}});
    program_.fence();
    program_.op("accload", {{"d", 0}});
    program_.fence();
    transferAll("load", 0, 0, kArea);
    program_.fence();
    std::fill(valid_.begin(), valid_.end(), c_.columns());
  }
  void transferAll(const char* op, int64_t region, int64_t far, int64_t bytes) {
    program_.descriptor(0, DescriptorKind::kTransfer, {{"run", bytes}});
    program_.op(op, {{"region", region}, {"far", far}, {"d", 0}});
  }

  // --- Order
  // -----------------------------------------------------------------------------------------------
  size_t indexOf(int engine) const {
    return static_cast<size_t>(std::find(engines_.begin(), engines_.end(), engine) -
                               engines_.begin());
  }
  /// One for each pair: only one engine waits on it.
  uint8_t semaphoreOf(int from, int to) const {
    const size_t i = indexOf(from), j = indexOf(to);
    return static_cast<uint8_t>(i * (engines_.size() - 1) + j - (j > i));
  }
  void push(const Insn& insn) {
    const Result<Word> word = encode(insn);
    if (!word) throw std::invalid_argument(word.message());
    program_.binary.code.push_back(*word);
    if (insn.engine == 0) return;
    Clock& clock = clocks_[insn.engine];
    join(clock, control_);
    ++clock[insn.engine];
  }
  void nop(int engine, Tokens wait) {
    Insn insn;
    insn.engine = static_cast<uint8_t>(engine);
    insn.waitSemaphore = static_cast<uint8_t>(wait.semaphore);
    insn.waitCount = static_cast<uint8_t>(wait.count);
    push(insn);
  }
  void signal(Insn& insn, int to, int count) {
    insn.signalSemaphore = semaphoreOf(insn.engine, to);
    insn.signalCount = static_cast<uint8_t>(count);
  }
  void sent(const Insn& insn, int to) {
    for (int i = 0; i < insn.signalCount; ++i)
      tokens_[insn.engine][to].push_back(clocks_[insn.engine]);
  }
  /// Takes the first n tokens from one engine to another.
  Tokens take(int from, int to, size_t n) {
    std::deque<Clock>& queue = tokens_[from][to];
    join(clocks_[to], queue[n - 1]);
    queue.erase(queue.begin(), queue.begin() + static_cast<int64_t>(n));
    return {semaphoreOf(from, to), static_cast<int>(n)};
  }
  /// A word of the control processor. Sometimes it takes a token of an engine or gives one, for no
  /// need.
  void control(Insn insn) {
    const bool signals = insn.op != Op::kHalt && draw(0, 9) == 0;
    if (draw(0, 9) == 0) waitForAnEngine(insn);
    if (signals) {
      insn.signalSemaphore = kFromControl;
      insn.signalCount = 1;
    }
    insn.mark = draw(0, 9) == 0;
    push(insn);
    // One engine takes them all: two that wait on a semaphore need an order.
    if (signals) nop(engines_.front(), {kFromControl, 1});
  }
  void control(std::string_view op, const Fields& fields) { control(insnOf(op, fields)); }
  static Insn insnOf(std::string_view op, const Fields& fields) {
    const OpInfo& info = *opInfo(op);
    Insn insn;
    insn.op = info.op;
    setFields(info.fields, fields, insn.values);
    return insn;
  }
  void waitForAnEngine(Insn& insn) {
    Insn given;
    given.engine = static_cast<uint8_t>(engines_[random_() % engines_.size()]);
    given.signalSemaphore = kToControl;
    given.signalCount = 1;
    push(given);
    insn.waitSemaphore = kToControl;
    insn.waitCount = 1;
  }
  /// Values that no address has.
  void idleRegister() {
    const int64_t x = draw(1, kIndexRegisters - 1), value = draw(-100000, 100000);
    control(chance() ? "movi" : "addi", {{"x", x}, {"value", value}});
  }
  void fence(uint32_t mask) {
    control("fence", {{"mask", mask}});
    for (const int engine : engines_)
      if (mask >> engine & 1) join(control_, clocks_[engine]);
    std::erase_if(touches_,
                  [&](const Touch& touch) { return control_[touch.engine] >= touch.epoch; });
  }
  /// Sends the instruction behind all that it must follow, by tokens that are there or by new ones.
  void send(Insn insn) {
    const int engine = insn.engine;
    join(clocks_[engine], control_);
    Clock need{};
    for (const Touch& touch : touches_)
      for (const Span& span : spans_)
        if (touch.engine != engine && touch.span.conflicts(span))
          need[touch.engine] = std::max(need[touch.engine], touch.epoch);
    std::vector<Tokens> waits;
    for (const int from : engines_) {
      if (need[from] <= clocks_[engine][from]) continue;
      std::deque<Clock>& queue = tokens_[from][engine];
      size_t n = 0;
      while (n < queue.size() && queue[n][from] < need[from]) ++n;
      if (n == queue.size()) {
        Insn signals;
        signals.engine = static_cast<uint8_t>(from);
        signal(signals, engine, 1);
        push(signals);
        sent(signals, engine);
      }
      waits.push_back(take(from, engine, n + 1));
    }
    if (!waits.empty() && chance()) {
      insn.waitSemaphore = static_cast<uint8_t>(waits.back().semaphore);
      insn.waitCount = static_cast<uint8_t>(waits.back().count);
      waits.pop_back();
    }
    for (const Tokens& wait : waits) nop(engine, wait);
    const int to = engines_[random_() % engines_.size()];
    const bool signals =
        !inLoop_ && to != engine && tokens_[engine][to].size() < 5 && draw(0, 2) == 0;
    if (signals) signal(insn, to, static_cast<int>(draw(1, 2)));
    insn.mark = draw(0, 9) == 0;
    push(insn);
    if (signals) sent(insn, to);
    for (const Span& span : spans_) touches_.push_back({span, engine, clocks_[engine][engine]});
  }
  void loop() {
    // A pass begins as the first one did: no token is left over, all is behind a fence.
    for (const int from : engines_)
      for (const int to : engines_)
        if (from != to && !tokens_[from][to].empty())
          nop(to, take(from, to, tokens_[from][to].size()));
    fence(c_.engines() & ~1u);
    const int64_t x = draw(1, kIndexRegisters - 1);
    control("movi", {{"x", x}, {"value", 0}});
    Insn insn;
    insn.op = Op::kLoop;
    const Draw& count =
        kOpDraws[opInfo(static_cast<uint64_t>(Op::kLoop)) - kOpTable][field::loop::kCount];
    insn.values[field::loop::kCount] = draw(count.low, count.high);
    step_ = 8 * draw(0, 8);
    reach_ = step_ * (insn.values[field::loop::kCount] - 1);
    if (draw(0, 3) == 0) waitForAnEngine(insn);
    insn.mark = draw(0, 3) == 0;
    const size_t at = program_.binary.code.size();
    program_.binary.code.emplace_back();
    inLoop_ = x;
    for (int64_t i = draw(1, 3); i > 0; --i) instruction();
    inLoop_ = 0;
    fence(c_.engines() & ~1u);
    control("addi", {{"x", x}, {"value", step_}});
    insn.values[field::loop::kLength] = static_cast<int64_t>(program_.binary.code.size() - at - 1);
    program_.binary.code[at] = *encode(insn);
  }

  // --- Instructions
  // -----------------------------------------------------------------------------------------------
  void instruction() {
    for (int tries = 0; tries < 200; ++tries) {
      spans_.clear();
      try {
        return attempt(kOpTable[random_() % kHardwareOps]);
      } catch (const Unfit&) {}
    }
  }
  void attempt(const OpInfo& info) {
    Insn insn;
    insn.op = info.op;
    std::vector<int> able;
    for (int engine = 0; engine < kEngineCount; ++engine)
      if (info.engines & c_.engines() & 1u << engine) able.push_back(engine);
    insn.engine = static_cast<uint8_t>(able[random_() % able.size()]);
    const std::span<const Draw> draws = kOpDraws[&info - kOpTable];
    for (size_t i = 0; i < info.fields.size(); ++i)
      insn.values[i] = info.fields[i].kind == FieldKind::kEnum ? memberOf(info.fields[i])
                                                               : draw(draws[i].low, draws[i].high);
    switch (info.op) {
    case Op::kNop: return insn.engine == 0 ? control(insn) : send(insn);
    case Op::kSnapshot: return control(insn);
    case Op::kConfig:
      insn.values[field::config::kOffset] = 0x34; // TAG
      insn.values[field::config::kValue] = draw(0, 1000);
      return control(insn);
    case Op::kLoad:
    case Op::kCopy:
    case Op::kFill: return load(insn);
    case Op::kStore: return store(insn);
    case Op::kConv:
    case Op::kDwconv: return convolution(insn);
    case Op::kLdw: return product(insn);
    case Op::kRequant: return requant(insn);
    case Op::kAccload:
    case Op::kAccstore: return rows(insn);
    case Op::kVbinary:
    case Op::kVunary:
    case Op::kVreduce:
    case Op::kVselect: return lanes(insn);
    case Op::kVpool: return pool(insn);
    default: throw Unfit{}; // halt, fence, loop, setd, movi, addi and mm come with others
    }
  }
  int64_t memberOf(const FieldInfo& field) {
    const EnumInfo& info = kEnums[field.of];
    return info.members[random_() % info.hardware].value;
  }
  Descriptor drawn(DescriptorKind kind) {
    Descriptor d{kind};
    const auto fields = descriptorInfo(kind).fields;
    for (size_t i = 0; i < fields.size(); ++i) {
      const Draw& range = kDescriptorDraws[static_cast<size_t>(kind)][i];
      d.v[i] = range.isFree ? draw(range.low, range.high) : fields[i].minusOne;
    }
    return d;
  }
  int64_t put(const Descriptor& d, int64_t at = -1) {
    if (at < 0) at = draw(0, kDescriptors - 1);
    at %= kDescriptors;
    const Result<DescriptorBits> bits = encodeDescriptor(d.kind, d.v);
    if (!bits) throw std::invalid_argument(bits.message());
    for (int word = 0; word < 4; ++word)
      control("setd", {{"d", at},
                       {"word", word},
                       {"value", static_cast<int64_t>((*bits)[static_cast<size_t>(word)])}});
    return at;
  }

  /// A place of the operand `field` and its index register, apart from what is written beside it.
  void place(Insn& insn, int field, int64_t bytes, int64_t alignment, bool isWrite,
             int memory = kScratchpad, int64_t from = 0) {
    const int64_t reach = inLoop_ && chance() ? reach_ : 0;
    for (int tries = 0; tries < 30 && bytes + reach <= kArea; ++tries) {
      const int64_t at = draw(0, (kArea - bytes - reach) / alignment) * alignment;
      const Span span{memory, at, at + bytes + reach, isWrite};
      if (std::any_of(spans_.begin(), spans_.end(),
                      [&](const Span& other) { return other.conflicts(span); }))
        continue;
      spans_.push_back(span);
      insn.values[static_cast<size_t>(field)] = at + from;
      insn.values[static_cast<size_t>(field) + 1] = reach ? inLoop_ : 0;
      return;
    }
    throw Unfit{};
  }
  /// Accumulator rows: of each block of columns `pixels`, `pitch` apart.
  void placeRows(Insn& insn, int field, int64_t pixels, int64_t pitch, int64_t channels,
                 bool isRead, bool isWrite) {
    const int64_t columns = c_.columns(), blocks = (channels + columns - 1) / columns,
                  all = (blocks - 1) * pitch + pixels, rows = static_cast<int64_t>(valid_.size());
    for (int tries = 0; tries < 30 && all <= rows; ++tries) {
      const int64_t at = draw(0, rows - all);
      bool fits = true;
      const auto each = [&](auto visit) {
        for (int64_t block = 0; block < blocks; ++block)
          for (int64_t i = 0; i < pixels; ++i)
            visit(valid_[static_cast<size_t>(at + block * pitch + i)],
                  std::min(columns, channels - block * columns));
      };
      each([&](int64_t valid, int64_t n) { fits &= isRead ? valid >= n : !inLoop_ || valid <= n; });
      if (!fits) continue;
      if (isWrite && !isRead) each([&](int64_t& valid, int64_t n) { valid = n; });
      spans_.push_back({kRows, at, at + all, isWrite});
      insn.values[static_cast<size_t>(field)] = at;
      return;
    }
    throw Unfit{};
  }

  void load(Insn insn) {
    namespace f = descriptor::transfer;
    Descriptor t = drawn(DescriptorKind::kTransfer);
    const int64_t extents[3] = {t[f::kLen1] + t[f::kPadLeft] + t[f::kPadRight],
                                t[f::kLen2] + t[f::kPadTop] + t[f::kPadBottom], t[f::kLen3]};
    int order[3] = {0, 1, 2};
    std::shuffle(order, order + 3, random_);
    int64_t size = t[f::kRun];
    for (const int dimension : order) {
      const int64_t stride = size + draw(0, 3) * draw(0, 1);
      t[f::kNearStride1 + dimension] = stride;
      size += stride * (extents[dimension] - 1);
    }
    const int at = insn.op == Op::kLoad   ? int{field::load::kDst}
                   : insn.op == Op::kCopy ? int{field::copy::kDst}
                                          : int{field::fill::kDst};
    place(insn, at, size, 1, true);
    const auto [from, bytes] = farStrides(t, draw(0, 3));
    if (insn.op == Op::kLoad) {
      insn.values[field::load::kRegion] = draw(0, 2);
      place(insn, field::load::kFar, bytes, 1, false,
            kRegions + static_cast<int>(insn.values[field::load::kRegion]), from);
    } else if (insn.op == Op::kCopy) {
      place(insn, field::copy::kSrc, bytes, 1, false, kScratchpad, from);
    }
    const int d = insn.op == Op::kLoad   ? int{field::load::kD}
                  : insn.op == Op::kCopy ? int{field::copy::kD}
                                         : int{field::fill::kD};
    insn.values[static_cast<size_t>(d)] = put(t);
    send(insn);
  }
  /// Strides of the far side, some of them negative: where the first run lies in the box, and the
  /// box.
  std::pair<int64_t, int64_t> farStrides(Descriptor& t, int64_t gap) {
    namespace f = descriptor::transfer;
    int64_t size = t[f::kRun], from = 0;
    for (int i = 0; i < 3; ++i) {
      const int64_t stride = size + gap, step = stride * (t[f::kLen1 + i] - 1);
      const bool isBack = draw(0, 3) == 0;
      t[f::kFarStride1 + i] = isBack ? -stride : stride;
      from += isBack ? step : 0;
      size += step;
    }
    return {from, size};
  }
  void store(Insn insn) {
    namespace f = descriptor::transfer;
    Descriptor t = drawn(DescriptorKind::kTransfer);
    for (const int pad : {f::kPadLeft, f::kPadRight, f::kPadTop, f::kPadBottom}) t[pad] = 0;
    int64_t size = t[f::kRun];
    for (int i = 0; i < 3; ++i) { // what is read may be read again
      t[f::kNearStride1 + i] = draw(0, 2) ? size + draw(0, 3) : draw(0, 5);
      size += t[f::kNearStride1 + i] * (t[f::kLen1 + i] - 1);
    }
    place(insn, field::store::kSrc, size, 1, false);
    const auto [from, bytes] = farStrides(t, draw(0, 3));
    insn.values[field::store::kRegion] = 2;
    place(insn, field::store::kFar, bytes, 1, true, kRegions + 2, from);
    insn.values[field::store::kD] = put(t);
    send(insn);
  }

  void windowTypes(Descriptor& w) {
    namespace f = descriptor::window;
    const Type a = narrowType(), b = chance() ? Type::kI8 : Type::kU8;
    w[f::kAType] = static_cast<int64_t>(a);
    w[f::kAZp] = chance() ? 0 : zeroOf(a);
    w[f::kWType] = static_cast<int64_t>(b);
    w[f::kWZp] = chance() ? 0 : zeroOf(b);
    w[f::kPixelStride] = (w[f::kCin] + draw(0, 4) * draw(0, 1)) * bytesOf(a);
    w[f::kRowStride] = w[f::kInW] * w[f::kPixelStride] + draw(0, 4) * bytesOf(a);
    w[f::kPlaneRows] = w[f::kInH] + draw(0, 2);
  }
  void convolution(Insn insn) {
    namespace f = descriptor::window;
    namespace o = field::conv; // dwconv has the same
    Descriptor w = drawn(DescriptorKind::kWindow);
    const bool depthwise = insn.op == Op::kDwconv;
    windowTypes(w);
    const int64_t unit = bytesOf(static_cast<Type>(w[f::kAType]));
    if (depthwise) w[f::kTransposed] = w[f::kFlat] = 0;
    const int64_t taps = w[f::kKernelH] * w[f::kKernelW], k = taps * w[f::kCin];
    const int64_t channels = depthwise ? w[f::kCin] : w[f::kCout],
                  pixels = w[f::kPlanes] * w[f::kOutH] * w[f::kOutW],
                  inRows = (w[f::kPlanes] - 1) * w[f::kPlaneRows] + w[f::kInH];
    if (!depthwise && !w[f::kFlat] && 2 * w[f::kCin] <= c_.rows())
      w[f::kTaps] = draw(1, std::min<int64_t>(64, c_.rows() / w[f::kCin]));
    const int64_t rows = depthwise           ? taps
                         : w[f::kTransposed] ? w[f::kCout]
                                             : k,
                  bytes = depthwise           ? w[f::kCin]
                          : w[f::kTransposed] ? k
                                              : w[f::kCout];
    w[f::kWeightPitch] = bytes + draw(0, 5) * draw(0, 1);
    w[f::kAccPitch] = pixels + draw(0, 3);
    placeRows(insn, o::kAcc, pixels, w[f::kAccPitch], channels, insn.values[o::kAccumulate], true);
    place(insn, o::kAct,
          (inRows - 1) * w[f::kRowStride] + (w[f::kInW] - 1) * w[f::kPixelStride] +
              w[f::kCin] * unit,
          unit, false);
    place(insn, o::kWgt, (rows - 1) * w[f::kWeightPitch] + bytes, 1, false);
    insn.values[o::kD] = put(w);
    send(insn);
  }
  /// ldw, then mm once or twice.
  void product(Insn weights) {
    namespace f = descriptor::window;
    Descriptor w = drawn(DescriptorKind::kWindow);
    const int64_t k = draw(1, c_.rows()), n = draw(1, c_.columns());
    w[f::kCin] = k;
    windowTypes(w);
    const int64_t unit = bytesOf(static_cast<Type>(w[f::kAType])), rows = w[f::kTransposed] ? n : k,
                  bytes = w[f::kTransposed] ? k : n;
    w[f::kWeightPitch] = bytes + draw(0, 5);
    w[f::kRowStride] = w[f::kOutW] * w[f::kStrideW] * w[f::kPixelStride];
    weights.values[field::ldw::kK] = k;
    weights.values[field::ldw::kN] = n;
    place(weights, field::ldw::kWgt, (rows - 1) * w[f::kWeightPitch] + bytes, 1, false);
    weights.values[field::ldw::kD] = put(w);
    const int64_t d = weights.values[field::ldw::kD], pixels = w[f::kOutH] * w[f::kOutW];
    send(weights);
    for (int64_t swap = 1; swap >= draw(0, 1); --swap) {
      Insn insn;
      insn.op = Op::kMm;
      insn.engine = weights.engine;
      insn.values[field::mm::kD] = d;
      insn.values[field::mm::kSwap] = swap;
      insn.values[field::mm::kAccumulate] = draw(0, 1);
      spans_.clear();
      placeRows(insn, field::mm::kAcc, pixels, 0, n, insn.values[field::mm::kAccumulate], true);
      place(insn, field::mm::kAct,
            (w[f::kOutH] - 1) * w[f::kStrideH] * w[f::kRowStride] +
                (w[f::kOutW] - 1) * w[f::kStrideW] * w[f::kPixelStride] + k * unit,
            unit, false);
      send(insn);
    }
  }

  void bounds(Descriptor& d, int zero, Type type) { // zero, low, high lie one behind the other
    const bool isWord = type == Type::kI32;
    d[zero] = isWord ? draw(-256, 255) : zeroOf(type);
    d[zero + 1] = isWord ? 0 : draw(lowestOf(type), (lowestOf(type) + highestOf(type)) / 2);
    d[zero + 2] = isWord ? 0 : draw(d[zero + 1], highestOf(type));
  }
  Descriptor rescale(Type a, Type b, Type out, int64_t mostShift = 30) {
    namespace f = descriptor::rescale;
    Descriptor r = drawn(DescriptorKind::kRescale);
    const auto shift = [&](int64_t drawn, Type type) {
      return std::min(drawn, type == Type::kI32 ? 7 : type == Type::kI16 ? 22 : mostShift);
    };
    r[f::kAShift] = std::min(shift(r[f::kAShift], a), mostShift);
    r[f::kBShift] = shift(r[f::kBShift], b);
    r[f::kAZp] = a == Type::kI32 ? draw(-256, 255) : zeroOf(a);
    r[f::kBZp] = b == Type::kI32 ? draw(-256, 255) : zeroOf(b);
    bounds(r, f::kZp, out);
    r[f::kBType] = static_cast<int64_t>(b);
    r[f::kOutType] = static_cast<int64_t>(out);
    return r;
  }
  int64_t inputs(int64_t out, int64_t stride, int64_t& pad, int64_t kernel, int64_t atLeast) {
    pad %= kernel;
    return std::max({int64_t{1}, atLeast, (out - 1) * stride - pad + 1});
  }
  void requant(Insn insn) {
    namespace f = descriptor::epilogue;
    namespace r = descriptor::rescale;
    namespace o = field::requant;
    Descriptor d = drawn(DescriptorKind::kEpilogue);
    const Type out = narrowType(), other = narrowType();
    const int64_t unit = bytesOf(out), channels = d[f::kChannels];
    d[f::kOutType] = static_cast<int64_t>(out);
    d[f::kWide] = c_.hasInt16() && d[f::kWide];
    bounds(d, f::kZp, out);
    if (chance()) d[f::kPoolH] = d[f::kPoolW] = d[f::kPoolStrideH] = d[f::kPoolStrideW] = 1;
    d[f::kInH] =
        inputs(d[f::kOutH], d[f::kPoolStrideH], d[f::kPoolPadTop], d[f::kPoolH], draw(1, 4));
    d[f::kInW] =
        inputs(d[f::kOutW], d[f::kPoolStrideW], d[f::kPoolPadLeft], d[f::kPoolW], draw(1, 4));
    d[f::kAccPitch] = d[f::kInH] * d[f::kInW] + draw(0, 2);
    d[f::kPixelStride] = (channels + draw(0, 3)) * unit;
    d[f::kRowStride] = d[f::kOutW] * d[f::kPixelStride] + draw(0, 3) * unit;
    const int64_t pixels = d[f::kInH] * d[f::kInW];
    placeRows(insn, o::kAcc, pixels, d[f::kAccPitch], channels, true, false);
    const auto box = [&](int64_t row, int64_t pixel, int64_t bytes) {
      return (d[f::kOutH] - 1) * row + (d[f::kOutW] - 1) * pixel + channels * bytes;
    };
    place(insn, o::kDst, box(d[f::kRowStride], d[f::kPixelStride], unit), unit, true);
    Insn room; // params and table stand in the descriptor, without an index register
    const int64_t loop = std::exchange(inLoop_, 0);
    place(room, 0, 8 * channels, 8, false);
    d[f::kParams] = room.values[0];
    if (insn.values[o::kTable]) {
      place(room, 0, out == Type::kI16 ? 1026 : 256, unit, false);
      d[f::kTable] = room.values[0];
    }
    inLoop_ = loop;
    Descriptor second = rescale(out, other, out);
    if (insn.values[o::kResidual]) {
      const int64_t bytes = bytesOf(other);
      second[r::kPixelStride] = (channels + draw(0, 3)) * bytes;
      second[r::kRowStride] = d[f::kOutW] * second[r::kPixelStride];
      place(insn, o::kRes, box(second[r::kRowStride], second[r::kPixelStride], bytes), bytes,
            false);
    }
    insn.values[o::kD] = put(d);
    insn.values[o::kR] = put(second, insn.values[o::kD] + draw(1, kDescriptors - 1));
    send(insn);
  }
  void rows(Insn insn) {
    namespace f = descriptor::epilogue;
    namespace o = field::accload; // accstore has the same
    Descriptor d = drawn(DescriptorKind::kEpilogue);
    const bool isLoad = insn.op == Op::kAccload;
    d[f::kWide] = c_.hasInt16() && d[f::kWide];
    const int64_t unit = d[f::kWide] ? 8 : 4, channels = d[f::kChannels],
                  pixels = d[f::kOutH] * d[f::kOutW];
    d[f::kAccPitch] = pixels + draw(0, 2);
    d[f::kPixelStride] = isLoad && chance() ? 0 : (channels + draw(0, 2)) * unit;
    d[f::kRowStride] = isLoad && chance() ? 0 : d[f::kOutW] * (channels + 2) * unit;
    placeRows(insn, o::kAcc, pixels, d[f::kAccPitch], channels, !isLoad, isLoad);
    place(insn, o::kSrc,
          (d[f::kOutH] - 1) * d[f::kRowStride] + (d[f::kOutW] - 1) * d[f::kPixelStride] +
              channels * unit,
          unit, !isLoad);
    insn.values[o::kD] = put(d);
    send(insn);
  }

  void lanes(Insn insn) {
    namespace f = descriptor::lanes;
    Descriptor l = drawn(DescriptorKind::kLanes);
    const bool isBinary = insn.op == Op::kVbinary, isUnary = insn.op == Op::kVunary,
               isReduce = insn.op == Op::kVreduce;
    // a, b, dst, d, fn of vbinary; vunary and vselect have them at the same places, vreduce has no
    // b.
    const auto binary = static_cast<BinaryFn>(insn.values[field::vbinary::kFn]);
    const bool isTable =
        isUnary && insn.values[field::vunary::kFn] == static_cast<int64_t>(UnaryFn::kTable);
    const bool isProduct = isBinary && binary == BinaryFn::kScaledMul;
    Type a = anyType(), b = anyType(), out = anyType();
    if (isProduct || isTable) a = narrowType(), b = narrowType();
    if (isTable) out = a == Type::kI16 ? a : chance() ? Type::kI8 : Type::kU8;
    if (insn.op == Op::kVselect) a = Type::kU8, b = out;
    l[f::kAType] = static_cast<int64_t>(a);
    l[f::kBType] = static_cast<int64_t>(b);
    l[f::kOutType] = static_cast<int64_t>(out);
    const auto operand = [&](int field, int stride, Type type, int64_t elements, bool isWrite) {
      const int64_t unit = bytesOf(type), bytes = elements * unit;
      l[stride] = !isWrite && draw(0, 3) == 0 ? 0 : bytes + unit * draw(0, 3);
      l[stride + 1] =
          !isWrite && draw(0, 3) == 0 ? 0 : l[f::kLen1] * (l[stride] + bytes) + unit * draw(0, 3);
      place(insn, field, (l[f::kLen2] - 1) * l[stride + 1] + (l[f::kLen1] - 1) * l[stride] + bytes,
            unit, isWrite);
    };
    const int dst = isReduce ? int{field::vreduce::kDst} : int{field::vbinary::kDst};
    operand(dst, f::kOutStride1, out, isReduce ? 1 : l[f::kRun], true);
    if (!isReduce && a == out && !inLoop_ && chance()) { // in place
      insn.values[field::vbinary::kA] = insn.values[field::vbinary::kDst];
      l[f::kAStride1] = l[f::kOutStride1];
      l[f::kAStride2] = l[f::kOutStride2];
    } else {
      operand(field::vbinary::kA, f::kAStride1, a, l[f::kRun], false);
    }
    if (isTable)
      place(insn, field::vunary::kB, a == Type::kI16 ? 1026 : 256, bytesOf(a), false);
    else if (!isReduce && !isUnary)
      operand(field::vbinary::kB, f::kBStride1, b, l[f::kBScalar] ? 1 : l[f::kRun], false);
    const bool isWide = a == Type::kI16 || b == Type::kI16;
    const Descriptor second = rescale(a, b, out, isProduct ? (isWide ? 6 : 22) : 30);
    const int d = isReduce ? int{field::vreduce::kD} : int{field::vbinary::kD};
    insn.values[static_cast<size_t>(d)] = put(l);
    put(second, insn.values[static_cast<size_t>(d)] + 1);
    send(insn);
  }
  void pool(Insn insn) {
    namespace f = descriptor::pooling;
    namespace o = field::vpool;
    Descriptor p = drawn(DescriptorKind::kPooling);
    const Type a = anyType(),
               out = insn.values[o::kFn] == static_cast<int64_t>(PoolFn::kMax) ? a : anyType();
    p[f::kAType] = static_cast<int64_t>(a);
    p[f::kOutType] = static_cast<int64_t>(out);
    p[f::kInH] = inputs(p[f::kOutH], p[f::kStrideH], p[f::kPadTop], p[f::kKernelH], p[f::kInH]);
    p[f::kInW] = inputs(p[f::kOutW], p[f::kStrideW], p[f::kPadLeft], p[f::kKernelW], p[f::kInW]);
    p[f::kInPixelStride] = (p[f::kChannels] + draw(0, 2)) * bytesOf(a);
    p[f::kInRowStride] = p[f::kInW] * p[f::kInPixelStride];
    p[f::kOutPixelStride] = (p[f::kChannels] + draw(0, 2)) * bytesOf(out);
    p[f::kOutRowStride] = p[f::kOutW] * p[f::kOutPixelStride];
    place(insn, o::kA, p[f::kInH] * p[f::kInRowStride], bytesOf(a), false);
    place(insn, o::kDst, p[f::kOutH] * p[f::kOutRowStride], bytesOf(out), true);
    insn.values[o::kD] = put(p);
    put(rescale(a, a, out, 7), insn.values[o::kD] + 1);
    send(insn);
  }

  const Configuration& c_;
  ProgramBuilder program_;
  std::mt19937_64 random_;
  std::vector<int> engines_;
  std::vector<int64_t> valid_; ///< of each accumulator row: how many columns were written
  std::vector<Span> spans_;    ///< of the instruction that is being drawn
  std::vector<Touch> touches_;
  std::array<Clock, kEngineCount> clocks_{};
  Clock control_{};
  std::deque<Clock> tokens_[kEngineCount][kEngineCount]; ///< under way, from one engine to another
  /// the index register of the loop, 0: none
  int64_t inLoop_ = 0;
  /// of that register: in a pass, and in all
  int64_t step_ = 0, reach_ = 0;
};

} // namespace

Configuration randomConfiguration(std::mt19937_64& random) {
  Configuration c = *findConfiguration("gem16");
  c.values[key::kArrayRows] = int64_t{4} << random() % 5;
  c.values[key::kArrayColumns] = int64_t{4} << random() % 4;
  c.values[key::kScratchpadBytes] = kArea;
  c.values[key::kAccumulatorBytes] = 32768;
  c.values[key::kDmaLoadChannels] = 2;
  c.values[key::kCommandQueueDepth] = 1 + static_cast<int64_t>(random() % 8);
  c.values[key::kFeaturesInt16] = random() % 2;
  return c;
}

Binary randomProgram(const Configuration& configuration, uint64_t seed, int instructions) {
  return Writer(configuration, seed).write(instructions);
}

} // namespace candela::npu
