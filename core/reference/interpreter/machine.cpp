#include "core/reference/interpreter/machine.h"

#include <algorithm>
#include <set>

#include "core/support/text/literal.h"

namespace candela::reference::interpreter {

using program::Operand, program::Step, program::View;

namespace {

/// What is left after one trip through the type.
Scalar rounded(Elem elem, const Scalar& value) { return decode(elem, encode(elem, value)); }

/// How far apart the elements of a view lie among the logical ones.
Shape logicalStrides(const View& view) {
  const std::vector<program::Layout::Step>& steps = view.layout.steps;
  const Shape strides = denseStrides(logicalDims(view));
  Shape moves;
  for (size_t i = 0; i < steps.size(); ++i) {
    moves.push_back(strides[steps[i].dim]);
    for (size_t j = i + 1; j < steps.size(); ++j)
      if (steps[j].dim == steps[i].dim) moves[i] *= view.dims[j];
  }
  return moves;
}

Array unblocked(const Array& values, const View& view) {
  if (view.layout.isRowMajor()) return values;
  Array out(values.elem, logicalDims(view));
  int64_t i = 0;
  reference::forEach(view.dims, {logicalStrides(view)},
                     [&](const int64_t* at) { out.set(*at, values.at(i++)); });
  return out;
}

Array blocked(const Array& values, const View& view) {
  if (view.layout.isRowMajor()) return values;
  const Array whole = resized(values, logicalDims(view));
  Array out(values.elem, view.dims);
  int64_t i = 0;
  reference::forEach(view.dims, {logicalStrides(view)},
                     [&](const int64_t* at) { out.set(i++, whole.at(*at)); });
  return out;
}

} // namespace

bool isElementwise(uint16_t kind) {
  const std::string_view shape = cdl_kind_facts(kind)->shape; // all alike: "= > -", TABLE "= T > -"
  return kind != CDL_KIND_COPY && shape.starts_with('=') && shape.ends_with("> -");
}

int64_t Call::elementOf(const View& view, const int64_t* index) const {
  int64_t element = view.offset;
  for (int l = 0; l < CDL_MAX_LOOP_NESTING; ++l) element += view.ivStrides[l] * iv_[l];
  for (size_t d = 0; d < view.dims.size(); ++d) element += view.strides[d] * index[d];
  return element;
}

void Call::forEach(const View& view, const std::function<void(int64_t, int64_t)>& visit) const {
  int64_t i = 0, first = elementOf(view, Shape(view.dims.size(), 0).data());
  reference::forEach(view.dims, {view.strides},
                     [&](const int64_t* at) { visit(i++, first + *at); });
}

double Call::floatAttr(uint16_t id, double otherwise) const {
  const program::Attr* attr = instr.attr(id);
  return attr ? attr->asFloat() : otherwise;
}

uint64_t Call::load(const View& view, int64_t element) {
  const auto bits = memory_.load(view.buffer, view.elem, element);
  fail(bits.status());
  return bits ? *bits : 0;
}

Array Call::read(const View& view) {
  Array values(view.elem, view.dims);
  forEach(view, [&](int64_t i, int64_t element) {
    if (!failed()) values.set(i, decode(view.elem, load(view, element)));
  });
  return values;
}

Scalar Call::readAt(const View& view, std::initializer_list<int64_t> index) {
  return decode(view.elem, load(view, elementOf(view, index.begin())));
}

void Call::writeAt(const View& view, std::initializer_list<int64_t> index, const Scalar& value) {
  fail(memory_.store(view.buffer, view.elem, elementOf(view, index.begin()),
                     encode(view.elem, value)));
}

Shape logicalDims(const View& view) {
  if (view.layout.isRowMajor()) return view.dims;
  Shape dims(view.layout.logicalRank, 1);
  for (size_t i = 0; i < view.dims.size(); ++i) dims[view.layout.steps[i].dim] *= view.dims[i];
  return dims;
}

Array resized(const Array& values, const Shape& dims) {
  if (values.dims == dims) return values;
  Array out(values.elem, dims);
  Shape both = dims;
  for (size_t d = 0; d < dims.size(); ++d) both[d] = std::min(dims[d], values.dims[d]);
  reference::forEach(both, {denseStrides(values.dims), denseStrides(dims)},
                     [&](const int64_t* at) { out.set(at[1], values.at(at[0])); });
  return out;
}

void Call::checkHalo(const View& view) {
  const std::optional<program::Halo>& halo = program_.buffers[view.buffer].halo;
  if (!halo || halo->lo.size() != view.dims.size() || halo->elem != view.elem) return;
  View around = view;
  for (size_t d = 0; d < view.dims.size(); ++d) {
    around.dims[d] += halo->lo[d] + halo->hi[d];
    around.offset -= halo->lo[d] * view.strides[d];
  }
  // Of a part of the content the rest stands around it.
  if (elemBytes(view.elem, static_cast<uint64_t>(around.count())) !=
      program_.buffers[view.buffer].bytes)
    return;
  std::set<int64_t> inside;
  forEach(view, [&](int64_t, int64_t element) { inside.insert(element); });
  forEach(around, [&](int64_t, int64_t element) {
    if (failed() || inside.count(element)) return;
    if (const uint64_t bits = load(view, element); bits != halo->fill)
      fail(badModel("element {} in the halo of '{}' is {:#x}, expected {:#x}", element,
                    program_.buffers[view.buffer].name, bits, halo->fill));
  });
}

Array Call::logicalInput(size_t i) {
  checkHalo(instr.inputs[i]);
  return unblocked(input(i), instr.inputs[i]);
}

Array Call::withoutZero(size_t i) {
  return i + 2 < instr.operandCount() ? reference::withoutZero(logicalInput(i), input(i + 2))
                                      : logicalInput(i);
}

Array Call::accumulator() {
  const View& y = instr.outputs[0];
  if (instr.inout) return unblocked(read(y), y);
  const Elem own = program::accumulatorElem(instr); // none: the epilogue never looks at it
  return Array(own == Elem::none ? instr.inputs[0].elem : own, logicalDims(y));
}

void Call::write(const Array& values, size_t output) {
  const View& y = instr.outputs[output];
  forEach(y, [&](int64_t i, int64_t element) {
    if (!failed()) fail(memory_.store(y.buffer, y.elem, element, encode(y.elem, values.at(i))));
  });
}

void Call::finish(const Array& values) {
  const Array physical = blocked(values, instr.outputs[0]);
  write(instr.expr.size() == instr.prologue ? physical : epilogue(physical));
}

Array Call::prologue() {
  const program::Expr steps = instr.prologueSteps();
  return each(steps, steps.back().elem, instr.inputs[0].dims, {});
}

Array Call::epilogue(const Array& values) {
  return each(instr.epilogueSteps(), instr.outputs[0].elem, instr.outputs[0].dims, values);
}

Array Call::each(const program::Expr& expr, Elem elem, const Shape& dims, const Array& values) {
  std::vector<Array> views(instr.inputs.size());
  for (const Step& step : expr)
    for (const Operand& operand : step.in)
      if (operand.source == Operand::Source::view && views[operand.index].elem == Elem::none)
        views[operand.index] = input(operand.index);
  Array result(elem, dims);
  for (int64_t i = 0; i < result.count() && !failed(); ++i) {
    const Scalar acc = values.count() ? rounded(values.elem, values.at(i)) : Scalar{};
    result.set(i, evaluate(expr, acc, [&](size_t v) { return views[v].at(i); }));
  }
  return result;
}

bool Call::sameElements(const View& a, const View& b) const {
  // Two buffers may lie at one place: that is what in-place sharing is.
  if (memory_.place(a.buffer, a.elem, 0) != memory_.place(b.buffer, b.elem, 0) ||
      elemBits(a.elem) != elemBits(b.elem) || a.offset != b.offset || a.dims != b.dims ||
      !std::equal(std::begin(a.ivStrides), std::end(a.ivStrides), b.ivStrides))
    return false;
  for (size_t d = 0; d < a.dims.size(); ++d)
    if (a.dims[d] > 1 && a.strides[d] != b.strides[d]) return false;
  return true;
}

void Call::checkOverlaps() {
  const cdl_kind_facts_t& facts = *cdl_kind_facts(instr.kind);
  const bool elementwise = isElementwise(instr.kind);
  // visit(element, where one of its bytes lies)
  const auto eachByte = [&](const View& view, auto visit) {
    forEach(view, [&](int64_t, int64_t element) {
      auto place = memory_.place(view.buffer, view.elem, element);
      for (int b = 0; b < (elemBits(view.elem) + 7) / 8 && !failed(); ++b, ++place.byte)
        visit(element, place);
    });
  };
  for (const View& y : instr.outputs) {
    std::set<Memory::Place> written;
    for (size_t i = 0; i < instr.inputs.size() && !failed(); ++i) {
      const View& x = instr.inputs[i];
      const bool alongside = (elementwise && !(instr.kind == CDL_KIND_TABLE && i == 1)) ||
                             (facts.epilogue && i >= instr.operandCount());
      if (x.layout.opaque || (alongside && sameElements(x, y))) continue;
      if (memory_.place(x.buffer, x.elem, 0).block != memory_.place(y.buffer, y.elem, 0).block)
        continue;
      if (written.empty())
        eachByte(y, [&](int64_t, const Memory::Place& place) { written.insert(place); });
      eachByte(x, [&](int64_t element, const Memory::Place& place) {
        if (written.count(place))
          fail(badModel("element {} of buffer '{}' is read and overwritten through buffer '{}'",
                        element, program_.buffers[x.buffer].name, program_.buffers[y.buffer].name));
      });
    }
  }
}

Scalar evaluate(const program::Expr& expr, const Scalar& acc,
                const std::function<Scalar(size_t view)>& view) {
  std::vector<Scalar> values;
  for (const Step& step : expr) {
    const auto in = [&](const Operand& operand) -> Scalar {
      switch (operand.source) {
      case Operand::Source::acc: return acc;
      case Operand::Source::view: return view(operand.index);
      case Operand::Source::constant: return decode(operand.elem, step.imm);
      default: return values[operand.index];
      }
    };
    Scalar operands[4];
    for (size_t i = 0; i < step.in.size(); ++i) operands[i] = in(step.in[i]);
    if (step.kind == CDL_KIND_RESCALE) {
      values.push_back(rescaleStep(operands, static_cast<int32_t>(step.imm),
                                   static_cast<int32_t>(step.imm >> 32)));
      continue;
    }
    const Scalar value =
        apply({step.kind, step.fn, step.in.back().elem, step.elem, step.saturate}, operands);
    values.push_back(rounded(step.elem, value));
  }
  return values.back();
}

} // namespace candela::reference::interpreter
