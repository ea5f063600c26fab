// The search for tiles stops early and answers questions from others. Here all tiles are tried for
// each question, which is what happens where a device may have costs of its own, and the answers
// are the same.
#include <gtest/gtest.h>

#include "core/compiler/program/dependences.h"
#include "core/compiler/program/passes/tile/cuts.h"
#include "core/compiler/program/passes/tile/device_costs.h"
#include "tests/unit/compiler/program/passes/tile/random_layers.h"

using namespace candela;
using namespace candela::program::passes::tile;

namespace {

constexpr uint64_t kSeeds = 60;

/// Costs of a device that knows none of what it is asked, and was not asked yet.
TileCosts withSilentDevice(TileCosts costs) {
  costs.device =
      std::make_shared<DeviceCosts>([](const program::Program&) { return std::vector<double>(); });
  return costs;
}

bool isMovement(const Chain& chain) {
  return std::ranges::all_of(chain.links,
                             [](const Link& link) { return link.work.kind == CDL_KIND_COPY; });
}

void expectSame(const Tiling* found, const std::optional<Tiling>& wanted) {
  ASSERT_EQ(found != nullptr, wanted.has_value());
  if (!found) return;
  EXPECT_EQ(found->tile, wanted->tile);
  EXPECT_EQ(found->order, wanted->order);
  EXPECT_EQ(found->held, wanted->held);
  EXPECT_EQ(found->buffers, wanted->buffers);
  EXPECT_EQ(found->storesLast, wanted->storesLast);
  EXPECT_EQ(found->bytes, wanted->bytes);
  EXPECT_EQ(found->localBytes, wanted->localBytes);
  EXPECT_DOUBLE_EQ(found->cost, wanted->cost);
}

class PlanTileChoice : public ::testing::TestWithParam<uint64_t> {
protected:
  PlanTileChoice() : random_(GetParam()) {
    program_ = random_.make();
    program::rebuildWaits(program_);
    memory_ = {"l1", uint64_t{1} << random_.between(9, 16), 64};
    sums_ = {"sums", uint64_t{1} << random_.between(9, 14), 64, true};
    costs_.bytesPerCycle = static_cast<double>(random_.between(1, 32));
    costs_.storesLast = random_.oneIn(3);
    hasSums_ = random_.oneIn(3);
  }

  std::vector<Chain> chains() const {
    const std::vector<bool> isDone(program_.instrs.size(), false);
    return chainsOf(program_, isDone, {true, 512, {}});
  }
  Setting settingFor() {
    Setting setting;
    setting.memory = &memory_;
    setting.sums = hasSums_ ? &sums_ : nullptr;
    setting.mostBuffers = static_cast<uint32_t>(random_.between(1, 3));
    setting.splitSums = random_.oneIn(2);
    return setting;
  }
  std::vector<Stay> staysFor(const std::vector<Port>& ports) {
    std::vector<Stay> stays(ports.size(), Stay::no);
    for (size_t p = 0; p < ports.size(); ++p) {
      if (ports[p].inout || !random_.oneIn(4)) continue;
      stays[p] = ports[p].output && random_.oneIn(2) ? Stay::stored : Stay::local;
    }
    return stays;
  }

  candela::testing::LayerMaker random_;
  program::Program program_;
  LocalMemory memory_, sums_;
  TileCosts costs_;
  bool hasSums_ = false;
};

TEST_P(PlanTileChoice, IsTheOneOfAllTiles) {
  for (Chain& chain : chains()) {
    if (isMovement(chain)) continue; // which costs nothing to compute, and that is known
    KnownChain known{chain, portsOf(program_, chain, Machine{}, hasSums_)};
    TileSpace space(known.chain, known.ports, costs_);
    const Setting setting = settingFor();
    for (int question = 0; question < 4; ++question) {
      FoundTilings found;
      ChainTilings tilings(known, space, setting, costs_, found);
      const auto reserved = static_cast<uint64_t>(random_.below(1 << 10)) * 8;
      const std::vector<Stay> stays = staysFor(known.ports);
      expectSame(
          tilings.find(reserved, stays),
          chooseTiling(space, tilings.settingWith(reserved, stays), withSilentDevice(costs_)));
    }
  }
}

TEST_P(PlanTileChoice, IsTheSameWhateverWasAskedBefore) {
  for (Chain& chain : chains()) {
    KnownChain known{chain, portsOf(program_, chain, Machine{}, hasSums_)};
    TileSpace space(known.chain, known.ports, costs_);
    FoundTilings found;
    ChainTilings tilings(known, space, settingFor(), costs_, found);
    const std::vector<Stay> stays = staysFor(known.ports);
    for (int question = 0; question < 12; ++question) {
      const auto reserved =
          static_cast<uint64_t>(random_.below(static_cast<int64_t>(memory_.capacityBytes)));
      expectSame(tilings.find(reserved, stays),
                 chooseTiling(space, tilings.settingWith(reserved, stays), costs_));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, PlanTileChoice, ::testing::Range<uint64_t>(0, kSeeds));

} // namespace
