#include "core/compiler/solvers/memory/search.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <thread>

#include "core/compiler/solvers/memory/attempt.h"
#include "core/support/threads.h"

namespace candela::solvers::memory {
namespace {

constexpr size_t kMaxItems = 2048; // Sections::under grows with the square

uint64_t mixed(uint64_t x) { // splitmix64
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

/// The length of restart `i`: 1 1 2 1 1 2 4 ... (Luby, Sinclair, Zuckerman).
uint64_t luby(uint64_t i) {
  uint64_t length = 1;
  while (length < i + 1) length = 2 * length + 1;
  while (length - 1 != i) {
    length /= 2;
    i %= length;
  }
  return (length + 1) / 2;
}

/// The order of preference of one attempt, from each item's fullest section, width and area. The
/// three static orders of MiniMalloc come first; later ones are drawn at random near them and near
/// that of area. Keys are made by products and quotients alone: they are the same on every machine.
std::vector<uint32_t> rankOf(const Bodies& bodies, const Sections& sections, uint64_t turn) {
  std::vector<uint64_t> sums(sections.count, 0);
  for (const Item& item : sections.items)
    for (const Piece& piece : item.pieces)
      for (uint32_t s = piece.first; s < piece.last; ++s) sums[s] += piece.height;
  const double fullest = static_cast<double>(*std::ranges::max_element(sums));
  using Key = std::array<double, 3>; // descending
  std::vector<Key> keys;
  for (size_t i = 0; i < sections.items.size(); ++i) {
    const Item& item = sections.items[i];
    const Body& body = bodies.all()[item.body];
    const double width = static_cast<double>(body.end) - static_cast<double>(body.begin);
    const double area = width * static_cast<double>(item.height);
    const double total = static_cast<double>(*std::max_element(sums.begin() + item.first,
                                                               sums.begin() + item.last)) /
                         fullest;
    const double total2 = total * total, total4 = total2 * total2, total8 = total4 * total4;
    const double noise = static_cast<double>(1000 - mixed(turn * kMaxItems + i) % 400);
    switch (turn < 3 ? turn : 3 + turn % 4) {
    case 0: keys.push_back({total, width, area}); break;
    case 1: keys.push_back({total, area, width}); break;
    case 2: keys.push_back({width, area, total}); break;
    case 3: keys.push_back({total8 * width * noise, 0, 0}); break;
    case 4: keys.push_back({width * noise, 0, 0}); break;
    case 5: keys.push_back({total8 * area * noise, 0, 0}); break;
    default: keys.push_back({area * noise, 0, 0}); break;
    }
  }
  std::vector<uint32_t> order(keys.size()), rank(keys.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater{}, [&](uint32_t i) { return keys[i]; });
  for (uint32_t i = 0; i < order.size(); ++i) rank[order[i]] = i;
  return rank;
}

/// Makes attempts in turn until one decides. Threads take the next turns at once; of those that
/// decide, the one of the lowest turn counts, so that the result depends on no number of threads.
Attempt decide(const Bodies& bodies, const Sections& sections, uint64_t capacity, uint64_t nodes,
               unsigned threads) {
  constexpr uint64_t kShortest = 4000;
  Attempt all;
  for (uint64_t turn = 0; all.nodes < nodes;) {
    std::vector<Attempt> wave(std::max(threads, 1u));
    const auto work = [&](size_t i) {
      const uint64_t limit = std::min(kShortest * luby(turn + i), nodes);
      wave[i] = attempt(bodies, sections, capacity, rankOf(bodies, sections, turn + i), limit);
    };
    onThreads(wave.size(), work);
    for (Attempt& one : wave) {
      if (all.nodes >= nodes) break; // a single thread would not have come here
      all.nodes += one.nodes;
      if (one.verdict == Verdict::Undecided) continue;
      one.nodes = all.nodes;
      return std::move(one);
    }
    turn += wave.size();
  }
  return all;
}

} // namespace

bool isFlat(const Bodies& bodies) {
  for (const Body& body : bodies.all())
    for (const Part& part : body.parts)
      if (part.low != 0) return false;
  return true;
}

Search::Search(const Bodies& bodies)
    : bodies_(bodies), groups_(touching(bodies)), sections_(groups_.size()) {}

SearchResult Search::run(uint64_t capacity, uint64_t nodes, unsigned threads) {
  capacity = std::min(capacity, kMaxBytes);
  SearchResult result;
  result.origins.assign(bodies_.all().size(), 0);
  for (size_t i = 0; i < bodies_.all().size(); ++i)
    result.origins[i] = bodies_.lowest(bodies_.all()[i], bodies_.all()[i].fixed.value_or(0));
  for (size_t g = 0; g < groups_.size(); ++g) {
    const std::vector<size_t>& group = groups_[g];
    if (group.size() > kMaxItems) return {Verdict::Undecided, result.nodes, {}};
    if (!sections_[g]) sections_[g] = sectionsOf(bodies_, group);
    const Attempt made =
        decide(bodies_, *sections_[g], capacity, nodes - std::min(nodes, result.nodes), threads);
    result.nodes += made.nodes;
    if (made.verdict != Verdict::Fits) return {made.verdict, result.nodes, {}};
    for (size_t i = 0; i < group.size(); ++i) result.origins[group[i]] = made.origins[i];
  }
  result.verdict = Verdict::Fits;
  return result;
}

} // namespace candela::solvers::memory
