#include "core/compiler/import/caffe2/operators/elementwise.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/compiler/import/caffe2/window.h"

namespace candela::import::caffe2 {

Name alignedAt(Step& step, int64_t axis, const Name& a, const Name& b) {
  const auto rankOf = [&](const Name& x) { return step.add("Shape", {step.add("Shape", {x})}); };
  const Name before = step.add("Add", {rankOf(b), step.constant(Ints{axis})});
  const Name behind = step.add("Sub", {rankOf(a), before});
  const Name ones =
      step.add("ConstantOfShape", {behind}, {{"value", Tensor::of<int64_t>(Elem::i64_, {1}, {1})}});
  const Name shape = step.join({step.add("Shape", {b}), ones});
  return step.add("Reshape", {b, shape}, {{"allowzero", int64_t(1)}});
}

Name besideOf(Step& step, const Name& a, const Name& b) {
  const int64_t axis = step.arguments.integer("axis", -1);
  const std::string text = step.arguments.text("axis_str", "");
  if (!text.empty()) refuse("axis_str '{}'", text);
  if (axis < 0) return b; // beside the last dims of a
  return alignedAt(step, axis, a, b);
}

namespace {

/// Operators of ONNX by the same name, or by another.
struct Renamed {
  std::string_view type;
  const char* onnx;
};
constexpr Renamed kRenamed[] = {
    {"Abs", "Abs"},           {"Add", "Add"},       {"Alias", "Identity"},
    {"Ceil", "Ceil"},         {"Copy", "Identity"}, {"Cos", "Cos"},
    {"Div", "Div"},           {"Exp", "Exp"},       {"EnsureCPUOutput", "Identity"},
    {"Floor", "Floor"},       {"Log", "Log"},       {"Max", "Max"},
    {"Mean", "Mean"},         {"Min", "Min"},       {"Mul", "Mul"},
    {"Negative", "Neg"},      {"Relu", "Relu"},     {"Sigmoid", "Sigmoid"},
    {"Sign", "Sign"},         {"Sin", "Sin"},       {"Softplus", "Softplus"},
    {"Softsign", "Softsign"}, {"Sqrt", "Sqrt"},     {"StopGradient", "Identity"},
    {"Sub", "Sub"},           {"Sum", "Sum"},       {"Tan", "Tan"},
    {"Tanh", "Tanh"},
};

const char* onnxOf(const Step& step) {
  return std::ranges::find(kRenamed, step.type(), &Renamed::type)->onnx;
}

void writeSame(Step& step) { step.set(0, step.add(onnxOf(step), step.inputs())); }

void writeBinary(Step& step) {
  const Name a = step.in(0);
  step.set(0, step.add(onnxOf(step), {a, besideOf(step, a, step.in(1))}));
}

void writeDropout(Step& step) {
  if (!step.arguments.flag("is_test", false)) refuse("is_test is 0: it draws numbers");
  step.needUnread(1, "the mask");
  step.set(0, step.add("Identity", {step.in(0)}));
}

void writeClip(Step& step) {
  constexpr float kMost = std::numeric_limits<float>::max();
  step.set(0, step.add("Clip", {step.in(0), step.number(step.arguments.number("min", -kMost)),
                                step.number(step.arguments.number("max", kMost))}));
}

void writeLeakyRelu(Step& step) {
  step.set(0,
           step.add("LeakyRelu", {step.in(0)}, {{"alpha", step.arguments.number("alpha", 0.01f)}}));
}
void writeElu(Step& step) {
  step.set(0, step.add("Elu", {step.in(0)}, {{"alpha", step.arguments.number("alpha", 1.0f)}}));
}
void writeSelu(Step& step) {
  const float alpha = step.arguments.number("alpha", 1.6732632423543772f);
  const float gamma = step.arguments.number("scale", 1.0507009873554804f);
  step.set(0, step.add("Selu", {step.in(0)}, {{"alpha", alpha}, {"gamma", gamma}}));
}
void writePRelu(Step& step) {
  Images images(step);
  const Name x = images.first(step.in(0));
  // One slope for each channel, or one for all of them, which lies beside dim 1 as well.
  step.set(0, images.back(step.add("PRelu", {x, alignedAt(step, 1, x, step.in(1))})));
}

void writeScale(Step& step) {
  step.set(0, step.add("Mul", {step.in(0), step.number(step.arguments.number("scale", 1))}));
}

void writePow(Step& step) {
  const Name a = step.in(0);
  if (!step.has(1))
    return step.set(0, step.add("Pow", {a, step.number(step.arguments.number("exponent", 1))}));
  step.set(0, step.add("Pow", {a, besideOf(step, a, step.in(1))}));
}

void writeSquare(Step& step) {
  const Name x = step.in(0);
  step.set(0, step.add("Mul", {x, x}));
}
void writeCube(Step& step) {
  const Name x = step.in(0);
  step.set(0, step.add("Mul", {step.add("Mul", {x, x}), x}));
}
void writeReciprocalRoot(Step& step) {
  step.set(0, step.add("Reciprocal", {step.add("Sqrt", {step.in(0)})}));
}

/// x * sigmoid(x)
void writeSwish(Step& step) {
  const Name x = step.in(0);
  step.set(0, step.add("Mul", {x, step.add("Sigmoid", {x})}));
}

void writeGelu(Step& step) {
  const bool isFast = step.arguments.flag("fast_gelu", false);
  step.set(
      0, step.add("Gelu", {step.in(0)}, {{"approximate", std::string(isFast ? "tanh" : "none")}}));
}

/// log(x / (1 - x)) of x in [eps, 1 - eps]
void writeLogit(Step& step) {
  const float eps = step.arguments.number("eps", 1e-6f);
  const Name x = step.add("Clip", {step.in(0), step.number(eps), step.number(1 - eps)});
  const Name odds = step.add("Div", {x, step.add("Sub", {step.number(1), x})});
  step.set(0, step.add("Log", {odds}));
}

void writeReplaceNaN(Step& step) {
  const Name x = step.in(0);
  const Name value = step.number(step.arguments.number("value", 0));
  step.set(0, step.add("Where", {step.add("IsNaN", {x}), value, x}));
}

constexpr Operator kElementwise[] = {
    {"Abs", 1, 1, writeSame},
    {"Add", 2, 2, writeBinary, kBroadcastLimits},
    {"Alias", 1, 1, writeSame},
    {"Ceil", 1, 1, writeSame},
    {"Clip", 1, 1, writeClip},
    {"Copy", 1, 1, writeSame},
    {"Cos", 1, 1, writeSame},
    {"Cube", 1, 1, writeCube},
    {"Div", 2, 2, writeBinary, kBroadcastLimits},
    {"Dropout", 1, 1, writeDropout, "is_test is 1; the mask is not read"},
    {"Elu", 1, 1, writeElu},
    {"EnsureCPUOutput", 1, 1, writeSame},
    {"Exp", 1, 1, writeSame},
    {"Floor", 1, 1, writeSame},
    {"Gelu", 1, 1, writeGelu},
    {"LeakyRelu", 1, 1, writeLeakyRelu},
    {"Log", 1, 1, writeSame},
    {"Logit", 1, 1, writeLogit},
    {"Max", 1, -1, writeSame},
    {"Mean", 1, -1, writeSame},
    {"Min", 1, -1, writeSame},
    {"Mul", 2, 2, writeBinary, kBroadcastLimits},
    {"Negative", 1, 1, writeSame},
    {"PRelu", 2, 2, writePRelu},
    {"Pow", 1, 2, writePow, kBroadcastLimits},
    {"Relu", 1, 1, writeSame},
    {"ReplaceNaN", 1, 1, writeReplaceNaN},
    {"Rsqrt", 1, 1, writeReciprocalRoot},
    {"Scale", 1, 1, writeScale},
    {"Selu", 1, 1, writeSelu},
    {"Sigmoid", 1, 1, writeSame},
    {"Sign", 1, 1, writeSame},
    {"Sin", 1, 1, writeSame},
    {"Softplus", 1, 1, writeSame},
    {"Softsign", 1, 1, writeSame},
    {"Sqr", 1, 1, writeSquare},
    {"Sqrt", 1, 1, writeSame},
    {"StopGradient", 1, 1, writeSame},
    {"Sub", 2, 2, writeBinary, kBroadcastLimits},
    {"Sum", 1, -1, writeSame},
    {"Swish", 1, 1, writeSwish},
    {"Tan", 1, 1, writeSame},
    {"Tanh", 1, 1, writeSame},
};

} // namespace

std::span<const Operator> elementwiseOperators() { return kElementwise; }

} // namespace candela::import::caffe2
