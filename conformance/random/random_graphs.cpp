#include "conformance/random/random_graphs.h"

#include <algorithm>

#include "conformance/judge/bounds.h"
#include "core/compiler/driver/pipeline.h"
#include "core/support/out_of_memory.h"

namespace candela::conformance::random {
namespace {

using graph::OpInfo;

class GraphMaker {
public:
  explicit GraphMaker(uint64_t seed) : random_(seed), hasExpressions_(seed % 8 == 0) {}

  Recipe make() {
    const int64_t inputs = random_.between(1, 3), wanted = random_.between(5, 40);
    for (int64_t i = 0; i < inputs; ++i) {
      const Data data = anyData();
      const Shape shape = anyShape();
      addLeaf(randomData(anyElem(), shape, data, random_), false);
    }
    for (int attempt = 0; attempt < wanted * 30 && nodes() < wanted; ++attempt) addNode();
    chooseOutputs();
    recipe_.prune();
    return std::move(recipe_);
  }

private:
  struct Known {
    int id;
    graph::Value* value;
    judge::Interval interval;
  };

  int64_t nodes() const { return static_cast<int64_t>(recipe_.steps.size()); }
  /// Those that arithmetic is about, more often than the others.
  Elem anyElem() {
    static constexpr Elem kElems[] = {Elem::f32_, Elem::f32_, Elem::f32_,  Elem::f32_, Elem::f32_,
                                      Elem::f32_, Elem::f16_, Elem::bf16_, Elem::f64_, Elem::i32_,
                                      Elem::i8_,  Elem::u8_,  Elem::i64_,  Elem::i16_, Elem::bool_};
    return random_.of(kElems);
  }
  Shape anyShape() {
    Shape shape;
    for (int64_t i = random_.oneIn(12) ? 0 : random_.between(1, 4); i > 0; --i) {
      const int64_t largest = shape.size() > 1 ? 6 : 17;
      shape.push_back(random_.oneIn(5) ? 1 : random_.between(2, largest));
    }
    return shape;
  }
  Data anyData() {
    if (random_.oneIn(12)) return Data::corners;
    return random_.oneIn(2) ? Data::steps : Data::calm;
  }

  int addLeaf(Tensor tensor, bool constant) {
    const int id = recipe_.addLeaf(tensor, constant);
    graph::Value* value = constant ? graph_.addConstant(tensor)
                                   : graph_.addInput(fmt::format("x{}", id),
                                                     graph::TensorType(tensor.elem, tensor.dims));
    known_.push_back({id, value, orThrow(judge::Interval::of(tensor))});
    return id;
  }
  const Known& known(int id) const { return *std::ranges::find(known_, id, &Known::id); }

  /// A value that the operand may be, else new data.
  int operandFor(const Draft::Operand& operand) {
    const bool isFree = operand.extent == 0 && operand.lo == operand.hi;
    if (isFree && random_.below(3) != 0) {
      std::vector<int> fitting;
      for (const Known& each : known_)
        if (each.value->type.elem == operand.elem && each.value->type.shape() == operand.dims)
          fitting.push_back(each.id);
      if (!fitting.empty()) return random_.of(fitting);
    }
    const bool constant = operand.constant || (operand.extent <= 0 && random_.oneIn(2));
    return addLeaf(dataOf(operand, anyData(), random_), constant);
  }

  /// Those that drafts are made of.
  static std::span<const OpInfo* const> knownOps() {
    static const std::vector<const OpInfo*> ops = [] {
      std::vector<const OpInfo*> found;
      for (const OpInfo& info : graph::allOps())
        if (isDrafted(info)) found.push_back(&info);
      return found;
    }();
    return ops;
  }

  void addNode() {
    const OpInfo& info = *random_.of(knownOps());
    // Newer values more often, so that chains get long.
    const size_t count = known_.size(),
                 back = static_cast<size_t>(random_.below(static_cast<int64_t>(count)));
    const Known& x =
        known_[random_.oneIn(3) ? back : count - 1 - back % std::min<size_t>(count, 4)];
    const Elem elem = x.value->type.elem;
    // An expression has no decomposition: where it stands, nothing is lowered to primitives.
    if (info.instrKind == CDL_KIND_ELEMENTWISE && !hasExpressions_) return;
    if (info.has(graph::kTraitRegion) || info.operands.empty() || !info.operands[0].accepts(elem))
      return;
    const Shape shape = x.value->type.shape();
    const auto draft = draftOf(info, elem, &shape, random_);
    if (!draft) return;
    Recipe::Step step{draft->kind, {x.id}, draft->attrs, {}};
    for (size_t i = 1; i < draft->operands.size(); ++i) {
      const Draft::Operand& operand = draft->operands[i];
      if (operand.elem != Elem::none &&
          elementCount(operand.dims).value_or(kLargest + 1) > kLargest)
        return;
    }
    const Draft::Operand& first = draft->operands[0];
    if (first.dims != shape || first.lo != first.hi) return; // what it asks for may not be there
    for (size_t i = 1; i < draft->operands.size(); ++i)
      step.operands.push_back(
          draft->operands[i].elem == Elem::none ? Recipe::kAbsent : operandFor(draft->operands[i]));
    std::vector<graph::Value*> operands;
    for (const int id : step.operands)
      operands.push_back(id == Recipe::kAbsent ? nullptr : known(id).value);
    auto made = graph_.addNode(step.kind, operands, step.attrs, {}, nullptr, draft->results);
    if (!made) return;
    std::vector<const judge::Interval*> bounds;
    for (const int id : step.operands)
      bounds.push_back(id == Recipe::kAbsent ? nullptr : &known(id).interval);
    const bool isSmall = std::ranges::all_of((*made)->results(), [](const graph::Value* result) {
      return result->type.count() <= kLargest && !isStorageOnly(result->type.elem);
    });
    auto intervals =
        isSmall ? judge::analyze(**made, bounds, driver::hostTarget()) : badModel("too large");
    if (!intervals || !std::ranges::all_of(*intervals, isUseful)) {
      graph_.erase(*made);
      return;
    }
    for (size_t i = 0; i < (*made)->results().size(); ++i) {
      step.results.push_back(recipe_.nextId++);
      known_.push_back({step.results.back(), (*made)->result(i), std::move((*intervals)[i])});
    }
    recipe_.steps.push_back(std::move(step));
  }

  static bool isUseful(const judge::Interval& interval) {
    return interval.tight() * 20 >= interval.count() * 19;
  }

  /// What nobody uses, and some of what others use too.
  void chooseOutputs() {
    std::vector<int> rest;
    for (const Recipe::Step& step : recipe_.steps)
      for (const int id : step.results)
        (known(id).value->users().empty() ? recipe_.outputs : rest).push_back(id);
    while (recipe_.outputs.size() > 6) recipe_.outputs.erase(recipe_.outputs.begin());
    if (!rest.empty() && random_.oneIn(2)) recipe_.outputs.push_back(random_.of(rest));
  }

  static constexpr int64_t kLargest = 1200;
  Random random_;
  const bool hasExpressions_;
  graph::Graph graph_;
  Recipe recipe_;
  std::vector<Known> known_;
};

} // namespace

Recipe randomGraph(uint64_t seed) { return GraphMaker(seed).make(); }

} // namespace candela::conformance::random
