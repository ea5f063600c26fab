#include "stream.hpp"

#include <candela/cdl_enums.h>

#include <algorithm>

namespace npu_sim {

using npu::Insn;

npu::Insn insnFor(npu::Op op, npu::Engine engine) {
  Insn insn;
  insn.op = op;
  insn.engine = static_cast<uint8_t>(engine);
  return insn;
}

void Stream::begin(uint32_t instr, const std::string& node) {
  nodes_.push_back(node);
  instrs_.push_back(instr);
}

// ---- Order

/// The uses from `at` on begin there.
std::map<int64_t, Stream::Use>::iterator Stream::cut(std::map<int64_t, Use>& uses, int64_t at) {
  auto next = uses.lower_bound(at);
  if (next != uses.end() && next->first == at) return next;
  if (next == uses.begin()) return next;
  const auto before = std::prev(next);
  if (before->second.end <= at) return next;
  Use rest = before->second;
  before->second.end = at;
  return uses.emplace_hint(next, at, rest);
}

/// Adds to `needed` who must be done before the access, and keeps it for those that follow.
void Stream::need(const Access& access, uint8_t engine, uint32_t place, Clock& needed) {
  // Nothing writes constants: nobody waits for who reads them.
  if (access.begin >= access.end || access.memory == Access::kRegions) return;
  std::map<int64_t, Use>& uses = uses_[access.memory];
  const auto last = cut(uses, access.end);
  auto at = cut(uses, access.begin);
  int64_t covered = access.begin;
  while (at != last) {
    Use& use = at->second;
    if (use.writer) needed[use.engine] = std::max(needed[use.engine], use.writer);
    if (access.write) {
      for (int e = 0; e < kEngines; ++e) needed[e] = std::max(needed[e], use.readers[e]);
      at = uses.erase(at);
      continue;
    }
    if (covered < at->first) {
      Use gap{at->first, 0, 0, {}};
      gap.readers[engine] = place;
      uses.emplace_hint(at, covered, gap);
    }
    use.readers[engine] = place;
    covered = use.end;
    ++at;
  }
  Use use{access.end, 0, 0, {}};
  if (access.write) {
    use.writer = place;
    use.engine = engine;
    uses.emplace(access.begin, use);
  } else if (covered < access.end) {
    use.readers[engine] = place;
    uses.emplace(covered, use);
  }
}

void Stream::add(Insn insn, const std::vector<Access>& accesses) {
  const uint8_t engine = insn.engine;
  auto& own = known_[engine];
  const auto place = static_cast<uint32_t>(own.size() + 1);
  Clock needed{};
  for (const bool write : {false, true}) // what it reads, it reads before it writes
    for (const Access& access : accesses)
      if (access.write == write) need(access, engine, place, needed);
  Clock known = own.empty() ? Clock{} : own.back();
  Item item{insn, {}, {}, static_cast<uint32_t>(nodes_.empty() ? 0 : nodes_.size() - 1)};
  for (uint8_t e = 0; e < kEngines; ++e) {
    if (e == engine || needed[e] <= known[e]) continue;
    item.waits.push_back(e);
    items_[itemOf_[e][needed[e] - 1]].signals.push_back(engine);
    const Clock& theirs = known_[e][needed[e] - 1];
    for (int i = 0; i < kEngines; ++i) known[i] = std::max(known[i], theirs[i]);
    known[e] = std::max(known[e], needed[e]);
  }
  // A wait may be needless by one that was added after it; it costs a token, and no order.
  known[engine] = place;
  own.push_back(known);
  itemOf_[engine].push_back(static_cast<uint32_t>(items_.size()));
  items_.push_back(std::move(item));
}

// ---- Descriptors

void Stream::set(int64_t reg, const npu::DescriptorBits& bits) {
  Register& r = registers_[static_cast<size_t>(reg)];
  for (int word = 0; word < 4; ++word) {
    if (r.isSet && r.bits[static_cast<size_t>(word)] == bits[static_cast<size_t>(word)]) continue;
    Insn insn = insnFor(npu::Op::kSetd, npu::Engine::kControl);
    insn.values[npu::field::setd::kD] = reg;
    insn.values[npu::field::setd::kWord] = word;
    insn.values[npu::field::setd::kValue] = static_cast<int64_t>(bits[static_cast<size_t>(word)]);
    items_.push_back({insn, {}, {}, static_cast<uint32_t>(nodes_.empty() ? 0 : nodes_.size() - 1)});
  }
  r = {bits, true, ++turn_};
}

/// The number of one of `count` registers from `first` on, `step` apart: the one that holds the
/// bits, or the one that was used longest ago.
int64_t Stream::place(int first, int count, int step, const npu::DescriptorBits& bits,
                      const npu::DescriptorBits* second) {
  int best = first;
  for (int i = 0; i < count; ++i) {
    const int at = first + i * step;
    const Register& r = registers_[static_cast<size_t>(at)];
    const Register& behind = registers_[static_cast<size_t>(at + (second ? 1 : 0))];
    if (r.isSet && r.bits == bits && (!second || (behind.isSet && behind.bits == *second))) {
      registers_[static_cast<size_t>(at)].used = ++turn_;
      return at;
    }
    if (r.used < registers_[static_cast<size_t>(best)].used) best = at;
  }
  set(best, bits);
  if (second) set(best + 1, *second);
  return best;
}

int64_t Stream::descriptor(npu::DescriptorKind kind, const npu::DescriptorValues& values,
                           const npu::DescriptorValues* second) {
  const auto bitsOf = [](npu::DescriptorKind which, const npu::DescriptorValues& of) {
    const auto bits = npu::encodeDescriptor(which, of);
    if (!bits) throw Refusal{CDL_REASON_DIM, bits.message()};
    return *bits;
  };
  const npu::DescriptorBits bits = bitsOf(kind, values);
  npu::DescriptorBits behind{};
  if (second) behind = bitsOf(npu::DescriptorKind::kRescale, *second);
  const npu::DescriptorBits* const other = second ? &behind : nullptr;
  switch (kind) {
  case npu::DescriptorKind::kTransfer: return place(0, 4, 1, bits, nullptr);
  case npu::DescriptorKind::kWindow: return place(4, 2, 1, bits, nullptr);
  case npu::DescriptorKind::kEpilogue: return place(6, 2, 1, bits, nullptr);
  case npu::DescriptorKind::kRescale: return place(8, 2, 1, bits, nullptr);
  case npu::DescriptorKind::kLanes: return place(10, 2, 2, bits, other);
  default: return place(14, 1, 2, bits, other);
  }
}

// ---- Words

/// Writes items as words. Each pair of engines of which one waits for the other has a semaphore of
/// its own: tokens come in the order in which they are taken.
class Stream::Writer {
public:
  Writer(const Stream& stream, npu::Binary& binary, std::vector<uint32_t>& instrOfSymbol)
      : stream_(stream), binary_(binary), instrOfSymbol_(instrOfSymbol) {}

