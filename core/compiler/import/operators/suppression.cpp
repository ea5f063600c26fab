#include "core/compiler/import/loop_recurrence.h"
#include "core/compiler/import/operators/selection.h"

/// NonMaxSuppression: of boxes that overlap, those with the highest scores.
namespace candela::import {
namespace {

/// x[rows, n] of each row at one place, or several: index[rows, m].
Term takeOfRows(const Term& x, const Term& index) {
  const Elem elem = placeElem(x.count());
  const Term row = Term(
      x.build(), x.build().constant(Payload::iota(elem, x.dim(0), 0, x.dim(1)), {x.dim(0), 1}));
  return takeFlat(x, index.cast(elem) + row);
}

/// Low and high edges along both dims and the area, each [batch, n].
std::vector<Term> edgesOf(const Term& boxes, bool centered) {
  const auto at = [&](int64_t column) { return boxes.slice(2, column, 1).squeeze(2); };
  std::vector<Term> edges;
  for (const int64_t i : {0, 1}) {
    const Term a = at(i), b = at(i + 2), half = b / 2.0;
    edges.push_back(centered ? a - half : min(a, b));
    edges.push_back(centered ? a + half : max(a, b));
  }
  edges.push_back((edges[1] - edges[0]) * (edges[3] - edges[2]));
  return edges;
}

/// Whether the overlap of two boxes is more than a share of what they cover together. Of boxes
/// without an area or an overlap it is not.
Term overlaps(const std::vector<Term>& a, const std::vector<Term>& b, const Term& share) {
  const auto extent = [&](size_t i) { return max(min(a[i + 1], b[i + 1]) - max(a[i], b[i]), 0); };
  const Term common = extent(0) * extent(2);
  return logicalAnd(less(0, common), less(share, common / (a[4] + b[4] - common)));
}

std::optional<Term> scalarOf(const NodeContext& context, size_t input, const char* what,
                             Elem elem) {
  if (!context.input(input)) return std::nullopt;
  const Term x = termOf(context, input);
  if (!isFloat(x.elem()) || x.count() != 1)
    need(badModel("{} is {}, expected one float", what, x.text()));
  return x.reshape({}).cast(elem);
}

/// Boxes of each row in order of their scores, of equals the lower index first.
struct Candidates {
  Term order;    ///< [rows, width]: indices of boxes
  Term left;     ///< [rows, 1]: how many of them a score lets in
  int64_t width; ///< at least the largest of `left`
};

/// The candidates among scores[rows, boxes]. Those that a score keeps out are left out in steps of
/// powers of two, so that not each image is another shape.
Candidates readCandidates(NodeContext& context, const Term& scores,
                          const std::optional<Term>& least) {
  const int64_t rows = scores.dim(0), count = scores.dim(1);
  int64_t width = count;
  Term key = scores, left = full(context.build, static_cast<double>(count), {rows, 1}, Elem::i32_);
  if (least) {
    const Term isIn = less(*least, scores);
    key = select(isIn, scores, -INFINITY);
    left = reduce(OpKind::ReduceSum, isIn.cast(Elem::i32_), {1});
    const Term longest = reduce(OpKind::ReduceMax, left, {0}, false);
    std::vector<int64_t> powers;
    for (int64_t power = 1; power < count; power *= 2) powers.push_back(power);
    if (!powers.empty()) {
      const auto size = static_cast<int64_t>(powers.size());
      const Term isBelow =
          less(constant(context.build, powers, {size}, Elem::i32_), longest).cast(Elem::i32_);
      const auto doublings =
          need(context.contents(reduce(OpKind::ReduceSum, isBelow, {0}, false).value()));
      if (doublings[0] < 0 || doublings[0] > size)
        need(failure(Code::internal, "{} doublings", doublings[0]));
      width = std::min(count, int64_t(1) << doublings[0]);
    }
  }
  const auto sorted = need(
      context.build.addAll(OpKind::Sort, {key.value()},
                           {{"axis", int64_t(1)}, {"k", width}, {"descending", int64_t(1)}}, 2));
  return {Term(context.build, sorted[1]), left, width};
}

/// One turn: carried is which places are left, captured are the edges of the boxes there and the
/// share; stacked is the best place of each row.
StepResults takeBest(const StepInputs& in, int64_t width) {
  const Term isLeft = in.carried[0],
             places = iota(isLeft.build(), width, Elem::i32_).reshape({1, width});
  // [rows, 1]
  const Term best =
      reduce(OpKind::ReduceMin, select(isLeft, places, static_cast<double>(width)), {1});
  const std::vector<Term> all(in.captured.begin(), in.captured.end() - 1);
  std::vector<Term> chosen;
  for (const Term& edge : all)
    chosen.push_back(takeOfRows(edge, min(best, static_cast<double>(width - 1))));
  const Term goes = logicalOr(equal(places, best), overlaps(all, chosen, in.captured.back()));
  return StepResults{{logicalAnd(isLeft, logicalNot(goes))}, {best}};
}

/// Batch, class and box of each of index[batch * classes, trips], one below the other.
Term indexTriples(const Term& index, int64_t batch, int64_t classes) {
  Builder& build = index.build();
  const int64_t trips = index.dim(1), all = index.dim(0) * trips;
  const auto column = [&](int64_t extent, int64_t inner, int64_t outer) {
    return Term(build, build.constant(Payload::iota(Elem::i32_, extent, 0, 1), {1, extent, 1}))
        .expand({outer, extent, inner})
        .reshape({all, 1});
  };
  return concat({column(batch, classes * trips, 1), column(classes, trips, batch),
                 index.cast(Elem::i32_).reshape({all, 1})},
                1);
}

/// In each turn every class takes the best of its boxes that are left, and drops those that overlap
/// it. There are as many turns as boxes are asked for, or can be left.
Status importNonMaxSuppression(NodeContext& context) {
  const Term boxes = widened(termOf(context, 0)), scores = widened(termOf(context, 1));
  if (boxes.rank() != 3 || boxes.dim(2) != 4 || !isFloat(boxes.elem()))
    return badModel("boxes are {}, expected floats [batch, n, 4]", boxes.text());
  const int64_t batch = boxes.dim(0), count = boxes.dim(1);
  if (scores.rank() != 3 || scores.dim(0) != batch || scores.dim(2) != count ||
      !isFloat(scores.elem()))
    return badModel("scores are {}, expected floats [{}, classes, {}]", scores.text(), batch,
                    count);
  const int64_t classes = scores.dim(1), rows = batch * classes;
  const bool centered = need(context.flagAttr("center_point_box", false));
  const auto limit = need(context.knownInts(2, "max_output_boxes_per_class"));
  if (limit && limit->size() != 1)
    return badModel("max_output_boxes_per_class has {} values, expected 1", limit->size());
  const int64_t most = limit ? limit->front() : 0;
  if (scores.count() == 0 || most <= 0)
    return context.set(full(context.build, 0, {0, 3}, Elem::i64_));
  const Term share = scalarOf(context, 3, "iou_threshold", boxes.elem()).value_or(boxes.number(0));
  const auto least = scalarOf(context, 4, "score_threshold", scores.elem());

  const Candidates candidates = readCandidates(context, scores.reshape({rows, count}), least);
  const int64_t width = candidates.width;
  const Term order = candidates.order;
  const Term place = iota(context.build, width, Elem::i32_).reshape({1, width});

  Recurrence turns;
  turns.trips = std::min(width, most);
  turns.inputs.carried = {less(place, candidates.left).expand({rows, width})};
  const Elem flat = placeElem(boxes.count());
  const Term first(context.build,
                   context.build.constant(Payload::iota(flat, batch, 0, count), {batch, 1, 1}));
  const Term box = (order.reshape({batch, classes, width}).cast(flat) + first);
  for (const Term& edge : edgesOf(boxes, centered))
    turns.inputs.captured.push_back(takeFlat(edge, box).reshape({rows, width}));
  turns.inputs.captured.push_back(share);
  const StepResults taken = addRecurrence(
      context.build, turns, [&](const StepInputs& in) { return takeBest(in, width); });

  // Each chosen place, or `width` where none was left: [rows, trips].
  const Term places = taken.stacked[0].reshape({turns.trips, rows}).transpose({1, 0});
  const Term index = takeOfRows(order, min(places, static_cast<double>(width - 1)));
  const Term triples = indexTriples(index, batch, classes);
  const Selected kept =
      selected(less(places, static_cast<double>(width)).reshape({rows * turns.trips}));
  const Term result =
      make(OpKind::Gather, {triples, kept.places}, {{"axis", int64_t(0)}}).cast(Elem::i64_);
  return context.trim({{0, result.value(), 0}}, kept.count.value());
}

constexpr Operator kSuppressionOperators[] = {
    {"NonMaxSuppression", 2, 5, 1, importNonMaxSuppression},
};

} // namespace

std::span<const Operator> suppressionOperators() { return kSuppressionOperators; }

} // namespace candela::import
