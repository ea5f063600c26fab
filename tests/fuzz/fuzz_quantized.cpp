// Random quantized graphs, equal to the bit on the reference, soft, every tier of cpu that this
// machine has, and npu_sim. The graph is optimized as the driver does, and judged where nothing of
// it computes with floats any more: what is left then has one result.
#include <cstdlib>
#include <cstring>

#include "conformance/port.h"
#include "conformance/random/run_on.h"
#include "core/compiler/driver/pipeline.h"
#include "core/compiler/graph/passes/passes.h"
#include "core/reference/reference.h"
#include "tests/fuzz/arguments.h"
#include "tests/fuzz/quantized_graphs.h"

namespace candela::conformance {
namespace {

constexpr const char* kUsage =
    R"(Usage: fuzz_quantized [--seed N] [--count N] [--backends LIST] [--out DIR]
  --seed N         the first seed (1); graph i has seed N + i
  --count N        how many graphs (200)
  --backends LIST  separated by commas, each a name and options: cpu:isa=avx512
                   (soft, cpu in every tier, npu_sim as gem16 and edge8t)
  --out DIR        where graphs that fail go (fuzz_failures)
)";

const std::vector<std::string> kBackends = {"soft",
                                            "cpu:isa=x86-64-v3",
                                            "cpu:isa=avxvnni",
                                            "cpu:isa=avx512",
                                            "cpu:isa=avx512vnni",
                                            "cpu:isa=amx",
                                            "npu_sim:npu=gem16:engine=func",
                                            "npu_sim:npu=edge8t:engine=func"};

class Comparer {
public:
  explicit Comparer(const FuzzArguments& arguments) : arguments_(arguments) {}

  int run() {
    for (const std::string& name : arguments_.backends) addSide(name);
    if (sides_.empty()) return 2;
    for (uint64_t i = 0; i < arguments_.count; ++i) {
      compareGraph(arguments_.seed + i);
      if ((i + 1) % 500 == 0) {
        fmt::print("{} graphs, {} findings\n", i + 1, findings_);
        std::fflush(stdout);
      }
    }
    report();
    // A run that compared little would prove little.
    const bool isEmpty = arguments_.count >= 50 && whole_ * 4 < arguments_.count * 3;
    if (isEmpty) fmt::print("too few graphs became integers\n");
    return findings_ || isEmpty ? 1 : 0;
  }

private:
  struct Side {
    std::string name;
    std::unique_ptr<Port> port;
    std::vector<std::shared_ptr<runtime::plugin::Device>> devices;
  };

  /// "name:key=value:key=value". What this machine does not have is left out, and said.
  void addSide(const std::string& text) {
    const std::vector<std::string> parts = split(text);
    runtime::plugin::Options options;
    if (parts[0] == "cpu") options.emplace("threads", "1");
    for (size_t i = 1; i < parts.size(); ++i) {
      const size_t equals = parts[i].find('=');
      options.emplace(parts[i].substr(0, equals), parts[i].substr(equals + 1));
    }
    Side side{text, std::make_unique<Port>(parts[0], options), {}};
    auto devices = side.port->devices();
    if (!devices) {
      fmt::print("{} is left out: {}\n", text, devices.status().message());
      return;
    }
    side.devices = std::move(devices).value();
    sides_.push_back(std::move(side));
  }
  static std::vector<std::string> split(const std::string& text) {
    std::vector<std::string> parts;
    for (size_t at = 0; at <= text.size();) {
      const size_t end = std::min(text.find(':', at), text.size());
      parts.push_back(text.substr(at, end - at));
      at = end + 1;
    }
    return parts;
  }

  static bool hasFloats(const graph::Graph& graph) {
    for (const auto& node : graph.nodes())
      for (const graph::Value* result : node->results())
        if (isFloat(result->type.elem) && !result->isConstant()) return true;
    return false;
  }

  static bool isSame(const Tensor& a, const Tensor& b) {
    return a.elem == b.elem && a.dims == b.dims &&
           std::memcmp(a.bytes.data(), b.bytes.data(), a.sizeBytes()) == 0;
  }

  Result<std::vector<Tensor>> expected(const random::Recipe& recipe, bool& isWhole) {
    CDL_ASSIGN(graph::Graph graph, recipe.build());
    CDL_TRY(graph::passes::optimize(graph));
    isWhole = !hasFloats(graph);
    for (const auto& node : graph.nodes()) ++ops_[node->kind];
    return reference::run(graph, recipe.inputs());
  }

  Result<std::vector<Tensor>> runOn(const Side& side, const random::Recipe& recipe) {
    CDL_ASSIGN(graph::Graph graph, recipe.build());
    CDL_ASSIGN(const auto session,
               driver::compile(std::move(graph), "quantized", side.devices, {}));
    return session->run(recipe.inputs());
  }

  void compareGraph(uint64_t seed) {
    const random::Recipe recipe = quantizedGraph(seed);
    bool isWhole = false;
    const auto right = expected(recipe, isWhole);
    if (!right) return note(seed, recipe, {}, "reference", right.status().message());
    if (!isWhole) return;
    ++whole_;
    for (const Side& side : sides_) {
      const auto got = runOn(side, recipe);
      if (!got) {
        note(seed, recipe, *right, side.name, got.status().message());
        continue;
      }
      for (size_t i = 0; i < right->size(); ++i)
        if (!isSame((*got)[i], (*right)[i]))
          note(seed, recipe, *right, side.name,
               fmt::format("output {} differs from the reference", i));
    }
  }

  void note(uint64_t seed, const random::Recipe& recipe, std::span<const Tensor> right,
            const std::string& who, const std::string& what) {
    ++findings_;
    fmt::print("FOUND  seed {} on {}: {}\n", seed, who, what);
    const std::string folder = fmt::format("{}/quantized_{}", arguments_.out, seed);
    if (const auto command = random::writeCase(recipe, right, 0, folder, who); command)
      fmt::print("{}\n", *command);
    std::fflush(stdout);
  }

  void report() {
    fmt::print("{} graphs from seed {}, {} of integers alone, {} findings on {} backends\n",
               arguments_.count, arguments_.seed, whole_, findings_, sides_.size());
    for (const auto& [kind, times] : ops_)
      if (kind != graph::OpKind::Constant) fmt::print("  {:<20} {}\n", graph::opName(kind), times);
  }

  const FuzzArguments& arguments_;
  std::vector<Side> sides_;
  std::map<graph::OpKind, uint64_t> ops_;
  uint64_t whole_ = 0, findings_ = 0;
};

} // namespace
} // namespace candela::conformance

int main(int count, char** words) {
  candela::conformance::FuzzArguments arguments{.count = 200,
                                                .backends = candela::conformance::kBackends};
  if (!candela::conformance::parseArguments(count, words, arguments)) {
    fmt::print(stderr, "{}", candela::conformance::kUsage);
    return 2;
  }
#ifdef PLUGIN_PATH
  setenv("CANDELA_PLUGIN_PATH", PLUGIN_PATH, 0); // those of this build
#endif
  return candela::conformance::Comparer(arguments).run();
}