  void write(const Item& item) {
    if (item.symbol != symbol_ && item.symbol < stream_.nodes_.size()) beginSymbol(item.symbol);
    Insn insn = item.insn;
    addWaits(insn, item.waits);
    addSignals(insn, item.signals);
  }

  void end() {
    binary_.symbols.push_back({static_cast<uint32_t>(binary_.code.size()), 0, "end", 0});
    instrOfSymbol_.push_back(0);
    put(insnFor(npu::Op::kHalt, npu::Engine::kControl));
  }

private:
  /// An engine that signals, and one that waits for it.
  using Pair = std::pair<uint8_t, uint8_t>;
  /// The most tokens that one wait takes.
  static constexpr int kMostTaken = 7;
  /// The most tokens that a semaphore may hold before its engine takes some ahead of time.
  static constexpr int kMostPending = npu::kSemaphoreMax - 64;

  void beginSymbol(uint32_t symbol) {
    symbol_ = symbol;
    const std::string& node = stream_.nodes_[symbol];
    binary_.symbols.push_back(
        {static_cast<uint32_t>(binary_.code.size()), 0, node, tiles_[node]++});
    instrOfSymbol_.push_back(stream_.instrs_[symbol]);
  }

  /// Makes an instruction wait for one engine, and nops before it for the others.
  void addWaits(Insn& insn, const std::vector<uint8_t>& engines) {
    std::vector<uint8_t> waits;
    for (const uint8_t from : engines)
      if (int& taken = taken_[{from, insn.engine}]; taken > 0)
        --taken;
      else
        waits.push_back(from);
    for (size_t i = 0; i < waits.size(); ++i) {
      const bool isLast = i + 1 == waits.size();
      Insn holder = isLast ? insn : nopFor(insn.engine);
      holder.waitSemaphore = semaphoreOf({waits[i], insn.engine});
      holder.waitCount = 1;
      --pending_[{waits[i], insn.engine}];
      if (isLast)
        insn = holder;
      else
        put(holder);
    }
  }

