#pragma once

#include "core/compiler/differentiate/term.h"

/// What is made small: one number of a batch.
namespace candela::train {

using differentiate::Term;

enum class Loss : uint8_t { crossEntropy, meanSquares };

std::string_view lossName(Loss loss);
std::optional<Loss> parseLoss(std::string_view name);

/// What an output [n, classes, places..] was before a softmax over its classes ended it; reshapes,
/// transposes and casts may stand behind that. The logarithms of its elements where they are
/// probabilities whose softmax cannot be taken away (clipped, averaged, over several axes); else
/// the output itself. Throws differentiate::Failure for a softmax over another axis.
Term scoresOf(const Term& output);
/// Of scores [n, classes, places..], before a softmax, and labels [n, places..] of i32: the mean
/// over all labels of -log(softmax(scores)[label]).
Term crossEntropy(const Term& scores, const Term& labels);
/// The mean over all elements of (y - wanted)^2, of one shape.
Term meanSquares(const Term& y, const Term& wanted);

} // namespace candela::train
