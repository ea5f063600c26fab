#include <algorithm>
#include <cmath>

#include "core/compiler/import/term.h"
#include "core/support/compare.h"

/// Resampling of images, one axis after the other: a gather for each neighbour and a blend of what
/// they brought. Its cost is the number of neighbours, whatever the extent, and no value reaches a
/// place that it is no neighbour of.
namespace candela::import {
namespace {

constexpr int64_t kMostTaps = int64_t(1) << 22; ///< places times neighbours of one axis
constexpr int64_t kMostBlended = 4;             ///< more neighbours are gathered at once and summed

enum class Mode { nearest, linear, cubic };

struct Method {
  Mode mode = Mode::nearest;
  std::string coordinates, nearest;
  double cubicA = -0.75, extrapolation = 0;
  bool excludeOutside = false, antialias = false;
};

/// One axis: from `in` elements to `out`, which are `scale` times as many but for rounding.
struct Axis {
  int64_t in, out;
  double scale, start = 0, end = 1; ///< start, end: the part of the axis that is shown
  bool bySize;                      ///< scale is out / in
  double width() const {
    return bySize ? static_cast<double>(out) : scale * static_cast<double>(in);
  }
};

/// For each place of the result `count` neighbours and their weights.
struct Taps {
  int64_t count;
  std::vector<int64_t> index;
  std::vector<double> weight;
  /// empty, or of each place whether it shows what is beyond the operand
  std::vector<uint8_t> isOutside;
  bool isIdentity(int64_t in) const {
    for (size_t i = 0; i < index.size(); ++i)
      if (index[i] != static_cast<int64_t>(i) || weight[i] != 1) return false;
    return count == 1 && static_cast<int64_t>(index.size()) == in && isOutside.empty();
  }
};

/// place / scale, exact where the sizes are what is given.
double unscaled(const Axis& axis, double place) {
  if (axis.bySize) return place * static_cast<double>(axis.in) / static_cast<double>(axis.out);
  return place / axis.scale;
}

/// Where place x of the result lies in the operand.
double sourceOf(const Method& method, const Axis& axis, int64_t place) {
  const auto x = static_cast<double>(place), last = static_cast<double>(axis.in - 1);
  const std::string& kind = method.coordinates;
  if (kind == "asymmetric") return unscaled(axis, x);
  if (kind == "tf_half_pixel_for_nn") return unscaled(axis, x + 0.5);
  if (kind == "align_corners") return axis.width() == 1 ? 0 : x * last / (axis.width() - 1);
  if (kind == "pytorch_half_pixel" && axis.out == 1) return 0;
  if (kind == "tf_crop_and_resize") {
    const double shown = (axis.end - axis.start) * last;
    return axis.start * last + (axis.width() == 1 ? shown / 2 : x * shown / (axis.width() - 1));
  }
  const double source = unscaled(axis, x + 0.5) - 0.5;
  if (kind != "half_pixel_symmetric") return source;
  return source +
         static_cast<double>(axis.in) / 2 * (1 - static_cast<double>(axis.out) / axis.width());
}

int64_t nearestTo(const std::string& mode, double x) {
  // A scale is an f32 number: what is a whole number but for its rounding error counts as one.
  x = static_cast<double>(static_cast<float>(x));
  if (mode == "floor") return static_cast<int64_t>(std::floor(x));
  if (mode == "ceil") return static_cast<int64_t>(std::ceil(x));
  return static_cast<int64_t>(mode == "round_prefer_ceil" ? std::floor(x + 0.5)
                                                          : std::ceil(x - 0.5));
}

double kernel(const Method& method, double x) {
  x = std::abs(x);
  if (method.mode == Mode::linear) return std::max(0.0, 1 - x);
  const double a = method.cubicA;
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

Taps tapsOf(const Method& method, const Axis& axis) {
  // Where many elements become one, the kernel is as wide as they are.
  const double stretch = method.antialias ? std::min(axis.scale, 1.0) : 1;
  const double reach = (method.mode == Mode::cubic ? 2 : 1) / stretch;
  if (!(reach * static_cast<double>(axis.out) < kMostTaps))
    need(failure(Code::unsupported, "{} places of {} neighbours on each side", axis.out, reach));
  const bool isNearest = method.mode == Mode::nearest;
  const int64_t first = isNearest ? 0 : static_cast<int64_t>(std::floor(-reach)) + 1;
  Taps taps{isNearest ? 1 : 2 - 2 * first, {}, {}, {}};
  std::vector<double> weights(static_cast<size_t>(taps.count));
  for (int64_t place = 0; place < axis.out; ++place) {
    double x = sourceOf(method, axis, place);
    if (!(std::abs(x) < 0x1p40))
      need(badModel("place {} of {} comes from {} of {}", place, axis.out, x, axis.in));
    if (method.coordinates == "tf_crop_and_resize") {
      taps.isOutside.push_back(x < 0 || x > static_cast<double>(axis.in - 1));
      if (taps.isOutside.back()) x = 0;
    }
    const auto below =
        static_cast<int64_t>(isNearest ? nearestTo(method.nearest, x) : std::floor(x));
    const double beyond = x - static_cast<double>(below);
    double sum = 0;
    for (int64_t tap = 0; tap < taps.count; ++tap) {
      const int64_t from = below + first + tap;
      taps.index.push_back(std::clamp<int64_t>(from, 0, axis.in - 1));
      double& weight = weights[tap] =
          isNearest ? 1 : kernel(method, (static_cast<double>(first + tap) - beyond) * stretch);
      if (method.excludeOutside && from != taps.index.back() && !isNearest) weight = 0;
      sum += weight;
    }
    const double total = (method.antialias || method.excludeOutside) && sum != 0 ? sum : 1;
    for (const double weight : weights) taps.weight.push_back(weight / total);
  }
  if (std::ranges::count(taps.isOutside, 1) == 0) taps.isOutside.clear();
  return taps;
}

/// Without the neighbours that have no weight anywhere.
Taps trimmed(Taps taps) {
  std::vector<int64_t> kept;
  const size_t places = taps.index.size() / static_cast<size_t>(taps.count);
  for (int64_t tap = 0; tap < taps.count; ++tap)
    for (size_t place = 0; place < places; ++place)
      if (taps.weight[place * taps.count + tap] != 0) {
        kept.push_back(tap);
        break;
      }
  if (kept.empty()) return taps;
  Taps fewer{static_cast<int64_t>(kept.size()), {}, {}, std::move(taps.isOutside)};
  for (size_t place = 0; place < places; ++place)
    for (const int64_t tap : kept) {
      fewer.index.push_back(taps.index[place * taps.count + tap]);
      fewer.weight.push_back(taps.weight[place * taps.count + tap]);
    }
  return fewer;
}

Term gather(const Term& x, int64_t axis, const std::vector<int64_t>& index) {
  return make(OpKind::Gather,
              {x, constant(x.build(), index, {static_cast<int64_t>(index.size())}, Elem::i64_)},
              {{"axis", axis}});
}

/// x, of float unless each place has one neighbour, with its axis resampled.
Term resample(const Term& x, int64_t axis, const Taps& taps) {
  const auto places = static_cast<int64_t>(taps.index.size()) / taps.count;
  const bool isPlain = std::ranges::all_of(taps.weight, [](double weight) { return weight == 1; });
  Shape along(static_cast<size_t>(x.rank() - axis), 1); // broadcasts along the axis
  along[0] = places;
  if (taps.count == 1 && isPlain) return gather(x, axis, taps.index);
  if (taps.count <= kMostBlended) {
    std::optional<Term> sum;
    for (int64_t tap = 0; tap < taps.count; ++tap) {
      std::vector<int64_t> index;
      std::vector<double> weight;
      for (int64_t place = 0; place < places; ++place) {
        index.push_back(taps.index[place * taps.count + tap]);
        weight.push_back(taps.weight[place * taps.count + tap]);
      }
      const Term part = gather(x, axis, index) * constant(x.build(), weight, along, x.elem());
      sum = sum ? *sum + part : part;
    }
    return *sum;
  }
  Shape split = x.shape();
  split[axis] = places;
  split.insert(split.begin() + axis + 1, taps.count);
  along.insert(along.begin() + 1, taps.count);
  const Term parts = gather(x, axis, taps.index).reshape(split) *
                     constant(x.build(), taps.weight, along, x.elem());
  return reduce(OpKind::ReduceSum, parts, {axis + 1}, false);
}

Term resize(const Term& x, const Method& method, const std::vector<Axis>& axes) {
  const bool blends = method.mode != Mode::nearest;
  Term y = blends ? x.cast(weightedElem(x.elem())) : x;
  std::vector<std::pair<int64_t, std::vector<uint8_t>>> outside;
  bool changed = false;
  // What shrinks comes first; of the rest the last axis, whose gathers are of single elements,
  // while there are few.
  std::vector<int64_t> order;
  for (int64_t axis = 0; axis < x.rank(); ++axis)
    order.insert(std::ranges::find_if(
                     order, [&](int64_t other) { return axes[other].out >= axes[other].in; }),
                 axis);
  for (const int64_t axis : order) {
    const Axis& way = axes[axis];
    if (way.in == way.out && way.scale == 1 && way.start == 0 && way.end == 1) continue;
    if (way.in == 0 && way.out > 0)
      need(badModel("axis {} has nothing to make {} elements of", axis, way.out));
    const Taps taps = way.out == 0 ? Taps{1, {}, {}, {}} : trimmed(tapsOf(method, way));
    if (taps.isIdentity(way.in)) continue;
    y = resample(y, axis, taps);
    changed = true;
    if (!taps.isOutside.empty()) outside.emplace_back(axis, taps.isOutside);
  }
  for (const auto& [axis, flags] : outside) {
    Shape along(static_cast<size_t>(x.rank() - axis), 1);
    along[0] = axes[axis].out;
    const Term mask = {x.build(),
                       x.build().constant(Tensor::of<uint8_t>(Elem::bool_, along, flags))};
    y = select(mask, method.extrapolation, y);
  }
  if (!changed) return x;
  if (isInteger(x.elem()) && blends)
    return make(OpKind::Round, {y},
                {{"to", x.elem()}, {"mode", std::string("rne")}, {"saturate", int64_t(1)}});
  return y.cast(x.elem());
}

/// Real numbers of a constant operand; nullopt when it is absent or empty.
std::optional<std::vector<double>> knownReals(NodeContext& context, size_t input,
                                              const char* what) {
  const Value* value = context.input(input);
  if (!value || value->type.count() == 0) return std::nullopt;
  if (!isFloat(value->type.elem) || value->type.rank() != 1)
    need(badModel("{} are {}, expected a vector of floats", what, value->type.text()));
  need(context.needConstant(input, what));
  if (value->type.count() > 64) need(badModel("{} of {} elements", what, value->type.count()));
  const Tensor tensor = need(value->tensor());
  std::vector<double> reals;
  for (int64_t i = 0; i < tensor.count(); ++i) reals.push_back(elementAsReal(tensor, i));
  return reals;
}

void needCount(const char* what, size_t have, size_t want) {
  if (have != want) need(badModel("{} {}, expected {}", have, what, want));
}

int64_t scaledExtent(int64_t in, double scale) {
  if (!(scale > 0 && scale < 0x1p31)) need(badModel("scale {} is out of range", scale));
  // In f32, as ONNX infers it: 10 elements times 0.7 are 7.
  const double out = std::floor(static_cast<float>(in) * static_cast<float>(scale));
  if (out >= 0x1p40) need(badModel("{} elements times {} are too many", in, scale));
  return static_cast<int64_t>(out);
}

Term resizeByScales(const Term& x, const Method& method, const std::vector<double>& scales) {
  needCount("scales", scales.size(), static_cast<size_t>(x.rank()));
  std::vector<Axis> axes;
  for (int64_t i = 0; i < x.rank(); ++i)
    axes.push_back({x.dim(i), scaledExtent(x.dim(i), scales[i]), scales[i], 0, 1, false});
  return resize(x, method, axes);
}

Mode readMode(NodeContext& context, bool hasCubic) {
  const std::string mode = attrOf<std::string>(context, "mode", "nearest");
  if (mode == "nearest") return Mode::nearest;
  if (mode == "linear") return Mode::linear;
  if (mode != "cubic" || !hasCubic)
    need(badModel("mode '{}' is not nearest, linear{}", mode, hasCubic ? " or cubic" : ""));
  return Mode::cubic;
}

/// Before opset 11: coordinates are divided by the scale, and `nearest` is the one before, or
/// behind where axes shrink.
Status importOldResize(NodeContext& context, const std::vector<double>& scales) {
  const Term x = termOf(context, 0);
  Method method{readMode(context, false), "asymmetric", "floor"};
  needCount("scales", scales.size(), static_cast<size_t>(x.rank()));
  if (method.mode == Mode::linear ||
      std::ranges::all_of(scales, [](double scale) { return scale >= 1; }))
    return context.set(resizeByScales(x, method, scales));
  // One axis at a time, since the rule is each axis's own.
  Term y = x;
  for (size_t i = 0; i < scales.size(); ++i) {
    std::vector<double> one(scales.size(), 1);
    one[i] = scales[i];
    method.nearest = scales[i] < 1 ? "ceil" : "floor";
    y = resizeByScales(y, method, one);
  }
  return context.set(y);
}

Status importUpsample(NodeContext& context) {
  if (context.opset >= 10)
    return badModel("Upsample ended with opset 9, the model has {}", context.opset);
  std::optional<std::vector<double>> scales;
  if (context.opset < 9) {
    const auto given = need(context.maybe<std::vector<float>>("scales"));
    if (given) scales.emplace(given->begin(), given->end());
  } else {
    scales = knownReals(context, 1, "scales");
  }
  if (!scales) return badModel("scales are missing");
  for (const double scale : *scales)
    if (!(scale >= 1)) return badModel("scale {} is below 1", scale);
  return importOldResize(context, *scales);
}

/// Whether `value` is one of the names.
void needOneOf(const char* what, const std::string& value,
               std::initializer_list<std::string_view> names) {
  if (std::find(names.begin(), names.end(), value) == names.end())
    need(badModel("{} '{}' is not {}", what, value, fmt::join(names, ", ")));
}

Method readMethod(NodeContext& context) {
  Method method;
  method.mode = readMode(context, true);
  method.coordinates = attrOf<std::string>(context, "coordinate_transformation_mode", "half_pixel");
  needOneOf("coordinate_transformation_mode", method.coordinates,
            {"half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric",
             "tf_crop_and_resize", context.opset >= 19 ? "half_pixel_symmetric" : "half_pixel",
             context.opset < 13 ? "tf_half_pixel_for_nn" : "half_pixel"});
  method.nearest = attrOf<std::string>(context, "nearest_mode", "round_prefer_floor");
  needOneOf("nearest_mode", method.nearest,
            {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"});
  method.cubicA = attrOf<float>(context, "cubic_coeff_a", -0.75f);
  method.extrapolation = attrOf<float>(context, "extrapolation_value", 0.0f);
  method.excludeOutside = need(context.flagAttr("exclude_outside", false));
  if (context.opset >= 18)
    method.antialias = need(context.flagAttr("antialias", false)) && method.mode != Mode::nearest;
  return method;
}

/// Gives the axes their new extents; any policy but "stretch" keeps the aspect ratio, by one scale
/// for all of them.
Status setSizes(std::vector<Axis>& axes, const std::vector<int64_t>& named,
                const std::vector<int64_t>& sizes, std::string_view policy) {
  std::optional<double> common;
  for (size_t i = 0; i < named.size(); ++i) {
    Axis& axis = axes[named[i]];
    axis.out = sizes[i];
    if (axis.out < 0 || axis.out >= int64_t(1) << 40)
      return badModel("size {} is out of range", axis.out);
    axis.scale = axis.in == 0 ? 1 : static_cast<double>(axis.out) / static_cast<double>(axis.in);
    if (!common || (policy == "not_larger" ? axis.scale < *common : axis.scale > *common))
      common = axis.scale;
  }
  if (policy == "stretch") return Status::ok();
  for (const int64_t i : named) {
    Axis& axis = axes[i];
    const double exact = *common * static_cast<double>(axis.in);
    const double out = std::floor(exact + 0.5);
    if (out >= 0x1p40) return badModel("{} elements times {} are too many", axis.in, *common);
    const auto whole = static_cast<int64_t>(out);
    axis = {axis.in, whole, *common, 0, 1, static_cast<double>(whole) == exact};
  }
  return Status::ok();
}

Status importResize(NodeContext& context) {
  if (context.opset < 11) {
    const auto scales = knownReals(context, 1, "scales");
    if (!scales) return badModel("scales are missing");
    return importOldResize(context, *scales);
  }
  const Term x = termOf(context, 0);
  const Method method = readMethod(context);
  std::vector<int64_t> named = allAxes(context);
  std::string policy = "stretch";
  if (context.opset >= 18) {
    named = need(resolveAxes(attrOf(context, "axes", named), x.rank()));
    policy = attrOf<std::string>(context, "keep_aspect_ratio_policy", policy);
    needOneOf("keep_aspect_ratio_policy", policy, {"stretch", "not_larger", "not_smaller"});
  }
  std::vector<Axis> axes;
  for (int64_t i = 0; i < x.rank(); ++i) axes.push_back({x.dim(i), x.dim(i), 1, 0, 1, true});

  auto sizes = need(context.knownInts(3, "sizes"));
  if (sizes && sizes->empty()) sizes.reset();
  const auto scales = knownReals(context, 2, "scales");
  if (!sizes == !scales) return badModel("{} scales and sizes", sizes ? "both" : "neither");
  if (sizes)
    needCount("sizes", sizes->size(), named.size());
  else
    needCount("scales", scales->size(), named.size());
  if (scales)
    for (size_t i = 0; i < named.size(); ++i) {
      Axis& axis = axes[named[i]];
      axis = {axis.in, scaledExtent(axis.in, (*scales)[i]), (*scales)[i], 0, 1, false};
    }
  else
    CDL_TRY(setSizes(axes, named, *sizes, policy));
  if (method.coordinates == "tf_crop_and_resize") {
    const auto roi = knownReals(context, 1, "roi");
    if (!roi) return badModel("tf_crop_and_resize needs a roi");
    needCount("numbers of roi", roi->size(), 2 * named.size());
    for (size_t i = 0; i < named.size(); ++i) {
      axes[named[i]].start = (*roi)[i];
      axes[named[i]].end = (*roi)[i + named.size()];
    }
  }
  return context.set(resize(x, method, axes));
}

constexpr Operator kResizeOperators[] = {
    {"Resize", 1, 4, 1, importResize},
    {"Upsample", 1, 2, 1, importUpsample},
};

} // namespace

std::span<const Operator> resizeOperators() { return kResizeOperators; }

} // namespace candela::import
