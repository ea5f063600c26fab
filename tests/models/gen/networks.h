//===- networks.h - The benchmark networks --------------------------------===//
#pragma once

#include "tests/models/gen/model_builder.h"

#include <span>

namespace candela::gen {

struct Network {
  const char* name;
  const char* summary;
  onnx::ModelProto (*build)(ModelBuilder& builder, const std::string& name);
};

// text.cpp
onnx::ModelProto buildTextMap(ModelBuilder& builder, const std::string& name);
onnx::ModelProto buildTextLine(ModelBuilder& builder, const std::string& name);

/// All of them, in the order in which they are written.
std::span<const Network> networks();

} // namespace candela::gen
