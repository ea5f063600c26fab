// What ONNX Runtime's own cases of com.microsoft do not reach: forms that its CPU kernels lack,
// storage, bad models.

#include "tests/unit/compiler/import/op_maker.h"

namespace candela::test {
namespace {

using testing::HasSubstr;

Tensor random(Shape dims, uint64_t seed) {
  return std::move(randomTensor(Elem::f32_, std::move(dims), seed)).value();
}
Tensor i32(Shape dims, const std::vector<int32_t>& values) {
  return Tensor::of<int32_t>(Elem::i32_, std::move(dims), values);
}

constexpr const char* kDomain = "com.microsoft";

Tensor first(Op op) {
  const auto results = op.run();
  EXPECT_TRUE(results) << messageOf(results);
  return results ? results->at(0) : Tensor();
}

/// Pieces [batch, places, heads * size] as [batch, places, heads, pieces, size].
Tensor packed(const std::vector<Tensor>& pieces, int64_t heads, int64_t size) {
  const int64_t rows = pieces[0].dims[0] * pieces[0].dims[1];
  std::vector<float> values;
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t h = 0; h < heads; ++h)
      for (const Tensor& piece : pieces)
        for (int64_t i = 0; i < size; ++i)
          values.push_back(piece.as<float>()[(row * heads + h) * size + i]);
  const Shape dims{pieces[0].dims[0], pieces[0].dims[1], heads, static_cast<int64_t>(pieces.size()),
                   size};
  return Tensor::of<float>(Elem::f32_, dims, values);
}

TEST(MultiHeadAttention, TakesPackedFormsAsItTakesThemApart) {
  const Tensor q = random({2, 3, 8}, 1), k = random({2, 3, 8}, 2), v = random({2, 3, 8}, 3),
               bias = random({24}, 4);
  const auto op = [] { return std::move(Op(kDomain, "MultiHeadAttention").attr("num_heads", 2)); };
  const Tensor apart = first(op().in(q).in(k).in(v).in(bias));
  EXPECT_EQ(difference(first(op().in(packed({q, k, v}, 2, 4)).absent(2).in(bias)), apart), "");
  EXPECT_EQ(difference(first(op().in(q).in(packed({k, v}, 2, 4)).absent().in(bias)), apart), "");
}

TEST(MultiHeadAttention, RefusesWhatDoesNotFit) {
  const Tensor q = random({2, 3, 8}, 1);
  const auto op = [] { return std::move(Op(kDomain, "MultiHeadAttention").attr("num_heads", 2)); };
  EXPECT_THAT(Op(kDomain, "MultiHeadAttention").in(q).in(q).in(q).refusal(),
              HasSubstr("num_heads is 0"));
  EXPECT_THAT(Op(kDomain, "MultiHeadAttention").attr("num_heads", 3).in(q).in(q).in(q).refusal(),
              HasSubstr("query f32[2,3,8] does not split into 3 heads"));
  EXPECT_THAT(op().in(q).refusal(), HasSubstr("expected [batch,places,2,3,size]"));
  EXPECT_THAT(op().in(q).absent().in(q).refusal(), HasSubstr("a value is given, but no key"));
  EXPECT_THAT(op().in(q).in(q).in(q).in(random({8}, 1)).refusal(),
              HasSubstr("bias f32[8] does not fit"));
  EXPECT_THAT(op().in(q).in(q).in(q).absent().in(i32({5}, {1, 2, 3, 4, 5})).refusal(),
              HasSubstr("the mask i32[5] fits neither 2 batches nor scores"));
  EXPECT_THAT(op().in(q).in(q).in(q).absent(3).in(random({2, 2, 4, 4}, 1)).refusal(),
              HasSubstr("past_key and past_value go together"));
}

TEST(GroupQueryAttention, SaysWhatItNeeds) {
  const Tensor q = random({1, 1, 32}, 1), k = random({1, 1, 16}, 2), past = random({1, 2, 4, 8}, 3);
  const auto op = [] {
    return std::move(
        Op(kDomain, "GroupQueryAttention").attr("num_heads", 4).attr("kv_num_heads", 2));
  };
  const Tensor length = i32({1}, {4}), total = i32({1}, {5});
  EXPECT_EQ(first(op().in(q).in(k).in(k).in(past).in(past).in(length).constant(total)).typeText(),
            "f32[1,1,32]");
  EXPECT_THAT(op().in(q).in(k).in(k).in(past).in(past).in(length).in(total).refusal(),
              HasSubstr("total_sequence_length ('x6') is not known when the model is imported"));
  EXPECT_THAT(op().in(q).in(k).in(k).in(past).in(past).refusal(), HasSubstr("input 5 is missing"));
  EXPECT_THAT(op().in(q).in(k).in(k).in(past).in(past).in(length).constant(i32({1}, {0})).refusal(),
              HasSubstr("total_sequence_length is 0, but there are 1 new places"));
  EXPECT_THAT(op().in(q).in(k).in(k).in(k).in(k).in(length).constant(total).refusal(),
              HasSubstr("past f32[1,1,16] and f32[1,1,16] do not fit"));
  EXPECT_THAT(op().in(q)
                  .in(k)
                  .in(k)
                  .in(past)
                  .in(past)
                  .in(length)
                  .constant(total)
                  .attr("kv_cache_bit_width", 8)
                  .refusal(),
              HasSubstr("attribute 'kv_cache_bit_width' is not supported"));
  EXPECT_THAT(Op(kDomain, "GroupQueryAttention")
                  .attr("num_heads", 4)
                  .attr("kv_num_heads", 3)
                  .in(q)
                  .in(k)
                  .in(k)
                  .absent(2)
                  .in(length)
                  .constant(total)
                  .refusal(),
              HasSubstr("4 heads of queries are no multiple of 3 heads of keys"));
}

/// Places that seqlens_k says wrongly lie inside nevertheless.
TEST(GroupQueryAttention, StaysInsideItsCache) {
  const Tensor q = random({1, 1, 32}, 1), k = random({1, 1, 16}, 2), past = random({1, 2, 5, 8}, 3);
  for (const int32_t length : {INT32_MIN, -1, 5, INT32_MAX}) {
    Op op(kDomain, "GroupQueryAttention");
    op.attr("num_heads", 4).attr("kv_num_heads", 2);
    const Tensor y = first(
        op.in(q).in(k).in(k).in(past).in(past).in(i32({1}, {length})).constant(i32({1}, {5})));
    EXPECT_EQ(y.typeText(), "f32[1,1,32]");
  }
}

Op product(int64_t n, int64_t k, int64_t block) {
  return std::move(Op(kDomain, "MatMulNBits")
                       .attr("N", n)
                       .attr("K", k)
                       .attr("block_size", block)
                       .attr("bits", 4));
}

TEST(MatMulNBits, KeepsItsWeightsPacked) {
  const int64_t n = 64, k = 256, block = 32;
  const Tensor b = Tensor::of<uint8_t>(Elem::u8_, {n, k / block, block / 2},
                                       std::vector<uint8_t>(n * k / 2, 0x93));
  const Tensor scales = random({n, k / block}, 2);
  const auto graph =
      product(n, k, block).in(random({1, k}, 1)).constant(b).constant(scales).import();
  ASSERT_TRUE(graph) << graph.status().message();
  uint64_t stored = 0;
  for (const auto& node : graph->nodes())
    if (const graph::TensorType& type = node->result()->type; node->kind == graph::OpKind::Constant)
      stored += elemBytes(type.elem, type.count());
  EXPECT_LT(stored, b.sizeBytes() + scales.sizeBytes() + 64);
}

TEST(MatMulNBits, RefusesWhatDoesNotFit) {
  const Tensor a = random({1, 32}, 1), scales = random({2, 1}, 2);
  const Tensor b = Tensor::of<uint8_t>(Elem::u8_, {2, 1, 16}, std::vector<uint8_t>(32, 7));
  EXPECT_THAT(product(2, 32, 33).in(a).in(b).in(scales).refusal(), HasSubstr("block_size is 33"));
  EXPECT_THAT(product(2, 64, 32).in(a).in(b).in(scales).refusal(),
              HasSubstr("expected floats with K = 64 last"));
  EXPECT_THAT(product(3, 32, 32).in(a).in(b).in(scales).refusal(),
              HasSubstr("expected 3x1x16 of u8"));
  EXPECT_THAT(product(2, 32, 32).in(a).in(b).in(a).refusal(),
              HasSubstr("scales is f32[1,32], expected 2x1"));
  EXPECT_THAT(product(2, 32, 32).in(a).in(b).in(scales).in(b).refusal(),
              HasSubstr("zero_points are"));
  EXPECT_THAT(product(2, 32, 32)
                  .in(a)
                  .in(b)
                  .in(scales)
                  .absent()
                  .in(i32({32}, std::vector<int32_t>(32)))
                  .refusal(),
              HasSubstr("input 'g_idx' or B is no constant"));
  EXPECT_THAT(product(2, INT64_MAX, 32).in(a).in(b).in(scales).refusal(),
              HasSubstr("K 9223372036854775807"));
}

Op table(int64_t block, int64_t bits = 4) {
  return std::move(
      Op(kDomain, "GatherBlockQuantized").attr("bits", bits).attr("block_size", block));
}

TEST(GatherBlockQuantized, UnpacksWhatItGathersOnly) {
  const Tensor data = Tensor::of<uint8_t>(Elem::u8_, {100, 16}, std::vector<uint8_t>(1600, 0x4b));
  const auto graph =
      table(32).constant(data).in(i64({2}, {3, -1})).constant(random({100, 1}, 1)).import();
  ASSERT_TRUE(graph) << graph.status().message();
  for (const auto& node : graph->nodes()) {
    const bool isConstant = node->kind == graph::OpKind::Constant;
    EXPECT_LE(isConstant ? 0 : node->result()->type.count(), 64);
  }
}

TEST(GatherBlockQuantized, RefusesWhatDoesNotFit) {
  const Tensor data = Tensor::of<uint8_t>(Elem::u8_, {4, 16}, std::vector<uint8_t>(64, 7));
  const Tensor places = i64({2}, {0, 1});
  const Tensor scales = random({4, 2}, 1);
  EXPECT_THAT(table(24).in(data).in(places).in(scales).refusal(), HasSubstr("block_size is 24"));
  EXPECT_THAT(table(32).in(data).in(places).in(scales).refusal(),
              HasSubstr("scales are f32[4,2], expected 4x1"));
  EXPECT_THAT(table(16).in(data).in(places).in(scales).in(data).refusal(),
              HasSubstr("zero_points are u8[4,16], expected 4x1"));
  EXPECT_THAT(table(16).in(scales).in(places).in(scales).refusal(), HasSubstr("data is f32[4,2]"));
  EXPECT_THAT(table(16, 3).in(data).in(places).in(scales).refusal(), HasSubstr("bits is 3"));
  EXPECT_THAT(table(16)
                  .attr("gather_axis", 1)
                  .attr("quantize_axis", 0)
                  .in(data)
                  .in(places)
                  .in(scales)
                  .refusal(),
              HasSubstr("gather_axis is 1 of data in bytes"));
  EXPECT_THAT(table(16).attr("gather_axis", 1).in(data).in(places).in(scales).refusal(),
              HasSubstr("gather_axis and quantize_axis are both 1"));
}

TEST(RotaryEmbedding, RefusesWhatDoesNotFit) {
  const Tensor x = random({1, 2, 8}, 1), table = random({4, 4}, 2);
  const Tensor place = i64({1}, {0});
  const auto op = [] { return Op(kDomain, "RotaryEmbedding"); };
  EXPECT_EQ(first(op().in(x).in(place).in(table).in(table)).typeText(), "f32[1,2,8]");
  EXPECT_THAT(op().in(x).in(place).in(table).in(random({4, 2}, 3)).refusal(),
              HasSubstr("do not turn heads of 8"));
  EXPECT_THAT(op().in(x).in(place).in(random({4, 5}, 3)).in(random({4, 5}, 3)).refusal(),
              HasSubstr("does not split into 0 heads"));
  EXPECT_THAT(op().attr("rotary_embedding_dim", 8).in(x).in(place).in(table).in(table).refusal(),
              HasSubstr("rotary_embedding_dim 8 goes with num_heads, which is 0"));
  EXPECT_THAT(
      op().in(x).in(Tensor::of<int64_t>(Elem::i64_, {3}, {0, 1, 2})).in(table).in(table).refusal(),
      HasSubstr("position_ids are i64[3], expected one or 1x2"));
}

} // namespace
} // namespace candela::test
