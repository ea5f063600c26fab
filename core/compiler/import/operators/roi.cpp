#include <array>
#include <limits>

#include "core/compiler/import/term.h"

/// Pooling over regions of images that are known at run time.
namespace candela::import {
namespace {

struct Regions {
  Term x, rois, image; ///< image: i32, of each region; beyond the batch: none
  int64_t count, height, width;
};

Regions readRegions(const NodeContext& context, int64_t columns) {
  const Term x = termOf(context, 0), rois = termOf(context, 1);
  if (!isFloat(x.elem()) || x.rank() != 4 || x.count() == 0)
    need(badModel("input {} is no batch of images", x.text()));
  if (rois.elem() != x.elem() || rois.rank() != 2 || rois.dim(1) != columns)
    need(badModel("rois {}, expected {}[regions,{}]", rois.text(), elemName(x.elem()), columns));
  const Term image = columns == 5 ? rois.slice(1, 0, 1) : termOf(context, 2);
  if (image.count() != rois.dim(0))
    need(badModel("{} regions but batch_indices {}", rois.dim(0), image.text()));
  if (x.count() > INT32_MAX)
    need(failure(Code::unsupported, "{} has more places than 32 bits can name", x.text()));
  return {
      x,
      rois.slice(1, columns - 4, 4).cast(weightedElem(x.elem())),
      min(max(image, -1), static_cast<double>(x.dim(0))).cast(Elem::i32_).reshape({rois.dim(0)}),
      rois.dim(0),
      x.dim(2),
      x.dim(3)};
}

int64_t extentAttr(NodeContext& context, const char* name, int64_t most) {
  const int64_t value = attrOf<int64_t>(context, name, 1);
  if (value < 1 || value > most) need(badModel("{} is {}, expected 1 to {}", name, value, most));
  return value;
}

/// What RoiAlign says of its bins and the samples in them.
struct Alignment {
  bool isMax = false;
  bool isHalfPixel = false; ///< coordinates are of the middles of elements
  std::array<int64_t, 2> bins = {};
  int64_t samples = 0; ///< along each axis of a bin
  double scale = 1;    ///< of the regions' coordinates
};

Alignment readAlignment(NodeContext& context) {
  const std::string mode = attrOf<std::string>(context, "mode", "avg");
  if (mode != "avg" && mode != "max") need(badModel("mode '{}' is not avg or max", mode));
  std::string shift = "output_half_pixel"; // what it was before there was a choice
  if (context.opset >= 16)
    shift = attrOf<std::string>(context, "coordinate_transformation_mode", "half_pixel");
  if (shift != "half_pixel" && shift != "output_half_pixel")
    need(badModel("coordinate_transformation_mode '{}' is not half_pixel or output_half_pixel",
                  shift));
  constexpr int64_t kMostBins = 1 << 15;
  Alignment made;
  made.isMax = mode == "max";
  made.isHalfPixel = shift == "half_pixel";
  made.bins = {extentAttr(context, "output_height", kMostBins),
               extentAttr(context, "output_width", kMostBins)};
  made.samples = attrOf<int64_t>(context, "sampling_ratio", 0);
  made.scale = attrOf<float>(context, "spatial_scale", 1.0f);
  if (made.samples < 0 || made.samples > kMostBins)
    need(badModel("sampling_ratio is {}, expected 0 to {}", made.samples, kMostBins));
  if (made.samples == 0)
    need(failure(Code::unsupported,
                 "sampling_ratio 0 takes as many samples as a region is large, which is not known "
                 "when the model is imported"));
  return made;
}

/// Samples on a grid in every bin, each from the four elements around it.
Status importRoiAlign(NodeContext& context) {
  const Regions all = readRegions(context, 4);
  const Alignment alignment = readAlignment(context);
  const std::array<int64_t, 2>& bins = alignment.bins;
  const int64_t samples = alignment.samples;
  const Term corners = all.rois * alignment.scale - (alignment.isHalfPixel ? 0.5 : 0);
  std::optional<Term> index, isThere, weight;
  for (const int axis : {0, 1}) {
    const int64_t extent = axis == 0 ? all.height : all.width, count = bins[axis] * samples;
    const Term start = corners.slice(1, 1 - axis, 1);
    Term size = corners.slice(1, 3 - axis, 1) - start;
    if (!alignment.isHalfPixel) size = max(size, 1); // a malformed region is one element
    const Term steps = (iota(context.build, count, Elem::i32_).cast(size.elem()) + 0.5) /
                       static_cast<double>(samples);
    const Term place = start + size / static_cast<double>(bins[axis]) * steps; // [regions, samples]
    const Term outside =
        logicalOr(less(place, -1), less(place.number(static_cast<double>(extent)), place));
    const auto last = static_cast<double>(extent - 1);
    const Term inside = min(max(place, 0), last), low = floor(inside), beyond = inside - low;
    // [regions, bins down, bins across, samples down, samples across, 2, 2]
    Shape form{all.count, 1, 1, 1, 1, 1, 1};
    form[1 + axis] = bins[axis];
    form[3 + axis] = samples;
    const Term there = logicalNot(outside).reshape(form);
    form[5 + axis] = 2;
    const auto both = [&](const Term& first, const Term& second) {
      return concat({first.unsqueeze(2), second.unsqueeze(2)}, 2).reshape(form);
    };
    const Term part = both(low, min(low + 1, last)).cast(Elem::i32_),
               share = both(1 - beyond, beyond);
    index = axis == 0 ? part * static_cast<double>(all.width) : *index + part;
    weight = axis == 0 ? share : *weight * share;
    isThere = axis == 0 ? there : logicalAnd(*isThere, there);
  }
  const int64_t places = all.height * all.width, channels = all.x.dim(1);
  const Term image = all.image.reshape({all.count, 1, 1, 1, 1, 1, 1}) * static_cast<double>(places);
  index = select(*isThere, *index + image, -1); // of which Take makes 0
  const Term rows = all.x.transpose({0, 2, 3, 1})
                        .cast(weight->elem())
                        .reshape({1, all.x.dim(0) * places, channels});
  const Term taken =
      make(OpKind::Take, {rows, index->reshape({index->count()})}, {{"mode", std::string("zero")}});
  const int64_t each = 4 * samples * samples;
  const Shape form{all.count, bins[0], bins[1], each, channels};
  const Term parts = taken.reshape(form) * weight->reshape({all.count, bins[0], bins[1], each, 1});
  const Term pooled = alignment.isMax ? reduce(OpKind::ReduceMax, parts, {3}, false)
                                      : reduce(OpKind::ReduceSum, parts, {3}, false) /
                                            static_cast<double>(samples * samples);
  return context.set(pooled.transpose({0, 3, 1, 2}).cast(all.x.elem()));
}

/// The largest element of every bin: columns first, then rows, each among those that a mask leaves.
Status importMaxRoiPool(NodeContext& context) {
  const Regions all = readRegions(context, 5);
  const auto pooled = attrOf<std::vector<int64_t>>(context, "pooled_shape", {});
  if (pooled.size() != 2 || pooled[0] < 1 || pooled[1] < 1 || pooled[0] > INT32_MAX ||
      pooled[1] > INT32_MAX)
    return badModel("pooled_shape [{}] is not two positive numbers", fmt::join(pooled, ","));
  const Term scaled = all.rois * attrOf<float>(context, "spatial_scale", 1.0f);
  // halves away from zero
  const Term corners = select(less(scaled, 0), -floor(0.5 - scaled), floor(scaled + 0.5));
  const Elem wide = corners.elem();
  struct Bins {
    Term has;     ///< [regions, bins, extent]
    Term isEmpty; ///< [regions, bins]
  };
  const auto binsAlong = [&](int axis) {
    const int64_t extent = axis == 0 ? all.height : all.width;
    const Term start = corners.slice(1, 1 - axis, 1);
    const Term size =
        max(corners.slice(1, 3 - axis, 1) - start + 1, 1) / static_cast<double>(pooled[axis]);
    const Term bin = iota(context.build, pooled[axis], Elem::i32_).cast(wide);
    const auto clipped = [&](const Term& x) {
      return min(max(x + start, 0), static_cast<double>(extent));
    };
    const Term first = clipped(floor(size * bin)), end = clipped(ceil(size * (bin + 1)));
    const Term place = iota(context.build, extent, Elem::i32_).cast(wide).reshape({1, 1, extent});
    return Bins{
        logicalAnd(logicalNot(less(place, first.unsqueeze(2))), less(place, end.unsqueeze(2))),
        lessOrEqual(end, first)};
  };
  const Bins rows = binsAlong(0), columns = binsAlong(1);
  const int64_t channels = all.x.dim(1), height = all.height, width = all.width, count = all.count;
  const Term flat = all.x.reshape({1, all.x.dim(0), channels * height * width});
  const Term images = make(OpKind::Take, {flat, all.image}, {{"mode", std::string("zero")}})
                          .reshape({count, channels, height, 1, width});
  constexpr double kLeast = -std::numeric_limits<double>::infinity();
  const Term across =
      reduce(OpKind::ReduceMax,
             select(columns.has.reshape({count, 1, 1, pooled[1], width}), images, kLeast), {4},
             false); // [regions, channels, height, bins]
  const Term both = reduce(
      OpKind::ReduceMax,
      select(rows.has.reshape({count, 1, pooled[0], height, 1}), across.unsqueeze(2), kLeast), {3},
      false);
  const Term isEmpty = logicalOr(rows.isEmpty.reshape({count, 1, pooled[0], 1}),
                                 columns.isEmpty.reshape({count, 1, 1, pooled[1]}));
  return context.set(select(isEmpty, 0, both));
}

constexpr Operator kRoiOperators[] = {
    {"MaxRoiPool", 2, 2, 1, importMaxRoiPool},
    {"RoiAlign", 3, 3, 1, importRoiAlign},
};

} // namespace

std::span<const Operator> roiOperators() { return kRoiOperators; }

} // namespace candela::import
