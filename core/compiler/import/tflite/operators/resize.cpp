// Resampling of images.
#include <algorithm>
#include <cmath>

#include "core/compiler/import/tflite/step.h"
#include "core/compiler/import/tflite/window.h"

namespace candela::import::tflite {
namespace {

Ints sizesOf(Step& step) {
  needRank(step, 0, 4);
  const Ints sizes = step.ints(1, "sizes");
  if (sizes.size() != 2) reject("it has {} sizes, expected 2", sizes.size());
  return extents("size", sizes);
}

/// With channels first, as the convolutions around it are.
Name resized(Step& step, const Name& x, Attributes attributes) {
  attributes["axes"] = Ints{2, 3};
  const Name sizes = step.constant(sizesOf(step));
  const Name y =
      step.add("Resize", {channelsFirst(step, x, 4), "", "", sizes}, std::move(attributes));
  return channelsLast(step, y, 4);
}

void writeBilinear(Step& step) {
  const auto& options = step.options<schema::ResizeBilinearOptions>();
  if (options.align_corners() && options.half_pixel_centers())
    reject("align_corners and half_pixel_centers");
  std::string mode = "asymmetric";
  if (options.align_corners()) mode = "align_corners";
  if (options.half_pixel_centers()) mode = "half_pixel";
  step.set(0, resized(step, step.real(0),
                      {{"mode", std::string("linear")}, {"coordinate_transformation_mode", mode}}));
}

/// Places of the elements that are repeated or kept along one dim.
Ints nearestPlaces(const schema::ResizeNearestNeighborOptions& options, int64_t in, int64_t out) {
  Ints places;
  const bool isAligned = options.align_corners() && out > 1;
  const auto from = static_cast<float>(isAligned ? in - 1 : in);
  const float scale = from / static_cast<float>(isAligned ? out - 1 : out);
  const float offset = options.half_pixel_centers() ? 0.5F : 0;
  for (int64_t i = 0; i < out; ++i) {
    const float place = (static_cast<float>(i) + offset) * scale;
    const float whole = options.align_corners() ? std::round(place) : std::floor(place);
    places.push_back(std::min(static_cast<int64_t>(whole), in - 1));
  }
  return places;
}

/// A gather for each dim that changes, as there is no arithmetic.
void writeNearest(Step& step) {
  const auto& options = step.options<schema::ResizeNearestNeighborOptions>();
  const Ints sizes = sizesOf(step);
  Name y = channelsFirst(step, step.moved(0), 4);
  for (int64_t axis = 1; axis <= 2; ++axis) {
    const int64_t in = step.dim(0, axis), out = sizes[static_cast<size_t>(axis) - 1];
    if (in == 0) reject("dim {} of its input is empty", axis);
    if (out > kMostPlaces) refuse("a size of {}", out);
    y = step.add("Gather", {y, step.constant(nearestPlaces(options, in, out))},
                 {{"axis", axis + 1}});
  }
  step.finishMoved(0, 0, channelsLast(step, y, 4));
}

constexpr Operator kResize[] = {
    {schema::BuiltinOperator_RESIZE_BILINEAR, 2, 2, 1, writeBilinear,
     "the sizes have to be constants"},
    {schema::BuiltinOperator_RESIZE_NEAREST_NEIGHBOR, 2, 2, 1, writeNearest,
     "sizes and the input's height and width have to be known"},
};

} // namespace

std::span<const Operator> resizeOperators() { return kResize; }

} // namespace candela::import::tflite
