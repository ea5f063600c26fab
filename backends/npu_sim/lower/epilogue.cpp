#include "epilogue.hpp"

#include <algorithm>
#include <bit>

namespace npu_sim {

namespace {

/// The numbers of a view that differ by channel at most.
std::vector<int32_t> byChannel(const LoweringState& l, const DeviceView& o, int channelDim,
                               const char* what) {
  const auto channel = static_cast<size_t>(channelDim);
  for (int d = 0; d < o.rank; ++d) {
    const auto at = static_cast<size_t>(d);
    if (d != channelDim && o.dims[at] > 1 && o.strides[at] != 0)
      throw Refusal{CDL_REASON_DIM, cdl::text(what, " differs along dim ", d,
                                              ", which is not that of the channels")};
  }
  const int64_t channels = o.dims[channel];
  const bool isRow =
      (o.elem == CDL_I32 || o.elem == CDL_F32) && (o.strides[channel] == 1 || channels == 1);
  if (isRow) {
    if (auto row = l.image.knownRow(o, channels)) return std::move(*row);
  }
  // What is only repeated is looked at once.
  const int64_t different = o.strides[channel] == 0 ? std::min<int64_t>(channels, 1) : channels;
  std::vector<int32_t> values(static_cast<size_t>(channels));
  for (int64_t c = 0; c < different; ++c) {
    const std::optional<int32_t> value = l.image.known(o, c * o.strides[channel]);
    if (!value) throw Refusal{CDL_REASON_NOT_CONSTANT, cdl::text(what, " is no constant")};
    values[static_cast<size_t>(c)] = *value;
  }
  if (different < channels) std::fill(values.begin(), values.end(), values[0]);
  return values;
}

bool isKnown(const LoweringState& l, const DeviceView& o) {
  return o.elements() > 0 && l.image.known(o, 0).has_value();
}

[[noreturn]] void otherExpression(size_t step) {
  throw Refusal{
      CDL_REASON_VENDOR,
      cdl::text("step ", step, " of the epilogue is none of: add(acc, bias), rescale, max, min")};
}

/// The constant of a step, in its element type.
int32_t integerOf(const cdl_step_t& step) {
  switch (step.elem) {
  case CDL_I8: return static_cast<int8_t>(step.imm);
  case CDL_I16: return static_cast<int16_t>(step.imm);
  default: return static_cast<int32_t>(step.imm);
  }
}

/// Reads the expression of a product of bf16, step by step.
class FloatEpilogueReader {
public:
  FloatEpilogueReader(LoweringState& l, const cdl::Op& op, int channelDim)
      : l_(l), op_(op), channelDim_(channelDim), y_(l.image.output(op)),
        channels_(static_cast<size_t>(y_.dims[static_cast<size_t>(channelDim)])) {}

  FloatEpilogue read() {
    e_.scale.assign(channels_, 1);
    e_.bias.assign(channels_, 0);
    const cdl_expr_t* expr = op_.expr();
    value_.assign(expr ? expr->steps : 0, Value::kOther);
    for (step_ = 0; step_ < value_.size(); ++step_) {
      value_[step_] = readStep(*cdl_get_step(op_.image(), expr->first_step + step_));
      if (value_[step_] == Value::kResult) last_ = step_;
    }
    if (!value_.empty() && last_ != value_.size() - 1) otherExpression(value_.size() - 1);
    return e_;
  }

private:
  /// What a step leaves: the product with all that was done to it so far, or an operand in f32.
  enum class Value : uint8_t { kResult, kWidened, kOther };
  enum class State : uint8_t { kSums, kBiased, kBounded, kRounded };

  Value readStep(const cdl_step_t& step) {
    if (step.kind == CDL_KIND_CONVERT) return convert(step);
    if (step.kind != CDL_KIND_BINARY || step.elem != CDL_F32 || step.operands != 2)
      otherExpression(step_);
    const bool isFirst = isResult(step.in[0]);
    if (isFirst == isResult(step.in[1])) otherExpression(step_);
    const cdl_operand_t& other = step.in[isFirst ? 1 : 0];
    switch (step.fn) {
    case CDL_BINARY_MUL: scale(step, other); break;
    case CDL_BINARY_ADD: add(step, other, 1); break;
    case CDL_BINARY_SUB:
      if (!isFirst) otherExpression(step_);
      add(step, other, -1);
      break;
    case CDL_BINARY_MAX:
    case CDL_BINARY_MIN: bound(step, other); break;
    default: otherExpression(step_);
    }
    return Value::kResult;
  }

