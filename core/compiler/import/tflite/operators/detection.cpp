// Boxes of which those that overlap better ones are left out.
#include <cmath>
#include <type_traits>

#include "core/compiler/import/tflite/step.h"
#include "core/compiler/import/tflite/window.h"

namespace candela::import::tflite {
namespace {

constexpr double kNothing = -1e30; ///< a score below every other one

/// How boxes are chosen: the best one, as long as there is one, and without what overlaps it.
struct Suppression {
  int64_t most;       ///< boxes that are chosen
  Name boxes;         ///< [n, 4]: two corners, the lower one first
  Name scores;        ///< [n], kNothing where a box is out of question
  Name overlap;       ///< of a part of the union, from which on a box goes
  bool goesAtOverlap; ///< at just that part, too
};

/// Of the chosen boxes in their order, [most]; behind the last one indices of any box.
struct Chosen {
  Name index;   ///< i64
  Name score;   ///< f32
  Name isThere; ///< bool
};

/// A column of boxes, [n].
Name corner(Step& step, const Name& boxes, int64_t column) {
  return step.add("Gather", {boxes, step.constant(Tensor::scalarI64(column))},
                  {{"axis", int64_t(1)}});
}

/// max(0, upper - lower).
Name extent(Step& step, const Name& lower, const Name& upper) {
  return step.add("Relu", {step.add("Sub", {upper, lower})});
}

Name area(Step& step, const Name& boxes) {
  const Name height = extent(step, corner(step, boxes, 0), corner(step, boxes, 2));
  return step.add("Mul", {height, extent(step, corner(step, boxes, 1), corner(step, boxes, 3))});
}

/// Common part of each box and the one of `best`, as a share of what both cover; 0 of empty boxes.
Name overlapOf(Step& step, const Name& boxes, const Name& best) {
  const auto common = [&](int64_t lower, int64_t upper) {
    const Name from = step.add("Max", {corner(step, boxes, lower), corner(step, best, lower)});
    const Name to = step.add("Min", {corner(step, boxes, upper), corner(step, best, upper)});
    return extent(step, from, to);
  };
  const Name rows = common(0, 2);
  const Name columns = common(1, 3);
  const Name both = step.add("Mul", {rows, columns});
  const Name areas = area(step, boxes);
  const Name own = area(step, best);
  const Name covered = step.add("Sub", {step.add("Add", {areas, own}), both});
  const Name zero = step.number(0, Elem::f32_);
  const Name smaller = step.add("Min", {areas, own});
  const Name isSome = step.add("Less", {zero, smaller});
  const Name share = step.add("Div", {both, covered});
  return step.add("Where", {isSome, share, zero});
}

onnx_io::ValueInfo named(const Name& name, Elem elem) {
  onnx_io::ValueInfo info;
  info.name = name;
  info.elem = elem;
  return info;
}

/// A turn of the loop: what is chosen, and the scores that are left.
std::shared_ptr<onnx_io::Graph> turnOf(Step& outer, const Suppression& how) {
  ModelWriter& model = outer.writer().model();
  auto body = std::make_shared<onnx_io::Graph>();
  body->name = "suppression";
  const std::string prefix = outer.name() + "/";
  GraphWriter writer(model, outer.writer().subgraph(), *body, prefix);
  Step step(writer, outer.op(), prefix + "turn");
  const Name turn = model.unique(prefix + "turn"), on = model.unique(prefix + "on"),
             scores = model.unique(prefix + "scores");
  body->inputs = {named(turn, Elem::i64_), named(on, Elem::bool_), named(scores, Elem::f32_)};
  const Name index = step.add("ArgMax", {scores}, {{"axis", int64_t(0)}, {"keepdims", int64_t(1)}});
  const Name score = step.add("Gather", {scores, index}, {{"axis", int64_t(0)}});
  const Name best = step.add("Gather", {how.boxes, index}, {{"axis", int64_t(0)}});
  const char* compare = how.goesAtOverlap ? "GreaterOrEqual" : "Greater";
  const Name isNear = step.add(compare, {overlapOf(step, how.boxes, best), how.overlap});
  const Name nothing = step.number(kNothing, Elem::f32_);
  const Name rest = step.add("Where", {isNear, nothing, scores});
  const Name gone = step.constant(Tensor::of<float>(Elem::f32_, {1}, {float(kNothing)}));
  const Name left = step.add("ScatterElements", {rest, index, gone}, {{"axis", int64_t(0)}});
  const Name goesOn = step.add("Identity", {on});
  for (const Name& output : {goesOn, left, index, score})
    body->outputs.push_back(named(output, Elem::none));
  return body;
}

Chosen suppress(Step& step, const Suppression& how) {
  if (how.most < 1 || how.most > 10000) refuse("{} boxes to be chosen", how.most);
  const Name turns = step.constant(Tensor::scalarI64(how.most));
  const std::vector<Name> results =
      step.addAll("Loop", {turns, "", how.scores}, 3, {{"body", turnOf(step, how)}});
  const Name index = step.reshape(results[1], {how.most});
  const Name score = step.reshape(results[2], {how.most});
  const Name isThere = step.add("Greater", {score, step.number(kNothing / 2, Elem::f32_)});
  return {index, score, isThere};
}

/// x where there is a box, else 0.
Name shown(Step& step, const Name& isThere, const Name& x, Elem elem) {
  return step.add("Where", {isThere, x, step.number(0, elem)});
}

Name counted(Step& step, const Name& isThere, Elem elem, bool keeps) {
  return step.add("ReduceSum", {step.cast(isThere, elem), step.constant(Ints{0})},
                  {{"keepdims", int64_t(keeps)}});
}

/// With the lower corner first, whichever the file has.
Name ordered(Step& step, const Name& boxes) {
  std::vector<Name> sides;
  for (const char* op : {"Min", "Max"})
    for (int64_t axis = 0; axis < 2; ++axis) {
      const Name side = step.add(op, {corner(step, boxes, axis), corner(step, boxes, axis + 2)});
      sides.push_back(step.unsqueeze(side, {1}));
    }
  return step.add("Concat", std::move(sides), {{"axis", int64_t(1)}});
}

Chosen chosenOf(Step& step) {
  needRank(step, 0, 2);
  needRank(step, 1, 1);
  const int64_t most = step.integer(2, "the number of boxes");
  const Name scores = step.real(1);
  const Name least = step.reshape(step.real(4), {});
  const Name isGood = step.add("Greater", {scores, least});
  const Name good = step.add("Where", {isGood, scores, step.number(kNothing, Elem::f32_)});
  return suppress(step,
                  {most, ordered(step, step.real(0)), good, step.reshape(step.real(3), {}), true});
}

void writeSuppressionV4(Step& step) {
  const Chosen chosen = chosenOf(step);
  const Name index = step.cast(chosen.index, step.output(0).elem);
  step.set(0, shown(step, chosen.isThere, index, step.output(0).elem));
  if (step.wants(1)) step.set(1, counted(step, chosen.isThere, step.output(1).elem, false));
}

void writeSuppressionV5(Step& step) {
  const TensorInfo& sigma = step.input(5);
  const bool isHard = sigma.content && sigma.elem == Elem::f32_ && sigma.content->count() == 1 &&
                      sigma.content->as<float>()[0] == 0;
  if (!isHard) refuse("scores that decay are not supported: soft_nms_sigma is not the constant 0");
  const Chosen chosen = chosenOf(step);
  const Name index = step.cast(chosen.index, step.output(0).elem);
  step.set(0, shown(step, chosen.isThere, index, step.output(0).elem));
  if (step.wants(1)) step.set(1, shown(step, chosen.isThere, chosen.score, Elem::f32_));
  if (step.wants(2)) step.set(2, counted(step, chosen.isThere, step.output(2).elem, false));
}

// ---- Detection_PostProcess

template <typename T> T optionOf(const Attributes& attributes, const char* name, T otherwise) {
  const auto found = attributes.find(name);
  if (found == attributes.end()) return otherwise;
  if (const auto* whole = std::get_if<int64_t>(&found->second)) return static_cast<T>(*whole);
  if (const auto* real = std::get_if<float>(&found->second)) {
    constexpr float kMost = 1e9f;
    if (std::is_integral_v<T> && !(std::abs(*real) < kMost))
      reject("its {} is {}, expected a number below {}", name, *real, kMost);
    return static_cast<T>(*real);
  }
  reject("its {} is no number", name);
}

float scaleOf(const Attributes& options, const char* name) {
  const auto scale = optionOf<float>(options, name, 0);
  if (!(scale > 0)) reject("its {} is {}, expected more than 0", name, scale);
  return scale;
}

/// Centres and extents as the network gives them, in units of each anchor's, become corners.
Name decoded(Step& step, const Attributes& options, int64_t count) {
  const Name codes = step.reshape(step.real(0), {count, 4});
  const Name anchors = step.reshape(step.real(2), {count, 4});
  const auto column = [&](const Name& x, int64_t i) {
    return step.add(
        "Slice", {x, step.constant(Ints{i}), step.constant(Ints{i + 1}), step.constant(Ints{1})});
  };
  const auto scaled = [&](int64_t i, const char* name) {
    return step.add("Div", {column(codes, i), step.number(scaleOf(options, name), Elem::f32_)});
  };
  std::vector<Name> lower, upper;
  const char* centres[] = {"y_scale", "x_scale"};
  const char* extents[] = {"h_scale", "w_scale"};
  for (int64_t i = 0; i < 2; ++i) {
    const Name size = column(anchors, i + 2);
    const Name centre =
        step.add("Add", {step.add("Mul", {scaled(i, centres[i]), size}), column(anchors, i)});
    const Name whole = step.add("Mul", {step.add("Exp", {scaled(i + 2, extents[i])}), size});
    const Name half = step.add("Mul", {whole, step.number(0.5, Elem::f32_)});
    lower.push_back(step.add("Sub", {centre, half}));
    upper.push_back(step.add("Add", {centre, half}));
  }
  return step.add("Concat", {lower[0], lower[1], upper[0], upper[1]}, {{"axis", int64_t(1)}});
}

/// The class with the best score, in [n], and that score; classes that stand for nothing come
/// first.
std::pair<Name, Name> bestClasses(Step& step, int64_t count, int64_t classes) {
  const int64_t all = step.dim(1, -1);
  if (classes < 1 || classes > all) reject("it has {} scores for {} classes", all, classes);
  const Name scores = step.reshape(step.real(1), {count, all});
  const Name own = step.add("Slice", {scores, step.constant(Ints{all - classes}),
                                      step.constant(Ints{all}), step.constant(Ints{1})});
  const Name best = step.add("ArgMax", {own}, {{"axis", int64_t(1)}, {"keepdims", int64_t(0)}});
  const Name score =
      step.add("ReduceMax", {own, step.constant(Ints{1})}, {{"keepdims", int64_t(0)}});
  return {best, score};
}

void checkPostProcess(Step& step, const Attributes& options) {
  if (step.inputCount() != 3 || step.outputCount() != 4)
    reject("has {} inputs and {} outputs, expected 3 and 4", step.inputCount(), step.outputCount());
  if (optionOf<int64_t>(options, "use_regular_nms", 0) != 0)
    refuse("suppression by class (use_regular_nms) is not supported");
  if (const auto most = optionOf<int64_t>(options, "max_classes_per_detection", 1); most != 1)
    refuse("{} classes of a box are not supported", most);
  needRank(step, 0, 3);
  needRank(step, 1, 3);
  needRank(step, 2, 2);
  if (step.dim(0, 0) != 1 || step.dim(0, 2) != 4 || step.dim(2, 1) != 4 ||
      step.dim(1, 1) != step.dim(0, 1) || step.dim(2, 0) != step.dim(0, 1))
    reject("boxes {}, scores {} and anchors {} do not fit", shapeText(step.shape(0)),
           shapeText(step.shape(1)), shapeText(step.shape(2)));
}

} // namespace

void writePostProcess(Step& step) {
  const Attributes options = customAttributes(*step.op().table);
  checkPostProcess(step, options);
  const int64_t count = step.dim(0, 1);
  const auto most = optionOf<int64_t>(options, "max_detections", 0);
  const Name boxes = decoded(step, options, count);
  const auto [classes, scores] =
      bestClasses(step, count, optionOf<int64_t>(options, "num_classes", 0));
  const Name least = step.number(optionOf<float>(options, "nms_score_threshold", 0), Elem::f32_);
  const Name isGood = step.add("GreaterOrEqual", {scores, least});
  const Name good = step.add("Where", {isGood, scores, step.number(kNothing, Elem::f32_)});
  const Name overlap = step.number(optionOf<float>(options, "nms_iou_threshold", 0), Elem::f32_);
  const Chosen chosen = suppress(step, {most, boxes, good, overlap, false});
  const Name places = step.add("Gather", {boxes, chosen.index}, {{"axis", int64_t(0)}});
  const Name kinds =
      step.cast(step.add("Gather", {classes, chosen.index}, {{"axis", int64_t(0)}}), Elem::f32_);
  const Name isShown = step.unsqueeze(chosen.isThere, {1});
  step.set(0, step.unsqueeze(shown(step, isShown, places, Elem::f32_), {0}));
  step.set(1, step.unsqueeze(shown(step, chosen.isThere, kinds, Elem::f32_), {0}));
  step.set(2, step.unsqueeze(shown(step, chosen.isThere, chosen.score, Elem::f32_), {0}));
  step.set(3, counted(step, chosen.isThere, Elem::f32_, true));
}

namespace {

constexpr std::string_view kSuppressionLimits = "the number of boxes has to be a constant";

constexpr Operator kDetection[] = {
    {schema::BuiltinOperator_NON_MAX_SUPPRESSION_V4, 5, 5, 2, writeSuppressionV4,
     kSuppressionLimits},
    {schema::BuiltinOperator_NON_MAX_SUPPRESSION_V5, 6, 6, 3, writeSuppressionV5,
     "the number of boxes has to be a constant; scores do not decay"},
};

} // namespace

std::span<const Operator> detectionOperators() { return kDetection; }

} // namespace candela::import::tflite
