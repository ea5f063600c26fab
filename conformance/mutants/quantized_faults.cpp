// Faults of RESCALE and TABLE.
#include "conformance/mutants/catalogue.h"
#include "conformance/mutants/numbers.h"
#include "core/support/tensor.h"

namespace candela::conformance::mutants {
namespace {

/// value / 2^s to nearest, ties to even.
int64_t nearest(int64_t value, int s) {
  if (s <= 0) return value;
  if (s >= 64) return 0;
  const __int128 unit = __int128(1) << s, down = value >> std::min(s, 63),
                 rest = value - down * unit;
  return static_cast<int64_t>(down + (2 * rest > unit || (2 * rest == unit && (down & 1))));
}

/// clamp(rne((a*Ma*2^ka + b*Mb*2^kb) / 2^s) + zp) with all that is in it. Without b: 0.
struct Rescale {
  Elem elem;
  int64_t a, ma, b, mb;
  int ka, kb, s;
  int64_t zero, lo, hi;

  int64_t sum() const { return part(a * ma, ka) + part(b * mb, kb); }
  static int64_t part(int64_t product, int shift) {
    return static_cast<int64_t>(static_cast<uint64_t>(product) << shift);
  }
  uint64_t finished(int64_t rounded) const {
    return static_cast<uint64_t>(std::clamp<__int128>(__int128(rounded) + zero, lo, hi));
  }
};
using Formula = uint64_t (*)(const Rescale&);

Catalogue::Run rescaling(Formula formula) {
  return [formula](Mutation& m) {
    const uint32_t y = m.result();
    const Elem elem = m.elem(y);
    std::vector<std::pair<Index, uint64_t>> results;
    const auto whole = [&](uint32_t v, const Index& at) {
      return static_cast<int64_t>(integerOf(m.elem(v), m.get(v, at)));
    };
    const IntegerRange range = integerRange(elem);
    forEachIndex(m.view(y), [&](const Index& at) {
      const bool two = m.operands() == 6;
      const Rescale r{elem,
                      whole(0, at),
                      whole(1, at),
                      two ? whole(4, at) : 0,
                      two ? whole(5, at) : 0,
                      static_cast<int>(m.attr(CDL_ATTR_A_LEFT_SHIFT, 0)),
                      static_cast<int>(m.attr(CDL_ATTR_B_LEFT_SHIFT, 0)),
                      static_cast<int>(whole(2, at)),
                      whole(3, at),
                      m.attr(CDL_ATTR_CLAMP_MIN, static_cast<int64_t>(range.lowest)),
                      m.attr(CDL_ATTR_CLAMP_MAX, static_cast<int64_t>(range.highest))};
      results.emplace_back(at, formula(r));
    });
    const cdl_code_t code = m.run();
    if (code == CDL_OK)
      for (const auto& [at, bits] : results) m.set(y, at, bits);
    return code;
  };
}

int64_t shiftedDown(int64_t value, int s) {
  if (s <= 0) return value;
  if (s >= 63) return value < 0 ? -1 : 0;
  return value >> s;
}
uint64_t truncated(const Rescale& r) { return r.finished(shiftedDown(r.sum(), r.s)); }
uint64_t halfUp(const Rescale& r) {
  if (r.s <= 0 || r.s > 62) return r.finished(nearest(r.sum(), r.s));
  return r.finished(static_cast<int64_t>((__int128(r.sum()) + (__int128(1) << (r.s - 1))) >> r.s));
}
uint64_t halfAway(const Rescale& r) {
  if (r.sum() >= 0 || r.s <= 0 || r.s > 62) return halfUp(r);
  return r.finished(
      -static_cast<int64_t>((-__int128(r.sum()) + (__int128(1) << (r.s - 1))) >> r.s));
}
uint64_t roundedTwice(const Rescale& r) {
  if (r.mb != 0)
    return r.finished(nearest(Rescale::part(r.a * r.ma, r.ka), r.s) +
                      nearest(Rescale::part(r.b * r.mb, r.kb), r.s));
  const int first = r.s / 2;
  return r.finished(nearest(nearest(r.sum(), first), r.s - first));
}
uint64_t wrapped(const Rescale& r) { return static_cast<uint64_t>(nearest(r.sum(), r.s) + r.zero); }
uint64_t unaligned(const Rescale& r) {
  return r.finished(
      nearest(Rescale::part(r.a * r.ma, r.ka) + Rescale::part(r.b * r.mb, r.ka), r.s));
}
uint64_t clampedEarly(const Rescale& r) {
  return static_cast<uint64_t>(std::clamp(nearest(r.sum(), r.s), r.lo, r.hi) + r.zero);
}
uint64_t narrow(const Rescale& r) {
  Rescale less = r;
  less.a = static_cast<int32_t>(static_cast<uint32_t>(r.a * r.ma));
  less.ma = 1;
  less.b = static_cast<int32_t>(static_cast<uint32_t>(r.b * r.mb));
  less.mb = 1;
  return r.finished(nearest(less.sum(), r.s));
}

cdl_code_t withoutZero(Mutation& m) {
  forEachIndex(m.view(3), [&](const Index& at) { m.pretend(3, at, 0); });
  return m.run();
}
Catalogue::Run firstOf(uint32_t v) {
  return [v](Mutation& m) {
    if (v < m.operands())
      for (uint32_t d = 0; d < m.view(v).rank; ++d) m.altered(v).strides[d] = 0;
    return m.run();
  };
}

// ---- TABLE

/// The result from the table and a place in it: the entry, and for i16 the rest of 128.
using Lookup = int64_t (*)(const std::function<int64_t(int64_t)>& entry, int64_t place,
                           int64_t rest, int64_t last);

Catalogue::Run lookingUp(Lookup lookup) {
  return [lookup](Mutation& m) {
    const uint32_t y = m.result();
    const bool words = m.elem(0) == Elem::i16_;
    if (isFloat(m.elem(y))) return m.run();
    const auto entry = [&](int64_t i) {
      return static_cast<int64_t>(integerOf(m.elem(1), m.get(1, {i})));
    };
    std::vector<std::pair<Index, int64_t>> results;
    forEachIndex(m.view(y), [&](const Index& at) {
      const auto lowest = static_cast<int64_t>(integerRange(m.elem(0)).lowest);
      const int64_t x = static_cast<int64_t>(integerOf(m.elem(0), m.get(0, at))) - lowest;
      const int64_t place = words ? x / 128 : x;
      const int64_t rest = words ? x % 128 : 0;
      results.emplace_back(at, lookup(entry, place, rest, m.view(1).dims[0] - 1));
    });
    const cdl_code_t code = m.run();
    if (code == CDL_OK)
      for (const auto& [at, value] : results) m.set(y, at, static_cast<uint64_t>(value));
    return code;
  };
}
int64_t between(int64_t low, int64_t high, int64_t rest, int64_t half) {
  return low + (((high - low) * rest + half) >> 7);
}
int64_t nextEntry(const std::function<int64_t(int64_t)>& entry, int64_t place, int64_t rest,
                  int64_t last) {
  const int64_t next = std::min(place + 1, last);
  return rest ? between(entry(next), entry(std::min(next + 1, last)), rest, 64) : entry(next);
}
int64_t entryBelow(const std::function<int64_t(int64_t)>& entry, int64_t place, int64_t, int64_t) {
  return entry(place);
}
int64_t halfEven(const std::function<int64_t(int64_t)>& entry, int64_t place, int64_t rest,
                 int64_t) {
  return rest ? entry(place) + nearest((entry(place + 1) - entry(place)) * rest, 7) : entry(place);
}
int64_t roundedDown(const std::function<int64_t(int64_t)>& entry, int64_t place, int64_t rest,
                    int64_t) {
  return rest ? between(entry(place), entry(place + 1), rest, 0) : entry(place);
}

} // namespace

void addQuantizedFaults(Catalogue& catalogue) {
  catalogue.add("truncated", "rescale", rescaling(truncated));
  catalogue.add("half_up", "rescale", rescaling(halfUp));
  catalogue.add("half_away", "rescale", rescaling(halfAway));
  catalogue.add("rounded_twice", "rescale", rescaling(roundedTwice));
  catalogue.add("no_saturation", "rescale", rescaling(wrapped));
  catalogue.add("alignment_lost", "rescale", rescaling(unaligned));
  catalogue.add("clamp_before_zero", "rescale", rescaling(clampedEarly));
  catalogue.add("narrow_product", "rescale", rescaling(narrow));
  catalogue.add("zero_point", "rescale", withoutZero);
  catalogue.add("per_channel", "rescale", firstOf(1), "multiplier");
  catalogue.add("per_channel", "rescale", firstOf(2), "shift");
  catalogue.add("per_channel", "rescale", firstOf(3), "zero");
  catalogue.add("per_channel", "rescale", firstOf(5), "b_multiplier");
  catalogue.add("table_off_by_one", "table", lookingUp(nextEntry));
  catalogue.add("no_interpolation", "table", lookingUp(entryBelow));
  catalogue.add("truncated", "table", lookingUp(roundedDown));
  catalogue.add("half_even", "table", lookingUp(halfEven));
}

} // namespace candela::conformance::mutants
