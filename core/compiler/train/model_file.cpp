#include "core/compiler/train/model_file.h"

#include "core/compiler/import/formats.h"
#include "core/compiler/import/onnx_io/write.h"
#include "core/support/file.h"

namespace candela::train {

Result<ModelFile> readModelFile(const std::string& path) {
  CDL_ASSIGN(Bytes content, mapFile(path));
  return parseModelFile(std::move(content), path);
}

Result<ModelFile> parseModelFile(Bytes content, const std::string& path) {
  const import::Format& format = import::formatOf(content);
  if (format.extension != ".onnx")
    return failure(Code::unsupported, "{}: a model of {}: only those of ONNX are trained", path,
                   format.name);
  if (path.ends_with(".cdl"))
    return failure(Code::unsupported, "{}: a text of the IR: only models of ONNX are trained",
                   path);
  ModelFile file{std::move(content), {}};
  CDL_ASSIGN(file.model, import::onnx_io::parseModel(file.content, path));
  return file;
}

Status writeTrained(const ModelFile& file, const std::vector<Parameter>& parameters,
                    const std::string& path) {
  return import::onnx_io::writeModel(withValues(file.model, parameters), file.content, path);
}

} // namespace candela::train
