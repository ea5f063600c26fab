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
  return uses.emplace_hint(next, at, std::move(rest));
}

void Stream::addReader(Use& use, const Place& reader) {
  for (Place& each : use.readers)
    if (each.slot == reader.slot) {
      each.place = reader.place;
      return;
    }
  use.readers.push_back(reader);
}

/// Adds to `needed` who must be done before the access, and keeps it for those that follow.
void Stream::need(const Access& access, const Place& own, Clock& needed) {
  // Nothing writes constants: nobody waits for who reads them.
  if (access.begin >= access.end || access.memory == Access::kRegions) return;
  const bool isShared = access.memory > Access::kRegions;
  std::map<int64_t, Use>& uses = uses_[{access.memory, isShared ? 0 : core_}];
  const auto need = [&](const Place& before) {
    if (before.place) needed[before.slot] = std::max(needed[before.slot], before.place);
  };
  const auto last = cut(uses, access.end);
  auto at = cut(uses, access.begin);
  int64_t covered = access.begin;
  while (at != last) {
    Use& use = at->second;
    need(use.writer);
    if (access.write) {
      for (const Place& reader : use.readers) need(reader);
      at = uses.erase(at);
      continue;
    }
    if (covered < at->first) uses.emplace_hint(at, covered, Use{at->first, {}, {own}});
    addReader(use, own);
    covered = use.end;
    ++at;
  }
  if (access.write)
    uses.emplace(access.begin, Use{access.end, own, {}});
  else if (covered < access.end)
    uses.emplace(covered, Use{access.end, {}, {own}});
}

void Stream::add(Insn insn, const std::vector<Access>& accesses) {
  const size_t slot = core_ * kEngines + insn.engine;
  const size_t slots = known_.size();
  std::vector<uint32_t>& own = known_[slot];
  const Place here{static_cast<uint32_t>(slot), static_cast<uint32_t>(itemOf_[slot].size() + 1)};
  needed_.assign(slots, 0);
  for (const bool write : {false, true}) // what it reads, it reads before it writes
    for (const Access& access : accesses)
      if (access.write == write) need(access, here, needed_);
  // It knows what the one before it knew.
  own.resize(own.size() + slots);
  uint32_t* const known = own.data() + own.size() - slots;
  if (here.place > 1) std::copy_n(known - slots, slots, known);
  Item item{.insn = insn,
            .waits = {},
            .signals = {},
            .awaits = {},
            .core = static_cast<uint16_t>(core_),
            .symbol = symbol()};
  for (size_t other = 0; other < slots; ++other) {
    if (other == slot || needed_[other] <= known[other]) continue;
    const uint32_t before = itemOf_[other][needed_[other] - 1];
    if (other / kEngines == core_) {
      item.waits.push_back(static_cast<uint8_t>(other % kEngines));
      items_[before].signals.push_back(insn.engine);
    } else {
      item.awaits.push_back(before);
      items_[before].isAwaited = true;
    }
    const uint32_t* const theirs = known_[other].data() + (needed_[other] - 1) * slots;
    for (size_t i = 0; i < slots; ++i) known[i] = std::max(known[i], theirs[i]);
    known[other] = std::max(known[other], needed_[other]);
  }
  // A wait may be needless by one that was added after it; it costs a token, and no order.
  known[slot] = here.place;
  itemOf_[slot].push_back(static_cast<uint32_t>(items_.size()));
  items_.push_back(std::move(item));
}

// ---- Descriptors

void Stream::set(int64_t reg, const npu::DescriptorBits& bits) {
  Register& r = registers_[core_][static_cast<size_t>(reg)];
  for (int word = 0; word < 4; ++word) {
    if (r.isSet && r.bits[static_cast<size_t>(word)] == bits[static_cast<size_t>(word)]) continue;
    Insn insn = insnFor(npu::Op::kSetd, npu::Engine::kControl);
    insn.values[npu::field::setd::kD] = reg;
    insn.values[npu::field::setd::kWord] = word;
    insn.values[npu::field::setd::kValue] = static_cast<int64_t>(bits[static_cast<size_t>(word)]);
    items_.push_back({.insn = insn,
                      .waits = {},
                      .signals = {},
                      .awaits = {},
                      .core = static_cast<uint16_t>(core_),
                      .symbol = symbol()});
  }
  r = {bits, true, ++turn_};
}

/// The number of one of `count` registers from `first` on, `step` apart: the one that holds the
/// bits, or the one that was used longest ago.
int64_t Stream::place(int first, int count, int step, const npu::DescriptorBits& bits,
                      const npu::DescriptorBits* second) {
  std::array<Register, npu::kDescriptors>& registers = registers_[core_];
  int best = first;
  for (int i = 0; i < count; ++i) {
    const int at = first + i * step;
    const Register& r = registers[static_cast<size_t>(at)];
    const Register& behind = registers[static_cast<size_t>(at + (second ? 1 : 0))];
    if (r.isSet && r.bits == bits && (!second || (behind.isSet && behind.bits == *second))) {
      registers[static_cast<size_t>(at)].used = ++turn_;
      return at;
    }
    if (r.used < registers[static_cast<size_t>(best)].used) best = at;
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

/// Writes items of one core as words. Each pair of engines of which one waits for the other has a
/// semaphore of its own: tokens come in the order in which they are taken.
class Stream::Writer {
public:
  /// `tiles`: of each node, of all cores so far.
  Writer(const Stream& stream, npu::Binary& binary, std::vector<uint32_t>& instrOfSymbol,
         std::map<std::string, uint32_t>& tiles)
      : stream_(stream), binary_(binary), instrOfSymbol_(instrOfSymbol), tiles_(tiles) {}

  /// `events`: by item that another core awaits, how many its engine has then posted.
  void write(const Item& item, const std::vector<uint32_t>& events) {
    if (item.symbol != symbol_ && item.symbol < stream_.nodes_.size()) beginSymbol(item.symbol);
    Insn insn = item.insn;
    for (const uint32_t before : item.awaits) {
      namespace f = npu::field::await;
      Insn await = insnFor(npu::Op::kAwait, static_cast<npu::Engine>(insn.engine));
      await.values[f::kCore] = stream_.items_[before].core;
      await.values[f::kOf] = stream_.items_[before].insn.engine;
      await.values[f::kEvents] = events[before];
      put(await);
    }
    addWaits(insn, item.waits);
    addSignals(insn, item.signals);
    if (item.isAwaited) put(insnFor(npu::Op::kPost, static_cast<npu::Engine>(insn.engine)));
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
  std::map<std::string, uint32_t>& tiles_;
  std::map<Pair, uint8_t> semaphores_;
  std::map<Pair, int> pending_; ///< tokens that lie there
  std::map<Pair, int> taken_;   ///< and that were taken before their wait
};

void Stream::finish(npu::Binary& binary, std::vector<uint32_t>& instrOfSymbol) {
  std::vector<uint32_t> events(items_.size(), 0), posted(known_.size(), 0);
  for (size_t i = 0; i < items_.size(); ++i)
    if (const Item& item = items_[i]; item.isAwaited)
      events[i] = ++posted[item.core * kEngines + item.insn.engine];
  std::map<std::string, uint32_t> tiles;
  for (size_t core = 0; core < cores_; ++core) {
    const auto first = static_cast<uint32_t>(binary.code.size());
    Writer writer(*this, binary, instrOfSymbol, tiles);
    for (const Item& item : items_)
      if (item.core == core) writer.write(item, events);
    writer.end();
    if (cores_ > 1)
      binary.cores.push_back({first, static_cast<uint32_t>(binary.code.size()) - first});
  }
}

} // namespace npu_sim
