#include "core/compiler/import/loop_recurrence.h"
#include "core/compiler/import/operators/activation.h"

/// RNN, GRU and LSTM: the products of all inputs with W at once, then a recurrence for each
/// direction.
namespace candela::import {
namespace {

using Function = std::function<Term(const Term&)>;

/// An activation of ONNX's list. Where it has an alpha or a beta, it takes the next one that is
/// given.
struct Activation {
  std::string_view name;
  std::optional<double> alpha, beta; ///< the defaults
  Term (*apply)(const Term&, double alpha, double beta);
};
constexpr Activation kActivations[] = {
    {"affine", 1, 0, [](const Term& x, double alpha, double beta) { return x * alpha + beta; }},
    {"elu", 1, {}, [](const Term& x, double alpha, double) { return eluOf(x, alpha); }},
    {"hardsigmoid", 0.2f, 0.5f, hardSigmoidOf},
    {"leakyrelu",
     0.01f,
     {},
     [](const Term& x, double alpha, double) { return leakyReluOf(x, alpha); }},
    {"relu", {}, {}, [](const Term& x, double, double) { return relu(x); }},
    {"scaledtanh", 1, 1,
     [](const Term& x, double alpha, double beta) { return tanh(x * beta) * alpha; }},
    {"sigmoid", {}, {}, [](const Term& x, double, double) { return sigmoid(x); }},
    {"softplus", {}, {}, [](const Term& x, double, double) { return softplusOf(x); }},
    {"softsign", {}, {}, [](const Term& x, double, double) { return softsignOf(x); }},
    {"tanh", {}, {}, [](const Term& x, double, double) { return tanh(x); }},
    {"thresholdedrelu",
     1,
     {},
     [](const Term& x, double alpha, double) { return select(less(x, alpha), 0, x); }},
};

/// Whatever the case: exporters differ.
const Activation& activationOf(const std::string& name) {
  std::string lower = name;
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  for (const Activation& activation : kActivations)
    if (lower == activation.name) return activation;
  throw Failure{badModel("activation '{}' is none that ONNX names", name)};
}

/// One direction. Gates stand apart, so that each is one product with what follows it.
struct Direction {
  std::vector<Function> functions;
  /// of each gate, transposed: [inputs or hidden, hidden]
  std::vector<Term> w, r;
  /// [hidden] each; none where there is no operand
  std::vector<Term> wBias = {}, rBias = {}, peepholes = {};
  std::vector<Term> initial = {}; ///< [batch, hidden] each
};

/// What one direction's steps read besides what they carry.
struct Steps {
  std::vector<Term> scanned, captured; ///< scanned: [steps, batch, ...]
  /// The next carried values, without regard to lengths.
  std::function<std::vector<Term>(const StepInputs&)> next;
};

/// The part that the three operators share. Inputs: X, W, R, B, sequence_lens and the initial
/// states. LSTM has P, too.
class Layer {
public:
  Layer(NodeContext& context, int64_t gates, size_t states,
        const std::vector<std::string>& activations)
      : context_(context), elem_(termOf(context, 0).elem()), gates_(gates), states_(states) {
    readAttributes(activations);
    readShapes();
  }

  int64_t hidden() const { return hidden_; }
  const Term& x() const { return *x_; } ///< [steps, batch, inputs]