  /// Whether it is all that was done so far: what reads earlier results again is no chain.
  bool isResult(const cdl_operand_t& o) const {
    if (!last_) return o.source == CDL_FROM_ACC;
    return o.source == CDL_FROM_STEP && o.index == *last_;
  }

  /// Sums are f32 already; what a convert of them rounds is rounded once, at the end.
  Value convert(const cdl_step_t& step) {
    if (isResult(step.in[0])) {
      if (step.elem == CDL_BF16) state_ = State::kRounded;
      if (step.elem == CDL_BF16 || state_ == State::kSums) return Value::kResult;
    } else if (step.in[0].source == CDL_FROM_VIEW && step.elem == CDL_F32) {
      widened_[step_] = step.in[0].index;
      return Value::kWidened;
    }
    otherExpression(step_);
  }

  void needBefore(State last) const {
    if (state_ > last) otherExpression(step_);
  }
  /// The input of the instruction that a step reads; nothing of a number.
  std::optional<uint32_t> viewOf(const cdl_operand_t& o) const {
    if (o.source == CDL_FROM_VIEW) return o.index;
    if (o.source == CDL_FROM_STEP && value_[o.index] == Value::kWidened)
      return widened_.at(o.index);
    if (o.source != CDL_FROM_CONST) otherExpression(step_);
    return std::nullopt;
  }
  static float realOf(int32_t bits) { return std::bit_cast<float>(bits); }
  /// Numbers by channel; what is no constant of f32 is refused.
  std::vector<float> numbers(const cdl_step_t& step, const cdl_operand_t& o,
                             const char* what) const {
    const std::optional<uint32_t> view = viewOf(o);
    if (!view) return std::vector<float>(channels_, realOf(static_cast<int32_t>(step.imm)));
    const DeviceView from = l_.image.input(op_, *view);
    if (from.elem != CDL_F32) otherExpression(step_);
    std::vector<float> reals;
    for (const int32_t bits : byChannel(l_, from, channelDim_, what)) reals.push_back(realOf(bits));
    return reals;
  }

  void scale(const cdl_step_t& step, const cdl_operand_t& other) {
    needBefore(State::kSums);
    const std::vector<float> by = numbers(step, other, "the scale");
    for (size_t c = 0; c < channels_; ++c) e_.scale[c] *= by[c];
  }

  void add(const cdl_step_t& step, const cdl_operand_t& other, float sign) {
    needBefore(State::kBiased);
    state_ = State::kBiased;
    if (const std::optional<uint32_t> view = viewOf(other)) {
      const DeviceView from = l_.image.input(op_, *view);
      if (!isKnown(l_, from)) return addResidual(from, sign);
    }
    const std::vector<float> by = numbers(step, other, "the bias");
    for (size_t c = 0; c < channels_; ++c) e_.bias[c] += sign * by[c];
  }

  void addResidual(const DeviceView& from, float sign) {
    const auto channel = static_cast<size_t>(channelDim_);
    const bool isApart = channels_ > 1 && from.strides[channel] != 1;
    const bool isFloat = from.elem == CDL_F32 || from.elem == CDL_BF16;
    if (e_.residual || sign < 0 || !isFloat || !from.isLocal() || isApart || from.dims != y_.dims)
      otherExpression(step_);
    // Parts of the result are written before later parts of it are read, unless both are one.
    const Access read = from.access(false), written = y_.access(true);
    const bool overlaps = read.begin < written.end && written.begin < read.end;
    const bool isSame = isSameView(from, y_) && from.strides == y_.strides;
    if (y_.isLocal() && overlaps && !isSame) otherExpression(step_);
    e_.residual = from;
  }

