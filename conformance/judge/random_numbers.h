#pragma once

#include "core/support/tensor.h"

/// Outputs of random operators: the expected numbers are another generator's, so what counts is
/// what they say of the distribution. Types and shapes are those of the expected tensor.
namespace candela::conformance::judge {

/// Each element is a given number or 0, as of Bernoulli and Dropout: where neither is 0 they are
/// equal, zeros are about as many (all of the same, where the expected ones all are), and what is 0
/// and 1 only stays so.
Status checkKept(const Tensor& got, const Tensor& expected);

/// Each element is any number of one distribution: finite, not all the same, and from 16 elements
/// on of about the expected mean and variance.
Status checkDrawn(const Tensor& got, const Tensor& expected);

} // namespace candela::conformance::judge
