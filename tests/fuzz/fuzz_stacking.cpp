// Random graphs compiled twice on each backend, stacked and with every node an instruction of its
// own. Both are judged within the bounds of a running error analysis, and where that leaves one
// value (integers that no rounded real became) the two must agree bit by bit. Counts instructions,
// expressions and the bytes that their views read and write.
#include <cstdlib>
#include <cstring>

#include "conformance/port.h"
#include "conformance/random/run_on.h"
#include "core/compiler/driver/pipeline.h"
#include "core/compiler/graph/text.h"
#include "core/compiler/program/image.h"
#include "core/support/file.h"
#include "tests/fuzz/arguments.h"
#include "tests/fuzz/stacked_graphs.h"

namespace candela::conformance {
namespace {

constexpr const char* kUsage =
    R"(Usage: fuzz_stacking [--seed N] [--count N] [--backends LIST] [--out DIR] [--json FILE]
  --seed N         the first seed (1); graph i has seed N + i
  --count N        how many graphs (200)
  --backends LIST  separated by commas (soft,template,cpu)
  --out DIR        where graphs that fail go (fuzz_failures)
  --json FILE      what was counted
)";

struct Arguments : FuzzArguments {
  Arguments() : FuzzArguments{.count = 200, .backends = {"soft", "template", "cpu"}} {}
  std::string json;
};

/// What the Programs of one form hold.
struct Tally {
  uint64_t instructions = 0, expressions = 0, steps = 0, prologues = 0, bytes = 0;
  void add(const cdl_image_t* image) {
    for (uint32_t i = 1; i < image->instrs.count; ++i) {
      const cdl_instr_t& instr = *cdl_get_instr(image, i);
      ++instructions;
      if (instr.expr) ++expressions, steps += cdl_get_expr(image, instr.expr)->steps;
      prologues += instr.prologue != 0;
      for (uint32_t v = 0; v < uint32_t(instr.inputs) + instr.outputs; ++v)
        bytes += bytesOf(*cdl_get_input(image, &instr, v));
    }
  }
  /// Each element once: what repeats by stride 0 is read once.
  static uint64_t bytesOf(const cdl_view_t& view) {
    uint64_t count = 1;
    for (int d = 0; d < view.rank; ++d)
      count *= view.strides[d] == 0 && view.dims[d] > 0 ? 1 : static_cast<uint64_t>(view.dims[d]);
    return elemBytes(static_cast<Elem>(view.elem), count);
  }
};

class Comparer {
public:
  explicit Comparer(const Arguments& arguments) : arguments_(arguments) {}

  int run() {
    for (const std::string& name : arguments_.backends) {
      runtime::plugin::Options options;
      if (name == "cpu") options.emplace("threads", "1");
      auto& side = sides_.emplace_back();
      side.name = name;
      side.port = std::make_unique<Port>(name, options);
      if (const auto devices = side.port->devices(); !devices) {
        fmt::print(stderr, "{}\n", devices.status().message());
        return 2;
      }
    }
    for (uint64_t i = 0; i < arguments_.count; ++i) {
      compareGraph(arguments_.seed + i);
      if ((i + 1) % 500 == 0) {
        fmt::print("{} graphs, {} findings\n", i + 1, findings_);
        std::fflush(stdout);
      }
    }
    report();
    // A run in which nothing was stacked, or nothing was exact, would prove nothing.
    const bool isEmpty = arguments_.count >= 50 && (exact_ == 0 || sides_[0].stacked == 0 ||
                                                    sides_[0].tallies[1].prologues == 0);
    if (isEmpty) fmt::print("nothing was compared\n");
    return findings_ || isEmpty ? 1 : 0;
  }

private:
  struct Side {
    std::string name;
    std::unique_ptr<Port> port;
    Tally tallies[2]; ///< unstacked, stacked
    uint64_t stacked = 0, refused = 0;
  };

  Result<std::vector<Tensor>> runOn(Side& side, const random::Recipe& recipe, bool stack,
                                    Tally& tally) {
    CDL_ASSIGN(graph::Graph graph, recipe.build());
    CDL_ASSIGN(const auto devices, side.port->devices());
    driver::CompileOptions options;
    options.stack = stack;
    CDL_ASSIGN(const auto session, driver::compile(std::move(graph), "stacking", devices, options));
    for (const runtime::bundle::BundlePartition& part : session->bundle().partitions)
      tally.add(reinterpret_cast<const cdl_image_t*>(part.image.data()));
    return session->run(recipe.inputs());
  }

