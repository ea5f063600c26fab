/// Parts of a graph of ONNX Runtime, compiled by Candela, and kept from the question whether a
/// backend runs them until ONNX Runtime wants them compiled.
#ifndef CANDELA_INTEGRATIONS_ONNXRUNTIME_COMPILER_H
#define CANDELA_INTEGRATIONS_ONNXRUNTIME_COMPILER_H

#include <map>
#include <memory>
#include <string>

#include "integrations/onnxruntime/onnx_writer.h"
#include "integrations/onnxruntime/options.h"

namespace candela::ort {

/// A part as it runs.
using Compiled = std::shared_ptr<sdk::Model>;

class Compiler {
public:
  Compiler(const Api& api, const ProviderOptions& options) : api_(api), options_(options) {}

  /// The placement report of a part, whose open dims get sizes for the question. Throws sdk::Error
  /// or Failure where Candela does not import it.
  std::string report(const GraphView& graph, const Part& part);
  /// The part to run; its open dims are those of each run. Throws as report does.
  Compiled compile(const GraphView& graph, const Part& part);
  /// Lets go of a part that is not wanted after all.
  void forget(const Part& part);

private:
  Compiled compileBytes(const GraphView& graph, const std::string& bytes,
                        const sdk::Options& options) const;

  const Api& api_;
  const ProviderOptions& options_;
  std::map<std::string, Compiled> kept_; ///< static parts, by what they make
};

/// Whether a value can go in and out of Candela's models.
bool isCandelas(abi::ElementType type);
candela_elem_t elementOf(abi::ElementType type);

} // namespace candela::ort

#endif
