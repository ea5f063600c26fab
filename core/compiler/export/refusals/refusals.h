#pragma once

#include <string>
#include <vector>

#include "core/compiler/graph/graph.h"

namespace candela::exporter {

/// Thrown where a node has no form in what is written; the writer lists it with the node.
struct Refusal {
  std::string why;
};

template <typename... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) {
  throw Refusal{fmt::format(format, std::forward<Args>(args)...)};
}

/// The value of a Result, or why there is none as a Refusal.
template <typename T> T need(Result<T> result) {
  if (!result) throw Refusal{result.status().message()};
  return std::move(result).value();
}

/// Everything that one file cannot say, in the order of the nodes.
class Refusals {
public:
  void add(const graph::Node& node, std::string_view why);
  void add(std::string line) { lines_.push_back(std::move(line)); }
  /// Ok where nothing was added, else `unsupported`: a line for each node.
  Status status(std::string_view format) const;

private:
  std::vector<std::string> lines_;
};

} // namespace candela::exporter
