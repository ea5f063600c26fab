#include "core/compiler/import/formats.h"

#include <algorithm>
#include <iterator>

#include "core/compiler/import/tflite/model.h"
#include "core/support/file.h"

namespace candela::import {
namespace {

constexpr Format kFormats[] = {
    {"TensorFlow Lite", ".tflite", tflite::isModel, tflite::parseModel},
    {"ONNX", ".onnx", nullptr, onnx_io::parseModel},
};

} // namespace

std::span<const Format> formats() { return kFormats; }

const Format& formatOf(const Bytes& content) {
  const auto found = std::ranges::find_if(kFormats, [&](const Format& format) {
    return format.recognizes && format.recognizes(content);
  });
  return found == std::end(kFormats) ? *std::prev(found) : *found;
}

Result<onnx_io::Model> readModel(const std::string& path) {
  CDL_ASSIGN(const Bytes content, mapFile(path));
  return parseModel(content, path);
}

Result<onnx_io::Model> parseModel(const Bytes& content, const std::string& path) {
  return formatOf(content).read(content, path);
}

bool isModelFile(const std::string& path) {
  const auto isNamed = [&](const Format& format) { return path.ends_with(format.extension); };
  if (std::ranges::any_of(kFormats, isNamed)) return true;
  const auto content = mapFile(path);
  return content && formatOf(*content).recognizes;
}

std::string extensionsText() {
  std::string text;
  for (size_t i = std::size(kFormats); i > 0; --i) {
    const char* between = i == 1 ? " or " : ", ";
    text += fmt::format("{}{}", text.empty() ? "" : between, kFormats[i - 1].extension);
  }
  return text;
}

} // namespace candela::import
