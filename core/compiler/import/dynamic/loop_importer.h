#pragma once

#include "core/compiler/import/import_context.h"

namespace candela::import {

class GraphImporter;

/// Imports Loop: unrolled, as the op `loop`, or as a step of the flow.
class LoopImporter {
public:
  LoopImporter(ImportContext& context, GraphImporter& graphs)
      : context_(context), graphs_(graphs) {}

  /// What one loop is: a body as Loop defines it, and what it begins with.
  struct Loop {
    const onnx_io::Graph& body;
    const std::string& name;
    const Slot& trips;     ///< absent: without end
    const Slot& condition; ///< absent: true
    const std::vector<Slot>& carried;
  };

  Status add(const Place& place, const onnx_io::Node& node, const std::string& name,
             const std::vector<Slot>& inputs, std::vector<Slot>& outputs);
  /// Adds the iterations of a body. The outputs are the final carried values, then stacks.
  Status addIterations(const Place& place, const Loop& loop, std::vector<Slot>& outputs);

private:
  /// A body in a block of its own.
  struct Body {
    Frame& frame;
    std::vector<Slot> params, results;
    std::optional<int64_t> trips; ///< known number of iterations, unless the body ends them
    bool isEndless;               ///< whether the body never ends the iterations
  };

  /// Adds the iterations one after the other. False: that cannot be, as a condition is known at run
  /// only.
  Result<bool> unroll(const Place& place, const Loop& loop, int64_t trips,
                      std::vector<Slot>& outputs);
  /// Unrolls short loops. False: it is none, or cannot be.
  Result<bool> tryUnroll(const Place& place, const Loop& loop, std::vector<Slot>& outputs);
  Status addLoop(const Place& place, const Loop& loop, std::vector<Slot>& outputs);
  /// Imports the body for carried values of these kinds. Nullopt: something is wrong with it.
  std::optional<Body> importBody(const Place& place, const Loop& loop,
                                 const std::vector<runtime::control_flow::Slot>& kinds);
  /// Adds the loop as a step of the flow.
  void addStep(const Place& place, const Loop& loop, const Body& body,
               const std::vector<runtime::control_flow::Slot>& kinds, std::vector<Slot>& outputs);
  /// Adds a loop of known trips whose body is one Graph as the op `loop`. False: it is not.
  bool addNode(const Place& place, const Loop& loop, const Body& body, std::vector<Slot>& outputs);

  ImportContext& context_;
  GraphImporter& graphs_;
  std::set<const onnx_io::Graph*> rolled_; ///< bodies that could not be unrolled
  int64_t unrolled_ = 1;                   ///< how often what is imported now is written out
};

} // namespace candela::import
