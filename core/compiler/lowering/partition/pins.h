#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/compiler/graph/graph.h"

/// Which nodes the user wants where.
namespace candela::lowering::partition {

/// A line of a file of pins.
struct Pin {
  std::string pattern; ///< a glob of names of nodes, or of ops behind "op:"
  size_t target = 0;
  std::string device; ///< as the user wrote it
  std::string where;  ///< "pins.txt:3"

  /// An op matches whatever the case of its letters.
  bool matches(const graph::Node& node) const;
};

/// Lines PATTERN = DEVICE; # begins a comment, at the start of a line or behind a space. `devices`:
/// names by target, the host last, which is "host" and "soft" too; NAME:0 is NAME. Failure:
/// invalid_argument naming the file, the line and what is wrong.
Result<std::vector<Pin>> parsePins(std::string_view text, const std::string& file,
                                   std::span<const std::string> devices);

} // namespace candela::lowering::partition
