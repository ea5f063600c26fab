// The NPU as a module: registers as the manual says, resets, and memories that wait, refuse, or
// know no time.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "simulator/systemc/npu.h"
#include "tests/unit/simulator/tiled_layer.h"

namespace candela::npu {
namespace {

using sc_core::sc_time;

/// Memory in the NPU's way: a fixed delay, a wait within the transport, an address that it refuses.
class Memory : public sc_core::sc_module {
public:
  tlm_utils::simple_target_socket<Memory, 64> socket;
  sc_time delay, blocks;
  uint64_t refused = UINT64_MAX;
  uint64_t accesses = 0, drains = 0;
  std::vector<std::byte> bytes = std::vector<std::byte>(1 << 20);

  explicit Memory(sc_core::sc_module_name name) : sc_module(name), socket("socket") {
    socket.register_b_transport(this, &Memory::transport);
    socket.register_transport_dbg(this, &Memory::debug);
  }

private:
  void transport(tlm::tlm_generic_payload& payload, sc_time& after) {
    if (!payload.is_read() && !payload.is_write()) {
      ++drains;
      return payload.set_response_status(tlm::TLM_OK_RESPONSE);
    }
    ++accesses;
    after += delay;
    if (blocks != sc_core::SC_ZERO_TIME) wait(blocks);
    const uint64_t at = payload.get_address(), count = payload.get_data_length();
    if (refused >= at && refused < at + count)
      return payload.set_response_status(tlm::TLM_GENERIC_ERROR_RESPONSE);
    payload.set_response_status(debug(payload) ? tlm::TLM_OK_RESPONSE
                                               : tlm::TLM_ADDRESS_ERROR_RESPONSE);
  }
  unsigned debug(tlm::tlm_generic_payload& payload) {
    const uint64_t at = payload.get_address(), count = payload.get_data_length();
    if (at + count > bytes.size()) return 0;
    if (payload.is_read())
      std::memcpy(payload.get_data_ptr(), bytes.data() + at, count);
    else
      std::memcpy(bytes.data() + at, payload.get_data_ptr(), count);
    return payload.get_data_length();
  }
};

/// One for the process: SystemC elaborates once.
class System : public sc_core::sc_module {
public:
  Npu npu{"npu", *findConfiguration("gem16")};
  Memory memory{"memory"};
  sc_core::sc_signal<bool> done{"done"};
  tlm_utils::simple_initiator_socket<System, 32> driver{"driver"};

  int edges = 0; ///< how often `done` rose

  explicit System(sc_core::sc_module_name name) : sc_module(name) {
    SC_HAS_PROCESS(System);
    SC_METHOD(count);
    sensitive << done;
    dont_initialize();
    npu.memory.bind(memory.socket);
    npu.done(done);
    driver.bind(npu.registers);
  }
  void count() { edges += done.read(); }
  tlm::tlm_response_status access(bool isWrite, uint64_t address, void* data, unsigned bytes) {
    tlm::tlm_generic_payload payload;
    sc_time delay;
    payload.set_command(isWrite ? tlm::TLM_WRITE_COMMAND : tlm::TLM_READ_COMMAND);
    payload.set_address(address);
    payload.set_data_ptr(static_cast<unsigned char*>(data));
    payload.set_data_length(bytes);
    payload.set_streaming_width(bytes);
    driver->b_transport(payload, delay);
    return payload.get_response_status();
  }
  uint32_t read(uint32_t offset) {
    uint32_t value = 0;
    EXPECT_EQ(access(false, offset, &value, sizeof value), tlm::TLM_OK_RESPONSE) << offset;
    return value;
  }
  uint64_t counter(Counter which) {
    const uint32_t at = kPmuOffset + 8 * static_cast<uint32_t>(which);
    return read(at) | uint64_t{read(at + 4)} << 32;
  }
  void write(uint32_t offset, uint32_t value) {
    EXPECT_EQ(access(true, offset, &value, sizeof value), tlm::TLM_OK_RESPONSE) << offset;
  }
};
System& theSystem() {
  static System& system = *new System("system");
  return system;
}

class Platform : public testing::Test {
protected:
  System& system = theSystem();
  Binary binary = TiledLayer{128, 32, 128, 64, 16}.program(*findConfiguration("gem16"));
  Placement placement = placementOf(binary);

