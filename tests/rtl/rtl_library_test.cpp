// The cache of verilated NPUs, with a Verilator that writes a line and makes nothing.
#include "simulator/rtl_model/library.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <iterator>

#include "simulator/rtl_model/parameters.h"
#include "simulator/timing/schedule.h"

namespace {
using namespace candela::npu;
namespace fs = std::filesystem;
using testing::HasSubstr;

/// Writes `count` of its runs, answers what RtlLibrary asks for, and leaves one source.
constexpr const char* kVerilator = R"(#!/bin/sh
here=$(dirname "$0")
case "$*" in
*--version*) echo "Verilator of a test"; exit 0;;
*--getenv*) echo "$here/root"; exit 0;;
esac
echo run >> "$here/runs"
mkdir -p verilated
echo "int verilated_part;" > verilated/Vcdl_npu.cpp
)";
constexpr const char* kEntry = R"(#include <cstdint>
extern "C" void* candela_rtl_make(int) { return nullptr; }
extern "C" uint64_t candela_rtl_pins_bytes() { return PINS; }
)";

void writeText(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

class RtlLibraryCache : public testing::Test {
protected:
  RtlLibraryCache() {
    std::string name = (fs::temp_directory_path() / "rtl_library_XXXXXX").string();
    folder_ = mkdtemp(name.data());
    places_.sources = folder_ / "sources";
    places_.cache = folder_ / "cache";
    places_.verilator = folder_ / "tools/verilator";
    writeText(places_.verilator, kVerilator);
    fs::permissions(places_.verilator, fs::perms::owner_all);
    for (const char* file : {"verilated.cpp", "verilated_threads.cpp", "vltstd/none.h"})
      writeText(folder_ / "tools/root/include" / file, "");
    std::string entry = kEntry;
    entry.replace(entry.find("PINS"), 4, std::to_string(sizeof(RtlPins)));
    writeText(places_.sources / "simulator/rtl_model/library_entry.cpp", entry);
    writeText(places_.sources / "rtl/top/cdl_npu.sv", "module cdl_npu; endmodule\n");
  }
  ~RtlLibraryCache() override { fs::remove_all(folder_); }

  Result<std::shared_ptr<RtlLibrary>> get() const {
    return RtlLibrary::of(*findConfiguration("gem16"), places_);
  }
  /// How often Verilator was run.
  int64_t runs() const {
    std::ifstream file(folder_ / "tools/runs");
    return std::count(std::istreambuf_iterator<char>(file), {}, '\n');
  }
  fs::path library() const {
    for (const fs::directory_entry& entry : fs::directory_iterator(places_.cache))
      if (entry.is_directory()) return entry.path() / "libcdl_npu.so";
    return {};
  }

  fs::path folder_;
  RtlLibrary::Places places_;
};

TEST_F(RtlLibraryCache, IsMadeOnce) {
  const auto first = get();
  ASSERT_TRUE(first) << first.message();
  const auto second = get();
  ASSERT_TRUE(second) << second.message();
  EXPECT_EQ(runs(), 1);
}

TEST_F(RtlLibraryCache, IsMadeAnewWhenItIsDamagedOrItsSourcesChange) {
  ASSERT_TRUE(get());
  fs::resize_file(library(), fs::file_size(library()) / 2);
  const auto repaired = get();
  ASSERT_TRUE(repaired) << repaired.message();
  EXPECT_EQ(runs(), 2);
  writeText(places_.sources / "rtl/top/cdl_npu.sv", "module cdl_npu; wire changed; endmodule\n");
  ASSERT_TRUE(get());
  EXPECT_EQ(runs(), 3);
}

TEST_F(RtlLibraryCache, IsMadeByOneOfSeveralProcesses) {
  std::vector<pid_t> processes;
  for (int i = 0; i < 3; ++i) {
    const pid_t process = fork();
    if (process == 0) _exit(get() ? 0 : 1);
    processes.push_back(process);
  }
  for (const pid_t process : processes) {
    int status = 1;
    waitpid(process, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(runs(), 1);
}

TEST_F(RtlLibraryCache, SaysWhatIsMissing) {
  RtlLibrary::Places places = places_;
  places.verilator = "no_such_verilator";
  const auto without = RtlLibrary::of(*findConfiguration("gem16"), places);
  ASSERT_FALSE(without);
  EXPECT_THAT(without.message(), HasSubstr("no_such_verilator cannot be started"));
  writeText(places_.sources / "simulator/rtl_model/library_entry.cpp", "this is no source\n");
  const auto damaged = get();
  ASSERT_FALSE(damaged);
  EXPECT_THAT(damaged.message(), HasSubstr("this is no source"));
}

TEST_F(RtlLibraryCache, RefusesAFolderThatOthersCanWriteTo) {
  fs::create_directories(places_.cache);
  fs::permissions(places_.cache, fs::perms::all);
  const auto open = get();
  ASSERT_FALSE(open);
  EXPECT_THAT(open.message(), HasSubstr("others can write there"));
  EXPECT_EQ(runs(), 0);
}

TEST_F(RtlLibraryCache, RefusesOtherPins) {
  std::string entry = kEntry;
  entry.replace(entry.find("PINS"), 4, "1");
  writeText(places_.sources / "simulator/rtl_model/library_entry.cpp", entry);
  const auto other = get();
  ASSERT_FALSE(other);
  EXPECT_THAT(other.message(), HasSubstr("other pins"));
}

TEST(RtlParameters, AreThoseOfThePresets) {
  for (const Preset& preset : presets()) {
    const auto parameters = rtlParameters(*findConfiguration(std::string(preset.name)));
    EXPECT_TRUE(parameters) << preset.name << ": " << parameters.message();
  }
  const auto nvSmall = rtlParameters(*findConfiguration("nv_small"));
  ASSERT_TRUE(nvSmall);
  EXPECT_THAT(*nvSmall, testing::IsSupersetOf({"-GRows=8", "-GBurstBytes=32", "-GFetchBytes=64"}));
}

/// By the engine and by the exact schedule alike.
TEST(RtlParameters, RefuseWhatCannotBeBuilt) {
  const std::pair<const char*, const char*> cases[] = {
      {"[scratchpad]\nbanks = 1\n", "'one': scratchpad.banks is 1"},
      {"[scratchpad]\nbanks = 64\nbank_width = 256\nbytes = 16384\n",
       "'one': scratchpad.bytes is 16384"},
      {"[accumulator]\nbanks = 16\nbytes = 1024\n", "'one': accumulator.banks is 16"},
  };
  for (const auto& [text, message] : cases) {
    const auto one = parseConfiguration(fmt::format("name = \"one\"\n{}", text), "one.toml");
    ASSERT_TRUE(one) << one.message();
    const auto parameters = rtlParameters(*one);
    ASSERT_FALSE(parameters) << text;
    EXPECT_THAT(parameters.message(), HasSubstr(message));
    Binary binary;
    binary.code.push_back(*encode(Insn{.op = Op::kHalt}));
    ScheduleOptions options;
    options.fidelity = Fidelity::kExact;
    const auto time = timeOf(*one, binary, options);
    ASSERT_FALSE(time) << text;
    EXPECT_THAT(time.message(), HasSubstr(message));
  }
}

} // namespace
