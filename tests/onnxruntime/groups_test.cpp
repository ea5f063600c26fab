#include "integrations/onnxruntime/groups.h"

#include <gmock/gmock.h>

#include <random>
#include <set>

namespace candela::ort {
namespace {

using testing::ElementsAre;

TEST(Groups, JoinConnectedNodesAlone) {
  EXPECT_THAT(groupsOf({{true, true, true, true}, {{0, 1}, {2, 3}}}),
              ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3)));
}

TEST(Groups, TakeBothSidesOfADiamond) {
  EXPECT_THAT(groupsOf({{true, true, true, true}, {{0, 1}, {0, 2}, {1, 3}, {2, 3}}}),
              ElementsAre(ElementsAre(0, 1, 2, 3)));
}

TEST(Groups, DoNotReachAroundANodeThatStays) {
  // 0 feeds 2 beside the path by 1, so that a group of 0 and 2 would wait for itself.
  EXPECT_THAT(groupsOf({{true, false, true}, {{0, 1}, {0, 2}, {1, 2}}}),
              ElementsAre(ElementsAre(0), ElementsAre(2)));
}

TEST(Groups, DoNotWaitForEachOther) {
  // Each of 0-3 and 1-2 alone is without a detour; 0 feeds 2 and 1 feeds 3 through nodes that stay.
  const NodeGraph graph{{true, true, false, false, true, true},
                        {{0, 2}, {1, 3}, {0, 5}, {1, 4}, {2, 4}, {3, 5}}};
  for (const auto& group : groupsOf(graph)) EXPECT_LE(group.size(), 2u);
  EXPECT_EQ(groupsOf(graph).size(), 3u);
}

NodeGraph drawn(std::mt19937& random, size_t count) {
  NodeGraph graph;
  std::set<std::pair<size_t, size_t>> edges;
  for (size_t node = 0; node < count; ++node) {
    graph.taken.push_back(random() % 4 != 0);
    for (size_t i = 0; node > 0 && i < 1 + random() % 2; ++i)
      edges.emplace(node - 1 - random() % std::min<size_t>(node, 6), node);
  }
  graph.edges.assign(edges.begin(), edges.end());
  return graph;
}

/// Whether the graph with each group as one node has a cycle, by taking away what waits for
/// nothing.
bool hasCycle(const NodeGraph& graph, const std::vector<std::vector<size_t>>& groups) {
  std::vector<size_t> unit(graph.taken.size());
  for (size_t node = 0; node < unit.size(); ++node) unit[node] = node;
  for (const auto& group : groups)
    for (const size_t node : group) unit[node] = group[0];
  std::set<size_t> left(unit.begin(), unit.end());
  bool isSmaller = true;
  while (isSmaller) {
    std::set<size_t> waiting;
    for (const auto& [from, to] : graph.edges)
      if (unit[from] != unit[to] && left.contains(unit[from])) waiting.insert(unit[to]);
    std::set<size_t> next;
    for (const size_t one : left)
      if (waiting.contains(one)) next.insert(one);
    isSmaller = next.size() < left.size();
    left = next;
  }
  return !left.empty();
}

TEST(Groups, AreAcyclicAndAsLargeAsTheyCanBe) {
  std::mt19937 random(1);
  for (int draw = 0; draw < 300; ++draw) {
    const NodeGraph graph = drawn(random, 4 + random() % 20);
    const auto groups = groupsOf(graph);
    EXPECT_FALSE(hasCycle(graph, groups)) << draw;
    std::vector<size_t> groupOf(graph.taken.size(), groups.size());
    size_t members = 0;
    for (size_t i = 0; i < groups.size(); ++i)
      for (const size_t node : groups[i]) {
        EXPECT_TRUE(graph.taken[node]);
        groupOf[node] = i;
        ++members;
      }
    EXPECT_EQ(members,
              static_cast<size_t>(std::count(graph.taken.begin(), graph.taken.end(), true)));
    for (const auto& [from, to] : graph.edges) {
      const size_t a = groupOf[from];
      const size_t b = groupOf[to];
      if (a == b || a == groups.size() || b == groups.size()) continue;
      auto joined = groups;
      joined[a].insert(joined[a].end(), joined[b].begin(), joined[b].end());
      joined.erase(joined.begin() + static_cast<ptrdiff_t>(b));
      EXPECT_TRUE(hasCycle(graph, joined)) << draw << ": " << from << " and " << to;
    }
  }
}

} // namespace
} // namespace candela::ort