  void SetUp() override {
    system.npu.reset(*findConfiguration("gem16"), {});
    system.memory.delay = system.memory.blocks = sc_core::SC_ZERO_TIME;
    system.memory.refused = UINT64_MAX;
    system.memory.accesses = system.memory.drains = 0;
    load();
  }
  void load() {
    std::fill(system.memory.bytes.begin(), system.memory.bytes.end(), std::byte{3});
    for (uint32_t i = 0; i < binary.regions.size(); ++i) {
      const Region& region = binary.regions[i];
      if (region.kind == RegionClass::kConstants)
        std::memcpy(system.memory.bytes.data() + placement.bases[i], binary.constants.data(),
                    region.bytes);
      system.write(registerOffset("REGION_BASE_LO") + 4 * i,
                   static_cast<uint32_t>(placement.bases[i]));
      system.write(registerOffset("REGION_BYTES") + 4 * i, static_cast<uint32_t>(region.bytes));
      system.write(registerOffset("REGION_FLAGS") + 4 * i, static_cast<uint32_t>(region.kind) << 1);
    }
    std::memcpy(system.memory.bytes.data() + placement.program, binary.code.data(),
                binary.code.size() * sizeof(Word));
    system.write(registerOffset("PROGRAM_LO"), static_cast<uint32_t>(placement.program));
    system.write(registerOffset("PROGRAM_WORDS"), static_cast<uint32_t>(binary.code.size()));
  }
  void start() { system.write(registerOffset("CONTROL"), kStart); }
  void finish() { sc_core::sc_start(); }
  uint64_t run() {
    start();
    finish();
    EXPECT_EQ(system.read(registerOffset("STATUS")), kHalted)
        << (system.npu.report() ? system.npu.report()->fault->message
                                : system.npu.report().message());
    return system.counter(Counter::kCycles);
  }
  std::vector<std::byte> output() {
    const auto from = system.memory.bytes.begin() + static_cast<std::ptrdiff_t>(placement.bases[2]);
    return {from, from + static_cast<std::ptrdiff_t>(binary.regions[2].bytes)};
  }
  std::vector<std::byte> wanted() {
    std::vector<std::byte> in(binary.regions[1].bytes, std::byte{3}), out(binary.regions[2].bytes);
    const auto device = makeFunctionalDevice(*findConfiguration("gem16"));
    EXPECT_FALSE(device->load(binary));
    EXPECT_FALSE(device->bind(1, in));
    EXPECT_FALSE(device->bind(2, out));
    EXPECT_FALSE(device->run()->fault);
    return out;
  }
};

TEST_F(Platform, SaysWhoItIs) {
  EXPECT_EQ(system.read(registerOffset("ID")), 0x43444c4eu);
  EXPECT_EQ(system.read(registerOffset("SPEC_HASH_LO")), static_cast<uint32_t>(kSpecHash));
  EXPECT_EQ(system.read(registerOffset("SPEC_HASH_HI")), static_cast<uint32_t>(kSpecHash >> 32));
  EXPECT_EQ(system.read(registerOffset("CONFIG_HASH_LO")),
            static_cast<uint32_t>(binary.configurationHash));
  EXPECT_EQ(system.read(registerOffset("PMU_CONTROL")), 1u);
  EXPECT_EQ(system.read(registerOffset("STATUS")), 0u);
  system.write(registerOffset("ID"), 7); // read only
  EXPECT_EQ(system.read(registerOffset("ID")), 0x43444c4eu);
  system.write(registerOffset("TAG"), 7);
  EXPECT_EQ(system.read(registerOffset("TAG")), 7u);
}

TEST_F(Platform, HasNoExactFidelity) {
  TimedOptions exact;
  exact.fidelity = Fidelity::kExact;
  EXPECT_THROW(system.npu.reset(*findConfiguration("tiny"), exact), sc_core::sc_report);
  EXPECT_EQ(system.npu.configuration().name, "gem16") << "nothing has changed";
  run();
  EXPECT_EQ(output(), wanted());
}

TEST_F(Platform, AnswersNoOtherAccess) {
  uint32_t words[2] = {};
  EXPECT_EQ(system.access(false, 2, words, 4), tlm::TLM_ADDRESS_ERROR_RESPONSE);
  EXPECT_EQ(system.access(false, 0, words, 3), tlm::TLM_ADDRESS_ERROR_RESPONSE);
  EXPECT_EQ(system.access(false, 0x1000, words, 4), tlm::TLM_ADDRESS_ERROR_RESPONSE);
  EXPECT_EQ(system.access(false, 0xffc, words, 8), tlm::TLM_ADDRESS_ERROR_RESPONSE);
  EXPECT_EQ(system.access(true, 0x050, words, 4), tlm::TLM_ADDRESS_ERROR_RESPONSE)
      << "between two registers";
  EXPECT_EQ(system.access(false, 0, words, 8), tlm::TLM_OK_RESPONSE) << "two at once";
  EXPECT_EQ(words[0], 0x43444c4eu);
  EXPECT_EQ(words[1], static_cast<uint32_t>(kSpecHash));
}

TEST_F(Platform, RunsAgainAndAgain) {
  const uint64_t first = run();
  EXPECT_EQ(output(), wanted());
  EXPECT_TRUE(system.done.read());
  EXPECT_EQ(system.memory.drains, 1u);
  load();
  const int edges = system.edges;
  EXPECT_EQ(run(), first);
  EXPECT_EQ(output(), wanted());
  EXPECT_EQ(system.edges, edges + 1);
  EXPECT_EQ(system.counter(Counter::kMacs), 128u * 32 * 128);
}

TEST_F(Platform, AFartherMemoryIsSlower) {
  const uint64_t near = run();
  system.memory.delay = sc_time(200, sc_core::SC_NS);
  const uint64_t far = run();
  EXPECT_GT(far, near + 400);
  EXPECT_EQ(output(), wanted());
}

TEST_F(Platform, AMemoryThatWaitsHoldsUpAllAndChangesNothing) {
  const uint64_t near = run(), accesses = system.memory.accesses;
  // 50 cycles for each access, one after the other
  system.memory.blocks = sc_time(50, sc_core::SC_NS);
  EXPECT_GE(run(), std::max(near, 50 * accesses));
  EXPECT_EQ(output(), wanted());
}

TEST_F(Platform, ARefusedBurstIsAFault) {
  system.memory.refused = placement.bases[1] + 5;
  start();
  finish();
  EXPECT_EQ(system.read(registerOffset("STATUS")), kFaulted);
  EXPECT_EQ(system.read(registerOffset("FAULT_CODE")), 1 + static_cast<uint32_t>(FaultKind::kBus));
  ASSERT_TRUE(system.npu.report() && system.npu.report()->fault);
  const Fault& fault = *system.npu.report()->fault;
  EXPECT_EQ(system.read(registerOffset("FAULT_PC")), fault.instruction);
  const uint64_t cycles = system.counter(Counter::kCycles);
  sc_core::sc_start(sc_time(1, sc_core::SC_US));
  EXPECT_EQ(system.counter(Counter::kCycles), cycles) << "it stands";
  EXPECT_EQ(decode(binary.code[fault.instruction])->op, Op::kLoad);
  EXPECT_NE(fault.message.find("TLM_GENERIC_ERROR_RESPONSE"), std::string::npos) << fault.message;
  EXPECT_TRUE(system.done.read());
  system.memory.refused = placement.program + 3 * sizeof(Word); // a fetch
  start();
  finish();
  ASSERT_TRUE(system.npu.report() && system.npu.report()->fault);
  EXPECT_EQ(system.npu.report()->fault->instruction, 0u) << "the first word of its burst";
  EXPECT_NE(system.npu.report()->fault->message.find("read of 64 bytes"), std::string::npos);
  system.memory.refused = UINT64_MAX;
  run();
  EXPECT_EQ(output(), wanted());
}

TEST_F(Platform, AResetStopsARun) {
  start();
  sc_core::sc_start(sc_time(500, sc_core::SC_NS));
  EXPECT_EQ(system.read(registerOffset("STATUS")), kRunning);
  EXPECT_FALSE(system.done.read());
  EXPECT_NEAR(static_cast<double>(system.counter(Counter::kCycles)), 500, 1);
  system.write(registerOffset("CONTROL"), kReset);
  finish();
  EXPECT_EQ(system.read(registerOffset("STATUS")), 0u);
  EXPECT_EQ(system.read(registerOffset("PROGRAM_WORDS")), 0u);
  EXPECT_EQ(system.counter(Counter::kCycles), 0u);
  load();
  run();
  EXPECT_EQ(output(), wanted());
  // A start behind the reset, before the run has heard of it.
  start();
  sc_core::sc_start(sc_time(500, sc_core::SC_NS));
  system.write(registerOffset("CONTROL"), kReset);
  load();
  run();
  EXPECT_EQ(output(), wanted());
}

TEST_F(Platform, RegistersThatSayNonsenseAreAFault) {
  run();
  const auto fails = [&](const char* message) {
    const int edges = system.edges;
    start();
    finish();
    EXPECT_EQ(system.edges, edges + 1)
        << "it fails in no time, and a driver that waits for an edge goes on";
    EXPECT_EQ(system.counter(Counter::kMacs), 0u);
    EXPECT_EQ(system.read(registerOffset("SEMAPHORE")), 0u);
    EXPECT_EQ(system.read(registerOffset("STATUS")), kFaulted);
    EXPECT_FALSE(system.npu.report());
    EXPECT_NE(system.npu.report().message().find(message), std::string::npos)
        << system.npu.report().message();
    load();
  };
  system.write(registerOffset("REGION_FLAGS"), 7 << 1);
  fails("class 7");
  system.write(registerOffset("REGION_BASE_LO") + 4, static_cast<uint32_t>(placement.bases[0]) + 8);
  fails("meets region 0");
  system.write(registerOffset("PROGRAM_WORDS"), UINT32_MAX);
  fails("PROGRAM_WORDS");
  system.write(registerOffset("PROGRAM_HI"), 1);
  fails("the platform has no");
  system.write(registerOffset("PROGRAM_HI"), 0);
  system.write(registerOffset("PROGRAM_LO"), static_cast<uint32_t>(placement.bases[2]));
  fails("instruction 0");
  run();
}

TEST_F(Platform, CountsWhatThePmuIsToldTo) {
  system.write(registerOffset("PMU_CONTROL"), 0);
  start();
  sc_core::sc_start(sc_time(500, sc_core::SC_NS));
  EXPECT_EQ(system.read(registerOffset("STATUS")), kRunning);
  EXPECT_EQ(system.counter(Counter::kCycles), 0u);
  finish();
  EXPECT_EQ(system.counter(Counter::kMacs), 0u);
  EXPECT_EQ(system.counter(Counter::kCycles), 0u);
  EXPECT_EQ(output(), wanted());
}

} // namespace
} // namespace candela::npu
