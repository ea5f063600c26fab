#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "core/compiler/import/onnx_io/model.h"

/// The formats of model files. Each has a room that reads a file into the one form that import
/// takes: nodes that are operators of ONNX, whatever the file called them.
namespace candela::import {

struct Format {
  std::string_view name;      ///< "ONNX"
  std::string_view extension; ///< ".onnx", for texts and where the content decides nothing
  /// Whether the content begins as files of the format do; null: they begin with anything.
  bool (*recognizes)(const Bytes& content);
  /// Failures name the file, which need not exist: `path` is for messages and for files beside it.
  Result<onnx_io::Model> (*read)(const Bytes& content, const std::string& path);
};

/// All of them; ONNX, which has no mark of its own, is the last one.
std::span<const Format> formats();
/// By the content alone, ONNX where no mark is found.
const Format& formatOf(const Bytes& content);

/// Reads a file of any format. Failures: those of mapFile, and of the format's reader.
Result<onnx_io::Model> readModel(const std::string& path);
/// The same of a file's content.
Result<onnx_io::Model> parseModel(const Bytes& content, const std::string& path);

/// Whether a file is a model: by its name, or by a mark in its content. False where it cannot be
/// read and its name does not say.
bool isModelFile(const std::string& path);
/// ".mlir, .onnx, .pb or .tflite"; `more` are of files that are no models of a format: "…, .tflite
/// or .cdl".
std::string extensionsText(std::initializer_list<std::string_view> more = {});

} // namespace candela::import
