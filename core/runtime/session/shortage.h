#pragma once

#include <string>

#include "candela/cdl.h"

namespace candela::runtime::session {

/// Whose memory it is that cannot be had: the largest value of a Program that lives in a space, and
/// the model's node that computes it: "the values of its instructions, the largest 'a' of node
/// 'Expand_3' with 8589934592 bytes".
std::string valuesText(const cdl_image_t* image, uint32_t space);

} // namespace candela::runtime::session
