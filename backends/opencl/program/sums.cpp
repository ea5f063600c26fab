#include "sums.hpp"

namespace program {

namespace {

/// The steps of an image in a grid of `perGroup` channels per group; those of an image in blocks
/// are whole blocks.
Steps stepsOf(const Image& image, int64_t perGroup) {
  const int64_t group = image.isBlocked() ? perGroup / kLanes * image.block : perGroup * image.lane;
  return {image.batch, group, image.block, image.lane, image.row, image.column};
}

/// The axes and steps of the weights of `sums`, in any of the layouts that are claimed.
bool placeWeights(const Image& x, int64_t perGroup, Sums& sums) {
  const cdl_view_t& w = *sums.b;
  const bool isBlocked = x.isBlocked();
  int64_t down = 0, across = 0;
  if (w.rank == 6 && w.dims[4] == kLanes && w.dims[5] == kLanes) { // o/16,i/16,k,l,i%16,o%16
    sums.channels = {{w.dims[1], x.block, w.strides[1]}, {kLanes, x.lane, w.strides[4]}};
    sums.bSteps.panel = w.strides[0];
    sums.bSteps.lane = w.strides[5];
    down = 2;
    across = 3;
  } else if (w.rank == 5) { // o/16,k,l,i,o%16
    sums.channels = {{w.dims[3], x.lane, w.strides[3]}};
    sums.bSteps.panel = w.strides[0];
    sums.bSteps.lane = w.strides[4];
    down = 1;
    across = 2;
  } else if (w.rank == 4) {
    sums.channels = {{w.dims[1], x.lane, w.strides[1]}};
    sums.bSteps.panel = kLanes * w.strides[0];
    sums.bSteps.lane = w.strides[0];
    sums.bSteps.group = sums.outs * w.strides[0];
    down = 2;
    across = 3;
  } else {
    return false;
  }
  sums.hasPaddedWeights = w.rank > 4;
  if (w.rank > 4 && sums.groups > 1) return false;
  // Row-major weights of an image in blocks walk blocks too.
  if (isBlocked && sums.channels.size() == 1 && perGroup % kLanes == 0) {
    const Axis lanes = sums.channels[0];
    sums.channels = {{perGroup / kLanes, x.block, lanes.b * kLanes}, {kLanes, x.lane, lanes.b}};
  } else if (isBlocked && w.rank != 6) {
    return false;
  }
  sums.down = {w.dims[down], 0, w.strides[down]};
  sums.across = {w.dims[across], 0, w.strides[across]};
  return true;
}

/// Moves x to the first element of its halo, where that is a border as the window wants it.
void useHalo(const Instruction& instr, const cdl_view_t& x, Sums& sums) {
  const cdl_halo_t* halo = instr.haloOf(x);
  if (!halo || halo->rank != x.rank || x.iv_strides[0] || x.iv_strides[1]) return;
  if (sums.isInteger() || halo->fill != 0) return;
  const int first = x.layout && x.rank == 4 ? 1 : 2;
  int64_t step = 1, offset = 0;
  for (int d = x.rank - 1; d >= 0; --d) {
    if (x.strides[d] != step && (x.dims[d] != 1 || halo->lo[d] || halo->hi[d])) return;
    offset += halo->lo[d] * step;
    step *= x.dims[d] + halo->lo[d] + halo->hi[d];
  }
  if (x.offset != offset) return; // a part of the content
  for (int d = 0; d < 2; ++d) {
    Edge& edge = sums.edges[static_cast<size_t>(d)];
    const int64_t results = d ? sums.columns : sums.rows;
    const int64_t last = (results - 1) * edge.stride + (edge.kernel - 1) * edge.dilation - edge.pad;
    if (edge.pad > halo->lo[first + d] || last >= edge.extent + int64_t{halo->hi[first + d]})
      return;
  }
  for (Edge& edge : sums.edges) edge.isFree = true;
}

/// Joins the rows of results into one where each reads its own pixel alone.
void flatten(Sums& sums) {
  for (const Edge& edge : sums.edges)
    if (edge.kernel != 1 || edge.isNeeded(&edge == &sums.edges[0] ? sums.rows : sums.columns))
      return;
  bool isFlat = sums.aSteps.canBeFlat(sums.columns) && sums.ySteps.canBeFlat(sums.columns);
  for (const auto& view : sums.views) isFlat = isFlat && (!view || view->canBeFlat(sums.columns));
  if (!isFlat) return;
  sums.columns *= sums.rows;
  sums.rows = 1;
  sums.edges = {};
}

bool describeConvolution(const Instruction& instr, Sums& sums) {
  Image x, y;
  if (!imageOf(instr, *sums.a, x) || !imageOf(instr, *sums.y, y)) return false;
  if (instr.attr(CDL_ATTR_TRANSPOSED, 0)) return false;
  sums.batch = y.n;
  sums.groups = instr.attr(CDL_ATTR_GROUP, 1);
  sums.outs = y.c / sums.groups;
  sums.rows = y.h;
  sums.columns = y.w;
  const int64_t perGroup = x.c / sums.groups;
  const bool isInBlocks = y.isBlocked();
  if (isInBlocks && sums.outs % kLanes) return false;
  if (!placeWeights(x, perGroup, sums)) return false;
  sums.ySteps = stepsOf(y, sums.outs);
  sums.aSteps = stepsOf(x, perGroup);
  sums.aSteps.panel = 0;
  const std::array<int64_t, 2> kernels = {sums.down.count, sums.across.count};
  const std::array<int64_t, 2> extents = {x.h, x.w};
  for (uint32_t d = 0; d < 2; ++d)
    sums.edges[d] = {kernels[d],
                     instr.attr(CDL_ATTR_STRIDES, 1, d),
                     instr.attr(CDL_ATTR_DILATIONS, 1, d),
                     instr.attr(CDL_ATTR_PADS, 0, d),
                     extents[d],
                     false};
  sums.down.a = sums.edges[0].dilation * x.row;
  sums.across.a = sums.edges[1].dilation * x.column;
  sums.aOffset = -sums.edges[0].pad * x.row - sums.edges[1].pad * x.column;
  sums.aSteps.row = x.row * sums.edges[0].stride;
  sums.aSteps.column = x.column * sums.edges[1].stride;
  for (uint32_t i = instr.operands(); i < instr->inputs; ++i) {
    Image view;
    if (!imageOf(instr, instr.input(i), view)) return false;
    sums.views[i] = stepsOf(view, sums.outs);
  }
  useHalo(instr, *sums.a, sums);
  return true;
}

bool describeProduct(const Instruction& instr, Sums& sums) {
  const cdl_view_t &a = *sums.a, &b = *sums.b, &y = *sums.y;
  if (a.rank != 3 || y.rank != 3) return false;
  const auto matrix = [](const cdl_view_t& view) {
    return Steps{view.strides[0], 0, kLanes * view.strides[2], view.strides[2], 0, view.strides[1]};
  };
  sums.batch = y.dims[0];
  sums.columns = y.dims[1];
  sums.outs = y.dims[2];
  sums.aSteps = {a.strides[0], 0, 0, 0, 0, a.strides[1]};
  sums.ySteps = matrix(y);
  sums.hasPaddedWeights = b.rank == 4; // b,n/16,k,n%16
  if (b.rank == 4) {
    sums.bSteps = {b.strides[0], 0, b.strides[1], b.strides[3], 0, 0};
    sums.channels = {{a.dims[2], a.strides[2], b.strides[2]}};
  } else {
    sums.bSteps = {b.strides[0], 0, kLanes * b.strides[2], b.strides[2], 0, 0};
    sums.channels = {{a.dims[2], a.strides[2], b.strides[1]}};
  }
  for (uint32_t i = instr.operands(); i < instr->inputs; ++i) {
    if (instr.input(i).rank != 3) return false;
    sums.views[i] = matrix(instr.input(i));
  }
  return true;
}

} // namespace

bool describeSums(const Instruction& instr, Sums& sums) {
  sums.a = &instr.input(0);
  sums.b = &instr.input(1);
  sums.y = &instr.y();
  if (instr.operands() > 2) sums.aZero = &instr.input(2);
  if (instr.operands() > 3) sums.bZero = &instr.input(3);
  const bool isInteger = sums.a->elem == CDL_I8 || sums.a->elem == CDL_U8;
  const bool isFloat = sums.a->elem == CDL_F32 && sums.b->elem == CDL_F32 && !sums.aZero;
  if (!isFloat && !(isInteger && sums.b->elem == CDL_I8)) return false;
  sums.views.resize(instr->inputs);
  sums.accumulates = instr.attr(CDL_ATTR_ACCUMULATE, 0) != 0;
  const bool isKnown = instr->kind == CDL_KIND_MATMUL ? describeProduct(instr, sums)
                                                      : describeConvolution(instr, sums);
  if (!isKnown || !canCompute(instr.steps()) || elementsOf(*sums.y) == 0) return false;
  if (elementsOf(*sums.a) == 0 || elementsOf(*sums.b) == 0) return false;
  if (instr->kind == CDL_KIND_CONV2D) flatten(sums);
  return true;
}

std::string placeOf(const Steps& s) {
  return cdl::text("n * ", s.batch, " + g * ", s.group, " + panel * ", s.panel, " + row * ", s.row,
                   " + (long)col * ", s.column);
}

SumsEnd::SumsEnd(const Instruction& instr, const Sums& sums, Writer& writer)
    : instr_(instr), sums_(sums), w_(writer), pointers_(instr->inputs) {
  for (size_t i = 0; i < sums.views.size(); ++i)
    if (sums.views[i]) pointers_[i] = w_.pointer(instr.input(static_cast<uint32_t>(i)));
  y_ = w_.pointer(*sums.y);
}

void SumsEnd::write(int lanes, const std::string& lane, const std::string& column,
                    const std::string& sum) {
  const auto place = [&](const std::string& pointer, const Steps& s) {
    std::string at = pointer + " + " + placeOf(s);
    if (!column.empty()) at += cdl::text(" + ", column, " * ", s.column);
    if (!lane.empty()) at += cdl::text(" + (long)", lane, " * ", s.lane);
    return at;
  };
  const std::string to = place(y_, sums_.ySteps);
  const std::string type = valueType(sums_.sumElem(), lanes), acc = cdl::text("acc", lanes);
  std::string value = sum;
  if (sums_.accumulates) value += " + " + Writer::load(sums_.y->elem, lanes, to, sums_.ySteps.lane);
  w_.line("const ", type, " ", acc, " = ", value, ";");
  const std::vector<cdl_step_t> steps = instr_.steps();
  value = w_.compute(steps, 0, steps.size(), lanes, acc, [&](uint32_t i) {
    const Steps& s = *sums_.views[i];
    return Writer::load(instr_.input(i).elem, lanes, place(pointers_[i], s), s.lane);
  });
  w_.store(sums_.y->elem, lanes, to, sums_.ySteps.lane, value);
}

bool writeSums(const Instruction& instr, const Profile& profile, KernelText& text) {
  Sums sums;
  if (!describeSums(instr, sums)) return false;
  const bool isPacked = instr->kind != CDL_KIND_MATMUL || sums.hasPaddedWeights;
  if (profile.isGpu())
    text = writeTileSums(instr, sums, profile);
  else if (isPacked)
    text = writeRowSums(instr, sums, profile);
  else
    text = writeBlockSums(instr, sums, profile);
  return true;
}

} // namespace program
