#pragma once

#include "core/compiler/quantize/correct_bias.h"
#include "core/compiler/quantize/rewrite.h"
#include "core/compiler/quantize/round_adaptive.h"
#include "core/compiler/quantize/run.h"

namespace candela::quantize {

struct Settings {
  CalibrationOptions activations;
  WeightOptions weights;
  bool weightsOnly = false;
  PlanOptions plan;
  bool roundsAdaptively = false; ///< weights; needs data
  bool correctsBias = false;     ///< needs data
};

/// A quantized model and how it came about.
struct Quantized {
  Network network;
  Plan plan; ///< of the float model's nodes
  std::map<std::string, Quantization> steps;
  Rewritten rewritten;
  std::optional<AdaptiveRounding> rounding; ///< where it was asked for
  std::optional<BiasCorrection> biases;     ///< where it was asked for
};

/// What is decided about single nodes, by their index in the float model.
struct Pins {
  std::map<int, std::string> keepFloat; ///< with the reason
  std::set<int> int16;                  ///< whose operands are int16
};

/// Chooses, writes and judges; the same float model and profile each time.
class Quantizer {
public:
  Quantizer(Network network, Settings settings)
      : network_(std::move(network)), settings_(std::move(settings)) {}

  const Network& network() const { return network_; }
  const Settings& settings() const { return settings_; }
  /// Values that any of the choices needs a range of.
  std::set<std::string> observed() const;
  void setProfile(Profile profile) { profile_ = std::move(profile); }
  const Profile& profile() const { return profile_; }
  /// For settings that need more of the data than a profile.
  void setData(const Samples& samples, RunConditions run) {
    samples_ = samples;
    run_ = std::move(run);
    rounded_.clear();
  }

  /// Of the same network, profile and data.
  Quantizer withSettings(Settings settings) const {
    Quantizer other = *this;
    other.settings_ = std::move(settings);
    return other;
  }

  /// Failure, beside those of its parts: invalid_argument without the data that a setting needs.
  Result<Quantized> quantize(const Pins& pins) const;

  /// Keeps float what these devices have no integer rows for: compiles for them, and looks where
  /// each node went. Adds to the pins, with the device's words.
  Status pinByTarget(Pins& pins, const RunConditions& targets) const;

private:
  /// Without what needs data.
  Result<Quantized> quantizePlainly(const Pins& pins) const;
  Network network_;
  Settings settings_;
  Profile profile_;
  Samples samples_;
  RunConditions run_;
  mutable RoundedLayers rounded_; ///< so that trials do not round the same weights again
};

/// Multiply-accumulates of a Conv, Gemm or MatMul; 0 for others.
uint64_t macsOf(const Network& network, int index);

/// Nodes whose names or operators match the glob. Failure: invalid_argument where none does.
Result<std::set<int>> matching(const Network& network, const std::string& glob);

/// One step of accuracy control.
struct Move {
  std::string node, to; ///< "float" or "int16"
  double snr = 0;       ///< after it, of the worst output
  double right = 0;     ///< after it, the share of labels that are met
};
struct Goal {
  std::optional<double> mostLoss; ///< points of accuracy, with labels
  std::optional<double> leastSnr; ///< decibels of the worst output
  int64_t runs = 32;              ///< of the samples, for each trial
};
/// Keeps the nodes float (or int16) that help most, until the goal is met; the path of it. Measures
/// each product once, alone, and goes from the most to the least sensitive one.
Result<std::vector<Move>> meetGoal(const Quantizer& quantizer, const Goal& goal, bool int16First,
                                   const Samples& samples, const std::vector<int64_t>& labels,
                                   const RunConditions& options, const OnProgress& progress,
                                   Pins& pins);
/// The least over the outputs.
double worstSnr(const Network& network, const Comparison& comparison);

} // namespace candela::quantize
