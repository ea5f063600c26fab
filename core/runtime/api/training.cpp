// train.h over the rooms that differentiate and train.
#include <candela/train.h>

#include <algorithm>
#include <cmath>

#include "core/compiler/driver/report.h"
#include "core/compiler/import/formats.h"
#include "core/compiler/train/gradients.h"
#include "core/compiler/train/model_file.h"
#include "core/compiler/train/trainer.h"
#include "core/runtime/api/arguments.h"
#include "core/runtime/api/compile.h"
#include "core/runtime/api/options.h"
#include "core/support/file.h"

using namespace candela;
using namespace runtime::api;
using runtime::bundle::BundleValue;

struct candela_trainer {
  train::ModelFile file;
  std::vector<train::Parameter> parameters; ///< before the first step
  train::StepSettings settings;
  std::optional<train::Trainer> trainer;
  std::vector<BundleValue> inputs;  ///< the model's, then the labels
  std::vector<BundleValue> learned; ///< per parameter: its port
  int64_t classes = 0;              ///< of cross entropy
  int64_t steps = 0;                ///< that were done
  FileWatch::Files files;
  std::string report;
};

namespace {

constexpr double kMostRate = 1e6;
constexpr double kMostNorm = 1e30;

// ---- Gradients

train::GradientRequest gradientRequest(const char* of, const char* const* wrt) {
  train::GradientRequest request;
  if (of) request.of = of;
  for (const char* const* name = wrt; name && *name; ++name) request.wrt.emplace_back(*name);
  return request;
}

/// The gradients of a file's content, as a model that was loaded.
Result<driver::Loaded> loadGradients(const Bytes& content, const std::string& path,
                                     const train::GradientRequest& request,
                                     import::ImportOptions options) {
  options.bindAtRun = false;
  if (!path.ends_with(".cdl")) {
    CDL_ASSIGN(const import::onnx_io::Model model, import::parseModel(content, path));
    CDL_ASSIGN(graph::Graph graph, train::gradientGraph(model, request, options));
    return driver::Loaded(std::move(graph));
  }
  CDL_ASSIGN(driver::Loaded loaded, driver::loadContent(content, path, options));
  auto* graph = std::get_if<graph::Graph>(&loaded);
  if (!graph)
    return failure(Code::unsupported, "{}: a program has no gradients, a graph has", path);
  CDL_ASSIGN(graph::Graph made, train::gradientGraph(std::move(*graph), request));
  return driver::Loaded(std::move(made));
}

// ---- Settings

Status checkRange(const char* what, double value, double least, double most) {
  if (value >= least && value <= most) return Status::ok(); // which NaN is not
  return badArgument("{} {}: expected {} to {}", what, value, least, most);
}

Result<train::StepSettings> stepSettings(const candela_training_t& given) {
  train::StepSettings settings;
  const char* loss = given.loss ? given.loss : "cross_entropy";
  const char* optimizer = given.optimizer ? given.optimizer : "adam";
  const auto knownLoss = train::parseLoss(loss);
  if (!knownLoss) return badArgument("loss '{}': cross_entropy or mse", loss);
  const auto known = train::parseOptimizer(optimizer);
  if (!known) return badArgument("optimizer '{}': sgd, momentum, adam or adamw", optimizer);
  CDL_TRY(checkRange("momentum", given.momentum, 0, 1));
  CDL_TRY(checkRange("weight_decay", given.weight_decay, 0, kMostRate));
  CDL_TRY(checkRange("clip_norm", given.clip_norm, 0, kMostNorm));
  if (given.flags & ~CANDELA_TRAIN_RANDOM)
    return badArgument("flags {:#x} of training are not known", given.flags);
  settings.loss = *knownLoss;
  settings.optimizer.kind = *known;
  settings.optimizer.momentum = given.momentum;
  settings.optimizer.weightDecay = given.weight_decay;
  settings.clipNorm = given.clip_norm;
  if (given.output) settings.output = given.output;
  return settings;
}

/// Options of compilation that a step has no use for.
Status checkForTraining(const CompileRequest& request) {
  if (!request.states.empty())
    return badArgument("states: a step of training has its own, no other outputs are inputs");
  if (request.import.bindAtRun)
    return badArgument("a step of training is compiled for one batch: dims or shapes have to say "
                       "which, none are bound at run");
  if (request.compile.keepValues)
    return badArgument("values of a step of training cannot be kept as outputs");
  if (std::ranges::count(request.backends, "reference"))
    return badArgument("the reference does not train: soft or a backend does");
  return Status::ok();
}

// ---- The trainer

BundleValue portOf(const std::string& name, const graph::TensorType& type) {
  return {name, type.elem, type.shape()};
}

/// What a step takes and what it learns, under the names of the model.
void describePorts(candela_trainer& made) {
  const train::StepGraph& step = made.trainer->step();
  size_t next = 0;
  for (const graph::Value* input : step.graph.inputs()) {
    if (!std::ranges::count(step.dataInputs, input->name)) continue;
    made.inputs.push_back(portOf(step.dataInputs[next++], input->type));
  }
  made.inputs.push_back(portOf("labels", step.labels));
  for (const train::Parameter& parameter : made.parameters)
    made.learned.push_back({parameter.name, parameter.value.elem, parameter.value.dims});
}

Status fillTrainer(candela_trainer& made, const candela_training_t* given,
                   const candela_options_t* options) {
  candela_training_t training = CANDELA_TRAINING_INIT;
  if (given) std::memcpy(&training, given, std::min<size_t>(given->struct_size, sizeof training));
  CDL_ASSIGN(made.settings, stepSettings(training));
  CDL_ASSIGN(CompileRequest request, parseOptions(options));
  CDL_TRY(checkForTraining(request));
  CDL_ASSIGN(const auto devices, openDevices(request));
  made.settings.import = request.import;
  std::vector<std::string> freeze;
  for (const char* const* f = training.freeze; f && *f; ++f) freeze.emplace_back(*f);
  CDL_ASSIGN(made.parameters, train::parametersOf(made.file.model, freeze));
  if (training.flags & CANDELA_TRAIN_RANDOM)
    for (size_t i = 0; i < made.parameters.size(); ++i) {
      CDL_ASSIGN(made.parameters[i].value,
                 train::initialValue(made.parameters[i], splitmix64(training.seed + i)));
    }
  CDL_ASSIGN(train::StepGraph step,
             train::makeStep(made.file.model, made.parameters, made.settings));
  made.classes = step.scores.rank() > 1 ? step.scores.dim(1) : 0;
  CDL_ASSIGN(train::Trainer trainer,
             train::Trainer::create(std::move(step), made.settings.optimizer, made.file.model.path,
                                    devices, request.compile));
  made.trainer.emplace(std::move(trainer));
  if (request.flags & CANDELA_FLAG_REQUIRE_NATIVE) CDL_TRY(requireNative(made.trainer->bundle()));
  describePorts(made);
  made.report = driver::placementJson(made.trainer->bundle());
  return Status::ok();
}

template <typename Read>
Status createTrainer(const char* path, const candela_training_t* training,
                     const candela_options_t* options, candela_trainer_t** trainer, Read&& read) {
  if (trainer) *trainer = nullptr;
  if (!path || !trainer) return badArgument("no path, or nowhere to put the trainer");
  auto made = std::make_unique<candela_trainer>();
  FileWatch watch;
  CDL_ASSIGN(made->file, read());
  CDL_TRY(fillTrainer(*made, training, options));
  made->files = watch.take();
  CDL_TRY(checkUnchanged(made->files));
  *trainer = made.release();
  return Status::ok();
}

// ---- Steps

/// Bytes of the caller as a tensor, checked; of any type of `integers` if that is so.
Result<Tensor> tensorOf(const BundleValue& port, const candela_tensor_t& given, bool integers) {
  if (given.rank > CANDELA_MAX_RANK || !isValidElem(given.elem))
    return badArgument("input '{}': rank {} or element type {} is out of range", port.name,
                       given.rank, int(given.elem));
  Tensor tensor{static_cast<Elem>(given.elem), Shape(given.dims, given.dims + given.rank), {}};
  const auto count = elementCount(tensor.dims);
  if (!count)
    return badArgument("input '{}': impossible shape {}", port.name, shapeText(tensor.dims));
  const bool isTaken = integers && isInteger(tensor.elem) && !isPacked(tensor.elem);
  CDL_TRY(port.checkInput(isTaken ? port.elem : tensor.elem, tensor.dims));
  const uint64_t bytes = elemBytes(tensor.elem, *count);
  if (given.bytes < bytes || (!given.data && bytes))
    return badArgument("input '{}' needs {} bytes, {} were given", port.name, bytes,
                       given.data ? given.bytes : 0);
  tensor.bytes = Bytes::wrap(given.data, bytes, nullptr);
  return tensor;
}

int64_t integerAt(const Tensor& tensor, int64_t i) {
  switch (tensor.elem) {
  case Elem::i8_: return tensor.as<int8_t>()[i];
  case Elem::u8_: return tensor.as<uint8_t>()[i];
  case Elem::i16_: return tensor.as<int16_t>()[i];
  case Elem::u16_: return tensor.as<uint16_t>()[i];
  case Elem::i32_: return tensor.as<int32_t>()[i];
  case Elem::u32_: return tensor.as<uint32_t>()[i];
  case Elem::u64_:
    return static_cast<int64_t>(
        std::min<uint64_t>(tensor.as<uint64_t>()[i], std::numeric_limits<int64_t>::max()));
  default: return tensor.as<int64_t>()[i];
  }
}

/// Classes as a step takes them.
Result<Tensor> classesOf(const Tensor& labels, int64_t classes) {
  CDL_ASSIGN(Tensor made, Tensor::zeros(Elem::i32_, labels.dims));
  for (int64_t i = 0; i < labels.count(); ++i) {
    const int64_t label = integerAt(labels, i);
    if (label < 0 || label >= classes)
      return badArgument("input 'labels': element {} is {}, the model has {} classes", i, label,
                         classes);
    made.mutableAs<int32_t>()[i] = static_cast<int32_t>(label);
  }
  return made;
}

Status step(candela_trainer& trainer, std::span<const candela_tensor_t> given, double rate,
            double& loss) {
  if (given.size() != trainer.inputs.size())
    return badArgument("{} inputs were given, a step takes {}: those of the model and the labels",
                       given.size(), trainer.inputs.size());
  CDL_TRY(checkRange("learning_rate", rate, 0, kMostRate));
  CDL_TRY(checkUnchanged(trainer.files));
  train::StepInput input;
  for (size_t i = 0; i + 1 < given.size(); ++i) {
    CDL_ASSIGN(Tensor tensor, tensorOf(trainer.inputs[i], given[i], false));
    input.data.push_back(std::move(tensor));
  }
  const bool isClassifier = trainer.settings.loss == train::Loss::crossEntropy;
  CDL_ASSIGN(input.labels, tensorOf(trainer.inputs.back(), given.back(), isClassifier));
  if (isClassifier) {
    CDL_ASSIGN(input.labels, classesOf(input.labels, trainer.classes));
  }
  input.learningRate = rate;
  input.number = trainer.steps + 1;
  CDL_ASSIGN(const train::StepOutput output, trainer.trainer->run(input, train::Reads::loss));
  ++trainer.steps;
  loss = output.loss;
  return Status::ok();
}

Status readParameter(candela_trainer& trainer, uint32_t index, candela_tensor_t& output) {
  if (index >= trainer.learned.size())
    return badArgument("parameter {} of {}", index, trainer.learned.size());
  const BundleValue& port = trainer.learned[index];
  CDL_TRY(trainer.trainer->readStates());
  const uint64_t bytes = port.sizeBytes();
  OutputMemory memory(&output);
  if (isNowhere(output)) CDL_TRY(memory.make(0, bytes).context(port.name));
  CDL_TRY(checkRoom(port, output, bytes));
  if (bytes) std::memcpy(output.data, trainer.trainer->states()[index].bytes.data(), bytes);
  describeType(port.elem, port.dims, output);
  output.bytes = bytes;
  memory.keep();
  return Status::ok();
}

Status save(candela_trainer& trainer, const char* path) {
  CDL_TRY(checkUnchanged(trainer.files));
  CDL_TRY(trainer.trainer->readStates());
  std::vector<train::Parameter> learned = trainer.parameters;
  for (size_t i = 0; i < learned.size(); ++i) {
    learned[i].value = trainer.trainer->states()[i];
    const auto* at = learned[i].value.as<float>();
    if (!std::all_of(at, at + learned[i].value.count(), [](float x) { return std::isfinite(x); }))
      return badArgument("{}: parameter '{}' is not finite after {} steps: nothing is written",
                         trainer.file.model.path, learned[i].name, trainer.steps);
  }
  return train::writeTrained(trainer.file, learned, path);
}

} // namespace

