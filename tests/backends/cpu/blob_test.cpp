// The loader of stored executables: what it makes of a sound one, and that a damaged or a forged
// one is an error by name and never a fault. Needs nothing of LLVM, so that this runs under the
// sanitizers.
#include "backends/cpu/runtime/blob.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "backends/cpu/runtime/digest.hpp"
#include "backends/cpu/runtime/executable.hpp"
#include "backends/cpu/runtime/objects.hpp"
#include "core/compiler/program/image.h"
#include "tests/backends/cpu/object.h"
#include "tests/fuzz/random_program.h"

namespace cpu {
namespace {

using candela::test::Random;
using test::Block;
using test::kConstant;
namespace program = candela::program;

constexpr int64_t kCount = 4;
constexpr uint64_t kCalls = 128; // bytes of their section
constexpr uint32_t kOutput = 3;  // buffers of the image: x, c, y

/// y = x + c, as far as the loader is concerned.
program::Program addProgram(int64_t constant) {
  program::Program p;
  program::Buffer buffer;
  buffer.bytes = 8 * kCount;
  const auto add = [&](const char* name, program::Role role) {
    buffer.name = name, buffer.role = role;
    return p.addBuffer(buffer);
  };
  const uint32_t x = add("x", program::Role::input);
  const auto payload =
      candela::Tensor::of<int64_t>(candela::Elem::i64_, {kCount}, {1, 2, 3, constant});
  const uint32_t c = p.addConstant("c", candela::Payload::data(payload));
  const uint32_t y = add("y", program::Role::output);
  program::Instr instr;
  instr.kind = CDL_KIND_BINARY;
  instr.fn = CDL_BINARY_ADD;
  for (uint32_t in : {x, c})
    instr.inputs.push_back(program::denseView(in, candela::Elem::i64_, {kCount}));
  instr.outputs.push_back(program::denseView(y, candela::Elem::i64_, {kCount}));
  p.instrs.push_back(instr);
  return p;
}

const cdl_image_t* asImage(const candela::Bytes& bytes) {
  return reinterpret_cast<const cdl_image_t*>(bytes.data());
}

/// Two calls that each store kConstant + 0, in the second and the first word of y.
Binary binary() {
  Binary b;
  b.compiler = "LLVM 19.0";
  b.scratchBytes = 128, b.kernels = 3;
  for (int64_t offset : {8, 0}) {
    Arg arg;
    arg.buffer = kOutput, arg.offset = offset;
    b.calls.push_back(
        {1, static_cast<uint32_t>(b.calls.size()), 1, static_cast<uint32_t>(b.args.size()), 1});
    b.args.push_back(arg);
  }
  const Block object = test::sound();
  b.made.own.resize(192);
  b.made.code = packed({{object.begin(), object.end()}});
  b.own = b.made.own.data(), b.ownBytes = b.made.own.size();
  b.code = b.made.code.data(), b.codeBytes = b.made.code.size();
  return b;
}

class CpuBlob : public testing::Test {
protected:
  CpuBlob() : bytes_(program::toImage(addProgram(4))) {
    const cdl_writer_t writer{&sound_, [](void* context, const void* data, uint64_t size) -> int {
                                const char* from = static_cast<const char*>(data);
                                static_cast<Block*>(context)->insert(
                                    static_cast<Block*>(context)->end(), from, from + size);
                                return 1;
                              }};
    const cdl::Status status = toBlob(image(), binary(), cdl::Writer(writer));
    if (!status.isOk()) ADD_FAILURE() << status.text();
  }
  const cdl_image_t* image() const { return asImage(bytes_); }
  BlobHeader header(const Block& blob) const {
    BlobHeader h;
    std::memcpy(&h, blob.data(), sizeof h);
    return h;
  }
  /// The header of the sound one, changed, with its own checksum right again.
  template <class F> Block forged(F&& change) const {
    Block blob = sound_;
    BlobHeader h = header(blob);
    change(h, blob);
    h.digest = digestOf(h);
    std::memcpy(blob.data(), &h, sizeof h);
    return blob;
  }
  /// Checksums of sections made right again.
  static void seal(BlobHeader& h, const Block& blob) {
    uint64_t at = sizeof h;
    for (BlobHeader::Section& s : h.sections) {
      if (s.bytes > blob.size() - at) return;
      s.digest = digest(blob.data() + at, s.bytes);
      at += s.bytes;
    }
  }

