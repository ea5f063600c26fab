// Every row that the plugin claims: random instructions on each tier, alone and on several threads,
// against the oracle.
#include <algorithm>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <set>
#include <thread>
#include <unistd.h>

#include "core/compiler/capabilities/rows.h"
#include "core/compiler/program/text.h"
#include "core/reference/interpreter/interp.h"
#include "core/support/float_bits.h"
#include "tests/abi/image_builder.h"
#include "tests/backends/cpu/cases.h"
#include "tests/backends/cpu/machine.h"

namespace candela::test {
namespace {

using Contents = Compiled::Contents;
using program::Program;
using program::Role;

/// CANDELA_TEST_SIZE=full: all tiers, more instructions of each row.
bool isFull() {
  const char* size = std::getenv("CANDELA_TEST_SIZE");
  return size && std::string(size) == "full";
}

bool isGiven(Role role) { return role == Role::input || role == Role::inout; }

/// What runs now, for the signal handler: a fault must not be silent.
std::string current;
void onFault(int signal) {
  const char text[] = "memory fault in the code of this Program:\n";
  const auto ignore = [](ssize_t) {};
  ignore(write(2, text, sizeof text - 1));
  ignore(write(2, current.data(), current.size()));
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

/// The Program with its inputs inside, so that the text alone repeats the failure. instr: only this
/// one (kNone: all).
std::string textOf(const Program& whole, const Contents& contents, uint32_t instr) {
  Program p = whole;
  if (instr != program::kNone) {
    program::Instr only = p.instrs[instr];
    std::vector<program::Loop> loops;
    for (uint32_t l = only.loop; l != program::kNone; l = p.loops[l].parent)
      loops.insert(loops.begin(), p.loops[l]);
    for (uint32_t l = 0; l < loops.size(); ++l)
      loops[l] = {0, 1, l ? l - 1 : program::kNone, loops[l].trip};
    only.loop = loops.empty() ? program::kNone : static_cast<uint32_t>(loops.size() - 1);
    p.instrs = {only};
    p.loops = loops;
  }
  Program out;
  out.instrs = p.instrs;
  out.loops = p.loops;
  std::map<uint32_t, uint32_t> moved;
  for (program::Instr& one : out.instrs)
    for (auto* views : {&one.inputs, &one.outputs})
      for (program::View& view : *views) {
        const uint32_t from = view.buffer;
        if (!moved.count(from)) {
          const program::Buffer& buffer = p.buffers[from];
          if (buffer.role == Role::constant) {
            moved[from] = out.addConstant(buffer.name, p.constants[buffer.constant].payload);
          } else if (buffer.role == Role::input) {
            const Tensor tensor{view.elem,
                                {static_cast<int64_t>(buffer.bytes) * 8 / elemBits(view.elem)},
                                Bytes::copyOf(contents[from].data(), contents[from].size())};
            moved[from] = out.addConstant(buffer.name, Payload::data(tensor));
          } else {
            moved[from] = out.addBuffer(buffer);
          }
        }
        view.buffer = moved[from];
      }
  auto text = program::print(out, {std::string(testing::TempDir())});
  return text ? *text : text.status().message();
}

std::vector<Tensor> tensorsOf(const Program& p, const Contents& contents) {
  std::vector<Tensor> tensors;
  for (size_t b = 0; b < p.buffers.size(); ++b)
    if (isGiven(p.buffers[b].role))
      tensors.push_back({Elem::u8_,
                         {static_cast<int64_t>(contents[b].size())},
                         Bytes::copyOf(contents[b].data(), contents[b].size())});
  return tensors;
}

/// The contents of the inout buffers afterwards, by buffer.
Result<Contents> oracle(const Program& p, const Contents& contents) {
  const std::vector<Tensor> given = tensorsOf(p, contents);
  CDL_ASSIGN(const std::vector<Tensor> results, reference::interpret(p, given));
  Contents after(p.buffers.size());
  size_t next = 0;
  for (size_t b = 0; b < p.buffers.size(); ++b)
    if (p.buffers[b].role == Role::inout) {
      const Bytes& bytes = results[next++].bytes;
      const auto* data = reinterpret_cast<const char*>(bytes.data());
      after[b].assign(data, data + bytes.size());
    }
  return after;
}

void makeAbsolute(Elem elem, char* bytes, size_t size) {
  if (elem == Elem::f8e8m0_) return; // which has no sign
  auto* elements = reinterpret_cast<std::byte*>(bytes);
  const uint64_t sign = uint64_t(1) << (elemBits(elem) - 1);
  for (int64_t i = 0; i < static_cast<int64_t>(size * 8 / elemBits(elem)); ++i)
    storeElement(elem, elements, i, loadElement(elem, elements, i) & ~sign);
}

/// The same Program and contents with magnitudes in place of the floats of what `instr` reads.
void makeMagnitudes(Program& p, Contents& contents, const program::Instr& instr) {
  for (const auto* views : {&instr.inputs, &instr.outputs})
    for (const program::View& view : *views) {
      if (!isFloat(view.elem)) continue;
      const auto absolute = [&](char* bytes, size_t size) { makeAbsolute(view.elem, bytes, size); };
      const program::Buffer& buffer = p.buffers[view.buffer];
      if (buffer.role != Role::constant) {
        absolute(contents[view.buffer].data(), contents[view.buffer].size());
        continue;
      }
      program::Constant& constant = p.constants[buffer.constant];
      Tensor tensor = std::move(constant.payload.materialize({constant.payload.count()})).value();
      std::vector<char> bytes(tensor.sizeBytes());
      std::memcpy(bytes.data(), tensor.bytes.data(), bytes.size());
      absolute(bytes.data(), bytes.size());
      tensor.bytes = Bytes::copyOf(bytes.data(), bytes.size());
      constant.payload = Payload::data(tensor);
    }
}

/// The f32 in the order of the numbers.
int64_t rankOf(float value) {
  int32_t bits;
  std::memcpy(&bits, &value, 4);
  return bits < 0 ? -static_cast<int64_t>(bits & 0x7fffffff) : bits;
}

/// Empty, or where and how they differ.
std::string difference(const Case& c, const std::vector<char>& expected,
                       const std::vector<char>& got, const std::vector<char>& magnitudes) {
  if (!isFloat(c.elem)) {
    const size_t size = static_cast<size_t>(elemBits(c.elem)) / 8;
    for (size_t i = 0; i < expected.size(); ++i) {
      if (expected[i] == got[i]) continue;
      int64_t e = 0, g = 0;
      std::memcpy(&e, expected.data() + i / size * size, size),
          std::memcpy(&g, got.data() + i / size * size, size);
      return fmt::format("element {}: {:#x}, the oracle has {:#x}", i / size, g, e);
    }
    return "";
  }
  for (size_t i = 0; i < expected.size() * 8 / elemBits(c.elem); ++i) {
    const auto at = [&](const std::vector<char>& bytes) {
      const auto* elements = reinterpret_cast<const std::byte*>(bytes.data());
      return toReal(c.elem, loadElement(c.elem, elements, static_cast<int64_t>(i)));
    };
    const double e = at(expected), g = at(got);
    if (std::isnan(e) && std::isnan(g)) continue;
    if (e == g && (e != 0 || c.bound.anyZero || std::signbit(e) == std::signbit(g))) continue;
    if (c.bound.ulps &&
        std::abs(rankOf(static_cast<float>(e)) - rankOf(static_cast<float>(g))) <= c.bound.ulps &&
        e != g)
      continue;
    if (c.bound.distance && std::isfinite(e) && std::isfinite(g) &&
        std::abs(e - g) <= c.bound.distance(e, magnitudes.empty() ? 0 : at(magnitudes)) + 1e-45)
      continue;
    return fmt::format(
        "element {}: {:.9g}, the oracle has {:.9g} (distance {:.3g}, allowed {:.3g})", i, g, e,
        std::abs(e - g),
        c.bound.distance ? c.bound.distance(e, magnitudes.empty() ? 0 : at(magnitudes)) : 0);
  }
  return "";
}

struct Machine {
  std::string name;
  int threads = 1;
  std::shared_ptr<runtime::plugin::Device> device;
  std::unique_ptr<Ground> ground;
};
Machine machineOf(const std::string& isa, int threads) {
  Machine machine{isa + (threads > 1 ? fmt::format(" on {} threads", threads) : ""), threads,
                  openCpu(isa, threads), nullptr};
  machine.ground = std::make_unique<Ground>(machine.device);
  return machine;
}

std::vector<cdl_row_t> rowsOf(const runtime::plugin::Device& device) {
  std::vector<cdl_row_t> rows;
  for (const capabilities::Target::Row& row : device.target().rows()) rows.push_back(row.row);
  return rows;
}

/// One Program of some instructions on all machines. False: something was reported.
class Judge {
public:
  explicit Judge(std::vector<Machine> machines) : machines_(std::move(machines)) {}
  std::vector<Machine>& machines() { return machines_; }
  int refusals() const { return refusals_; }
  int instructions() const { return instructions_; }

  bool judge(const Cases& cases, const std::string& what) {
    const Program& p = cases.program;
    const Status verified = program::verify(p);
    if (!verified)
      return fail(cases, what, program::kNone,
                  "the test made a bad Program: " + verified.message());
    const auto expected = oracle(p, cases.contents);
    if (!expected)
      return fail(cases, what, program::kNone, "the oracle: " + expected.status().message());
    Contents magnitudes(p.buffers.size());
    for (size_t i = 0; i < cases.cases.size(); ++i)
      if (cases.cases[i].bound.distance) {
        Program q = p;
        Contents absolute = cases.contents;
        for (size_t k = 0; k < cases.cases.size(); ++k)
          if (cases.cases[k].bound.distance) makeMagnitudes(q, absolute, q.instrs[k]);
        auto found = oracle(q, absolute);
        if (!found)
          return fail(cases, what, program::kNone, "magnitudes: " + found.status().message());
        magnitudes = std::move(*found);
        break;
      }
    current = what + "\n" + textOf(p, cases.contents, program::kNone);
    std::map<std::string, Contents> byTier;       // the same bits whatever the threads
    const size_t turn = turn_++ % tiers().size(); // one tier in turn runs on several threads too
    for (size_t m = 0; m < machines_.size(); ++m) {
      Machine& machine = machines_[m];
      if (machine.threads > 1 && m % tiers().size() != turn) continue;
      const Compiled compiled(machine.device, p);
      if (compiled.code() == CDL_REFUSED) {
        const uint32_t instr = compiled.refused() - 1;
        ++refusals_;
        if (std::getenv("CANDELA_TEST_REFUSALS")) fmt::print("{}: {}\n", what, compiled.text());
        const capabilities::InstrDesc desc = runtime::plugin::describe(compiled.image(), instr + 1);
        if (!cases.cases[instr].isPlain ||
            machine.device->target().query(desc).support != capabilities::Support::native)
          continue;
        return fail(cases, what, instr,
                    machine.name + " refuses what it claims: " + compiled.text());
      }
      if (compiled.code() != CDL_OK)
        return fail(cases, what, program::kNone, machine.name + ": " + compiled.text());
      for (const bool atEnd : {true, false}) {
        const Contents got = compiled.execute(*machine.ground, cases.contents, atEnd);
        for (size_t i = 0; i < cases.cases.size(); ++i) {
          const Case& c = cases.cases[i];
          const std::string wrong =
              difference(c, (*expected)[c.output], got[c.output], magnitudes[c.output]);
          if (!wrong.empty())
            return fail(cases, what, static_cast<uint32_t>(i), machine.name + ": " + wrong);
          instructions_ += atEnd;
        }
        for (size_t b = 0; b < p.buffers.size(); ++b)
          if (p.buffers[b].role == Role::input && got[b] != cases.contents[b])
            return fail(cases, what, program::kNone, machine.name + ": an input was written");
        const auto [known, isNew] = byTier.try_emplace(machine.device->options().at("isa"), got);
        if (!isNew && known->second != got)
          return fail(cases, what, program::kNone, machine.name + ": other bits than alone");
      }
    }
    return true;
  }

private:
  bool fail(const Cases& cases, const std::string& what, uint32_t instr, const std::string& why) {
    ADD_FAILURE() << what << "\n" << why << "\n" << textOf(cases.program, cases.contents, instr);
    return false;
  }

  std::vector<Machine> machines_;
  int refusals_ = 0, instructions_ = 0;
  size_t turn_ = 0;
};

std::vector<Machine> machinesOfThisRun() {
  std::vector<Machine> machines;
  if (!isFull()) {
    machines.push_back(machineOf(tiers().back(), 1));
    return machines;
  }
  for (int threads : {1, 3})
    for (const std::string& isa : tiers()) machines.push_back(machineOf(isa, threads));
  return machines;
}

std::string rowText(const cdl_row_t& row) {
  std::string text = instrText(row.kind, row.fn);
  for (int i = 0; i < row.elem_count; ++i)
    text += (i ? "," : " ") + std::string(elemName(static_cast<Elem>(row.elems[i])));
  return text;
}

uint64_t seedOfThisRun() {
  const char* seed = std::getenv("CANDELA_FUZZ_SEED");
  return seed ? std::strtoull(seed, nullptr, 10) : 1;
}

class CpuInstructions : public testing::Test {
protected:
  static void SetUpTestSuite() {
    std::signal(SIGSEGV, onFault), std::signal(SIGBUS, onFault), std::signal(SIGFPE, onFault),
        std::signal(SIGILL, onFault);
  }
  void SetUp() override {
    if (tiers().empty()) GTEST_SKIP() << "this processor lacks AVX2, FMA, F16C or BMI2";
  }
};

TEST_F(CpuInstructions, EveryRowAgreesWithTheOracle) {
  Judge judge(machinesOfThisRun());
  // The last tier has the rows of all others, and more.
  const std::vector<cdl_row_t> rows = rowsOf(*judge.machines().back().device);
  const uint64_t first = seedOfThisRun();
  const char* only = std::getenv("CANDELA_TEST_ROWS"); // a part of a row's text
  const int rounds = isFull() ? 2 : 1, pairs = isFull() ? 2 : 1;
  int wrong = 0;
  for (size_t r = 0; r < rows.size() && wrong < 20; ++r) {
    // On blocks: layouts_test.cpp.
    if (rows[r].support != CDL_SUPPORT_NATIVE || std::ranges::count(rows[r].layouts, 0) < 8)
      continue;
    const std::string text = rowText(rows[r]);
    if (only && text.find(only) == std::string::npos) continue;
    const bool isRich = rows[r].kind >= CDL_KIND_CONV2D || rows[r].kind == CDL_KIND_MATMUL;
    for (int round = 0; round < rounds * (isRich ? 4 : 1) && wrong < 20; ++round) {
      const uint64_t seed = first * 1000003 + r * 101 + static_cast<uint64_t>(round);
      wrong += !judge.judge(casesOf(rows[r], rows, seed, pairs),
                            fmt::format("row {} ({}), seed {}", r, text, seed));
    }
  }
  RecordProperty("instructions", judge.instructions());
  RecordProperty("refusals", judge.refusals());
  fmt::print("{} instructions, {} Programs refused, seed {}\n", judge.instructions(),
             judge.refusals(), first);
}

/// The same content in blocks of 8 bytes, turned: other numbers of the same types.
Contents turned(const Contents& contents, size_t by) {
  Contents result = contents;
  for (std::vector<char>& bytes : result)
    if (const size_t blocks = bytes.size() / 8; blocks > 1)
      std::rotate(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(by % blocks * 8),
                  bytes.begin() + static_cast<std::ptrdiff_t>(blocks * 8));
  return result;
}

TEST_F(CpuInstructions, ManyExecutionsAtTheSameTime) {
  constexpr size_t kCallers = 4;
  const int executions = isFull() ? 20 : 4;
  for (const std::string& isa : isFull() ? tiers() : std::vector<std::string>{tiers().back()}) {
    Machine machine = machineOf(isa, 3);
    const std::vector<cdl_row_t> rows = rowsOf(*machine.device);
    std::set<uint16_t> kinds; // one row of each
    for (const cdl_row_t& row : rows) {
      if (row.support != CDL_SUPPORT_NATIVE || !kinds.insert(row.kind).second) continue;
      const Cases cases = casesOf(row, rows, seedOfThisRun() + row.kind, 2);
      current = rowText(row);
      const Compiled compiled(machine.device, cases.program);
      if (compiled.code() == CDL_REFUSED) continue;
      ASSERT_EQ(compiled.code(), CDL_OK) << compiled.text();
      std::vector<Contents> before, alone;
      for (size_t t = 0; t < kCallers; ++t) {
        before.push_back(turned(cases.contents, t));
        alone.push_back(compiled.execute(*machine.ground, before[t], true));
      }
      std::atomic<int> wrong = 0;
      std::vector<std::thread> callers;
      for (size_t t = 0; t < kCallers; ++t)
        callers.emplace_back([&, t] {
          Ground ground(machine.device);
          for (int i = 0; i < executions; ++i)
            wrong += compiled.execute(ground, before[t], i % 2 == 0) != alone[t];
        });
      for (std::thread& caller : callers) caller.join();
      EXPECT_EQ(wrong, 0) << machine.name << ", " << rowText(row);
    }
    EXPECT_GT(kinds.size(), 15u);
  }
}

// Any Program that is well formed, whatever its kinds, types and layouts.
TEST_F(CpuInstructions, RandomProgramsAreCompiledOrRefused) {
  const auto device = openCpu(tiers().back(), 1);
  int compiledOnes = 0;
  const int programs = isFull() ? 2000 : 200;
  for (int seed = 1; seed <= programs && !HasFailure(); ++seed) {
    RandomOptions options;
    options.instrs = 1;
    const Program p = randomProgram(static_cast<uint64_t>(seed), options);
    current = fmt::format("random program of seed {}", seed);
    const Compiled compiled(device, p);
    compiledOnes += compiled.code() == CDL_OK;
    EXPECT_TRUE(compiled.code() == CDL_OK || compiled.code() == CDL_REFUSED)
        << "seed " << seed << ": " << compiled.text();
  }
  EXPECT_GT(compiledOnes, programs / 10);
}

// The core's verifier does not let it pass, the check of images does.
TEST_F(CpuInstructions, AClampedIndexIntoNothingIsRefused) {
  abi::ImageBuilder builder;
  builder.instr(CDL_KIND_GATHER, CDL_GATHER_CLAMP,
                {abi::ImageBuilder::view(builder.buffer(CDL_ROLE_INPUT, 4), CDL_F32, {1, 0, 1}),
                 abi::ImageBuilder::view(builder.buffer(CDL_ROLE_INPUT, 8), CDL_I32, {2}),
                 abi::ImageBuilder::view(builder.buffer(CDL_ROLE_OUTPUT, 8), CDL_F32, {1, 2, 1})});
  const abi::Block block(builder.bytes());
  const auto device = openCpu(tiers().back(), 1);
  runtime::plugin::ErrorBuffer error;
  ASSERT_EQ(cdl_image_check(block.data(), block.size(), error.get()), CDL_OK) << error.get()->text;
  cdl_executable_t* executable = nullptr;
  cdl_refusal_t refusal = {CDL_HEADER(cdl_refusal_t), 0, 0};
  const void* constants[] = {nullptr};
  EXPECT_EQ(device->table().compile(device->handle(), block.image(), constants, &executable,
                                    &refusal, error.get()),
            CDL_REFUSED);
  EXPECT_EQ(refusal.instr, 1u);
  EXPECT_STREQ(error.get()->text, "gather: no kernel for an index into an axis of nothing");
}

} // namespace
} // namespace candela::test
