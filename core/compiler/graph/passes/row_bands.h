#pragma once

#include "core/compiler/graph/graph.h"

/// Rows of images computed a part at a time, for devices with little memory: what lies between two
/// values is never there as a whole. Rows that windows of two bands read are computed twice.
namespace candela::graph::passes {

/// A node that computes rows of its result [n, c, h, w] from rows of one operand; the others depend
/// on no input.
struct RowStep {
  Node* node = nullptr;
  size_t from = 0; ///< the place of that operand
  Value* read() const { return node->operand(from); }
};

/// Steps of which each reads the one before it. Only the last result is used elsewhere.
using RowRun = std::vector<RowStep>;

/// The longest runs of a graph.
std::vector<RowRun> rowRuns(const Graph& graph);

/// A run in so many bands, one after the other.
struct RowCut {
  RowRun run;
  int64_t bands = 1;
  uint64_t bytes = 0; ///< at most alive at once in its run: of values that fusion leaves in memory
  double more = 0;    ///< operations that are done again, less those of rows that no window reads
};

/// The ways to cut the run that takes most memory into less, the least work first; none where no
/// way does. They refer to nodes of the graph.
std::vector<RowCut> rowCuts(const Graph& graph);

/// The most that a run takes, as RowCut::bytes counts.
uint64_t rowBytes(const Graph& graph);

/// Cuts runs until none takes more than so many bytes, or nothing takes less: those that take most
/// first, each with the least work that does. Returns a line for people, "'Conv_0' to 'Relu_5' in 4
/// bands of rows"; empty: nothing was cut. Failures: those of cutRows().
Result<std::string> cutToFit(Graph& graph, uint64_t bytes);

/// Computes a run in bands: a slice of what it reads for each, and the results joined. All values
/// stay the same to the bit. Failure: invalid_argument where there are more bands than rows; the
/// graph may then hold nodes that nothing uses.
Status cutRows(Graph& graph, const RowRun& run, int64_t bands);

} // namespace candela::graph::passes