  /// Makes it signal one engine, and nops behind it the others.
  void addSignals(const Insn& insn, const std::vector<uint8_t>& engines) {
    if (engines.empty()) put(insn);
    for (size_t i = 0; i < engines.size(); ++i) {
      const Pair pair{insn.engine, engines[i]};
      Insn holder = i == 0 ? insn : nopFor(insn.engine);
      holder.signalSemaphore = semaphoreOf(pair);
      holder.signalCount = 1;
      put(holder);
      ++pending_[pair];
      takeAhead(pair);
    }
  }

  /// Takes tokens for waits that follow before a semaphore is full: an engine runs ahead of another
  /// one by as much as the queues hold.
  void takeAhead(const Pair& pair) {
    for (int& pending = pending_[pair]; pending > kMostPending; pending -= kMostTaken) {
      Insn taker = nopFor(pair.second);
      taker.waitSemaphore = semaphoreOf(pair);
      taker.waitCount = kMostTaken;
      put(taker);
      taken_[pair] += kMostTaken;
    }
  }

  static Insn nopFor(uint8_t engine) {
    return insnFor(npu::Op::kNop, static_cast<npu::Engine>(engine));
  }

  uint8_t semaphoreOf(const Pair& pair) {
    const auto [at, isNew] =
        semaphores_.try_emplace(pair, static_cast<uint8_t>(semaphores_.size()));
    if (isNew && semaphores_.size() > npu::kSemaphores)
      throw Refusal{CDL_REASON_VENDOR,
                    "more pairs of engines wait for each other than there are semaphores"};
    return at->second;
  }

  void put(const Insn& insn) {
    const auto word = npu::encode(insn);
    if (!word) {
      const bool hasNode = symbol_ < stream_.nodes_.size();
      throw Refusal{CDL_REASON_DIM,
                    (hasNode ? stream_.nodes_[symbol_] + ": " : std::string()) + word.message()};
    }
    binary_.code.push_back(*word);
    if (!binary_.symbols.empty()) ++binary_.symbols.back().count;
  }

  const Stream& stream_;
  npu::Binary& binary_;
  std::vector<uint32_t>& instrOfSymbol_;
  uint32_t symbol_ = UINT32_MAX;
  std::map<std::string, uint32_t> tiles_; ///< of each node, so far
  std::map<Pair, uint8_t> semaphores_;
  std::map<Pair, int> pending_; ///< tokens that lie there
  std::map<Pair, int> taken_;   ///< and that were taken before their wait
};

void Stream::finish(npu::Binary& binary, std::vector<uint32_t>& instrOfSymbol) {
  Writer writer(*this, binary, instrOfSymbol);
  for (const Item& item : items_) writer.write(item);
  writer.end();
}

} // namespace npu_sim
