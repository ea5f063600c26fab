// What only moves elements.
#include <algorithm>
#include <limits>

#include "core/compiler/import/caffe2/window.h"
#include "core/support/elem.h"

namespace candela::import::caffe2 {
namespace {

constexpr int64_t kMostCopies = 4096;

/// A dim of the argument `axis`, or that of the channels.
int64_t axisOf(const Step& step) {
  const std::string order = step.arguments.text("order", "NCHW");
  return step.arguments.integer("axis", order == "NHWC" ? 3 : 1);
}

void writeConcat(Step& step) {
  step.needUnread(1, "how much each operand has");
  const int64_t axis = axisOf(step);
  std::vector<Name> operands = step.inputs();
  if (step.arguments.flag("add_axis", false)) {
    const Name axes = step.constant(Ints{axis});
    for (Name& operand : operands) operand = step.add("Unsqueeze", {operand, axes});
  }
  step.set(0, step.add("Concat", std::move(operands), {{"axis", axis}}));
}

void writeSplit(Step& step) {
  const Ints parts = step.arguments.ints("split");
  std::vector<Name> operands{step.in(0)};
  const int64_t axis = axisOf(step);
  Attributes attributes{{"axis", axis}};
  if (step.has(1)) {
    operands.push_back(
        step.add("Cast", {step.in(1)}, {{"to", static_cast<int64_t>(elemToOnnx(Elem::i64_))}}));
  } else if (!parts.empty()) {
    operands.push_back(step.constant(parts));
  } else {
    attributes["num_outputs"] = static_cast<int64_t>(step.outputCount());
  }
  const std::vector<Name> results =
      step.addAll("Split", std::move(operands), step.outputCount(), std::move(attributes));
  const bool dropsAxis = step.arguments.flag("add_axis", false);
  for (size_t i = 0; i < results.size(); ++i) {
    const Name part =
        dropsAxis ? step.add("Squeeze", {results[i], step.constant(Ints{axis})}) : results[i];
    step.set(i, part);
  }
}

void writeReshape(Step& step) {
  const Name x = step.in(0);
  Name shape;
  if (step.has(1))
    shape = step.add("Cast", {step.in(1)}, {{"to", static_cast<int64_t>(elemToOnnx(Elem::i64_))}});
  else
    shape = step.constant(step.arguments.ints("shape"));
  if (!step.has(1) && !step.arguments.has("shape")) reject("it has no shape");
  const Name before = step.add("Shape", {x});
  step.set(0, step.add("Reshape", {x, shape}));
  step.set(1, before);
}

void writeFlatten(Step& step) {
  step.set(0, step.add("Flatten", {step.in(0)}, {{"axis", step.arguments.integer("axis", 1)}}));
}
void writeFlattenToVec(Step& step) { step.set(0, step.reshape(step.in(0), {-1})); }

void writeTranspose(Step& step) {
  Attributes attributes;
  if (step.arguments.has("axes")) attributes["perm"] = step.arguments.ints("axes");
  step.set(0, step.add("Transpose", {step.in(0)}, std::move(attributes)));
}
void writeChannelsLast(Step& step) { step.set(0, step.transpose(step.in(0), {0, 2, 3, 1})); }
void writeChannelsFirst(Step& step) { step.set(0, step.transpose(step.in(0), {0, 3, 1, 2})); }

void writeSqueeze(Step& step) {
  step.set(0, step.add("Squeeze", {step.in(0), step.constant(step.arguments.ints("dims"))}));
}
void writeExpandDims(Step& step) {
  step.set(0, step.add("Unsqueeze", {step.in(0), step.constant(step.arguments.ints("dims"))}));
}

/// Channels of g groups of n become those of n groups of g.
void writeChannelShuffle(Step& step) {
  const int64_t groups = step.arguments.integer("group", 1);
  if (groups < 1) reject("{} groups", groups);
  Images images(step);
  const Name x = images.first(step.in(0));
  const Name inGroup = step.add("Div", {step.dims(x, 1, 2), step.constant(Ints{groups})});
  const Name apart = step.join(
      {step.dims(x, 0, 1), step.constant(Ints{groups}), inGroup, step.constant(Ints{-1})});
  const Name turned = step.transpose(step.add("Reshape", {x, apart}), {0, 2, 1, 3});
  step.set(0, images.back(step.add("Reshape", {turned, step.add("Shape", {x})})));
}

void writePadImage(Step& step) {
  Images images(step);
  const int64_t all = step.arguments.integer("pad", 0);
  const auto pad = [&](const char* side) { return step.arguments.integer(side, all); };
  const Name pads =
      step.constant(Ints{0, 0, pad("pad_t"), pad("pad_l"), 0, 0, pad("pad_b"), pad("pad_r")});
  const std::string mode = step.arguments.text("mode", "constant");
  if (mode != "constant" && mode != "reflect" && mode != "edge") refuse("mode '{}'", mode);
  const Name value = step.number(step.arguments.number("value", 0));
  step.set(0,
           images.back(step.add("Pad", {images.first(step.in(0)), pads, value}, {{"mode", mode}})));
}

/// From starts to ends of the first dims; a negative end stands for that many less one before it.
void writeSlice(Step& step) {
  if (step.has(1)) refuse("starts and ends that are computed");
  Ints starts = step.arguments.ints("starts");
  Ints ends = step.arguments.ints("ends");
  if (starts.size() != ends.size()) reject("{} starts and {} ends", starts.size(), ends.size());
  constexpr int64_t kEnd = std::numeric_limits<int64_t>::max();
  const auto own = [&](int64_t at) {
    if (at >= 0) return at;
    return at == -1 ? kEnd : at + 1;
  };
  std::ranges::transform(starts, starts.begin(), own);
  std::ranges::transform(ends, ends.begin(), own);
  step.set(0, step.add("Slice", {step.in(0), step.constant(starts), step.constant(ends)}));
}

void writeTile(Step& step) {
  if (step.has(1)) refuse("a number of tiles that is computed");
  const int64_t tiles = step.arguments.integer("tiles", 1);
  if (tiles < 1 || tiles > kMostCopies) refuse("{} tiles", tiles);
  std::vector<Name> copies(static_cast<size_t>(tiles), step.in(0));
  step.set(0, step.add("Concat", std::move(copies), {{"axis", step.arguments.integer("axis", 0)}}));
}

/// Names of element types as texts have them.
struct NamedType {
  std::string_view name;
  int64_t dataType;
};
constexpr NamedType kNamedTypes[] = {
    {"FLOAT", 1},  {"INT32", 2}, {"BYTE", 3},   {"BOOL", 5},     {"UINT8", 6},   {"INT8", 7},
    {"UINT16", 8}, {"INT16", 9}, {"INT64", 10}, {"FLOAT16", 12}, {"DOUBLE", 13},
};

void writeCast(Step& step) {
  int64_t dataType = 0;
  try {
    dataType = step.arguments.integer("to", 0);
  } catch (const Refusal&) { // a name, then
    std::string name = step.arguments.text("to", "");
    std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::toupper(c); });
    const auto found = std::ranges::find(kNamedTypes, name, &NamedType::name);
    if (found == std::end(kNamedTypes)) refuse("type '{}'", name);
    dataType = found->dataType;
  }
  const Elem elem = elemOf(dataType);
  if (elem == Elem::none) refuse("type {}", dataType);
  step.set(0, step.add("Cast", {step.in(0)}, {{"to", static_cast<int64_t>(elemToOnnx(elem))}}));
}

constexpr Operator kMovement[] = {
    {"Cast", 1, 1, writeCast},
    {"ChannelShuffle", 1, 1, writeChannelShuffle},
    {"Concat", 1, -1, writeConcat, "split_info is not read"},
    {"ExpandDims", 1, 1, writeExpandDims},
    {"Flatten", 1, 1, writeFlatten},
    {"FlattenToVec", 1, 1, writeFlattenToVec},
    {"NCHW2NHWC", 1, 1, writeChannelsLast, "of images"},
    {"NHWC2NCHW", 1, 1, writeChannelsFirst, "of images"},
    {"PadImage", 1, 1, writePadImage},
    {"Reshape", 1, 2, writeReshape},
    {"Slice", 1, 3, writeSlice, "starts and ends are arguments"},
    {"Split", 1, 2, writeSplit},
    {"Squeeze", 1, 1, writeSqueeze},
    {"Tile", 1, 3, writeTile, "tiles and axis are arguments"},
    {"Transpose", 1, 1, writeTranspose},
};

} // namespace

std::span<const Operator> movementOperators() { return kMovement; }

} // namespace candela::import::caffe2