  /// Runs every direction and sets the outputs.
  template <typename Make> Status run(const Make& makeSteps) {
    std::vector<StepResults> results;
    for (int64_t d = 0; d < directions_; ++d) {
      const Direction direction = read(d);
      results.push_back(recur(direction, makeSteps(direction), backwardFirst_ || d == 1));
    }
    const auto join = [&](const auto& pick) { // directions become dim -3
      std::vector<Term> pieces;
      for (const StepResults& result : results) pieces.push_back(pick(result).unsqueeze(-3));
      return pieces.size() == 1 ? pieces.front() : concat(pieces, pieces.front().rank() - 3);
    };
    if (context_.wants(0)) {
      const Term y = join([](const StepResults& result) { return result.stacked.front(); });
      context_.set(0, (batchFirst_ ? y.transpose({2, 0, 1, 3}) : y).cast(elem_).value());
    }
    for (size_t i = 0; i < states_; ++i) {
      if (!context_.wants(i + 1)) continue;
      const Term last = join([i](const StepResults& result) { return result.carried[i]; });
      context_.set(i + 1, (batchFirst_ ? last.transpose({1, 0, 2}) : last).cast(elem_).value());
    }
    return Status::ok();
  }

private:
  void readAttributes(const std::vector<std::string>& activations) {
    const std::string direction = attrOf<std::string>(context_, "direction", "forward");
    if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
      need(badModel("direction '{}' is not forward, reverse or bidirectional", direction));
    directions_ = direction == "bidirectional" ? 2 : 1;
    backwardFirst_ = direction == "reverse";
    batchFirst_ = context_.opset >= 14 && need(context_.flagAttr("layout", false));
    // naming the output says it, too
    if (context_.opset < 7) need(context_.flagAttr("output_sequence", false));
    readFunctions(activations);
  }

  void readFunctions(const std::vector<std::string>& activations) {
    auto names = attrOf<std::vector<std::string>>(context_, "activations", {});
    const size_t each = activations.size(), count = each * static_cast<size_t>(directions_);
    if (names.empty())
      for (int64_t d = 0; d < directions_; ++d)
        names.insert(names.end(), activations.begin(), activations.end());
    // RNN's default in ONNX's schema has both directions, and some exporters write it down for one.
    if (names.size() != count && (each != 1 || names.size() != 2))
      need(badModel("attribute 'activations' has {} values, expected {}", names.size(), count));
    const auto alphas = attrOf<std::vector<float>>(context_, "activation_alpha", {});
    const auto betas = attrOf<std::vector<float>>(context_, "activation_beta", {});
    const std::optional<float> clip = need(context_.maybe<float>("clip"));
    if (clip && !(*clip > 0)) need(badModel("attribute 'clip' is {}, expected more than 0", *clip));
    size_t nextAlpha = 0, nextBeta = 0;
    for (size_t i = 0; i < count; ++i) {
      const Activation& activation = activationOf(names[i]);
      double alpha = activation.alpha.value_or(0), beta = activation.beta.value_or(0);
      if (activation.alpha && nextAlpha < alphas.size()) alpha = alphas[nextAlpha++];
      if (activation.beta && nextBeta < betas.size()) beta = betas[nextBeta++];
      // What an LSTM's third function is applied to is the cell, which is not clipped, as ONNX
      // Runtime has it.
      const bool clips = clip && i % each != 2;
      functions_.push_back([=, apply = activation.apply](const Term& x) {
        return apply(clips ? clipOf(x, -*clip, *clip) : x, alpha, beta);
      });
    }
  }

  void readShapes() {
    const Term x = termOf(context_, 0), r = termOf(context_, 2);
    if (!isFloat(elem_) || x.rank() != 3)
      need(badModel("X is {}, expected floats of rank 3", x.text()));
    if (r.rank() != 3) need(badModel("R is {}, expected rank 3", r.text()));
    hidden_ = r.dim(2);
    if (const auto given = need(context_.maybe<int64_t>("hidden_size")); given && *given != hidden_)
      need(badModel("attribute 'hidden_size' is {}, but R of shape {} has {}", *given,
                    shapeText(r.shape()), hidden_));
    // R's own count is no overflow: neither is a product that it holds.
    if (hidden_ < 1 || r.dim(1) % gates_ != 0 || r.dim(1) / gates_ != hidden_)
      need(badModel("R of shape {} is not {} square matrices below each other",
                    shapeText(r.shape()), gates_));
    x_ = widened(batchFirst_ ? x.transpose({1, 0, 2}) : x);
    const int64_t rows = gates_ * hidden_;
    w_ = operand(1, "W", {directions_, rows, x.dim(2)});
    r_ = operand(2, "R", {directions_, rows, hidden_});
    b_ = operand(3, "B", {directions_, 2 * rows});
    const Shape state = batchFirst_ ? Shape{x_->dim(1), directions_, hidden_}
                                    : Shape{directions_, x_->dim(1), hidden_};
    for (size_t i = 0; i < states_; ++i)
      initial_.push_back(operand(5 + i, i == 0 ? "initial_h" : "initial_c", state));
    if (states_ == 2) p_ = operand(7, "P", {directions_, 3 * hidden_});
    readLengths();
  }

