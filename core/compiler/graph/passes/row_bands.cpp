#include "core/compiler/graph/passes/row_bands.h"

#include <algorithm>
#include <set>

#include "core/compiler/graph/window.h"

namespace candela::graph::passes {
namespace {

constexpr size_t kImageRank = 4, kRowDim = 2;
constexpr int64_t kBandCounts[] = {2, 3, 4, 6, 8, 12, 16};

bool isWindowed(const Node& node) {
  return node.kind == OpKind::Conv || node.kind == OpKind::MaxPool ||
         node.kind == OpKind::AveragePool;
}

/// Rows first .. last - 1 of an image.
struct RowRange {
  int64_t first = 0, last = 0;
  int64_t count() const { return last - first; }
};

/// What a node reads for some rows of its result.
struct RowNeed {
  RowRange rows;                 ///< of the value before it
  int64_t before = 0, after = 0; ///< rows of padding around those
};

Window windowAt(const Node& node) {
  if (node.kind != OpKind::Conv) return windowOf(node, node.intsAttr("kernel_shape"));
  const Shape& weight = node.operand(1)->type.shape();
  return windowOf(node, Shape(weight.begin() + 2, weight.end()));
}

RowNeed needOf(const Node& node, const Value& from, const RowRange& result) {
  if (!isWindowed(node)) return {result, 0, 0};
  const Window window = windowAt(node);
  const int64_t rows = from.type.shape()[kRowDim];
  const int64_t first = result.first * window.strides[0] - window.padsBegin[0];
  const int64_t last = (result.last - 1) * window.strides[0] - window.padsBegin[0] + window.span(0);
  return {{std::max<int64_t>(first, 0), std::min(last, rows)},
          std::max<int64_t>(-first, 0),
          std::max<int64_t>(last - rows, 0)};
}

/// Values that depend on no input.
class Constants {
public:
  explicit Constants(const Graph& graph) {
    for (const auto& node : graph.nodes()) {
      const auto isFixed = [&](const Value* value) { return !value || has(value); };
      if (node->body || !std::ranges::all_of(node->operands(), isFixed)) continue;
      for (const Value* result : node->results()) fixed_.insert(result);
    }
  }
  bool has(const Value* value) const { return fixed_.count(value) != 0; }

private:
  std::set<const Value*> fixed_;
};

bool isImage(const Value& value) {
  return value.type.rank() == static_cast<int>(kImageRank) && isPlain(&value);
}

/// Whether an operand is the same for all rows of an image.
bool hasNoRows(const Value* value) {
  const Shape& dims = value->type.shape();
  return dims.size() < kImageRank - kRowDim || dims[dims.size() - (kImageRank - kRowDim)] == 1;
}

bool isAlongRows(const Node& node) {
  const Value* scale = node.operand(1);
  if (scale->type.rank() == 0 || elementCount(scale->type.shape()) == 1) return false;
  const int64_t axis = node.hasAttr("axis") ? node.intAttr("axis") : 1;
  return axis == kRowDim ||
         axis == static_cast<int64_t>(kRowDim) - static_cast<int64_t>(kImageRank);
}

/// The place of the operand whose rows a node computes rows of; nullopt: it is no such node.
std::optional<size_t> rowOperand(const Node& node, const Constants& constants) {
  if (node.results().size() != 1 || node.body || !isImage(*node.result())) return std::nullopt;
  std::optional<size_t> from;
  for (size_t i = 0; i < node.operands().size(); ++i) {
    const Value* value = node.operand(i);
    if (!value || constants.has(value)) continue;
    if (from) return std::nullopt;
    from = i;
  }
  if (!from || !isImage(*node.operand(*from))) return std::nullopt;
  if (isWindowed(node)) return *from == 0 && !windowAt(node).ceilMode ? from : std::nullopt;
  if (node.kind == OpKind::Quantize || node.kind == OpKind::Dequantize)
    return *from == 0 && !isAlongRows(node) ? from : std::nullopt;
  if (!node.info().has(kTraitElementwise)) return std::nullopt;
  if (node.operand(*from)->type.shape() != node.result()->type.shape()) return std::nullopt;
  for (const Value* value : node.operands())
    if (value && value != node.operand(*from) && !hasNoRows(value)) return std::nullopt;
  return from;
}

/// For each step what it reads, so that the last one computes these rows.
std::vector<RowNeed> needsOf(const RowRun& run, RowRange rows) {
  std::vector<RowNeed> needs(run.size());
  for (size_t s = run.size(); s-- > 0;) {
    needs[s] = needOf(*run[s].node, *run[s].read(), rows);
    rows = needs[s].rows;
  }
  return needs;
}

int64_t rowsOf(const Value& value) { return value.type.dim(kRowDim); }

RowRange bandOf(int64_t rows, int64_t band, int64_t bands) {
  return {rows * band / bands, rows * (band + 1) / bands};
}

/// Whether each band reads rows that are there: the windows of one may lie in the padding alone.
bool hasRowsInAll(const RowRun& cut, int64_t bands) {
  const int64_t rows = rowsOf(*cut.back().node->result());
  for (int64_t band = 0; band < bands; ++band) {
    const std::vector<RowNeed> needs = needsOf(cut, bandOf(rows, band, bands));
    if (std::ranges::any_of(needs, [](const RowNeed& need) { return need.rows.count() <= 0; }))
      return false;
  }
  return true;
}

uint64_t bytesOf(const Value& value, int64_t rows) {
  const auto elements = static_cast<uint64_t>(value.type.count() / rowsOf(value) * rows);
  return elemBytes(value.type.elem, elements);
}

/// Operations of so many rows of a result.
double workOf(const Node& node, int64_t rows) {
  const Value& result = *node.result();
  double each = 1;
  if (node.kind == OpKind::Conv) {
    const Value& weight = *node.operand(1);
    each = static_cast<double>(weight.type.count()) / static_cast<double>(weight.type.dim(0));
  } else if (isWindowed(node)) {
    const Window window = windowAt(node);
    each = static_cast<double>(window.kernel[0] * window.kernel[1]);
  }
  return each * static_cast<double>(result.type.count() / rowsOf(result) * rows);
}

/// Which results of a run fusion leaves in memory: in a model of integers those that are quantized,
/// else those before a window. The last one always.
std::vector<bool> storedOf(const RowRun& run) {
  const auto isQuantize = [](const RowStep& step) { return step.node->kind == OpKind::Quantize; };
  const bool isOfIntegers = std::ranges::any_of(run, isQuantize);
  std::vector<bool> stored;
  for (size_t s = 0; s < run.size(); ++s) {
    const bool isBeforeWindow = s + 1 < run.size() && isWindowed(*run[s + 1].node);
    stored.push_back(s + 1 == run.size() || (isOfIntegers ? isQuantize(run[s]) : isBeforeWindow));
  }
  return stored;
}

/// The steps from where a stored value is read to where one is written: first .. last.
struct Part {
  size_t first = 0, last = 0;
};

/// The most bytes of a run that is cut from `part.first` to `part.last`; bands 1: not cut.
uint64_t bytesOfRun(const RowRun& run, const std::vector<bool>& stored, const Part& part,
                    int64_t bands) {
  const RowRun cut(run.begin() + static_cast<std::ptrdiff_t>(part.first),
                   run.begin() + static_cast<std::ptrdiff_t>(part.last) + 1);
  const Value& whole = *run[part.last].node->result();
  const uint64_t ends =
      bytesOf(*cut.front().read(), rowsOf(*cut.front().read())) + bytesOf(whole, rowsOf(whole));
  uint64_t most = 0;
  uint64_t before = bytesOf(*run.front().read(), rowsOf(*run.front().read()));
  for (size_t s = 0; s < run.size(); ++s) {
    const Value& result = *run[s].node->result();
    if (!stored[s] || (bands > 1 && s >= part.first && s < part.last)) continue;
    const uint64_t here = bytesOf(result, rowsOf(result));
    const bool isJoin = bands > 1 && s == part.last;
    most = std::max(most, isJoin ? ends : before + here);
    before = here;
  }
  for (int64_t band = 0; band < bands && bands > 1; ++band) {
    const std::vector<RowNeed> needs = needsOf(cut, bandOf(rowsOf(whole), band, bands));
    uint64_t last = bytesOf(*cut.front().read(), needs.front().rows.count());
    for (size_t s = 0; s < cut.size(); ++s) {
      if (!stored[part.first + s]) continue;
      const int64_t rows = s + 1 < cut.size() ? needs[s + 1].rows.count()
                                              : bandOf(rowsOf(whole), band, bands).count();
      const uint64_t here = bytesOf(*cut[s].node->result(), rows);
      most = std::max(most, ends + last + here);
      last = here;
    }
  }
  return most;
}

uint64_t bytesUncut(const RowRun& run) {
  return bytesOfRun(run, storedOf(run), {0, run.size() - 1}, 1);
}

double workDoneAgain(const RowRun& cut, int64_t bands) {
  const Value& whole = *cut.back().node->result();
  double more = 0;
  for (const RowStep& step : cut) more -= workOf(*step.node, rowsOf(*step.node->result()));
  for (int64_t band = 0; band < bands; ++band) {
    const RowRange rows = bandOf(rowsOf(whole), band, bands);
    const std::vector<RowNeed> needs = needsOf(cut, rows);
    for (size_t s = 0; s < cut.size(); ++s)
      more += workOf(*cut[s].node, s + 1 < cut.size() ? needs[s + 1].rows.count() : rows.count());
  }
  return more;
}

/// Adds the ways to cut one run.
void addCuts(const RowRun& run, std::vector<RowCut>& cuts) {
  const std::vector<bool> stored = storedOf(run);
  const uint64_t uncut = bytesUncut(run);
  for (size_t first = 0; first < run.size(); ++first) {
    if (first && !stored[first - 1]) continue;
    for (size_t last = first; last < run.size(); ++last) {
      const RowRun cut(run.begin() + static_cast<std::ptrdiff_t>(first),
                       run.begin() + static_cast<std::ptrdiff_t>(last) + 1);
      const auto windows =
          std::ranges::count_if(cut, [](const RowStep& step) { return isWindowed(*step.node); });
      if (!stored[last] || windows < 2) continue;
      for (const int64_t bands : kBandCounts) {
        if (bands > rowsOf(*cut.back().node->result())) break;
        if (!hasRowsInAll(cut, bands)) continue;
        const uint64_t bytes = bytesOfRun(run, stored, {first, last}, bands);
        if (bytes < uncut) cuts.push_back({cut, bands, bytes, workDoneAgain(cut, bands)});
      }
    }
  }
}

/// A copy of a step for some rows, reading `from`, in front of `before`.
Result<Value*> copyOf(Graph& graph, const RowStep& step, Value* from, const RowNeed& need,
                      Node* before) {
  std::vector<Value*> operands = step.node->operands();
  operands[step.from] = from;
  Attrs attrs = step.node->attrs;
  if (isWindowed(*step.node)) {
    const Window window = windowAt(*step.node);
    attrs["pads"] =
        std::vector<int64_t>{need.before, window.padsBegin[1], need.after, window.padsEnd[1]};
  }
  CDL_ASSIGN(Node* const node, graph.addNode(step.node->kind, std::move(operands), std::move(attrs),
                                             step.node->provenance, before));
  return node->result();
}

} // namespace

std::vector<RowRun> rowRuns(const Graph& graph) {
  const Constants constants(graph);
  std::vector<RowRun> runs;
  std::map<const Value*, size_t> ends; // the run that ends with a value
  for (const auto& node : graph.nodes()) {
    const std::optional<size_t> from = rowOperand(*node, constants);
    if (!from) continue;
    const Value* read = node->operand(*from);
    const auto known = ends.find(read);
    const bool goesOn = known != ends.end() && read->users().size() == 1 && !graph.isOutput(read);
    if (!goesOn) runs.emplace_back();
    const size_t run = goesOn ? known->second : runs.size() - 1;
    runs[run].push_back({node.get(), *from});
    ends[node->result()] = run;
  }
  return runs;
}

std::vector<RowCut> rowCuts(const Graph& graph) {
  const std::vector<RowRun> runs = rowRuns(graph);
  std::vector<RowCut> cuts;
  if (runs.empty()) return cuts;
  addCuts(*std::ranges::max_element(runs, {}, bytesUncut), cuts);
  std::ranges::stable_sort(cuts, {}, &RowCut::more);
  return cuts;
}

uint64_t rowBytes(const Graph& graph) {
  uint64_t most = 0;
  for (const RowRun& run : rowRuns(graph)) most = std::max(most, bytesUncut(run));
  return most;
}

Result<std::string> cutToFit(Graph& graph, uint64_t bytes) {
  std::string made;
  while (rowBytes(graph) > bytes) {
    const std::vector<RowCut> cuts = rowCuts(graph);
    if (cuts.empty()) break;
    auto chosen = std::ranges::find_if(cuts, [&](const RowCut& cut) { return cut.bytes <= bytes; });
    const bool fits = chosen != cuts.end();
    if (!fits) chosen = std::ranges::min_element(cuts, {}, &RowCut::bytes);
    made += fmt::format("{}'{}' to '{}' in {} bands of rows", made.empty() ? "" : ", ",
                        chosen->run.front().node->userName(), chosen->run.back().node->userName(),
                        chosen->bands);
    CDL_TRY(cutRows(graph, chosen->run, chosen->bands));
    if (!fits) break; // the values around its bands are what takes most
  }
  return made;
}

Status cutRows(Graph& graph, const RowRun& run, int64_t bands) {
  Value* const whole = run.back().node->result();
  Value* const read = run.front().read();
  if (bands < 1 || bands > rowsOf(*whole))
    return badArgument("{} bands of the {} rows of '{}'", bands, rowsOf(*whole), whole->name);
  Node* const end = run.back().node;
  std::vector<Value*> parts;
  for (int64_t band = 0; band < bands; ++band) {
    const std::vector<RowNeed> needs = needsOf(run, bandOf(rowsOf(*whole), band, bands));
    Shape starts(kImageRank, 0);
    Shape counts = read->type.shape();
    starts[kRowDim] = needs.front().rows.first;
    counts[kRowDim] = needs.front().rows.count();
    Attrs attrs;
    attrs["starts"] = std::vector<int64_t>(starts.begin(), starts.end());
    attrs["counts"] = std::vector<int64_t>(counts.begin(), counts.end());
    attrs["steps"] = std::vector<int64_t>(kImageRank, 1);
    CDL_ASSIGN(Node* const slice,
               graph.addNode(OpKind::Slice, {read}, std::move(attrs), end->provenance, end));
    Value* at = slice->result();
    for (size_t s = 0; s < run.size(); ++s) {
      CDL_ASSIGN(at, copyOf(graph, run[s], at, needs[s], end));
    }
    parts.push_back(at);
  }
  Attrs attrs;
  attrs["axis"] = static_cast<int64_t>(kRowDim);
  CDL_ASSIGN(Node* const joined,
             graph.addNode(OpKind::Concat, parts, std::move(attrs), end->provenance, end));
  graph.replaceAllUses(whole, joined->result());
  graph.eraseDead();
  return Status::ok();
}

} // namespace candela::graph::passes
