#pragma once

#include "core/compiler/train/model_file.h"
#include "core/compiler/train/trainer.h"
#include "tools/candela/train/checkpoint.h"
#include "tools/candela/train/data.h"
#include "tools/candela/train/schedule.h"

/// What `candela train` was asked for, and the course of training.
namespace candela::tool {

struct TrainArguments {
  std::string path, output, labels, testLabels, lossOutput, checkpoint, html;
  std::vector<std::string> data, testData, scales, freeze, options;
  std::string loss = "cross_entropy";
  std::string optimizer = "adam";
  std::string schedule = "constant";
  std::string backends = "soft";
  double learningRate = 1e-3;
  double momentum = 0.9;
  double weightDecay = 0;
  double clipNorm = 0;
  double stepFactor = 0.1;
  int64_t epochs = 10;
  int64_t batch = 32;
  int64_t stepEvery = 0;
  int64_t shift = 0;
  uint64_t seed = 0;
  std::optional<uint64_t> initSeed;
  int threads = 0; ///< 0: as many as are usual
  bool resumes = false;
};

/// One training: data, the compiled step and how far it is. Throws Failure.
class Training {
public:
  Training(const TrainArguments& arguments, Console& console);

  /// Epoch by epoch, telling the console; writes checkpoints.
  void run();
  /// What was done, for --json: settings, one record for each epoch, and the loss of each step of
  /// this call.
  const Json& report() const { return report_; }
  /// Writes the model with what was learned.
  void write(const std::string& path) const;

private:
  void compile();
  void resume();
  Json settings() const;
  /// How much is trained.
  void tellParameters() const;
  Json epoch(int64_t number);
  void runStep(int64_t number, const std::vector<int64_t>& samples);
  void judge(Json& record);
  void tell(const Json& record) const;
  void save(int64_t epochs);
  [[noreturn]] void failAtNumber(const std::string& what, int64_t step) const;

  const TrainArguments& a_;
  Console& console_;
  train::ModelFile file_;
  std::vector<train::Parameter> parameters_;
  std::vector<std::shared_ptr<runtime::plugin::Device>> devices_;
  std::optional<TrainingData> data_, testData_;
  std::optional<TrainingLabels> labels_, testLabels_;
  std::optional<train::Trainer> trainer_;
  std::optional<train::Evaluator> evaluator_;
  train::StepSettings step_;
  Schedule schedule_;
  int64_t stepsEach_ = 0;
  int64_t firstEpoch_ = 0;
  double lossSum_ = 0;
  int64_t right_ = 0;  ///< of the labels of the epoch
  int64_t judged_ = 0; ///< labels of the epoch
  Json history_ = Json::array();
  Json losses_ = Json::array();
  Json report_;
};

/// A page with the curves of loss and accuracy.
std::string curvePage(const Json& report, const std::string& model);

} // namespace candela::tool