  /// Nullopt when it is absent.
  std::optional<Term> operand(size_t index, const char* name, const Shape& shape) const {
    if (!context_.input(index)) return std::nullopt;
    const Term given = termOf(context_, index);
    if (given.shape() != shape || given.elem() != elem_)
      need(badModel("{} is {}, expected {}", name, given.text(),
                    graph::TensorType(elem_, shape).text()));
    return widened(given);
  }

  /// Which steps count, where not all do.
  void readLengths() {
    if (!context_.input(4)) return;
    const Term lengths = termOf(context_, 4);
    const int64_t steps = x_->dim(0), batch = x_->dim(1);
    if (!isInteger(lengths.elem()) || lengths.shape() != Shape{batch})
      need(badModel("sequence_lens is {}, expected integers of shape {}", lengths.text(),
                    shapeText(Shape{batch})));
    if (const auto known = Builder::knownInts(lengths.value())) {
      bool all = true;
      for (int64_t length : *known) {
        if (length < 0 || length > steps)
          need(badModel("sequence_lens has {}, beyond the {} steps of X", length, steps));
        all = all && length == steps;
      }
      if (all) return;
    }
    counts_ = less(iota(context_.build, steps, lengths.elem()).reshape({steps, 1, 1}),
                   lengths.reshape({1, batch, 1}));
  }

  Direction read(int64_t d) const {
    /// Parts of `hidden` rows of one direction.
    const auto parts = [&](const std::optional<Term>& all, int64_t first, int64_t count) {
      std::vector<Term> made;
      for (int64_t i = first; all && i < first + count; ++i)
        made.push_back(all->slice(0, d, 1).slice(1, i * hidden_, hidden_).squeeze(0));
      return made;
    };
    const auto transposed = [](std::vector<Term> matrices) {
      for (Term& matrix : matrices) matrix = matrix.transpose({1, 0});
      return matrices;
    };
    const auto each = functions_.size() / directions_;
    Direction direction{{functions_.begin() + d * each, functions_.begin() + (d + 1) * each},
                        transposed(parts(w_, 0, gates_)),
                        transposed(parts(r_, 0, gates_))};
    direction.wBias = parts(b_, 0, gates_);
    direction.rBias = parts(b_, gates_, gates_);
    direction.peepholes = parts(p_, 0, 3);
    for (const std::optional<Term>& initial : initial_)
      direction.initial.push_back(initial
                                      ? initial->slice(batchFirst_, d, 1).squeeze(batchFirst_)
                                      : full(context_.build, 0, {x_->dim(1), hidden_}, x_->elem()));
    return direction;
  }

  StepResults recur(const Direction& direction, const Steps& steps, bool backward) const {
    Recurrence recurrence{x_->dim(0), {direction.initial, steps.scanned, steps.captured}};
    if (counts_) recurrence.inputs.scanned.push_back(*counts_);
    recurrence.scannedBackward.assign(recurrence.inputs.scanned.size(), backward);
    recurrence.stackedBackward = {backward};
    return addRecurrence(context_.build, recurrence, [&](const StepInputs& inputs) {
      StepResults results{steps.next(inputs), {}};
      // Beyond its length a sequence stays as it is, and gives 0.
      std::optional<Term> y;
      if (counts_) {
        y = select(inputs.scanned.back(), results.carried.front(), 0);
        for (size_t i = 0; i < states_; ++i)
          results.carried[i] = select(inputs.scanned.back(), results.carried[i], inputs.carried[i]);
      }
      if (context_.wants(0)) results.stacked.push_back(y ? *y : results.carried.front());
      return results;
    });
  }

