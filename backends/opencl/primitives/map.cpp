// Everything that goes element by element is a list of steps for map.cl: one instruction is a list
// of one.
#include "map.hpp"

namespace {

constexpr int kPart = 16; // elements of a work-item

/// The views of one map, y first. Dims of 1 are gone, dims that lie alike in all are one; the last
/// one is a row.
struct Nest {
  int rank = 0;
  std::array<int64_t, CDL_MAX_RANK> dims{};
  std::vector<std::array<int64_t, CDL_MAX_RANK>> strides;

  /// The last views are tables, not walked along.
  Nest(const std::vector<cdl::Operand>& views, size_t tables) : strides(views.size()) {
    const cdl::Operand& y = views[0];
    const size_t walked = views.size() - tables;
    for (int d = 0; d < y.rank; ++d) {
      if (y.dims[d] == 1) continue;
      bool joins = rank > 0;
      for (size_t v = 0; v < walked && joins; ++v)
        joins = strides[v][rank - 1] == views[v].strides[d] * y.dims[d];
      if (!joins) ++rank;
      dims[rank - 1] = joins ? dims[rank - 1] * y.dims[d] : y.dims[d];
      for (size_t v = 0; v < walked; ++v) strides[v][rank - 1] = views[v].strides[d];
    }
    if (rank == 0) dims[rank++] = 1;
    const auto longest =
        static_cast<int>(std::max_element(dims.begin(), dims.begin() + rank) - dims.begin());
    const int inner = rank - 1;
    if (dims[inner] < kPart && longest != inner) { // short rows waste work-items
      std::swap(dims[inner], dims[longest]);
      for (auto& all : strides) std::swap(all[inner], all[longest]);
    }
    for (size_t v = walked; v < views.size(); ++v) strides[v] = views[v].strides;
  }
};

/// The instruction as a step whose sources are its operands.
MapStep stepOf(const cdl::Op& op, std::vector<cdl::Operand>& views) {
  views.push_back(op.y());
  for (uint32_t i = 0; i < op.operands(); ++i) views.push_back(op.input(i));
  MapStep step{op.instr().kind, op.fn(), views[views.size() > 1 ? 1 : 0].elem, views[0].elem,
               op.attr(CDL_ATTR_SATURATE, 0)};
  for (size_t v = 1; v < views.size(); ++v)
    step.sources[v - 1] = kFromView + static_cast<int64_t>(v - 1);
  return step;
}

std::pair<int64_t, int64_t> limitsOf(uint8_t elem) {
  switch (elem) {
  case CDL_U8: return {0, 255};
  case CDL_I8: return {-128, 127};
  default: return {INT32_MIN, INT32_MAX};
  }
}

/// Bits of the largest magnitude of an integer.
int magnitudeBits(uint8_t elem) {
  switch (elem) {
  case CDL_I32: return 31;
  case CDL_I8: return 7;
  default: return 8;
  }
}

} // namespace

Launch mapOf(const std::vector<cdl::Operand>& views, const std::vector<MapStep>& steps,
             size_t tables, const std::array<int64_t, 4>& rescale) {
  const Nest nest(views, tables);
  const int64_t parts = (nest.dims[nest.rank - 1] + kPart - 1) / kPart;
  int64_t rows = 1;
  for (int d = 0; d < nest.rank - 1; ++d) rows *= nest.dims[d];
  const auto firstStep = static_cast<int64_t>(9 + CDL_MAX_RANK + views.size() * (2 + CDL_MAX_RANK));
  Launch launch{
      "map", "", "map", parts * rows, {nest.rank, parts, rows, int64_t(steps.size()), firstStep},
      {},    {}};
  launch.numbers.insert(launch.numbers.end(), rescale.begin(), rescale.end());
  launch.numbers.insert(launch.numbers.end(), nest.dims.begin(), nest.dims.end());
  for (size_t v = 0; v < views.size(); ++v) {
    launch.offsets.emplace_back(launch.numbers.size(), &views[v]);
    launch.numbers.insert(launch.numbers.end(), {0, views[v].elem});
    launch.numbers.insert(launch.numbers.end(), nest.strides[v].begin(), nest.strides[v].end());
    launch.operands.push_back(&views[v]);
  }
  launch.operands.resize(1 + kPieces);
  for (const MapStep& step : steps) {
    launch.numbers.insert(launch.numbers.end(),
                          {step.kind, step.fn, step.from, step.to, step.saturate});
    launch.numbers.insert(launch.numbers.end(), step.sources.begin(), step.sources.end());
    launch.numbers.push_back(step.bits);
  }
  return launch;
}

cdl::Status OpenCl::map(const cdl::Op& op) {
  std::vector<cdl::Operand> views;
  MapStep step = stepOf(op, views);
  if (op.kind() == cdl::Kind::Fill) { // a copy of what stands in the instruction
    step = MapStep{CDL_KIND_COPY, 0, views[0].elem, views[0].elem, 0};
    step.sources[0] = kFromBits;
    step.bits = op.attr(CDL_ATTR_VALUE, 0);
  }
  return run(op, mapOf(views, {step}, op.kind() == cdl::Kind::Table ? 1 : 0));
}

cdl::Status OpenCl::rescale(const cdl::Rescale& op) {
  std::vector<cdl::Operand> views;
  const MapStep step = stepOf(op, views);
  const auto [lowest, highest] = limitsOf(op.y().elem);
  const auto fits = [&](const cdl::Operand& x, int shift) { // the product, or the sum of two
    return magnitudeBits(x.elem) + 24 + (op.hasB() ? 1 : 0) + shift <= 63;
  };
  if (!fits(op.a(), op.aLeftShift()) || (op.hasB() && !fits(op.b(), op.bLeftShift())))
    return cdl::error(CDL_BAD_MODEL,
                      cdl::text("left shifts ", op.aLeftShift(), " and ", op.bLeftShift(),
                                " leave the 63 bits of an exact sum"));
  return run(op,
             mapOf(views, {step}, 0,
                   {op.aLeftShift(), op.bLeftShift(), op.clampMin(lowest), op.clampMax(highest)}));
}
