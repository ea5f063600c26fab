#pragma once

#include "conformance/backend_runner.h"
#include "core/compiler/import/onnx_io/model.h"

/// The ONNX project's node tests: <folder>/model.onnx with test_data_set_*/input_*.pb and
/// output_*.pb.
namespace candela::conformance::tiers {

struct OnnxCase {
  /// "onnx:" and the folder below the directory: "onnx:test_add", "onnx:node/test_add"
  std::string name;
  std::string folder;
};

/// Every folder with a model.onnx in the directory or in a folder of it, sorted. Failure: not_found
/// when there is none.
Result<std::vector<OnnxCase>> listOnnxCases(const std::string& directory);

/// Runs all data sets of a case. Floats: |got - want| <= 1e-7 + 1e-3 * |want| (with DFT and STFT
/// 1e-6 of the largest output instead of 1e-7); integers and bool exact; element types and shapes
/// too. Of random numbers these and their distribution (judge/random_numbers.h). A model that waits
/// for contents of inputs runs with these inputs as constants too. A case whose data contradicts
/// its model or the standard is expected to fail.
CaseResult runOnnxCase(const OnnxCase& onnxCase, const RunCase& run);

} // namespace candela::conformance::tiers
