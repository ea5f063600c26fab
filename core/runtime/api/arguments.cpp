#include "core/runtime/api/arguments.h"

#include <algorithm>
#include <cstdlib>

#include "core/reference/interpreter/interp.h"
#include "core/reference/reference.h"

namespace candela::runtime::api {

using driver::kUnranked;

Result<std::pair<std::string, std::string>> splitOption(std::string_view text) {
  const size_t equals = text.find('=');
  if (equals == 0 || equals == std::string_view::npos)
    return badArgument("option '{}' is not of the form key=value", text);
  return std::pair(std::string(text.substr(0, equals)), std::string(text.substr(equals + 1)));
}

void describeType(Elem elem, const Shape& dims, candela_tensor_t& out) {
  out.elem = static_cast<candela_elem_t>(elem);
  out.rank = dims == kUnranked ? CANDELA_UNKNOWN_RANK : static_cast<uint32_t>(dims.size());
  std::fill(std::begin(out.dims), std::end(out.dims), 0);
  if (dims != kUnranked) std::copy(dims.begin(), dims.end(), out.dims);
}

const char* describePort(const bundle::BundleValue& port, candela_tensor_t* out) {
  if (out) {
    describeType(port.elem, port.dims, *out);
    out->data = nullptr;
    out->bytes = port.sizeBytes();
  }
  return port.name.c_str();
}

Result<std::span<const int64_t>> checkInput(const candela_model& model, uint32_t index,
                                            const candela_tensor_t& given) {
  const bundle::BundleValue& port = model.input(index);
  if (given.rank > CANDELA_MAX_RANK || !isValidElem(given.elem))
    return badArgument("input '{}': rank {} or element type {} is out of range", port.name,
                       given.rank, int(given.elem));
  const auto elem = static_cast<Elem>(given.elem);
  std::span<const int64_t> dims(given.dims, given.rank);
  const auto elements = elementCount(dims);
  if (!elements) return badArgument("input '{}': impossible shape {}", port.name, shapeText(dims));
  if (model.flatShapes && elements == elementCount(port.dims)) dims = port.dims;
  if (!model.flow) CDL_TRY(port.checkInput(elem, dims));
  const uint64_t bytes = elemBytes(elem, *elements);
  if (given.bytes < bytes || (!given.data && bytes))
    return badArgument("input '{}' needs {} bytes, {} were given", port.name, bytes,
                       given.data ? given.bytes : 0);
  return dims;
}

Status checkCounts(const candela_model& model, uint32_t inputs, uint32_t outputs) {
  if (outputs != model.outputs())
    return badArgument("{} outputs were given, the model has {}", outputs, model.outputs());
  if (inputs != model.inputs())
    return badArgument("{} inputs were given, the model has {}", inputs, model.inputs());
  return Status::ok();
}

Result<std::vector<Tensor>> readInputs(const candela_model& model, const candela_tensor_t* inputs) {
  std::vector<Tensor> tensors;
  for (uint32_t i = 0; i < model.inputs(); ++i) {
    const candela_tensor_t& given = inputs[i];
    if (isNowhere(given) && model.isState(&bundle::BundleState::input, i)) {
      tensors.emplace_back();
      continue;
    }
    CDL_ASSIGN(const std::span<const int64_t> dims, checkInput(model, i, given));
    Tensor tensor{static_cast<Elem>(given.elem), Shape(dims.begin(), dims.end()), {}};
    tensor.bytes = Bytes::wrap(given.data, tensor.sizeBytes(), nullptr);
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

bool isKept(const candela_model& model, uint32_t index, const candela_tensor_t& output) {
  return isNowhere(output) && output.rank != CANDELA_UNKNOWN_RANK &&
         model.isState(&bundle::BundleState::output, index);
}

Status checkRoom(const bundle::BundleValue& port, const candela_tensor_t& output, uint64_t bytes) {
  if (output.bytes >= bytes && (output.data || !bytes)) return Status::ok();
  return badArgument("output '{}' needs {} bytes, there are {}", port.name, bytes, output.bytes);
}

OutputMemory::~OutputMemory() {
  for (const uint32_t i : made_) {
    std::free(outputs_[i].data);
    outputs_[i].data = nullptr;
    outputs_[i].bytes = 0;
  }
}

Status OutputMemory::make(uint32_t i, uint64_t bytes) {
  made_.push_back(i);
  outputs_[i].data = std::malloc(std::max<uint64_t>(bytes, 1));
  if (!outputs_[i].data) return failure(Code::out_of_memory, "cannot allocate {} bytes", bytes);
  outputs_[i].bytes = bytes;
  return Status::ok();
}

Status runTensors(const candela_model& model, const candela_tensor_t* inputs,
                  candela_tensor_t* outputs) {
  FileWatch watch; // a part that waited for its shapes reads its weights now
  CDL_ASSIGN(const std::vector<Tensor> in, readInputs(model, inputs));
  const auto once = [&](std::span<const Tensor> all) -> Result<std::vector<Tensor>> {
    const auto* graph = std::get_if<graph::Graph>(&model.ir);
    if (model.flow) return model.flow->runTensors(all);
    return graph ? reference::run(*graph, all)
                 : reference::interpret(std::get<program::Program>(model.ir), all);
  };
  session::Trace trace(model.profiles);
  std::optional<session::Span> span(std::in_place, "run");
  CDL_ASSIGN(const std::vector<Tensor> out, model.states.run(in, once));
  span.reset();
  model.keepWatching(watch.take());
  {
    const std::lock_guard lock(model.traceMutex);
    model.ran = trace.take();
  }
  OutputMemory memory(outputs);
  for (uint32_t o = 0; o < model.outputs(); ++o) {
    const bundle::BundleValue& port = model.output(o);
    candela_tensor_t& output = outputs[o];
    const uint64_t bytes = out[o].sizeBytes();
    const bool kept = isKept(model, o, output);
    if (!kept) {
      if (isNowhere(output)) CDL_TRY(memory.make(o, bytes).context(port.name));
      CDL_TRY(checkRoom(port, output, bytes));
      if (bytes) std::memcpy(output.data, out[o].bytes.data(), bytes);
    }
    describeType(out[o].elem, model.flatShapes ? port.dims : out[o].dims, output);
    output.bytes = kept ? 0 : bytes;
  }
  memory.keep();
  return Status::ok();
}

} // namespace candela::runtime::api