  /// Exactly these bytes, at a multiple of 64: a sanitizer sees the first one beyond them.
  struct Loaded {
    Block room;
    std::unique_ptr<char, void (*)(void*)> bytes{nullptr, std::free};
    Binary binary;
    cdl::Status status;
    Loaded(const cdl_image_t* image, const Block& blob) {
      void* at = nullptr;
      if (posix_memalign(&at, 64, std::max<size_t>(blob.size(), 1)) != 0) throw std::bad_alloc();
      bytes.reset(static_cast<char*>(at));
      if (!blob.empty()) std::memcpy(at, blob.data(), blob.size());
      status = fromBlob(image, at, blob.size(), binary);
    }
  };
  std::string errorOf(const Block& blob) const {
    const Loaded loaded(image(), blob);
    return std::to_string(loaded.status.code()) + " " + loaded.status.text();
  }

  candela::Bytes bytes_;
  Block sound_;
};

struct Memory final : cdl::Addresses {
  mutable int64_t y[kCount] = {}, scratch[128] = {};
  void* address(uint32_t buffer, uint64_t) const override {
    return buffer == kOutput ? y : scratch;
  }
};

TEST_F(CpuBlob, RunsWhereItLies) {
  Loaded loaded(image(), sound_);
  ASSERT_TRUE(loaded.status.isOk()) << loaded.status.text();
  EXPECT_EQ(loaded.binary.compiler, "LLVM 19.0");
  EXPECT_EQ(loaded.binary.scratchBytes, 128u);
  for (const char* part : {loaded.binary.own, loaded.binary.code}) {
    EXPECT_GE(part, loaded.bytes.get());
    EXPECT_LT(part, loaded.bytes.get() + sound_.size());
  }
  Threads threads(1);
  CpuExecutable executable(image(), std::move(loaded.binary), threads);
  ASSERT_TRUE(executable.place().isOk());
  const Memory memory;
  ASSERT_LE(executable.scratchBytes(), sizeof memory.scratch);
  ASSERT_TRUE(executable.execute(memory).isOk());
  EXPECT_EQ(memory.y[0], kConstant);
  EXPECT_EQ(memory.y[1], kConstant);
  EXPECT_EQ(memory.y[2], 0);
}

TEST_F(CpuBlob, SeveralExecutionsAtOnce) {
  Loaded loaded(image(), sound_);
  ASSERT_TRUE(loaded.status.isOk()) << loaded.status.text();
  Threads threads(3);
  CpuExecutable executable(image(), std::move(loaded.binary), threads);
  ASSERT_TRUE(executable.place().isOk());
  std::atomic<int> right{0};
  std::vector<std::thread> callers;
  for (int t = 0; t < 4; ++t)
    callers.emplace_back([&] {
      for (int i = 0; i < 100; ++i) {
        const Memory memory;
        if (executable.execute(memory).isOk())
          right += memory.y[0] == kConstant && memory.y[1] == kConstant;
      }
    });
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(right, 400);
}

TEST_F(CpuBlob, IsStoredAgainAsItWas) {
  Loaded loaded(image(), sound_);
  Threads threads(1);
  CpuExecutable executable(image(), std::move(loaded.binary), threads);
  ASSERT_TRUE(executable.place().isOk());
  Block again;
  const cdl_writer_t writer{&again, [](void* context, const void* data, uint64_t size) -> int {
                              const char* from = static_cast<const char*>(data);
                              static_cast<Block*>(context)->insert(
                                  static_cast<Block*>(context)->end(), from, from + size);
                              return 1;
                            }};
  ASSERT_TRUE(executable.save(cdl::Writer(writer)).isOk());
  EXPECT_EQ(again, sound_);
  const cdl_writer_t full{nullptr, [](void*, const void*, uint64_t) -> int { return 0; }};
  EXPECT_EQ(executable.save(cdl::Writer(full)).code(), CDL_IO);
}

TEST_F(CpuBlob, CutAnywhereIsAnError) {
  for (size_t size = 0; size < sound_.size(); ++size) {
    const std::string error =
        errorOf(Block(sound_.begin(), sound_.begin() + static_cast<std::ptrdiff_t>(size)));
    EXPECT_EQ(error.find("12 stored executable is damaged: "), 0u) << size << ": " << error;
  }
}

TEST_F(CpuBlob, EveryFlippedBitIsRefusedByName) {
  for (size_t at = 0; at < sound_.size(); ++at)
    for (int bit = 0; bit < 8; ++bit) {
      Block damaged = sound_;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
      const std::string error = errorOf(damaged);
      ASSERT_NE(error.find(" stored executable "), std::string::npos)
          << at << "." << bit << ": " << error;
    }
}

TEST_F(CpuBlob, AForgedOneIsNoFault) {
  Random random(11);
  static constexpr uint64_t kNumbers[] = {0,          1,         2,          63,
                                          64,         128,       0x7fffffff, 0x80000000,
                                          0xffffffff, INT64_MAX, UINT64_MAX, UINT64_MAX - 63};
  int refused = 0, kept = 0;
  for (int i = 0; i < 20000; ++i) {
    const Block blob = forged([&](BlobHeader& h, Block& bytes) {
      for (int64_t fields = random.in(1, 3); fields > 0; --fields) {
        const size_t width = size_t(4) << random.in(0, 1);
        const bool inHeader = random.chance(50);
        const auto end = static_cast<int64_t>(inHeader ? sizeof h : bytes.size());
        const auto at = static_cast<size_t>(
                            random.in(inHeader ? 56 : static_cast<int64_t>(sizeof h), end - 8)) /
                        8 * 8;
        const uint64_t number = random.chance(80) ? random.of(kNumbers) : random.next();
        std::memcpy((inHeader ? reinterpret_cast<char*>(&h) : bytes.data()) + at, &number, width);
      }
      if (random.chance(80)) std::memcpy(h.image, image()->hash, 32);
      seal(h, bytes);
    });
    Loaded loaded(image(), blob);
    refused += !loaded.status.isOk();
    if (!loaded.status.isOk()) continue;
    ++kept;
    Threads threads(1);
    CpuExecutable executable(image(), std::move(loaded.binary), threads);
    (void)executable.place(); // which reads the object; what the code does is beyond any check
  }
  EXPECT_GT(refused, 1000);
  EXPECT_GT(kept, 1000);
}

TEST_F(CpuBlob, SaysWhatDoesNotFit) {
  EXPECT_EQ(errorOf(forged([](BlobHeader& h, Block&) {
              h.format = 9, std::strcpy(h.madeBy, "cpu 7.1 with LLVM 23");
            })),
            "2 stored executable has format 9 and was made by cpu 7.1 with LLVM 23; this is cpu "
            "0.1.0, which reads format " +
                std::to_string(kFormat) + ": compile the model again");
  EXPECT_EQ(errorOf(forged([](BlobHeader& h, Block&) { h.tier = 77; })),
            "2 stored executable is for instruction set 77, which this cpu 0.1.0 does not know");
  EXPECT_EQ(errorOf(forged([](BlobHeader& h, Block&) { h.image[3] ^= 1; })),
            "2 stored executable was made for another Program");
  const candela::Bytes other = program::toImage(addProgram(5));
  EXPECT_EQ(Loaded(asImage(other), sound_).status.text(),
            "stored executable was made for another Program");
  const auto flipped = [&](size_t at) {
    Block blob = sound_;
    blob[at] = static_cast<char>(blob[at] ^ 4);
    return errorOf(blob);
  };
  EXPECT_EQ(
      flipped(sizeof(BlobHeader)),
      "12 stored executable is damaged: its calls, 128 bytes at 192, do not have their checksum");
  EXPECT_EQ(flipped(sizeof(BlobHeader) + kCalls), "12 stored executable is damaged: its arguments, "
                                                  "64 bytes at 320, do not have their checksum");
  EXPECT_EQ(flipped(sizeof(BlobHeader) + kCalls + 64 + 191),
            "12 stored executable is damaged: its constants, 192 bytes at 384, do not have their "
            "checksum");
  EXPECT_EQ(flipped(sound_.size() - 1).find("12 stored executable is damaged: its code, "), 0u);
  EXPECT_EQ(errorOf(forged([](BlobHeader& h, Block& bytes) {
              reinterpret_cast<Call*>(bytes.data() + sizeof h)->kernel = 3;
              seal(h, bytes);
            })),
            "12 stored executable is damaged: a call that its tables do not hold");
  EXPECT_EQ(errorOf(forged([](BlobHeader& h, Block& bytes) {
              reinterpret_cast<Arg*>(bytes.data() + sizeof h + kCalls)->buffer = 4;
              seal(h, bytes);
            })),
            "12 stored executable is damaged: an argument in buffer 4 at 8, which has 0 bytes");
  // A tier that this machine lacks: on one that has all of them tests/backends/cpu/check_stored.py
  // asks an emulated one.
  for (const Isa& isa : allIsas()) {
    const std::string error =
        errorOf(forged([&](BlobHeader& h, Block&) { h.tier = static_cast<uint32_t>(isa.tier); }));
    const std::string missing = missingFeatures(isa.tier);
    EXPECT_EQ(error, missing.empty()
                         ? "0 "
                         : std::string("2 stored executable was made for ") + isa.name +
                               "; this machine lacks " + missing + ": compile the model again");
  }
}

TEST_F(CpuBlob, ArgumentsBeginInsideOfTheirMemory) {
  // y has 32 bytes, the constants 192, scratch 128.
  const auto argument = [&](uint32_t buffer, int64_t offset) {
    return errorOf(forged([&](BlobHeader& h, Block& bytes) {
      Arg* arg = reinterpret_cast<Arg*>(bytes.data() + sizeof h + kCalls);
      arg->buffer = buffer, arg->offset = offset;
      seal(h, bytes);
    }));
  };
  const std::pair<uint32_t, int> rooms[] = {{kOutput, 32}, {Arg::kOwn, 192}, {Arg::kScratch, 128}};
  for (const auto& [buffer, room] : rooms) {
    EXPECT_EQ(argument(buffer, 0), "0 ");
    EXPECT_EQ(argument(buffer, room - 1), "0 ");
    for (const int64_t offset : {int64_t(-1), int64_t(room), INT64_MIN, INT64_MAX})
      EXPECT_EQ(argument(buffer, offset),
                "12 stored executable is damaged: an argument in buffer " + std::to_string(buffer) +
                    " at " + std::to_string(offset) + ", which has " + std::to_string(room) +
                    " bytes");
  }
  const auto units = [&](uint64_t count) {
    return errorOf(forged([&](BlobHeader& h, Block& bytes) {
      reinterpret_cast<Call*>(bytes.data() + sizeof h)->units = count;
      seal(h, bytes);
    }));
  };
  EXPECT_EQ(units(64), "0 ");
  EXPECT_EQ(units(66), "12 stored executable is damaged: a call of 66 units on 32 bytes");
  EXPECT_EQ(errorOf(forged([](BlobHeader& h, Block&) { h.scratchBytes = 1; })),
            "12 stored executable is damaged: its sections do not have the size of what they hold");
  // Parts of a call: as many units as one may have, and not so many that they could not be counted.
  const auto turns = [&](uint64_t first, uint64_t count, uint64_t stride) {
    return errorOf(forged([&](BlobHeader& h, Block& bytes) {
      Call& call = *reinterpret_cast<Call*>(bytes.data() + sizeof h);
      call.units = 2, call.first = first, call.turns = count, call.stride = stride;
      seal(h, bytes);
    }));
  };
  EXPECT_EQ(turns(100, 32, 50), "0 ");
  EXPECT_EQ(turns(0, 33, 2), "12 stored executable is damaged: a call of 66 units on 32 bytes");
  for (const auto& [first, count, stride] :
       {std::tuple<uint64_t, uint64_t, uint64_t>{UINT64_MAX, 1, 0},
        {0, 0, 1},
        {0, UINT64_MAX, 0},
        {0, 3, UINT64_MAX},
        {3, 4, uint64_t(1) << 47}})
    EXPECT_EQ(turns(first, count, stride), "12 stored executable is damaged: a call of units " +
                                               std::to_string(first) +
                                               " and on that there are not");
  // Arguments before those of the call in front of it, and of none.
  EXPECT_EQ(errorOf(forged([](BlobHeader& h, Block& bytes) {
              reinterpret_cast<Call*>(bytes.data() + sizeof h)[0].firstArg = 1;
              seal(h, bytes);
            })),
            "12 stored executable is damaged: a call that its tables do not hold");
  EXPECT_EQ(errorOf(forged([](BlobHeader& h, Block& bytes) {
              reinterpret_cast<Call*>(bytes.data() + sizeof h)[1].firstArg = 0;
              seal(h, bytes);
            })),
            "12 stored executable is damaged: arguments of no call");
  EXPECT_EQ(errorOf(forged([](BlobHeader& h, Block& bytes) {
              reinterpret_cast<Call*>(bytes.data() + sizeof h)[1].args = 0;
              seal(h, bytes);
            })),
            "12 stored executable is damaged: arguments of no call");
}

TEST_F(CpuBlob, ArgumentsStayInsideInEveryIteration) {
  program::Program p = addProgram(4);
  p.loops.push_back({0, 1, program::kNone, 3});
  p.instrs[0].loop = 0;
  const candela::Bytes looped = program::toImage(p);
  const auto stepped = [&](int64_t offset, int64_t outer, int64_t inner) {
    const Block blob = forged([&](BlobHeader& h, Block& bytes) {
      std::memcpy(h.image, asImage(looped)->hash, 32);
      Arg* arg = reinterpret_cast<Arg*>(bytes.data() + sizeof h + kCalls);
      arg->offset = offset, arg->perLoop[0] = outer, arg->perLoop[1] = inner;
      seal(h, bytes);
    });
    const Loaded loaded(asImage(looped), blob);
    return loaded.status.code();
  };
  EXPECT_EQ(stepped(0, 8, 0), CDL_OK);
  EXPECT_EQ(stepped(16, -8, 0), CDL_OK);
  EXPECT_EQ(stepped(0, 16, 0), CDL_BAD_MODEL);
  EXPECT_EQ(stepped(8, -8, 0), CDL_BAD_MODEL);
  EXPECT_EQ(stepped(0, INT64_MAX, 0), CDL_BAD_MODEL);
  EXPECT_EQ(stepped(0, 8, 1 << 20), CDL_OK); // there is no inner loop
}

TEST_F(CpuBlob, OutOfPlaceIsAnError) {
  std::vector<char> room(sound_.size() + 128);
  char* at = room.data() + (64 - reinterpret_cast<uintptr_t>(room.data()) % 64) + 8;
  std::memcpy(at, sound_.data(), sound_.size());
  Binary binary;
  EXPECT_EQ(fromBlob(image(), at, sound_.size(), binary).code(), CDL_INVALID_ARGUMENT);
}

TEST(CpuDigest, SeesEveryBitAndTheLength) {
  for (size_t size : {1, 7, 31, 32, 33, 64, 100, 192}) {
    Block block(size, 'x');
    const uint64_t whole = digest(block.data(), size);
    EXPECT_NE(digest(block.data(), size - 1), whole) << size;
    for (size_t bit = 0; bit < size * 8; ++bit) {
      block[bit / 8] = static_cast<char>(block[bit / 8] ^ (1 << bit % 8));
      EXPECT_NE(digest(block.data(), size), whole) << size << ": " << bit;
      block[bit / 8] = static_cast<char>(block[bit / 8] ^ (1 << bit % 8));
    }
  }
}

} // namespace
} // namespace cpu
