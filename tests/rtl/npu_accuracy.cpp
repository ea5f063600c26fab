#include "tests/rtl/npu_accuracy.h"

#include <algorithm>
#include <map>

namespace candela::rtl {
namespace {
using namespace npu;

/// From the first begin to the last end.
struct Span {
  int64_t begin = INT64_MAX, end = INT64_MIN;
  void add(const InstructionTime& time) {
    begin = std::min(begin, time.start);
    end = std::max(end, time.done);
  }
  int64_t cycles() const { return end - begin; }
};
struct Layer {
  size_t instructions = 0;
  Span hardware, accurate;
};

/// The node of each instruction; empty: of none.
std::vector<std::string> nodesOf(const Binary& binary) {
  std::vector<std::string> nodes(binary.code.size());
  for (const Symbol& symbol : binary.symbols)
    std::fill_n(nodes.begin() + symbol.first, symbol.count, symbol.node);
  return nodes;
}

} // namespace

std::vector<AccuracyRow> accuracyOf(const Binary& binary, const ScheduledTimes& hardware,
                                    const ScheduledTimes& accurate) {
  const std::vector<std::string> nodes = nodesOf(binary);
  std::map<std::string, AccuracyRow> operations;
  std::map<std::string, Layer> layers;
  for (size_t engine = 1; engine < hardware.size(); ++engine)
    for (size_t i = 0; i < hardware[engine].size(); ++i) {
      const InstructionTime &real = hardware[engine][i], &model = accurate[engine][i];
      AccuracyRow& row = operations[std::string(opInfo(static_cast<uint64_t>(real.op))->name)];
      ++row.instructions;
      row.hardware += real.done - real.start;
      row.accurate += model.done - model.start;
      Layer& layer = layers[nodes[real.instruction]];
      ++layer.instructions;
      layer.hardware.add(real);
      layer.accurate.add(model);
    }
  std::vector<AccuracyRow> rows;
  for (auto& [name, row] : operations) {
    row.kind = "operation";
    row.name = name;
    rows.push_back(row);
  }
  for (const auto& [name, layer] : layers)
    if (!name.empty())
      rows.push_back(
          {"layer", name, layer.instructions, layer.hardware.cycles(), layer.accurate.cycles()});
  return rows;
}

} // namespace candela::rtl
