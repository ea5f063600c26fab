// Damaged NPU binaries: each is refused with words, or runs to its end or to a fault. Never a
// crash, never a hang.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "simulator/isa/assembler.h"
#include "simulator/npu_device.h"

namespace candela::npu {
namespace {

constexpr uint64_t kSeed = 99;
constexpr int kRounds = 2500;

/// A convolution with everything that a binary can hold.
constexpr std::string_view kProgram = R"(
.config tiny
.region weights constants 1024
.params 100 0x800000 31
.bytes 1 2 3 4 5 6 7 8
.region in input 1024
.region out output 1024
.region spill spill 512
.node "Conv 1" 0
desc d0 transfer run=1024
load region=0 far=0 dst=0 d=d0
load region=1 far=0 dst=0x1000 d=d0 signal=s0:1
desc d1 window in_h=8 in_w=8 out_h=8 out_w=8 cin=14 cout=8 kernel_h=3 kernel_w=3 pad_top=1 pad_left=1 row_stride=128 pixel_stride=16 weight_pitch=8 acc_pitch=64
desc d2 epilogue out_h=8 out_w=8 channels=8 in_h=8 in_w=8 acc_pitch=64 row_stride=64 pixel_stride=8 params=0 low=-128 high=127
fill dst=0x2000 d=d0 fill=3 signal=s0:1
conv acc=0 act=0x1000 wgt=0x2000 d=d1 wait=s0:2 signal=s1:1
.node "Conv 1" 1
desc d3 transfer run=64 near_stride1=64 far_stride1=64
loop count=3
  nop@requant wait=s1:1
  requant acc=0 dst=0x4000 d=d2 r=d3 signal=s2:1
  nop@matrix wait=s2:1 signal=s1:1
  addi x=x1 value=64
endloop
fence mask=requant|matrix
store region=2 far=0 src=0x4000 d=d3 mark
snapshot slot=1
halt
)";

/// The same with activations of 16 bits.
std::string wideProgram() {
  std::string text(kProgram);
  const auto replace = [&](std::string_view from, std::string_view to) {
    text.replace(text.find(from), from.size(), to);
  };
  replace("cin=14", "cin=7 a_type=i16 a_zp=300");
  replace("row_stride=64 pixel_stride=8 params=0 low=-128 high=127",
          "row_stride=128 pixel_stride=16 params=0 low=-32768 high=32767 out_type=i16 wide=1");
  return text;
}

class NpuDamagedBinaries : public testing::TestWithParam<bool> {};

TEST_P(NpuDamagedBinaries, AreRefusedOrEnd) {
  Configuration configuration = *findConfiguration("tiny");
  configuration.values[key::kFeaturesInt16] = GetParam();
  const Result<Binary> good =
      assemble(GetParam() ? wideProgram() : std::string(kProgram), "good.npu", configuration);
  ASSERT_TRUE(good) << good.message();
  const std::vector<std::byte> original = writeBinary(*good);
  std::mt19937_64 random(kSeed);
  int refusedByChecksum = 0, refusedByReader = 0, refusedByDevice = 0, faults = 0, ended = 0;
  for (int round = -1; round < kRounds; ++round) {
    std::vector<std::byte> bytes = original;
    const int way = round < 0 ? 4 : static_cast<int>(random() % 8);
    // truncated
    if (way == 0) bytes.resize(random() % bytes.size());
    // and nothing repaired
    if (way == 1) bytes[random() % bytes.size()] ^= static_cast<std::byte>(1 + random() % 255);
    // a section's record
    if (way == 2) {
      const uint64_t value = random() % 3 ? random() % (2 * bytes.size()) : random();
      std::memcpy(&bytes[48 + random() % 15 * 8], &value, 8);
    }
    const size_t codeAt = 48 + 5 * 24 + 16 * good->regions.size(),
                 codeBytes = 16 * good->code.size();
    if (way == 3) // anywhere behind the hashes
      for (int i = 0; i < 4; ++i)
        bytes[32 + random() % (bytes.size() - 32)] = static_cast<std::byte>(random());
    if (way > 4) // bits of instructions
      for (int i = way - 4; i > 0; --i)
        bytes[codeAt + random() % codeBytes] ^= static_cast<std::byte>(1u << random() % 8);
    if (way != 1 && bytes.size() >= 48) {
      const uint64_t size = bytes.size();
      std::memcpy(&bytes[32], &size, 8);
      const uint64_t sum = binaryChecksum(bytes);
      std::memcpy(&bytes[40], &sum, 8);
    }
    Result<Binary> binary = readBinary(bytes);
    if (!binary) {
      ASSERT_FALSE(binary.message().empty());
      ++(way == 1 ? refusedByChecksum : refusedByReader);
      continue;
    }
    ASSERT_NE(way, 1) << "round " << round << " seed " << kSeed;
    (void)disassemble(*binary);
    FunctionalOptions options;
    options.maxOperations = 1 << 24;
    const auto device = makeFunctionalDevice(configuration, options);
    if (const Outcome bad = device->load(*binary)) {
      ASSERT_FALSE(bad->message.empty());
      ++refusedByDevice;
      continue;
    }
    std::vector<std::vector<std::byte>> memory;
    for (uint32_t i = 0; i < binary->regions.size(); ++i) {
      memory.emplace_back(binary->regions[i].bytes < 1 << 20 ? binary->regions[i].bytes : 0);
      (void)device->bind(i, memory.back()); // too little is refused, and then the run
    }
    const Result<RunReport> run = device->run();
    if (!run) {
      ++refusedByDevice;
      continue;
    }
    ++(run->fault ? faults : ended);
    if (round < 0) {
      ASSERT_FALSE(run->fault) << run->fault->message;
    } else if (run->fault) {
      ASSERT_NE(run->fault->message.find("instruction"), std::string::npos);
    }
  }
  std::printf("seed %llu: checksum %d, reader %d, device %d, faults %d, ended %d\n",
              static_cast<unsigned long long>(kSeed), refusedByChecksum, refusedByReader,
              refusedByDevice, faults, ended);
  EXPECT_GT(refusedByReader, 500);
  EXPECT_GT(refusedByDevice, 300);
  EXPECT_GT(faults, 150);
  EXPECT_GT(ended, 50);
}

INSTANTIATE_TEST_SUITE_P(Types, NpuDamagedBinaries, testing::Bool(),
                         [](const auto& of) { return of.param ? "int16" : "int8"; });

TEST(NpuDamagedTexts, AreRefusedByLineOrAssembled) {
  std::mt19937_64 random(kSeed + 1);
  int refused = 0, assembled = 0;
  for (int round = 0; round < 4000; ++round) {
    std::string text(kProgram);
    for (int i = 1 + static_cast<int>(random() % 3); i > 0; --i) {
      const size_t at = random() % text.size(), other = random() % text.size(),
                   length = random() % 12;
      switch (random() % 4) {
      case 0: text[at] = static_cast<char>(random()); break;
      case 1: text.erase(at, length); break;
      case 2: text.insert(at, text.substr(other, length)); break;
      default:
        text.insert(at, std::to_string(static_cast<int64_t>(random()) >> random() % 64));
        break;
      }
      if (text.empty()) text = " ";
    }
    if (text.find(" constants 1024\n") == text.npos) continue; // gigabytes of zeros are legal
    const Result<Binary> binary = assemble(text, "round.npu");
    if (!binary) {
      ASSERT_EQ(binary.message().rfind("round.npu:", 0), 0U) << binary.message();
      ++refused;
      continue;
    }
    ++assembled;
    ASSERT_TRUE(disassemble(*binary)) << "seed " << kSeed + 1 << " round " << round;
  }
  EXPECT_GT(refused, 1000);
  EXPECT_GT(assembled, 100);
}

} // namespace
} // namespace candela::npu