  void compareGraph(uint64_t seed) {
    const random::Recipe recipe = stackedGraph(seed);
    nodes_ += recipe.steps.size();
    const auto expected = random::expect(recipe);
    if (!expected) return note(seed, recipe, "the analysis", expected.status().message());
    for (Side& side : sides_) {
      std::vector<Tensor> got[2];
      Tally own[2];
      bool isWhole = true;
      for (int form = 0; form < 2 && isWhole; ++form) {
        const std::string who = side.name + (form ? "" : " --unstacked");
        auto outputs = runOn(side, recipe, form != 0, own[form]);
        if (!outputs) {
          isWhole = false;
          if (outputs.status().code() == Code::unsupported && random::mayRefuse(recipe))
            ++side.refused;
          else
            note(seed, recipe, who, outputs.status().message());
          break;
        }
        got[form] = std::move(*outputs);
        for (size_t i = 0; i < got[form].size(); ++i)
          if (const std::string text = judge::outside(expected->intervals[i], got[form][i]);
              !text.empty())
            note(seed, recipe, who, fmt::format("output y{}: {}", recipe.outputs[i], text));
      }
      if (!isWhole) continue;
      for (int form = 0; form < 2; ++form) {
        Tally& all = side.tallies[form];
        all.instructions += own[form].instructions, all.expressions += own[form].expressions;
        all.steps += own[form].steps, all.prologues += own[form].prologues,
            all.bytes += own[form].bytes;
      }
      side.stacked += own[1].instructions < own[0].instructions;
      if (own[1].bytes > own[0].bytes)
        note(seed, recipe, side.name,
             fmt::format("stacked it moves {} bytes, else {}", own[1].bytes, own[0].bytes));
      for (size_t i = 0; i < got[0].size(); ++i)
        compareBits(seed, recipe, side, i, expected->intervals[i], got[0][i], got[1][i]);
    }
  }

  void compareBits(uint64_t seed, const random::Recipe& recipe, const Side& side, size_t output,
                   const judge::Interval& interval, const Tensor& a, const Tensor& b) {
    if (isFloat(a.elem)) {
      floats_ += static_cast<uint64_t>(a.count());
      return;
    }
    for (int64_t i = 0; i < a.count(); ++i) {
      if (!interval.isPoint(i)) continue;
      ++exact_;
      if (loadElement(a.elem, a.bytes.data(), i) == loadElement(b.elem, b.bytes.data(), i))
        continue;
      return note(seed, recipe, side.name,
                  fmt::format("output y{}: element {} differs", recipe.outputs[output], i));
    }
  }

  void note(uint64_t seed, const random::Recipe& recipe, const std::string& who,
            const std::string& what) {
    ++findings_;
    fmt::print("FOUND  seed {} on {}: {}\n", seed, who, what);
    const auto graph = recipe.build();
    const auto text = graph ? graph::print(*graph) : graph.status();
    const std::string folder = fmt::format("{}/stacking_{}", arguments_.out, seed);
    if (const auto expected = random::expect(recipe); expected) {
      const auto command = random::writeWhole(recipe, *expected, folder, who);
      fmt::print("{}\n", command ? *command : command.status().message());
    }
    std::fflush(stdout);
  }

  void report() {
    fmt::print("{} graphs from seed {}, {:.1f} nodes each, {} findings; {} integers equal bit by "
               "bit, {} reals within "
               "their bounds\n",
               arguments_.count, arguments_.seed,
               static_cast<double>(nodes_) /
                   static_cast<double>(std::max<uint64_t>(1, arguments_.count)),
               findings_, exact_, floats_);
    std::string list;
    for (const Side& side : sides_) {
      const Tally &apart = side.tallies[0], &stacked = side.tallies[1];
      fmt::print("{:<9} {:>6} graphs stacked, {} refused; instructions {} -> {}, bytes {} -> {}, "
                 "{} expressions of {} steps, {} "
                 "before a reduction\n",
                 side.name, side.stacked, side.refused, apart.instructions, stacked.instructions,
                 apart.bytes, stacked.bytes, stacked.expressions, stacked.steps, stacked.prologues);
      list += fmt::format(
          "{}\n    {{\"backend\": \"{}\", \"graphs_stacked\": {}, \"refused\": {}, "
          "\"instructions\": [{}, {}], "
          "\"bytes\": [{}, {}], \"expressions\": {}, \"steps\": {}, \"prologues\": {}}}",
          list.empty() ? "" : ",", side.name, side.stacked, side.refused, apart.instructions,
          stacked.instructions, apart.bytes, stacked.bytes, stacked.expressions, stacked.steps,
          stacked.prologues);
    }
    if (arguments_.json.empty()) return;
    const std::string text = fmt::format(
        "{{\"seed\": {}, \"graphs\": {}, \"nodes\": {}, \"findings\": {}, \"integers_equal\": {}, "
        "\"reals_within_bounds\": {},\n  \"backends\": [{}]}}\n",
        arguments_.seed, arguments_.count, nodes_, findings_, exact_, floats_, list);
    if (const Status status = writeFile(arguments_.json, text.data(), text.size()); !status.isOk())
      fmt::print(stderr, "{}\n", status.message());
  }

  const Arguments& arguments_;
  std::vector<Side> sides_;
  uint64_t nodes_ = 0, findings_ = 0, exact_ = 0, floats_ = 0;
};

} // namespace
} // namespace candela::conformance

int main(int count, char** words) {
  candela::conformance::Arguments arguments;
  if (!candela::conformance::parseArguments(count, words, arguments,
                                            {{"--json", &arguments.json}})) {
    fmt::print(stderr, "{}", candela::conformance::kUsage);
    return 2;
  }
#ifdef PLUGIN_PATH
  setenv("CANDELA_PLUGIN_PATH", PLUGIN_PATH, 0); // those of this build
#endif
  return candela::conformance::Comparer(arguments).run();
}