  /// Moves the bounds; both are numbers of all channels.
  void bound(const cdl_step_t& step, const cdl_operand_t& other) {
    needBefore(State::kBounded);
    state_ = State::kBounded;
    float bound = realOf(static_cast<int32_t>(step.imm));
    if (const std::optional<uint32_t> view = viewOf(other)) {
      const DeviceView from = l_.image.input(op_, *view);
      if (from.elem != CDL_F32) otherExpression(step_);
      bound = realOf(l_.image.scalar(from, "the bound"));
    }
    if (!(bound == bound)) otherExpression(step_); // NaN
    const auto moved = [&](float limit) {
      return step.fn == CDL_BINARY_MAX ? std::max(limit, bound) : std::min(limit, bound);
    };
    e_.low = moved(e_.low);
    e_.high = moved(e_.high);
  }

  LoweringState& l_;
  const cdl::Op& op_;
  const int channelDim_;
  const DeviceView y_;
  const size_t channels_;
  size_t step_ = 0; ///< the one at hand
  State state_ = State::kSums;
  std::vector<Value> value_;           ///< by step
  std::optional<size_t> last_;         ///< the last step that left a result
  std::map<size_t, uint32_t> widened_; ///< by step: which input
  FloatEpilogue e_;
};

/// Does an expression of floats that is not in the device's form, on what the product left in its
/// result: by the vector engine, chunk by chunk, as what is between two steps is f32 and lies among
/// the records.
class FloatSteps {
public:
  FloatSteps(LoweringState& l, const cdl::Op& op)
      : l_(l), op_(op), y_(l.image.output(op)), steps_(op.expr()->steps) {
    for (uint32_t k = 0; k < steps_; ++k) check(k);
    // What rounds to the result's type rounds what the step before it writes there.
    end_ = steps_ - 1;
    if (end_ > 0 && stepAt(end_).kind == CDL_KIND_CONVERT) --end_;
    if (stepAt(end_).kind != CDL_KIND_BINARY) otherExpression(end_);
    for (uint32_t i = op.operands(); i < op.inputs(); ++i)
      if (isKnown(l, l.image.input(op, i)))
        numbers_[i] = byChannel(l, l.image.input(op, i), y_.rank - 1, "an operand of the epilogue");
  }

  void emit() {
    const auto last = static_cast<size_t>(y_.rank) - 1;
    const int64_t most = std::max<int64_t>(l_.recordsBytes / 2 / (4 * (steps_ + op_.inputs())), 1);
    Chunk chunk;
    chunk.count.fill(1);
    const int64_t channels = std::min(most, y_.dims[last]);
    const int64_t positions = std::min(std::max<int64_t>(most / channels, 1), y_.dims[last - 1]);
    do {
      for (int64_t p = 0; p < y_.dims[last - 1]; p += positions)
        for (int64_t c = 0; c < y_.dims[last]; c += channels) {
          chunk.first[last - 1] = p;
          chunk.first[last] = c;
          chunk.count[last - 1] = std::min(positions, y_.dims[last - 1] - p);
          chunk.count[last] = std::min(channels, y_.dims[last] - c);
          emit(chunk);
        }
    } while (next(chunk, last - 1));
  }

private:
  /// A part of the result: where it begins and how far it goes, by dim.
  struct Chunk {
    std::array<int64_t, CDL_MAX_RANK> first{}, count{};
  };

  const cdl_step_t& stepAt(uint32_t k) const {
    return *cdl_get_step(op_.image(), op_.expr()->first_step + k);
  }

  void check(uint32_t k) const {
    const cdl_step_t& step = stepAt(k);
    const bool isBinary =
        step.kind == CDL_KIND_BINARY && step.elem == CDL_F32 && step.operands == 2;
    const bool isWidening = step.kind == CDL_KIND_CONVERT && step.elem == CDL_F32;
    const bool isEnd = step.kind == CDL_KIND_CONVERT && step.elem == y_.elem && k == steps_ - 1 &&
                       step.in[0].source == CDL_FROM_STEP && step.in[0].index + 1u == k;
    if (!isBinary && !isWidening && !isEnd) otherExpression(k);
    if (isBinary) (void)binaryOf(step.fn);
  }

  /// Moves on by the dims before `inner`; whether there is more.
  bool next(Chunk& chunk, size_t inner) const {
    for (size_t d = inner; d-- > 0;) {
      if (++chunk.first[d] < y_.dims[d]) return true;
      chunk.first[d] = 0;
    }
    return false;
  }

