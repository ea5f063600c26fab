// The model and the inputs of `candela run`.
#include <algorithm>

#include "core/compiler/import/formats.h"
#include "core/support/file.h"
#include "core/support/text/lexer.h"
#include "tools/candela/run/run.h"

namespace candela::tool {
namespace {

using Given = std::map<std::string, Tensor>;

sdk::Model loadBundle(const RunOptions& options) {
  if (!options.keepsCompiled || !options.dumpFolder.empty())
    fail(kBadInput,
         "{}: a bundle is compiled already: --backend, --shape, --dim, --option, --require-native, "
         "--to-primitives, --threads, --seed and --dump need the model itself",
         options.model.path);
  try {
    return sdk::Model::load(options.model.path);
  } catch (const sdk::Error& error) {
    failWith(error, options.model.path);
  }
}

/// What a model file says; of another kind of file nothing, and of one that cannot be read:
/// compiling will tell.
std::set<std::string> inputNames(const std::string& path) {
  std::set<std::string> names;
  if (!import::isModelFile(path)) return names;
  if (const auto model = import::readModel(path))
    for (const import::onnx_io::ValueInfo& input : model->graph.inputs) names.insert(input.name);
  return names;
}

std::string shapeOption(const std::string& input, const Tensor& tensor) {
  return fmt::format("{}={}", input, shapeText(tensor.dims));
}

/// A failure about `shapes`, of a user who gave files, not --shape: speaks of them.
Failure aboutFiles(const Failure& failure, const std::vector<std::string>& shapes) {
  std::string message = failure.what();
  for (const std::string& shape : shapes) {
    const std::string said = "--shape " + shape;
    const size_t at = message.find(said);
    if (at != std::string::npos)
      message.replace(at, said.size(),
                      fmt::format("--input {}: a tensor of shape {}",
                                  shape.substr(0, shape.rfind('=')),
                                  shape.substr(shape.rfind('=') + 1)));
  }
  return Failure(failure.exitCode(), message);
}

sdk::Model compileForShapes(ModelOptions bound, const Given& given) {
  if (!bound.shapes.empty() || !bound.dims.empty()) return compileModel(bound);
  for (const auto& [name, tensor] : given)
    if (!tensor.dims.empty()) bound.shapes.push_back(shapeOption(name, tensor));
  try {
    return compileModel(bound);
  } catch (const Failure& first) {
    if (bound.shapes.empty()) throw;
    const std::vector<std::string> shapes = bound.shapes;
    // The given shapes may be what is wrong: against the model's own ones that is said input by
    // input.
    bound.shapes.clear();
    try {
      return compileModel(bound);
    } catch (const Failure&) {}
    throw aboutFiles(first, shapes);
  }
}

sdk::Model openModel(const RunOptions& options, const Given& given) {
  if (endsWith(options.model.path, ".cdb")) return loadBundle(options);
  ModelOptions bound = options.model;
  bound.keepValues = !options.dumpFolder.empty();
  if (!import::isModelFile(bound.path)) return compileModel(bound);
  sdk::Model model = compileForShapes(bound, given);
  // What is given and no input may be one with a default: a shape makes it an input.
  const std::vector<sdk::Port> ports = model.inputs();
  const auto isInput = [&](const std::string& name) {
    return std::ranges::find(ports, name, &sdk::Port::name) != ports.end();
  };
  if (std::ranges::all_of(given, isInput, &Given::value_type::first)) return model;
  const std::set<std::string> declared = inputNames(bound.path);
  const bool bindsShapes = bound.shapes.empty() && bound.dims.empty();
  std::vector<std::string> overriding;
  for (const auto& [name, tensor] : given) {
    if (!isInput(name) && declared.count(name)) overriding.push_back(shapeOption(name, tensor));
    if (isInput(name) && bindsShapes && !tensor.dims.empty())
      bound.shapes.push_back(shapeOption(name, tensor));
  }
  if (overriding.empty()) return model;
  bound.shapes.insert(bound.shapes.end(), overriding.begin(), overriding.end());
  try {
    return compileModel(bound);
  } catch (const Failure& failure) {
    throw aboutFiles(failure, overriding);
  }
}

std::string inputList(const std::vector<sdk::Port>& ports) {
  std::string list;
  for (const sdk::Port& port : ports)
    list += fmt::format("{}{} {}", list.empty() ? "" : ", ", port.name, portType(port));
  return list.empty() ? "none" : list;
}

/// A file's tensor as the port has it.
Tensor asInput(const Session& session, const sdk::Port& port, const Tensor& given,
               const std::string& file, const std::string& path) {
  Tensor tensor = session.shaped(asStored(given, elemOf(port)), port.dims);
  if (tensor.elem != elemOf(port) || tensor.dims != port.dims)
    fail(kBadInput, "{}: input '{}' is {} but {} holds {}", path, port.name, portType(port), file,
         tensor.typeText());
  return tensor;
}

/// As many of each: one for each run behind the first.
void readLaterInputs(const RunOptions& options, Session& session) {
  for (const auto& [name, files] : options.laterFiles) {
    const auto& [first, most] = *options.laterFiles.begin();
    if (files.size() != most.size())
      fail(kBadInput, "--input {}: {} files, but {} has {}", name, files.size() + 1, first,
           most.size() + 1);
    for (size_t i = 0; i < session.inputPorts.size(); ++i)
      for (const std::string& file : files)
        if (const sdk::Port& port = session.inputPorts[i]; port.name == name)
          session.laterInputs[i].push_back(
              asInput(session, port, readTensorFile(file), file, options.model.path));
  }
}

std::vector<std::string> namesOf(const std::vector<sdk::Port>& ports) {
  std::vector<std::string> names;
  for (const sdk::Port& port : ports) names.push_back(port.name);
  return names;
}

std::vector<Tensor> makeInputs(const RunOptions& options, const Session& session,
                               const Given& given) {
  const std::string& path = options.model.path;
  const std::vector<sdk::Port>& ports = session.inputPorts;
  for (const auto& [name, tensor] : given)
    if (std::none_of(ports.begin(), ports.end(),
                     [&](const sdk::Port& port) { return port.name == name; }))
      fail(kBadInput, "{}: no input is named '{}'; inputs are {}", path, name, inputList(ports));
  std::vector<Tensor> inputs;
  std::string missing;
  std::set<std::string> zeroed;
  for (const auto& [input, output] : statesOf(options.zeroed, session)) zeroed.insert(input);
  uint64_t elementsBefore = 0;
  for (const sdk::Port& port : ports) {
    const auto at = given.find(port.name);
    if (at != given.end()) {
      inputs.push_back(asInput(session, port, at->second, options.inputFiles.at(port.name), path));
    } else if (session.states.count(port.name)) {
      inputs.emplace_back(); // zero at first
    } else if (zeroed.count(port.name)) {
      inputs.push_back(check(Tensor::zeros(elemOf(port), port.dims)));
    } else if (options.seed) {
      Result<Tensor> tensor = randomTensor(elemOf(port), port.dims, *options.seed + elementsBefore);
      check(tensor.status().context(fmt::format("input '{}'", port.name)));
      inputs.push_back(*std::move(tensor));
    } else {
      missing += (missing.empty() ? "'" : ", '") + port.name + "'";
    }
    elementsBefore += static_cast<uint64_t>(elementCount(port.dims).value_or(0));
  }
  if (!missing.empty())
    fail(kBadInput,
         "{}: no data for input {}: give --input NAME=FILE or --random SEED; inputs are {}", path,
         missing, inputList(ports));
  return inputs;
}

/// Only of a file that could be compiled.
bool isProgramText(const std::string& path) {
  if (!endsWith(path, ".cdl")) return false;
  const Bytes file = check(mapFile(path));
  Diagnostics diagnostics;
  return text::TokenStream({reinterpret_cast<const char*>(file.data()), file.size()}, path,
                           diagnostics)
      .at("program");
}

} // namespace

void RunOptions::addInputs(const std::vector<std::string>& texts, bool several) {
  std::set<std::string> names;
  if (std::ranges::any_of(texts, hasSeveralCuts)) names = inputNames(model.path);
  for (const std::string& text : texts) {
    const Binding input = parseFileBinding("--input", text, names);
    if (inputFiles.emplace(input.name, input.value).second) continue;
    if (!several) fail(kBadInput, "--input {}: given twice", input.name);
    laterFiles[input.name].push_back(input.value);
  }
}

Tensor asStored(Tensor tensor, Elem wanted) {
  if (isUnsigned(tensor.elem) && (wanted == Elem::bf16_ || isStorageOnly(wanted)) &&
      elemBits(tensor.elem) == elemBits(wanted))
    tensor.elem = wanted;
  return tensor;
}

Session openSession(const RunOptions& options) {
  Given given;
  for (const auto& [name, file] : options.inputFiles) given[name] = readTensorFile(file);
  const auto start = std::chrono::steady_clock::now();
  sdk::Model model = openModel(options, given);
  const double compileMs = millisecondsSince(start);
  Session session{
      std::move(model), {}, compileMs, {}, {}, {}, {}, {}, isProgramText(options.model.path)};
  session.report = placementReport(session.model);
  if (options.model.rewritten) session.report["model"] = options.model.path;
  // The oracle compiles nothing, so that no partition tells its name; who stands beside it only
  // claims ops.
  if (splitList(options.model.backends).front() == "reference")
    session.report["backends"] = {"reference"};
  session.inputPorts = session.model.inputs();
  session.outputPorts = session.model.outputs();
  for (const Json& state : session.report.value("states", Json::array()))
    for (const char* side : {"input", "output"}) session.states.insert(state.value(side, ""));
  session.inputs = makeInputs(options, session, given);
  readLaterInputs(options, session);
  return session;
}

std::vector<text::NamePair> statesOf(const std::vector<std::string>& texts,
                                     const Session& session) {
  const std::vector<std::string> inputs = namesOf(session.inputPorts);
  const std::vector<std::string> outputs = namesOf(session.outputPorts);
  std::vector<text::NamePair> all;
  for (const std::string& text : texts) {
    const std::vector<text::NamePair> some = text::pairsOf(text, inputs, outputs);
    if (some.empty())
      fail(kBadInput, "--state {}: not of the form INPUT=OUTPUT; inputs are {}, outputs {}", text,
           fmt::join(inputs, ", "), fmt::join(outputs, ", "));
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

void Session::prepare(size_t run) {
  for (size_t i = 0; i < inputs.size(); ++i)
    if (states.count(inputPorts[i].name)) inputs[i] = {};
  for (const auto& [input, tensors] : laterInputs) inputs[input] = tensors[run - 1];
}

void Session::run(std::vector<double>& latenciesMs, Results& results, bool wantsStates,
                  int64_t few) const {
  auto& [outputs, in, out] = results;
  in.clear();
  out.clear();
  outputs.resize(outputPorts.size());
  for (const Tensor& tensor : inputs) in.push_back(view(tensor));
  for (size_t i = 0; i < outputPorts.size(); ++i) {
    const sdk::Port& port = outputPorts[i];
    const bool isFew = port.isKnown() && elementCount(port.dims).value_or(0) <= few;
    const bool isKept = !wantsStates && !isFew && states.count(port.name),
               isAllocated = port.isKnown() && !isKept;
    // What only the run knows is allocated there.
    if (!isAllocated)
      outputs[i] = Tensor();
    else if (!outputs[i].bytes.data())
      outputs[i] = check(
          Tensor::zeros(elemOf(port), port.dims).context(fmt::format("output '{}'", port.name)),
          kWorkFailed);
    out.push_back(isAllocated ? view(outputs[i]) : candela_tensor_t{});
    if (!isKept && !port.isKnown()) out.back().rank = CANDELA_UNKNOWN_RANK;
  }
  const auto start = std::chrono::steady_clock::now();
  model.run(in, out);
  latenciesMs.push_back(millisecondsSince(start));
  for (size_t i = 0; i < out.size(); ++i) {
    outputs[i].dims.assign(out[i].dims, out[i].dims + out[i].rank);
    if (outputPorts[i].isKnown()) continue;
    outputs[i].elem = static_cast<Elem>(out[i].elem);
    outputs[i].bytes = Bytes::wrap(out[i].data, out[i].bytes,
                                   std::shared_ptr<void>(out[i].data, candela_free_data));
  }
}

std::vector<Tensor> Session::run(std::vector<double>& latenciesMs) const {
  Results results;
  run(latenciesMs, results);
  return std::move(results.outputs);
}

Tensor Session::shaped(Tensor tensor, const Shape& dims) const {
  if (flatShapes && elementCount(dims) == tensor.count()) tensor.dims = dims;
  return tensor;
}

size_t Session::outputIndex(const std::string& option, const std::string& name) const {
  std::string names;
  for (size_t i = 0; i < outputPorts.size(); ++i) {
    if (outputPorts[i].name == name) return i;
    names += (names.empty() ? "" : ", ") + outputPorts[i].name;
  }
  fail(kBadInput, "{}: no output is named '{}'; outputs are {}", option, name, names);
}

} // namespace candela::tool
