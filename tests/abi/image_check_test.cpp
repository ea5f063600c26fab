// cdl_image_check on good images, on one broken fact at a time, and on thousands of mutations.
#include "image_builder.h"

#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>

extern "C" cdl_code_t cdl_test_check_from_c(const void* data, uint64_t size, cdl_error_t* error);

namespace candela::abi {
namespace {

using testing::HasSubstr;

struct Answer {
  cdl_code_t code;
  std::string text;
};
Answer check(const Block& block) {
  char text[200] = "";
  cdl_error_t error{text, sizeof text, 0};
  const cdl_code_t code = cdl_image_check(block.data(), block.size(), &error);
  return {code, text};
}

// Every section has records: a product with bias and clamp as its epilogue, a loop of two levels
// over a copy, a 4-bit constant, a halo, a blocked layout, a group, waits and provenance.
ImageBuilder everything() {
  ImageBuilder m;
  const uint32_t x = m.buffer(CDL_ROLE_INPUT, 4 * 6 * 4),
                 w = m.buffer(CDL_ROLE_CONSTANT, 6 * 8 * 4, m.constant(CDL_F32, 6 * 8 * 4));
  const uint32_t bias = m.buffer(CDL_ROLE_CONSTANT, 8 * 4, m.constant(CDL_F32, 8 * 4));
  const uint32_t y = m.buffer(CDL_ROLE_TEMP, 4 * 8 * 4), z = m.buffer(CDL_ROLE_OUTPUT, 4 * 8 * 4);
  const uint32_t nibbles = m.buffer(CDL_ROLE_CONSTANT, 4, m.constant(CDL_I4, 4)),
                 wide = m.buffer(CDL_ROLE_OUTPUT, 8);
  m.buffers[y].offset = 64;

  cdl_halo_t halo{};
  halo.rank = 2;
  halo.elem = CDL_F32;
  halo.lo[0] = halo.hi[1] = 1;
  m.halos.push_back(halo);
  m.buffers[z].halo = 1;
  cdl_layout_t layout{};
  layout.count = 3;
  layout.logical_rank = 2;
  layout.dim[1] = layout.dim[2] = 1;
  layout.factor[2] = 4;
  m.layouts.push_back(layout);

  cdl_step_t add{};
  add.kind = CDL_KIND_BINARY;
  add.fn = CDL_BINARY_ADD;
  add.elem = CDL_F32;
  add.operands = 2;
  add.in[0] = {CDL_FROM_ACC, CDL_F32, 0};
  add.in[1] = {CDL_FROM_VIEW, CDL_F32, 2};
  cdl_step_t clamp = add;
  clamp.fn = CDL_BINARY_MAX;
  clamp.in[0] = {CDL_FROM_STEP, CDL_F32, 0};
  clamp.in[1] = {CDL_FROM_CONST, CDL_F32, 0};
  clamp.imm = 0x3f800000;
  m.steps.insert(m.steps.end(), {add, clamp});
  m.exprs.push_back({1, 2});

  cdl_view_t rows = ImageBuilder::view(bias, CDL_F32, {1, 4, 8});
  rows.strides[0] = rows.strides[1] = 0;
  auto& product =
      m.instr(CDL_KIND_MATMUL, 0,
              {ImageBuilder::view(x, CDL_F32, {1, 4, 6}), ImageBuilder::view(w, CDL_F32, {1, 6, 8}),
               rows, ImageBuilder::view(y, CDL_F32, {1, 4, 8})});
  product.expr = 1;
  product.group = 1;
  m.attr(product, CDL_ATTR_ACCUMULATE, 1, {0});
  m.provenance.push_back({m.string("Conv_0"), m.string("conv2d"), 2, 0});
  m.provenance.push_back({m.string("Relu_1"), m.string("relu"), 0, 0});
  product.provenance = 1;
  m.groups.push_back({1, 1, 1, 2});

  // Four rows of two halves, each half of 4 elements.
  cdl_view_t from = ImageBuilder::view(y, CDL_F32, {4}), to = ImageBuilder::view(z, CDL_F32, {4});
  from.iv_strides[0] = to.iv_strides[0] = 8;
  from.iv_strides[1] = to.iv_strides[1] = 4;
  m.instr(CDL_KIND_COPY, 0, {from, to}).loop = 2;
  auto& negate = m.instr(CDL_KIND_UNARY, CDL_UNARY_NEG, {to, to});
  negate.loop = 2;
  negate.first_wait = 1;
  negate.waits = 1;
  m.waits.push_back({2, 0});
  m.loops.push_back({2, 2, 0, 0, 4});
  m.loops.push_back({2, 2, 1, 0, 2});

  m.attr(m.instr(CDL_KIND_CONVERT, CDL_CONVERT_TRUNC,
                 {ImageBuilder::view(nibbles, CDL_I4, {8}), ImageBuilder::view(wide, CDL_I8, {8})}),
         CDL_ATTR_SATURATE, 1, {1});
  return m;
}

TEST(ImageCheck, AcceptsAGoodImageFromCAndCpp) {
  const Block block(everything().bytes());
  const Answer answer = check(block);
  EXPECT_EQ(answer.code, CDL_OK) << answer.text;
  EXPECT_EQ(cdl_test_check_from_c(block.data(), block.size(), nullptr), CDL_OK);
  EXPECT_EQ(cdl_operand_count(block.image(), cdl_get_instr(block.image(), 1)), 2u);
}

TEST(ImageCheck, AcceptsTheEmptyProgramAndStridesOfNewerWriters) {
  EXPECT_EQ(check(Block(ImageBuilder().bytes())).code, CDL_OK);
  // A newer writer's loops have 8 bytes more.
  std::vector<uint8_t> bytes = everything().bytes();
  cdl_image_t header;
  std::memcpy(&header, bytes.data(), sizeof header);
  const uint64_t at = bytes.size(), old = header.loops.stride;
  bytes.resize(at + header.loops.count * (old + 8));
  for (uint32_t i = 0; i < header.loops.count; ++i)
    std::memcpy(&bytes[at + i * (old + 8)], &bytes[header.loops.offset + i * old], old);
  header.loops.offset = at;
  header.loops.stride += 8;
  header.size = bytes.size();
  std::memcpy(bytes.data(), &header, sizeof header);
  const Answer answer = check(Block(bytes));
  EXPECT_EQ(answer.code, CDL_OK) << answer.text;
}

TEST(ImageCheck, RefusesBadPointersWithoutReading) {
  EXPECT_EQ(cdl_image_check(nullptr, 1000, nullptr), CDL_INVALID_ARGUMENT);
  EXPECT_EQ(cdl_image_check(reinterpret_cast<const void*>(uintptr_t(4)), 1000, nullptr),
            CDL_INVALID_ARGUMENT);
}

TEST(ImageCheck, RefusesEveryTruncation) {
  const std::vector<uint8_t> good = everything().bytes();
  for (size_t size = 0; size < good.size(); ++size) {
    const Block block(
        std::vector<uint8_t>(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size)));
    EXPECT_EQ(check(block).code, CDL_BAD_MODEL) << size;
  }
}

// The message is cut where the caller's buffer ends, and still ends with NUL.
TEST(ImageCheck, WritesNoMoreThanTheMessageHolds) {
  const Block empty(std::vector<uint8_t>(8));
  for (uint32_t capacity = 0; capacity < 12; ++capacity) {
    std::vector<char> text(capacity + 1, 'x');
    cdl_error_t error{text.data(), capacity, 0};
    EXPECT_EQ(cdl_image_check(empty.data(), empty.size(), &error), CDL_BAD_MODEL);
    EXPECT_EQ(text[capacity], 'x');
    if (capacity) {
      EXPECT_EQ(std::string(text.data()), std::string("image: head").substr(0, capacity - 1));
    }
  }
}

struct Broken {
  const char* says;
  std::function<void(ImageBuilder&)> mend;
  cdl_code_t code = CDL_BAD_MODEL;
};

TEST(ImageCheck, NamesTheRecordAndTheValue) {
  const Broken cases[] = {
      {"spaces 1: alignment 3 is not a power of two", [](auto& m) { m.spaces[1].alignment = 3; }},
      {"spaces 1: flags 4 are not among 11", [](auto& m) { m.spaces[1].flags = 4; }},
      {"spaces 1: name 4096 is not below", [](auto& m) { m.spaces[1].name = 4096; }},
      {"buffers 1: space 0 names no record", [](auto& m) { m.buffers[1].space = 0; }},
      {"buffers 1: role 6 exceeds 5", [](auto& m) { m.buffers[1].role = 6; }},
      {"buffers 1: constant of a buffer that is none 1 must be 0",
       [](auto& m) { m.buffers[1].constant = 1; }},
      {"buffers 2: bytes 193 differs from its constant's bytes, 192",
       [](auto& m) { ++m.buffers[2].bytes; }},
      {"buffers 4: offset 65 is not a multiple of the alignment 64",
       [](auto& m) { m.buffers[4].offset = 65; }},
      {"buffers 4: end 192 exceeds the capacity of its space, 128",
       [](auto& m) { m.spaces[1].capacity_bytes = 128; }},
      {"buffers 1: pad 1 must be 0", [](auto& m) { m.buffers[1].pad[2] = 1; }},
      {"constants 1: elem 99 is no element type", [](auto& m) { m.constants[1].elem = 99; }},
      {"constants 1: form 2 exceeds 1", [](auto& m) { m.constants[1].form = 2; }},
      {"buffers 5: halo 1: rank 0 is not within 1 .. 8", [](auto& m) { m.halos[1].rank = 0; }},
      {"layouts 1: dim 2 is not below the logical rank 2",
       [](auto& m) { m.layouts[1].dim[1] = 2; }},
      {"layouts 1: factor 0 at 2 is not the outermost of its dim",
       [](auto& m) { m.layouts[1].factor[2] = 0; }},
      {"layouts 1: product of factors", // 2^64, which 64 bits take for 0
       [](auto& m) {
         cdl_layout_t& layout = m.layouts[1];
         layout.count = 4;
         layout.dim[3] = 1;
         layout.factor[1] = layout.factor[2] = 1u << 20;
         layout.factor[3] = 1u << 24;
       }},
      {"layouts 1: count 0 is not within 1 .. 8", [](auto& m) { m.layouts[1].count = 0; }},
      {"instrs 1: input 0: buffer 0 names no record", [](auto& m) { m.views[1].buffer = 0; }},
      {"instrs 1: input 0: rank 9 exceeds 8", [](auto& m) { m.views[1].rank = 9; }},
      {"instrs 1: input 0: dims[0] -1 is not within 0 .. 1099511627776",
       [](auto& m) { m.views[1].dims[0] = -1; }},
      {"instrs 1: input 0: rank 3 differs from its layout's 2",
       [](auto& m) {
         m.layouts[1].count = 2;
         m.layouts[1].dim[2] = m.layouts[1].factor[2] = 0;
         m.views[1].layout = 1;
       }},
      {"instrs 1: input 0: alignment of its buffer 2 is below the element's 4",
       [](auto& m) { m.buffers[1].alignment = 2; }},
      {"instrs 1: input 0: view at offset -1 leaves its buffer's elements, 24",
       [](auto& m) { m.views[1].offset = -1; }},
      {"instrs 1: input 0: element 24 lies beyond its buffer's elements, 24",
       [](auto& m) { m.views[1].offset = 1; }},
      {"instrs 1: input 0: element -18 lies before its buffer",
       [](auto& m) { m.views[1].strides[1] = -6; }},
      {"instrs 1: input 0: view at offset 0 leaves its buffer's elements, 24",
       [](auto& m) { m.views[1].strides[1] = INT64_MIN; }},
      {"instrs 2: input 0: element 35 lies beyond its buffer's elements, 32",
       [](auto& m) { m.views[5].iv_strides[1] = 8; }},
      {"instrs 1: input 0: stride of a loop variable 1 where there is no such loop, level 0",
       [](auto& m) { m.views[1].iv_strides[0] = 1; }},
      {"instrs 4: input 0: packed view at offset 1 does not start on whole bytes of elements, 2",
       [](auto& m) { m.views[9].offset = 1; }},
      {"instrs 1: steps 33 is not within 1 .. 32", [](auto& m) { m.exprs[1].steps = 33; }},
      {"instrs 1: step 1: operand of step 1 is not earlier than step 1",
       [](auto& m) { m.steps[2].in[0].index = 1; }},
      {"instrs 1: steps 4 ends beyond the section's count 3",
       [](auto& m) { m.exprs[1].first_step = 2; }},
      {"instrs 1: step 0: kind 10 cannot stand in an expression",
       [](auto& m) { m.steps[1].kind = CDL_KIND_MATMUL; }, CDL_INCOMPATIBLE},
      {"instrs 1: step 0: operands 3 is not 2", [](auto& m) { m.steps[1].operands = 3; }},
      {"instrs 1: step 0: source 5 is unknown", [](auto& m) { m.steps[1].in[0].source = 5; }},
      {"instrs 1: step 1: imm 1099511627776 exceeds the bits of its element type, 32",
       [](auto& m) { m.steps[2].imm = uint64_t(1) << 40; }},
      {"instrs 1: view of a step 7 is not below the inputs, 3",
       [](auto& m) { m.steps[1].in[1].index = 7; }},
      {"instrs 1: input 2: type f32 is not the step's f16",
       [](auto& m) { m.steps[1].in[1].elem = CDL_F16; }},
      {"instrs 1: accumulate: count 2 is not within 1 .. 1", [](auto& m) { m.attrs[1].count = 2; }},
      {"instrs 1: accumulate: value beyond the count 5 is not 0",
       [](auto& m) { m.attrs[1].values[3] = 5; }},
      {"instrs 1: attribute strides is unknown for matmul",
       [](auto& m) { m.attrs[1].id = CDL_ATTR_STRIDES; }},
      {"instrs 1: accumulate: type 3 is not 1", [](auto& m) { m.attrs[1].type = 3; }},
      {"instrs 4: saturate: value 2 is not within 0 .. 1",
       [](auto& m) { m.attrs[2].values[0] = 2; }},
      {"instrs 1: kind 99 is unknown", [](auto& m) { m.instrs[1].kind = 99; }, CDL_INCOMPATIBLE},
      {"instrs 3: fn 19 is unknown for kind 11", [](auto& m) { m.instrs[3].fn = 19; },
       CDL_INCOMPATIBLE},
      {"instrs 1: engine 1 is not below 1", [](auto& m) { m.instrs[1].engine = 1; }},
      {"instrs 1: flags 2 exceeds 1", [](auto& m) { m.instrs[1].flags = 2; }},
      {"instrs 1: prologue on matmul which takes none", [](auto& m) { m.instrs[1].prologue = 1; }},
      {"instrs 2: prologue without an expr 1 must be 0", [](auto& m) { m.instrs[2].prologue = 1; }},
      {"instrs 1: inputs 1 is below 2", [](auto& m) { m.instrs[1].inputs = 1; }},
      {"instrs 1: outputs 0 is not 1", [](auto& m) { m.instrs[1].outputs = 0; }},
      {"instrs 4: operands 3 exceeds 1",
       [](auto& m) {
         m.instrs[4].first_view = 1;
         m.instrs[4].inputs = 3;
       }},
      {"instrs 1: views 1003 ends beyond", [](auto& m) { m.instrs[1].first_view = 999; }},
      {"instrs 1: output 0: its buffer is an input and cannot be written",
       [](auto& m) {
         m.views[4] = ImageBuilder::view(1, CDL_F32, {1, 4, 6});
         m.views[3] = m.views[4];
         m.views[2].dims[2] = 6;
       }},
      {"instrs 3: wait 3 is not earlier than instruction 3", [](auto& m) { m.waits[1].instr = 3; }},
      {"instrs 3: wait 1 stands in another block", [](auto& m) { m.waits[1].instr = 1; }},
      {"waits used 2 is more than there are records",
       [](auto& m) { m.instrs[1].waits = m.instrs[1].first_wait = 1; }},
      {"loops 1: parent 1 is not below its own index 1", [](auto& m) { m.loops[1].parent = 1; }},
      {"loops 3: nesting 3 exceeds 2", [](auto& m) { m.loops.push_back({2, 2, 2, 0, 4}); }},
      {"loops 1: instruction 4 of its range names another loop: 0",
       [](auto& m) { m.loops[1].count = 3; }},
      {"loops 2: trip 0 is not within 1", [](auto& m) { m.loops[2].trip = 0; }},
      {"instrs 1: loop 1 does not hold it", [](auto& m) { m.instrs[1].loop = 1; }},
      {"groups 1: bands 0 is not at least 1", [](auto& m) { m.groups[1].bands = 0; }},
      {"instrs 2: group 1 does not hold it", [](auto& m) { m.instrs[2].group = 1; }},
      {"provenance 2: next 1 is not greater than 2", [](auto& m) { m.provenance[2].next = 1; }},
      {"instrs 1: input 1: dims[1] 5 is below the expected 6",
       [](auto& m) { m.views[2].dims[1] = 5; }},
      {"instrs 3: input 0: dims[0] 3 differs from the result's 4",
       [](auto& m) { m.views[7].dims[0] = 3; }},
  };
  for (const Broken& broken : cases) {
    ImageBuilder m = everything();
    broken.mend(m);
    const Answer answer = check(Block(m.bytes()));
    EXPECT_EQ(answer.code, broken.code) << broken.says;
    EXPECT_THAT(answer.text, HasSubstr(std::string("image: ") + broken.says));
  }
}

TEST(ImageCheck, NamesWhatIsWrongInTheHeader) {
  const auto with = [](auto change) {
    std::vector<uint8_t> bytes = everything().bytes();
    cdl_image_t header;
    std::memcpy(&header, bytes.data(), sizeof header);
    change(header);
    std::memcpy(bytes.data(), &header, sizeof header);
    return check(Block(bytes));
  };
  EXPECT_THAT(with([](auto& h) { h.magic[0] = 'X'; }).text,
              HasSubstr("image: header magic 88 is not CDLP"));
  EXPECT_EQ(with([](auto& h) { h.minor = 9; }).code, CDL_INCOMPATIBLE);
  EXPECT_THAT(with([](auto& h) { h.major = 3; }).text, HasSubstr("major version 3 is not 0"));
  EXPECT_THAT(with([](auto& h) { h.size += 8; }).text, HasSubstr("differs from the bytes given"));
  EXPECT_THAT(with([](auto& h) { h.views.offset += 4; }).text, HasSubstr("is not a multiple of 8"));
  EXPECT_THAT(with([](auto& h) { h.views.offset = 16; }).text,
              HasSubstr("views offset 16 lies inside of the header of 296"));
  EXPECT_THAT(with([](auto& h) { h.views.offset = UINT64_MAX - 7; }).text,
              HasSubstr("is beyond the image's size"));
  EXPECT_THAT(with([](auto& h) { h.views.stride = 152; }).text,
              HasSubstr("is no multiple of 8 of at least 160"));
  EXPECT_THAT(with([](auto& h) { h.views.stride = 164; }).text,
              HasSubstr("is no multiple of 8 of at least 160"));
  EXPECT_THAT(
      with([](auto& h) { h.views.count = UINT32_MAX, h.views.stride = UINT32_MAX - 7; }).text,
      HasSubstr("is beyond"));
  EXPECT_THAT(with([](auto& h) { h.views.count = 0; }).text,
              HasSubstr("leaves no room for the null record"));
  EXPECT_THAT(with([](auto& h) {
                h.buffers = h.views;
                h.buffers.offset += 160;
              }).text,
              HasSubstr("null record's byte"));
  EXPECT_THAT(with([](auto& h) { h.strings.count -= 1; }).text, HasSubstr("is not NUL"));
  EXPECT_THAT(with([](auto& h) { h.engines = 0; }).text, HasSubstr("header engines 0"));
}

// Reads every byte that a consumer of a checked image may reach.
uint64_t readAll(const cdl_image_t* m) {
  uint64_t sum = 0;
  for (uint32_t i = 1; i < m->buffers.count; ++i)
    sum += std::strlen(cdl_get_string(m, cdl_get_buffer(m, i)->name));
  for (uint32_t i = 1; i < m->instrs.count; ++i) {
    const cdl_instr_t* in = cdl_get_instr(m, i);
    for (uint32_t v = 0; v < in->inputs; ++v)
      sum += cdl_get_buffer(m, cdl_get_input(m, in, v)->buffer)->bytes;
    sum += cdl_get_buffer(m, cdl_get_output(m, in, 0)->buffer)->bytes + cdl_operand_count(m, in);
    for (uint16_t id = 0; id < 32; ++id)
      if (const cdl_attr_t* a = cdl_find_attr(m, in, id))
        sum += static_cast<uint64_t>(a->values[a->count - 1]);
    const cdl_expr_t* e = cdl_get_expr(m, in->expr);
    for (uint32_t s = 0; s < e->steps; ++s) sum += cdl_get_step(m, e->first_step + s)->imm;
    for (uint32_t w = 0; w < in->waits; ++w) sum += cdl_get_wait(m, in->first_wait + w)->instr;
    for (uint32_t l = in->loop; l; l = cdl_get_loop(m, l)->parent) sum += cdl_get_loop(m, l)->trip;
    for (uint32_t p = in->provenance; p; p = cdl_get_provenance(m, p)->next)
      sum += std::strlen(cdl_get_string(m, cdl_get_provenance(m, p)->node));
  }
  return sum;
}

// Under a sanitizer a read beyond the block ends the test: the block has exactly the image's size.
TEST(ImageCheck, ReadsNothingOutsideWhateverTheBytes) {
  const std::vector<uint8_t> good = everything().bytes();
  uint64_t tried = 0, refused = 0, sum = 0;
  const auto attempt = [&](const std::vector<uint8_t>& bytes) {
    const Block block(bytes);
    ++tried;
    if (check(block).code != CDL_OK)
      ++refused;
    else
      sum += readAll(block.image());
  };
  for (size_t at = 0; at < good.size(); ++at)
    for (int change : {1, 0x80, 0xff}) {
      std::vector<uint8_t> bytes = good;
      bytes[at] = static_cast<uint8_t>(bytes[at] ^ change);
      attempt(bytes);
    }
  std::mt19937 random(1);
  for (int i = 0; i < 5000; ++i) {
    std::vector<uint8_t> bytes = good;
    for (int n = 1 + static_cast<int>(random() % 4); n > 0; --n)
      bytes[random() % bytes.size()] = static_cast<uint8_t>(random());
    attempt(bytes);
  }
  EXPECT_GE(tried, 10000u);
  EXPECT_GT(refused, tried / 2);
  EXPECT_GT(tried, refused); // a hash, a name or an unused bit may differ
  EXPECT_GT(sum, 0u);
}

} // namespace
} // namespace candela::abi
