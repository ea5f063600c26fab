#pragma once

#include <optional>

#include "core/compiler/graph/graph.h"
#include "core/compiler/program/program.h"
#include "core/runtime/session/session.h"
#include "tools/candela/package/objects.h"
#include "tools/candela/support/model.h"

/// A model compiled for another machine.
namespace candela::tool {

/// What the command line says.
struct PackageRequest {
  ModelOptions model; ///< its path, dims, shapes and states count
  std::string target, cpu, features, name, output;
  bool isPic = false;
  std::optional<uint64_t> arenaLimit, flashLimit; ///< bytes; nothing: any number
  uint64_t seed = 1;                              ///< of inputs of the test that are not given
  std::vector<std::string> inputs;                ///< NAME=FILE of the test
};

/// real = scale * (stored - zero), of the whole tensor.
struct PortQuantization {
  double scale = 1;
  int64_t zero = 0;
};

/// An input or output as the object code takes it.
struct PackagedPort {
  std::string name, field; ///< the model's, and in C
  Elem elem = Elem::none;
  Shape dims;
  uint64_t bytes = 0;
  uint32_t alignment = 1;
  std::optional<PortQuantization> quantization;
  std::string partner;    ///< the output or input that is the same state; empty: no state
  bool isInPlace = false; ///< both of the state are one place
};

struct PackagedModel {
  std::string name; ///< in C
  uint64_t nodes = 0, parameters = 0;
  ObjectFiles files;
  std::vector<PackagedPort> inputs, outputs; ///< in the order of the object code
  program::Program program;                  ///< that the code runs; its constants are zero
  std::string plan;                          ///< how it was ordered and placed
  uint64_t codeBytes = 0;                    ///< loaded of NAME.o; 0: it is no ELF object

  uint64_t flashBytes() const { return codeBytes + files.facts.weights_bytes; }
};

/// A tensor for every input and output of a packaged model, in its order.
struct PackageSample {
  std::vector<Tensor> inputs, outputs;
  std::string source; ///< what computed the outputs
};

/// Compiles, by the fastest plan that keeps the limits. Throws Failure where the model does not fit
/// into a package: control flow, open dims, a target that nobody knows, nodes that the backend
/// leaves to the host, outputs that nothing computes; and where no plan keeps the limits, with the
/// least that one takes.
PackagedModel packageModel(const PackageRequest& request);

/// One run of the same model on this machine, by the backend that emitted it. States are zero.
PackageSample sampleOf(const PackageRequest& request, const PackagedModel& model);

} // namespace candela::tool
