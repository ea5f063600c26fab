#include "core/compiler/graph/loop.h"

#include <cstring>

#include "core/reference/reference.h"

namespace candela::reference {

Result<std::vector<Tensor>> evaluateLoop(const graph::Node& node,
                                         std::span<const Tensor> operands) {
  const graph::LoopForm form = graph::loopForm(node);
  if (operands.size() != node.operands().size())
    return badArgument("loop '{}' has {} operands, given {}", node.userName(),
                       node.operands().size(), operands.size());
  std::vector<Tensor> inputs(operands.begin(), operands.end()), results;
  for (size_t i = form.carried; i < form.carried + form.scanned; ++i) {
    if (operands[i].dims != node.operand(i)->type.shape())
      return badArgument("loop '{}': operand {} is {}, expected {}", node.userName(), i,
                         operands[i].typeText(), node.operand(i)->type.text());
    inputs[i].dims.erase(inputs[i].dims.begin());
  }
  for (size_t i = form.carried; i < node.results().size(); ++i) {
    CDL_TRY(checkSize(node.result(i)->type.shape()));
    CDL_ASSIGN(Tensor result,
               Tensor::zeros(node.result(i)->type.elem, node.result(i)->type.shape()));
    results.push_back(std::move(result));
  }
  for (int64_t trip = 0; trip < form.trips; ++trip) {
    const auto sliceOf = [&](size_t i) {
      return form.runsBackward(i) ? form.trips - 1 - trip : trip;
    };
    for (size_t i = 0; i < form.scanned; ++i) {
      Tensor& slice = inputs[form.carried + i];
      const uint64_t bytes = slice.sizeBytes();
      slice.bytes = operands[form.carried + i].bytes.slice(sliceOf(i) * bytes, bytes);
    }
    CDL_ASSIGN(const std::vector<Tensor> outputs, run(*node.body, inputs));
    for (size_t i = 0; i < form.carried; ++i) inputs[i] = outputs[i];
    for (size_t i = 0; i < results.size(); ++i) {
      const Bytes& slice = outputs[form.carried + i].bytes;
      if (slice.size() == 0) continue;
      std::memcpy(results[i].bytes.mutableData() + sliceOf(form.scanned + i) * slice.size(),
                  slice.data(), slice.size());
    }
  }
  results.insert(results.begin(), inputs.begin(),
                 inputs.begin() + static_cast<std::ptrdiff_t>(form.carried));
  return results;
}

} // namespace candela::reference
