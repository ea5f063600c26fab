#include "tools/candela/train/data.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "core/support/file.h"
#include "core/support/float_bits.h"
#include "core/support/hash.h"
#include "core/support/text/scan.h"
#include "tools/candela/support/model.h"

namespace candela::tool {
namespace {

using import::onnx_io::Model, import::onnx_io::ValueInfo;

/// Those that no initializer has a value for.
std::vector<ValueInfo> dataInputs(const Model& model) {
  std::vector<ValueInfo> inputs;
  for (const ValueInfo& input : model.graph.inputs)
    if (std::ranges::none_of(model.graph.initializers,
                             [&](const auto& each) { return each.name == input.name; }))
      inputs.push_back(input);
  return inputs;
}

double numberAt(const Tensor& tensor, int64_t i) {
  const uint64_t bits = loadElement(tensor.elem, tensor.bytes.data(), i);
  return isFloat(tensor.elem) ? toReal(tensor.elem, bits)
                              : static_cast<double>(integerOf(tensor.elem, bits));
}

/// The integers of a type, both ends counted in.
struct Whole {
  __int128 lo, hi;
};
Whole rangeOf(Elem elem) {
  const int bits = elemBits(elem);
  if (elem == Elem::bool_) return {0, 1};
  if (isSigned(elem)) return {-(__int128(1) << (bits - 1)), (__int128(1) << (bits - 1)) - 1};
  return {0, (__int128(1) << bits) - 1};
}

/// The element as the type has it; nullopt where that has no such number.
std::optional<uint64_t> bitsOf(const Tensor& tensor, int64_t i, Elem elem, double factor) {
  if (isFloat(elem)) {
    const double value = numberAt(tensor, i) * factor;
    const uint64_t bits = fromReal(elem, value);
    if (std::isfinite(value) && !std::isfinite(toReal(elem, bits))) return std::nullopt;
    return bits;
  }
  __int128 whole = 0;
  if (!isFloat(tensor.elem) && factor == 1) {
    whole = integerOf(tensor.elem, loadElement(tensor.elem, tensor.bytes.data(), i));
  } else {
    constexpr double kMost = 0x1p63;
    const double value = numberAt(tensor, i) * factor;
    if (value != std::floor(value) || std::abs(value) >= kMost) return std::nullopt;
    whole = static_cast<int64_t>(value);
  }
  const Whole range = rangeOf(elem);
  if (whole < range.lo || whole > range.hi) return std::nullopt;
  return static_cast<uint64_t>(whole) & elemMask(elem);
}

/// An array as an input takes it; `path` and `what` are for the message where that has not all
/// numbers of the array.
Tensor converted(const std::string& path, const Tensor& tensor, Elem elem, double factor,
                 const std::string& what) {
  if (tensor.elem == elem && factor == 1) return tensor;
  Tensor made = check(Tensor::zeros(elem, tensor.dims));
  const int64_t each = std::max<int64_t>(1, tensor.count() / std::max<int64_t>(1, tensor.dims[0]));
  for (int64_t i = 0; i < tensor.count(); ++i) {
    const auto bits = bitsOf(tensor, i, elem, factor);
    if (!bits)
      fail(kBadInput, "{}: sample {} has an element {}, which {} has not: it is {}", path, i / each,
           numberAt(tensor, i) * factor, elemName(elem), what);
    storeElement(elem, made.bytes.mutableData(), i, *bits);
  }
  return made;
}

Shape sampleOf(const Shape& dims) { return {dims.begin() + 1, dims.end()}; }

/// Rows of a row-major array.
Tensor rowsOf(const Tensor& all, const std::vector<int64_t>& rows) {
  Shape dims = all.dims;
  dims[0] = static_cast<int64_t>(rows.size());
  Tensor made = check(Tensor::zeros(all.elem, dims));
  const uint64_t bytes = made.sizeBytes() / std::max<size_t>(1, rows.size());
  for (size_t i = 0; i < rows.size(); ++i)
    std::memcpy(made.bytes.mutableData() + i * bytes,
                all.bytes.data() + static_cast<uint64_t>(rows[i]) * bytes, bytes);
  return made;
}

/// One sample moved by so many rows and columns.
void shift(Tensor& images, int64_t image, int64_t down, int64_t right) {
  const int64_t height = images.dims[images.dims.size() - 2];
  const int64_t width = images.dims.back();
  const uint64_t each = elemBytes(images.elem, 1);
  const int64_t count = images.count() / images.dims[0];
  const int64_t planes = count / (height * width);
  std::byte* to = images.bytes.mutableData() + static_cast<uint64_t>(image * count) * each;
  const std::vector<std::byte> from(to, to + static_cast<uint64_t>(count) * each);
  std::memset(to, 0, from.size());
  const int64_t kept = width - std::abs(right);
  for (int64_t plane = 0; plane < planes; ++plane)
    for (int64_t y = std::max<int64_t>(0, down); y < std::min(height, height + down); ++y) {
      const int64_t target = (plane * height + y) * width + std::max<int64_t>(0, right);
      const int64_t source = (plane * height + y - down) * width + std::max<int64_t>(0, -right);
      std::memcpy(to + static_cast<uint64_t>(target) * each,
                  from.data() + static_cast<uint64_t>(source) * each,
                  static_cast<uint64_t>(kept) * each);
    }
}

void checkShape(const std::string& path, const Tensor& array, const ValueInfo& input) {
  if (!input.hasShape) return;
  bool fits = array.dims.size() == input.dims.size();
  std::vector<std::string> wanted;
  for (size_t d = 1; d < input.dims.size(); ++d) {
    const int64_t dim = input.dims[d].value;
    wanted.push_back(dim < 0 ? "?" : std::to_string(dim));
    fits = fits && (dim < 0 || array.dims[d] == dim);
  }
  if (!fits)
    fail(kBadInput, "{}: samples of {}, input '{}' takes {}", path, shapeText(sampleOf(array.dims)),
         input.name, fmt::join(wanted, "x"));
}

/// By input; under "" what is for all of them.
std::map<std::string, double> scalesOf(const std::vector<std::string>& texts,
                                       const std::set<std::string>& names) {
  std::map<std::string, double> scales;
  for (const std::string& text : texts) {
    const size_t equals = text.rfind('=');
    const bool isNamed = equals != std::string::npos;
    const std::string name = isNamed ? text.substr(0, equals) : "";
    const auto factor = text::parseNumber<double>(isNamed ? text.substr(equals + 1) : text);
    if (!factor) fail(kBadInput, "--scale {}: expected [INPUT=]FACTOR", text);
    if (isNamed && !names.count(name))
      fail(kBadInput, "--scale {}: the model has the inputs {}", text, fmt::join(names, ", "));
    if (!scales.emplace(name, *factor).second)
      fail(kBadInput, "--scale {}: there is one already{}", text,
           isNamed ? fmt::format(" for input '{}'", name) : "");
  }
  return scales;
}

/// Before hours are spent on it.
void checkFinite(const std::string& path, const Tensor& array) {
  if (!isFloat(array.elem)) return;
  const int64_t each = std::max<int64_t>(1, array.count() / array.dims[0]);
  for (int64_t i = 0; i < array.count(); ++i)
    if (const double value = numberAt(array, i); !std::isfinite(value))
      fail(kBadInput, "{}: sample {} has an element that is {}", path, i / each, value);
}

} // namespace

TrainingData::TrainingData(const Model& model, const std::vector<std::string>& sources,
                           const std::vector<std::string>& scales) {
  const std::vector<ValueInfo> inputs = dataInputs(model);
  std::set<std::string> names;
  for (const ValueInfo& input : inputs) names.insert(input.name);
  std::map<std::string, double> factors = scalesOf(scales, names);
  const auto common = factors.find("");
  bool isCommonUsed = false;
  for (const std::string& source : sources) {
    Binding file{inputs.size() == 1 ? inputs[0].name : "", source};
    if (source.find('=') != std::string::npos) file = parseFileBinding("--data", source, names);
    const auto input = std::ranges::find(inputs, file.name, &ValueInfo::name);
    if (input == inputs.end())
      fail(kBadInput, "--data {}: the model has the inputs {}; say INPUT=FILE", source,
           fmt::join(names, ", "));
    if (arrays_.count(file.name))
      fail(kBadInput, "--data {}: input '{}' has its samples already", source, file.name);
    const Tensor array = tool::check(readNpy(file.value));
    checkArray(file.value, array, *input);
    auto factor = factors.find(file.name);
    if (factor != factors.end() && isFloat(array.elem)) {
      idleScale_ = fmt::format("--scale {}={}: {} holds floats, which stay as they are", file.name,
                               factor->second, file.value);
      factor = factors.end();
    }
    if (factor == factors.end() && !isFloat(array.elem)) {
      factor = common;
      isCommonUsed = true;
    }
    arrays_[file.name] =
        converted(file.value, array, input->elem, factor == factors.end() ? 1 : factor->second,
                  fmt::format("the type of input '{}'", file.name));
  }
  for (const ValueInfo& input : inputs)
    if (!arrays_.count(input.name)) fail(kBadInput, "--data: nothing for input '{}'", input.name);
  if (common != factors.end() && !isCommonUsed)
    idleScale_ = fmt::format("--scale {}: no input is left whose samples are stored as integers; "
                             "floats stay as they are",
                             common->second);
}

void TrainingData::checkScales() const {
  if (!idleScale_.empty()) fail(kBadInput, "{}", idleScale_);
}

void TrainingData::checkArray(const std::string& path, const Tensor& array,
                              const ValueInfo& input) {
  if (array.dims.empty() || array.dims[0] == 0)
    fail(kBadInput, "{}: no samples, it is {}", path, array.typeText());
  checkShape(path, array, input);
  checkFinite(path, array);
  if (count_ != 0 && array.dims[0] != count_)
    fail(kBadInput, "{}: {} samples, other inputs have {}", path, array.dims[0], count_);
  count_ = array.dims[0];
}

std::string TrainingData::hash() const {
  std::string texts;
  for (const auto& [name, array] : arrays_) texts += name + " " + hashOf(array) + "\n";
  return hashText(sha256(texts.data(), texts.size()));
}

std::string hashOf(const Tensor& tensor) {
  const std::string text =
      tensor.typeText() + " " + hashText(sha256(tensor.bytes.data(), tensor.sizeBytes()));
  return hashText(sha256(text.data(), text.size()));
}

void checkBatch(const Model& model, int64_t batch) {
  for (const ValueInfo& input : dataInputs(model)) {
    const int64_t fixed = input.hasShape && !input.dims.empty() ? input.dims[0].value : -1;
    if (fixed > 0 && fixed != batch)
      fail(kBadInput, "{}: the model takes batches of {}: --batch {}", model.path, fixed, fixed);
  }
}

std::map<std::string, Shape> TrainingData::shapes(int64_t batch) const {
  std::map<std::string, Shape> shapes;
  for (const auto& [name, array] : arrays_) {
    shapes[name] = array.dims;
    shapes[name][0] = batch;
  }
  return shapes;
}

std::map<std::string, Tensor> TrainingData::batch(const std::vector<int64_t>& samples) const {
  std::map<std::string, Tensor> made;
  for (const auto& [name, array] : arrays_) made.emplace(name, rowsOf(array, samples));
  return made;
}

std::map<std::string, Tensor> TrainingData::shiftedBatch(const std::vector<int64_t>& samples,
                                                         int64_t most, uint64_t seed) const {
  std::map<std::string, Tensor> made = batch(samples);
  for (auto& [name, images] : made) {
    if (most == 0 || images.dims.size() < 3 || isPacked(images.elem)) continue;
    const int64_t height = images.dims[images.dims.size() - 2];
    const int64_t width = images.dims.back();
    const auto drawn = [&](uint64_t bits, int64_t extent) {
      const int64_t reach = std::min(most, extent - 1);
      return static_cast<int64_t>(bits % static_cast<uint64_t>(2 * reach + 1)) - reach;
    };
    for (size_t i = 0; i < samples.size(); ++i) {
      const uint64_t bits = splitmix64(seed + static_cast<uint64_t>(samples[i]));
      shift(images, static_cast<int64_t>(i), drawn(bits >> 32, height),
            drawn(bits & 0xffffffff, width));
    }
  }
  return made;
}

TrainingLabels::TrainingLabels(const std::string& path, int64_t samples)
    : path_(path), labels_(tool::check(readNpy(path))) {
  if (labels_.dims.empty() || labels_.dims[0] != samples)
    fail(kBadInput, "{}: labels {} for {} samples", path, labels_.typeText(), samples);
}

void TrainingLabels::check(train::Loss loss, const graph::TensorType& type, int64_t classes) {
  if (sampleOf(labels_.dims) != sampleOf(type.shape()))
    fail(kBadInput, "{}: labels of {} for each sample, the model's output takes {}", path_,
         shapeText(sampleOf(labels_.dims)), shapeText(sampleOf(type.shape())));
  if (loss == train::Loss::crossEntropy) {
    if (isFloat(labels_.elem))
      fail(kBadInput, "{}: labels are {}, cross_entropy takes integers", path_, labels_.typeText());
    const int64_t each = labels_.count() / labels_.dims[0];
    for (int64_t i = 0; i < labels_.count(); ++i) {
      const double label = numberAt(labels_, i);
      if (label < 0 || label >= static_cast<double>(classes))
        fail(kBadInput, "{}: label {} of sample {} is out of range, the model has {} classes",
             path_, label, i / std::max<int64_t>(1, each), classes);
    }
  } else {
    checkFinite(path_, labels_);
  }
  labels_ = converted(path_, labels_, type.elem, 1, "the type of labels");
}

std::string TrainingLabels::hash() const { return hashOf(labels_); }

Tensor TrainingLabels::batch(const std::vector<int64_t>& samples) const {
  return rowsOf(labels_, samples);
}

} // namespace candela::tool
