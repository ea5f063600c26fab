#pragma once

#include "core/compiler/import/caffe2/step.h"

namespace candela::import::caffe2 {

/// The pool that the step's arguments say, of a real operand.
Name pooled(Step& step, const Name& x, bool isMaximum);

} // namespace candela::import::caffe2
