#pragma once

#include "core/compiler/differentiate/term.h"

/// What is made small: one number of a batch.
namespace candela::train {

using differentiate::Term;

enum class Loss : uint8_t { crossEntropy, meanSquares };

std::string_view lossName(Loss loss);
std::optional<Loss> parseLoss(std::string_view name);

/// Of scores [n, classes, places..], before a softmax, and labels [n, places..] of i32: the mean
/// over all labels of -log(softmax(scores)[label]).
Term crossEntropy(const Term& scores, const Term& labels);
/// The mean over all elements of (y - wanted)^2, of one shape.
Term meanSquares(const Term& y, const Term& wanted);

} // namespace candela::train
