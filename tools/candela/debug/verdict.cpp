// How far the result of an instruction may lie from the reference's, and how far it does.
#include "tools/candela/debug/verdict.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/compiler/driver/pipeline.h"
#include "core/reference/interpreter/interp.h"
#include "core/support/compare.h"
#include "tools/candela/support/console.h"

namespace candela::tool {
namespace {

using program::Instr;
using program::Program;
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
  if (view.layout.isRowMajor())
    return dim < view.dims.size() ? static_cast<double>(view.dims[dim]) : 1;
  double count = 1;
  for (size_t s = 0; s < view.layout.steps.size(); ++s)
    if (view.layout.steps[s].dim == dim) count *= static_cast<double>(view.dims[s]);
  return count;
}

/// How many terms one element of the result sums up.
double lengthOfSums(const Instr& instr) {
  const auto count = [](const View& view) {
    return std::max(1.0, static_cast<double>(view.count()));
  };
  switch (instr.kind) {
  case CDL_KIND_MATMUL: return extent(instr.inputs[0], 2);
  case CDL_KIND_CONV2D: return count(instr.inputs[1]) / std::max(1.0, extent(instr.inputs[1], 0));
  case CDL_KIND_REDUCE: return count(instr.inputs[0]) / count(instr.outputs[0]);
  case CDL_KIND_SOFTMAX:
  case CDL_KIND_NORM: return extent(instr.inputs[0], 1);
  case CDL_KIND_POOL2D: {
    double taps = 1;
    for (const int64_t size : instr.attr(CDL_ATTR_KERNEL)->values)
      taps *= static_cast<double>(size);
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
  // the sign
  for (size_t at = size - 1; at < out.size(); at += size) out.mutableData()[at] &= std::byte{0x7f};
  return out;
}

/// The largest that the instruction without its expression gives on magnitudes; without sums, the
/// largest that it reads. Of an instruction of other types than f32: 0.
double magnitudeOf(const Program& program, std::span<const Tensor> given) {
  Program p = program;
  Instr& instr = p.instrs[0];
  std::vector<Elem> elems(p.buffers.size(), Elem::none);
  for (const auto* views : {&instr.inputs, &instr.outputs})
    for (const View& view : *views) elems[view.buffer] = view.elem;
  std::vector<Tensor> inputs(given.begin(), given.end());
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
  instr.expr.resize(instr.prologue);
  const auto results = oracle(p, inputs, false);
  if (!results) return 0;
  size_t result = 0; // operands are INOUT too
  for (uint32_t b = 0; b < instr.outputs[0].buffer; ++b) result += p.buffers[b].role == Role::inout;
  return largestOf(instr.outputs[0], flat(results->at(result).bytes, instr.outputs[0].elem));
}

/// One element's difference and bound, kept when it is the worst so far.
void compare(Verdict& verdict, const Tensor& got, const Tensor& want, int64_t at, double bound,
             const View& view, const std::string& buffer, const Shape& index) {
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
  verdict.where = fmt::format("[{}] of %{} {}", fmt::join(index, ","), buffer,
                              typeText(elemName(view.elem), view.dims));
  verdict.expected = elementText(want, at);
  verdict.found = elementText(got, at);
  verdict.worst = index;
}

/// An element that is no result must be as it was.
void noteStray(Verdict& verdict, const Tensor& now, const Tensor& then, int64_t at,
               const std::string& buffer) {
  if (verdict.stray.empty() &&
      loadElement(now.elem, now.bytes.data(), at) != loadElement(now.elem, then.bytes.data(), at))
    verdict.stray = fmt::format("element {} of %{}: was {}, became {}", at, buffer,
                                elementText(then, at), elementText(now, at));
}

/// Buffers of a Program that is more than one instruction, as rows of elements.
void compareBuffers(Verdict& verdict, const Program& program, std::span<const Tensor> got,
                    std::span<const Tensor> want, bool exact) {
  bool hasFloats = false;
  for (const Instr& instr : program.instrs)
    for (const View& view : instr.inputs) hasFloats |= isFloat(view.elem);
  for (uint32_t b = 0, next = 0; b < program.buffers.size(); ++b) {
    if (program.buffers[b].role != Role::inout) continue;
    const Tensor &g = got[next], &w = want[next];
    ++next;
    const auto [elem, dims] = program.contentType(b);
    const View view = program::denseView(0, elem, {elementCount(dims).value_or(0)});
    if (std::memcmp(g.bytes.data(), w.bytes.data(), w.bytes.size()) == 0) {
      verdict.elements += static_cast<uint64_t>(view.count());
      continue;
    }
    const Tensor gotRow = flat(g.bytes, elem), wantRow = flat(w.bytes, elem);
    double bound = 0;
    if (!exact)
      bound =
          isFloat(elem) ? kWholeBound * largestOf(view, wantRow) : static_cast<double>(hasFloats);
    forEachElement(view, [&](const Shape& index, int64_t at) {
      compare(verdict, gotRow, wantRow, at, bound, view, program.buffers[b].name, index);
    });
  }
}

} // namespace

Result<std::vector<Tensor>> oracle(const Program& program, std::span<const Tensor> inputs,
                                   bool byReference) {
  if (!byReference) {
    auto session = driver::compileProgram(program, "oracle", nullptr);
    if (session)
      if (auto results = (*session)->run(inputs);
          results || results.status().code() != Code::unsupported)
        return results;
  }
  return reference::interpret(program, inputs);
}

Verdict describe(const Program& program, uint32_t index) {
  const Instr& instr = program.instrs[index];
  Verdict verdict;
  verdict.instr = index + 1;
  verdict.name = program.instrName(index);
  verdict.kind = program::kindName(instr.kind);
  if (!instr.provenance.empty()) {
    verdict.node = instr.provenance[0].node;
    verdict.op = instr.provenance[0].op;
  }
  for (const View& view : instr.inputs)
    verdict.types += fmt::format("{}{}", verdict.types.empty() ? "" : ", ", elemName(view.elem));
  verdict.types += " ->";
  for (const View& view : instr.outputs) verdict.types += fmt::format(" {}", elemName(view.elem));
  return verdict;
}

bool isWritten(const Program& program, uint32_t buffer) {
  return std::ranges::any_of(program.instrs, [&](const Instr& instr) {
    return std::ranges::any_of(instr.outputs,
                               [&](const View& view) { return view.buffer == buffer; });
  });
}

Verdict judge(const Program& program, std::span<const Tensor> inputs, std::span<const Tensor> got,
              std::span<const Tensor> want, bool exact) {
  Verdict verdict = describe(program, 0);
  if (program.instrs.size() != 1) {
    compareBuffers(verdict, program, got, want, exact);
    return verdict;
  }
  const Instr& instr = program.instrs[0];
  const bool readsFloats =
      std::ranges::any_of(instr.inputs, [](const View& view) { return isFloat(view.elem); });
  const double roundings =
      16 + 4 * std::sqrt(lengthOfSums(instr)) + 4 * static_cast<double>(instr.expr.size());
  std::vector<size_t> resultOf(program.buffers.size(), 0); // index into got and want
  for (size_t b = 0, next = 0; b < program.buffers.size(); ++b)
    if (program.buffers[b].role == Role::inout) resultOf[b] = next++;
  for (const View& view : instr.outputs) {
    const size_t result = resultOf[view.buffer];
    const Tensor gotRow = flat(got[result].bytes, view.elem),
                 wantRow = flat(want[result].bytes, view.elem);
    const std::string& buffer = program.buffers[view.buffer].name;
    const uint64_t before = verdict.outside;
    const auto compareAll = [&](double bound) {
      forEachElement(view, [&](const Shape& index, int64_t at) {
        compare(verdict, gotRow, wantRow, at, bound, view, buffer, index);
      });
    };
    if (std::memcmp(gotRow.bytes.data(), wantRow.bytes.data(), gotRow.bytes.size()) == 0) {
      verdict.elements += static_cast<uint64_t>(view.count());
      continue;
    }
    if (exact || !isFloat(view.elem)) {
      compareAll(!exact && readsFloats && !instr.expr.empty() ? 1 : 0);
    } else {
      const double one = roundings * roundingOf(view.elem);
      const Verdict start = verdict;
      compareAll(one * largestOf(view, wantRow));
      if (verdict.outside > before) { // sums may have cancelled
        const double magnitude = magnitudeOf(program, inputs);
        verdict = start;
        compareAll(one * std::max(magnitude, largestOf(view, wantRow)));
      }
    }
    std::vector<char> isResult(static_cast<size_t>(gotRow.count()), 0);
    for (const View& other : instr.outputs)
      if (other.buffer == view.buffer)
        forEachElement(other,
                       [&](const Shape&, int64_t at) { isResult[static_cast<size_t>(at)] = 1; });
    for (int64_t at = 0; at < gotRow.count(); ++at)
      if (!isResult[static_cast<size_t>(at)]) noteStray(verdict, gotRow, wantRow, at, buffer);
  }
  for (uint32_t b = 0; b < program.buffers.size(); ++b) { // what it only reads stays as it is
    if (program.buffers[b].role != Role::inout || isWritten(program, b)) continue;
    const Tensor now = flat(got[resultOf[b]].bytes, program.contentType(b).first);
    const Tensor then = flat(want[resultOf[b]].bytes, now.elem);
    if (std::memcmp(now.bytes.data(), then.bytes.data(), now.bytes.size()) != 0)
      for (int64_t at = 0; at < now.count(); ++at)
        noteStray(verdict, now, then, at, program.buffers[b].name);
  }
  return verdict;
}

} // namespace candela::tool
