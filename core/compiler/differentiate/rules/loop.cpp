// A loop runs back: another loop, from the last trip to the first, whose body is the gradient of
// the loop's body. It reads what each trip was given, which the loop itself keeps: it becomes one
// that returns its carried values too.
#include "core/compiler/graph/loop.h"
#include "core/compiler/differentiate/differentiate.h"
#include "core/compiler/differentiate/rules.h"

namespace candela::differentiate {
namespace {

using graph::LoopForm;

/// Which operands, of a body as of the node, are what.
struct Ports {
  LoopForm form;
  size_t captured = 0;
  size_t results = 0; ///< that are scanned

  explicit Ports(const Node& node)
      : form(graph::loopForm(node)), captured(node.operands().size() - form.carried - form.scanned),
        results(node.results().size() - form.carried) {}
  size_t firstCaptured() const { return form.carried + form.scanned; }
};

/// The same loop, which returns what each trip was given of the carried values as well: behind its
/// own results.
Node* keepingCarried(const Step& step, const Ports& ports) {
  graph::Graph& graph = step.writer().graph;
  const Node& node = step.node;
  graph::Graph body = graph::clone(*node.body);
  for (size_t c = 0; c < ports.form.carried; ++c) {
    Value* given = body.inputs()[c];
    body.addOutput(given, body.uniqueName(given->name + "_given"));
  }
  LoopForm form = ports.form;
  form.backward.resize(form.scanned + ports.results, 0);
  form.backward.resize(form.backward.size() + form.carried, 0);
  Node* keeping = need(graph::addLoop(graph, form, node.operands(), std::move(body),
                                      node.provenance, node.result()->producer));
  for (size_t i = 0; i < node.results().size(); ++i)
    graph.replaceAllUses(node.result(i), keeping->result(i));
  return keeping;
}

/// One trip back, while it is built. Inputs: what comes back to carried values and sums for
/// captured ones, carried on; what the trip was given, and what comes back to its scanned results,
/// slice by slice; what it captures.
struct TripBack {
  graph::Graph body;
  std::vector<size_t> carried, captured, scanned, results; ///< that take part, by their number
  LoopForm form;
  std::vector<Value*> operands;                        ///< of the loop
  std::vector<Value*> dCarried, sums, given, dResults; ///< inputs of the body
  std::map<const Value*, Value*> copies;               ///< of the forward body's values
};

void chooseParts(const Step& step, const Ports& ports, TripBack& back) {
  for (size_t c = 0; c < ports.form.carried; ++c)
    if (isFloat(step.node.result(c)->type.elem)) back.carried.push_back(c);
  for (size_t s = 0; s < ports.form.scanned; ++s)
    if (step.wants(ports.form.carried + s)) back.scanned.push_back(s);
  for (size_t k = 0; k < ports.captured; ++k)
    if (step.wants(ports.firstCaptured() + k)) back.captured.push_back(k);
  for (size_t r = 0; r < ports.results; ++r)
    if (step.has(ports.form.carried + r)) back.results.push_back(r);
}

void addCarriedInputs(const Step& step, const Ports& ports, TripBack& back) {
  const auto addInput = [&](const std::string& hint, Value* operand) {
    back.operands.push_back(operand);
    return back.body.addInput(back.body.uniqueName(hint), operand->type);
  };
  for (const size_t c : back.carried)
    back.dCarried.push_back(addInput("d_" + step.node.body->inputs()[c]->name, step.dy(c).value()));
  for (const size_t k : back.captured) {
    const size_t i = ports.firstCaptured() + k;
    back.sums.push_back(
        addInput("sum_" + step.node.body->inputs()[i]->name, zerosLike(step.x(i)).value()));
  }
  back.form.carried = back.dCarried.size() + back.sums.size();
}

/// One slice of an operand along dim 0, each trip; `isBackward`: from the last one.
Value* addSlices(TripBack& back, const std::string& hint, Value* operand, bool isBackward) {
  back.operands.push_back(operand);
  back.form.backward.push_back(isBackward);
  ++back.form.scanned;
  const Shape dims = operand->type.shape();
  return back.body.addInput(back.body.uniqueName(hint),
                            {operand->type.elem, Shape(dims.begin() + 1, dims.end())});
}

void addOtherInputs(const Step& step, const Ports& ports, const Node& keeping, TripBack& back) {
  const std::vector<Value*>& inputs = step.node.body->inputs();
  for (size_t c = 0; c < ports.form.carried; ++c)
    back.copies[inputs[c]] = addSlices(
        back, inputs[c]->name, keeping.result(ports.form.carried + ports.results + c), true);
  for (size_t s = 0; s < ports.form.scanned; ++s) {
    const size_t i = ports.form.carried + s;
    back.copies[inputs[i]] =
        addSlices(back, inputs[i]->name, step.node.operand(i), !ports.form.runsBackward(s));
  }
  for (const size_t r : back.results)
    back.dResults.push_back(addSlices(back, fmt::format("d_result_{}", r),
                                      step.dy(ports.form.carried + r).value(),
                                      !ports.form.runsBackward(ports.form.scanned + r)));
  for (size_t k = 0; k < ports.captured; ++k) {
    const size_t i = ports.firstCaptured() + k;
    back.operands.push_back(step.node.operand(i));
    back.copies[inputs[i]] =
        back.body.addInput(back.body.uniqueName(inputs[i]->name), step.node.operand(i)->type);
  }
}

/// The forward body again, and its gradient; what goes on and what is returned are its outputs.
void fillBody(const Step& step, const Ports& ports, TripBack& back) {
  const graph::Graph& forward = *step.node.body;
  for (const auto& node : forward.nodes()) {
    for (const Value* result : node->results()) CDL_CHECK(result, "a node without a result");
    back.body.addCopy(*node, back.copies);
  }
  const auto copyOf = [&](const Value* value) { return back.copies.at(value); };
  std::vector<Cotangent> of;
  for (size_t n = 0; n < back.carried.size(); ++n)
    of.push_back({copyOf(forward.outputs()[back.carried[n]]), back.dCarried[n]});
  for (size_t n = 0; n < back.results.size(); ++n)
    of.push_back(
        {copyOf(forward.outputs()[ports.form.carried + back.results[n]]), back.dResults[n]});
  std::vector<Value*> wrt;
  for (const size_t c : back.carried) wrt.push_back(copyOf(forward.inputs()[c]));
  for (const size_t k : back.captured)
    wrt.push_back(copyOf(forward.inputs()[ports.firstCaptured() + k]));
  for (const size_t s : back.scanned)
    wrt.push_back(copyOf(forward.inputs()[ports.form.carried + s]));
  const std::vector<Gradient> gradients = need(differentiate(back.body, of, wrt));
  Writer writer{back.body};
  for (size_t n = 0; n < gradients.size(); ++n) {
    Term value(writer, gradients[n].value);
    const size_t sum = n - back.carried.size();
    if (n >= back.carried.size() && sum < back.sums.size())
      value = Term(writer, back.sums[sum]) + value;
    back.body.addOutput(value.value(), back.body.uniqueName("back"));
  }
}

} // namespace

void loopRule(const Step& step) {
  const Ports ports(step.node);
  TripBack back;
  back.form.trips = ports.form.trips;
  chooseParts(step, ports, back);
  addCarriedInputs(step, ports, back);
  const Node& keeping = *keepingCarried(step, ports);
  addOtherInputs(step, ports, keeping, back);
  fillBody(step, ports, back);
  // A slice of what comes back lies where the trip's own slice lay.
  for (const size_t s : back.scanned) back.form.backward.push_back(!ports.form.runsBackward(s));
  const Node* loop = need(graph::addLoop(step.writer().graph, back.form, back.operands,
                                         std::move(back.body), step.node.provenance));
  size_t next = 0;
  const auto give = [&](size_t operand) {
    const size_t result = next++;
    step.give(operand, [&] { return Term(step.writer(), loop->result(result)); });
  };
  for (const size_t c : back.carried) give(c);
  for (const size_t k : back.captured) give(ports.firstCaptured() + k);
  for (const size_t s : back.scanned) give(ports.form.carried + s);
}

} // namespace candela::differentiate