  DeviceView partOf(DeviceView view, const Chunk& chunk) const {
    for (size_t d = 0; d < static_cast<size_t>(y_.rank); ++d) {
      view.at += chunk.first[d] * view.strides[d] * view.bytes;
      view.dims[d] = chunk.count[d];
    }
    return view;
  }

  /// f32 at an address of the scratchpad, of the extents of a chunk; repeated: one of all.
  DeviceView floatsAt(int64_t at, const Chunk& chunk, bool repeats) const {
    DeviceView view;
    view.rank = y_.rank;
    view.at = at;
    view.bytes = 4;
    view.elem = CDL_F32;
    int64_t stride = 1;
    for (auto d = static_cast<size_t>(y_.rank); d-- > 0;) {
      view.dims[d] = chunk.count[d];
      view.strides[d] = repeats ? 0 : stride;
      stride *= chunk.count[d];
    }
    return view;
  }

  int64_t record(std::span<const int32_t> words) {
    const auto bytes = std::as_bytes(words);
    return l_.records({bytes.begin(), bytes.end()});
  }

  DeviceView operand(const cdl_step_t& step, const cdl_operand_t& o, const Chunk& chunk) {
    if (o.source == CDL_FROM_ACC) return partOf(y_, chunk);
    if (o.source == CDL_FROM_STEP) return values_[o.index];
    if (o.source == CDL_FROM_CONST) {
      const auto number = static_cast<int32_t>(step.imm);
      return floatsAt(record({&number, 1}), chunk, true);
    }
    const auto known = numbers_.find(o.index);
    if (known == numbers_.end()) return partOf(l_.image.input(op_, o.index), chunk);
    const auto last = static_cast<size_t>(y_.rank) - 1;
    DeviceView row = floatsAt(record(std::span(known->second)
                                         .subspan(static_cast<size_t>(chunk.first[last]),
                                                  static_cast<size_t>(chunk.count[last]))),
                              chunk, true);
    row.strides[last] = 1;
    return row;
  }

  void emit(const Chunk& chunk) {
    int64_t elements = 1;
    for (size_t d = 0; d < static_cast<size_t>(y_.rank); ++d) elements *= chunk.count[d];
    const int64_t between = l_.room(4 * elements * steps_);
    values_.assign(steps_, {});
    for (uint32_t k = 0; k <= end_; ++k) {
      const cdl_step_t& step = stepAt(k);
      if (step.kind == CDL_KIND_CONVERT) { // the engine widens what it reads
        values_[k] = operand(step, step.in[0], chunk);
        continue;
      }
      values_[k] =
          k == end_ ? partOf(y_, chunk) : floatsAt(between + 4 * elements * k, chunk, false);
      const DeviceView a = operand(step, step.in[0], chunk), b = operand(step, step.in[1], chunk);
      lowerBinary(l_, binaryOf(step.fn), a, b, values_[k]);
    }
  }

  LoweringState& l_;
  const cdl::Op& op_;
  const DeviceView y_;
  const uint32_t steps_;
  uint32_t end_ = 0;                                 ///< the step that writes the result
  std::map<uint32_t, std::vector<int32_t>> numbers_; ///< by input: constants of f32, by channel
  std::vector<DeviceView> values_;                   ///< of the chunk at hand, by step
};

/// Reads the expression of a product, step by step.
class EpilogueReader {
public:
  EpilogueReader(LoweringState& l, const cdl::Op& op, int channelDim)
      : l_(l), op_(op), channelDim_(static_cast<size_t>(channelDim)), y_(l.image.output(op)),
        channels_(static_cast<size_t>(y_.dims[channelDim_])), sumElem_(sumsOf(op)) {}

