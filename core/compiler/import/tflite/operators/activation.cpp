// Activations and normalizations.
#include "core/compiler/import/tflite/step.h"

namespace candela::import::tflite {
namespace {

template <schema::ActivationFunctionType Activation> void writeClamp(Step& step) {
  step.set(0, step.activate(step.real(0), Activation));
}

void writeRelu0To1(Step& step) {
  const Name zero = step.number(0, Elem::f32_);
  const Name one = step.number(1, Elem::f32_);
  step.set(0, step.add("Clip", {step.real(0), zero, one}));
}

void writeElu(Step& step) { step.set(0, step.add("Elu", {step.real(0)})); }
void writeHardSwish(Step& step) { step.set(0, step.add("HardSwish", {step.real(0)})); }
void writeLogistic(Step& step) { step.set(0, step.add("Sigmoid", {step.real(0)})); }
void writeTanh(Step& step) { step.set(0, step.add("Tanh", {step.real(0)})); }
void writePrelu(Step& step) { step.set(0, step.add("PRelu", {step.real(0), step.real(1)})); }

void writeGelu(Step& step) {
  const bool approximate = step.options<schema::GeluOptions>().approximate();
  step.set(0, step.add("Gelu", {step.real(0)},
                       {{"approximate", std::string(approximate ? "tanh" : "none")}}));
}

void writeLeakyRelu(Step& step) {
  const float alpha = step.options<schema::LeakyReluOptions>().alpha();
  step.set(0, step.add("LeakyRelu", {step.real(0)}, {{"alpha", alpha}}));
}

void writeSoftmax(Step& step) {
  const float beta = step.options<schema::SoftmaxOptions>().beta();
  Name x = step.real(0);
  if (beta != 1) x = step.add("Mul", {x, step.number(beta, Elem::f32_)});
  step.set(0, step.add("Softmax", {x}, {{"axis", int64_t(-1)}}));
}

void writeLogSoftmax(Step& step) {
  step.set(0, step.add("LogSoftmax", {step.real(0)}, {{"axis", int64_t(-1)}}));
}

/// By the length of each row, which counts as at least 1e-6.
void writeL2Normalization(Step& step) {
  constexpr double kLeast = 1e-6;
  const Name x = step.real(0);
  const Name sum = step.add("ReduceSum", {step.add("Mul", {x, x}), step.constant(Ints{-1})},
                            {{"keepdims", int64_t(1)}});
  const Name length = step.add("Max", {step.add("Sqrt", {sum}), step.number(kLeast, Elem::f32_)});
  const Name y = step.add("Div", {x, length});
  step.set(0, step.activate(y, step.options<schema::L2NormOptions>().fused_activation_function()));
}

/// Along the last dim, with a factor for the sum where ONNX has one for the mean.
void writeLocalResponseNormalization(Step& step) {
  const auto& options = step.options<schema::LocalResponseNormalizationOptions>();
  if (step.input(0).rank() != 4) reject("input 0 has rank {}, expected 4", step.input(0).rank());
  if (options.radius() < 0 || options.radius() > 1 << 20)
    reject("its radius is {}", options.radius());
  const int64_t size = 2 * int64_t(options.radius()) + 1;
  const Name x = step.transpose(step.real(0), {0, 3, 1, 2});
  const Name y = step.add("LRN", {x},
                          {{"size", size},
                           {"alpha", options.alpha() * static_cast<float>(size)},
                           {"beta", options.beta()},
                           {"bias", options.bias()}});
  step.set(0, step.transpose(y, {0, 2, 3, 1}));
}

constexpr Operator kActivation[] = {
    {schema::BuiltinOperator_ELU, 1, 1, 1, writeElu},
    {schema::BuiltinOperator_GELU, 1, 1, 1, writeGelu},
    {schema::BuiltinOperator_HARD_SWISH, 1, 1, 1, writeHardSwish},
    {schema::BuiltinOperator_L2_NORMALIZATION, 1, 1, 1, writeL2Normalization},
    {schema::BuiltinOperator_LEAKY_RELU, 1, 1, 1, writeLeakyRelu},
    {schema::BuiltinOperator_LOCAL_RESPONSE_NORMALIZATION, 1, 1, 1,
     writeLocalResponseNormalization},
    {schema::BuiltinOperator_LOGISTIC, 1, 1, 1, writeLogistic},
    {schema::BuiltinOperator_LOG_SOFTMAX, 1, 1, 1, writeLogSoftmax},
    {schema::BuiltinOperator_PRELU, 2, 2, 1, writePrelu},
    {schema::BuiltinOperator_RELU, 1, 1, 1, writeClamp<schema::ActivationFunctionType_RELU>},
    {schema::BuiltinOperator_RELU6, 1, 1, 1, writeClamp<schema::ActivationFunctionType_RELU6>},
    {schema::BuiltinOperator_RELU_0_TO_1, 1, 1, 1, writeRelu0To1},
    {schema::BuiltinOperator_RELU_N1_TO_1, 1, 1, 1,
     writeClamp<schema::ActivationFunctionType_RELU_N1_TO_1>},
    {schema::BuiltinOperator_SOFTMAX, 1, 1, 1, writeSoftmax},
    {schema::BuiltinOperator_TANH, 1, 1, 1, writeTanh},
};

} // namespace

std::span<const Operator> activationOperators() { return kActivation; }

} // namespace candela::import::tflite
