// Random networks as object code: linked by the system's linker into one library, several models at
// a time, and run there; for other processors into one program, which QEMU or node runs. They give
// what the same networks give on the device of this process, bit by bit, and refer to nothing but
// memcpy and memset. CANDELA_TEST_SIZE=full or nightly: more of them.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "candela/cdl_object.h"
#include "core/compiler/driver/pipeline.h"
#include "core/support/file.h"
#include "tests/backends/cpu/network_maker.h"
#include "tools/candela/package/objects.h"

namespace candela::testing {
namespace {

namespace fs = std::filesystem;
using DevicePtr = std::shared_ptr<runtime::plugin::Device>;
using SessionPtr = std::unique_ptr<runtime::session::Session>;

constexpr const char* kHost = "x86_64-unknown-linux-gnu";

/// A processor for which code is made, and the device of this process that computes the same.
struct Machine {
  const char *triple, *cpu, *features, *isa, *here;
};
constexpr Machine kMachines[] = {
    {kHost, "x86-64-v3", "", "x86-64-v3", "x86-64-v3"},
    {kHost, "x86-64-v4", "", "avx512", "avx512"},
    {kHost, "x86-64-v4", "+avx512vnni", "avx512vnni", "avx512vnni"},
    {kHost, "x86-64-v4", "+avx512vnni,+avx512bf16", "avx512bf16", "avx512bf16"}};

/// Another processor: how programs for it are linked and run.
struct Foreign {
  Machine machine;
  const char *compiler, *flags, *runner;
  bool addsInTheSameOrder; ///< floats too are the same to the bit
};
constexpr const char *kArm = "aarch64-linux-gnu-gcc", *kRiscv = "riscv64-linux-gnu-gcc",
                     *kBoard = "arm-none-eabi-gcc";
// Boards of Arm's without a system, of 4 MB of code and 4 MB of memory.
#define BOARD_FLAGS                                                                                \
  "--specs=picolibc.specs --crt0=hosted --oslib=semihost -mfloat-abi=hard "                        \
  "-Wl,--no-warn-execstack "
#define BOARD_MEMORY(flash, ram)                                                                   \
  "-Wl,--defsym=__flash=" flash ",--defsym=__flash_size=4M,--defsym=__ram=" ram                    \
  ",--defsym=__ram_size=4M"
#define BOARD_RUNNER                                                                               \
  "qemu-system-arm -nographic -monitor none -serial none -semihosting-config "                     \
  "enable=on,target=native -M "
constexpr Foreign kForeign[] = {
    {{"aarch64-linux-gnu", "", "", "aarch64", "x86-64-v3"},
     kArm,
     "-no-pie",
     "qemu-aarch64 -cpu cortex-a53 -L /usr/aarch64-linux-gnu",
     true},
    {{"aarch64-linux-gnu", "", "+dotprod", "aarch64-dotprod", "x86-64-v3"},
     kArm,
     "-no-pie",
     "qemu-aarch64 -cpu neoverse-n1 -L /usr/aarch64-linux-gnu",
     true},
    {{"aarch64-linux-gnu", "", "+dotprod,+i8mm", "aarch64-i8mm", "x86-64-v3"},
     kArm,
     "-no-pie",
     "qemu-aarch64 -cpu max -L /usr/aarch64-linux-gnu",
     true},
    {{"riscv64-linux-gnu", "", "", "riscv64", "x86-64-v3"},
     kRiscv,
     "-no-pie",
     "qemu-riscv64 -L /usr/riscv64-linux-gnu",
     false},
    {{"thumbv7em-none-eabihf", "cortex-m4", "", "armv7e-m", "x86-64-v3"},
     kBoard,
     BOARD_FLAGS "-mcpu=cortex-m4 -mfpu=fpv4-sp-d16 " BOARD_MEMORY("0", "0x20000000"),
     BOARD_RUNNER "mps2-an386 -kernel",
     false},
    {{"thumbv8m.main-none-eabihf", "cortex-m33", "", "armv7e-m", "x86-64-v3"},
     kBoard,
     BOARD_FLAGS "-mcpu=cortex-m33 -mfpu=fpv5-sp-d16 " BOARD_MEMORY("0x10000000", "0x38000000"),
     BOARD_RUNNER "mps2-an505 -kernel",
     false},
    {{"thumbv7em-none-eabihf", "cortex-m7", "", "armv7e-m-fp64", "x86-64-v3"},
     kBoard,
     BOARD_FLAGS "-mcpu=cortex-m7 -mfpu=fpv5-d16 " BOARD_MEMORY("0", "0x20000000"),
     BOARD_RUNNER "mps2-an500 -kernel",
     false}};

constexpr Machine kWeb = {"wasm32-unknown-unknown", "", "", "wasm32-simd128", "x86-64-v3"};
constexpr const char *kNode = "node", *kWebLinker = "wasm-ld-19";

bool hasTool(const std::string& name) {
  return std::system(("command -v " + name + " > /dev/null").c_str()) == 0;
}

/// Bytes as words of an array in C.
std::string wordsText(const Bytes& bytes) {
  std::string text;
  for (size_t at = 0; at < std::max<size_t>(1, bytes.size()); at += 8) {
    uint64_t word = 0;
    if (at < bytes.size())
      std::memcpy(&word, bytes.data() + at, std::min<size_t>(8, bytes.size() - at));
    text += fmt::format("{:#x}, ", word);
  }
  return text;
}

Result<DevicePtr> open(const runtime::plugin::Options& options) {
  CDL_ASSIGN(const auto plugin, runtime::plugin::findPlugin(PLUGIN_cpu));
  return plugin->open(0, options);
}

int networks() {
  const char* size = std::getenv("CANDELA_TEST_SIZE");
  if (!size) return 12;
  return std::string_view(size) == "nightly" ? 1000 : 20;
}

/// One network, once for this process and once as object code.
struct Twin {
  std::string name, text;
  std::vector<Tensor> inputs, expected;
  tool::ObjectFiles files;
  std::vector<uint32_t> bound, computed; ///< inputs and outputs in the order of the object code
};

/// Memory of so many bytes from a multiple of 64 on.
struct Aligned {
  explicit Aligned(size_t size) : bytes(*Bytes::allocate(std::max<size_t>(size, 1))) {}
  void* at() { return bytes.mutableData(); }
  Bytes bytes;
};

class CpuAhead : public ::testing::Test {
protected:
  void SetUp() override {
    if (!open({})) GTEST_SKIP() << "this processor lacks AVX2, FMA, F16C or BMI2";
    folder_ = fs::path(::testing::TempDir()) / fmt::format("candela_ahead_{}", getpid());
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  static RandomGraph network(uint64_t seed) {
    return NetworkMaker(seed, seed % 3 == 0).make(static_cast<int>(2 + seed % 4));
  }

  /// Nothing where this machine does not run what it would be compared with.
  std::optional<Twin> make(uint64_t seed, const Machine& machine) {
    const auto here = open({{"isa", machine.here}});
    if (!here) return std::nullopt;
    Twin twin;
    twin.name = fmt::format("net{}", seed);
    const auto there = open({{"target", machine.triple},
                             {"target_cpu", machine.cpu},
                             {"target_features", machine.features},
                             {"target_name", twin.name},
                             {"target_pic", machine.triple == kHost ? "yes" : "no"}});
    EXPECT_TRUE(there.isOk()) << there.status().message();
    RandomGraph random = network(seed);
    twin.text = textOf(random.graph);
    twin.inputs = random.inputs;
    const std::vector<DevicePtr> hereAlone{*here}, thereAlone{*there};
    const auto session = driver::compile(std::move(random.graph), twin.name, hereAlone);
    const auto ahead = driver::compile(network(seed).graph, twin.name, thereAlone);
    EXPECT_TRUE(session.isOk()) << session.status().message() << twin.text;
    EXPECT_TRUE(ahead.isOk()) << ahead.status().message() << twin.text;
    if (HasFailure() || (*ahead)->bundle().steps.size() != 1) return std::nullopt;
    EXPECT_EQ((*ahead)->run(twin.inputs).status().code(), Code::internal); // it runs elsewhere
    const auto expected = (*session)->run(twin.inputs);
    EXPECT_TRUE(expected.isOk()) << expected.status().message();
    twin.expected = *expected;
    const auto archive = (*ahead)->emitted(0);
    EXPECT_TRUE(archive.isOk()) << archive.status().message();
    const auto files = tool::readObjects(*archive);
    EXPECT_TRUE(files.isOk()) << files.status().message();
    if (HasFailure()) return std::nullopt;
    EXPECT_STREQ(files->facts.isa, machine.isa);
    twin.files = *files;
    const runtime::bundle::Bundle& bundle = (*ahead)->bundle();
    twin.bound = placesOf(bundle.steps[0].inputs, bundle.inputs);
    twin.computed = placesOf(bundle.steps[0].outputs, bundle.outputs);
    return twin;
  }

  /// For each value its place among the ports of the model.
  static std::vector<uint32_t> placesOf(const std::vector<uint32_t>& values,
                                        const std::vector<uint32_t>& ports) {
    std::vector<uint32_t> places;
    for (const uint32_t value : values)
      places.push_back(static_cast<uint32_t>(std::ranges::find(ports, value) - ports.begin()));
    return places;
  }

  /// The files of their objects, as a linker takes them.
  std::string writeObjects(const std::vector<Twin>& twins) {
    std::string paths;
    for (const Twin& twin : twins)
      for (const auto& [suffix, bytes] : {std::pair(".o", &twin.files.code),
                                          std::pair("_weights.o", &twin.files.weightsObject)}) {
        const std::string path = (folder_ / (twin.name + suffix)).string();
        EXPECT_TRUE(writeFile(path, bytes->data(), bytes->size()).isOk());
        paths += " " + path;
      }
    return paths;
  }

  /// All models in one library, in which nothing is undefined but what C has.
  void* link(const std::vector<Twin>& twins) {
    std::string command =
        "cc -shared -nostdlib -Wl,-z,defs -Wl,-z,noexecstack -o " + (folder_ / "all.so").string();
    command += writeObjects(twins);
    EXPECT_EQ(std::system((command + " -lc").c_str()), 0) << command;
    void* library = dlopen((folder_ / "all.so").c_str(), RTLD_NOW | RTLD_LOCAL);
    EXPECT_TRUE(library) << dlerror();
    return library;
  }

  static void compare(void* library, Twin& twin) {
    const auto symbol = [&](const char* suffix) {
      return dlsym(library, (twin.name + suffix).c_str());
    };
    using OpenFn = int32_t (*)(void*, const void*, uint64_t, void*, uint64_t);
    using RunFn = int32_t (*)(const void*, const void* const*, void* const*);
    using VerifyFn = int32_t (*)(const void*, uint64_t);
    const auto openModel = reinterpret_cast<OpenFn>(symbol("_open"));
    const auto run = reinterpret_cast<RunFn>(symbol("_run"));
    const auto verify = reinterpret_cast<VerifyFn>(symbol("_verify"));
    const void* weights = symbol("_weights");
    ASSERT_TRUE(openModel && run && verify && weights);
    const uint64_t weightBytes = twin.files.facts.weights_bytes;
    ASSERT_EQ(std::memcmp(weights, twin.files.weights.data(), weightBytes), 0);
    EXPECT_EQ(verify(weights, weightBytes), CDL_OBJECT_OK);
    Aligned arena(twin.files.facts.arena_bytes);
    uint64_t model[CDL_OBJECT_MODEL_BYTES / 8] = {};
    ASSERT_EQ(openModel(model, weights, weightBytes, arena.at(), twin.files.facts.arena_bytes),
              CDL_OBJECT_OK);
    std::vector<const void*> inputs;
    std::vector<void*> outputs;
    std::vector<Aligned> results;
    for (const Tensor& tensor : twin.expected) results.emplace_back(tensor.sizeBytes());
    for (const uint32_t input : twin.bound) inputs.push_back(twin.inputs[input].bytes.data());
    for (const uint32_t output : twin.computed) outputs.push_back(results[output].at());
    for (int turn = 0; turn < 2; ++turn) // what the first one leaves in the arena does not matter
      ASSERT_EQ(run(model, inputs.data(), outputs.data()), CDL_OBJECT_OK);
    for (size_t o = 0; o < results.size(); ++o)
      EXPECT_EQ(
          std::memcmp(results[o].at(), twin.expected[o].bytes.data(), twin.expected[o].sizeBytes()),
          0)
          << "output " << o << " of " << twin.files.facts.isa << "\n"
          << twin.text;
  }

  /// A function of C that runs a network and returns how many numbers differ.
  static std::string programOf(const Twin& twin, bool isExact) {
    std::string arrays, inputs, outputs, compares;
    for (const uint32_t input : twin.bound) {
      arrays += fmt::format("  static const uint64_t in{}[] = {{{}}};\n", input,
                            wordsText(twin.inputs[input].bytes));
      inputs += fmt::format("in{}, ", input);
    }
    for (const uint32_t output : twin.computed) {
      const Tensor& want = twin.expected[output];
      arrays += fmt::format("  static const uint64_t want{}[] = {{{}}};\n"
                            "  static uint64_t out{}[sizeof want{} / 8];\n",
                            output, wordsText(want.bytes), output, output);
      outputs += fmt::format("out{}, ", output);
      const bool isBounded = want.elem == Elem::f32_ && !isExact;
      compares += fmt::format("  wrong += {}(out{}, want{}, {});\n", isBounded ? "far" : "unequal",
                              output, output, want.sizeBytes());
    }
    return fmt::format("int {0}_open(void*, const void*, size_t, void*, size_t);\n"
                       "int {0}_run(const void*, const void* const*, void* const*);\n"
                       "extern const unsigned char {0}_weights[];\n"
                       "static int {0}(void) {{\n{1}  const void* const in[] = {{{2}}};\n"
                       "  void* const out[] = {{{3}}};\n  uint64_t model[{4}];\n  int wrong = 0;\n"
                       "  if ({0}_open(model, {0}_weights, {5}, arena, sizeof arena)) return -1;\n"
                       "  if ({0}_run(model, in, out)) return -2;\n{6}"
                       "  if (wrong) printf(\"{0}: %d differ\\n\", wrong);\n  return wrong;\n}}\n",
                       twin.name, arrays, inputs, outputs, CDL_OBJECT_MODEL_BYTES / 8,
                       twin.files.facts.weights_bytes, compares);
  }

  /// All models in one program, which says which of them differ.
  void runElsewhere(const Foreign& foreign, const std::vector<Twin>& twins) {
    uint64_t arena = 64;
    std::string functions, calls;
    for (const Twin& twin : twins) {
      arena = std::max<uint64_t>(arena, twin.files.facts.arena_bytes);
      functions += programOf(twin, foreign.addsInTheSameOrder);
      calls += fmt::format("  wrong |= {}();\n", twin.name);
    }
    const std::string text = fmt::format(
        "#include <math.h>\n#include <stddef.h>\n#include <stdint.h>\n#include <stdio.h>\n"
        "#include <string.h>\nstatic unsigned char arena[{}] __attribute__((aligned(64)));\n"
        "__attribute__((unused)) static int unequal(const void* a, const void* b, size_t bytes) "
        "{{ return memcmp(a, b, bytes) != 0; }}\n"
        "__attribute__((unused)) static int far(const void* a, const void* b, size_t bytes) {{\n"
        "  const float *x = a, *y = b;\n  int count = 0;\n"
        "  for (size_t i = 0; i < bytes / 4; ++i)\n"
        "    count += !(fabsf(x[i] - y[i]) <= 1e-4f + 1e-3f * fabsf(y[i]));\n"
        "  return count;\n}}\n{}int main(void) {{\n  int wrong = 0;\n{}"
        "  return wrong != 0;\n}}\n",
        arena, functions, calls);
    const std::string source = (folder_ / "all.c").string(), program = (folder_ / "all").string();
    ASSERT_TRUE(writeFile(source, text.data(), text.size()).isOk());
    const std::string command = fmt::format("{} -O1 {} -o {} {} {} -lm", foreign.compiler,
                                            foreign.flags, program, source, writeObjects(twins));
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
    EXPECT_EQ(std::system(fmt::format("{} {}", foreign.runner, program).c_str()), 0)
        << foreign.machine.isa;
  }

  /// Networks for another machine, many of them in one program.
  void compareElsewhere(const Machine& machine,
                        const std::function<void(const std::vector<Twin>&)>& run) {
    constexpr int kInOneProgram = 20;
    constexpr int kFirst = 50; // LLVM crashed at the kernels of network 51
    const int each = networks() / 5;
    int made = 0;
    for (int first = kFirst; first < kFirst + each; first += kInOneProgram) {
      std::vector<Twin> twins;
      for (int seed = first; seed < std::min(first + kInOneProgram, kFirst + each); ++seed)
        if (auto twin = make(static_cast<uint64_t>(seed), machine))
          twins.push_back(std::move(*twin));
      if (HasFailure()) return;
      run(twins);
      made += static_cast<int>(twins.size());
    }
    fmt::print("{}: {} networks compared\n", machine.isa, made);
    EXPECT_GE(made, each / 2);
  }

  /// A call of JavaScript that runs a network and returns how many outputs differ.
  static std::string scriptOf(const Twin& twin) {
    std::string inputs, outputs;
    for (const uint32_t input : twin.bound)
      inputs += fmt::format("[{}], ", bytesText(twin.inputs[input].bytes));
    for (const uint32_t output : twin.computed) {
      const Tensor& want = twin.expected[output];
      outputs += fmt::format("{{ isBounded: {}, bytes: [{}] }}, ", want.elem == Elem::f32_,
                             bytesText(want.bytes));
    }
    return fmt::format("wrong += check('{}', {}, {}, [{}], [{}]);\n", twin.name,
                       twin.files.facts.weights_bytes, twin.files.facts.arena_bytes, inputs,
                       outputs);
  }

  static std::string bytesText(const Bytes& bytes) {
    std::string text;
    for (size_t i = 0; i < bytes.size(); ++i)
      text += fmt::format("{},", static_cast<int>(bytes.data()[i]));
    return text;
  }

  /// All models in one module, run by node.
  void runOnNode(const std::vector<Twin>& twins) {
    std::string calls, exports;
    for (const Twin& twin : twins) {
      calls += scriptOf(twin);
      for (const char* each : {"open", "run", "weights"})
        exports += fmt::format(" --export={}_{}", twin.name, each);
    }
    const std::string code = (folder_ / "all.wasm").string();
    const std::string script = (folder_ / "all.mjs").string();
    const std::string text = fmt::format("{}{}process.exitCode = wrong ? 1 : 0;\n", kScript, calls);
    ASSERT_TRUE(writeFile(script, text.data(), text.size()).isOk());
    const std::string command = fmt::format("{} --no-entry --export=__heap_base{} -o {} {}",
                                            kWebLinker, exports, code, writeObjects(twins));
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
    EXPECT_EQ(std::system(fmt::format("{} {} {}", kNode, script, code).c_str()), 0);
  }

  /// Runs networks of a module one after the other, from a fresh heap each.
  static constexpr const char* kScript = R"(import { readFileSync } from 'node:fs';
const { instance } = await WebAssembly.instantiate(readFileSync(process.argv[2]), {});
const all = instance.exports;
let end = 0;
function take(bytes) {
  const at = Math.ceil(end / 64) * 64;
  end = at + bytes;
  const missing = end - all.memory.buffer.byteLength;
  if (missing > 0) all.memory.grow(Math.ceil(missing / 65536));
  return at;
}
function differs(want, got) {
  if (!want.isBounded) return want.bytes.some((byte, i) => byte !== got[i]);
  const x = new Float32Array(got.slice().buffer);
  const y = new Float32Array(Uint8Array.from(want.bytes).buffer);
  return y.some((value, i) => !Object.is(value, x[i]) && !(Math.abs(x[i] - value) <= 1e-4 + 1e-3 * Math.abs(value)));
}
function check(name, weightBytes, arenaBytes, inputs, outputs) {
  end = all.__heap_base.value;
  const model = take(32), arena = take(arenaBytes);
  const from = inputs.map((bytes) => take(bytes.length)), to = outputs.map((output) => take(output.bytes.length));
  const fromArray = take(4 * from.length), toArray = take(4 * to.length);
  inputs.forEach((bytes, i) => new Uint8Array(all.memory.buffer).set(bytes, from[i]));
  new Uint32Array(all.memory.buffer, fromArray).set(from);
  new Uint32Array(all.memory.buffer, toArray).set(to);
  const code = all[`${name}_open`](model, all[`${name}_weights`].value, weightBytes, arena, arenaBytes)
    || all[`${name}_run`](model, fromArray, toArray);
  if (code !== 0) console.log(`${name}: error ${code}`);
  const wrong = code !== 0 ? 1 : outputs.filter((output, o) => differs(output, new Uint8Array(all.memory.buffer, to[o], output.bytes.length))).length;
  if (wrong) console.log(`${name}: ${wrong} outputs differ`);
  return wrong;
}
let wrong = 0;
)";

