#pragma once

#include "core/runtime/api/model.h"

/// What a program gives for a run, checked against the model.
namespace candela::runtime::api {

/// "key=value" at its first '='. Failure: invalid_argument.
Result<std::pair<std::string, std::string>> splitOption(std::string_view text);

/// A type as the interface says it.
void describeType(Elem elem, const Shape& dims, candela_tensor_t& out);
/// Describes a port, unless `out` is null; returns its name.
const char* describePort(const bundle::BundleValue& port, candela_tensor_t* out);

/// Whether there is nothing there: a state goes on, an output is the library's to allocate.
inline bool isNowhere(const candela_tensor_t& tensor) { return !tensor.data && !tensor.bytes; }

/// An input's dims as the model counts them, and whether its bytes are enough.
Result<std::span<const int64_t>> checkInput(const candela_model& model, uint32_t index,
                                            const candela_tensor_t& given);
Status checkCounts(const candela_model& model, uint32_t inputs, uint32_t outputs);
Status checkRoom(const bundle::BundleValue& port, const candela_tensor_t& output, uint64_t bytes);
/// A state that nobody wants to see.
bool isKept(const candela_model& model, uint32_t index, const candela_tensor_t& output);
/// The inputs of a run; a state that goes on has no type.
Result<std::vector<Tensor>> readInputs(const candela_model& model, const candela_tensor_t* inputs);

/// Memory of outputs that is made for the caller, and taken back when not all of them could be
/// written.
class OutputMemory {
public:
  explicit OutputMemory(candela_tensor_t* outputs) : outputs_(outputs) {}
  ~OutputMemory();
  OutputMemory(const OutputMemory&) = delete;
  OutputMemory& operator=(const OutputMemory&) = delete;

  Status make(uint32_t i, uint64_t bytes);
  void keep() { made_.clear(); }

private:
  candela_tensor_t* outputs_;
  std::vector<uint32_t> made_;
};

/// A run of a flow or of the oracle, which say at its end what the outputs are.
Status runTensors(const candela_model& model, const candela_tensor_t* inputs,
                  candela_tensor_t* outputs);

} // namespace candela::runtime::api
