// Operators on u8 numbers with one scale: what they mean, between DequantizeLinear and
// QuantizeLinear, which the pass raise-quantized makes arithmetic on integers of.
#include "core/compiler/import/caffe2/operators/pooling.h"
#include "core/compiler/import/caffe2/operators/product.h"

namespace candela::import::caffe2 {
namespace {

void writeQuantize(Step& step) { step.setQuantized(0, step.in(0)); }
void writeDequantize(Step& step) {
  if (!step.blob(0).quantization) reject("input 0 is not quantized");
  step.set(0, step.real(0));
}

void writeInt8Conv(Step& step) { step.setQuantized(0, convolved(step, step.real(0))); }
void writeInt8ConvRelu(Step& step) {
  const Name y = convolved(step, step.real(0));
  step.setQuantized(0, step.add("Relu", {y}));
}
void writeInt8Connected(Step& step) { step.setQuantized(0, connected(step, step.real(0), false)); }

void writeInt8Relu(Step& step) { step.setQuantized(0, step.add("Relu", {step.real(0)})); }
Name summed(Step& step) { return step.add("Add", {step.real(0), step.real(1)}); }
void writeInt8Sum(Step& step) { step.setQuantized(0, summed(step)); }
void writeInt8SumRelu(Step& step) { step.setQuantized(0, step.add("Relu", {summed(step)})); }

void writeInt8MaxPool(Step& step) { step.setQuantized(0, pooled(step, step.real(0), true)); }
void writeInt8AveragePool(Step& step) { step.setQuantized(0, pooled(step, step.real(0), false)); }

constexpr Operator kQuantized[] = {
    {"Int8Add", 2, 2, writeInt8Sum},
    {"Int8AddRelu", 2, 2, writeInt8SumRelu},
    {"Int8AveragePool", 1, 1, writeInt8AveragePool},
    {"Int8Conv", 2, 3, writeInt8Conv},
    {"Int8ConvRelu", 2, 3, writeInt8ConvRelu},
    {"Int8Dequantize", 1, 1, writeDequantize},
    {"Int8FC", 3, 3, writeInt8Connected},
    {"Int8MaxPool", 1, 1, writeInt8MaxPool},
    {"Int8Quantize", 1, 1, writeQuantize},
    {"Int8Relu", 1, 1, writeInt8Relu},
    {"Int8Sum", 2, 2, writeInt8Sum},
    {"Int8SumRelu", 2, 2, writeInt8SumRelu},
};

} // namespace

std::span<const Operator> quantizedOperators() { return kQuantized; }

} // namespace candela::import::caffe2