  fs::path folder_;
};

TEST_F(CpuAhead, GivesWhatThisProcessGives) {
  constexpr int kInOneLibrary = 50;
  int made = 0;
  for (int first = 1; first <= networks() && !HasFailure(); first += kInOneLibrary) {
    std::vector<Twin> twins;
    for (int seed = first; seed < std::min(first + kInOneLibrary, networks() + 1); ++seed) {
      SCOPED_TRACE(fmt::format("seed {}", seed));
      const Machine& machine = kMachines[seed % std::size(kMachines)];
      if (auto twin = make(static_cast<uint64_t>(seed), machine)) twins.push_back(std::move(*twin));
    }
    if (twins.empty() || HasFailure()) continue;
    void* library = link(twins);
    if (!library) return;
    for (Twin& twin : twins) {
      SCOPED_TRACE(twin.name);
      compare(library, twin);
    }
    dlclose(library);
    made += static_cast<int>(twins.size());
  }
  fmt::print("{} of {} networks compared\n", made, networks());
  EXPECT_GE(made, networks() / 5);
}

TEST_F(CpuAhead, OtherProcessorsGiveWhatThisProcessGives) {
  if (!std::getenv("CANDELA_TEST_SIZE")) GTEST_SKIP() << "each processor has a linker to start";
  for (const Foreign& foreign : kForeign) {
    const std::string runner = foreign.runner;
    if (!hasTool(foreign.compiler) || !hasTool(runner.substr(0, runner.find(' ')))) continue;
    compareElsewhere(foreign.machine,
                     [&](const std::vector<Twin>& twins) { runElsewhere(foreign, twins); });
  }
}

TEST_F(CpuAhead, WebAssemblyGivesWhatThisProcessGives) {
  if (!std::getenv("CANDELA_TEST_SIZE")) GTEST_SKIP() << "it has a linker to start";
  if (!hasTool(kNode) || !hasTool(kWebLinker)) GTEST_SKIP() << "no node or no linker";
  compareElsewhere(kWeb, [&](const std::vector<Twin>& twins) { runOnNode(twins); });
}

TEST_F(CpuAhead, DevicesOfOtherMachinesAreRefusedByName) {
  struct Case {
    runtime::plugin::Options options;
    const char* message;
  };
  const Case cases[] = {
      {{{"target", "quux-linux-gnu"}}, "target=quux-linux-gnu: LLVM knows no such processor"},
      {{{"target", "mips64-linux-gnu"}}, "target=mips64-linux-gnu: code is generated for x86_64"},
      {{{"target", "thumbv6m-none-eabi"}, {"target_cpu", "cortex-m0"}},
       "target_cpu=cortex-m0: it lacks dsp, vfp4d16sp, which the lowest tier (armv7e-m) needs"},
      {{{"target", "riscv64-linux-gnu"}, {"target_features", "-d"}}, "it lacks d, which"},
      {{{"target", "x86_64-pc-windows-msvc"}},
       "code is generated for x86_64, aarch64, riscv64 and thumb"},
      {{{"target", "x86_64-linux-gnux32"}}, "pointers of 64 bits"},
      {{{"target", "x86_64-linux-gnu"}, {"target_cpu", "pentium99"}},
       "target_cpu=pentium99: LLVM knows no such processor of x86_64-linux-gnu"},
      {{{"target", "x86_64-linux-gnu"}, {"target_cpu", "x86-64-v2"}},
       "target_cpu=x86-64-v2: it lacks"},
      {{{"target", "x86_64-linux-gnu"}, {"target_features", "-fma"}}, "it lacks FMA, which"},
      {{{"target", "x86_64-linux-gnu"}, {"target_features", "+warp"}},
       "'+warp' is no +FEATURE or -FEATURE that LLVM knows"},
      {{{"target", "x86_64-linux-gnu"}, {"target_features", "avx2"}}, "'avx2' is no +FEATURE"},
      {{{"target", "x86_64-linux-gnu"}, {"target_features", "+amx-tile"}},
       "a program has to ask its system for tiles"},
      {{{"target", "x86_64-linux-gnu"}, {"target_name", "1st"}}, "target_name=1st: no name in C"}};
  for (const Case& each : cases) {
    const auto device = open(each.options);
    ASSERT_FALSE(device.isOk()) << each.message;
    EXPECT_NE(device.status().message().find(each.message), std::string::npos)
        << device.status().message();
  }
}

} // namespace
} // namespace candela::testing
