//===- main.cpp - candela-gen-models DIR ----------------------------------===//
//
// Exit status: 0 all written, 2 bad usage or a file that could not be written.
//
//===----------------------------------------------------------------------===//
#include "tests/models/gen/networks.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>
#include <system_error>

namespace fs = std::filesystem;
using namespace candela::gen;

namespace {

constexpr uint64_t kSeed = 0;
constexpr int kExitBad = 2;

struct Arguments {
  fs::path directory;
  std::vector<std::string> only;
  bool help = false;
};

int fail(const std::string& message) {
  std::fprintf(stderr, "candela-gen-models: %s\n", message.c_str());
  return kExitBad;
}

std::string joinedNames() {
  std::string names;
  for (const Network& network : networks())
    names += (names.empty() ? "" : ", ") + std::string(network.name);
  return names;
}

void printHelp() {
  std::puts("usage: candela-gen-models DIR [--only NAME]...\n"
            "\n"
            "Writes the benchmark models as DIR/NAME.onnx: opset 17, input `x`, output `out`, "
            "random weights\n"
            "that are the same bits on every machine. DIR is made where it is missing.\n"
            "\n"
            "  --only NAME   write this model alone; may be given again\n"
            "  --help        print this\n"
            "\n"
            "models:");
  for (const Network& network : networks())
    std::printf("  %-14s %s\n", network.name, network.summary);
  std::puts("\nexample:\n  candela-gen-models build/models --only mbv2 --only mbv2_int8");
}

/// The arguments, or a message about the first that is wrong.
std::optional<std::string> parse(int argc, char** argv, Arguments& arguments) {
  constexpr std::string_view kOnly = "--only";
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--help" || argument == "-h") {
      arguments.help = true;
      return {};
    }
    if (argument == kOnly) {
      if (i + 1 == argc) return "--only needs the name of a model; see --help";
      arguments.only.emplace_back(argv[++i]);
    } else if (argument.starts_with("--only=")) {
      arguments.only.emplace_back(argument.substr(kOnly.size() + 1));
    } else if (argument.starts_with("-")) {
      return "unknown option '" + std::string(argument) + "'; see --help";
    } else if (argument.empty() || !arguments.directory.empty()) {
      return "expected one directory, got '" + std::string(argument) + "' too; see --help";
    } else {
      arguments.directory = argument;
    }
  }
  if (arguments.directory.empty()) return "no directory given; see --help";
  for (const std::string& name : arguments.only)
    if (std::ranges::none_of(networks(), [&](const Network& n) { return n.name == name; }))
      return "no model '" + name + "'; there are " + joinedNames();
  return {};
}

/// Writes beside the final place first, so that an interrupted run leaves no half a model under its
/// name.
std::optional<std::string> writeModel(const onnx::ModelProto& model, const fs::path& path) {
  fs::path part = path;
  part += ".part";
  errno = 0;
  std::ofstream file(part, std::ios::binary | std::ios::trunc);
  const bool written = file.is_open() && model.SerializeToOstream(&file) && file.flush();
  const int reason = errno;
  file.close();
  std::error_code error;
  if (!written || !file) {
    fs::remove(part, error);
    return "cannot write " + path.string() + ": " +
           (reason != 0 ? std::strerror(reason) : "write failed");
  }
  fs::rename(part, path, error);
  if (error) {
    std::error_code ignored;
    fs::remove(part, ignored);
    return "cannot write " + path.string() + ": " + error.message();
  }
  return {};
}

} // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  if (const auto message = parse(argc, argv, arguments)) return fail(*message);
  if (arguments.help) {
    printHelp();
    return 0;
  }

  std::error_code error;
  fs::create_directories(arguments.directory, error);
  if (error)
    return fail("cannot make directory " + arguments.directory.string() + ": " + error.message());

  for (const Network& network : networks()) {
    const std::string name = network.name;
    if (!arguments.only.empty() && std::ranges::find(arguments.only, name) == arguments.only.end())
      continue;
    ModelBuilder builder(kSeed);
    const onnx::ModelProto model = network.build(builder, name);
    if (const auto message = writeModel(model, arguments.directory / (name + ".onnx")))
      return fail(*message);
    std::printf("%-14s %4d nodes  %6.2f M parameters  %6.3f GFLOP/item  %6.1f MB\n", network.name,
                model.graph().node_size(), static_cast<double>(builder.parameters()) / 1e6,
                static_cast<double>(builder.flops()) / 1e9,
                static_cast<double>(model.ByteSizeLong()) / 1e6);
    std::fflush(stdout);
  }
  return 0;
}
