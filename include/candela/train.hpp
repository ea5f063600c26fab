/// Gradients and training for C++17: owning types over train.h. Failures throw candela::sdk::Error.
#ifndef CANDELA_TRAIN_HPP
#define CANDELA_TRAIN_HPP

#include <candela/candela.hpp>
#include <candela/train.h>

namespace candela::sdk {

/// What of a model is differentiated; see candela_compile_gradients.
struct Gradients {
  std::string of;               ///< an output; empty: the only one of floats
  std::vector<std::string> wrt; ///< inputs and initializers; empty: all inputs of floats
};

namespace detail {

/// The names of `wrt` as the interface takes them.
class GradientNames {
public:
  explicit GradientNames(const Gradients& gradients)
      : of(gradients.of.empty() ? nullptr : gradients.of.c_str()) {
    for (const std::string& name : gradients.wrt) list_.push_back(name.c_str());
    list_.push_back(nullptr);
  }
  const char* const of;
  const char* const* wrt() const { return list_.size() > 1 ? list_.data() : nullptr; }

private:
  std::vector<const char*> list_;
};

template <typename F>
Model compileGradients(const Gradients& gradients, const Options& options, F&& call) {
  const GradientNames names(gradients);
  candela_model_t* model = nullptr;
  withOptions(options, [&](const candela_options_t& c) {
    check([&](char* error, size_t size) { return call(names, c, &model, error, size); });
  });
  return Model::adopt(model);
}

} // namespace detail

/// A file's model whose outputs are a value and its gradients.
inline Model compileGradients(const std::string& path, const Gradients& gradients = {},
                              const Options& options = {}) {
  return detail::compileGradients(
      gradients, options,
      [&](const detail::GradientNames& names, const candela_options_t& c, candela_model_t** model,
          char* error, size_t size) {
        return candela_compile_gradients(path.c_str(), names.of, names.wrt(), &c, model, error,
                                         size);
      });
}
/// The same of a file's content; `name` stands for its path.
inline Model compileGradients(const void* data, size_t bytes, const std::string& name,
                              const Gradients& gradients = {}, const Options& options = {}) {
  return detail::compileGradients(
      gradients, options,
      [&](const detail::GradientNames& names, const candela_options_t& c, candela_model_t** model,
          char* error, size_t size) {
        return candela_compile_gradients_memory(data, bytes, name.c_str(), names.of, names.wrt(),
                                                &c, model, error, size);
      });
}

/// How a model is trained; see candela_training_t.
struct Training {
  std::string loss = "cross_entropy"; ///< or mse
  std::string output;                 ///< that the loss is of; empty: the only one
  std::string optimizer = "adam";     ///< sgd, momentum, adam or adamw
  std::vector<std::string> freeze;    ///< globs of parameters or nodes
  double momentum = 0.9;
  double weightDecay = 0;
  double clipNorm = 0;
  bool isRandom = false; ///< begins with random parameters, by the seed
  uint64_t seed = 0;
};

/// A step of training, compiled once; what it learns stays on the device. Movable; one thread at a
/// time.
class Trainer {
public:
  /// Of an .onnx file.
  static Trainer create(const std::string& path, const Training& training = {},
                        const Options& options = {}) {
    return make(training, options,
                [&](const candela_training_t& t, const candela_options_t& c,
                    candela_trainer_t** trainer, char* error, size_t size) {
                  return candela_trainer_create(path.c_str(), &t, &c, trainer, error, size);
                });
  }
  /// Of the content of such a file; `name` stands for its path.
  static Trainer create(const void* data, size_t bytes, const std::string& name,
                        const Training& training = {}, const Options& options = {}) {
    return make(training, options,
                [&](const candela_training_t& t, const candela_options_t& c,
                    candela_trainer_t** trainer, char* error, size_t size) {
                  return candela_trainer_create_memory(data, bytes, name.c_str(), &t, &c, trainer,
                                                       error, size);
                });
  }

  candela_trainer_t* get() const { return trainer_.get(); }

  /// The model's inputs, then the labels.
  std::vector<Port> inputs() const {
    return ports(candela_trainer_input_count, candela_trainer_input);
  }
  std::vector<Port> parameters() const {
    return ports(candela_trainer_parameter_count, candela_trainer_parameter);
  }

  /// One step; `batch` as inputs() says. The loss of the batch before it.
  double step(const std::vector<candela_tensor_t>& batch, double learningRate) {
    double loss = 0;
    detail::check([&](char* error, size_t size) {
      return candela_trainer_step(trainer_.get(), batch.data(), static_cast<uint32_t>(batch.size()),
                                  learningRate, &loss, error, size);
    });
    return loss;
  }
  /// Copies parameter `index`; as candela_trainer_read wants it.
  void read(uint32_t index, candela_tensor_t& output) {
    detail::check([&](char* error, size_t size) {
      return candela_trainer_read(trainer_.get(), index, &output, error, size);
    });
  }
  /// Writes the trained model, an .onnx file.
  void save(const std::string& path) {
    detail::check([&](char* error, size_t size) {
      return candela_trainer_save(trainer_.get(), path.c_str(), error, size);
    });
  }
  std::string reportJson() const {
    const char* const report = candela_trainer_report_json(trainer_.get());
    return report ? report : "";
  }

private:
  struct Free {
    void operator()(candela_trainer_t* trainer) const { candela_trainer_free(trainer); }
  };
  explicit Trainer(candela_trainer_t* trainer) : trainer_(trainer) {}

  template <typename F>
  static Trainer make(const Training& training, const Options& options, F&& call) {
    std::vector<const char*> freeze;
    for (const std::string& pattern : training.freeze) freeze.push_back(pattern.c_str());
    freeze.push_back(nullptr);
    candela_training_t t = CANDELA_TRAINING_INIT;
    t.flags = training.isRandom ? CANDELA_TRAIN_RANDOM : 0;
    t.loss = training.loss.c_str();
    t.output = training.output.empty() ? nullptr : training.output.c_str();
    t.optimizer = training.optimizer.c_str();
    t.freeze = freeze.data();
    t.momentum = training.momentum;
    t.weight_decay = training.weightDecay;
    t.clip_norm = training.clipNorm;
    t.seed = training.seed;
    candela_trainer_t* trainer = nullptr;
    detail::withOptions(options, [&](const candela_options_t& c) {
      detail::check([&](char* error, size_t size) { return call(t, c, &trainer, error, size); });
    });
    return Trainer(trainer);
  }
  template <typename Count, typename Get> std::vector<Port> ports(Count count, Get get) const {
    std::vector<Port> ports;
    for (uint32_t i = 0, n = count(trainer_.get()); i < n; ++i) {
      candela_tensor_t t{};
      const char* name = get(trainer_.get(), i, &t);
      ports.push_back({name, t.elem, std::vector<int64_t>(t.dims, t.dims + t.rank), t.bytes, true});
    }
    return ports;
  }

  std::unique_ptr<candela_trainer_t, Free> trainer_;
};

} // namespace candela::sdk

#endif
