#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "Vrtl_scratchpad.h"
#include "tests/rtl/bench.h"

namespace {
using namespace candela::rtl;

constexpr int kSeed = 20260106, kPorts = 3, kBanks = 4, kWidth = 4, kPortBytes = 8, kBytes = 4096,
              kAddrBits = 12;

/// What a port asks for, until it is granted.
struct Request {
  bool write = false;
  int address = 0;
  uint32_t bytes = 0; ///< bit i: byte address + i
  std::array<uint8_t, kPortBytes> data{};
  int waited = 0;

  uint32_t banks() const {
    uint32_t set = 0;
    for (int i = 0; i < kPortBytes; ++i)
      if (bytes >> i & 1) set |= 1u << ((address + i) / kWidth % kBanks);
    return set;
  }
};

/// Of a span of bytes, as an engine asks: contiguous, except for what a select leaves out.
Request randomRequest(Dice& dice, int span) {
  Request r;
  r.write = dice.chance(50);
  const int bytes = static_cast<int>(dice.of(1, kPortBytes));
  r.address = static_cast<int>(dice.of(0, span - bytes));
  r.bytes = (1u << bytes) - 1;
  if (r.write && dice.chance(30)) r.bytes &= static_cast<uint32_t>(dice.of(0, 255));
  for (uint8_t& byte : r.data) byte = static_cast<uint8_t>(dice.of(0, 255));
  return r;
}

struct Scratchpad {
  explicit Scratchpad(int seed) : bench(seed), memory(kBytes) {
    Dice dice(static_cast<uint32_t>(seed));
    for (int at = 0; at < kBytes; at += kPortBytes) {
      Request r;
      r.write = true, r.address = at, r.bytes = (1u << kPortBytes) - 1;
      for (uint8_t& byte : r.data) byte = static_cast<uint8_t>(dice.of(0, 255));
      offered[0] = r, isOffered = {true, false, false};
      EXPECT_EQ(cycle(), 1u);
    }
  }
  /// One cycle with what is offered; returns the ports that were granted, bit p for port p.
  uint32_t cycle() {
    bench->valid_i = bench->write_i = 0;
    for (int p = 0; p < kPorts; ++p) {
      const Request& r = offered[static_cast<size_t>(p)];
      if (!isOffered[static_cast<size_t>(p)]) continue;
      bench->valid_i |= 1u << p, bench->write_i |= uint32_t{r.write} << p;
      setBits(bench->addr_i, p * kAddrBits, kAddrBits, static_cast<uint64_t>(r.address));
      setBits(bench->bytes_i, p * kPortBytes, kPortBytes, r.bytes);
      setBits(bench->claim_i, p * kPortBytes, kPortBytes, r.bytes);
      for (int i = 0; i < kPortBytes; ++i)
        setBits(bench->data_i, (p * kPortBytes + i) * 8, 8, r.data[static_cast<size_t>(i)]);
    }
    bench.settle();
    // What the last granted read of each port found, as long as it asks for nothing new.
    for (int p = 0; p < kPorts; ++p)
      for (int i = 0; i < kPortBytes; ++i)
        if (read[static_cast<size_t>(p)].bytes >> i & 1) {
          EXPECT_EQ(getBits(bench->data_o, (p * kPortBytes + i) * 8, 8),
                    read[static_cast<size_t>(p)].data[static_cast<size_t>(i)])
              << "port " << p << ", address " << read[static_cast<size_t>(p)].address + i;
        }
    const uint32_t granted = bench->ready_o & bench->valid_i;
    uint32_t banks = 0;
    for (int p = 0; p < kPorts; ++p) {
      if (!(granted >> p & 1)) continue;
      const Request& r = offered[static_cast<size_t>(p)];
      EXPECT_EQ(banks & r.banks(), 0u) << "two accesses to a bank";
      banks |= r.banks();
    }
    for (int p = 0; p < kPorts; ++p)
      if (isOffered[static_cast<size_t>(p)] && !(granted >> p & 1)) {
        EXPECT_NE(banks & offered[static_cast<size_t>(p)].banks(), 0u)
            << "port " << p << " waits for nothing";
      }
    // Reads find what stood there before the writes of this cycle; these are to other banks anyway.
    for (int p = 0; p < kPorts; ++p) {
      if (!(granted >> p & 1)) continue;
      Request& r = offered[static_cast<size_t>(p)];
      for (int i = 0; i < kPortBytes; ++i) {
        if (!(r.bytes >> i & 1)) continue;
        uint8_t& byte = memory[static_cast<size_t>(r.address + i)];
        if (r.write)
          byte = r.data[static_cast<size_t>(i)];
        else
          r.data[static_cast<size_t>(i)] = byte;
      }
      if (!r.write) read[static_cast<size_t>(p)] = r;
      isOffered[static_cast<size_t>(p)] = false;
    }
    bench.edge();
    return granted;
  }

  Bench<Vrtl_scratchpad> bench;
  std::vector<uint8_t> memory;
  std::array<Request, kPorts> offered, read;
  std::array<bool, kPorts> isOffered{};
};

TEST(Scratchpad, ServesPortsWhoseBanksDiffer) {
  Scratchpad scratchpad(kSeed);
  // Words 0, 1 and 2 lie in three banks; all three words 0, 4 and 8 in one.
  for (const auto& [step, cycles] : {std::pair{kWidth, 1}, std::pair{kWidth * kBanks, 3}}) {
    for (int p = 0; p < kPorts; ++p) {
      Request r;
      r.address = p * step, r.bytes = (1u << kWidth) - 1;
      scratchpad.offered[static_cast<size_t>(p)] = r;
    }
    scratchpad.isOffered = {true, true, true};
    int taken = 0;
    for (uint32_t left = 7; left; ++taken) left &= ~scratchpad.cycle();
    EXPECT_EQ(taken, cycles);
  }
}

TEST(Scratchpad, KeepsWhatItIsTold) {
  Scratchpad scratchpad(kSeed + 1);
  Dice dice(kSeed + 1);
  int longest = 0;
  for (int i = 0; i < 20000; ++i) {
    // Narrow spans at times, so that ports meet.
    const int span = i / 1000 % 2 ? kBytes : 64, load = 20 + 10 * (i / 2000 % 9);
    for (size_t p = 0; p < kPorts; ++p)
      if (!scratchpad.isOffered[p] && dice.chance(load)) {
        scratchpad.offered[p] = randomRequest(dice, span);
        scratchpad.isOffered[p] = true;
      }
    const uint32_t granted = scratchpad.cycle();
    for (size_t p = 0; p < kPorts; ++p)
      if (scratchpad.isOffered[p] && !(granted >> p & 1))
        longest = std::max(longest, ++scratchpad.offered[p].waited);
    if (HasFailure()) FAIL() << "seed " << kSeed + 1 << ", cycle " << i;
  }
  // Who had to wait first begins in the next cycle: the last one goes when all others went before
  // it.
  EXPECT_GE(longest, 2);
  EXPECT_LT(longest, kPorts);
}

} // namespace
