// candela lower: what a model becomes for a backend.
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "core/passes/passes.h"
#include "core/program/image.h"
#include "core/runtime/bundle/bundle.h"
#include "core/runtime/plugin/plugin.h"
#include "core/soft/soft.h"
#include "core/support/file.h"
#include "core/target/lower/lower.h"
#include "tools/candela/ir_file.h"
#include "tools/candela/model.h"

namespace candela::tool {
namespace {

constexpr const char* kFooter = R"(Examples:
  candela lower digits.onnx --dim N=1 --to primitives -o digits.cdl
  candela run digits.cdl --random 1
  candela lower digits.onnx --dim N=1 --graph

Prints the Program of every partition, its instructions counted in a comment. With -o constants of more than 64 elements
lie beside the file; several partitions are several files: F.0.cdl, F.1.cdl. --graph: the lowered graph instead.)";

struct Arguments {
  ModelOptions model;
  std::string to, output;
  bool graph = false;
};

/// A folder that is gone at the end.
class ScratchFolder {
public:
  ScratchFolder() {
    const char* parent = std::getenv("TMPDIR");
    path_ = fmt::format("{}/candela.XXXXXX", parent ? parent : "/tmp");
    if (!mkdtemp(path_.data())) fail(kWorkFailed, "{}: cannot make a folder", path_);
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  std::string file(const char* name) const { return path_ + "/" + name; }

private:
  std::string path_;
};

struct Lowered {
  std::string backend;
  program::Program program;
};

/// The Programs that would run, in the order of the partitions: those of the bundle that compile writes.
std::vector<Lowered> lowerToPrograms(const ModelOptions& options) {
  const ScratchFolder scratch;
  const std::string path = scratch.file("lowered.cdb");
  try {
    compileModel(options).save(path);
  } catch (const sdk::Error& error) {
    failWith(error, options.path);
  }
  const runtime::Bundle bundle = check(runtime::loadBundle(path), kWorkFailed);
  std::vector<Lowered> programs;
  for (const runtime::BundlePartition& partition : bundle.partitions) {
    const auto payloads = [&](const cdl_constant_t& constant) -> Result<Payload> {
      for (const runtime::BundleConstant& stored : bundle.constants)
        if (std::memcmp(stored.hash.data(), constant.hash, sizeof constant.hash) == 0) {
          const Elem elem = static_cast<Elem>(constant.elem);
          const int64_t count = static_cast<int64_t>(constant.bytes * 8 / static_cast<uint64_t>(elemBits(elem)));
          // Copied: the mapped file does not outlive this function.
          return Payload::data({elem, {count}, Bytes::copyOf(stored.bytes.data(), constant.bytes)});
        }
      return failure(Code::internal, "the bundle has no content for a constant of {} bytes", constant.bytes);
    };
    programs.push_back({partition.backend.empty() ? "soft" : partition.backend,
                        check(program::fromImage(partition.image, payloads), kWorkFailed)});
  }
  return programs;
}

graph::Graph lowerToGraph(const ModelOptions& options) {
  graph::Graph graph = readGraph(options.path, {options.dims, options.shapes});
  check(passes::optimize(graph).context(options.path));
  std::shared_ptr<runtime::Device> device;
  std::optional<target::Target> soft;
  const target::Target* target = nullptr;
  if (options.backends == "soft") {
    soft.emplace(check(target::Target::fromCapabilities("soft", soft::capabilities(), true), kWorkFailed));
    target = &*soft;
  } else {
    device = check(check(runtime::findPlugin(options.backends))->open(0, {}));
    target = &device->target();
  }
  target::LowerOptions lowering;
  lowering.toPrimitives = options.toPrimitives;
  check(target::lower(graph, *target, lowering).context(options.path));
  return graph;
}

/// F.cdl, or F.0.cdl, F.1.cdl when there are several.
std::string partFile(const std::string& output, size_t index, size_t count) {
  if (count == 1) return output;
  const std::filesystem::path path(output);
  return (path.parent_path() / fmt::format("{}.{}{}", path.stem().string(), index, path.extension().string())).string();
}

void lower(Arguments& arguments, Console& console) {
  if (!arguments.to.empty() && arguments.to != "primitives") fail(kBadInput, "--to {}: only 'primitives' is known", arguments.to);
  ModelOptions& options = arguments.model;
  options.toPrimitives |= arguments.to == "primitives";
  if (arguments.graph) {
    const graph::Graph graph = lowerToGraph(options);
    if (arguments.output.empty()) {
      console.print("{}", printGraph(graph, ""));
    } else {
      const std::string text = printGraph(graph, resourceFolderOf(arguments.output));
      check(writeFile(arguments.output, text.data(), text.size()), kWorkFailed);
    }
    return;
  }
  const std::vector<Lowered> programs = lowerToPrograms(options);
  Json report = console.report("lower");
  report["model"] = options.path;
  report["partitions"] = Json::array();
  for (size_t i = 0; i < programs.size(); ++i) {
    const auto& [backend, program] = programs[i];
    const std::string counts = kindCounts(program);
    const std::string header = fmt::format("// {}\n// partition {} of {} on {}\n", counts, i + 1, programs.size(), backend);
    const std::string file = arguments.output.empty() ? "" : partFile(arguments.output, i, programs.size());
    const std::string text = header + printProgram(program, file.empty() ? "" : resourceFolderOf(file));
    if (file.empty()) {
      console.print("{}", text);
    } else {
      check(writeFile(file, text.data(), text.size()), kWorkFailed);
      console.print("{}  {} on {}: {}\n", console.bold(file), program.instrs.size(), backend, counts);
    }
    Json kinds = Json::object();
    for (const program::Instr& instr : program.instrs) {
      Json& count = kinds[std::string(program::kindName(instr.kind))];
      count = count.is_null() ? 1 : count.get<int>() + 1;
    }
    report["partitions"].push_back({{"backend", backend}, {"instructions", program.instrs.size()}, {"counts", std::move(kinds)},
                                    {"arena_bytes", program.arenaBytes()}});
  }
  console.writeJson(report);
}

} // namespace

void addLower(CLI::App& app, Console& console) {
  auto* command = app.add_subcommand("lower", "Show what a model becomes: the Programs that a backend would run.");
  auto arguments = std::make_shared<Arguments>();
  arguments->model.addTo(command);
  command->add_option("--to", arguments->to, "primitives: only the 13 primitives")->type_name("LEVEL");
  command->add_option("-o,--output", arguments->output, "write here, large constants beside it")->type_name("F.cdl");
  command->add_flag("--graph", arguments->graph, "the graph as it is after lowering, for one backend");
  addJsonOption(command, console);
  command->footer(kFooter);
  command->callback([arguments, &console] { lower(*arguments, console); });
}

} // namespace candela::tool
