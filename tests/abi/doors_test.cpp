// Both interfaces of loaded plugins: what they claim, memory and queues, runs, refusals and faults.
#include "host.h"

#include <gmock/gmock.h>
#include <thread>

namespace candela::abi {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// a[2,3] . b[3,2], then in a loop of two rows: out[i] = -product[i].
struct Sample {
  ImageBuilder m;
  uint32_t a = m.buffer(CDL_ROLE_INPUT, 24), b = m.buffer(CDL_ROLE_INPUT, 24),
           y = m.buffer(CDL_ROLE_TEMP, 16);
  uint32_t out = m.buffer(CDL_ROLE_OUTPUT, 16);
  Buffers inputs = {{a, bytesOf<float>({1, 2, 3, 4, 5, 6})},
                    {b, bytesOf<float>({1, 0, 0, 1, 1, 1})}};

  Sample() {
    m.instr(CDL_KIND_MATMUL, 0,
            {ImageBuilder::view(a, CDL_F32, {1, 2, 3}), ImageBuilder::view(b, CDL_F32, {1, 3, 2}),
             ImageBuilder::view(y, CDL_F32, {1, 2, 2})});
    cdl_view_t row = ImageBuilder::view(y, CDL_F32, {2}),
               to = ImageBuilder::view(out, CDL_F32, {2});
    row.iv_strides[0] = to.iv_strides[0] = 2;
    m.instr(CDL_KIND_UNARY, CDL_UNARY_NEG, {row, to}).loop = 1;
    m.loops.push_back({2, 1, 0, 0, 2});
  }
};

TEST(Doors, BothGiveTheSame) {
  for (const char* path : {PLUGIN_template, PLUGIN_door2}) {
    Device device(load(path));
    ASSERT_EQ(device.code, CDL_OK) << device.text;
    EXPECT_EQ(device.table.run == nullptr, device.table.compile != nullptr);
    Sample sample;
    Buffers after = device.run(Block(sample.m.bytes()), sample.inputs);
    ASSERT_EQ(device.code, CDL_OK) << device.text;
    EXPECT_THAT(valuesOf<float>(after[sample.out]), ElementsAre(-4, -5, -10, -11)) << path;
  }
}

TEST(Doors, NestedLoopsRunOuterFirst) {
  // out[i][j] = x[j][i]: 2 x 3 copies of one element.
  ImageBuilder m;
  const uint32_t x = m.buffer(CDL_ROLE_INPUT, 24), out = m.buffer(CDL_ROLE_OUTPUT, 24);
  cdl_view_t from = ImageBuilder::view(x, CDL_I32, {}), to = ImageBuilder::view(out, CDL_I32, {});
  from.iv_strides[0] = 1, from.iv_strides[1] = 2;
  to.iv_strides[0] = 3, to.iv_strides[1] = 1;
  m.instr(CDL_KIND_COPY, 0, {from, to}).loop = 2;
  m.loops.push_back({1, 1, 0, 0, 2});
  m.loops.push_back({1, 1, 1, 0, 3});
  for (const char* path : {PLUGIN_template, PLUGIN_door2}) {
    Device device(load(path));
    Buffers after = device.run(Block(m.bytes()), {{x, bytesOf<int32_t>({1, 2, 3, 4, 5, 6})}});
    ASSERT_EQ(device.code, CDL_OK) << device.text;
    EXPECT_THAT(valuesOf<int32_t>(after[out]), ElementsAre(1, 3, 5, 2, 4, 6)) << path;
  }
}

// What profile_end says of the executions since profile_begin, with room for `capacity` records.
std::vector<cdl_profile_record_t> endProfile(Device& device, uint32_t capacity, uint32_t& count) {
  std::vector<cdl_profile_record_t> records(capacity + 1);
  device.code =
      device.table.profile_end(device.queue, records.data(), capacity, &count, device.error());
  EXPECT_EQ(records.back().end_ns, 0u) << "written beyond the capacity";
  records.pop_back();
  return records;
}

TEST(Profile, HasARecordOfEachInstructionThatRan) {
  for (const char* path : {PLUGIN_door2, PLUGIN_template}) {
    Device device(load(path));
    Sample sample;
    const Block block(sample.m.bytes());
    uint32_t count = 0;
    ASSERT_EQ(device.table.profile_begin(device.queue, device.error()), CDL_OK);
    device.run(block, sample.inputs);
    const auto records = endProfile(device, 8, count);
    ASSERT_EQ(device.code, CDL_OK) << device.text;
    ASSERT_EQ(count, 3u) << path; // the loop runs twice
    for (uint32_t i = 0; i < count; ++i) {
      EXPECT_EQ(records[i].instr, i == 0 ? 1u : 2u);
      EXPECT_LE(records[i].start_ns, records[i].end_ns);
      EXPECT_GE(records[i].start_ns, i == 0 ? 1 : records[i - 1].end_ns);
    }
  }
}

TEST(Profile, GivesWhatThereIsRoomForAndEnds) {
  Device device(load(PLUGIN_door2));
  Sample sample;
  const Block block(sample.m.bytes());
  uint32_t count = 0;
  ASSERT_EQ(device.table.profile_begin(device.queue, device.error()), CDL_OK);
  device.run(block, sample.inputs);
  const auto records = endProfile(device, 2, count);
  EXPECT_EQ(count, 3u);
  EXPECT_EQ(records[1].instr, 2u);
  device.run(block, sample.inputs); // keeps none
  endProfile(device, 2, count);
  EXPECT_EQ(device.code, CDL_INVALID_ARGUMENT);
  EXPECT_STREQ(device.text, "no profile was begun on this queue");
}

// Every required row of the claimed profiles is there once, NATIVE or EMULATED, and nothing else is
// claimed.
void expectRows(const char* path, uint8_t support) {
  Device device(load(path));
  ASSERT_EQ(device.code, CDL_OK) << device.text;
  const cdl_capabilities_t* c = device.table.device_capabilities(device.device);
  EXPECT_EQ(c->profiles, 1u << CDL_PROFILE_BASE | 1u << CDL_PROFILE_FP32 | 1u << CDL_PROFILE_INT8);
  EXPECT_EQ(c->row_stride, sizeof(cdl_row_t));
  uint32_t required = 0;
  const auto expectRow = [&](unsigned profile, const cdl_row_t& wanted) {
    if (!(c->profiles >> profile & 1)) return;
    uint32_t found = 0;
    for (uint32_t i = 0; i < c->row_count; ++i) {
      const cdl_row_t& row = c->rows[i];
      if (row.kind != wanted.kind || row.fn != wanted.fn ||
          std::memcmp(row.elems, wanted.elems, sizeof row.elems))
        continue;
      ++found;
      EXPECT_EQ(row.support, support);
      EXPECT_GE(row.operand_class, wanted.operand_class);
      EXPECT_EQ(row.elem_count, wanted.elem_count);
    }
    EXPECT_EQ(found, 1u) << "kind " << wanted.kind << " fn " << wanted.fn;
    ++required;
  };
#define CDL_X(profile, kind, fn, elems, e0, e1, e2, e3, e4, cls, ulp)                              \
  expectRow(profile,                                                                               \
            cdl_row_t{kind, fn, elems, 0, cls, 0, {e0, e1, e2, e3, e4, 0, 0, 0}, {}, 0, 0, 0});
  CDL_REQUIRED_ROWS(CDL_X)
#undef CDL_X
  EXPECT_GT(required, 100u);
  EXPECT_LE(c->row_count, required);
}

TEST(Claims, TemplateHasEveryRequiredRowNative) { expectRows(PLUGIN_template, CDL_SUPPORT_NATIVE); }
TEST(Claims, MemoryOnlyHasEveryRequiredRowEmulated) {
  expectRows(PLUGIN_template_memory, CDL_SUPPORT_EMULATED);
}
TEST(Claims, ProgramDoorHasEveryRequiredRowNative) { expectRows(PLUGIN_door2, CDL_SUPPORT_NATIVE); }

TEST(Claims, WhatIsNotOverriddenIsEmulated) {
  Device device(load(PLUGIN_faulty));
  const cdl_capabilities_t* c = device.table.device_capabilities(device.device);
  for (uint32_t i = 0; i < c->row_count; ++i) {
    const uint16_t kind = c->rows[i].kind;
    const bool overridden =
        kind == CDL_KIND_FILL || kind == CDL_KIND_COPY || kind == CDL_KIND_MATMUL;
    EXPECT_EQ(c->rows[i].support, overridden ? CDL_SUPPORT_NATIVE : CDL_SUPPORT_EMULATED) << kind;
  }
}

TEST(Claims, ALimitedKindIsEmulatedBeyondItsLimit) {
  cdl::Capabilities capabilities;
  capabilities.claim(cdl::Profile::FP32);
  capabilities.limit(cdl::Kind::MatMul, {cdl::rank() <= 3, cdl::dim(-1, 2) % 16 == 0,
                                         cdl::in(cdl::attr(CDL_ATTR_ACCUMULATE), {0, 1})});
  capabilities.support(cdl::Kind::Gather, cdl::Support::ABSENT);
  capabilities.epilogue(cdl::Kind::MatMul, {cdl::Kind::Binary});
  capabilities.native(cdl::Kind::Conv2d, 0, {CDL_F32, CDL_F32, CDL_F32});
  const cdl_capabilities_t* c = capabilities.build(uint64_t(1) << CDL_KIND_MATMUL);
  std::vector<uint8_t> supports;
  bool conv = false;
  for (uint32_t i = 0; i < c->row_count; ++i) {
    const cdl_row_t& row = c->rows[i];
    EXPECT_NE(row.kind, CDL_KIND_GATHER);
    conv |= row.kind == CDL_KIND_CONV2D;
    if (row.kind != CDL_KIND_MATMUL) continue;
    supports.push_back(row.support);
    if (row.support != CDL_SUPPORT_NATIVE) continue;
    EXPECT_EQ(row.steps_mask, uint64_t(1) << CDL_KIND_BINARY);
    ASSERT_EQ(row.atoms, 3u);
    const cdl_atom_t* atoms = c->atoms + row.first_atom;
    EXPECT_EQ(atoms[0].subject, CDL_ATOM_RANK);
    EXPECT_EQ(atoms[0].relation, CDL_REL_LE);
    EXPECT_EQ(atoms[0].a, 3);
    EXPECT_EQ(atoms[1].subject, CDL_ATOM_DIM);
    EXPECT_EQ(atoms[1].relation, CDL_REL_MOD);
    EXPECT_EQ(atoms[1].dim, 255);
    EXPECT_EQ(atoms[1].operand, 2);
    EXPECT_EQ(atoms[1].a, 16);
    EXPECT_EQ(atoms[1].b, 0);
    EXPECT_EQ(atoms[2].relation, CDL_REL_IN);
    EXPECT_EQ(atoms[2].set_count, 2);
    EXPECT_EQ(atoms[2].set[1], 1);
  }
  EXPECT_TRUE(conv);
  // What the host runs otherwise the function may take in part.
  cdl::Capabilities part;
  part.claim(cdl::Profile::FP32);
  part.support(cdl::Kind::Binary, cdl::Support::EMULATED);
  part.native(cdl::Kind::Binary, CDL_BINARY_ADD, {CDL_F32, CDL_F32, CDL_F32});
  const cdl_capabilities_t* p = part.build(uint64_t(1) << CDL_KIND_BINARY);
  EXPECT_EQ(std::count_if(p->rows, p->rows + p->row_count,
                          [](const cdl_row_t& row) { return row.support == CDL_SUPPORT_NATIVE; }),
            1);
  EXPECT_THAT(supports, ElementsAre(CDL_SUPPORT_NATIVE, CDL_SUPPORT_EMULATED));
}

// Overrides are found however they are declared.
struct Public : cdl::PrimitiveBackend {
  using PrimitiveBackend::PrimitiveBackend;
  cdl::Status matMul(const cdl::MatMul&) override { return cdl::ok(); }
};
struct Inherits : Public {
  using Public::Public;
};
class Hidden : public cdl::PrimitiveBackend {
  cdl::Status unary(const cdl::Unary&) override { return cdl::ok(); }
  cdl::Status copy(const cdl::Copy&) override { return cdl::ok(); }
  void copy(int) {}
};
TEST(Claims, OverridesAreSeen) {
  EXPECT_EQ(cdl::detail::overriddenKinds<cdl::PrimitiveBackend>(), 0u);
  EXPECT_EQ(cdl::detail::overriddenKinds<Public>(), uint64_t(1) << CDL_KIND_MATMUL);
  EXPECT_EQ(cdl::detail::overriddenKinds<Inherits>(), uint64_t(1) << CDL_KIND_MATMUL);
  EXPECT_EQ(cdl::detail::overriddenKinds<Hidden>(),
            uint64_t(1) << CDL_KIND_UNARY | uint64_t(1) << CDL_KIND_COPY);
}

// What a door that is given this image answers: run is asked for instruction 1.
cdl_code_t answerTo(Device& d, const void* image) {
  const int64_t loops[CDL_MAX_LOOP_NESTING] = {};
  std::vector<cdl_binding_t> bindings(16);
  const cdl_bindings_t bound = {CDL_HEADER(cdl_bindings_t), 16, 0, bindings.data()};
  const auto* data = static_cast<const cdl_image_t*>(image);
  if (d.table.run) return d.table.run(d.queue, data, 1, 1, loops, &bound, d.error());
  cdl_executable_t* executable = nullptr;
  const std::vector<const void*> constants(16);
  d.refusal = {CDL_HEADER(cdl_refusal_t), 0, 0};
  const cdl_code_t code =
      d.table.compile(d.device, data, constants.data(), &executable, &d.refusal, d.error());
  if (executable) d.table.executable_destroy(d.device, executable);
  return code;
}

TEST(Images, ThatADoorCannotReadAreRefusedByIt) {
  for (const char* path : {PLUGIN_template, PLUGIN_door2}) {
    Device d(load(path));
    ASSERT_EQ(d.code, CDL_OK) << d.text;
    Sample sample;
    EXPECT_EQ(answerTo(d, nullptr), CDL_INVALID_ARGUMENT);
    std::vector<uint8_t> bytes = sample.m.bytes(), shifted(4);
    shifted.insert(shifted.end(), bytes.begin(), bytes.end());
    const Block misaligned(shifted);
    EXPECT_EQ(answerTo(d, static_cast<const uint8_t*>(misaligned.data()) + 4),
              CDL_INVALID_ARGUMENT);
    bytes[4] ^= 9; // the major version
    const Block newer(bytes);
    EXPECT_EQ(answerTo(d, newer.image()), CDL_INCOMPATIBLE) << d.text;
    bytes[0] ^= 1; // the magic
    const Block other(bytes);
    EXPECT_EQ(answerTo(d, other.image()), CDL_BAD_MODEL) << d.text;
    Sample unknown;
    unknown.m.instrs[1].kind = 62;
    EXPECT_EQ(answerTo(d, Block(unknown.m.bytes()).image()), CDL_INCOMPATIBLE) << d.text;
    EXPECT_THAT(d.text, HasSubstr("kind 62 is unknown"));
  }
}

TEST(Images, WithALaterInstructionOfUnknownKindRunBehindDoorOne) {
  Device d(load(PLUGIN_template));
  Sample sample;
  sample.m.instrs[2].kind = 62; // the host runs that
  EXPECT_EQ(answerTo(d, Block(sample.m.bytes()).image()), CDL_INVALID_ARGUMENT);
  EXPECT_THAT(d.text, HasSubstr("binding of buffer"))
      << "the first instruction is what is looked at";
}

TEST(Images, ThatAreMalformedAreNotCompiled) {
  Device d(load(PLUGIN_door2));
  Sample sample;
  sample.m.views[1].buffer = 77;
  EXPECT_EQ(answerTo(d, Block(sample.m.bytes()).image()), CDL_BAD_MODEL);
  EXPECT_THAT(d.text, HasSubstr("image: instrs 1: input 0"));
}

TEST(Devices, BeyondTheCountAreNotFound) {
  Device d(load(PLUGIN_template));
  const cdl_host_t host = currentHost();
  cdl_device_t* device = nullptr;
  EXPECT_EQ(d.table.device_open(&host, d.table.device_count, nullptr, 0, &device, d.error()),
            CDL_NOT_FOUND);
  EXPECT_STREQ(d.text, "device 1 of 1");
  EXPECT_EQ(device, nullptr);
}

TEST(Options, AreNamedWhenUnknown) {
  Device device(load(PLUGIN_template), {{"speed", "fast"}});
  EXPECT_EQ(device.code, CDL_INVALID_ARGUMENT);
  EXPECT_STREQ(device.text, "template has no option 'speed'");
}

TEST(Refusal, NamesInstructionAndReason) {
  Device device(load(PLUGIN_door2), {{"refuse", "unary"}});
  ASSERT_EQ(device.code, CDL_OK) << device.text;
  Sample sample;
  EXPECT_TRUE(device.run(Block(sample.m.bytes()), sample.inputs).empty());
  EXPECT_EQ(device.code, CDL_REFUSED);
  EXPECT_EQ(device.refusal.instr, 2u);
  EXPECT_EQ(device.refusal.reason, CDL_REASON_VENDOR);
  EXPECT_STREQ(device.text, "unary is refused by the option refuse");
  EXPECT_EQ(Device(load(PLUGIN_door2), {{"refuse", "warp"}}).code, CDL_INVALID_ARGUMENT);
}

struct Fault {
  const char* option;
  cdl_code_t code;
  const char* says;
  int32_t vendorCode;
};
TEST(Faults, ComeBackAsCodesNotAsExceptions) {
  const Fault faults[] = {
      {"none", CDL_OK, "", 0},
      {"run", CDL_INTERNAL, "matmul at instruction 1 (''): the kernel failed", 42},
      {"throw", CDL_INTERNAL, "matmul at instruction 1 (''): the kernel threw", 0},
      {"int", CDL_INTERNAL, "matmul at instruction 1 (''): an exception of unknown type", 0},
      {"memory", CDL_OUT_OF_MEMORY, "matmul at instruction 1 (''): out of memory", 0},
  };
  for (const Fault& fault : faults) {
    Device device(load(PLUGIN_faulty), {{"fault", fault.option}});
    ASSERT_EQ(device.code, CDL_OK) << device.text;
    Sample sample;
    sample.m.instrs.pop_back();
    sample.m.loops.pop_back();
    (void)device.run(Block(sample.m.bytes()), sample.inputs);
    EXPECT_EQ(device.code, fault.code) << fault.option;
    EXPECT_STREQ(device.text, fault.says);
    EXPECT_EQ(device.vendorCode(), fault.vendorCode);
  }
  Device device(load(PLUGIN_faulty), {{"fault", "open"}});
  EXPECT_EQ(device.code, CDL_DEVICE_LOST);
  EXPECT_STREQ(device.text, "the device does not answer");
}

TEST(Faults, AKindWithoutFunctionIsUnsupported) {
  Device device(load(PLUGIN_faulty));
  Sample sample;
  (void)device.run(Block(sample.m.bytes()), sample.inputs);
  EXPECT_EQ(device.code, CDL_UNSUPPORTED);
  EXPECT_STREQ(device.text, "unary at instruction 2 (''): unary has no function in this backend");
}

TEST(Memory, IsAlignedBoundedAndMapped) {
  Device d(load(PLUGIN_template));
  for (uint64_t alignment = 1; alignment <= 4096; alignment *= 2) {
    cdl_memory_t* memory = nullptr;
    ASSERT_EQ(d.table.memory_create(d.device, 0, 100, alignment, &memory, d.error()), CDL_OK)
        << d.text;
    void* at = nullptr;
    ASSERT_EQ(d.table.memory_map(d.device, memory, 0, 100, &at, d.error()), CDL_OK) << d.text;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(at) % alignment, 0u);
    std::memset(at, 7, 100);
    EXPECT_EQ(d.table.memory_unmap(d.device, memory, at, d.error()), CDL_OK);
    uint8_t byte = 0;
    EXPECT_EQ(d.table.queue_read(d.queue, memory, 99, &byte, 1, d.error()), CDL_OK);
    EXPECT_EQ(byte, 7);
    EXPECT_EQ(d.table.queue_read(d.queue, memory, 100, &byte, 1, d.error()), CDL_INVALID_ARGUMENT);
    EXPECT_STREQ(d.text, "1 bytes at offset 100 leave a memory of 100 bytes");
    EXPECT_EQ(d.table.queue_write(d.queue, memory, UINT64_MAX, &byte, 2, d.error()),
              CDL_INVALID_ARGUMENT);
    EXPECT_EQ(d.table.queue_copy(d.queue, memory, 60, memory, 0, 60, d.error()),
              CDL_INVALID_ARGUMENT);
    EXPECT_EQ(d.table.memory_map(d.device, memory, 90, 11, &at, d.error()), CDL_INVALID_ARGUMENT);
    d.table.memory_destroy(d.device, memory);
  }
  cdl_memory_t* memory = nullptr;
  EXPECT_EQ(d.table.memory_create(d.device, 0, 8, 3, &memory, d.error()), CDL_INVALID_ARGUMENT);
  EXPECT_EQ(d.table.memory_create(d.device, 1, 8, 8, &memory, d.error()), CDL_INVALID_ARGUMENT);
  EXPECT_STREQ(d.text, "space 1 of 1");
  EXPECT_EQ(d.table.memory_create(d.device, 0, UINT64_MAX - 8, 64, &memory, d.error()),
            CDL_OUT_OF_MEMORY);
  EXPECT_EQ(d.table.memory_create(d.device, 0, uint64_t(1) << 62, 64, &memory, d.error()),
            CDL_OUT_OF_MEMORY);
}

