// Copies and fills by DMA: boxes of runs, each with a descriptor. A run moves a burst at a time,
// but what is scattered takes a cycle for every byte; large copies of that kind go in pieces, so
// that who waits for the first rows need not wait for the last.
#include "lowering.hpp"

#include <cstring>

namespace npu_sim {

namespace {

constexpr int64_t kNear = (int64_t{1} << 24) - 1, kFar = INT32_MAX;

namespace t = npu::descriptor::transfer;

npu::DescriptorValues transferOf(const Box& box, int64_t runBytes, int far, int near) {
  npu::DescriptorValues values{};
  values[t::kRun] = runBytes;
  for (int d = 0; d < 3; ++d) {
    const auto at = static_cast<size_t>(d);
    values[static_cast<size_t>(t::kLen1 + d)] = box.extents[at];
    values[static_cast<size_t>(t::kFarStride1 + d)] =
        far < 0 ? 0 : box.strides[static_cast<size_t>(far)][at];
    values[static_cast<size_t>(t::kNearStride1 + d)] = box.strides[static_cast<size_t>(near)][at];
  }
  return values;
}

Walk walkOf(const DeviceView& from, const DeviceView& to) {
  Walk walk;
  for (int d = 0; d < to.rank; ++d) {
    const auto at = static_cast<size_t>(d);
    walk.dims.push_back(
        {to.dims[at], {from.strides[at] * from.bytes, to.strides[at] * to.bytes, 0}});
  }
  return walk;
}

bool isDram(const DeviceView& o) { return o.memory >= Access::kRegions; }

/// The most bytes that one instruction scatters, one in a cycle.
constexpr int64_t kScatteredAtOnce = 16384;

/// Whether no two neighbours in the one are neighbours in the other.
bool scatters(const DeviceView& from, const DeviceView& to) {
  for (size_t d = 0; d < static_cast<size_t>(to.rank); ++d)
    if (to.dims[d] > 1 && from.strides[d] == 1 && to.strides[d] == 1) return false;
  return true;
}

void move(LoweringState& l, const DeviceView& from, const DeviceView& to);
void inPieces(LoweringState& l, const DeviceView& from, const DeviceView& to);

} // namespace

Access accessOf(const DeviceView& o, const Box& box, int operand, bool write) {
  const auto [low, high] = extentOf(box, operand, o.bytes);
  const int64_t at = o.at + box.offsets[static_cast<size_t>(operand)];
  return {o.memory, at + low, at + high, write};
}

void lowerCopy(LoweringState& l, const DeviceView& from, const DeviceView& to) {
  if (from.memory == Access::kPayload) return lowerCopy(l, l.image.packed(from, to), to);
  if (isDram(from) && scatters(from, to) && to.elements() > kScatteredAtOnce)
    return inPieces(l, from, to);
  move(l, from, to);
}

namespace {

/// Copies what is scattered piece by piece, so that its first rows are used while the others come.
/// Goes over all channels in turn until there is a product to hide behind: later the other channels
/// have the weights to bring.
void inPieces(LoweringState& l, const DeviceView& from, const DeviceView& to) {
  size_t outer = 0;
  for (size_t d = 1; d < static_cast<size_t>(to.rank); ++d)
    if (std::abs(to.strides[d]) * (to.dims[d] > 1) >
        std::abs(to.strides[outer]) * (to.dims[outer] > 1))
      outer = d;
  const int64_t rest = to.elements() / to.dims[outer],
                step = std::max<int64_t>(1, kScatteredAtOnce / rest);
  for (int64_t begin = 0; begin < to.dims[outer]; begin += step) {
    DeviceView source = from, target = to;
    source.dims[outer] = target.dims[outer] = std::min(step, to.dims[outer] - begin);
    source.at += begin * from.strides[outer] * from.bytes;
    target.at += begin * to.strides[outer] * to.bytes;
    move(l, source, target);
    l.own().scatterTurn =
        l.own().isBeforeProducts ? (l.own().scatterTurn + 1) % l.configuration.loadChannels() : 0;
  }
  l.own().scatterTurn = 0;
}

/// The channel that loads. Weights come ahead of time and are long: where there is a second
/// channel, what is wanted at once passes them by.
npu::Engine loadChannelOf(const LoweringState& l, const DeviceView& from, const DeviceView& to) {
  const bool isAside = from.memory == Access::kRegions && l.image.holdsWeights(to.buffer) &&
                       l.configuration.loadChannels() > 1;
  if (isAside) return npu::Engine::kLoad1;
  return static_cast<npu::Engine>(static_cast<int>(npu::Engine::kLoad0) + l.own().scatterTurn);
}

/// One box of a copy: addresses, bytes, and the register of its descriptor.
struct BoxCopy {
  int64_t source, target, bytes, descriptor;
};

npu::Insn storeInsn(const DeviceView& to, const BoxCopy& copy) {
  namespace f = npu::field::store;
  npu::Insn insn = insnFor(npu::Op::kStore, npu::Engine::kStore0);
  insn.values[f::kRegion] = to.memory - Access::kRegions;
  insn.values[f::kFar] = copy.target;
  insn.values[f::kSrc] = copy.source;
  insn.values[f::kD] = copy.descriptor;
  return insn;
}

npu::Insn loadInsn(npu::Engine channel, const DeviceView& from, const BoxCopy& copy) {
  namespace f = npu::field::load;
  npu::Insn insn = insnFor(npu::Op::kLoad, channel);
  insn.values[f::kRegion] = from.memory - Access::kRegions;
  insn.values[f::kFar] = copy.source;
  insn.values[f::kDst] = copy.target;
  insn.values[f::kD] = copy.descriptor;
  return insn;
}

npu::Insn copyInsn(const BoxCopy& copy) {
  namespace f = npu::field::copy;
  npu::Insn insn = insnFor(npu::Op::kCopy, npu::Engine::kLoad0);
  insn.values[f::kSrc] = copy.source;
  insn.values[f::kDst] = copy.target;
  insn.values[f::kD] = copy.descriptor;
  return insn;
}

/// The bytes of the node at hand that a copy between these adds to; null within the scratchpad.
uint64_t* movedBytes(LoweringState& l, const DeviceView& from, const DeviceView& to) {
  if (!isDram(from) && !isDram(to)) return nullptr;
  Costs& costs = l.here();
  if (isDram(to)) return &costs.stored;
  const bool isConstant = from.memory == Access::kRegions;
  if (!isConstant) return &costs.loaded;
  return l.image.holdsWeights(to.buffer) ? &costs.weights : &costs.tables;
}

void move(LoweringState& l, const DeviceView& from, const DeviceView& to) {
  const npu::Engine channel = loadChannelOf(l, from, to);
  if (isDram(from) && isDram(to)) throw Refusal{CDL_REASON_MEMORY, "a copy from memory to memory"};
  // A transfer moves bytes; those of an element stay together.
  Walk walk = walkOf(from, to);
  BoxLimits limits;
  const std::array<int64_t, 3> bytes{from.bytes, from.bytes, 0};
  const int near = isDram(to) ? 0 : 1, far = 1 - near;
  walk.inner = far; // neighbours in DRAM one after the other, so that a burst is fetched once
  limits.low[static_cast<size_t>(far)] = -kFar;
  limits.high[static_cast<size_t>(far)] = kFar;
  limits.high[static_cast<size_t>(near)] = kNear;
  limits.extent = 65536 / from.bytes;
  const auto isLegal = [&](const Box& box) {
    // A copy within the scratchpad stays apart from its source.
    if (!stepsOver(box, 1, to.bytes)) return false;
    if (isDram(from) || isDram(to)) return true;
    const Access a = accessOf(from, box, 0, false), b = accessOf(to, box, 1, true);
    return a.end <= b.begin || b.end <= a.begin;
  };
  forEachBox(walk, bytes, limits, isLegal, [&](const Box& box) {
    const int64_t descriptor = l.stream.descriptor(
        npu::DescriptorKind::kTransfer, transferOf(box, box.run * from.bytes, far, near));
    const BoxCopy copy{.source = from.at + box.offsets[0],
                       .target = to.at + box.offsets[1],
                       .bytes =
                           box.run * from.bytes * box.extents[0] * box.extents[1] * box.extents[2],
                       .descriptor = descriptor};
    npu::Insn insn;
    if (isDram(to))
      insn = storeInsn(to, copy);
    else if (isDram(from))
      insn = loadInsn(channel, from, copy);
    else
      insn = copyInsn(copy);
    if (uint64_t* const moved = movedBytes(l, from, to))
      *moved += static_cast<uint64_t>(copy.bytes);
    std::vector<Access> accesses{accessOf(from, box, 0, false), accessOf(to, box, 1, true)};
    accesses.insert(accesses.end(), l.order.begin(), l.order.end());
    l.stream.add(insn, accesses);
  });
}

} // namespace

void lowerFill(LoweringState& l, const DeviceView& to, uint64_t bits) {
  std::vector<std::byte> element(static_cast<size_t>(to.bytes));
  std::memcpy(element.data(), &bits, element.size());
  DeviceView from = to;
  from.strides = {};
  bool isByte = true;
  for (const std::byte byte : element) isByte &= byte == element[0];
  if (!isByte) { // comes from memory, read again and again
    from.memory = Access::kRegions;
    from.at = l.image.addConstant(element);
    return lowerCopy(l, from, to);
  }
  const Walk walk = walkOf(from, to);
  BoxLimits limits;
  limits.high = {0, kNear, 0};
  limits.extent = 65536 / to.bytes;
  limits.runMayRepeat = {true, false, false};
  forEachBox(
      walk, {to.bytes, to.bytes, 0}, limits,
      [&](const Box& box) { return stepsOver(box, 1, to.bytes); },
      [&](const Box& box) {
        namespace f = npu::field::fill;
        npu::Insn insn = insnFor(npu::Op::kFill, npu::Engine::kLoad0);
        insn.values[f::kDst] = to.at + box.offsets[1];
        insn.values[f::kD] = l.stream.descriptor(npu::DescriptorKind::kTransfer,
                                                 transferOf(box, box.run * to.bytes, -1, 1));
        insn.values[f::kFill] = static_cast<int64_t>(element[0]);
        l.stream.add(insn, {accessOf(to, box, 1, true)});
      });
}

void LoweringState::begin(uint32_t instr, const std::string& node) {
  stream.begin(instr, node);
  const auto [known, isNew] = costsOf.try_emplace(node, costs.size());
  if (isNew) costs.push_back({node});
  at = known->second;
}

int64_t LoweringState::records(const std::vector<std::byte>& bytes) {
  for (const Held& each : own().held)
    if (each.bytes == bytes) return each.begin;
  DeviceView from, to;
  to.at = room(static_cast<int64_t>(bytes.size()));
  own().held.back().bytes = bytes;
  from.rank = to.rank = 1;
  from.dims[0] = to.dims[0] = static_cast<int64_t>(bytes.size());
  from.strides[0] = to.strides[0] = 1;
  from.memory = Access::kRegions;
  from.at = image.addConstant(bytes);
  lowerCopy(*this, from, to);
  return to.at;
}

int64_t LoweringState::room(int64_t bytes) {
  if (bytes > recordsBytes)
    throw Refusal{CDL_REASON_MEMORY,
                  cdl::text(bytes, " bytes, the compiler keeps ", recordsBytes, " for them")};
  if (own().next + bytes > recordsBytes) own().next = 0;
  const int64_t begin = recordsAt + own().next;
  const int64_t end = begin + bytes;
  own().next += (bytes + 15) / 16 * 16;
  std::erase_if(own().held, [&](const Held& each) { return each.begin < end && begin < each.end; });
  own().held.push_back({begin, end, {}});
  return begin;
}

} // namespace npu_sim
