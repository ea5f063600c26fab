//===- model_builder.h - Builds an ONNX model node by node ----------------===//
//
// Names follow one counter: initializers `w<k>`, values `t<k>`, nodes `<OpType><k>`.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace candela::gen {

using Shape = std::vector<int64_t>;

/// A value of the graph: the input, an initializer or a node's output.
struct Value {
  std::string name;
  float scale = 0; ///< What it was last quantized with; 0 where it was not.
};

struct Attribute {
  std::string name;
  std::variant<int64_t, float, Shape, std::string> value;
};

/// Integers, and the scales that they are to be multiplied with: one in all, or one per slice of
/// axis 0.
struct QuantizedWeights {
  std::vector<int8_t> values;
  std::vector<float> scales;
};

/// Symmetric int8 quantization of `weights` cut into `slices` equal runs, each with the scale of
/// its largest weight.
QuantizedWeights quantizeWeights(const std::vector<float>& weights, size_t slices);

/// Collects nodes and initializers. Each call to random() draws from the next stream of the seed,
/// so two networks that draw alike (a float one and its int8 form) have the same weights.
class ModelBuilder {
public:
  explicit ModelBuilder(uint64_t seed) : seed_(seed) {}

  Value init(const Shape& shape, const std::vector<float>& values);
  Value init(const Shape& shape, const std::vector<int8_t>& values);
  Value init(const Shape& shape, const std::vector<uint8_t>& values);
  Value init(const Shape& shape, const std::vector<int32_t>& values);
  Value init(const Shape& shape, const std::vector<int64_t>& values);
  Value scalar(float value) { return init({}, std::vector<float>{value}); }

  /// Appends a node with one output. Attributes are written in the order given.
  Value op(const std::string& type, const std::vector<Value>& inputs,
           const std::vector<Attribute>& attributes = {});

  /// QuantizeLinear to uint8 and DequantizeLinear back.
  Value quantizeDequantize(const Value& x, float scale, uint8_t zeroPoint);

  std::vector<float> random(size_t count, double deviation);

  void countFlops(int64_t flops) { flops_ += flops; }
  int64_t flops() const { return flops_; }
  int64_t parameters() const { return parameters_; }

  /// Names the last node's output `out` and hands over the model, of input `x`. Both have a leading
  /// dimension `N`; one of -1 is written `?`.
  onnx::ModelProto finish(const std::string& name, const Shape& inputShape,
                          const Shape& outputShape, int64_t opset = 17);

  /// For what has other ports than those of finish().
  onnx::ModelProto& model() { return model_; }

private:
  std::string nextName(const std::string& prefix) { return prefix + std::to_string(++lastName_); }
  template <typename T>
  Value initRaw(onnx::TensorProto::DataType type, const Shape& shape, const std::vector<T>& values);

  onnx::ModelProto model_;
  uint64_t seed_;
  uint64_t nextStream_ = 0;
  int lastName_ = 0;
  int64_t flops_ = 0;
  int64_t parameters_ = 0;
};

} // namespace candela::gen
