#include "image.hpp"

#include "elementwise.hpp"
#include "instructions.hpp"

namespace cpu {

Operand panelsOf(const ImageView& image, const PanelRun& run, int64_t outs,
                 const std::vector<int64_t>& dims) {
  return restrided(
      image.view, dims,
      {image.batch, outs * image.lane, image.block, image.lane, image.row, image.column},
      run.first * image.block);
}

Plane ImageView::plane(int64_t group, int64_t rowStep, int64_t columnStep) const {
  const auto bytes = [&](int64_t elements) { return view.bytes(elements); };
  // Groups of a blocked image are whole blocks.
  const int64_t groupStep = isBlocked ? group / kPanel * block : group * lane;
  return {.elem = view.elem,
          .at = view.at,
          .batch = bytes(batch),
          .group = bytes(groupStep),
          .panel = bytes(isBlocked ? block : kPanel * lane),
          .row = bytes(row * rowStep),
          .column = bytes(column * columnStep),
          .lane = bytes(lane)};
}

std::vector<SumAxis> ImageView::channelAxes(int64_t channels, int64_t weightStep) const {
  if (!isBlocked) return {{channels, view.bytes(lane), weightStep}};
  return {{channels / kPanel, view.bytes(block), kPanel * weightStep},
          {kPanel, view.bytes(lane), weightStep}};
}

void ImageEpilogue::apply(Lowering& lowering, const Operand& acc, const ImageView& y,
                          const std::function<Operand(const ImageView&)>& viewOf) const {
  if (!expr) return copy(lowering, acc, viewOf(y));
  std::vector<Operand> read = {acc};
  for (const auto& view : views)
    if (view) read.push_back(viewOf(*view));
  map(lowering, "conv " + exprKey(lowering, *expr), read, viewOf(y),
      [&](Builder& b, const std::vector<Typed>& loaded) {
        std::vector<Typed> byIndex(views.size());
        for (size_t i = 0, next = 1; i < views.size(); ++i)
          if (views[i]) byIndex[i] = loaded[next++];
        return computeExpr(b, lowering.image, *expr, byIndex, &loaded[0]);
      });
}

std::optional<ImageView> imageOf(const Operand& view) {
  ImageView image;
  image.view = view;
  if (view.channelsLast) {
    image.n = view.dims[0];
    image.h = view.dims[1];
    image.w = view.dims[2];
    image.c = view.dims[3];
    image.batch = view.strides[0];
    image.row = view.strides[1];
    image.column = view.strides[2];
    image.lane = view.strides[3];
    image.block = kPanel * image.lane;
    return image;
  }
  image.n = view.dims[0];
  image.h = view.dims[2];
  image.w = view.dims[3];
  image.batch = view.strides[0];
  image.row = view.strides[2];
  image.column = view.strides[3];
  if (view.rank == 4) {
    image.c = view.dims[1];
    image.lane = view.strides[1];
    image.block = kPanel * view.strides[1];
    return image;
  }
  if (view.rank != 5 || view.dims[4] != kPanel) return std::nullopt;
  image.isBlocked = true;
  image.c = view.dims[1] * kPanel;
  image.block = view.strides[1];
  image.lane = view.strides[4];
  return image;
}

namespace {

/// The view is all that lies inside of its buffer's halo: what surrounds a part of it is content.
bool isContent(const Operand& view, const cdl_halo_t& halo) {
  if (halo.rank != view.rank || view.at.perLoop[0] || view.at.perLoop[1]) return false;
  int64_t step = 1, first = 0;
  for (int d = view.rank - 1; d >= 0; --d) {
    if (view.strides[d] != step && (view.dims[d] != 1 || halo.lo[d] || halo.hi[d])) return false;
    first += halo.lo[d] * step;
    step *= view.dims[d] + halo.lo[d] + halo.hi[d];
  }
  return view.at.offset == view.bytes(first);
}

} // namespace

std::optional<ImageView> insideHalo(const ImageView& x, const int64_t begin[2],
                                    const int64_t end[2], uint64_t value) {
  if (!begin[0] && !begin[1] && !end[0] && !end[1]) return x;
  const cdl_halo_t* halo = x.view.halo;
  if (!halo || !isContent(x.view, *halo) || halo->fill != value) return std::nullopt;
  for (int d = 0; d < 2; ++d) {
    const int dim = d + (x.view.channelsLast ? 1 : 2);
    if (halo->lo[dim] < begin[d] || halo->hi[dim] < end[d]) return std::nullopt;
  }
  ImageView whole = x;
  whole.h += begin[0] + end[0];
  whole.w += begin[1] + end[1];
  whole.view.at.offset -= x.view.bytes(begin[0] * x.row + begin[1] * x.column);
  return whole;
}

ImageView bordered(Lowering& lowering, const ImageView& x, const int64_t begin[2],
                   const int64_t end[2], uint64_t value) {
  if (const auto inside = insideHalo(x, begin, end, value)) return *inside;
  ImageView whole = x;
  whole.h += begin[0] + end[0];
  whole.w += begin[1] + end[1];
  const bool isLast = x.view.channelsLast;
  const int64_t lanes = x.isBlocked ? kPanel : 1;
  const int64_t blocks = x.isBlocked ? x.c / kPanel : x.c;
  whole.column = isLast ? x.c : lanes;
  whole.row = whole.w * whole.column;
  const int64_t area = isLast ? 1 : whole.h * whole.row; // from one block to the next
  whole.batch = isLast ? whole.h * whole.row : blocks * area;
  whole.lane = x.isBlocked ? 1 : area;
  whole.block = x.isBlocked ? area : kPanel * area;
  const Operand all =
      view(x.view.elem, {}, {},
           lowering.scratch(static_cast<uint64_t>(x.view.bytes(x.n * whole.batch))));
  const std::vector<int64_t> strides = {whole.batch, area, whole.row, whole.column, 1};
  const auto part = [&](int64_t rows, int64_t columns, int64_t row, int64_t column) {
    return restrided(all, {x.n, blocks, rows, columns, lanes}, strides,
                     row * whole.row + column * whole.column);
  };
  // The border alone is filled: rows above and below, then columns left and right of the content.
  const auto edge = [&](int64_t rows, int64_t columns, int64_t row, int64_t column) {
    if (rows > 0 && columns > 0) fill(lowering, part(rows, columns, row, column), value);
  };
  edge(begin[0], whole.w, 0, 0);
  edge(end[0], whole.w, begin[0] + x.h, 0);
  edge(x.h, begin[1], begin[0], 0);
  edge(x.h, end[1], begin[0], begin[1] + x.w);
  const int64_t blockStep = x.isBlocked ? x.block : x.lane;
  const int64_t laneStep = x.isBlocked ? x.lane : 0;
  copy(lowering,
       restrided(x.view, {x.n, blocks, x.h, x.w, lanes},
                 {x.batch, blockStep, x.row, x.column, laneStep}),
       part(x.h, x.w, begin[0], begin[1]));
  whole.view = all;
  whole.view.rank = x.view.rank;
  whole.view.channelsLast = isLast;
  return whole;
}

} // namespace cpu
