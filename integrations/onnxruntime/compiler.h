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

  /// What Candela says of a part.
  struct Answer {
    std::string placement; ///< the report of candela_report_json
    std::string key;       ///< of what is kept; empty: nothing
  };
  /// Compiles a part, whose open dims get sizes for the question; one without them is kept for
  /// compile(). Throws sdk::Error or Failure where Candela does not import it.
  Answer ask(const GraphView& graph, const Part& part);
  /// Lets go of what ask() kept.
  void forget(const std::string& key) { kept_.erase(key); }
  /// The part to run, which is kept no longer; its open dims are those of each run. Throws as ask()
  /// does.
  Compiled compile(const GraphView& graph, const Part& part);

private:
  Compiled compileBytes(const GraphView& graph, const std::string& bytes,
                        const sdk::Options& options) const;

  const Api& api_;
  const ProviderOptions& options_;
  /// By the content of their models: names of values are those of one graph alone.
  std::map<std::string, Compiled> kept_;
};

/// Whether a value can go in and out of Candela's models.
bool isCandelas(abi::ElementType type);
candela_elem_t elementOf(abi::ElementType type);

} // namespace candela::ort

#endif
