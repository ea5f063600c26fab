// Faults of SCALED_MATMUL: which scale, zero point or weight meets which.
#include "conformance/mutants/catalogue.h"
#include "conformance/mutants/numbers.h"
#include "core/reference/reference.h"
#include "core/support/tensor.h"

namespace candela::conformance::mutants {
namespace {

constexpr uint32_t kA = 0;
constexpr uint32_t kWeights = 1;
constexpr uint32_t kScale = 2;
constexpr uint32_t kZero = 3;
constexpr uint32_t kScaleOfA = 4;

/// Soft reads, in the place of each element of operand `v`, the one that `from` names.
Catalogue::Run reading(uint32_t v, Index (*from)(const Mutation&, Index at)) {
  return [v, from](Mutation& m) {
    if (v >= m.operands()) return m.run();
    std::vector<std::pair<Index, uint64_t>> read;
    forEachIndex(m.view(v), [&](const Index& at) { read.emplace_back(at, m.get(v, from(m, at))); });
    for (const auto& [at, bits] : read) m.pretend(v, at, bits);
    return m.run();
  };
}

/// Soft reads this number in the place of each element of operand `v` that is meant.
Catalogue::Run constant(uint32_t v, double number, bool (*isMeant)(const Mutation&, const Index&)) {
  return [v, number, isMeant](Mutation& m) {
    if (v >= m.operands()) return m.run();
    const uint64_t bits =
        isFloat(m.elem(v)) ? fromReal(m.elem(v), number) : static_cast<uint64_t>(number);
    forEachIndex(m.view(v), [&](const Index& at) {
      if (isMeant(m, at)) m.pretend(v, at, bits);
    });
    return m.run();
  };
}

Index firstBlock(const Mutation&, Index at) {
  at[1] = 0;
  return at;
}
Index firstRow(const Mutation&, Index at) {
  at[0] = 0;
  return at;
}
/// Of two that lie in one byte, and of any other two.
Index neighbour(const Mutation& m, Index at) {
  const int64_t other = at[2] ^ 1;
  if (other < m.view(kWeights).dims[2]) at[2] = other;
  return at;
}

bool isAny(const Mutation&, const Index&) { return true; }
/// Column k of a lies in the last block, where K ends within it.
bool isInCutBlock(const Mutation& m, const Index& at) {
  const int64_t* w = m.view(kWeights).dims;
  const int64_t depth = m.view(kA).dims[1];
  return depth % w[2] != 0 && at[1] >= depth / w[2] * w[2];
}

/// What lies there in one format is read in another one of as many bits.
Catalogue::Run mistaking(uint32_t v, Elem stored, Elem read) {
  return [v, stored, read](Mutation& m) {
    if (v < m.operands() && m.elem(v) == stored) m.altered(v).elem = static_cast<uint8_t>(read);
    return m.run();
  };
}

cdl_code_t withoutRounding(Mutation& m) {
  m.instr().fn = CDL_SCALED_MATMUL_EXACT;
  return m.run();
}

cdl_code_t inHalf(Mutation& m) {
  const cdl_code_t code = m.run();
  const uint32_t y = m.result();
  if (code == CDL_OK && m.elem(y) == Elem::f32_)
    forEachIndex(m.view(y), [&](const Index& at) {
      const double sum = toReal(Elem::f32_, m.get(y, at));
      m.set(y, at, fromReal(Elem::f32_, reference::roundReal(Elem::f16_, sum)));
    });
  return code;
}

} // namespace

void addScaledFaults(Catalogue& catalogue) {
  const std::string_view subject = "scaled_matmul";
  catalogue.add("function_ignored", subject, withoutRounding);
  catalogue.add("half_accumulator", subject, inHalf);
  catalogue.add("zero_point", subject, constant(kZero, 0, isAny));
  catalogue.add("per_channel", subject, reading(kScale, firstRow), "w_scale");
  catalogue.add("per_channel", subject, reading(kZero, firstRow), "w_zero");
  catalogue.add("per_channel", subject, reading(kScaleOfA, firstRow), "a_scale");
  catalogue.add("per_block", subject, reading(kScale, firstBlock), "w_scale");
  catalogue.add("per_block", subject, reading(kZero, firstBlock), "w_zero");
  catalogue.add("per_block", subject, reading(kScaleOfA, firstBlock), "a_scale");
  catalogue.add("scale_ignored", subject, constant(kScale, 1, isAny), "w_scale");
  catalogue.add("scale_ignored", subject, constant(kScaleOfA, 1, isAny), "a_scale");
  catalogue.add("halves_swapped", subject, reading(kWeights, neighbour));
  catalogue.add("block_cut", subject, constant(kA, 0, isInCutBlock));
  catalogue.add("format_mistaken", subject, mistaking(kWeights, Elem::i4_, Elem::u4_), "i4");
  catalogue.add("format_mistaken", subject, mistaking(kWeights, Elem::f8e5m2_, Elem::f8e4m3_),
                "f8e5m2");
  catalogue.add("format_mistaken", subject, mistaking(kWeights, Elem::f4e2m1_, Elem::i4_),
                "f4e2m1");
  catalogue.add("format_mistaken", subject, mistaking(kScaleOfA, Elem::f8e8m0_, Elem::f8e4m3_),
                "f8e8m0");
}

} // namespace candela::conformance::mutants