extern "C" {

candela_status_t candela_compile_gradients(const char* path, const char* of, const char* const* wrt,
                                           const candela_options_t* options,
                                           candela_model_t** model, char* error,
                                           size_t error_size) {
  return guarded(error, error_size, [&] {
    return createModel(model, path, [&](candela_model& made) {
      const auto load = [&](const import::ImportOptions& how) -> Result<driver::Loaded> {
        CDL_ASSIGN(const Bytes content, mapFile(path));
        return loadGradients(content, path, gradientRequest(of, wrt), how);
      };
      return compileModel(made, {path, load}, options);
    });
  });
}

candela_status_t candela_compile_gradients_memory(const void* data, size_t bytes, const char* name,
                                                  const char* of, const char* const* wrt,
                                                  const candela_options_t* options,
                                                  candela_model_t** model, char* error,
                                                  size_t error_size) {
  return guarded(error, error_size, [&] {
    return createModel(model, data ? name : nullptr, [&](candela_model& made) {
      const auto load = [&](const import::ImportOptions& how) {
        return loadGradients(Bytes::copyOf(data, bytes), name, gradientRequest(of, wrt), how);
      };
      return compileModel(made, {name, load}, options);
    });
  });
}

candela_status_t candela_trainer_create(const char* path, const candela_training_t* training,
                                        const candela_options_t* options,
                                        candela_trainer_t** trainer, char* error,
                                        size_t error_size) {
  return guarded(error, error_size, [&] {
    return createTrainer(path, training, options, trainer,
                         [&] { return train::readModelFile(path); });
  });
}

candela_status_t candela_trainer_create_memory(const void* data, size_t bytes, const char* name,
                                               const candela_training_t* training,
                                               const candela_options_t* options,
                                               candela_trainer_t** trainer, char* error,
                                               size_t error_size) {
  return guarded(error, error_size, [&] {
    return createTrainer(data ? name : nullptr, training, options, trainer,
                         [&] { return train::parseModelFile(Bytes::copyOf(data, bytes), name); });
  });
}

void candela_trainer_free(candela_trainer_t* trainer) { delete trainer; }

uint32_t candela_trainer_input_count(const candela_trainer_t* trainer) {
  return trainer ? static_cast<uint32_t>(trainer->inputs.size()) : 0;
}
const char* candela_trainer_input(const candela_trainer_t* trainer, uint32_t index,
                                  candela_tensor_t* description) {
  return index < candela_trainer_input_count(trainer)
             ? describePort(trainer->inputs[index], description)
             : nullptr;
}

uint32_t candela_trainer_parameter_count(const candela_trainer_t* trainer) {
  return trainer ? static_cast<uint32_t>(trainer->learned.size()) : 0;
}
const char* candela_trainer_parameter(const candela_trainer_t* trainer, uint32_t index,
                                      candela_tensor_t* description) {
  return index < candela_trainer_parameter_count(trainer)
             ? describePort(trainer->learned[index], description)
             : nullptr;
}

candela_status_t candela_trainer_step(candela_trainer_t* trainer, const candela_tensor_t* inputs,
                                      uint32_t input_count, double learning_rate, double* loss,
                                      char* error, size_t error_size) {
  return guarded(error, error_size, [&]() -> Status {
    if (!trainer || !loss || (!inputs && input_count))
      return badArgument("no trainer, no inputs, or nowhere to put the loss");
    return step(*trainer, {inputs, input_count}, learning_rate, *loss);
  });
}

candela_status_t candela_trainer_read(candela_trainer_t* trainer, uint32_t index,
                                      candela_tensor_t* output, char* error, size_t error_size) {
  return guarded(error, error_size, [&]() -> Status {
    if (!trainer || !output) return badArgument("no trainer, or nowhere to put the parameter");
    return readParameter(*trainer, index, *output);
  });
}

candela_status_t candela_trainer_save(candela_trainer_t* trainer, const char* path, char* error,
                                      size_t error_size) {
  return guarded(error, error_size, [&]() -> Status {
    if (!trainer || !path) return badArgument("no trainer or no path");
    return save(*trainer, path);
  });
}

const char* candela_trainer_report_json(const candela_trainer_t* trainer) {
  return trainer ? trainer->report.c_str() : nullptr;
}

} // extern "C"