  NodeContext& context_;
  const Elem elem_;
  const int64_t gates_;
  const size_t states_;
  int64_t directions_ = 1, hidden_ = 0;
  bool backwardFirst_ = false, batchFirst_ = false;
  std::vector<Function> functions_; ///< of one direction behind the other
  std::optional<Term> x_, w_, r_, b_, p_, counts_;
  std::vector<std::optional<Term>> initial_;
};

/// X . W' and W's biases, of each gate and all steps; and R's where `both`, for gates before
/// `both`.
std::vector<Term> products(const Term& x, const Direction& direction, size_t both) {
  std::vector<Term> made;
  for (size_t i = 0; i < direction.w.size(); ++i) {
    made.push_back(matmul(x, direction.w[i]));
    if (direction.wBias.empty()) continue;
    made[i] = made[i] + (i < both ? direction.wBias[i] + direction.rBias[i] : direction.wBias[i]);
  }
  return made;
}

Status importRnn(NodeContext& context) {
  Layer layer(context, 1, 1, {"Tanh"});
  return layer.run([&](const Direction& direction) -> Steps {
    return {products(layer.x(), direction, 1), direction.r,
            [f = direction.functions[0]](const StepInputs& in) {
              return std::vector<Term>{f(in.scanned[0] + matmul(in.carried[0], in.captured[0]))};
            }};
  });
}

/// Gates: update, reset, hidden.
Status importGru(NodeContext& context) {
  Layer layer(context, 3, 1, {"Sigmoid", "Tanh"});
  // Whether the hidden gate's product with R, its bias too, is what is reset; else the state is,
  // before.
  const bool late = need(context.flagAttr("linear_before_reset", false));
  return layer.run([&](const Direction& direction) -> Steps {
    const Function f = direction.functions[0], g = direction.functions[1];
    std::vector<Term> captured = direction.r;
    if (late && !direction.rBias.empty()) captured.push_back(direction.rBias[2]);
    return {products(layer.x(), direction, late ? 2 : 3), captured, [=](const StepInputs& in) {
              const Term& before = in.carried[0];
              const auto gate = [&](size_t i) {
                return f(in.scanned[i] + matmul(before, in.captured[i]));
              };
              const Term reset = gate(1);
              Term product = matmul(late ? before : reset * before, in.captured[2]);
              if (in.captured.size() > 3) product = product + in.captured[3];
              const Term fresh = g(in.scanned[2] + (late ? reset * product : product));
              const Term update = gate(0); // last, so that all that reads it can follow its product
              return std::vector<Term>{(1 - update) * fresh + update * before};
            }};
  });
}

/// Gates: input, output, forget, cell. Carried: hidden and cell.
Status importLstm(NodeContext& context) {
  Layer layer(context, 4, 2, {"Sigmoid", "Tanh", "Tanh"});
  const bool coupled = need(context.flagAttr("input_forget", false));
  return layer.run([&](const Direction& direction) -> Steps {
    const Function f = direction.functions[0], g = direction.functions[1],
                   h = direction.functions[2];
    std::vector<Term> captured = direction.r;
    captured.insert(captured.end(), direction.peepholes.begin(), direction.peepholes.end());
    return {products(layer.x(), direction, 4), captured, [=](const StepInputs& in) {
              const Term& before = in.carried[1];
              const auto sum = [&](size_t i) {
                return in.scanned[i] + matmul(in.carried[0], in.captured[i]);
              };
              const auto gate = [&](size_t i, const Term& cell) {
                return f(in.captured.size() > 4 ? sum(i) + in.captured[4 + i] * cell : sum(i));
              };
              const Term input = gate(0, before), forget = coupled ? 1 - input : gate(2, before);
              const Term kept = forget * before, cell = kept + input * g(sum(3)), bent = h(cell);
              return std::vector<Term>{gate(1, cell) * bent, cell};
            }};
  });
}

constexpr Operator kRecurrentOperators[] = {
    {"GRU", 3, 6, 2, importGru},
    {"LSTM", 3, 8, 3, importLstm},
    {"RNN", 3, 6, 2, importRnn},
};

} // namespace

std::span<const Operator> recurrentOperators() { return kRecurrentOperators; }

} // namespace candela::import
