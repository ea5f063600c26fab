// candela train: from labelled data to the weights of a model, on any backend.
#include "core/support/file.h"
#include "tools/candela/support/command.h"
#include "tools/candela/support/model.h"
#include "tools/candela/train/training.h"

namespace candela::tool {
namespace {

constexpr const char* kFooter = R"(Examples:
  candela train digits.onnx --data train_images.npy --scale 0.0625 --labels train_labels.npy \
    --init 1 --epochs 12 --batch 64 --learning-rate 0.004 --schedule cosine --backend cpu -o new.onnx
  candela train model.onnx --data x.npy --labels y.npy --freeze 'backbone*' -o tuned.onnx
  candela train model.onnx --data x.npy --labels y.npy --checkpoint last.ckpt --resume -o out.onnx

Parameters are the constants that layers read: weights, biases, scales of norms. They and what the
optimizer keeps of them are states of the model, which stay on the device between steps. A batch
norm takes the statistics of each batch, and its running ones follow. The result is the model with
other initializers. A seed gives the same bits on a backend, whatever the number of threads; samples
that fill no batch wait for another epoch's order. A checkpoint is written after each epoch.)";

void train(const TrainArguments& arguments, Console& console) {
  refuseBundle(arguments.path);
  Training training(arguments, console);
  training.run();
  training.write(arguments.output);
  if (!arguments.html.empty()) {
    const std::string page = curvePage(training.report(), arguments.path);
    check(writeFile(arguments.html, page.data(), page.size()), kWorkFailed);
  }
  console.print("written {}\n", arguments.output);
  console.writeJson(training.report());
}

void addData(CLI::App* command, TrainArguments& a) {
  command->add_option("MODEL", a.path, "an .onnx model")->required()->type_name("FILE");
  addRepeated(command, "--data", a.data, "samples: an array, or one for each input",
              "[INPUT=]FILE.npy");
  command
      ->add_option("--labels", a.labels,
                   "what each sample should give: a class for cross_entropy, numbers for mse")
      ->required()
      ->type_name("FILE.npy");
  addRepeated(command, "--test-data", a.testData, "samples to judge by after each epoch",
              "[INPUT=]FILE.npy");
  command->add_option("--test-labels", a.testLabels, "their labels")->type_name("FILE.npy");
  addRepeated(command, "--scale", a.scales, "multiplies samples that are stored as integers",
              "[INPUT=]FACTOR");
  command->add_option("--output-name", a.lossOutput, "the output that the loss is of")
      ->type_name("NAME");
}

void addOptimizer(CLI::App* command, TrainArguments& a) {
  command->add_option("--loss", a.loss, "cross_entropy, of scores, or mse")->capture_default_str();
  command->add_option("--optimizer", a.optimizer, "sgd, momentum, adam or adamw")
      ->capture_default_str();
  command->add_option("--learning-rate", a.learningRate, "the size of steps, at first")
      ->check(numberIn(0, 1e6))
      ->capture_default_str();
  command->add_option("--schedule", a.schedule, "of the learning rate: constant, cosine or step")
      ->check(CLI::IsMember({"constant", "cosine", "step"}))
      ->capture_default_str();
  command->add_option("--step-every", a.stepEvery, "of step: epochs; else a third of all")
      ->check(CLI::Range(int64_t{1}, int64_t{1000000}));
  command->add_option("--step-factor", a.stepFactor, "of step: multiplies the rate")
      ->check(numberIn(0, 1))
      ->capture_default_str();
  command->add_option("--momentum", a.momentum, "of momentum: how much of the last step goes on")
      ->check(numberIn(0, 1))
      ->capture_default_str();
  command->add_option("--weight-decay", a.weightDecay, "how fast parameters shrink by themselves")
      ->check(numberIn(0, 1e6))
      ->capture_default_str();
  command->add_option("--clip-norm", a.clipNorm, "the longest that all gradients together may be")
      ->check(numberIn(0, 1e30));
}

void addCourse(CLI::App* command, TrainArguments& a, Console& console) {
  command->add_option("--epochs", a.epochs, "times through all samples")
      ->check(CLI::Range(int64_t{1}, int64_t{1000000}))
      ->capture_default_str();
  command->add_option("--batch", a.batch, "samples a step")
      ->check(CLI::Range(int64_t{1}, int64_t{1000000}))
      ->capture_default_str();
  command->add_option("--seed", a.seed, "of the order of samples")->capture_default_str();
  command
      ->add_option("--shift", a.shift,
                   "of images: moves each by up to so many places, otherwise in each epoch")
      ->check(CLI::Range(int64_t{0}, int64_t{1000}))
      ->capture_default_str();
  addSeedOption(command, a.initSeed, "begin with random parameters, by this seed", "--init");
  addRepeated(command, "--freeze", a.freeze, "parameters, or those of nodes, that stay", "PATTERN");
  command->add_option("--checkpoint", a.checkpoint, "written after each epoch")->type_name("FILE");
  command->add_flag("--resume", a.resumes, "go on from the checkpoint");
  command->add_option("--backend", a.backends, "where to train: backends by preference")
      ->type_name("B")
      ->capture_default_str();
  addRepeated(command, "--option", a.options, "for a backend", "[B.]KEY=VALUE");
  command
      ->add_option("--threads", a.threads,
                   "threads of the host, and of backends that have an option threads")
      ->type_name("N")
      ->check(CLI::Range(1, 4096));
  command->add_option("-o,--output", a.output, "the trained model")
      ->required()
      ->type_name("FILE.onnx");
  command->add_option("--html", a.html, "a page with the curves")->type_name("FILE");
  addJsonOption(command, console);
}

} // namespace

void addTrain(CLI::App& app, Console& console) {
  auto* command = app.add_subcommand("train", "Train a model on labelled data, on any backend.");
  auto arguments = std::make_shared<TrainArguments>();
  addData(command, *arguments);
  addOptimizer(command, *arguments);
  addCourse(command, *arguments, console);
  command->footer(kFooter);
  command->callback([arguments, &console] {
    if (arguments->data.empty()) fail(kBadInput, "--data: no samples to train on");
    train(*arguments, console);
  });
}

} // namespace candela::tool
