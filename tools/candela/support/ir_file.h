#pragma once

#include <string>

#include "core/compiler/driver/pipeline.h"
#include "core/support/diagnostic.h"

/// Files that hold an IR, whatever form it has.
namespace candela::tool {

using driver::Ir;
using driver::parseIr;

/// The whole file as text. Failure: not_found, io.
Result<std::string> readText(const std::string& path);

/// Options of import from --dim NAME=1 and --shape NAME=1x3. Throws Failure on bad usage.
struct ImportFlags {
  std::vector<std::string> dims, shapes;
  import::ClaimOp claim = {}; ///< who may claim nodes that import does not know
};
/// As import takes them. Throws Failure on bad usage.
import::ImportOptions importOptions(const ImportFlags& flags);
/// A graph from a model or .cdl file. Throws Failure naming the file; a program is refused.
graph::Graph readGraph(const std::string& path, const ImportFlags& flags);

/// The Graphs of a model or .cdl file, several where it decides at run; `flow`: what is between
/// them then, as text.
std::vector<graph::Graph> readGraphs(const std::string& path, const ImportFlags& flags,
                                     std::string& flow);

/// The text; resources go to `resourceFolder` (empty: nowhere). Throws Failure.
std::string printIr(const Ir& ir, const std::string& resourceFolder);
std::string printGraph(const graph::Graph& graph, const std::string& resourceFolder);
std::string printProgram(const program::Program& program, const std::string& resourceFolder);

/// Writes text to a file, resources beside it: the folder to print with.
std::string resourceFolderOf(const std::string& path);

/// "copy 12, matmul 53": instructions of each kind, primitives first, in the order of their
/// numbers.
std::string kindCounts(const program::Program& program);

} // namespace candela::tool
