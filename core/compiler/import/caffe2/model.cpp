#include "core/compiler/import/caffe2/model.h"

#include "core/compiler/import/caffe2/step.h"

namespace candela::import::caffe2 {
namespace {

// Of what is written: opset 21 has all that the operators of this room need.
constexpr int64_t kOpset = 21, kIrVersion = 10;

} // namespace

bool isModel(const Bytes& content) { return isNet(content); }

Result<onnx_io::Model> parseModel(const Bytes& content, const std::string& path) {
  CDL_ASSIGN(const Nets nets, openNets(content, path));
  onnx_io::Model model;
  model.path = path;
  model.isOnnx = false;
  model.irVersion = kIrVersion;
  model.producer = "Caffe2";
  model.opsets = {{"", kOpset}, {"com.microsoft", 1}, {kDomain, 1}};
  NetWriter writer(nets, model.graph);
  writer.write();
  CDL_TRY(writer.diagnostics().status(path));
  return model;
}

std::vector<SupportedOperator> supportedOperators() {
  std::vector<SupportedOperator> all;
  for (const Operator* each : allOperators()) all.push_back({each->type, each->limits});
  return all;
}

} // namespace candela::import::caffe2
