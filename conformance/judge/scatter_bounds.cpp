#include "conformance/judge/scatter_bounds.h"

#include "conformance/judge/elements.h"
#include "conformance/judge/sum_bounds.h"

namespace candela::conformance::judge {

using program::Instr, program::Program, program::View;

Result<Expectation> scatterBounds(const Program& program, std::span<const Tensor> inputs) {
  CDL_ASSIGN(Expectation expected, exactBounds(program, inputs));
  const Instr& instr = program.instrs[0];
  const View &index = instr.inputs[0], &updates = instr.inputs[1], &y = instr.outputs[0];
  CDL_ASSIGN(const Bytes places, contentOf(program, index.buffer, inputs));
  CDL_ASSIGN(const Bytes given, contentOf(program, updates.buffer, inputs));
  CDL_ASSIGN(const Bytes before, contentOf(program, y.buffer, inputs));
  const std::vector<int64_t> from = elementsOf(updates), to = elementsOf(y),
                             which = elementsOf(index);
  std::map<int64_t, std::vector<uint64_t>> allowed;
  for (size_t u = 0; u < from.size(); ++u) {
    const auto inner = static_cast<size_t>(y.dims[2]), k = u / inner % which.size(),
               o = u / inner / which.size();
    const __int128 place = integerOf(index.elem, loadElement(index.elem, places.data(), which[k]));
    if (place < 0 || place >= y.dims[1]) continue;
    const size_t at =
        (o * static_cast<size_t>(y.dims[1]) + static_cast<size_t>(place)) * inner + u % inner;
    allowed[to[at]].push_back(loadElement(updates.elem, given.data(), from[u]));
  }
  std::map<int64_t, std::vector<uint64_t>> anyOf;
  for (int64_t i = 0; i < expected.outputs[0].count(); ++i) {
    const auto named = allowed.find(i);
    if (named == allowed.end())
      anyOf[i] = {loadElement(y.elem, before.data(), i)};
    else if (instr.fn == CDL_SCATTER_SET)
      anyOf[i] = named->second;
  }
  expected.anyOf.push_back(std::move(anyOf));
  return expected;
}

} // namespace candela::conformance::judge
