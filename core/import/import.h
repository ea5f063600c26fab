#ifndef CANDELA_CORE_IMPORT_IMPORT_H
#define CANDELA_CORE_IMPORT_IMPORT_H

#include <map>
#include <string>

#include "core/graph/graph.h"
#include "core/import/onnx_io/model.h"

/// ONNX -> Graph in one walk: bind dims, infer, fold shape arithmetic, inline functions, raise every node to its newest
/// meaning. Every unsupported node and every unbound dim is listed at once.
namespace candela::import {

struct ImportOptions {
  std::map<std::string, int64_t> dims; ///< --dim N=1: symbolic dims by name
  std::map<std::string, Shape> shapes; ///< --shape input=1x3x224x224
  std::map<std::string, Tensor> frozen; ///< inputs that become constants (shape operands of node tests)
  uint64_t foldLimitBytes = 4096; ///< no larger constant is made by folding unless it shrinks (architecture §4.6)
};

/// Failure: bad_model (one line per complaint, each with file and node), or unsupported when every complaint is an
/// operator that is not supported.
Result<graph::Graph> importModel(const onnx_io::Model& model, const ImportOptions& options = {});

/// Reads and imports a .onnx file.
Result<graph::Graph> importOnnx(const std::string& path, const ImportOptions& options = {});

/// The operators that import understands: (domain, name), sorted; for `candela backends` and the reference page.
std::vector<std::pair<std::string, std::string>> supportedOperators();

} // namespace candela::import

#endif
