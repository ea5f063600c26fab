// Words and text, exactly there and back.
#include <gtest/gtest.h>

#include <random>

#include "simulator/isa/assembler.h"

namespace candela::npu {
namespace {

constexpr uint64_t kSeed = 20261;

/// A value that the field can hold.
int64_t drawn(const FieldInfo& field, std::mt19937_64& random) {
  if (field.kind == FieldKind::kEnum) {
    const auto members = kEnums[field.of].members;
    return members[random() % members.size()].value;
  }
  const int width = field.width();
  const uint64_t bits = width == 64 ? random() : random() & ((uint64_t{1} << width) - 1);
  auto value = static_cast<int64_t>(bits);
  if (field.kind == FieldKind::kInt && width < 64 && (bits >> (width - 1) & 1))
    value -= int64_t{1} << width;
  return field.minusOne ? value + 1 : value;
}

Insn drawnInsn(std::mt19937_64& random) {
  const OpInfo& info = kOpTable[random() % std::size(kOpTable)];
  Insn insn;
  insn.op = info.op;
  do insn.engine = static_cast<uint8_t>(random() % kEngineCount);
  while (!(info.engines >> insn.engine & 1));
  insn.waitCount = random() % 8;
  insn.waitSemaphore = insn.waitCount ? random() % 32 : 0;
  insn.signalCount = random() % 8;
  insn.signalSemaphore = insn.signalCount ? random() % 32 : 0;
  insn.mark = random() % 2;
  for (size_t i = 0; i < info.fields.size(); ++i) insn.values[i] = drawn(info.fields[i], random);
  return insn;
}

TEST(NpuCodec, EveryInstructionIsReadAsItWasWritten) {
  std::mt19937_64 random(kSeed);
  for (int i = 0; i < 20000; ++i) {
    const Insn insn = drawnInsn(random);
    const Result<Word> word = encode(insn);
    ASSERT_TRUE(word) << word.message();
    const Result<Insn> again = decode(*word);
    ASSERT_TRUE(again) << again.message();
    ASSERT_EQ(*again, insn) << insnText(insn) << " seed " << kSeed << " case " << i;
  }
}

TEST(NpuCodec, ARandomWordIsAnErrorOrAnInstructionThatIsWrittenAsThatWord) {
  std::mt19937_64 random(kSeed + 1);
  int good = 0;
  for (int i = 0; i < 400000; ++i) {
    Word word{random(), random()};
    // Mostly near a word that exists: all of the bits at random hardly ever are one.
    if (i % 4) {
      word = *encode(drawnInsn(random));
      for (int flips = static_cast<int>(random() % 4); flips > 0; --flips)
        (random() % 2 ? word.low : word.high) ^= uint64_t{1} << random() % 64;
    }
    const Result<Insn> insn = decode(word);
    if (!insn) {
      ASSERT_FALSE(insn.message().empty());
      continue;
    }
    ++good;
    const Result<Word> again = encode(*insn);
    ASSERT_TRUE(again) << again.message();
    ASSERT_EQ(*again, word) << insnText(*insn) << " seed " << kSeed + 1 << " case " << i;
  }
  EXPECT_GT(good, 50000);
}

TEST(NpuCodec, DescriptorsAreReadAsTheyWereWritten) {
  std::mt19937_64 random(kSeed + 2);
  for (int i = 0; i < 20000; ++i) {
    const auto kind = static_cast<DescriptorKind>(random() % std::size(kDescriptorTable));
    DescriptorValues values{};
    const auto fields = descriptorInfo(kind).fields;
    for (size_t f = 0; f < fields.size(); ++f) values[f] = drawn(fields[f], random);
    const Result<DescriptorBits> bits = encodeDescriptor(kind, values);
    ASSERT_TRUE(bits) << bits.message();
    const Result<DescriptorValues> again = decodeDescriptor(kind, *bits);
    ASSERT_TRUE(again) << again.message();
    ASSERT_EQ(*again, values) << descriptorInfo(kind).name << " seed " << kSeed + 2 << " case "
                              << i;
  }
}

TEST(NpuCodec, ValuesThatFitTheLowerPartOfAFieldLeaveTheUpperPartZero) {
  namespace f = descriptor::epilogue;
  const FieldInfo& low = descriptorInfo(DescriptorKind::kEpilogue).fields[f::kLow];
  ASSERT_GT(low.moreBits, 0);
  DescriptorValues values{};
  for (size_t i = 0; i < descriptorInfo(DescriptorKind::kEpilogue).fields.size(); ++i)
    values[i] = descriptorInfo(DescriptorKind::kEpilogue).fields[i].minusOne;
  int narrow = 0;
  for (int64_t value = -65536; value < 65536; ++value) {
    values[f::kLow] = value;
    const Result<DescriptorBits> bits = encodeDescriptor(DescriptorKind::kEpilogue, values);
    ASSERT_TRUE(bits) << bits.message();
    ASSERT_EQ(decodeDescriptor(DescriptorKind::kEpilogue, *bits)->at(f::kLow), value);
    const bool isNarrow = ((*bits)[low.moreLsb / 64] >> (low.moreLsb % 64) & 0xff) == 0;
    ASSERT_EQ(isNarrow, value >= -256 && value < 256) << value;
    narrow += isNarrow;
  }
  EXPECT_EQ(narrow, 512);
}

TEST(NpuCodec, WhatDoesNotFitIsNamed) {
  Insn insn;
  insn.op = Op::kLoad;
  insn.engine = 1;
  insn.values[field::load::kRegion] = 16;
  EXPECT_EQ(encode(insn).message(), "load: region is 16, its field holds 0..15");
  insn.values[field::load::kRegion] = 1;
  insn.engine = 9;
  EXPECT_EQ(encode(insn).message(), "load: engine matrix cannot run it");
  EXPECT_EQ(decode({0x00, 0}).message(), "opcode 0x00 is no operation");
  EXPECT_EQ(decode({0x02 | uint64_t{1} << 29, 0}).message(), "halt: reserved bit 29 is set");
  EXPECT_EQ(decode({0x02, uint64_t{1} << 63}).message(), "halt: reserved bit 127 is set");
  EXPECT_EQ(decode({0x42 | uint64_t{11} << 8, uint64_t{9} << 59}).message(),
            "vreduce: field fn holds 9, which names no reduce");
  EXPECT_EQ(decode({0x02 | uint64_t{3} << 12, 0}).message(),
            "halt: a semaphore is named with the count 0");
  DescriptorValues window{};
  EXPECT_EQ(encodeDescriptor(DescriptorKind::kWindow, window).message(),
            "window: in_h is 0, its field holds 1..4096");
}

TEST(NpuAssembler, WhatIsDisassembledAssemblesToTheSameBinary) {
  std::mt19937_64 random(kSeed + 3);
  const Configuration configuration = *findConfiguration("gem16");
  for (int round = 0; round < 60; ++round) {
    Binary binary;
    binary.configurationName = configuration.name;
    binary.configurationHash = configuration.hash();
    const size_t constants = random() % 200;
    for (size_t i = 0; i < constants; ++i)
      binary.constants.push_back(static_cast<std::byte>(random() % 3 ? 0 : random()));
    binary.regions.push_back({"weights", RegionClass::kConstants, constants});
    binary.regions.push_back({"a \"name\"; with\nmore", RegionClass::kInput, random() % 10000});
    for (int i = 0; i < 100; ++i) binary.code.push_back(*encode(drawnInsn(random)));
    for (uint32_t at = random() % 10; at < 90; at += random() % 20) {
      const uint32_t count = 1 + random() % 9;
      binary.symbols.push_back(
          {at, count, "Conv_" + std::to_string(at), static_cast<uint32_t>(random())});
      at += count;
    }
    const Result<std::string> text = disassemble(binary);
    ASSERT_TRUE(text) << text.message();
    const Result<Binary> again = assemble(*text, "round.npu");
    ASSERT_TRUE(again) << again.message() << "\n" << *text;
    ASSERT_EQ(*again, binary) << "seed " << kSeed + 3 << " round " << round << "\n" << *text;
    const Result<Binary> stored = readBinary(writeBinary(binary));
    ASSERT_TRUE(stored) << stored.message();
    ASSERT_EQ(*stored, binary);
  }
}

} // namespace
} // namespace candela::npu
