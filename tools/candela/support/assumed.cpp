#include "tools/candela/support/assumed.h"

#include "core/compiler/import/onnx_io/write.h"
#include "core/compiler/quantize/assume.h"
#include "tools/candela/support/ir_file.h"
#include "tools/candela/support/temporary_file.h"

namespace candela::tool {

void assumeInt8(ModelOptions& options, const std::map<std::string, std::string>& inputFiles) {
  if (options.assumedScheme.empty()) return;
  const auto scheme = quantize::parseScheme(options.assumedScheme);
  if (!scheme)
    fail(kBadInput, "--assume-int8 {}: asymmetric, symmetric, symmetric-uint8 or power-of-two",
         options.assumedScheme);
  refuseBundle(options.path);
  if (endsWith(options.path, ".cdl") || endsWith(options.path, ".csv"))
    fail(kBadInput, "{}: --assume-int8 is for float models", options.path);
  const import::ImportOptions import = importOptions({options.dims, options.shapes});
  quantize::RunConditions shapes{.devices = {}, .dims = import.dims, .shapes = import.shapes};
  if (shapes.dims.empty() && shapes.shapes.empty())
    for (const auto& [input, file] : inputFiles) shapes.shapes[input] = readTensorFile(file).dims;
  const auto model = quantize::assumedModel(options.compiledPath(), *scheme, shapes);
  const bool isNamed = model.status().message().find(options.path) != std::string::npos;
  check(isNamed ? model.status() : model.status().context(options.path));
  auto file = std::make_shared<const TemporaryFile>();
  check(import::onnx_io::writeModel(*model, file->path()).context(options.path), kWorkFailed);
  options.rewritten = std::move(file);
}

void tellAssumed(const ModelOptions& options, std::string_view what, Json& report,
                 Console& console) {
  if (options.assumedScheme.empty()) return;
  const std::string text = fmt::format("assumed int8, {}: scales are not from data; results of the "
                                       "network mean nothing, {} do",
                                       options.assumedScheme, what);
  console.print("{}\n", text);
  report["assumed_int8"] = text;
}

} // namespace candela::tool
