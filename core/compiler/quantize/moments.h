#pragma once

#include "core/compiler/quantize/weights.h"

/// What the inputs of a product were, as far as the error of its results depends on them.
namespace candela::quantize {

/// How a product with constant weights finds the terms of its sums in its input.
struct TermReader {
  WeightView view;
  /// Of one spatial dim of a convolution.
  struct Window {
    int64_t in = 1, out = 1, kernel = 1, stride = 1, dilation = 1, padBefore = 0;
  };
  std::vector<Window> windows; ///< none: rows of a matrix
  int64_t sums = 0;            ///< of one run: of each output channel

  /// Of a node of the network, whose types are known. Failure: unsupported, with the reason alone.
  static Result<TermReader> of(const Network& network, int node);
  /// The terms of one sum of a group, in the order of the view's inputs and taps.
  void read(const Tensor& input, int64_t sum, int64_t group, double* terms) const;

private:
  /// Element of a channel's plane for this tap; -1: in the border.
  int64_t elementOf(int64_t position, int64_t tap) const;
};

/// E[x x^T] of the terms of a product's sums, but for the count: a symmetric matrix for each group.
class Moments {
public:
  /// At most so many sums of each product are looked at, spread evenly over the runs.
  static constexpr int64_t kMostSums = 8192;

  explicit Moments(TermReader reader);
  const TermReader& reader() const { return reader_; }
  int64_t terms() const { return reader_.view.terms(); }
  /// Row by row; whole after finish().
  std::vector<double>& ofGroup(int64_t group) { return groups_[static_cast<size_t>(group)]; }

  /// `runs`: how many there will be.
  void add(const Tensor& input, int64_t runs);
  /// Copies the lower triangles to the upper ones.
  void finish();
  bool isFinite() const;

private:
  TermReader reader_;
  std::vector<std::vector<double>> groups_;
};

} // namespace candela::quantize
