// How far the result of an instruction may lie from the reference's, and how far it does.
#include "tools/candela/verdict.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/reference/interp/interp.h"
#include "core/support/compare.h"

namespace candela::tool {
namespace {

using program::Instr;
using program::Role;
using program::View;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Half the distance of neighbours, relative to them.
double roundingOf(Elem elem) {
  switch (elem) {
  case Elem::f64_: return 0x1p-53;
  case Elem::f16_: return 0x1p-11;
  case Elem::bf16_: return 0x1p-8;
  default: return 0x1p-24;
  }
}

/// The extent of one logical dim.
double extent(const View& view, size_t dim) {
  if (view.layout.isRowMajor()) return dim < view.dims.size() ? static_cast<double>(view.dims[dim]) : 1;
  double count = 1;
  for (size_t s = 0; s < view.layout.steps.size(); ++s)
    if (view.layout.steps[s].dim == dim) count *= static_cast<double>(view.dims[s]);
  return count;
}

/// How many terms one element of the result sums up.
double lengthOfSums(const Instr& instr) {
  const auto count = [](const View& view) { return std::max(1.0, static_cast<double>(view.count())); };
  switch (instr.kind) {
  case CDL_KIND_MATMUL: return extent(instr.inputs[0], 2);
  case CDL_KIND_CONV2D: return count(instr.inputs[1]) / std::max(1.0, extent(instr.inputs[1], 0));
  case CDL_KIND_REDUCE: return count(instr.inputs[0]) / count(instr.outputs[0]);
  case CDL_KIND_SOFTMAX:
  case CDL_KIND_NORM: return extent(instr.inputs[0], 1);
  case CDL_KIND_POOL2D: {
    double taps = 1;
    for (const int64_t size : instr.attr(CDL_ATTR_KERNEL)->values) taps *= static_cast<double>(size);
    return taps;
  }
  default: return 1;
  }
}

/// The buffer as a row of elements of the view's type.
Tensor flat(const Bytes& bytes, Elem elem) {
  return {elem, {static_cast<int64_t>(bytes.size() * 8 / elemBits(elem))}, bytes};
}

/// Calls visit(index, element of the buffer) for every element of a view.
template <typename F> void forEachElement(const View& view, F&& visit) {
  const int64_t count = view.count();
  Shape index(view.dims.size(), 0);
  int64_t at = view.offset;
  for (int64_t i = 0; i < count; ++i) {
    visit(index, at);
    for (size_t d = index.size(); d-- > 0;) {
      at += view.strides[d];
      if (++index[d] < view.dims[d]) break;
      at -= view.strides[d] * view.dims[d];
      index[d] = 0;
    }
  }
}

double largestOf(const View& view, const Tensor& elements) {
  double largest = 0;
  forEachElement(view, [&](const Shape&, int64_t at) {
    const double value = std::abs(elementAsReal(elements, at));
    if (std::isfinite(value)) largest = std::max(largest, value);
  });
  return largest;
}

Bytes magnitudes(const Bytes& bytes, Elem elem) {
  Bytes out = Bytes::copyOf(bytes.data(), bytes.size());
  const size_t size = static_cast<size_t>(elemBits(elem)) / 8;
  for (size_t at = size - 1; at < out.size(); at += size) out.mutableData()[at] &= std::byte{0x7f}; // the sign
  return out;
}

/// The largest that the instruction without its expression gives on magnitudes; without sums, the largest that it
/// reads. Of an instruction of other types than f32: 0.
double magnitudeOf(const LoneInstr& lone) {
  program::Program p = lone.program;
  Instr& instr = p.instrs[0];
  std::vector<Elem> elems(p.buffers.size(), Elem::none);
  for (const auto* views : {&instr.inputs, &instr.outputs})
    for (const View& view : *views) elems[view.buffer] = view.elem;
  std::vector<Tensor> inputs = lone.inputs;
  double largest = 0;
  for (size_t b = 0, next = 0; b < p.buffers.size(); ++b) {
    if (p.buffers[b].role == Role::constant) {
      Payload& payload = p.constants[p.buffers[b].constant].payload;
      auto tensor = payload.materialize({payload.count()});
      if (!tensor) return 0;
      if (isFloat(elems[b])) tensor->bytes = magnitudes(tensor->bytes, elems[b]);
      payload = Payload::data(*tensor);
    } else {
      if (isFloat(elems[b])) inputs[next].bytes = magnitudes(inputs[next].bytes, elems[b]);
      ++next;
    }
  }
  if (lengthOfSums(instr) == 1 || instr.kind == CDL_KIND_SOFTMAX || instr.kind == CDL_KIND_NORM) {
    for (size_t b = 0, next = 0; b < p.buffers.size(); ++b) {
      if (p.buffers[b].role == Role::constant) continue;
      const Tensor& tensor = inputs[next++];
      for (const View& view : instr.inputs)
        if (view.buffer == b && isFloat(view.elem))
          largest = std::max(largest, largestOf(view, flat(tensor.bytes, view.elem)));
    }
    return largest;
  }
  if (!instr.expr.empty() && program::accumulatorElem(instr) != instr.outputs[0].elem) return 0;
  instr.inputs.resize(instr.operandCount());
  instr.expr.clear();
  const auto results = reference::interpret(p, inputs);
  if (!results) return 0;
  return largestOf(instr.outputs[0], flat(results->at(0).bytes, instr.outputs[0].elem));
}

/// One element's difference and bound, kept when it is the worst so far.
void compare(Verdict& verdict, const Tensor& got, const Tensor& want, int64_t at, double bound, const View& view,
             const std::string& buffer, const Shape& index) {
  const double g = elementAsReal(got, at), w = elementAsReal(want, at);
  ++verdict.elements;
  if (g == w || (std::isnan(g) && std::isnan(w))) return;
  ++verdict.different;
  double difference = std::abs(g - w);
  if (!std::isfinite(difference)) difference = kInfinity;
  const double part = bound > 0 ? difference / bound : kInfinity;
  verdict.outside += !(difference <= bound);
  if (!verdict.where.empty() && !(part > verdict.largest) &&
      !(part == verdict.largest && difference > verdict.difference))
    return;
  verdict.largest = part;
  verdict.difference = difference;
  verdict.bound = bound;
  verdict.where =
      fmt::format("[{}] of %{} {}", fmt::join(index, ","), buffer, typeText(elemName(view.elem), view.dims));
  verdict.expected = elementText(want, at);
  verdict.found = elementText(got, at);
}

} // namespace

Verdict judge(const LoneInstr& lone) {
  const Instr& instr = lone.program.instrs[0];
  Verdict verdict;
  verdict.kind = program::kindName(instr.kind);
  if (!instr.provenance.empty()) {
    verdict.node = instr.provenance[0].node;
    verdict.op = instr.provenance[0].op;
  }
  bool readsFloats = false;
  for (const View& view : instr.inputs) {
    verdict.types += fmt::format("{}{}", verdict.types.empty() ? "" : ", ", elemName(view.elem));
    readsFloats |= isFloat(view.elem);
  }
  verdict.types += " ->";
  for (const View& view : instr.outputs) verdict.types += fmt::format(" {}", elemName(view.elem));

  const double roundings = 16 + 4 * std::sqrt(lengthOfSums(instr)) + 4 * static_cast<double>(instr.expr.size());
  std::vector<size_t> resultOf(lone.program.buffers.size(), 0); // index into got and want
  for (size_t b = 0, next = 0; b < lone.program.buffers.size(); ++b)
    if (lone.program.buffers[b].role == Role::inout) resultOf[b] = next++;
  for (const View& view : instr.outputs) {
    const size_t result = resultOf[view.buffer];
    const Tensor got = flat(lone.got[result].bytes, view.elem), want = flat(lone.want[result].bytes, view.elem);
    const std::string& buffer = lone.program.buffers[view.buffer].name;
    const uint64_t before = verdict.outside;
    const auto compareAll = [&](double bound) {
      forEachElement(
          view, [&](const Shape& index, int64_t at) { compare(verdict, got, want, at, bound, view, buffer, index); });
    };
    if (std::memcmp(got.bytes.data(), want.bytes.data(), got.bytes.size()) == 0) {
      verdict.elements += static_cast<uint64_t>(view.count());
      continue;
    }
    if (!isFloat(view.elem)) {
      compareAll(readsFloats && !instr.expr.empty() ? 1 : 0);
    } else {
      const double one = roundings * roundingOf(view.elem);
      const Verdict start = verdict;
      compareAll(one * largestOf(view, want));
      if (verdict.outside > before) { // sums may have cancelled
        const double magnitude = magnitudeOf(lone);
        verdict = start;
        compareAll(one * std::max(magnitude, largestOf(view, want)));
      }
    }
    std::vector<char> isResult(static_cast<size_t>(got.count()), 0);
    for (const View& other : instr.outputs)
      if (other.buffer == view.buffer)
        forEachElement(other, [&](const Shape&, int64_t at) { isResult[static_cast<size_t>(at)] = 1; });
    for (int64_t at = 0; at < got.count() && verdict.stray.empty(); ++at)
      if (!isResult[static_cast<size_t>(at)] &&
          loadElement(view.elem, got.bytes.data(), at) != loadElement(view.elem, want.bytes.data(), at))
        verdict.stray = fmt::format("element {} of %{}: was {}, became {}", at, buffer, elementText(want, at),
                                    elementText(got, at));
  }
  return verdict;
}

} // namespace candela::tool