/// One memory stands for bytes of the host, then for others.
TEST(Memory, OfTheHostIsImported) {
  for (const char* path : {PLUGIN_template, PLUGIN_door2}) {
    Device d(load(path));
    ASSERT_NE(d.table.memory_import, nullptr);
    alignas(16) char first[32] = "first bytes", second[64] = "other bytes";
    cdl_memory_t* memory = nullptr;
    ASSERT_EQ(d.table.memory_import(d.device, 0, first, sizeof first, &memory, d.error()), CDL_OK)
        << d.text;
    EXPECT_EQ(d.table.queue_write(d.queue, memory, 6, "place", 5, d.error()), CDL_OK);
    EXPECT_STREQ(first, "first place");
    char read[65] = "";
    EXPECT_EQ(d.table.queue_read(d.queue, memory, 0, read, 33, d.error()), CDL_INVALID_ARGUMENT);
    cdl_memory_t* same = memory;
    ASSERT_EQ(d.table.memory_import(d.device, 0, second, sizeof second, &memory, d.error()), CDL_OK)
        << d.text;
    EXPECT_EQ(memory, same);
    EXPECT_EQ(d.table.queue_read(d.queue, memory, 0, read, 64, d.error()), CDL_OK);
    EXPECT_STREQ(read, "other bytes");
    for (const uint64_t bytes : {0, 8}) {
      EXPECT_EQ(d.table.memory_import(d.device, bytes ? 7 : 0, first, bytes, &memory, d.error()),
                CDL_INVALID_ARGUMENT);
      EXPECT_STREQ(d.text, bytes ? "space 7 of 1" : "an import of 0 bytes");
    }
    EXPECT_EQ(d.table.memory_import(d.device, 0, nullptr, 8, &memory, d.error()),
              CDL_INVALID_ARGUMENT);
    EXPECT_EQ(d.table.queue_write(d.queue, memory, 0, "still", 5, d.error()), CDL_OK);
    EXPECT_STREQ(second, "still bytes");
    d.table.memory_destroy(d.device, memory);
    EXPECT_STREQ(first, "first place");
  }
}

