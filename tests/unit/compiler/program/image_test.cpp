#include <gtest/gtest.h>

#include <cstring>

#include "core/compiler/program/image.h"
#include "tests/unit/compiler/program/program_text.h"

namespace candela::test {
namespace {

const cdl_image_t* header(const Bytes& image) {
  return reinterpret_cast<const cdl_image_t*>(image.data());
}

constexpr const char* kProgram = R"(
  constant @w : f32[2] = [1.0, 2.0]
  buffer %x input @host 64
  buffer %w constant @host 8 = @w
  buffer %t temp @host 64 at 128
  copy @in %x[1,2,2,4]:f32{n,c/4,h,c%4}, @out %t[1,2,2,4]:f32{n,c/4,h,c%4} from "Conv_0":conv, "Relu_1":relu
  for 3 { unary.neg @in %t[2]:f32 + 1*i0, @out %t[2]:f32 at 8 from "Conv_0":conv }
)";

TEST(Image, HoldsRecordsAsTheHeaderSays) {
  // {n,c/4,h,c%4} needs a dim w for logical rank 4: here dims are 0, 1, 2.
  std::string text = kProgram;
  for (size_t at; (at = text.find("{n,c/4,h,c%4}")) != std::string::npos;)
    text.replace(at, 13, "{0,1/4,2,1%4}");
  const auto parsed = parseBody(text);
  ASSERT_TRUE(parsed) << parsed.status().message();
  const Bytes image = program::toImage(*parsed);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(image.data()) % 8, 0u);
  char message[256] = "";
  cdl_error_t error{message, sizeof message, 0};
  ASSERT_EQ(cdl_image_check(image.data(), image.size(), &error), CDL_OK) << message;
  const cdl_image_t* h = header(image);
  EXPECT_EQ(h->size, image.size());
  EXPECT_STREQ(cdl_get_string(h, h->name), "t");
  EXPECT_EQ(h->buffers.count, 4u);
  EXPECT_EQ(h->layouts.count, 2u); // shared by both views
  EXPECT_EQ(h->instrs.count, 3u);
  EXPECT_EQ(h->provenance.count, 4u);
  const cdl_instr_t* copy = cdl_get_instr(h, 1);
  EXPECT_EQ(copy->kind, CDL_KIND_COPY);
  EXPECT_EQ(copy->loop, 0u);
  EXPECT_EQ(cdl_get_output(h, copy, 0)->layout, 1u);
  const cdl_provenance_t* origin = cdl_get_provenance(h, copy->provenance);
  EXPECT_STREQ(cdl_get_string(h, origin->node), "Conv_0");
  EXPECT_STREQ(cdl_get_string(h, cdl_get_provenance(h, origin->next)->op), "relu");
  const cdl_instr_t* neg = cdl_get_instr(h, 2);
  EXPECT_EQ(neg->loop, 1u);
  EXPECT_EQ(cdl_get_loop(h, 1)->first, 2u);
  EXPECT_EQ(cdl_get_input(h, neg, 0)->iv_strides[0], 1);
  // The name of the second instruction's origin is the string of the first one's.
  EXPECT_EQ(cdl_get_provenance(h, neg->provenance)->node, origin->node);
  EXPECT_EQ(cdl_get_constant(h, 1)->bytes, 8u);
  EXPECT_EQ(cdl_get_buffer(h, 3)->offset, 128u);
}

TEST(Image, EqualProgramsGiveEqualBytes) {
  const auto a = parseBody(
      "buffer %x input @host 16\nbuffer %y output @host 16\ncopy @in %x[4]:f32, @out %y[4]:f32");
  const auto b = parseBody("buffer %x input @host 0x10\nbuffer %y output @host 16 align 64\n[1] "
                           "copy @in %x[4]:f32 at 0 strides[1], @out %y[4]:f32");
  ASSERT_TRUE(a && b);
  const Bytes first = program::toImage(*a), second = program::toImage(*b);
  ASSERT_EQ(first.size(), second.size());
  EXPECT_EQ(std::memcmp(first.data(), second.data(), first.size()), 0);
}

