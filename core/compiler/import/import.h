#pragma once

#include <map>
#include <optional>
#include <string>

#include "core/compiler/graph/graph.h"
#include "core/compiler/import/custom.h"

/// ONNX -> Graph in one pass: bind dims, infer, fold shape arithmetic, inline functions, raise
/// every node to its newest meaning. Every unsupported node and every unbound dim is listed at
/// once.
namespace candela::import {

struct ImportOptions {
  /// --dim N=1: symbolic dims by name.
  std::map<std::string, int64_t> dims = {};
  /// --shape input=1x3x224x224; binds the names of the input's dims too. An input for which the
  /// model has a value, its default, is that constant unless it has a shape here.
  std::map<std::string, Shape> shapes = {};
  /// Inputs that become constants (shape operands of node tests).
  std::map<std::string, Tensor> frozen = {};
  /// No larger constant is made by folding unless it shrinks (architecture §4.6).
  uint64_t foldLimitBytes = 4096;
  /// Of importScript: inputs whose shape nothing binds wait for the run.
  bool bindAtRun = false;
  /// Asked about nodes of other domains than ONNX's own that import does not know; null: they are
  /// unsupported.
  ClaimOp claim = {};
  /// Of the numbers of random nodes that have no seed of their own; nullopt: those that follow from
  /// the nodes' names alone.
  std::optional<uint64_t> randomSeed = {};
};

/// Failure, one line per diagnostic, each with file and node: bad_model; invalid_argument when all
/// that is wrong are dims that the caller left unbound or bound wrongly; unsupported when every
/// diagnostic is something that the model may say but that is not supported.
Result<graph::Graph> importModel(const onnx_io::Model& model, const ImportOptions& options = {});

/// The operators that import understands: (domain, name), sorted; for `candela backends` and the
/// reference page.
std::vector<std::pair<std::string, std::string>> supportedOperators();

} // namespace candela::import
