#pragma once

#include "core/compiler/import/bind_dims.h"
#include "core/compiler/import/dynamic/frame.h"
#include "core/compiler/import/functions.h"

namespace candela::import {

/// The opset of nodes that import writes itself.
inline constexpr int64_t kOpsetOfOwn = 21;

/// The names of a block and of those around it.
class Scope {
public:
  explicit Scope(const Scope* parent = nullptr) : parent_(parent) {}
  /// Null when no block defines it.
  const Slot* find(const std::string& name) const {
    const auto found = slots_.find(name);
    if (found != slots_.end()) return &found->second;
    return parent_ ? parent_->find(name) : nullptr;
  }
  bool define(const std::string& name, Slot slot) {
    return slots_.emplace(name, std::move(slot)).second;
  }

private:
  const Scope* parent_;
  std::unordered_map<std::string, Slot> slots_;
};

/// Where nodes stand: whose names and versions they mean, and whose Graphs they go to.
struct Place {
  Frame& frame;
  Scope& scope;
  const Opsets& opsets;
  std::string prefix;                          ///< of the names of nodes
  const onnx_io::Function* function = nullptr; ///< within the body of a function,
  const onnx_io::Node* call = nullptr;         ///< as this node calls it

  Place within(Frame& inner, Scope& names, const std::string& node) const {
    return {inner, names, opsets, node + "/", function, call};
  }
};

/// What the importers of one model share: the model, what is made of it, and what is wrong with it.
struct ImportContext {
  ImportContext(std::shared_ptr<const onnx_io::Model> source, const ImportOptions& importOptions)
      : model(std::move(source)), options(importOptions), functions(*model, diagnostics) {
    addFrame(nullptr);
  }

  /// A block of the flow within `parent`.
  Frame& addFrame(Frame* parent) {
    Frame& frame = frames.emplace_back(script.flow, parent,
                                       BuilderOptions{options.foldLimitBytes, model->integerRows});
    frame.stage(0);
    return frame;
  }

  std::shared_ptr<const onnx_io::Model> model;
  const ImportOptions& options;
  ImportDiagnostics diagnostics;
  Script script;
  Functions functions;
  std::deque<Frame> frames;                         ///< the first one is the model
  std::deque<std::vector<onnx_io::Node>> rewritten; ///< nodes that stand for those of the model
  Scope scope;                                      ///< the model's names
  int64_t nodes = 0; ///< imported so far, iterations and calls counted
  int depth = 0;     ///< of graphs in graphs
};

} // namespace candela::import
