#pragma once

#include "tools/candela/run/run.h"

/// Float models that are compiled as integers nobody measured: --assume-int8.
namespace candela::tool {

/// Where --assume-int8 was given, quantizes the model with assumed scales and makes the result what
/// is compiled. Shapes are those of --dim and --shape, else of the files that inputs are read from.
/// Throws Failure naming the model: it is quantized already, or no float ONNX model.
void assumeInt8(ModelOptions& options, const std::map<std::string, std::string>& inputFiles = {});

/// Says in the report and as its first line what is assumed, where it is; `what` still holds:
/// "cycles".
void tellAssumed(const ModelOptions& options, std::string_view what, Json& report,
                 Console& console);

} // namespace candela::tool
