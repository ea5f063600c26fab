// Faults of REDUCE, MATMUL and SCATTER: how several numbers become one, and which ones.
#include <algorithm>
#include <set>
#include <span>

#include "conformance/mutants/catalogue.h"
#include "conformance/mutants/numbers.h"
#include "core/reference/reference.h"
#include "core/support/tensor.h"

namespace candela::conformance::mutants {
namespace {

/// A number that is added: as a real where floats are summed, else whole.
struct Term {
  double real = 0;
  __int128 whole = 0;
  bool dropped = false; ///< a product with a zero in it
};
using Fold = uint64_t (*)(Elem elem, std::span<const Term> terms);

Term termOf(Elem elem, uint64_t bits) {
  return isFloat(elem) ? Term{toReal(elem, bits), 0} : Term{0, integerOf(elem, bits)};
}
Term product(const Mutation& m, const Index& a, const Index& b) {
  Term x = termOf(m.elem(0), m.get(0, a)), y = termOf(m.elem(1), m.get(1, b));
  if (m.operands() > 2) x.whole -= integerOf(m.elem(2), m.get(2, {}));
  if (m.operands() > 3)
    y.whole -= integerOf(m.elem(3), m.get(3, {m.view(3).dims[0] == 1 ? 0 : b[2]}));
  return {x.real * y.real, x.whole * y.whole, x.real == 0 || y.real == 0};
}

/// Sums of REDUCE and MATMUL by another fold. What an epilogue makes of them is soft's own.
Catalogue::Run folding(Fold fold) {
  return [fold](Mutation& m) {
    const uint32_t y = m.result();
    const bool matmul = m.kind() == CDL_KIND_MATMUL;
    if (m.hasExpr() || (!matmul && m.fn() != CDL_REDUCE_SUM) || m.elem(y) == Elem::bool_)
      return m.run();
    std::vector<std::pair<Index, std::vector<Term>>> sums;
    const int64_t depth = matmul ? m.view(0).dims[2] : m.view(0).dims[1];
    forEachIndex(m.view(y), [&](const Index& at) {
      std::vector<Term>& terms = sums.emplace_back(at, std::vector<Term>()).second;
      if (matmul && m.attr(CDL_ATTR_ACCUMULATE, 0))
        terms.push_back(termOf(m.elem(y), m.get(y, at)));
      for (int64_t k = 0; k < depth; ++k)
        terms.push_back(matmul ? product(m, {at[0], at[1], k}, {at[0], k, at[2]})
                               : termOf(m.elem(0), m.get(0, {at[0], k, at[1]})));
    });
    const cdl_code_t code = m.run();
    if (code == CDL_OK)
      for (const auto& [at, terms] : sums) m.set(y, at, fold(m.elem(y), terms));
    return code;
  };
}

uint64_t inHalf(Elem elem, std::span<const Term> terms) {
  double sum = 0;
  __int128 whole = 0;
  for (const Term& term : terms) {
    sum = reference::roundReal(Elem::f16_, sum + term.real);
    whole += term.whole;
  }
  return isFloat(elem) ? fromReal(elem, sum) : static_cast<uint64_t>(whole);
}
uint64_t inFloat(Elem elem, std::span<const Term> terms) {
  double sum = 0;
  float whole = 0;
  for (const Term& term : terms) {
    sum += term.real;
    whole += static_cast<float>(term.whole);
  }
  return isFloat(elem) ? fromReal(elem, sum) : static_cast<uint64_t>(static_cast<__int128>(whole));
}
uint64_t towardZeroSum(Elem elem, std::span<const Term> terms) {
  double sum = 0;
  __int128 whole = 0;
  for (const Term& term : terms) {
    sum += term.real;
    whole += term.whole;
  }
  return isFloat(elem) ? towardZero(elem, sum) : static_cast<uint64_t>(whole);
}
/// The sum of floats in an accumulator of f32, or in one of their own if that is wider, ties in it
/// and at the end as said.
template <Ties ties> uint64_t tiedSum(Elem elem, std::span<const Term> terms) {
  double sum = 0;
  __int128 whole = 0;
  for (const Term& term : terms) {
    sum = elem == Elem::f64_ ? sum + term.real
                             : toReal(Elem::f32_, nearestReal(Elem::f32_, sum + term.real, ties));
    whole += term.whole;
  }
  return isFloat(elem) ? nearestReal(elem, sum, ties) : static_cast<uint64_t>(whole);
}
uint64_t saturatedSum(Elem elem, std::span<const Term> terms) {
  double sum = 0;
  __int128 whole = 0;
  for (const Term& term : terms) {
    sum += term.real;
    whole += term.whole;
  }
  return isFloat(elem) ? fromReal(elem, sum) : clamped(elem, whole);
}
uint64_t withoutZeros(Elem elem, std::span<const Term> terms) {
  double sum = 0;
  __int128 whole = 0;
  for (const Term& term : terms) {
    sum += term.dropped ? 0 : term.real;
    whole += term.whole;
  }
  return isFloat(elem) ? fromReal(elem, sum) : static_cast<uint64_t>(whole);
}

cdl_code_t dropLastStep(Mutation& m) {
  if (m.hasExpr()) m.dropLastStep();
  return m.run();
}

// ---- SCATTER and GATHER

/// SCATTER add, update by update.
Catalogue::Run scattering(uint64_t (*add)(Elem, const Term& old, const Term& update)) {
  return [add](Mutation& m) {
    const uint32_t y = m.result();
    const Elem elem = m.elem(y);
    if (m.fn() != CDL_SCATTER_ADD || elem == Elem::bool_) return m.run();
    std::map<Index, uint64_t> sums;
    forEachIndex(m.view(1), [&](const Index& at) {
      const auto to = static_cast<int64_t>(integerOf(m.elem(0), m.get(0, {at[1]})));
      if (to < 0 || to >= m.view(y).dims[1]) return;
      const Index place{at[0], to, at[2]};
      const uint64_t old = sums.contains(place) ? sums[place] : m.get(y, place);
      sums[place] = add(elem, termOf(elem, old), termOf(elem, m.get(1, at)));
    });
    const cdl_code_t code = m.run();
    for (const auto& [at, bits] : sums) m.set(y, at, bits);
    return code;
  };
}
uint64_t addTowardZero(Elem elem, const Term& old, const Term& update) {
  return isFloat(elem) ? towardZero(elem, old.real + update.real)
                       : static_cast<uint64_t>(old.whole + update.whole);
}
template <Ties ties> uint64_t addTied(Elem elem, const Term& old, const Term& update) {
  return isFloat(elem) ? nearestReal(elem, old.real + update.real, ties)
                       : static_cast<uint64_t>(old.whole + update.whole);
}
uint64_t addSaturated(Elem elem, const Term& old, const Term& update) {
  return isFloat(elem) ? fromReal(elem, old.real + update.real)
                       : clamped(elem, old.whole + update.whole);
}

int64_t indexAt(const Mutation& m, uint32_t v, int64_t k) {
  return static_cast<int64_t>(integerOf(m.elem(v), m.get(v, {k})));
}
uint32_t indexView(const Mutation& m) { return m.kind() == CDL_KIND_GATHER ? 1 : 0; }

/// Every index through `f`, which is given the extent.
Catalogue::Run indexing(int64_t (*f)(int64_t index, int64_t extent)) {
  return [f](Mutation& m) {
    const uint32_t v = indexView(m);
    const int64_t extent = m.view(m.kind() == CDL_KIND_GATHER ? 0 : m.result()).dims[1];
    for (int64_t k = 0; k < m.view(v).dims[0]; ++k)
      m.pretend(v, {k}, static_cast<uint64_t>(f(indexAt(m, v, k), extent)));
    return m.run();
  };
}
int64_t fromEnd(int64_t index, int64_t extent) {
  return index < 0 && index >= -extent ? index + extent : index;
}

/// Indices a little outside reach what lies there.
cdl_code_t reachNeighbours(Mutation& m) {
  const uint32_t y = m.result(), v = indexView(m);
  const bool gather = m.kind() == CDL_KIND_GATHER;
  const int64_t extent = m.view(gather ? 0 : y).dims[1];
  std::vector<std::pair<Index, uint64_t>> reached;
  forEachIndex(m.view(gather ? y : 1), [&](const Index& at) {
    const int64_t wanted = indexAt(m, v, at[1]);
    const bool near = (wanted < 0 && wanted >= -2) || (wanted >= extent && wanted < extent + 2);
    if (!near || extent == 0) return;
    const Index outside{at[0], wanted, at[2]};
    if (gather)
      reached.emplace_back(at, m.get(0, outside));
    else
      reached.emplace_back(outside, m.get(1, at));
  });
  const cdl_code_t code = m.run();
  for (const auto& [at, bits] : reached) m.set(y, at, bits);
  return code;
}

cdl_code_t keepLastUpdate(Mutation& m) {
  std::set<int64_t> seen;
  for (int64_t k = m.view(0).dims[0]; k-- > 0;)
    if (!seen.insert(indexAt(m, 0, k)).second) m.pretend(0, {k}, ~uint64_t(0));
  return m.run();
}

// ---- Zero points of MATMUL

Catalogue::Run withoutZeroPoint(uint32_t v) {
  return [v](Mutation& m) {
    if (v < m.operands()) forEachIndex(m.view(v), [&](const Index& at) { m.pretend(v, at, 0); });
    return m.run();
  };
}
cdl_code_t oneZeroPoint(Mutation& m) {
  if (m.operands() > 3) m.altered(3).strides[0] = 0;
  return m.run();
}

} // namespace

void addSumFaults(Catalogue& catalogue) {
  for (const char* kind : {"reduce", "matmul"}) {
    catalogue.add("epilogue_dropped", kind, dropLastStep);
    catalogue.add("half_accumulator", kind, folding(inHalf));
    catalogue.add("float_accumulator", kind, folding(inFloat));
    catalogue.add("truncated", kind, folding(towardZeroSum));
    catalogue.add("half_up", kind, folding(tiedSum<Ties::up>));
    catalogue.add("half_away", kind, folding(tiedSum<Ties::away>));
    catalogue.add("overflow_saturates", kind, folding(saturatedSum));
  }
  catalogue.add("nan_dropped", "matmul", folding(withoutZeros));
  catalogue.add("truncated", "scatter", scattering(addTowardZero));
  catalogue.add("half_up", "scatter", scattering(addTied<Ties::up>));
  catalogue.add("half_away", "scatter", scattering(addTied<Ties::away>));
  catalogue.add("overflow_saturates", "scatter", scattering(addSaturated));
  for (const char* kind : {"gather", "scatter"}) {
    catalogue.add("index_unclamped", kind, reachNeighbours);
    catalogue.add("index_wraps", kind, indexing(fromEnd));
  }
  catalogue.add("duplicates_lost", "scatter", keepLastUpdate);
  catalogue.add("zero_point", "matmul", withoutZeroPoint(2), "a");
  catalogue.add("zero_point", "matmul", withoutZeroPoint(3), "b");
  catalogue.add("per_channel", "matmul", oneZeroPoint);
}

} // namespace candela::conformance::mutants
