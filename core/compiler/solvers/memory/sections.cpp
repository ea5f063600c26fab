#include "core/compiler/solvers/memory/sections.h"

#include <algorithm>
#include <map>

namespace candela::solvers::memory {
namespace {

using Active = std::map<size_t, uint64_t>; // item: bytes

bool within(const Active& inner, const Active& outer) {
  return std::ranges::all_of(inner, [&](const auto& entry) {
    const auto found = outer.find(entry.first);
    return found != outer.end() && found->second >= entry.second;
  });
}

/// What lives in each stretch of time between two births or deaths: items and their bytes.
std::vector<Active> stretches(const Bodies& bodies, const std::vector<size_t>& group) {
  std::vector<int64_t> times;
  for (const size_t body : group)
    for (const Part& part : bodies.all()[body].parts) {
      times.push_back(part.begin);
      times.push_back(part.end);
    }
  std::ranges::sort(times);
  const auto repeated = std::ranges::unique(times);
  times.erase(repeated.begin(), repeated.end());
  std::vector<Active> all(times.size());
  for (size_t item = 0; item < group.size(); ++item)
    for (const Part& part : bodies.all()[group[item]].parts) {
      const auto from = std::ranges::lower_bound(times, part.begin),
                 to = std::ranges::lower_bound(times, part.end);
      for (auto at = from; at != to; ++at) {
        uint64_t& height = all[static_cast<size_t>(at - times.begin())][item];
        height = std::max(height, part.high);
      }
    }
  return all;
}

/// Whether two items may change places in every plan.
bool alike(const Bodies& bodies, const Item& a, const Item& b) {
  const Body &x = bodies.all()[a.body], &y = bodies.all()[b.body];
  if (x.fixed || y.fixed || x.alignment != y.alignment || x.residue != y.residue ||
      a.pieces.size() != b.pieces.size())
    return false;
  // A halo may lie in the next bank, so that two of one height need not fit the same places.
  const auto sameInBanks = [&](const Member& m, const Member& n) {
    return m.delta == n.delta && m.size == n.size;
  };
  if ((x.banked || y.banked) && !std::ranges::equal(x.members, y.members, sameInBanks))
    return false;
  for (size_t i = 0; i < a.pieces.size(); ++i)
    if (a.pieces[i].first != b.pieces[i].first || a.pieces[i].last != b.pieces[i].last ||
        a.pieces[i].height != b.pieces[i].height)
      return false;
  return true;
}

/// Fills in which items meet, and how high each is below the other.
void meet(Sections& made, const std::vector<Active>& kept) {
  const size_t count = made.items.size();
  made.under.assign(count * count, 0);
  for (const Active& active : kept)
    for (const auto& [i, height] : active)
      for (const auto& [j, other] : active)
        if (i != j) made.under[i * count + j] = std::max(made.under[i * count + j], height);
  for (size_t i = 0; i < count; ++i)
    for (size_t j = 0; j < count; ++j)
      if (made.heightUnder(i, j) != 0) made.items[i].near.push_back(static_cast<uint32_t>(j));
}

} // namespace

std::vector<std::vector<size_t>> touching(const Bodies& bodies) {
  std::vector<size_t> byBegin;
  for (size_t i = 0; i < bodies.all().size(); ++i)
    if (!bodies.all()[i].parts.empty()) byBegin.push_back(i);
  std::ranges::stable_sort(byBegin, {}, [&](size_t i) { return bodies.all()[i].begin; });
  std::vector<std::vector<size_t>> groups;
  int64_t reach = 0;
  for (const size_t i : byBegin) {
    if (groups.empty() || bodies.all()[i].begin >= reach) groups.emplace_back();
    reach = groups.back().empty() ? bodies.all()[i].end : std::max(reach, bodies.all()[i].end);
    groups.back().push_back(i);
  }
  return groups;
}

Sections sectionsOf(const Bodies& bodies, const std::vector<size_t>& group) {
  std::vector<Active> kept;
  for (Active& active : stretches(bodies, group)) {
    if (active.empty() || (!kept.empty() && within(active, kept.back()))) continue;
    while (!kept.empty() && within(kept.back(), active)) kept.pop_back();
    kept.push_back(std::move(active));
  }
  Sections made;
  made.count = static_cast<uint32_t>(kept.size());
  made.items.resize(group.size());
  for (size_t i = 0; i < group.size(); ++i) made.items[i].body = group[i];
  for (uint32_t s = 0; s < made.count; ++s)
    for (const auto& [i, height] : kept[s]) {
      Item& item = made.items[i];
      if (item.pieces.empty()) item.first = s;
      if (item.pieces.empty() || item.pieces.back().last != s ||
          item.pieces.back().height != height)
        item.pieces.push_back({s, s, height});
      item.pieces.back().last = item.last = s + 1;
      item.height = std::max(item.height, height);
    }
  meet(made, kept);
  for (size_t i = 0; i < made.items.size(); ++i)
    for (size_t j = i; j-- > 0 && made.items[i].twin < 0;)
      if (alike(bodies, made.items[i], made.items[j])) made.items[i].twin = static_cast<int64_t>(j);
  return made;
}

} // namespace candela::solvers::memory
