// candela quantize: from a float model to integers, by running it on data.
#include "core/compiler/import/formats.h"
#include "core/compiler/quantize/quantizer.h"

#include <algorithm>
#include <filesystem>

#include "core/compiler/import/onnx_io/write.h"
#include "core/compiler/quantize/norms.h"
#include "core/compiler/quantize/states.h"
#include "core/support/file.h"
#include "core/support/text/pairs.h"
#include "core/support/text/scan.h"
#include "tools/candela/quantize/compared.h"
#include "tools/candela/quantize/report.h"
#include "tools/candela/support/backend_options.h"
#include "tools/candela/support/page.h"

namespace candela::tool {
namespace {

using quantize::Calibrator, quantize::Network, quantize::Pins, quantize::Profile,
    quantize::Quantized, quantize::Quantizer, quantize::RunConditions, quantize::Samples,
    quantize::Scaling, quantize::Scheme, quantize::Settings;

constexpr const char* kFooter = R"(Examples:
  candela quantize digits.onnx --data train_images.npy --scale 0.0625 -o digits_int8.onnx
  candela quantize resnet50.onnx --data images/ --calibrate entropy --backend npu_sim -o int8.onnx
  candela quantize model.onnx --data images/ --dump-profile seen.txt
  candela quantize model.onnx --load-profile seen.txt --calibrate mse -o model_int8.onnx
  candela quantize decoder.onnx --weights-only --weights int4 --block 32 -o decoder_int4.onnx
  candela quantize --compare-reports minmax.json entropy.json --html compared.html

Data: .npy named after the input (or any name where there is one input), .npz with a member for each
input, folders of them, or INPUT=FILE. The first axis counts samples. Integers become reals as they
are, unless --scale says otherwise. A profile is what was seen, as text; it is reused for other
calibrators and schemes of the same model.)";

struct Arguments {
  std::string path, output, targets, dumpProfile, labels, html, pins, writePins;
  std::string calibrator = "minmax";
  std::string scheme; ///< empty: what suits the targets
  std::string activations = "uint8";
  std::string weights = "int8";
  std::string runOn = "cpu";
  std::vector<std::string> data, profiles, dims, shapes, scales, keepFloat, int16, options, reports;
  double percentile = 99.999;
  std::optional<double> mostLoss, leastSnr;
  int64_t block = 0;
  int64_t batch = 1;
  int64_t compared = 32;
  bool perTensor = false;
  bool weightsOnly = false;
  bool integerFunctions = false;
  std::vector<std::string> states;
  bool channels = false;
  bool prefersInt16 = false;
  bool equalizes = false;
  bool roundsAdaptively = false;
  bool correctsBias = false;
};

/// Whether the first of the devices has no float arithmetic.
bool lacksFloats(const RunConditions& targets) {
  return !targets.devices.empty() && !targets.devices[0]->target().claims(CDL_PROFILE_FP32);
}

/// Whether everything is to become integers that can.
bool wantsIntegerRows(const Arguments& a, const RunConditions& targets) {
  return a.integerFunctions || lacksFloats(targets);
}

/// The inputs and outputs of f32 that the texts of --state mean; others are no reals, and stay.
std::map<std::string, std::string> statesOf(const Arguments& a, const Network& network) {
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  for (const quantize::Port& port : network.ports()) inputs.push_back(port.name);
  for (const auto& output : network.model.graph.outputs) outputs.push_back(output.name);
  std::map<std::string, std::string> states;
  for (const std::string& text : a.states) {
    const std::vector<text::NamePair> some = text::pairsOf(text, inputs, outputs);
    if (some.empty())
      fail(kBadInput, "--state {}: not of the form INPUT=OUTPUT; inputs are {}, outputs {}", text,
           fmt::join(inputs, ", "), fmt::join(outputs, ", "));
    for (const text::NamePair& pair : some)
      if (network.isReal(pair.first)) states.insert(pair);
  }
  return states;
}

Settings settingsOf(const Arguments& a, const RunConditions& targets) {
  Settings settings;
  const auto calibrator = quantize::parseCalibrator(a.calibrator);
  if (!calibrator)
    fail(kBadInput, "--calibrate {}: minmax, moving-average, percentile, entropy or mse",
         a.calibrator);
  // Sums of values whose zero points are 0 are one instruction; a device of integers alone has
  // nothing else for them.
  const std::string suitable = lacksFloats(targets) ? "symmetric-uint8" : "asymmetric";
  const auto scheme = quantize::parseScheme(a.scheme.empty() ? suitable : a.scheme);
  if (!scheme)
    fail(kBadInput, "--scheme {}: asymmetric, symmetric, symmetric-uint8 or power-of-two",
         a.scheme);
  const std::map<std::string, Elem> activations = {
      {"uint8", Elem::u8_}, {"int8", Elem::i8_}, {"int16", Elem::i16_}};
  const std::map<std::string, Elem> weights = {{"int8", Elem::i8_}, {"int4", Elem::i4_}};
  if (!activations.count(a.activations))
    fail(kBadInput, "--activations {}: uint8, int8 or int16", a.activations);
  if (!weights.count(a.weights)) fail(kBadInput, "--weights {}: int8 or int4", a.weights);
  settings.activations = {*calibrator, *scheme, activations.at(a.activations), a.percentile};
  settings.weights = {weights.at(a.weights), !a.perTensor, a.block, *scheme == Scheme::powerOfTwo};
  settings.weightsOnly = a.weightsOnly;
  settings.plan.integerRows = wantsIntegerRows(a, targets);
  settings.roundsAdaptively = a.roundsAdaptively;
  settings.correctsBias = a.correctsBias;
  return settings;
}

std::map<std::string, Scaling> scalingOf(const Arguments& a) {
  std::map<std::string, Scaling> scaling;
  for (const std::string& text : a.scales) {
    const size_t equals = text.rfind('=');
    const std::string name = equals == text.npos ? "" : text.substr(0, equals);
    const auto parts =
        text::split(equals == text.npos ? text : std::string_view(text).substr(equals + 1), ',');
    const auto factor = text::parseNumber<double>(parts[0]);
    const auto offset =
        parts.size() > 1 ? text::parseNumber<double>(parts[1]) : std::optional<double>(0);
    if (!factor || !offset || parts.size() > 2)
      fail(kBadInput, "--scale {}: expected [INPUT=]FACTOR[,OFFSET]", text);
    scaling[name] = {*factor, *offset};
  }
  return scaling;
}

std::vector<std::shared_ptr<runtime::plugin::Device>>
devicesOf(const std::string& backends, const std::vector<std::string>& options) {
  std::vector<std::shared_ptr<runtime::plugin::Device>> devices;
  for (const std::string& name : splitList(backends)) {
    if (name == "soft") continue;
    const auto found = check(runtime::plugin::findDevice(name));
    devices.push_back(check(found.open(optionsOf(options, found))));
  }
  return devices;
}

/// Where the models run that are measured: a missing default is no error.
std::vector<std::shared_ptr<runtime::plugin::Device>> runDevices(const Arguments& a,
                                                                 bool isDefault) {
  if (isDefault && !runtime::plugin::findDevice(a.runOn)) return {};
  return devicesOf(a.runOn, {});
}

RunConditions shapesOf(const Arguments& a) {
  RunConditions run;
  for (const std::string& text : a.dims) {
    const Binding dim = parseBinding("--dim", text);
    const auto value = text::parseNumber<int64_t>(dim.value);
    if (!value || *value < 0) fail(kBadInput, "--dim {}: '{}' is no count", text, dim.value);
    run.dims[dim.name] = *value;
  }
  for (const std::string& text : a.shapes) {
    const Binding shape = parseBinding("--shape", text);
    for (const std::string& word : text::split(shape.value, 'x')) {
      const auto value = text::parseNumber<int64_t>(word);
      if (!value || *value < 0) fail(kBadInput, "--shape {}: '{}' is no count", text, word);
      run.shapes[shape.name].push_back(*value);
    }
  }
  return run;
}

std::vector<int64_t> labelsOf(const Arguments& a, const Samples& samples) {
  if (a.labels.empty()) return {};
  const Tensor labels = check(readNpy(a.labels));
  if (isFloat(labels.elem) || labels.count() != samples.samples())
    fail(kBadInput, "--labels {}: {} for {} samples", a.labels, labels.typeText(),
         samples.samples());
  return labels.toInts();
}

/// Lines "float NODE" and "int16 NODE", as the report writes them.
void readPins(const Arguments& a, std::vector<std::string>& keepFloat,
              std::vector<std::string>& int16) {
  if (a.pins.empty()) return;
  const Bytes file = check(mapFile(a.pins));
  int number = 0;
  for (const std::string& line :
       text::split({reinterpret_cast<const char*>(file.data()), file.size()}, '\n')) {
    ++number;
    const size_t space = line.find(' ');
    if (line.empty() || line[0] == '#') continue;
    const std::string word = line.substr(0, space);
    if (space == line.npos || (word != "float" && word != "int16"))
      fail(kBadInput, "{}:{}: expected 'float NODE' or 'int16 NODE'", a.pins, number);
    std::string node = line.substr(space + 1);
    node = node.substr(0, node.find("  #"));
    (word == "float" ? keepFloat : int16).push_back(node);
  }
}

Pins pinsOf(const Arguments& a, const Network& network) {
  std::vector<std::string> keepFloat = a.keepFloat, int16 = a.int16;
  readPins(a, keepFloat, int16);
  Pins pins;
  for (const std::string& glob : keepFloat)
    for (const int node : check(quantize::matching(network, glob).context("--keep-float")))
      pins.keepFloat[node] = "asked for";
  for (const std::string& glob : int16)
    for (const int node : check(quantize::matching(network, glob).context("--int16")))
      pins.int16.insert(node);
  return pins;
}

std::string pinsText(const Network& network, const Pins& pins) {
  std::string text = "# What stays float or becomes int16; read by candela quantize --pins.\n";
  for (const auto& [node, why] : pins.keepFloat)
    text += fmt::format("float {}  # {}\n", network.nodeName(node), why);
  for (const int node : pins.int16) text += fmt::format("int16 {}\n", network.nodeName(node));
  return text;
}

void checkUsage(const Arguments& a) {
  const bool needsData = !a.weightsOnly;
  if (a.output.empty() && a.dumpProfile.empty())
    fail(kBadInput, "nothing to write: say -o FILE.onnx, or --dump-profile FILE");
  if (needsData && a.data.empty() && a.profiles.empty())
    fail(kBadInput, "--data: no data to run the model on, and no --load-profile");
  if ((a.mostLoss || a.leastSnr) && a.data.empty())
    fail(kBadInput, "--max-loss and --min-snr need --data");
  if (a.roundsAdaptively && a.data.empty())
    fail(kBadInput, "--round-adaptive needs --data: a profile does not hold what layers read");
  if (a.correctsBias && a.data.empty())
    fail(kBadInput, "--correct-bias needs --data: a profile does not hold what layers make of it");
  if (a.mostLoss && a.labels.empty()) fail(kBadInput, "--max-loss needs --labels");
  if (a.block && a.weights != "int4" && !a.weightsOnly)
    fail(kBadInput, "--block {}: blocks are for --weights int4 and for --weights-only", a.block);
}

/// Told before minutes have gone.
void checkFolders(const Arguments& a) {
  for (const auto& [option, path] : {std::pair("-o", &a.output),
                                     {"--dump-profile", &a.dumpProfile},
                                     {"--write-pins", &a.writePins},
                                     {"--html", &a.html}})
    if (const auto folder = std::filesystem::path(*path).parent_path();
        !folder.empty() && !std::filesystem::is_directory(folder))
      fail(kBadInput, "{} {}: there is no folder '{}'", option, *path, folder.string());
}

/// The model as it is quantized, and as it was read.
struct Networks {
  Network read, used;
  std::optional<quantize::Equalization> equalization;
};

Networks networksOf(const Arguments& a, Network network, const RunConditions& run) {
  check(quantize::setTypes(network, run));
  Networks networks{network, std::move(network), {}};
  if (a.equalizes) networks.equalization = quantize::equalize(networks.used);
  return networks;
}

Profile readProfile(const std::string& path) {
  const Bytes file = check(mapFile(path));
  return check(Profile::parse({reinterpret_cast<const char*>(file.data()), file.size()}, path));
}

/// What was seen in the profiles that were given.
Profile loadedProfile(const Arguments& a, const Networks& networks) {
  Profile profile;
  profile.model = quantize::modelFingerprint(networks.used);
  const bool isChanged = networks.equalization && !networks.equalization->pairs.empty();
  for (const std::string& path : a.profiles) {
    const Profile loaded = readProfile(path);
    if (isChanged && loaded.model == quantize::modelFingerprint(networks.read))
      fail(kBadInput,
           "{}: the profile is of the model without --equalize, whose channels have other ranges",
           path);
    check(profile.merge(loaded, path));
  }
  return profile;
}

/// What is seen on the data.
Profile seenProfile(const Arguments& a, const Quantizer& quantizer, const Samples& samples,
                    const RunConditions& run) {
  Progress progress("profiling");
  return check(quantize::profileModel(quantizer.network(), quantizer.observed(), samples, run,
                                      a.channels,
                                      [&](double done) { progress.update("runs", done); })
                   .context(a.path));
}

/// Without data: one sample at a time, where the model leaves no more than that open.
void takeOneSample(const Network& network, RunConditions& run) {
  for (const quantize::Port& port : network.ports()) {
    Shape shape = port.dims;
    if (!shape.empty() && shape[0] < 0) shape[0] = 1;
    if (std::ranges::all_of(shape, [](int64_t dim) { return dim >= 0; }))
      run.shapes[port.name] = shape;
  }
}

/// Everything that a quantized model is made from.
struct Work {
  const Arguments& a;
  Samples samples;
  std::vector<int64_t> labels;
  RunConditions run, targets;
  Networks networks;
};

Work prepare(const Arguments& a, bool isDefaultRunner) {
  Network network = check(Network::read(a.path));
  Work work{a, {}, {}, shapesOf(a), {}, {}};
  if (!a.data.empty()) {
    work.samples =
        check(Samples::open(a.data, network.ports(), a.batch, scalingOf(a)).context(a.path));
    for (const auto& [name, shape] : work.samples.shapes()) work.run.shapes.emplace(name, shape);
  } else if (a.dims.empty() && a.shapes.empty()) {
    takeOneSample(network, work.run);
  }
  work.labels = labelsOf(a, work.samples);
  work.targets = work.run;
  if (!a.targets.empty()) work.targets.devices = devicesOf(a.targets, a.options);
  if (wantsIntegerRows(a, work.targets)) quantize::joinNorms(network);
  work.networks = networksOf(a, std::move(network), work.run);
  work.run.devices = runDevices(a, isDefaultRunner);
  return work;
}

Quantizer quantizerOf(const Work& work) {
  const Arguments& a = work.a;
  Settings settings = settingsOf(a, work.targets);
  settings.plan.states = statesOf(a, work.networks.used);
  Quantizer quantizer(work.networks.used, std::move(settings));
  const bool isSeen = work.samples.samples() > 0 && a.profiles.empty();
  quantizer.setProfile(isSeen ? seenProfile(a, quantizer, work.samples, work.run)
                              : loadedProfile(a, work.networks));
  quantizer.setData(work.samples, work.run);
  return quantizer;
}

/// Which nodes stay float or become int16: as asked for, by the targets, to meet a goal.
void decide(const Work& work, const Quantizer& quantizer, QuantizeReport& report) {
  const Arguments& a = work.a;
  report.pins = pinsOf(a, quantizer.network());
  if (!a.targets.empty()) check(quantizer.pinByTarget(report.pins, work.targets).context(a.path));
  if (!a.mostLoss && !a.leastSnr) return;
  Progress progress("measuring");
  report.path = check(quantize::meetGoal(
                          quantizer, {a.mostLoss, a.leastSnr, a.compared}, a.prefersInt16,
                          work.samples, work.labels, work.run,
                          [&](double done) { progress.update("layers", done); }, report.pins)
                          .context(a.path));
}

/// Of the worst output, with these settings.
double snrOf(const Work& work, const Quantizer& quantizer, const Pins& pins) {
  const Quantized made = check(quantizer.quantize(pins).context(work.a.path));
  Progress progress("comparing");
  const quantize::Comparison comparison =
      check(quantize::compareModels(quantizer.network(), made.network.model, {}, work.samples,
                                    work.labels.empty() ? work.a.compared : work.samples.runs(), {},
                                    work.run, [&](double done) { progress.update("runs", done); }));
  return quantize::worstSnr(quantizer.network(), comparison);
}

double snrWithoutEqualizing(const Work& work, const Quantizer& quantizer, const Pins& pins) {
  Quantizer other(work.networks.read, quantizer.settings());
  other.setProfile(seenProfile(work.a, other, work.samples, work.run));
  other.setData(work.samples, work.run);
  return snrOf(work, other, pins);
}

std::string didText(const quantize::Equalization& equalization) {
  return fmt::format("{} pairs of layers equalized, {} layers left out", equalization.pairs.size(),
                     equalization.leftOut.size());
}
std::string didText(const quantize::AdaptiveRounding& rounding) {
  double nearest = 0, adaptive = 0;
  for (const quantize::AdaptedLayer& layer : rounding.layers) {
    if (layer.nearest <= 0) continue;
    nearest += 1;
    adaptive += layer.adaptive / layer.nearest;
  }
  return fmt::format("weights of {} layers rounded, errors {:.0f} % of those of the nearest in the "
                     "mean, {} layers left out",
                     rounding.layers.size(), nearest > 0 ? 100 * adaptive / nearest : 100,
                     rounding.leftOut.size());
}
std::string didText(const quantize::BiasCorrection& biases) {
  return fmt::format("{} biases corrected by {} runs, {} layers left out", biases.nodes.size(),
                     biases.runs, biases.leftOut.size());
}

/// What the options that may pay or not did, each against all others.
void judgeImprovements(const Work& work, const Quantizer& quantizer, const Quantized& made,
                       QuantizeReport& report) {
  std::optional<double> with;
  if (report.comparison) with = quantize::worstSnr(quantizer.network(), *report.comparison);
  report.equalization = work.networks.equalization;
  if (report.equalization) {
    Improvement improvement{"--equalize", didText(*report.equalization), {}};
    if (with) improvement.measured = {*with, snrWithoutEqualizing(work, quantizer, report.pins)};
    report.improvements.push_back(std::move(improvement));
  }
  if (made.rounding) {
    Improvement improvement{"--round-adaptive", didText(*made.rounding), {}};
    Settings settings = quantizer.settings();
    settings.roundsAdaptively = false;
    if (with)
      improvement.measured = {*with, snrOf(work, quantizer.withSettings(settings), report.pins)};
    report.improvements.push_back(std::move(improvement));
  }
  if (made.biases) {
    Improvement improvement{"--correct-bias", didText(*made.biases), {}};
    Settings settings = quantizer.settings();
    settings.correctsBias = false;
    if (with)
      improvement.measured = {*with, snrOf(work, quantizer.withSettings(settings), report.pins)};
    report.improvements.push_back(std::move(improvement));
  }
}

void dumpProfile(const Arguments& a, const Profile& profile, Console& console) {
  const std::string text = profile.text();
  check(writeFile(a.dumpProfile, text.data(), text.size()), kWorkFailed);
  console.print("{}: {} values of {} samples\n", a.dumpProfile, profile.values.size(),
                profile.samples);
}

void run(const Arguments& a, bool isDefaultRunner, Console& console) {
  checkUsage(a);
  checkFolders(a);
  const auto start = std::chrono::steady_clock::now();
  const Work work = prepare(a, isDefaultRunner);
  const Quantizer quantizer = quantizerOf(work);
  QuantizeReport report;
  report.profiledMs = millisecondsSince(start);
  if (!a.dumpProfile.empty()) dumpProfile(a, quantizer.profile(), console);
  if (a.output.empty()) return;
  decide(work, quantizer, report);
  const Quantized made = check(quantizer.quantize(report.pins).context(a.path));
  Network stored = made.network;
  check(quantize::storeStates(stored, quantizer.settings().plan.states).context(a.path));
  check(import::onnx_io::writeModel(stored.model, a.output), kWorkFailed);
  report.totalMs = millisecondsSince(start);
  if (a.compared > 0 && work.samples.samples() > 0) {
    Progress progress("comparing");
    report.comparison = check(quantize::compareModels(
        quantizer.network(), made.network.model, made.rewritten.dequantized, work.samples,
        work.labels.empty() ? a.compared : work.samples.runs(), work.labels, work.run,
        [&](double done) { progress.update("runs", done); }));
  }
  judgeImprovements(work, quantizer, made, report);
  if (!a.writePins.empty()) {
    const std::string text = pinsText(quantizer.network(), report.pins);
    check(writeFile(a.writePins, text.data(), text.size()), kWorkFailed);
  }
  writeReport(quantizer, made, report, {a.path, a.output, a.html}, console);
}

void addFiles(CLI::App* command, Arguments& a, Console& console) {
  command->add_option("MODEL", a.path, "a float model: " + import::extensionsText())
      ->type_name("FILE");
  command->add_option("--data", a.data, "arrays to run it on: .npy, .npz, folders, INPUT=FILE")
      ->type_name("DIR|FILE...");
  command->add_option("-o,--output", a.output, "the quantized model")->type_name("FILE.onnx");
  addRepeated(command, "--scale", a.scales,
              "what stored numbers mean: FACTOR * stored + OFFSET, of one input or of all",
              "[INPUT=]FACTOR[,OFFSET]");
  addRepeated(command, "--dim", a.dims, "the value of a symbolic dimension: N=1", "NAME=VALUE");
  addRepeated(command, "--shape", a.shapes, "the shape of an input: images=1x3x224x224",
              "NAME=DIMS");
  command->add_option("--batch", a.batch, "samples a run, where the model leaves it open (1)")
      ->type_name("N")
      ->check(CLI::Range(1, 65536));
  command->add_option("--dump-profile", a.dumpProfile, "write what was seen")->type_name("FILE");
  addRepeated(command, "--load-profile", a.profiles,
              "what was seen before, instead of data; several add up", "FILE");
  command->add_flag("--channel-ranges", a.channels,
                    "keep the ranges of single channels in the profile too");
  command->add_option("--html", a.html, "write the report as one page that needs no network")
      ->type_name("FILE");
  addJsonOption(command, console);
}

void addChoices(CLI::App* command, Arguments& a) {
  command->add_option("--calibrate", a.calibrator,
                      "minmax, moving-average, percentile, entropy or mse (minmax)");
  command->add_option("--percentile", a.percentile, "of the values that are within (99.999)")
      ->check(numberIn(50, 100));
  command->add_option("--scheme", a.scheme,
                      "asymmetric, symmetric, symmetric-uint8 or power-of-two (asymmetric; "
                      "symmetric-uint8 where the first backend of --backend has no floats)");
  command->add_option("--activations", a.activations, "uint8, int8 or int16 (uint8)");
  command->add_option("--weights", a.weights, "int8 or int4 (int8)");
  command->add_flag("--per-tensor", a.perTensor, "one step for all weights of a node");
  command->add_option("--block", a.block, "so many weights along a sum share a step")
      ->type_name("N")
      ->check(CLI::Range(2, 65536));
  command->add_flag("--weights-only", a.weightsOnly, "integers for weights alone; needs no data");
  command->add_flag("--equalize", a.equalizes,
                    "scale channels first, so that ranges of weights match from layer to layer");
  command->add_flag("--round-adaptive", a.roundsAdaptively,
                    "round weights up or down so that a layer's results change least; needs data");
  command->add_flag("--correct-bias", a.correctsBias,
                    "take off each bias what rounded weights shift its channel by; needs data");
  command->add_flag("--integer-functions", a.integerFunctions,
                    "all that can be as integers, Softmax and norms too (with --backend: where the "
                    "first one has no floats)");
  addRepeated(command, "--keep-float", a.keepFloat, "nodes that stay float, by name or operator",
              "GLOB");
  addRepeated(command, "--int16", a.int16, "nodes whose operands are int16", "GLOB");
  command
      ->add_option("--state", a.states,
                   "an input that is the next value of an output, such as a cache: both become "
                   "integers; \"*\" as in past_*=present_*")
      ->type_name("INPUT=OUTPUT");
  command->add_option("--pins", a.pins, "a file of lines 'float NODE' and 'int16 NODE'")
      ->type_name("FILE");
  command->add_option("--write-pins", a.writePins, "write what stays float or int16, to be edited")
      ->type_name("FILE");
}

void checkCompareOptions(const CLI::App* command) {
  for (const CLI::Option* option : command->parse_order())
    if (!text::isOneOf(option->get_name(), "--compare-reports|--html|--json"))
      fail(kBadInput, "{}: only --html and --json stand beside --compare-reports",
           option->get_name());
}

} // namespace

