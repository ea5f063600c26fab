// Cycles of compute instructions, counted by hand: how often each port is used, and what fills and
// drains.
#include <gtest/gtest.h>

#include "simulator/timing/compute.h"
#include "tests/unit/simulator/program_builder.h"

namespace candela::npu {
namespace {

/// Ports of 16 bytes, 16 x 16 multipliers, 16 lanes.
struct Cycles {
  Configuration configuration = *findConfiguration("gem16");

  int64_t of(std::string_view op, const Fields& descriptor, const Fields& fields = {},
             const Fields& second = {}) const {
    return costOf(op, descriptor, fields, second).cycles();
  }
  ComputeCost costOf(std::string_view op, const Fields& descriptor, const Fields& fields = {},
                     const Fields& second = {}) const {
    const OpInfo& info = *opInfo(op);
    Operation operation{};
    operation.insn.op = info.op;
    setFields(info.fields, fields, operation.insn.values);
    for (const FieldInfo& field : info.fields)
      if (field.kind == FieldKind::kDescriptor)
        setFields(descriptorInfo(static_cast<DescriptorKind>(field.of)).fields,
                  field.name == "d" ? descriptor : second,
                  field.name == "d" ? operation.d : operation.second);
    return computeCost(configuration, operation);
  }
};

constexpr int64_t kSkew = 16 + 16 - 1;
const int64_t kMatrix = kSkew + valueOf(Timing::kMatrixPipeline),
              kRequant = valueOf(Timing::kRequantPipeline),
              kVector = valueOf(Timing::kVectorPipeline);

TEST(ComputeCycles, ConvStreamsPassesBehindTheLoadOfTheFirstWeights) {
  const Cycles c;
  const auto conv = [&](int64_t h, int64_t w, int64_t cin, int64_t cout, int64_t kernel) {
    return c.of("conv", {{"out_h", h},
                         {"out_w", w},
                         {"cin", cin},
                         {"cout", cout},
                         {"kernel_h", kernel},
                         {"kernel_w", kernel},
                         {"pixel_stride", cin}});
  };
  EXPECT_EQ(conv(7, 7, 16, 16, 1), 16 + 49 + kMatrix);
  EXPECT_EQ(conv(7, 7, 64, 32, 1), 16 + 8 * 49 + kMatrix);
  EXPECT_EQ(conv(7, 7, 64, 32, 3), 16 + 72 * 49 + kMatrix);
  // Fewer rows than a load takes: all but the last pass wait for weights.
  EXPECT_EQ(conv(1, 1, 64, 16, 1), 16 + 3 * 16 + 1 + kMatrix);
  // One channel above the array costs a pass more: the padding cliff.
  EXPECT_EQ(conv(7, 7, 17, 16, 1) - conv(7, 7, 16, 16, 1), 49);
  EXPECT_EQ(conv(7, 7, 16, 17, 1) - conv(7, 7, 16, 16, 1), 49);
}

TEST(ComputeCycles, SumsThatStayStreamTheirTermsFoldByFold) {
  Cycles c;
  c.configuration.values[key::kArrayDataflow] = 1;
  const int64_t end = kSkew + valueOf(Timing::kOutputPipeline);
  const auto conv = [&](int64_t h, int64_t w, int64_t cin, int64_t cout, int64_t kernel,
                        const Fields& more = {}) {
    Fields fields = {{"out_h", h},         {"out_w", w},         {"cin", cin},
                     {"cout", cout},       {"kernel_h", kernel}, {"kernel_w", kernel},
                     {"pixel_stride", cin}};
    fields.insert(fields.end(), more.begin(), more.end());
    return c.of("conv", fields);
  };
  // One fold: the equation of SCALE-Sim, K + 2 R + C - 1, and the pipeline.
  EXPECT_EQ(conv(4, 4, 64, 16, 3), 576 + 2 * 16 + 16 - 1 + valueOf(Timing::kOutputPipeline));
  // Sums leave while the next fold streams, and the last one's behind it: of 49 positions one.
  EXPECT_EQ(conv(7, 7, 64, 16, 1), 4 * 64 + 1 + end);
  EXPECT_EQ(conv(7, 7, 64, 17, 1), 8 * 64 + 1 + end);
  // Four terms: each fold waits for the 16 rows of sums of the one before it, and for its own
  // reads.
  EXPECT_EQ(conv(4, 8, 4, 16, 1), 16 + 16 + 16 + end);
  // A row of the kernel is nine terms: three reads for each of 16 positions, more than 27 terms.
  EXPECT_EQ(conv(4, 4, 3, 16, 3), 48 + 16 + end);
  // Dilated ones are read tap by tap.
  EXPECT_EQ(conv(4, 4, 3, 16, 3, {{"dilation_w", 2}}), 9 * 16 + 16 + end);
  // Transposed weights come by columns, 16 terms in a cycle: 16 columns of 20 take two reads each.
  EXPECT_EQ(conv(16, 1, 20, 16, 1), 2 * 16 + 16 + end);
  EXPECT_EQ(conv(4, 1, 20, 16, 1), 20 + 4 + end);
  EXPECT_EQ(conv(4, 1, 20, 16, 1, {{"transposed", 1}}), 2 * 16 + 4 + end);
  // No passes: packed taps and flat sums are the same.
  EXPECT_EQ(conv(4, 4, 3, 16, 3, {{"flat", 1}}), conv(4, 4, 3, 16, 3));
  EXPECT_EQ(conv(4, 4, 3, 16, 3, {{"taps", 5}}), conv(4, 4, 3, 16, 3));
}

TEST(ComputeCycles, PackedTapsAreGatheredFromStretches) {
  const Cycles c;
  // 7 x 7 taps of 3 channels, 5 in a pass: of ten passes those over the end of a row of taps gather
  // two stretches.
  const Fields stem = {{"out_h", 8}, {"out_w", 8},        {"cin", 3},
                       {"cout", 16}, {"kernel_h", 7},     {"kernel_w", 7},
                       {"taps", 5},  {"pixel_stride", 3}, {"dilation_w", 1}};
  // Rows of taps end behind 7, 14, 21, 28, 35, 42: within the passes 5..9, 10..14, 20..24, 25..29,
  // 40..44; 35 is a border.
  EXPECT_EQ(c.of("conv", stem), 16 + (5 + 5 * 2) * 64 + kMatrix);
  Fields apart = stem;
  apart[7] = {"pixel_stride", 4};
  EXPECT_EQ(c.of("conv", apart), 16 + 49 * 64 + kMatrix) << "each tap by itself";
  // With one row the load is what takes time; it begins with the last stretch of the first row.
  apart[0] = {"out_h", 1}, apart[1] = {"out_w", 1};
  EXPECT_EQ(c.of("conv", apart), 16 + 9 * (16 + 5 - 1) + 4 + kMatrix);
}

TEST(ComputeCycles, PlanesAreMoreRowsOfEachPass) {
  const Cycles c;
  const Fields window = {{"out_h", 2},    {"out_w", 3},    {"cin", 64},   {"cout", 32},
                         {"kernel_h", 3}, {"kernel_w", 3}, {"planes", 8}, {"plane_rows", 2}};
  EXPECT_EQ(c.of("conv", window), 16 + 72 * 48 + kMatrix);
  EXPECT_EQ(c.of("dwconv", window), 4 * 48 * 9 + valueOf(Timing::kDwconvPipeline));
}

TEST(ComputeCycles, FlatPassesAreGatheredFromStretches) {
  const Cycles c;
  // 153 terms in passes of 16; rows of the kernel end behind 51 and 102, within two of the ten.
  Fields flat = {{"out_h", 7},    {"out_w", 7},    {"cin", 17},          {"cout", 16},
                 {"kernel_h", 3}, {"kernel_w", 3}, {"pixel_stride", 17}, {"flat", 1}};
  EXPECT_EQ(c.of("conv", flat), 16 + (8 + 2 * 2) * 49 + kMatrix);
  Fields wide = flat;
  wide[6] = {"pixel_stride", 34}, wide.push_back({"a_type", 3});
  EXPECT_EQ(c.of("conv", wide), 16 + (8 + 2 * 2) * 49 + kMatrix);
  Fields apart = flat;
  apart[6] = {"pixel_stride", 18};
  EXPECT_EQ(c.of("conv", apart), 16 + (2 + 8 * 2) * 49 + kMatrix) << "taps end within eight";
  Fields twice = flat;
  twice[3] = {"cout", 17};
  EXPECT_EQ(c.of("conv", twice), 16 + 2 * (8 + 2 * 2) * 49 + kMatrix);
  // With one row the load is what takes time; it begins with the last stretch of the first row.
  flat[0] = {"out_h", 1}, flat[1] = {"out_w", 1};
  EXPECT_EQ(c.of("conv", flat), 16 + 7 * 16 + 2 * (16 + 2 - 1) + 1 + kMatrix);
  // Several rows of a small kernel within one pass.
  const Fields small = {{"out_h", 4},    {"out_w", 4},    {"cin", 1},          {"cout", 16},
                        {"kernel_h", 5}, {"kernel_w", 5}, {"pixel_stride", 1}, {"flat", 1}};
  EXPECT_EQ(c.of("conv", small), 16 + 16 * 4 + 2 * 16 + kMatrix);
}

TEST(ComputeCycles, DepthwiseTakesATapOfOneOutputInACycle) {
  const Cycles c;
  EXPECT_EQ(
      c.of("dwconv", {{"out_h", 4}, {"out_w", 4}, {"cin", 40}, {"kernel_h", 3}, {"kernel_w", 3}}),
      3 * 16 * 9 + valueOf(Timing::kDwconvPipeline));
}

TEST(ComputeCycles, SixteenBitRowsTakeNoMore) {
  Cycles c;
  c.configuration = *findConfiguration("edge8t");
  EXPECT_EQ(c.of("conv", {{"out_h", 16}, {"out_w", 16}, {"cin", 64}, {"cout", 64}, {"a_type", 3}}),
            64 + 256 + 127 + valueOf(Timing::kMatrixPipeline));
  // 8 words of records for 64 channels; nor does requant, but for a table of 1,026 bytes and one
  // stage behind it.
  const Fields epilogue = {
      {"out_h", 16}, {"out_w", 16}, {"channels", 64}, {"out_type", 3}, {"wide", 1}};
  EXPECT_EQ(c.of("requant", epilogue), 8 + 256 + kRequant);
  EXPECT_EQ(c.of("requant", epilogue, {{"table", 1}}),
            17 + 8 + 256 + kRequant + valueOf(Timing::kRequantInterpolation));
}

/// bf16 takes the cycles of i16, and no hardware says so.
TEST(ComputeCycles, FloatsTakeTheCyclesOfIntegersOfTheirSizeAndAreAssumed) {
  const Cycles c;
  const auto conv = [&](int64_t type) {
    return c.costOf("conv", {{"out_h", 7},
                             {"out_w", 7},
                             {"cin", 3},
                             {"cout", 40},
                             {"kernel_h", 3},
                             {"kernel_w", 3},
                             {"flat", 1},
                             {"pixel_stride", 6},
                             {"a_type", type},
                             {"w_type", type == 4 ? 4 : 0}});
  };
  EXPECT_EQ(conv(4).cycles(), conv(3).cycles());
  EXPECT_EQ(conv(4).words, conv(3).words);
  EXPECT_EQ(conv(4).streamTag, Tag::kAssumed);
  EXPECT_NE(conv(3).streamTag, Tag::kAssumed);
  const auto add = [&](int64_t type) {
    return c.costOf("vbinary",
                    {{"run", 40}, {"a_type", type}, {"b_type", type}, {"out_type", type}});
  };
  EXPECT_EQ(add(5).cycles(), add(2).cycles());
  EXPECT_EQ(add(5).fixedTag, Tag::kAssumed);
  EXPECT_NE(add(2).fixedTag, Tag::kAssumed);
}

TEST(ComputeCycles, LdwAndMmAreAConvByHand) {
  const Cycles c;
  EXPECT_EQ(c.of("ldw", {}, {{"k", 16}, {"n", 16}}), 16 + valueOf(Timing::kLdwPipeline));
  EXPECT_EQ(c.of("mm", {{"out_h", 10}, {"out_w", 10}}), 100 + kMatrix);
}

TEST(ComputeCycles, RequantReadsARowOfAccumulatorsInACycle) {
  const Cycles c;
  const Fields plain = {{"out_h", 7}, {"out_w", 7}, {"in_h", 7}, {"in_w", 7}, {"channels", 40}};
  // Two blocks of 16 channels with 8 words of records, one of 8 channels with 4.
  EXPECT_EQ(c.of("requant", plain), 2 * (8 + 49) + 4 + 49 + kRequant);
  EXPECT_EQ(c.of("requant", plain, {{"table", 1}}), 16 + 2 * (8 + 49) + 4 + 49 + kRequant);
  // Windows of 3 x 3 with a stride of 2 over 5 x 5 positions: those outside take their cycle.
  const Fields pooled = {{"out_h", 3},        {"out_w", 3},         {"in_h", 5},
                         {"in_w", 5},         {"channels", 16},     {"pool_h", 3},
                         {"pool_w", 3},       {"pool_stride_h", 2}, {"pool_stride_w", 2},
                         {"pool_pad_top", 1}, {"pool_pad_left", 1}};
  EXPECT_EQ(c.of("requant", pooled), 8 + 9 * 9 + kRequant);
  EXPECT_EQ(c.of("accstore", plain), 49 * (4 + 4 + 2) + valueOf(Timing::kMovePipeline));
}

TEST(ComputeCycles, VectorIsBoundByLanesOrByItsWidestOperand) {
  const Cycles c;
  const Fields bytes = {{"run", 100}, {"len1", 3}, {"len2", 2}};
  Fields sums = bytes;
  sums.push_back({"out_type", 2});
  EXPECT_EQ(c.of("vbinary", bytes), 6 * 7 + kVector);
  EXPECT_EQ(c.of("vbinary", sums), 6 * 25 + kVector);
  EXPECT_EQ(c.of("vunary", bytes, {{"fn", 4}}), 16 + 6 * 7 + kVector);
  EXPECT_EQ(c.of("vreduce", sums), 6 * 7 + kVector + 4);
  // More lanes than a word has bytes: 64 elements meet in six stages.
  EXPECT_EQ(Cycles{*findConfiguration("edge8t")}.of("vreduce", sums), 6 * 2 + kVector + 6);
  const Fields pool = {
      {"in_h", 7}, {"in_w", 7}, {"channels", 40}, {"kernel_h", 7}, {"kernel_w", 7}};
  EXPECT_EQ(c.of("vpool", pool), 49 * 3 + kVector);
}

TEST(ComputeCycles, EveryConstantSaysWhatItRestsOn) {
  ASSERT_EQ(timingConstants().size(), static_cast<size_t>(kTimings));
  for (const TimingConstant& constant : timingConstants()) {
    EXPECT_FALSE(constant.source.empty()) << constant.name;
    EXPECT_GT(constant.value, 0) << constant.name;
  }
}

} // namespace
} // namespace candela::npu
