#pragma once

#include "core/compiler/import/import_context.h"

/// Nodes that wait for what only a run knows.
namespace candela::import {

/// Why a node waits, and for what.
struct Deferral {
  std::string why;
  std::set<size_t> frozen = {};     ///< inputs whose contents must be known
  NodeContext::Contents known = {}; ///< what NodeContext::contents() gives, call by call,
  Slot content = {};                ///< and a value whose integers it gives then; absent: none
};

/// Leaves a node to the run, which imports it again at each new set of what it waits for.
Status deferNode(const Place& place, const onnx_io::Node& node, const std::string& name,
                 Deferral deferral, const std::vector<Slot>& inputs, std::vector<Slot>& outputs);

/// Leaves to the run how long outputs are, as a count says that only it knows; all else is
/// imported. Slices whose ends are frozen are deferred: they alone wait for the count, with what
/// reads them, and not what made them.
Status deferTrims(const Place& place, const std::string& name, const NodeContext& context,
                  int stage, const std::string& why, std::vector<Slot>& outputs);

} // namespace candela::import