void addQuantize(CLI::App& app, Console& console) {
  auto* command =
      app.add_subcommand("quantize", "Make a float model one of integers, by running it on data.");
  auto arguments = std::make_shared<Arguments>();
  Arguments& a = *arguments;
  addFiles(command, a, console);
  addChoices(command, a);
  command
      ->add_option("--backend", a.targets,
                   "what these backends have no integer rows for stays float")
      ->type_name("B[,B2...]");
  addRepeated(command, "--option", a.options, "an option of such a backend", "KEY=VALUE");
  auto* runOn = command->add_option("--run-on", a.runOn, "where the models run meanwhile (cpu)")
                    ->type_name("B[,B2...]");
  command->add_option("--labels", a.labels, "the right answers, to measure accuracy")
      ->type_name("FILE");
  command->add_option("--max-loss", a.mostLoss, "points of accuracy that may be lost")
      ->check(numberIn(0, 100));
  command->add_option("--min-snr", a.leastSnr, "decibels that each output has to keep")
      ->check(numberIn(0, 200));
  command->add_flag("--prefer-int16", a.prefersInt16,
                    "with a goal: int16 for what is sensitive, not float");
  command->add_option("--compare", a.compared, "runs for the report, 0 for none (32)")
      ->type_name("N")
      ->check(CLI::Range(0, 1000000));
  command
      ->add_option("--compare-reports", a.reports,
                   "set two reports of --json beside each other, instead of quantizing")
      ->type_name("FIRST.json SECOND.json")
      ->expected(2);
  command->footer(kFooter);
  command->callback([arguments, command, runOn, &console] {
    const Arguments& a = *arguments;
    if (!a.reports.empty()) {
      checkCompareOptions(command);
      return compareReports(a.reports[0], a.reports[1], a.html, console);
    }
    if (a.path.empty())
      fail(kBadInput, "quantize: a MODEL is wanted, or --compare-reports FIRST.json SECOND.json");
    run(a, runOn->count() == 0, console);
  });
}

} // namespace candela::tool
