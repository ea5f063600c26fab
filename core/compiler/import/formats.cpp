#include "core/compiler/import/formats.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "core/compiler/import/caffe2/model.h"
#include "core/compiler/import/stablehlo/model.h"
#include "core/compiler/import/tflite/model.h"
#include "core/support/file.h"

namespace candela::import {
namespace {

constexpr Format kFormats[] = {
    {"TensorFlow Lite", ".tflite", tflite::isModel, tflite::parseModel},
    {"Caffe2", ".pb", caffe2::isModel, caffe2::parseModel},
    {"StableHLO", ".mlir", stablehlo::isModel, stablehlo::parseModel},
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

std::string extensionsText(std::initializer_list<std::string_view> more) {
  std::vector<std::string_view> all;
  for (const Format& format : kFormats) all.push_back(format.extension);
  std::ranges::sort(all);
  all.insert(all.end(), more.begin(), more.end());
  const std::string_view last = all.back();
  all.pop_back();
  return fmt::format("{} or {}", fmt::join(all, ", "), last);
}

} // namespace candela::import
