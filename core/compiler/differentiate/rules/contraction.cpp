// Products of matrices: each factor gets what comes back, times the other one transposed.
#include "core/compiler/differentiate/rules.h"

namespace candela::differentiate {
namespace {

Term gemm(const Term& a, const Term& b, bool transposeA, bool transposeB, double alpha) {
  return make(OpKind::Gemm, {a, b},
              {{"alpha", alpha}, {"transA", int64_t(transposeA)}, {"transB", int64_t(transposeB)}});
}

/// What comes back to b, of a product of many matrices [batch.., m, k] with one [k, n]: the rows of
/// all of them at once, so that nothing is added up matrix by matrix.
Term backToShared(const Term& a, const Term& dy) {
  const int64_t rows = a.count() / std::max<int64_t>(1, a.dim(-1));
  return gemm(a.reshape({rows, a.dim(-1)}), dy.reshape({rows, dy.dim(-1)}), true, false, 1);
}

/// y = a . b of matrices; dims before the last two broadcast.
void giveProduct(const Step& step, const Term& a, const Term& b, const Term& dy) {
  step.give(0,
            [&] { return matmul(dy, b.transposed()).sumTo(a.shape()).reshape(step.x(0).shape()); });
  step.give(1, [&] {
    const bool isShared = b.rank() == 2 && a.rank() > 2 && a.count() > 0;
    const Term db = isShared ? backToShared(a, dy) : matmul(a.transposed(), dy);
    return db.sumTo(b.shape()).reshape(step.x(1).shape());
  });
}

} // namespace

/// A factor of rank 1 is a row on the left, a column on the right.
void matmulRule(const Step& step) {
  Term a = step.x(0);
  Term b = step.x(1);
  Shape dims = step.y().shape();
  if (b.rank() == 1) {
    b = b.reshape({b.dim(0), 1});
    dims.push_back(1);
  }
  if (a.rank() == 1) {
    a = a.reshape({1, a.dim(0)});
    dims.insert(dims.end() - 1, 1);
  }
  giveProduct(step, a, b, step.dy().reshape(dims));
}

/// The lowered form: [b, m, k] by [b, k, n], where a batch of 1 is broadcast.
void batchMatmulRule(const Step& step) {
  const Elem elem = step.node.elemAttr("to");
  if (elem != step.x(0).elem() || elem != step.x(1).elem())
    step.refuse("its factors and its result have several types");
  giveProduct(step, step.x(0), step.x(1), step.dy());
}

void gemmRule(const Step& step) {
  const Term a = step.x(0);
  const Term b = step.x(1);
  const Term dy = step.dy();
  const double alpha = step.node.floatAttr("alpha");
  const bool isATransposed = step.node.intAttr("transA"),
             isBTransposed = step.node.intAttr("transB");
  step.give(0, [&] {
    return isATransposed ? gemm(b, dy, isBTransposed, true, alpha)
                         : gemm(dy, b, false, !isBTransposed, alpha);
  });
  step.give(1, [&] {
    return isBTransposed ? gemm(dy, a, true, isATransposed, alpha)
                         : gemm(a, dy, !isATransposed, false, alpha);
  });
  const double beta = step.node.floatAttr("beta");
  step.give(2, [&] { return beta == 1 ? dy : dy * beta; });
}

/// softmax(q . k' * scale + mask) . v, whose weights are computed again.
void attentionRule(const Step& step) {
  const Term q = step.x(0);
  const Term k = step.x(1);
  const Term v = step.x(2);
  const Term dy = step.dy();
  const double scale = step.node.floatAttr("scale");
  Term scores = matmul(q, k.transposed()) * scale;
  if (step.hasOperand(3)) scores = scores + step.x(3);
  const Term weights = make(OpKind::Softmax, {scores}, {{"axis", int64_t{-1}}});
  step.give(2, [&] { return matmul(weights.transposed(), dy); });
  const Term dWeights = matmul(dy, v.transposed());
  const Term dScores = weights * (dWeights - sum(dWeights * weights, {-1}));
  step.give(0, [&] { return matmul(dScores, k) * scale; });
  step.give(1, [&] { return matmul(dScores.transposed(), q) * scale; });
  step.give(3, [&] { return dScores; });
}

} // namespace candela::differentiate
