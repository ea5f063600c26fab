#pragma once

#include <optional>

#include "core/compiler/graph/graph.h"

/// Softmax, LayerNorm and RMSNorm of bytes without floats: the tables that softmax_integer,
/// layer_norm_integer and rms_norm_integer take.
namespace candela::graph::passes {

/// What bytes stand for: real = scale * (stored - zero).
struct QuantizedBytes {
  double scale = 1;
  int64_t zero = 0;
  Elem elem = Elem::none; ///< i8 or u8
};

/// What such an op has besides x and its axis.
struct RowFunction {
  std::vector<Tensor> operands; ///< constants
  Attrs attrs;
};

/// For rows of `count` bytes whose steps are `xScale`. Of the exact softmax it differs by at most
/// (1/2 + 0.06) * y.scale + count / 65534. Nothing where rows are too long or scales out of range.
std::optional<RowFunction> integerSoftmax(double xScale, int64_t count, const QuantizedBytes& y);

/// What LayerNorm and RMSNorm are besides their row.
struct RowNorm {
  std::vector<double> scale, bias; ///< one for each byte of a row
  double epsilon = 0;
};

/// For rows of scale.size() bytes whose steps are `xScale`. Of the exact LayerNorm it differs by at
/// most one step of y where |y| is at most 127 of them. Nothing where rows are too long, or epsilon
/// or scales out of range.
std::optional<RowFunction> integerLayerNorm(double xScale, const RowNorm& norm,
                                            const QuantizedBytes& y);

/// For rows of norm.scale.size() bytes; norm.bias is not read. Of the exact RMSNorm it differs by
/// at most one step of y where |y| is at most 127 of them. Nothing where rows are too long, or
/// epsilon or scales out of range.
std::optional<RowFunction> integerRmsNorm(const QuantizedBytes& x, const RowNorm& norm,
                                          const QuantizedBytes& y);

} // namespace candela::graph::passes
