#pragma once

#include <string>

#include "core/support/elem.h"

namespace candela {

/// The types of a SCALED_MATMUL, or of the op of the Graph that becomes one. none: no such operand.
struct ScaledProductTypes {
  bool isDynamic = false; ///< the function rounds a to i8
  Elem a = Elem::none;
  Elem w = Elem::none;
  Elem wScale = Elem::none;
  Elem wZero = Elem::none;
  Elem aScale = Elem::none;
  Elem y = Elem::none; ///< of the sums, before an epilogue
};

/// Whether MATMUL and CONV2D sum products of these types in a result of type y.
bool isProduct(Elem a, Elem b, Elem y);

/// What makes these types no product; empty where they are one.
std::string whyNoScaledProduct(const ScaledProductTypes& types);

/// The most elements of a block whose products of integers stay within i32.
constexpr int64_t kMostIntegersInBlock = 65536;

} // namespace candela
