
#include <limits>

#include "conformance/port.h"
#include "conformance/suite.h"
#include "conformance/tiers/ops/families.h"
#include "core/support/float_bits.h"
#include "core/support/out_of_memory.h"
#include "core/support/text/scan.h"

namespace candela::conformance::tiers::ops {

std::vector<Elem> elemsIn(std::string_view row) {
  std::vector<Elem> elems;
  for (const std::string& word : text::split(row, '_'))
    if (const auto elem = parseElem(word)) elems.push_back(*elem);
  return elems;
}

std::string wordOf(std::string_view row) { return std::string(row.substr(0, row.find('_'))); }

TrialBuilder::Fill fillOf(Elem elem, std::string_view data) {
  static constexpr std::pair<std::string_view, random::Data> kinds[] = {
      {"calm", random::Data::calm},       {"steps", random::Data::steps},
      {"corners", random::Data::corners}, {"wide", random::Data::wide},
      {"bits", random::Data::bits},       {"extremes", random::Data::extremes}};
  for (const auto& [name, kind] : kinds)
    if (data == name) return numbers(elem, kind);
  if (data == "small")
    return [elem](int64_t count, random::Random& random) {
      Tensor tensor = orThrow(Tensor::zeros(elem, {count}));
      for (int64_t i = 0; i < count; ++i)
        storeElement(elem, tensor.bytes.mutableData(), i,
                     fromReal(elem, static_cast<double>(random.between(-8, 8)) / 8));
      return tensor;
    };
  if (data == "masked")
    return [elem](int64_t count, random::Random& random) {
      Tensor tensor = random::randomData(elem, {count}, random::Data::calm, random);
      const double none = -std::numeric_limits<double>::infinity();
      for (int64_t i = 0; i < count; ++i)
        if (random.oneIn(4))
          storeElement(elem, tensor.bytes.mutableData(), i, fromReal(elem, none));
      return tensor;
    };
  return [elem, data = std::string(data)](int64_t count, random::Random& random) {
    Tensor tensor = orThrow(Tensor::zeros(elem, {count}));
    const int64_t first = random.between(1, 5);
    const auto next = [&] {
      if (data == "equal") return first;
      return data == "offset" ? random.between(256, 272) : random.below(3);
    };
    for (int64_t i = 0; i < count; ++i) {
      const int64_t number = next();
      const uint64_t bits = isFloat(elem) ? fromReal(elem, static_cast<double>(number))
                                          : static_cast<uint64_t>(number) & elemMask(elem);
      storeElement(elem, tensor.bytes.mutableData(), i, bits);
    }
    return tensor;
  };
}

Result<Values> write(graph::Graph& graph, graph::OpKind kind, Values operands, graph::Attrs attrs,
                     int results) {
  CDL_ASSIGN(const graph::Node* const node,
             graph.addNode(kind, std::move(operands), std::move(attrs), {}, nullptr, results));
  return node->results();
}

Result<graph::Value*> widened(graph::Graph& graph, graph::Value* x) {
  if (elemBits(x->type.elem) != 16 || !isFloat(x->type.elem)) return x;
  CDL_ASSIGN(const Values wide, write(graph, graph::OpKind::Cast, {x}, {{"to", Elem::f32_}}));
  return wide[0];
}

std::vector<OpSubject> opSubjects(const Selection& selection) {
  std::vector<OpSubject> subjects;
  for (const auto& families : {windowFamilies(), lineFamilies(), expressionFamilies(),
                               prologueFamilies(), productFamilies()})
    for (const OpFamily& one : families) {
      Choice choice;
      Family family = one.family;
      family.run = [&](const Choice& of, Port&) {
        choice = of;
        return CaseResult::passed();
      };
      Port nobody("reference");
      for (const Case& each : expand(family, selection, one.budget)) {
        each.run(nobody);
        subjects.push_back({each.address, [make = one.make, choice, address = each.address] {
                              return OpTrial::make(make(choice), address);
                            }});
      }
    }
  return subjects;
}

Result<std::vector<Case>> opCases(const Selection& selection) {
  std::vector<Case> cases;
  for (OpSubject& subject : opSubjects(selection))
    cases.push_back({subject.address, [make = std::move(subject.make)](Port& port) {
                       const auto trial = make();
                       return trial ? trial->tryOut(port) : CaseResult::of(trial.status());
                     }});
  return cases;
}

} // namespace candela::conformance::tiers::ops
