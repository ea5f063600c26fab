#include "core/compiler/import/bind_dims.h"

#include <algorithm>
#include <set>

namespace candela::import {
namespace {

using onnx_io::Dim, onnx_io::ValueInfo;

/// The shape as the user would type it, with a hole for what is open: "<d0>x3x224".
std::string shapeHint(const std::vector<Dim>& dims) {
  std::vector<std::string> parts;
  for (size_t i = 0; i < dims.size(); ++i)
    parts.push_back(dims[i].value >= 0 ? std::to_string(dims[i].value) : fmt::format("<d{}>", i));
  return fmt::format("{}", fmt::join(parts, "x"));
}

/// A value for a named dim and who gave it.
struct Binding {
  int64_t value;
  std::string source;
};

class Binder {
public:
  Binder(const onnx_io::Graph& graph, const ImportOptions& options, ImportDiagnostics& diagnostics)
      : graph_(graph), options_(options), diagnostics_(diagnostics) {}

  std::map<std::string, Shape> run() {
    for (const onnx_io::Initializer& initializer : graph_.initializers)
      initializers_.insert(initializer.name);
    for (const auto& [name, value] : options_.dims) {
      if (value < 0) diagnostics_.add(badArgument("--dim {}={} is negative", name, value));
      bound_[name] = {value, fmt::format("--dim {}={}", name, value)};
    }
    std::vector<const ValueInfo*> inputs;
    for (const ValueInfo& input : graph_.inputs)
      if ((!initializers_.count(input.name) || options_.shapes.count(input.name)) &&
          !options_.frozen.count(input.name))
        inputs.push_back(&input);
    for (const ValueInfo* input : inputs) applyShape(*input);
    for (const ValueInfo* input : inputs) bind(*input);
    for (const auto& [name, who] : unbound_)
      diagnostics_.add(badArgument("dim '{}' of input {} is not bound: --dim {}=<value>", name,
                                   fmt::format("'{}'", fmt::join(who, "', '")), name));
    checkUnused(inputs);
    return shapes_;
  }

private:
  void bindName(const std::string& name, int64_t value, const std::string& source) {
    const auto [known, added] = bound_.emplace(name, Binding{value, source});
    if (!added && known->second.value != value)
      diagnostics_.add(badArgument("dim '{}' is {} by {} but {} by {}", name, known->second.value,
                                   known->second.source, value, source));
  }

  /// --shape binds the names that it covers, so that other inputs with them need nothing.
  void applyShape(const ValueInfo& input) {
    const auto given = options_.shapes.find(input.name);
    if (given == options_.shapes.end()) return;
    const Shape& shape = given->second;
    const std::string source = fmt::format("--shape {}={}", input.name, shapeText(shape));
    if (!elementCount(shape)) diagnostics_.add(badArgument("{} is no shape", source));
    if (!input.hasShape) return;
    if (shape.size() != input.dims.size()) {
      diagnostics_.add(badArgument("{} has {} dims but the model declares {}", source, shape.size(),
                                   input.dims.size()));
      return;
    }
    for (size_t i = 0; i < shape.size(); ++i) {
      // 0: writers who do not know either
      if (input.dims[i].value > 0 && input.dims[i].value != shape[i])
        diagnostics_.add(badArgument("{} has {} in dim {} but the model declares {}", source,
                                     shape[i], i, input.dims[i].value));
      if (input.dims[i].value < 0 && !input.dims[i].name.empty())
        bindName(input.dims[i].name, shape[i], source);
    }
  }

  /// Whether only a run says what the input is.
  bool waits(const ValueInfo& input) const {
    return input.elem == Elem::none
               ? input.what == "a sequence" || input.what == "an optional"
               : !input.hasShape || std::ranges::any_of(input.dims, [&](const Dim& dim) {
                   return dim.value < 0 && !bound_.count(dim.name);
                 });
  }

