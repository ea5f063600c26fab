#include "options.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string_view>

namespace platform {

namespace {

constexpr const char* kUsage =
    "usage: virtual_platform PROGRAM.npubin [--npu CONFIG] [--random SEED] [--set REGION=FILE]...\n"
    "                        [--dump REGION=FILE]... [--traffic MB/S] [--fast] [--vcd NAME]\n"
    "Exit status: 0 the program halted, and memory is that of the functional engine; 1 it faulted, "
    "or memory\n"
    "differs; 2 bad usage or input.\n";

/// REGION=FILE
void assign(std::map<std::string, std::string>& to, const std::string& option,
            const std::string& text) {
  const size_t at = text.find('=');
  if (at == text.npos) fail(option + " " + text + ": REGION=FILE is wanted");
  if (!to.emplace(text.substr(0, at), text.substr(at + 1)).second)
    fail(option + " " + text + ": the region was named before");
}

/// All of the text is the number.
template <typename Number> bool isNumber(const std::string& text, Number& number) {
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, number);
  return error == std::errc{} && at == end;
}

constexpr std::string_view kWithValue[] = {"--npu",  "--random",  "--set",
                                           "--dump", "--traffic", "--vcd"};

/// One of kWithValue.
void take(Options& options, const std::string& option, const std::string& value) {
  if (option == "--npu") options.configuration = value;
  if (option == "--set") assign(options.set, option, value);
  if (option == "--dump") assign(options.dump, option, value);
  if (option == "--vcd") options.vcd = value;
  if (option == "--random" && !isNumber(value, options.seed.emplace()))
    fail("--random " + value + ": a number from 0 to 2^64 - 1 is wanted");
  if (option != "--traffic") return;
  if (!isNumber(value, options.traffic) || !(options.traffic > 0 && options.traffic < 1e6))
    fail("--traffic " + value + ": MB/s above 0 and below 1e6 are wanted");
}

} // namespace

void fail(const std::string& message) {
  std::fprintf(stderr, "virtual_platform: %s\n", message.c_str());
  std::exit(2);
}

Options parseOptions(int argc, char** argv) {
  Options options;
  const std::vector<std::string> given(argv + 1, argv + argc);
  for (size_t i = 0; i < given.size(); ++i) {
    const std::string& option = given[i];
    if (option == "--help" || option == "-h") {
      std::fputs(kUsage, stdout);
      std::exit(0);
    }
    if (option == "--fast") {
      options.fidelity = candela::npu::Fidelity::kFast;
      continue;
    }
    if (!option.starts_with("-")) {
      if (!options.program.empty())
        fail(option + ": there is a program already, " + options.program);
      options.program = option;
      continue;
    }
    if (std::ranges::find(kWithValue, option) == std::end(kWithValue))
      fail(option + ": there is no such option; --help lists them");
    if (++i == given.size()) fail(option + ": a value is wanted");
    take(options, option, given[i]);
  }
  if (options.program.empty()) fail("a program is wanted; --help says more");
  return options;
}

std::vector<std::byte> readFile(const std::string& path) {
  if (!std::filesystem::is_regular_file(path)) fail(path + ": there is no such file");
  std::ifstream file(path, std::ios::binary);
  std::vector<char> bytes((std::istreambuf_iterator<char>(file)), {});
  if (!file) fail(path + ": it cannot be read");
  const auto view = std::as_bytes(std::span(bytes));
  return {view.begin(), view.end()};
}

void writeFile(const std::string& path, const std::vector<std::byte>& bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  if (!file.flush()) fail(path + ": it cannot be written");
}

} // namespace platform
