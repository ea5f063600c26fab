#pragma once

#include "core/compiler/import/tflite/step.h"

/// What convolutions and pools share. Files have channels last, the operators that are written have
/// them in dim 1; transposes that meet cancel in passes of the Graph.
namespace candela::import::tflite {

/// Of rank 4 or 5. What channelsLast() made of a value becomes that value again.
Name channelsFirst(Step& step, const Name& x, int64_t rank);
Name channelsLast(Step& step, const Name& x, int64_t rank);

/// Throws unless the operand has this rank.
void needRank(const Step& step, size_t input, int64_t rank);

/// Throws unless all are at least 1.
Ints extents(const char* what, const Ints& values);

/// auto_pad of ONNX, whose windows lie where those of the format do.
std::string padText(schema::Padding padding);

} // namespace candela::import::tflite
