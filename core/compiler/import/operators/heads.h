#pragma once

#include <limits>

#include "core/compiler/import/term.h"

/// Attention of heads, as the operators of several domains share it.
namespace candela::import {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Shapes that are known and whose dims are below 2^31, so that sums and multiples of a few of them
/// cannot overflow.
void needBounded(const NodeContext& context);
/// Inputs that must be there although optional ones precede them.
void needInputs(const NodeContext& context, std::initializer_list<size_t> inputs);

/// [batch, heads, sequence, size]; in three dims the heads lie side by side in the last one.
Term splitHeads(const Term& x, const char* name, std::optional<int64_t> heads);
/// Side by side again, in three dims.
Term joinHeads(const Term& x);

/// The first elements of each head, as many as cosines and sines turn, turned in pairs: halves, or
/// neighbours. The angles broadcast to [batch, heads, sequence, pairs].
Term turned(const Term& x, const Term& cosine, const Term& sine, bool interleaved);

/// Everything but the operands' values that one attention says.
struct Heads {
  Term q, k, v; ///< k and v with what the cache held
  int64_t past = 0;

  int64_t batch() const { return q.dim(0); }
  int64_t heads() const { return q.dim(1); }
  int64_t queries() const { return q.dim(2); }
  int64_t keys() const { return k.dim(2); }
  int64_t groups() const { return k.dim(1); }

  /// [.., heads, queries, n] with the query heads of a group as more queries of one head. Dims of 1
  /// broadcast.
  Term grouped(Term x) const;
  Term ungrouped(const Term& x) const { return x.reshape({batch(), heads(), queries(), x.dim(3)}); }

  /// Failure: no floats, or shapes that do not belong together.
  void check() const;
};

/// What is added to the scores, in four dims that broadcast to them.
struct Bias {
  std::optional<Term> values;
  bool mayMaskRows = false; ///< every key of a query by -inf: such a row gives 0
};

/// From the scores to their shares.
struct Weighting {
  double scale = 1, softcap = 0; ///< softcap 0: none
  Elem precision = Elem::none;   ///< of the softmax; `none`: the queries'
  Bias bias;
  std::optional<Term> sink; ///< [1, heads, 1, 1]: a score more in each softmax, of no value
  /// A stage that is wanted too: 0 scores, 1 capped, 2 with the bias, 3 shares. Below 0: none.
  int64_t stage = -1;
};

struct Attended {
  Term y;                    ///< [batch, heads, queries, size]
  std::optional<Term> stage; ///< [batch, heads, queries, keys]
};
Attended attend(const Heads& all, const Weighting& weighting);

} // namespace candela::import