struct HostMemory : cdl::PrimitiveBackend {
  HostMemory() : PrimitiveBackend("host_memory", "1") {}
};
struct OwnMemory : HostMemory {
  cdl::Status memoryCreate(uint64_t alignment, cdl::Memory& memory) override {
    return PrimitiveBackend::memoryCreate(alignment, memory);
  }
};
struct OwnWrites : HostMemory {
private:
  cdl::Status memoryWrite(cdl::Memory&, uint64_t, const void*, uint64_t) override {
    return cdl::ok();
  }
};
struct OwnImport : OwnMemory {
  cdl::Status memoryImport(void* data, uint64_t, cdl::Memory& memory) override {
    memory.data = data;
    return cdl::ok();
  }
};

TEST(Memory, IsImportedWhereItIsTheHostsOrTheBackendSaysHow) {
  EXPECT_TRUE(cdl::detail::Entry<HostMemory>::kImports);
  EXPECT_FALSE(cdl::detail::Entry<OwnMemory>::kImports);
  EXPECT_FALSE(cdl::detail::Entry<OwnWrites>::kImports);
  EXPECT_TRUE(cdl::detail::Entry<OwnImport>::kImports);
}

TEST(Queue, WaitsForItsTimelineFromAnyThread) {
  Device d(load(PLUGIN_template));
  EXPECT_EQ(d.table.queue_wait(d.queue, 0, 0, d.error()), CDL_OK);
  EXPECT_EQ(d.table.queue_wait(d.queue, 1, 1000, d.error()), CDL_TIMEOUT);
  EXPECT_STREQ(d.text, "the timeline stands at 0, not yet at 1");
  cdl_code_t waited = CDL_INTERNAL;
  std::thread waiter([&] { waited = d.table.queue_wait(d.queue, 5, UINT64_MAX, nullptr); });
  EXPECT_EQ(d.table.queue_signal(d.queue, 5, d.error()), CDL_OK);
  waiter.join();
  EXPECT_EQ(waited, CDL_OK);
  EXPECT_EQ(d.table.queue_wait(d.queue, 4, 0, d.error()), CDL_OK);
}