TEST(Image, ReadsPayloadsByHash) {
  const auto parsed =
      parseBody("constant @w : f32[2] = [1.0, 2.0]\nbuffer %w constant @host 8 = @w");
  ASSERT_TRUE(parsed);
  const Bytes image = program::toImage(*parsed);
  const Payload& payload = parsed->constants[0].payload;
  const auto read =
      program::fromImage(image, [&](const cdl_constant_t& constant) -> Result<Payload> {
        EXPECT_EQ(std::memcmp(constant.hash, payload.hash().data(), 32), 0);
        return payload;
      });
  ASSERT_TRUE(read);
  EXPECT_EQ(read->constants[0].payload, payload);
  const auto wrong = program::fromImage(image, [&](const cdl_constant_t&) -> Result<Payload> {
    return Payload::data(Tensor::of<float>(Elem::f32_, {2}, {1, 3}));
  });
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.status().message().find("constant 'w' is another one"), std::string::npos);
  const auto missing = program::fromImage(image, [&](const cdl_constant_t&) -> Result<Payload> {
    return failure(Code::not_found, "no such payload");
  });
  EXPECT_EQ(missing.status().message(), "constant 'w': no such payload");
  const auto zeros = program::fromImage(image, nullptr);
  ASSERT_TRUE(zeros);
  EXPECT_EQ(zeros->constants[0].payload, Payload::splat(Elem::f32_, 2, 0));
}

TEST(Image, AWrongHashIsNamed) {
  const auto parsed = parseBody("buffer %x input @host 16");
  ASSERT_TRUE(parsed);
  const Bytes image = program::toImage(*parsed);
  Bytes damaged = Bytes::copyOf(image.data(), image.size());
  damaged.mutableData()[offsetof(cdl_image_t, hash)] ^= std::byte(1);
  const auto read = program::fromImage(damaged, nullptr);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.status().code(), Code::bad_model);
  EXPECT_EQ(read.status().message().substr(0, 12), "image: hash ");
}

TEST(ProgramHelpers, NamesAreUniqueAndConstantsShared) {
  program::Program program;
  program::Buffer buffer;
  buffer.name = "t";
  EXPECT_EQ(program.addBuffer(buffer), 0u);
  EXPECT_EQ(program.addBuffer(buffer), 1u);
  EXPECT_EQ(program.addBuffer(buffer), 2u);
  buffer.name = "";
  program.addBuffer(buffer);
  EXPECT_EQ(program.buffers[1].name, "t_1");
  EXPECT_EQ(program.buffers[2].name, "t_2");
  EXPECT_EQ(program.buffers[3].name, "b");
  const uint32_t a = program.addConstant("w", Payload::iota(Elem::i32_, 3, 5, 1));
  EXPECT_EQ(
      program.addConstant("v", Payload::data(Tensor::of<int32_t>(Elem::i32_, {3}, {5, 6, 7}))), a);
  const uint32_t b = program.addConstant("w", Payload::splat(Elem::i32_, 3, 5));
  EXPECT_NE(a, b);
  EXPECT_EQ(program.buffers[b].name, "w_1");
  EXPECT_EQ(program.buffers[b].bytes, 12u);
  EXPECT_TRUE(program::verify(program)) << program::verify(program).message();
}

TEST(ProgramHelpers, ArenaIsWhatTempsReach) {
  const auto parsed = parseBody(
      "space @sram {align 16}\nbuffer %a temp @host 100 at 64\nbuffer %b temp @host 10 at 128\n"
      "buffer %c temp @sram 30 at 0 align 16\nbuffer %d input @host 500\nbuffer %e temp @host 900");
  ASSERT_FALSE(parsed); // align stands before at
  const auto right = parseBody(
      "space @sram {align 16}\nbuffer %a temp @host 100 at 64\nbuffer %b temp @host 10 at 128\n"
      "buffer %c temp @sram 30 align 16 at 0\nbuffer %d input @host 500\nbuffer %e temp @host 900");
  ASSERT_TRUE(right) << right.status().message();
  EXPECT_EQ(right->arenaBytes(0), 164u);
  EXPECT_EQ(right->arenaBytes(1), 30u);
}

TEST(ProgramHelpers, NamesGoBothWays) {
#define CANDELA_KIND(name, id, primitive, ...)                                                     \
  EXPECT_EQ(kindName(id), #name);                                                                  \
  EXPECT_EQ(parseKind(#name), id);                                                                 \
  EXPECT_EQ(isPrimitive(id), primitive != 0);
  CDL_KINDS(CANDELA_KIND)
#undef CANDELA_KIND
#define CANDELA_ATTR(name, id, ...)                                                                \
  EXPECT_EQ(attrName(id), #name);                                                                  \
  EXPECT_EQ(parseAttr(#name), id);
  CDL_ATTRS(CANDELA_ATTR)
#undef CANDELA_ATTR
  EXPECT_EQ(kindName(20), "");
  EXPECT_EQ(fnName(CDL_KIND_BINARY, CDL_BINARY_REM), "rem");
  EXPECT_EQ(parseFn(CDL_KIND_UNARY, "add"), std::nullopt);
}

} // namespace
} // namespace candela::test
