#pragma once

#include "core/compiler/import/onnx_io/model.h"
#include "core/runtime/control_flow/value.h"

/// What a node test gives a model, and what it expects.
namespace candela::conformance::tiers {

struct DataSet {
  std::map<std::string, runtime::control_flow::Value> inputs;
  std::vector<runtime::control_flow::Value> outputs;
};

/// The files input_<i>.pb and output_<i>.pb of a folder, as the types that the model declares: an
/// optional that has no file is nothing. Failure: `unsupported` for values that we do not have.
Result<DataSet> readDataSet(const std::string& folder, const import::onnx_io::Model& model);

} // namespace candela::conformance::tiers
