// candela package: a model becomes object code, with a header in C and a test.
#include <filesystem>

#include "core/compiler/import/formats.h"
#include "core/support/file.h"
#include "core/support/text/scan.h"
#include "tools/candela/package/map.h"
#include "tools/candela/package/names.h"
#include "tools/candela/package/write.h"

namespace candela::tool {
namespace {

constexpr const char* kFooter = R"(Example:
  candela package digits.onnx --dim N=1 --target x86_64-linux-gnu --cpu x86-64-v3 -o digits
  make -f digits/digits.mk digits/digits_test && digits/digits_test

The files need neither the SDK nor a plugin. Control flow and shapes that only a run knows are
refused. The processors are those that LLVM knows by name.)";

struct Arguments {
  PackageRequest request;
  std::optional<uint64_t> seed;
  std::optional<std::string> arenaLimit, flashLimit;
  bool hasMap = false;
};

/// Throws Failure where the text is no number of bytes.
std::optional<uint64_t> limitOf(const char* option, const std::optional<std::string>& text) {
  if (!text) return std::nullopt;
  const std::optional<uint64_t> bytes = text::parseBytes(*text);
  if (!bytes) fail(kBadInput, "{} {}: a number of bytes: 65536, 64K, 1M", option, *text);
  return bytes;
}

/// Throws Failure where --name, or the file's name without it, cannot begin the symbols.
void nameSymbols(PackageRequest& request) {
  if (request.name.empty())
    request.name = nameInC(std::filesystem::path(request.model.path).stem().string());
  if (request.name.size() > 64 || !isNameInC(request.name))
    fail(kBadInput,
         "--name {}: symbols begin with a letter or _, then at most 63 letters, digits and _",
         request.name);
}

void package(Arguments& arguments, Console& console) {
  PackageRequest& request = arguments.request;
  refuseBundle(request.model.path);
  nameSymbols(request);
  request.arenaLimit = limitOf("--arena-limit", arguments.arenaLimit);
  request.flashLimit = limitOf("--flash-limit", arguments.flashLimit);
  request.seed = arguments.seed.value_or(1);
  const auto start = std::chrono::steady_clock::now();
  const PackagedModel model = packageModel(request);
  const PackageSample sample = sampleOf(request, model);
  const PackageFiles files = packageFiles(request, model, sample);
  const double milliseconds = millisecondsSince(start);
  makeFolder(request.output);
  Json written = Json::object();
  for (const auto& [name, bytes] : files) {
    const std::string path = (std::filesystem::path(request.output) / name).string();
    check(writeFile(path, bytes.data(), bytes.size()), kWorkFailed);
    written[name] = bytes.size();
  }
  const cdl_object_facts_t& facts = model.files.facts;
  console.print("{}  {} nodes for {} {}   arena {}   weights {}   made in {}; written {}\n",
                console.bold(fileName(request.model.path)), model.nodes, facts.triple, facts.isa,
                bytesText(facts.arena_bytes), bytesText(facts.weights_bytes),
                timeText(milliseconds), request.output);
  if (request.arenaLimit || request.flashLimit)
    console.print("plan: {}{}\n", model.plan,
                  model.codeBytes
                      ? fmt::format("   flash {}: code {}, weights {}", model.flashBytes(),
                                    model.codeBytes, facts.weights_bytes)
                      : "");
  if (arguments.hasMap) console.printText(mapText(model));
  Json report = console.report("package");
  report["model"] = request.model.path;
  report["output"] = request.output;
  report["name"] = model.name;
  report["target"] = facts.triple;
  report["isa"] = facts.isa;
  report["needs"] = facts.needs;
  report["arena_bytes"] = facts.arena_bytes;
  report["weights_bytes"] = facts.weights_bytes;
  report["plan"] = model.plan;
  if (model.codeBytes) report["code_bytes"] = model.codeBytes;
  if (arguments.hasMap) report["map"] = mapJson(model);
  report["files"] = std::move(written);
  console.writeJson(report);
}

} // namespace

void addPackage(CLI::App& app, Console& console) {
  auto* command = app.add_subcommand(
      "package", "Compile a model ahead of time: object code, a header in C, weights and a test.");
  auto arguments = std::make_shared<Arguments>();
  PackageRequest& request = arguments->request;
  command->add_option("MODEL", request.model.path, "a model: " + import::extensionsText({".cdl"}))
      ->required()
      ->type_name("FILE");
  command->add_option("--target", request.target, "the machine, as LLVM calls it: x86_64-linux-gnu")
      ->required()
      ->type_name("TRIPLE");
  command
      ->add_option("--cpu", request.cpu,
                   "the least processor, as LLVM calls it (x86-64-v3, generic of aarch64, "
                   "generic-rv64, cortex-m4 of thumb, generic of wasm32)")
      ->type_name("NAME");
  command
      ->add_option("--features", request.features, "what it has beside or lacks: +avx512vnni,-fma")
      ->type_name("LIST");
  command->add_flag("--pic", request.isPic,
                    "code that may lie anywhere: of shared libraries, of PIE");
  command->add_option("--name", request.name, "what symbols and files begin with (the file's name)")
      ->type_name("NAME");
  command
      ->add_option("--arena-limit", arguments->arenaLimit,
                   "the most memory of a run: plans that take less are tried")
      ->type_name("BYTES");
  command->add_option("--flash-limit", arguments->flashLimit, "the most that code and weights take")
      ->type_name("BYTES");
  command->add_flag("--map", arguments->hasMap,
                    "print the arena by buffer and the weights by instruction");
  addRepeated(command, "--shape", request.model.shapes, "the shape of an input: images=1x3x224x224",
              "NAME=DIMS");
  addRepeated(command, "--dim", request.model.dims, "the value of a symbolic dimension: N=1",
              "NAME=VALUE");
  request.model.addStatesTo(command);
  addRepeated(command, "--input", request.inputs,
              "an input of the test that is written with it (random numbers)", "NAME=FILE");
  addSeedOption(command, arguments->seed, "another seed of the random inputs", "--seed");
  command->add_option("-o,--output", request.output, "the folder")->required()->type_name("DIR");
  addJsonOption(command, console);
  command->footer(kFooter);
  command->callback([arguments, &console] { package(*arguments, console); });
}

} // namespace candela::tool
