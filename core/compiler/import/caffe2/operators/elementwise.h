#pragma once

#include "core/compiler/import/caffe2/step.h"

namespace candela::import::caffe2 {

/// What is not supported of operators that broadcast.
inline constexpr std::string_view kBroadcastLimits = "no axis_str";

/// b as an operand beside a: as numpy broadcasts it, or, with the arguments `broadcast` and `axis`,
/// with its first dim beside dim `axis` of a.
Name besideOf(Step& step, const Name& a, const Name& b);
/// b with its first dim beside dim `axis` of a: dims of 1 behind it, as many as a has there.
Name alignedAt(Step& step, int64_t axis, const Name& a, const Name& b);

} // namespace candela::import::caffe2