  void bind(const ValueInfo& input) {
    const auto given = options_.shapes.find(input.name);
    if (options_.bindAtRun && given == options_.shapes.end() && waits(input)) return;
    if (input.elem == Elem::none) {
      diagnostics_.add(input.what.empty() ? badModel("input '{}' declares no type", input.name)
                                          : failure(Code::unsupported, "input '{}' is {}",
                                                    input.name, input.what));
      return;
    }
    if (given != options_.shapes.end()) {
      if (elementCount(given->second)) shapes_[input.name] = given->second;
      return;
    }
    if (!input.hasShape) {
      diagnostics_.add(
          badArgument("input '{0}' declares no shape: --shape {0}=<dims>", input.name));
      return;
    }
    Shape shape;
    bool complete = true, nameless = false;
    for (const Dim& dim : input.dims) {
      const auto binding = dim.value < 0 ? bound_.find(dim.name) : bound_.end();
      if (dim.value >= 0) {
        shape.push_back(dim.value);
      } else if (dim.name.empty()) {
        nameless = true;
      } else if (binding != bound_.end()) {
        shape.push_back(binding->second.value);
      } else {
        complete = false;
        auto& who = unbound_[dim.name];
        if (std::find(who.begin(), who.end(), input.name) == who.end()) who.push_back(input.name);
      }
    }
    if (nameless)
      diagnostics_.add(badArgument("input '{0}' has dims without a name or value: --shape {0}={1}",
                                   input.name, shapeHint(input.dims)));
    if (!complete || nameless) return;
    if (elementCount(shape))
      shapes_[input.name] = shape;
    else
      diagnostics_.add(
          badModel("input '{}' has the impossible shape {}", input.name, shapeText(shape)));
  }

  void checkUnused(const std::vector<const ValueInfo*>& inputs) {
    std::set<std::string> dims, names;
    for (const auto* list : {&graph_.inputs, &graph_.outputs, &graph_.values})
      for (const ValueInfo& info : *list)
        for (const Dim& dim : info.dims)
          if (!dim.name.empty()) dims.insert(dim.name);
    for (const ValueInfo* input : inputs) names.insert(input->name);
    const auto list = [](const std::set<std::string>& set) {
      return set.empty() ? std::string("none") : fmt::format("'{}'", fmt::join(set, "', '"));
    };
    for (const auto& [name, value] : options_.dims)
      if (!dims.count(name))
        diagnostics_.add(badArgument("--dim {}={}: no such dim in the model, which has {}", name,
                                     value, list(dims)));
    for (const auto& [name, shape] : options_.shapes)
      if (!names.count(name))
        diagnostics_.add(badArgument("--shape {}={}: no such input in the model, which has {}",
                                     name, shapeText(shape), list(names)));
  }

  const onnx_io::Graph& graph_;
  const ImportOptions& options_;
  ImportDiagnostics& diagnostics_;
  std::set<std::string> initializers_;
  std::map<std::string, Binding> bound_;
  std::map<std::string, std::vector<std::string>> unbound_;
  std::map<std::string, Shape> shapes_;
};

} // namespace

std::map<std::string, Shape> bindInputs(const onnx_io::Graph& graph, const ImportOptions& options,
                                        ImportDiagnostics& diagnostics) {
  return Binder(graph, options, diagnostics).run();
}

bool isDeclared(const ValueInfo& declared, const graph::TensorType& type) {
  if (declared.elem != type.elem) return false;
  if (!declared.hasShape) return true;
  bool agrees = declared.dims.size() == type.dims.size();
  for (size_t i = 0; agrees && i < type.dims.size(); ++i) {
    const Dim& dim = declared.dims[i];
    agrees = dim.value <= 0 || dim.value == type.dims[i];
  }
  return agrees;
}

bool isDeclaredRank(const ValueInfo& declared, const graph::TensorType& type) {
  return declared.elem == type.elem &&
         (!declared.hasShape || declared.dims.size() == type.dims.size());
}

std::string declaredText(const ValueInfo& declared) {
  std::vector<std::string> dims;
  for (const Dim& dim : declared.dims) {
    const std::string symbol = dim.name.empty() ? "?" : dim.name;
    dims.push_back(dim.value >= 0 ? std::to_string(dim.value) : symbol);
  }
  return fmt::format("{}{}", elemName(declared.elem),
                     declared.hasShape ? fmt::format("[{}]", fmt::join(dims, ",")) : "");
}

Status checkDeclared(const ValueInfo& declared, const graph::TensorType& inferred,
                     const std::map<std::string, int64_t>& named) {
  if (declared.elem == Elem::none && !declared.what.empty())
    return failure(Code::unsupported, "output '{}' is {}", declared.name, declared.what);
  if (declared.elem == Elem::none) return Status::ok();
  if (!isDeclared(declared, inferred))
    return badModel("output '{}' is declared {} but inference gives {}", declared.name,
                    declaredText(declared), inferred.text());
  for (size_t i = 0; i < declared.dims.size(); ++i)
    if (const auto given = named.find(declared.dims[i].name);
        declared.dims[i].value < 0 && given != named.end() && given->second != inferred.dims[i])
      return badArgument("--dim {}={} but dim {} of output '{}' is {}", given->first, given->second,
                         i, declared.name, inferred.dims[i]);
  return Status::ok();
}

} // namespace candela::import
