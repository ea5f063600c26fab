#pragma once

#include <functional>

#include "conformance/case.h"
#include "conformance/judge/bounds.h"
#include "conformance/random/recipe.h"

/// What runs a recipe, and who judges.
namespace candela::conformance::random {

struct Executor {
  std::string name; ///< as --backend says it, with " --to-primitives" where that is so
  /// `work`: where the nodes went is added to it.
  std::function<Result<std::vector<Tensor>>(const Recipe&, Work& work)> run;
};
/// Whatever the port has, which must outlive it; what no device takes runs on the host.
Executor executorOn(Port& port, bool toPrimitives);
/// "reference"; "soft", "template" or "cpu" with or without " --to-primitives"; cpu also with "
/// --isa TIER".
Result<Executor> executorOf(const std::string& name);

/// What is right for a recipe.
struct Expected {
  std::vector<Tensor> outputs;            ///< of the oracle
  std::vector<judge::Interval> intervals; ///< of each
};
Result<Expected> expect(const Recipe& recipe);
/// How far results may be off, by the intervals of the inputs.
using Analysis = std::function<Result<std::vector<judge::Interval>>(
    const graph::Graph& graph, std::span<const judge::Interval> inputs)>;
Result<Expected> expect(const Recipe& recipe, const Analysis& analysis);

struct Finding {
  enum class Kind : uint8_t { none, refused, failed, wrong, crashed } kind = Kind::none;
  std::string text;
};
/// refused: the executor says unsupported; failed: any other error.
Finding judge(const Recipe& recipe, const Expected& expected, const Executor& executor,
              Work* work = nullptr);
/// Whether the host alone refuses it too: lowered forms are instructions, which some are in no row
/// of anyone. What the host takes no backend may refuse, as the host does what a backend leaves.
bool mayRefuse(const Recipe& recipe);

/// A failure that was cut down to what still fails in the same way, and what to type to see it.
struct Reduced {
  Recipe recipe;
  Finding finding;
  std::string command;
};
/// Reduces, asking at most `limit` times, and writes what is left to the folder (writeCase).
Result<Reduced> writeReduced(const Recipe& recipe, Finding::Kind kind,
                             const std::function<Finding(const Recipe&, const Expected&)>& judge,
                             const std::string& folder, const std::string& backend,
                             int limit = 3000);
/// The recipe as it is, with what is expected of it.
Result<std::string> writeWhole(const Recipe& recipe, const Expected& expected,
                               const std::string& folder, const std::string& backend);

} // namespace candela::conformance::random