  Epilogue read() {
    e_.bias.assign(channels_, 0);
    e_.type = y_.type();
    e_.wide = sumElem_ == CDL_I64;
    const cdl_expr_t* expr = op_.expr();
    for (step_ = 0; step_ < expr->steps; ++step_)
      readStep(*cdl_get_step(op_.image(), expr->first_step + step_));
    if (!isScaled_) throw Refusal{CDL_REASON_VENDOR, "the epilogue has no rescale"};
    const auto [low, high] = limitsOf(y_.elem);
    e_.low = std::clamp(e_.low, low, high);
    e_.high = std::clamp(e_.high, low, high);
    return e_;
  }

private:
  void readStep(const cdl_step_t& step) {
    const bool isBinary = step.kind == CDL_KIND_BINARY;
    const bool bounds = step.fn == CDL_BINARY_MAX || step.fn == CDL_BINARY_MIN;
    if (isBinary && step.fn == CDL_BINARY_ADD && !isScaled_ && step.elem == sumElem_)
      add(step);
    else if (step.kind == CDL_KIND_RESCALE && !isScaled_ && isBefore(step.in[0]))
      scale(step);
    else if (isBinary && bounds && isScaled_)
      bound(step);
    else
      otherExpression(step_);
  }

  /// Whether a step takes what came before it, as each one of a chain does.
  bool isBefore(const cdl_operand_t& o) const {
    if (step_ == 0) return o.source == CDL_FROM_ACC;
    return o.source == CDL_FROM_STEP && o.index == step_ - 1;
  }
  /// What a step of two operands takes beside what came before it.
  const cdl_operand_t& otherOf(const cdl_step_t& step) const {
    const size_t other = isBefore(step.in[0]) ? 1 : 0;
    if (!isBefore(step.in[1 - other])) otherExpression(step_);
    return step.in[other];
  }
  std::vector<int32_t> numbers(const cdl_operand_t& o, const char* what) const {
    return byChannel(l_, l_.image.input(op_, o.index), static_cast<int>(channelDim_), what);
  }

  /// Adds a bias, or finds what the sums begin with.
  void add(const cdl_step_t& step) {
    const cdl_operand_t& other = otherOf(step);
    std::vector<int32_t> bias(channels_, static_cast<int32_t>(step.imm));
    if (e_.wide && static_cast<int64_t>(step.imm) != bias.front()) otherExpression(step_);
    if (other.source == CDL_FROM_VIEW) {
      const DeviceView from = l_.image.input(op_, other.index);
      if (!isKnown(l_, from)) return startFrom(from);
      bias = numbers(other, "the bias");
    } else if (other.source != CDL_FROM_CONST) {
      otherExpression(step_);
    }
    for (size_t c = 0; c < channels_; ++c) {
      const int64_t sum = int64_t{e_.bias[c]} + bias[c];
      e_.bias[c] = static_cast<int32_t>(static_cast<uint32_t>(sum));
      if (e_.wide && sum != e_.bias[c])
        throw Refusal{CDL_REASON_VENDOR, cdl::text("a bias of ", sum, " has more than 32 bits")};
    }
  }

  void startFrom(const DeviceView& from) {
    const bool isApart = channels_ > 1 && from.strides[channelDim_] != 1;
    if (e_.start || e_.wide || !from.isLocal() || isApart) otherExpression(step_);
    e_.start = from;
  }

  void scale(const cdl_step_t& step) {
    e_.mult = numbers(step.in[1], "the multiplier");
    e_.shift = numbers(step.in[2], "the shift");
    const std::vector<int32_t> zero = numbers(step.in[3], "the zero point");
    for (size_t c = 0; c < channels_; ++c) {
      if (zero[c] != zero[0]) throw Refusal{CDL_REASON_DIM, "the zero point differs by channel"};
      if (e_.mult[c] < 0 || e_.mult[c] >= 1 << 24 || e_.shift[c] < 0 || e_.shift[c] > 63)
        throw Refusal{CDL_REASON_VENDOR,
                      cdl::text("a scale of ", e_.mult[c], " / 2^", e_.shift[c])};
    }
    e_.zero = zero.empty() ? 0 : zero[0];
    if (e_.zero < limitsOf(y_.elem).low || e_.zero > limitsOf(y_.elem).high)
      throw Refusal{CDL_REASON_VENDOR,
                    cdl::text("zero point ", e_.zero, " is no ", cdl::elemName(y_.elem))};
    e_.low = static_cast<int32_t>(step.imm & 0xffffffff);
    e_.high = static_cast<int32_t>(step.imm >> 32);
    isScaled_ = true;
  }

