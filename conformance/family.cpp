#include "conformance/family.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <set>

#include "core/support/tensor.h"

namespace candela::conformance {
namespace {

/// Indices of values: of the row, then of each axis.
using Point = std::vector<uint32_t>;

Choice choiceOf(const Family& family, const Point& point) {
  Choice choice{{"row", family.rows[point[0]]}};
  for (size_t a = 0; a < family.axes.size(); ++a)
    choice[family.axes[a].name] = family.axes[a].values[point[a + 1]];
  return choice;
}

/// Every combination that holds.
std::vector<Point> product(const Family& family) {
  std::vector<const std::vector<std::string>*> values{&family.rows};
  for (const Axis& axis : family.axes) values.push_back(&axis.values);
  std::vector<Point> points;
  if (std::ranges::any_of(values, [](const auto* list) { return list->empty(); })) return points;
  Point at(values.size(), 0);
  // One choice whose values change in place: products are large.
  Choice choice = choiceOf(family, at);
  std::vector<std::string*> chosen{&choice["row"]};
  for (const Axis& axis : family.axes) chosen.push_back(&choice[axis.name]);
  for (;;) {
    if (!family.holds || family.holds(choice)) points.push_back(at);
    size_t d = values.size();
    for (bool carry = true; carry; --d) {
      if (d == 0) return points;
      carry = ++at[d - 1] == values[d - 1]->size();
      if (carry) at[d - 1] = 0;
      *chosen[d - 1] = (*values[d - 1])[at[d - 1]];
    }
  }
}

std::string addressOf(const Family& family, const Point& point) {
  std::string address = family.stem + family.rows[point[0]];
  for (size_t a = 0; a < family.axes.size(); ++a)
    address += fmt::format("{}{}={}", a ? ';' : ':', family.axes[a].name,
                           family.axes[a].values[point[a + 1]]);
  return address;
}

/// The same indices in an order that depends on their count and the seed alone.
std::vector<size_t> shuffled(std::vector<size_t> order, uint64_t seed) {
  for (size_t i = order.size(); i > 1; --i)
    std::swap(order[i - 1], order[splitmix64(seed + i) % i]);
  return order;
}

/// Pairs of values as numbers.
std::vector<uint64_t> pairsOf(const Point& point) {
  std::vector<uint64_t> pairs;
  for (uint64_t a = 0; a < point.size(); ++a)
    for (uint64_t b = a + 1; b < point.size(); ++b)
      pairs.push_back(a << 56 | b << 48 | uint64_t(point[a]) << 24 | point[b]);
  if (pairs.empty()) pairs.push_back(point[0]); // rows alone
  return pairs;
}

/// Indices of a sample of `candidates` in which every row stands, in one of its typical points,
/// every value, and most pairs; in the points' order.
std::vector<size_t> pairwise(const std::vector<Point>& points, const std::vector<bool>& typical,
                             const std::vector<size_t>& candidates, size_t budget, uint64_t seed) {
  const std::vector<size_t> order = shuffled(candidates, seed);
  std::set<uint64_t> seen;
  std::set<std::pair<size_t, uint32_t>> values;
  std::vector<size_t> taken;
  const auto take = [&](size_t i) {
    for (size_t a = 0; a < points[i].size(); ++a) values.emplace(a, points[i][a]);
    const std::vector<uint64_t> pairs = pairsOf(points[i]);
    seen.insert(pairs.begin(), pairs.end());
    taken.push_back(i);
  };
  for (const size_t i : order)
    if (taken.size() < budget && typical[i] && !values.contains({0, points[i][0]})) take(i);
  const auto isNew = [&](size_t i, uint32_t a) { return !values.contains({a, points[i][a]}); };
  for (auto least = static_cast<int64_t>(points.empty() ? 0 : points[0].size()); least > 0; --least)
    for (const size_t i : order) {
      int64_t fresh = 0;
      for (uint32_t a = 0; a < points[i].size(); ++a) fresh += isNew(i, a);
      if (fresh >= least && taken.size() < budget) take(i);
    }
  for (size_t least = points.empty() ? 0 : pairsOf(points[0]).size(); least > 0; --least)
    for (const size_t i : order) {
      if (taken.size() == budget) break;
      const std::vector<uint64_t> pairs = pairsOf(points[i]);
      const auto fresh =
          std::ranges::count_if(pairs, [&](uint64_t pair) { return !seen.contains(pair); });
      if (static_cast<size_t>(fresh) < least) continue;
      take(i);
    }
  std::ranges::sort(taken);
  return taken;
}

/// The index of a typical point of each row, or of rows spread over all of them.
std::vector<size_t> smoke(const std::vector<Point>& points, const std::vector<bool>& typical,
                          size_t budget) {
  std::map<uint32_t, std::vector<size_t>> byRow;
  for (size_t i = 0; i < points.size(); ++i)
    if (typical[i]) byRow[points[i][0]].push_back(i);
  std::vector<size_t> all, taken;
  for (const auto& [row, own] : byRow) all.push_back(own[splitmix64(row) % own.size()]);
  if (budget == 0 || budget >= all.size()) return all;
  for (size_t i = 0; i < budget; ++i) taken.push_back(all[i * all.size() / budget]);
  return taken;
}

/// What each point tells.
std::vector<std::string> wordsOf(const std::vector<Point>& points, const Family& family) {
  std::vector<std::string> words(points.size());
  for (size_t i = 0; family.tells && i < points.size(); ++i)
    words[i] = family.tells(choiceOf(family, points[i]));
  return words;
}

/// Takes a point of each row for each thing that its points tell and that none of the taken ones
/// tells, and sorts.
void addTelling(std::vector<size_t>& taken, const std::vector<Point>& points,
                const std::vector<std::string>& told) {
  std::map<std::pair<uint32_t, std::string>, std::vector<size_t>> telling;
  for (size_t i = 0; i < points.size(); ++i)
    if (!told[i].empty()) telling[{points[i][0], told[i]}].push_back(i);
  for (const size_t i : taken) telling.erase({points[i][0], told[i]});
  for (const auto& [rowAndWord, own] : telling)
    taken.push_back(own[splitmix64(rowAndWord.first) % own.size()]);
  std::ranges::sort(taken);
}

} // namespace

std::vector<Case> expand(const Family& family, const Selection& selection, const Budget& budget) {
  const std::vector<Point> points = product(family);
  std::vector<size_t> taken(points.size());
  std::iota(taken.begin(), taken.end(), size_t{0});
  std::vector<bool> typical(points.size(), true);
  if (family.isTypical && selection.size != Size::nightly)
    for (size_t i = 0; i < points.size(); ++i)
      typical[i] = family.isTypical(choiceOf(family, points[i]));
  if (selection.size != Size::nightly) {
    const std::vector<std::string> told = wordsOf(points, family);
    // Untypical points that tell something are asked of each row beyond the budget: they displace
    // none of the others.
    std::vector<size_t> candidates;
    for (const size_t i : taken)
      if (typical[i] || told[i].empty()) candidates.push_back(i);
    taken = selection.size == Size::full
                ? pairwise(points, typical, candidates, budget.full, selection.seed)
                : smoke(points, typical, budget.quick);
    addTelling(taken, points, told);
  }
  std::vector<Case> cases;
  const auto shared = std::make_shared<const Family>(family);
  for (const size_t i : taken)
    cases.push_back({addressOf(family, points[i]), [shared, point = points[i]](Port& port) {
                       return shared->run(choiceOf(*shared, point), port);
                     }});
  return cases;
}

} // namespace candela::conformance
