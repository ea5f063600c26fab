#include "tools/candela/simulate/sweep.h"

// As wherever else the library stands in this process: its inline functions differ without being
// named differently.
#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

#include <algorithm>
#include <filesystem>

#include "candela/candela.h"
#include "core/runtime/plugin/plugin.h"
#include "core/support/file.h"
#include "core/support/hash.h"
#include "core/support/json.h"
#include "core/support/text/nesting.h"
#include "simulator/config/configuration.h"
#include "tools/candela/commands/npu.h"
#include "tools/candela/estimate/description.h"
#include "tools/candela/simulate/files.h"
#include "tools/candela/simulate/host_rates.h"
#include "tools/candela/support/ir_file.h"

namespace candela::tool {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostJobs = 100000;

/// What the file varies: the keys that move together, and their values as TOML writes them.
struct Axis {
  std::string keys; ///< "array.rows+array.columns"
  std::vector<std::string> values;
};

std::string hashOfFile(const std::string& path) {
  const Bytes bytes = check(mapFile(path));
  return hashText(sha256(bytes.data(), bytes.size()));
}

class Reader {
public:
  Reader(const std::string& file, Sweep& into) : file_(file), sweep_(into) {}

  void read() {
    const Bytes bytes = check(mapFile(file_));
    const std::string_view content(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (const size_t names = text::tomlLevels(content); names > text::kMostLevels)
      fail(kBadInput, "{}: a key has {} names, {} are the limit", file_, names, text::kMostLevels);
    const toml::parse_result parsed = toml::parse(content, file_);
    if (!parsed)
      fail(kBadInput, "{}:{}: {}", file_, parsed.error().source().begin.line,
           parsed.error().description());
    fs::path folder = fs::path(file_).replace_extension("").concat(".sweep");
    for (const auto& [key, node] : parsed.table()) {
      const std::string name(key.str());
      if (name == "models")
        sweep_.models = texts(node, name);
      else if (name == "npu")
        bases_ = texts(node, name);
      else if (name == "device")
        readDevices(node);
      else if (name == "fidelity")
        sweep_.fidelity = text(node, name);
      else if (name == "batch_dim")
        sweep_.batchDim = text(node, name);
      else if (name == "dims")
        sweep_.dims = texts(node, name);
      else if (name == "host_rates")
        sweep_.hostRates = fs::absolute(beside(text(node, name))).string();
      else if (name == "output") {
        if (text(node, name).empty())
          fail(kBadInput, "{}:{}: output: a folder is wanted", file_, node.source().begin.line);
        folder = beside(text(node, name));
      } else if (name == "batch")
        for (const std::string& value : values(node, name))
          batches_.push_back(positive(node, value));
      else if (name == "vary" && node.is_table())
        axes(*node.as_table(), "");
      else
        fail(kBadInput,
             "{}:{}: '{}' is none of models, npu, device, fidelity, batch, batch_dim, dims, "
             "host_rates, "
             "output, [vary]",
             file_, node.source().begin.line, name);
    }
    if (sweep_.models.empty()) fail(kBadInput, "{}: no models", file_);
    if (!devices_.empty() && !bases_.empty())
      fail(kBadInput, "{}: npu and device: one of them is swept", file_);
    if (sweep_.isOfDevices && parsed.table().contains("fidelity"))
      fail(kBadInput, "{}: fidelity: estimates of devices have none", file_);
    if (sweep_.fidelity != "fast" && sweep_.fidelity != "accurate")
      fail(kBadInput, "{}: fidelity '{}' is none of fast, accurate", file_, sweep_.fidelity);
    for (std::string& model : sweep_.models) model = beside(model);
    if (!sweep_.hostRates.empty()) (void)readHostRates(sweep_.hostRates);
    sweep_.folder = folder.string();
    combine();
  }

private:
  std::string beside(const std::string& path) const {
    return fs::path(path).is_absolute()
               ? path
               : (fs::path(file_).parent_path() / path).lexically_normal().string();
  }
  /// Its keys come in alphabetical order: it is known that devices are swept before [vary] is read.
  void readDevices(const toml::node& node) {
    sweep_.isOfDevices = true;
    for (const std::string& path : texts(node, "device")) devices_.push_back(beside(path));
    if (devices_.empty()) fail(kBadInput, "{}: device: no file", file_);
  }

  std::string text(const toml::node& node, const std::string& name) const {
    const auto value = node.value_exact<std::string>();
    if (!value)
      fail(kBadInput, "{}:{}: {}: a string is wanted", file_, node.source().begin.line, name);
    return *value;
  }
  std::vector<std::string> texts(const toml::node& node, const std::string& name) const {
    if (node.is_string()) return {text(node, name)};
    if (!node.is_array())
      fail(kBadInput, "{}:{}: {}: a list of strings is wanted", file_, node.source().begin.line,
           name);
    std::vector<std::string> list;
    for (const toml::node& each : *node.as_array()) list.push_back(text(each, name));
    return list;
  }
  std::vector<std::string> values(const toml::node& node, const std::string& name) const {
    std::vector<std::string> list;
    if (!node.is_array() || node.as_array()->empty())
      fail(kBadInput, "{}:{}: {}: a list of values is wanted", file_, node.source().begin.line,
           name);
    for (const toml::node& each : *node.as_array()) {
      if (const auto number = each.value_exact<int64_t>())
        list.push_back(fmt::format("{}", *number));
      else if (const auto word = each.value_exact<std::string>(); word && !word->empty())
        list.push_back(*word);
      else if (const auto real = each.value_exact<double>(); real && sweep_.isOfDevices)
        list.push_back(fmt::format("{}", *real));
      else
        fail(kBadInput, "{}:{}: {}: {} and strings are wanted", file_, each.source().begin.line,
             name, sweep_.isOfDevices ? "numbers" : "integers");
    }
    return list;
  }
  int64_t positive(const toml::node& node, const std::string& value) const {
    const int64_t number = value.find_first_not_of("0123456789") == value.npos && value.size() < 10
                               ? std::stoll(value)
                               : 0;
    if (number < 1)
      fail(kBadInput, "{}:{}: batch: '{}' is no positive number", file_, node.source().begin.line,
           value);
    return number;
  }
  void axes(const toml::table& table, const std::string& prefix) {
    for (const auto& [key, node] : table) {
      const std::string name = prefix + std::string(key.str());
      if (node.is_table())
        axes(*node.as_table(), name + ".");
      else {
        axes_.push_back({name, values(node, "vary." + name)});
        for (const std::string& each : split(name)) {
          if (std::ranges::find(sweep_.varied, each) != sweep_.varied.end())
            fail(kBadInput, "{}:{}: vary: '{}' is varied twice", file_, node.source().begin.line,
                 each);
          sweep_.varied.push_back(each);
          if (!sweep_.isOfDevices &&
              std::ranges::none_of(npu::kKeys, [&](const npu::KeyInfo& info) {
                return info.name == each && each != "name";
              }))
            fail(kBadInput, "{}:{}: vary: there is no key '{}' of a configuration", file_,
                 node.source().begin.line, each);
        }
      }
    }
  }
  static std::vector<std::string> split(const std::string& keys) {
    std::vector<std::string> list(1);
    for (const char c : keys)
      if (c == '+')
        list.emplace_back();
      else
        list.back() += c;
    return list;
  }

  /// The configuration with these values, or why there is none.
  std::string configure(npu::Configuration configuration, SweepJob& job) const {
    for (const auto& [name, value] : job.varied) {
      const auto info = std::ranges::find_if(
          npu::kKeys, [&](const npu::KeyInfo& each) { return each.name == name; });
      const auto key = static_cast<size_t>(info - std::begin(npu::kKeys));
      if (info->isString) {
        const auto at = std::ranges::find(info->values, value);
        if (at == info->values.end())
          return fmt::format("{} = '{}': it is none of {}", name, value,
                             fmt::join(info->values, ", "));
        configuration.values[key] = at - info->values.begin();
      } else if (value.size() > 15 || value.find_first_not_of("0123456789") != value.npos) {
        return fmt::format("{} = {}: no number", name, value);
      } else {
        configuration.values[key] = std::stoll(value);
      }
    }
    job.configuration = configuration.toml();
    const auto checked = npu::parseConfiguration(job.configuration, "configuration");
    return checked ? "" : checked.message();
  }

  /// The description with these values, or why there is none.
  std::string describe(const std::string& file, SweepJob& job) const {
    const Bytes bytes = check(mapFile(file));
    job.configuration.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    for (const auto& [name, value] : job.varied)
      job.configuration = withValue(job.configuration, file, name, value);
    try {
      (void)parseDescription(job.configuration, file);
    } catch (const Failure& failure) {
      return failure.what();
    }
    return "";
  }

  /// Jobs that another build, model or device would do otherwise have other ids.
  void identify(SweepJob& job, const std::string& program, const std::string& content,
                const std::string& rates) const {
    const std::string what = fmt::format("{}\n{}\n{}\n{}={}\n{}\n{}\n{}", program, content,
                                         sweep_.fidelity, sweep_.batchDim, job.batch,
                                         fmt::join(sweep_.dims, " "), rates, job.configuration);
    job.id = hashText(sha256(what.data(), what.size())).substr(0, 16);
  }

  std::string programHash() const {
    const std::string tool = hashOfFile("/proc/self/exe");
    if (sweep_.isOfDevices) return tool;
    return tool + hashOfFile(check(runtime::plugin::findPlugin("npu_sim"))->origin());
  }

  /// The values of one point of all axes, the last one moving fastest.
  std::map<std::string, std::string> valuesAt(size_t variant) const {
    std::map<std::string, std::string> varied;
    for (auto axis = axes_.rbegin(); axis != axes_.rend(); ++axis) {
      for (const std::string& key : split(axis->keys))
        varied[key] = axis->values[variant % axis->values.size()];
      variant /= axis->values.size();
    }
    return varied;
  }

  size_t countVariants() const {
    size_t variants = 1;
    const size_t others =
        std::max(bases_.size(), devices_.size()) * batches_.size() * sweep_.models.size();
    for (size_t a = 0;; ++a) {
      if (variants * others > kMostJobs)
        fail(kBadInput, "{}: more than {} simulations", file_, kMostJobs);
      if (a == axes_.size()) return variants;
      variants *= axes_[a].values.size();
    }
  }

  void addJobs(SweepJob job, const std::string& program, const std::string& rates) {
    for (const std::string& model : sweep_.models)
      for (const int64_t batch : batches_) {
        job.model = model;
        job.batch = batch;
        identify(job, program, modelHashes_.at(model), rates);
        sweep_.jobs.push_back(job);
      }
  }

  /// Also where it cannot be loaded: its simulation says why.
  bool hasControlFlow(const std::string& model) const {
    if (sweep_.isOfDevices) return false;
    ImportFlags flags;
    flags.dims = sweep_.dims;
    if (!sweep_.batchDim.empty()) flags.dims.push_back(sweep_.batchDim + "=1");
    const auto loaded = driver::loadAny(model, importOptions(flags));
    return !loaded || std::holds_alternative<import::Script>(*loaded);
  }

  void combine() {
    if (bases_.empty() && !sweep_.isOfDevices) bases_ = {"gem16"};
    if (batches_.empty()) batches_ = {1};
    const size_t variants = countVariants();
    const std::string program = programHash();
    const std::string rates = sweep_.hostRates.empty() ? "" : hashOfFile(sweep_.hostRates);
    for (const std::string& model : sweep_.models) {
      modelHashes_[model] = hashOfFile(model);
      if (hasControlFlow(model)) sweep_.withControlFlow.insert(model);
    }
    const auto addVariants = [&](const std::string& base, auto&& configured) {
      for (size_t variant = 0; variant < variants; ++variant) {
        SweepJob job;
        job.base = base;
        job.varied = valuesAt(variant);
        job.refused = configured(job);
        addJobs(job, program, rates);
      }
    };
    for (const std::string& base : bases_) {
      const bool isFile = base.find('/') != base.npos || base.ends_with(".toml");
      const npu::Configuration configuration =
          checkNpu(npu::findConfiguration(isFile ? fs::absolute(beside(base)).string() : base));
      addVariants(configuration.name, [&](SweepJob& job) { return configure(configuration, job); });
    }
    for (const std::string& file : devices_)
      addVariants(readDescription(file).name, [&](SweepJob& job) { return describe(file, job); });
  }

  std::string file_;
  Sweep& sweep_;
  std::vector<std::string> bases_, devices_; ///< configurations, or descriptions
  std::map<std::string, std::string> modelHashes_;
  std::vector<int64_t> batches_;
  std::vector<Axis> axes_;
};

std::string configurationOf(const Sweep& sweep, const SweepJob& job) {
  // Its name says what it holds: jobs that differ in the model alone share one.
  return sweep.folder + "/configurations/" +
         hashText(sha256(job.configuration.data(), job.configuration.size())).substr(0, 16) +
         ".toml";
}

} // namespace

Sweep readSweep(const std::string& file) {
  Sweep sweep;
  sweep.file = file;
  Reader(file, sweep).read();
  return sweep;
}

std::string resultOf(const Sweep& sweep, const SweepJob& job) {
  return sweep.folder + "/" + job.id + ".json";
}

std::vector<std::string> commandOf(const Sweep& sweep, const SweepJob& job,
                                   const std::string& program) {
  const std::string model = job.model.starts_with('-') ? "./" + job.model : job.model;
  const std::string configuration = configurationOf(sweep, job);
  std::vector<std::string> command;
  if (sweep.isOfDevices)
    command = {program, "estimate", model, "--device", configuration};
  else
    command = {program,      "simulate",     model,      "--npu", configuration,
               "--fidelity", sweep.fidelity, "--random", "1"};
  if (!sweep.isOfDevices && !sweep.withControlFlow.contains(job.model))
    command.push_back("--no-data");
  for (const std::string& dim : sweep.dims) command.insert(command.end(), {"--dim", dim});
  if (!sweep.batchDim.empty())
    command.insert(command.end(), {"--dim", fmt::format("{}={}", sweep.batchDim, job.batch)});
  if (!sweep.hostRates.empty()) command.insert(command.end(), {"--host-rates", sweep.hostRates});
  command.insert(command.end(), {"--json", resultOf(sweep, job)});
  return command;
}

void writeConfigurations(const Sweep& sweep) {
  std::error_code bad;
  fs::create_directories(sweep.folder + "/configurations", bad);
  if (bad) fail(kWorkFailed, "{}: cannot be made: {}", sweep.folder, bad.message());
  for (const SweepJob& job : sweep.jobs)
    if (const std::string path = configurationOf(sweep, job);
        job.refused.empty() && !fs::exists(path, bad))
      check(writeFile(path, job.configuration.data(), job.configuration.size()), kWorkFailed);
}

} // namespace candela::tool
