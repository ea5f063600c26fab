#pragma once

#include <functional>

#include "core/runtime/plugin/plugin.h"
#include "tests/fuzz/bounds.h"
#include "tests/fuzz/recipe.h"

/// What runs a recipe, and who judges.
namespace candela::fuzz {

struct Executor {
  std::string name; ///< as --backend says it, with " --to-primitives" where that is so
  std::function<Result<std::vector<Tensor>>(const Recipe&)> run;
};
/// "reference"; "soft", "template" or "cpu" with or without " --to-primitives"; cpu also with " --isa TIER".
Result<Executor> executorOf(const std::string& name);

/// What is right for a recipe.
struct Expected {
  std::vector<Tensor> outputs;     ///< of the oracle
  std::vector<Interval> intervals; ///< of each
};
Result<Expected> expect(const Recipe& recipe);

struct Finding {
  enum class Kind : uint8_t { none, refused, failed, wrong } kind = Kind::none;
  std::string text;
};
/// refused: the executor says unsupported; failed: any other error.
Finding judge(const Recipe& recipe, const Expected& expected, const Executor& executor);

} // namespace candela::fuzz