TEST(Bindings, TooFewOrTooSmallAreErrors) {
  Device d(load(PLUGIN_template));
  Sample sample;
  const Block block(sample.m.bytes());
  const int64_t loops[CDL_MAX_LOOP_NESTING] = {};
  std::vector<cdl_binding_t> bindings(block.image()->buffers.count);
  cdl_bindings_t bound = {CDL_HEADER(cdl_bindings_t), 2, 0, bindings.data()};
  EXPECT_EQ(d.table.run(d.queue, block.image(), 1, 1, loops, &bound, d.error()),
            CDL_INVALID_ARGUMENT);
  EXPECT_STREQ(d.text, "bindings: 2 for 5 buffers");
  bound.count = static_cast<uint32_t>(bindings.size());
  EXPECT_EQ(d.table.run(d.queue, block.image(), 1, 1, loops, &bound, d.error()),
            CDL_INVALID_ARGUMENT);
  EXPECT_THAT(d.text, HasSubstr("binding of buffer 1"));
  cdl_memory_t* memory = nullptr;
  ASSERT_EQ(d.table.memory_create(d.device, 0, 64, 64, &memory, d.error()), CDL_OK);
  for (size_t i = 1; i < bindings.size(); ++i) bindings[i] = {memory, 48, 24};
  EXPECT_NE(d.table.run(d.queue, block.image(), 1, 1, loops, &bound, d.error()), CDL_OK);
  EXPECT_THAT(d.text, HasSubstr("24 bytes at 48 of a memory of 64, need 24"));
  for (size_t i = 1; i < bindings.size(); ++i) bindings[i] = {memory, 8, 24};
  EXPECT_EQ(d.table.run(d.queue, block.image(), 1, 1, loops, &bound, d.error()),
            CDL_INVALID_ARGUMENT);
  EXPECT_THAT(d.text, HasSubstr("binding of buffer 1: 24 bytes at 8, which is not aligned to 64"));
  EXPECT_EQ(d.table.run(d.queue, block.image(), 2, 2, loops, &bound, d.error()),
            CDL_INVALID_ARGUMENT);
  d.table.memory_destroy(d.device, memory);
}

} // namespace
} // namespace candela::abi
