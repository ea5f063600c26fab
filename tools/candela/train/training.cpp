#include "tools/candela/train/training.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>

#include "core/support/hash.h"
#include "tools/candela/support/backend_options.h"

namespace candela::tool {
namespace {

using Clock = std::chrono::steady_clock;

/// Adds how many threads there are to what a backend is told, where it has such an option.
bool passThreads(const runtime::plugin::FoundDevice& found, int threads,
                 std::vector<std::string>& options) {
  for (const cdl_option_schema_t& option : found.plugin->options()) {
    if (std::string_view(option.name) != "threads") continue;
    options.push_back(fmt::format("{}.threads={}", found.plugin->name(), threads));
    return true;
  }
  return false;
}

std::vector<std::shared_ptr<runtime::plugin::Device>> devicesFor(const TrainArguments& a,
                                                                 Console& console) {
  std::vector<std::string> options = a.options;
  if (a.threads > 0) {
    for (const std::string& option : options)
      if (const std::string key = option.substr(0, option.find('='));
          key == "threads" || key.ends_with(".threads"))
        fail(kBadInput, "--threads {}: --option says how many threads too", a.threads);
    sdk::setThreads(static_cast<uint32_t>(a.threads));
  }
  std::vector<std::shared_ptr<runtime::plugin::Device>> devices;
  bool isPassed = false;
  for (const std::string& name : splitList(a.backends)) {
    if (name == "soft") continue;
    const auto found = check(runtime::plugin::findDevice(name));
    if (a.threads > 0) isPassed |= passThreads(found, a.threads, options);
    devices.push_back(check(found.open(optionsOf(options, found))));
  }
  checkBackendOptions(options, devices);
  if (a.threads > 0 && !isPassed && !devices.empty())
    console.note("--threads {}: for the host's steps alone: backend {} has no such option",
                 a.threads, a.backends);
  return devices;
}

/// All numbers below `count`, in an order that follows from the seed and the epoch.
std::vector<int64_t> shuffled(int64_t count, uint64_t seed, int64_t epoch) {
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  uint64_t state = splitmix64(splitmix64(seed) + static_cast<uint64_t>(epoch));
  for (size_t i = order.size(); i > 1; --i) {
    state = splitmix64(state + i);
    std::swap(order[i - 1], order[state % i]);
  }
  return order;
}

/// How many of the labels have the largest score of their place: scores [n, classes, places..].
int64_t rightOnes(const Tensor& scores, const Tensor& labels, int64_t images) {
  const int64_t classes = scores.dims[1],
                places = scores.count() / std::max<int64_t>(1, scores.dims[0] * classes);
  const float* at = scores.as<float>();
  int64_t right = 0;
  for (int64_t i = 0; i < images * places; ++i) {
    const float* line = at + i / places * classes * places + i % places;
    int64_t best = 0;
    for (int64_t c = 1; c < classes; ++c)
      if (line[c * places] > line[best * places]) best = c;
    right += best == labels.as<int32_t>()[i];
  }
  return right;
}

/// Of one output against what it should be: the sum of its losses over `rows` samples, each weighed
/// as in a mean over a batch.
double lossOf(train::Loss loss, const Tensor& scores, const Tensor& labels, int64_t rows) {
  const int64_t images = std::max<int64_t>(1, scores.dims[0]);
  const int64_t each = scores.count() / images;
  const float* at = scores.as<float>();
  double sum = 0;
  if (loss == train::Loss::meanSquares) {
    for (int64_t i = 0; i < rows * each; ++i) {
      const double off = static_cast<double>(at[i]) - static_cast<double>(labels.as<float>()[i]);
      sum += off * off / static_cast<double>(each);
    }
    return sum;
  }
  const int64_t classes = scores.dims[1];
  const int64_t places = each / classes;
  for (int64_t i = 0; i < rows * places; ++i) {
    const float* line = at + i / places * each + i % places;
    double most = -HUGE_VAL;
    double all = 0;
    for (int64_t c = 0; c < classes; ++c) most = std::max(most, double(line[c * places]));
    for (int64_t c = 0; c < classes; ++c) all += std::exp(double(line[c * places]) - most);
    const int32_t label = labels.as<int32_t>()[i];
    sum -= (double(line[label * places]) - most - std::log(all)) / static_cast<double>(places);
  }
  return sum;
}

bool isFinite(const Tensor& tensor) {
  const float* at = tensor.as<float>();
  return std::all_of(at, at + tensor.count(), [](float value) { return std::isfinite(value); });
}

/// Of those that are not trained, with their names.
std::string hashOfConstants(const import::onnx_io::Model& model,
                            const std::vector<train::Parameter>& parameters) {
  std::string texts;
  for (const import::onnx_io::Initializer& each : model.graph.initializers)
    if (!std::ranges::count(parameters, each.name, &train::Parameter::name))
      texts += each.name + " " + hashOf(each.tensor) + "\n";
  return hashText(sha256(texts.data(), texts.size()));
}

/// Told before minutes have gone.
void checkFolder(const std::string& option, const std::string& path) {
  if (std::filesystem::is_directory(path))
    fail(kBadInput, "{} {}: it is a folder, not a file", option, path);
  const auto folder = std::filesystem::path(path).parent_path();
  if (!folder.empty() && !std::filesystem::is_directory(folder))
    fail(kBadInput, "{} {}: there is no folder '{}'", option, path, folder.string());
}

/// What is written must not take the place of what is read, or of what else is written. Devices may
/// take several.
void checkApart(const TrainArguments& a, const std::string& json) {
  std::map<std::filesystem::path, std::string> taken;
  for (const auto& [option, path] : {std::pair<const char*, const std::string*>("MODEL", &a.path),
                                     {"-o", &a.output},
                                     {"--checkpoint", &a.checkpoint},
                                     {"--html", &a.html},
                                     {"--json", &json}}) {
    const bool isDevice =
        std::filesystem::exists(*path) && !std::filesystem::is_regular_file(*path);
    if (path->empty() || *path == "-" || isDevice) continue;
    const auto [other, isNew] = taken.emplace(std::filesystem::weakly_canonical(*path), option);
    if (!isNew) fail(kBadInput, "{} {}: it is the file of {}", option, *path, other->second);
  }
}

train::StepSettings stepSettings(const TrainArguments& a) {
  train::StepSettings step;
  const auto loss = train::parseLoss(a.loss);
  if (!loss) fail(kBadInput, "--loss {}: cross_entropy or mse", a.loss);
  const auto optimizer = train::parseOptimizer(a.optimizer);
  if (!optimizer) fail(kBadInput, "--optimizer {}: sgd, momentum, adam or adamw", a.optimizer);
  step.loss = *loss;
  step.optimizer.kind = *optimizer;
  step.optimizer.momentum = a.momentum;
  step.optimizer.weightDecay = a.weightDecay;
  step.clipNorm = a.clipNorm;
  step.output = a.lossOutput;
  return step;
}

} // namespace

Training::Training(const TrainArguments& arguments, Console& console)
    : a_(arguments), console_(console), step_(stepSettings(arguments)) {
  for (const auto& [option, path] : {std::pair<const char*, const std::string*>("-o", &a_.output),
                                     {"--checkpoint", &a_.checkpoint},
                                     {"--html", &a_.html},
                                     {"--json", &console_.jsonPath}})
    checkFolder(option, *path);
  if (a_.output.empty()) fail(kBadInput, "-o: the name of the file is empty");
  checkApart(a_, console_.jsonPath);
  if (a_.resumes && a_.checkpoint.empty()) fail(kBadInput, "--resume needs --checkpoint FILE");
  if (a_.testData.empty() != a_.testLabels.empty())
    fail(kBadInput, "--test-data and --test-labels go together");
  devices_ = devicesFor(a_, console_);
  file_ = check(train::readModelFile(a_.path));
  parameters_ = check(train::parametersOf(file_.model, a_.freeze));
  checkBatch(file_.model, a_.batch);
  data_.emplace(file_.model, a_.data, a_.scales);
  data_->checkScales();
  labels_.emplace(a_.labels, data_->count());
  if (a_.batch > data_->count())
    fail(kBadInput, "--batch {}: there are {} samples", a_.batch, data_->count());
  stepsEach_ = data_->count() / a_.batch;
  const int64_t every = a_.stepEvery > 0 ? a_.stepEvery : std::max<int64_t>(1, a_.epochs / 3);
  schedule_ = {a_.schedule, a_.learningRate, a_.epochs * stepsEach_, every * stepsEach_,
               a_.stepFactor};
  for (size_t i = 0; a_.initSeed && i < parameters_.size(); ++i)
    parameters_[i].value = check(train::initialValue(parameters_[i], splitmix64(*a_.initSeed + i)));
  compile();
  tellParameters();
  if (a_.resumes) resume();
}

void Training::tellParameters() const {
  int64_t tensors = 0;
  int64_t values = 0;
  for (const train::Parameter& parameter : parameters_) {
    if (!train::isTrained(parameter.role) ||
        std::ranges::count(trainer_->step().unreached, parameter.name))
      continue;
    ++tensors;
    values += parameter.value.count();
  }
  console_.print("training {} tensors with {} values on {} samples\n", tensors,
                 groupedText(static_cast<uint64_t>(values)), data_->count());
}

void Training::compile() {
  const Progress progress("compiling");
  step_.import.shapes = data_->shapes(a_.batch);
  train::StepGraph step = check(train::makeStep(file_.model, parameters_, step_));
  for (const std::string& name : step.unreached)
    console_.note("nothing of the loss depends on '{}', which stays as it is", name);
  const int64_t classes = step.scores.rank() > 1 ? step.scores.dim(1) : 0;
  labels_->check(step_.loss, step.labels, classes);
  if (!a_.testData.empty()) {
    testData_.emplace(file_.model, a_.testData, a_.scales);
    testLabels_.emplace(a_.testLabels, testData_->count());
    testLabels_->check(step_.loss, step.labels, classes);
    evaluator_.emplace(check(train::Evaluator::create(file_.model, parameters_, step_, devices_)));
  }
  trainer_.emplace(
      check(train::Trainer::create(std::move(step), step_.optimizer, a_.path, devices_)));
}

Json Training::settings() const {
  return {{"loss", a_.loss},
          {"optimizer", a_.optimizer},
          {"learning_rate", a_.learningRate},
          {"schedule", a_.schedule},
          {"step_every", a_.stepEvery},
          {"step_factor", a_.stepFactor},
          {"momentum", a_.momentum},
          {"weight_decay", a_.weightDecay},
          {"clip_norm", a_.clipNorm},
          {"epochs", a_.epochs},
          {"batch", a_.batch},
          {"samples", data_->count()},
          {"seed", a_.seed},
          {"shift", a_.shift},
          {"freeze", a_.freeze},
          {"data", data_->hash()},
          {"labels", labels_->hash()},
          {"constants", hashOfConstants(file_.model, parameters_)},
          {"scale", a_.scales},
          {"output_name", a_.lossOutput},
          {"backend", a_.backends},
          {"parameters", parameters_.size()}};
}

/// All that changes the numbers of a step has to be as it was; constant rates go on beyond the
/// epochs that were asked for first.
void Training::resume() {
  Checkpoint found = readCheckpoint(a_.checkpoint, trainer_->step().states);
  const Json now = settings();
  for (const auto& [key, value] : now.items()) {
    if (key == "epochs" && a_.schedule == "constant") continue;
    const Json before = found.settings.contains(key) ? found.settings[key] : Json();
    if (before != value)
      fail(kBadInput, "{}: the checkpoint was made with {} {}, this training has {}", a_.checkpoint,
           key, before.dump(), value.dump());
  }
  if (found.epochs > a_.epochs)
    fail(kBadInput, "{}: {} epochs are done, more than --epochs {}", a_.checkpoint, found.epochs,
         a_.epochs);
  firstEpoch_ = found.epochs;
  history_ = std::move(found.history);
  trainer_->start(std::move(found.states));
  console_.print("going on from {}, {} of {} epochs done\n", a_.checkpoint, firstEpoch_, a_.epochs);
}

void Training::run() {
  const Clock::time_point start = Clock::now();
  for (int64_t number = firstEpoch_; number < a_.epochs; ++number) {
    const Json record = epoch(number);
    history_.push_back(record);
    tell(record);
    if (!a_.checkpoint.empty()) save(number + 1);
  }
  report_ = console_.report("train");
  report_["model"] = a_.path;
  report_["backend"] = a_.backends;
  report_["settings"] = settings();
  report_["epochs"] = history_;
  report_["losses"] = losses_;
  report_["seconds"] = millisecondsSince(start) / 1000;
}

Json Training::epoch(int64_t number) {
  const Clock::time_point start = Clock::now();
  const std::vector<int64_t> order = shuffled(data_->count(), a_.seed, number);
  lossSum_ = 0;
  right_ = judged_ = 0;
  for (int64_t i = 0; i < stepsEach_; ++i) {
    const auto first = order.begin() + i * a_.batch;
    runStep(number * stepsEach_ + i, {first, first + a_.batch});
  }
  check(trainer_->readStates(), kWorkFailed);
  if (!std::ranges::all_of(trainer_->states(), isFinite))
    failAtNumber("a parameter is not finite", (number + 1) * stepsEach_ - 1);
  Json record = {{"epoch", number + 1},
                 {"loss", lossSum_ / static_cast<double>(stepsEach_)},
                 {"learning_rate", learningRate(schedule_, number * stepsEach_)}};
  if (judged_ > 0) record["accuracy"] = static_cast<double>(right_) / static_cast<double>(judged_);
  if (evaluator_) judge(record);
  record["seconds"] = millisecondsSince(start) / 1000;
  return record;
}

void Training::runStep(int64_t number, const std::vector<int64_t>& samples) {
  const uint64_t shiftSeed = splitmix64(splitmix64(~a_.seed) + static_cast<uint64_t>(number));
  const std::map<std::string, Tensor> batch = data_->shiftedBatch(samples, a_.shift, shiftSeed);
  train::StepInput input;
  // The step's inputs are those of the model in its order, whatever their names.
  for (const import::onnx_io::ValueInfo& each : file_.model.graph.inputs)
    if (const auto found = batch.find(each.name); found != batch.end())
      input.data.push_back(found->second);
  input.labels = labels_->batch(samples);
  input.learningRate = learningRate(schedule_, number);
  input.number = number + 1;
  const bool isClassifier = step_.loss == train::Loss::crossEntropy;
  const train::Reads reads = isClassifier ? train::Reads::scores : train::Reads::loss;
  const train::StepOutput output = check(trainer_->run(input, reads), kWorkFailed);
  if (!std::isfinite(output.loss)) failAtNumber(fmt::format("the loss is {}", output.loss), number);
  losses_.push_back(output.loss);
  lossSum_ += output.loss;
  if (!isClassifier) return;
  right_ += rightOnes(output.scores, input.labels, a_.batch);
  judged_ += input.labels.count();
}

void Training::failAtNumber(const std::string& what, int64_t step) const {
  std::string kept = "no --checkpoint was asked for";
  if (!a_.checkpoint.empty())
    kept = history_.empty() ? fmt::format("{} was not written", a_.checkpoint)
                            : fmt::format("{} is intact, of epoch {}", a_.checkpoint,
                                          history_.back().at("epoch").get<int64_t>());
  fail(kWorkFailed,
       "{}: {} in step {} of epoch {}; {}; a smaller --learning-rate or --clip-norm may "
       "help",
       a_.path, what, step % stepsEach_ + 1, step / stepsEach_ + 1, kept);
}

/// The last batch is filled up by samples that do not count.
void Training::judge(Json& record) {
  double loss = 0;
  int64_t right = 0;
  int64_t labels = 0;
  for (int64_t first = 0; first < testData_->count(); first += a_.batch) {
    const int64_t rows = std::min(a_.batch, testData_->count() - first);
    std::vector<int64_t> samples(static_cast<size_t>(a_.batch));
    for (int64_t i = 0; i < a_.batch; ++i)
      samples[static_cast<size_t>(i)] = first + std::min(i, rows - 1);
    const Tensor wanted = testLabels_->batch(samples);
    const Tensor scores =
        check(evaluator_->run(testData_->batch(samples), trainer_->states()), kWorkFailed);
    loss += lossOf(step_.loss, scores, wanted, rows);
    labels += wanted.count() / a_.batch * rows;
    if (step_.loss == train::Loss::crossEntropy) right += rightOnes(scores, wanted, rows);
  }
  const double mean = loss / static_cast<double>(testData_->count());
  record["test_loss"] = std::isfinite(mean) ? Json(mean) : Json(); // JSON has no NaN
  if (!std::isfinite(mean))
    console_.note("the loss of --test-data is {} behind epoch {}", mean,
                  record["epoch"].get<int64_t>());
  if (step_.loss == train::Loss::crossEntropy)
    record["test_accuracy"] = static_cast<double>(right) / static_cast<double>(labels);
}

void Training::tell(const Json& record) const {
  std::string line = fmt::format("epoch {:>3}/{}  loss {:.4f}", record["epoch"].get<int64_t>(),
                                 a_.epochs, record["loss"].get<double>());
  if (record.contains("accuracy"))
    line += fmt::format("  accuracy {:.2f} %", 100 * record["accuracy"].get<double>());
  if (record.contains("test_loss") && record["test_loss"].is_number())
    line += fmt::format("  test loss {:.4f}", record["test_loss"].get<double>());
  if (record.contains("test_accuracy"))
    line += fmt::format("  test accuracy {:.2f} %", 100 * record["test_accuracy"].get<double>());
  console_.print("{}  {}\n", line, timeText(1000 * record["seconds"].get<double>()));
  std::fflush(stdout); // an epoch may take long, and a log is read meanwhile
}

void Training::save(int64_t epochs) {
  writeCheckpoint(a_.checkpoint,
                  {epochs, epochs * stepsEach_, settings(), history_, trainer_->states()},
                  trainer_->step().states);
}

void Training::write(const std::string& path) const {
  std::vector<train::Parameter> learned = parameters_;
  for (size_t i = 0; i < learned.size(); ++i) learned[i].value = trainer_->states()[i];
  check(train::writeTrained(file_, learned, path), kWorkFailed);
}

} // namespace candela::tool