  /// Moves the bounds by a maximum or minimum behind the scale.
  void bound(const cdl_step_t& step) {
    const cdl_operand_t& other = otherOf(step);
    int32_t bound = integerOf(step);
    if (other.source == CDL_FROM_VIEW)
      bound = l_.image.scalar(l_.image.input(op_, other.index), "the bound");
    else if (other.source != CDL_FROM_CONST)
      otherExpression(step_);
    if (step.fn == CDL_BINARY_MAX) {
      e_.low = std::max(e_.low, bound);
      e_.high = std::max(e_.high, bound);
    } else {
      e_.low = std::min(e_.low, bound);
      e_.high = std::min(e_.high, bound);
    }
  }

  LoweringState& l_;
  const cdl::Op& op_;
  const size_t channelDim_;
  const DeviceView y_;
  const size_t channels_;
  const uint8_t sumElem_;
  uint32_t step_ = 0; ///< the one at hand
  bool isScaled_ = false;
  Epilogue e_;
};

} // namespace

uint8_t sumsOf(const cdl::Op& op) {
  switch (cdl_get_input(op.image(), &op.instr(), 0)->elem) {
  case CDL_I16: return CDL_I64;
  case CDL_BF16: return CDL_F32;
  default: return CDL_I32;
  }
}

Epilogue epilogueOf(LoweringState& l, const cdl::Op& op, int channelDim) {
  if (sumsOf(op) == CDL_F32) {
    Epilogue e;
    e.type = l.image.output(op).type();
    if (!npu::isFloat(e.type))
      throw Refusal{CDL_REASON_DTYPE, "a product of floats that ends in integers"};
    e.floats = FloatEpilogueReader(l, op, channelDim).read();
    return e;
  }
  return EpilogueReader(l, op, channelDim).read();
}

Epilogue sumsAlone(const LoweringState& l, const cdl::Op& op, int channelDim) {
  const DeviceView y = l.image.output(op);
  const auto channels = static_cast<size_t>(y.dims[static_cast<size_t>(channelDim)]);
  Epilogue e;
  e.type = y.type();
  e.floats.emplace();
  e.floats->scale.assign(channels, 1);
  e.floats->bias.assign(channels, 0);
  return e;
}

void lowerFloatSteps(LoweringState& l, const cdl::Op& op) { FloatSteps(l, op).emit(); }

std::optional<uint32_t> viewUnderResult(const LoweringState& l, const cdl::Op& op) {
  const cdl_step_t& step = *cdl_get_step(op.image(), op.expr()->first_step);
  if (step.kind != CDL_KIND_BINARY || step.fn != CDL_BINARY_ADD || step.elem != CDL_I32)
    return std::nullopt;
  for (uint32_t side = 0; side < 2; ++side)
    if (step.in[side].source == CDL_FROM_VIEW && step.in[1 - side].source == CDL_FROM_ACC &&
        isSameView(l.image.input(op, step.in[side].index), l.image.output(op)))
      return step.in[side].index;
  return std::nullopt;
}

void lowerSteps(LoweringState& l, const cdl::Op& op, uint32_t first) {
  const cdl_image_t* image = op.image();
  const cdl_expr_t* expr = op.expr();
  const DeviceView y = l.image.output(op);
  for (uint32_t k = first; k < expr->steps; ++k) {
    const cdl_step_t& step = *cdl_get_step(image, expr->first_step + k);
    if (step.kind != CDL_KIND_BINARY || step.elem != CDL_I32 || y.elem != CDL_I32 ||
        step.operands != 2)
      otherExpression(k);
    const auto operand = [&](const cdl_operand_t& o) -> DeviceView {
      if (k == 0 ? o.source == CDL_FROM_ACC : o.source == CDL_FROM_STEP && o.index == k - 1)
        return y;
      if (o.source == CDL_FROM_VIEW) return l.image.input(op, o.index);
      if (o.source != CDL_FROM_CONST) otherExpression(k);
      // A number lies among the records.
      std::vector<std::byte> bytes;
      for (int b = 0; b < 4; ++b) bytes.push_back(static_cast<std::byte>(step.imm >> (8 * b)));
      DeviceView number = y;
      number.at = l.records(bytes);
      number.strides = {};
      return number;
    };
    lowerBinary(l, binaryOf(step.fn), operand(step.in[0]), operand(step.in[1]), y);
  }
}

} // namespace npu_sim
