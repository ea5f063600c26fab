#include "core/compiler/train/losses.h"

namespace candela::train {

using differentiate::OpKind, differentiate::reduce, differentiate::sum, differentiate::sumOfAll;

std::string_view lossName(Loss loss) {
  return loss == Loss::crossEntropy ? "cross_entropy" : "mse";
}

std::optional<Loss> parseLoss(std::string_view name) {
  if (name == "cross_entropy") return Loss::crossEntropy;
  if (name == "mse") return Loss::meanSquares;
  return std::nullopt;
}

/// The logarithm is of the sum alone, so that small probabilities keep their digits.
Term crossEntropy(const Term& scores, const Term& labels) {
  const Term shifted = scores - reduce(OpKind::ReduceMax, scores, {1});
  const Term logs = shifted - log(sum(exp(shifted), {1}));
  Shape classes(static_cast<size_t>(scores.rank()), 1), each = scores.shape();
  classes[1] = scores.dim(1);
  each[1] = 1;
  const Term numbers = differentiate::constant(
      scores.writer(), differentiate::range(0, scores.dim(1)), classes, labels.elem());
  const Term isLabel = equal(numbers, labels.reshape(each));
  return -sumOfAll(where(isLabel, logs)) / static_cast<double>(labels.count());
}

Term meanSquares(const Term& y, const Term& wanted) {
  const Term off = y - wanted;
  return sumOfAll(off * off) / static_cast<double>(y.count());
}

} // namespace candela::train
