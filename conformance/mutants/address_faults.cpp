// Faults of where: views, and which elements are written.
#include <algorithm>

#include "conformance/mutants/catalogue.h"
#include "core/support/kinds.h"

namespace candela::conformance::mutants {
namespace {

// ---- Views that lie elsewhere

int64_t denseStride(const cdl_view_t& view, uint32_t dim) {
  int64_t stride = 1;
  for (uint32_t d = dim + 1; d < view.rank; ++d) stride *= std::max<int64_t>(view.dims[d], 1);
  return stride;
}

void moveRowsApart(cdl_view_t& view) {
  for (uint32_t d = 0; d < view.rank; ++d)
    if (view.dims[d] > 1 && view.strides[d] != 0) {
      view.strides[d] += view.strides[d] < 0 ? -1 : 1;
      return;
    }
}
void makeDense(cdl_view_t& view) {
  int64_t stride = 1;
  for (uint32_t d = view.rank; d-- > 0;) {
    if (view.strides[d] == 0) continue;
    view.strides[d] = stride;
    stride *= std::max<int64_t>(view.dims[d], 1);
  }
}
void spreadBroadcast(cdl_view_t& view) {
  for (uint32_t d = 0; d < view.rank; ++d)
    if (view.strides[d] == 0 && view.dims[d] > 1) view.strides[d] = denseStride(view, d);
}
void loseSign(cdl_view_t& view) {
  for (uint32_t d = 0; d < view.rank; ++d) view.strides[d] = std::abs(view.strides[d]);
}
void loseOffset(cdl_view_t& view) { view.offset = 0; }
void swapInner(cdl_view_t& view) {
  if (view.rank >= 2) std::swap(view.strides[view.rank - 1], view.strides[view.rank - 2]);
}

/// Alters view v of the instruction; of the result where v is kResult.
constexpr uint32_t kResult = 99;
Catalogue::Run altering(void (*alter)(cdl_view_t&), uint32_t v) {
  return [alter, v](Mutation& m) {
    if (const uint32_t at = v == kResult ? m.result() : v; v == kResult || at < m.operands())
      alter(m.altered(at));
    return m.run();
  };
}

// ---- Elements that are not written

/// Runs, then puts back what stood where `skips` says so.
template <typename Skips> Catalogue::Run skipping(Skips skips) {
  return [skips](Mutation& m) {
    const uint32_t y = m.result();
    std::vector<std::pair<Index, uint64_t>> old;
    forEachIndex(m.view(y), [&](const Index& at) {
      if (skips(m, m.view(y), at)) old.emplace_back(at, m.get(y, at));
    });
    const cdl_code_t code = m.run();
    for (const auto& [at, bits] : old) m.set(y, at, bits);
    return code;
  };
}

bool inTail(const Mutation&, const cdl_view_t& y, const Index& at) {
  const int64_t extent = y.rank ? y.dims[y.rank - 1] : 1;
  return extent > 16 && at[y.rank - 1] >= extent / 16 * 16;
}
bool inLaterBatch(const Mutation& m, const cdl_view_t& y, const Index& at) {
  const uint32_t batched = m.kind() == CDL_KIND_REDUCE ? 2 : 3;
  return y.rank >= batched && at[0] > 0;
}
bool inHighDims(const Mutation&, const cdl_view_t& y, const Index& at) {
  return y.rank > 4 &&
         std::any_of(at.begin(), at.begin() + (y.rank - 4), [](int64_t i) { return i > 0; });
}
bool isScalar(const Mutation&, const cdl_view_t& y, const Index&) { return y.rank == 0; }

cdl_code_t writeOneMore(Mutation& m) {
  const cdl_code_t code = m.run();
  const cdl_view_t& y = m.view(m.result());
  if (y.rank == 0) return code;
  Index behind{};
  for (uint32_t d = 0; d < y.rank; ++d) {
    if (y.dims[d] == 0) return code;
    behind[d] = y.dims[d] - 1;
  }
  ++behind[y.rank - 1];
  m.set(m.result(), behind, ~m.get(m.result(), behind));
  return code;
}

Catalogue::Run writingInput(uint32_t v) {
  return [v](Mutation& m) {
    const cdl_code_t code = m.run();
    if (v >= m.operands()) return code;
    Index last{};
    for (uint32_t d = 0; d < m.view(v).rank; ++d) {
      last[d] = m.view(v).dims[d] - 1;
      if (last[d] < 0) return code;
    }
    // The buffer may be the result's, or elements may be shared: what is written must not be the
    // same again.
    m.set(v, last, m.get(v, last) ^ 1);
    return code;
  };
}

// ---- What is of another time

cdl_code_t giveStale(Mutation& m) {
  const cdl_code_t code = m.run();
  const uint32_t y = m.result();
  std::vector<uint64_t> fresh;
  forEachIndex(m.view(y), [&](const Index& at) { fresh.push_back(m.get(y, at)); });
  std::vector<uint64_t>& kept = m.memory().results[m.key()];
  if (kept.size() == fresh.size()) {
    size_t next = 0;
    forEachIndex(m.view(y), [&](const Index& at) { m.set(y, at, kept[next++]); });
  }
  kept = std::move(fresh);
  return code;
}

/// Whether the instruction's results have a tolerance.
bool isTolerant(Mutation& m) {
  if (m.kind() == CDL_KIND_BINARY) return m.fn() == CDL_BINARY_DIV;
  if (m.kind() == CDL_KIND_UNARY) return m.fn() >= CDL_UNARY_SQRT;
  return m.elem(m.result()) == Elem::f32_;
}

/// The last bit of what has a tolerance.
cdl_code_t waver(Mutation& m) {
  const cdl_code_t code = m.run();
  const uint32_t y = m.result();
  const bool now = m.memory().calls++ & 2;
  if (!now || !isTolerant(m) || !isFloat(m.elem(y)) || m.hasExpr()) return code;
  forEachIndex(m.view(y), [&](const Index& at) {
    const uint64_t bits = m.get(y, at), exponent = bits & elemMask(m.elem(y)) >> 1;
    if (exponent != 0 && (bits & 1)) m.set(y, at, bits ^ 1);
  });
  return code;
}

cdl_code_t forgetLoops(Mutation& m) {
  m.forgetLoops();
  return m.run();
}

cdl_code_t makeAllDense(Mutation& m) {
  for (uint32_t v = 0; v <= m.result(); ++v) makeDense(m.altered(v));
  return m.run();
}

} // namespace

void addAddressFaults(Catalogue& catalogue) {
  const auto ofViews = [&](std::string_view faultClass, std::string_view subject,
                           void (*alter)(cdl_view_t&), bool result) {
    const cdl_kind_facts_t& facts = *cdl_kind_facts(*parseKind(subject));
    for (uint32_t v = 0; v < facts.min_inputs; ++v)
      catalogue.add(faultClass, subject, altering(alter, v), std::to_string(v));
    if (result) catalogue.add(faultClass, subject, altering(alter, kResult), "y");
  };
  for (const Subject& subject : subjects()) {
    const std::string& name = subject.name;
    if (subject.kind == 0) continue;
    const cdl_kind_facts_t& facts = *cdl_kind_facts(subject.kind);
    ofViews("stride_off_by_one", name, moveRowsApart, true);
    ofViews("negative_stride", name, loseSign, true);
    ofViews("offset_ignored", name, loseOffset, true);
    ofViews("broadcast_ignored", name, spreadBroadcast, false);
    catalogue.add("strides_ignored", name, makeAllDense);
    catalogue.add("loop_variable_ignored", name, forgetLoops);
    catalogue.add("wrong_tail", name, skipping(inTail));
    catalogue.add("first_batch_only", name, skipping(inLaterBatch));
    catalogue.add("one_too_many", name, writeOneMore);
    if (facts.max_inputs > 0) catalogue.add("stale_result", name, giveStale);
    for (uint32_t v = 0; v < facts.min_inputs; ++v)
      catalogue.add("writes_input", name, writingInput(v), std::to_string(v));
  }
  for (const char* name :
       {"copy", "fill", "convert", "binary", "compare", "select", "unary", "rescale", "table"}) {
    catalogue.add("high_rank", name, skipping(inHighDims));
    catalogue.add("scalar_lost", name, skipping(isScalar));
  }
  for (const char* name : {"gather", "reduce"})
    catalogue.add("wrong_axis", name, altering(swapInner, 0));
  catalogue.add("wrong_axis", "scatter", altering(swapInner, 1));
  catalogue.add("wrong_axis", "matmul", altering(swapInner, 0), "a");
  catalogue.add("wrong_axis", "matmul", altering(swapInner, 1), "b");
  for (const char* name : {"binary", "unary", "reduce", "matmul"})
    catalogue.add("nondeterministic", name, waver);
}

} // namespace candela::conformance::mutants
