#include "core/compiler/quantize/profile.h"

#include <optional>

#include "core/support/text/scan.h"

namespace candela::quantize {
namespace {

constexpr std::string_view kHeader = "candela-profile 1";

std::string histogramText(const Histogram& histogram) {
  if (histogram.empty()) return "";
  int first = 0, last = Histogram::kBins - 1;
  while (first < last && histogram.count(first) == 0) ++first;
  while (last > first && histogram.count(last) == 0) --last;
  std::string text = fmt::format("histogram {} {}", histogram.exponent(), first);
  for (int bin = first; bin <= last; ++bin) {
    int zeros = 0;
    while (histogram.count(bin + zeros) == 0) ++zeros;
    if (zeros > 1) {
      text += fmt::format(" 0*{}", zeros); // many bins are empty
      bin += zeros - 1;
    } else {
      text += fmt::format(" {}", histogram.count(bin));
    }
  }
  return text + "\n";
}

/// One line of the file, word by word.
class Line {
public:
  Line(std::string_view text, std::string where) : rest_(text), where_(std::move(where)) {}
  std::string_view word() {
    const size_t start = std::min(rest_.find_first_not_of(' '), rest_.size());
    rest_.remove_prefix(start);
    const std::string_view word = rest_.substr(0, rest_.find(' '));
    rest_.remove_prefix(word.size());
    return word;
  }
  std::string_view rest() const { return rest_.empty() ? rest_ : rest_.substr(1); }
  bool atEnd() const { return rest_.find_first_not_of(' ') == rest_.npos; }
  template <typename T> Status number(T& into) {
    const std::string_view text = word();
    const auto value = text::parseNumber<T>(text);
    if (!value) return badModel("{}: expected a number, found '{}'", where_, text);
    into = *value;
    return Status::ok();
  }
  template <typename... T> Status numbers(T&... into) {
    Status status = Status::ok();
    ((status = status ? number(into) : status), ...);
    return status;
  }
  const std::string& where() const { return where_; }

private:
  std::string_view rest_;
  std::string where_;
};

Status readHistogram(Line& line, Histogram& histogram) {
  int exponent = 0, bin = 0;
  CDL_TRY(line.numbers(exponent, bin));
  if (exponent < Histogram::kLeastExponent || exponent > 128)
    return badModel("{}: exponent {} is outside {} to 128", line.where(), exponent,
                    Histogram::kLeastExponent);
  histogram.widen(exponent);
  while (!line.atEnd()) {
    const std::string_view word = line.word();
    const size_t star = word.find('*');
    const auto count = text::parseNumber<uint64_t>(word.substr(0, star));
    const auto times =
        star == word.npos ? std::optional(1) : text::parseNumber<int>(word.substr(star + 1));
    if (!count || !times || bin < 0 || *times < 1 || *times > Histogram::kBins - bin)
      return badModel("{}: '{}' is no count of a bin", line.where(), word);
    for (int i = 0; i < *times; ++i) histogram.set(bin++, *count);
  }
  return Status::ok();
}

Status readFact(std::string_view key, Line& line, Observer& value) {
  if (key == "range") return line.numbers(value.min, value.max);
  if (key == "average") return line.numbers(value.averageMin, value.averageMax, value.runs);
  if (key == "moments")
    return line.numbers(value.count, value.zeros, value.sum, value.sumOfSquares);
  if (key == "not-finite") return line.number(value.notFinite);
  if (key == "histogram") return readHistogram(line, value.histogram);
  if (key == "channel") {
    Observer::Channel& channel = value.channels.emplace_back();
    return line.numbers(channel.min, channel.max, channel.sum, channel.count);
  }
  return badModel("{}: unknown word '{}'", line.where(), key);
}

} // namespace

std::string Profile::text() const {
  std::string text = fmt::format("{}\nmodel {}\nsamples {}\n", kHeader, model, samples);
  for (const auto& [name, value] : values) {
    text += fmt::format("value {}\nrange {} {}\naverage {} {} {}\nmoments {} {} {} {}\n", name,
                        value.min, value.max, value.averageMin, value.averageMax, value.runs,
                        value.count, value.zeros, value.sum, value.sumOfSquares);
    if (value.notFinite) text += fmt::format("not-finite {}\n", value.notFinite);
    text += histogramText(value.histogram);
    for (const Observer::Channel& channel : value.channels)
      text += fmt::format("channel {} {} {} {}\n", channel.min, channel.max, channel.sum,
                          channel.count);
  }
  return text + "end\n";
}

Result<Profile> Profile::parse(std::string_view text, const std::string& file) {
  Profile profile;
  Observer* value = nullptr;
  bool ended = false;
  int number = 0;
  for (size_t start = 0; start < text.size() && !ended; ++number) {
    const size_t end = std::min(text.find('\n', start), text.size());
    Line line(text.substr(start, end - start), fmt::format("{}:{}", file, number + 1));
    start = end + 1;
    if (number == 0) {
      if (text.substr(0, end) != kHeader)
        return badModel("{}: not a profile of this version: expected '{}'", line.where(), kHeader);
      continue;
    }
    const std::string_view key = line.word();
    if (key == "end") {
      ended = true;
    } else if (key == "model") {
      profile.model = line.rest();
    } else if (key == "samples") {
      CDL_TRY(line.number(profile.samples));
    } else if (key == "value") {
      const auto [at, isNew] = profile.values.emplace(line.rest(), Observer());
      if (!isNew) return badModel("{}: value '{}' is there twice", line.where(), at->first);
      value = &at->second;
    } else if (value) {
      CDL_TRY(readFact(key, line, *value));
    } else {
      return badModel("{}: unknown word '{}'", line.where(), key);
    }
  }
  if (!ended) return badModel("{}: a profile that does not end: the file was cut off", file);
  return profile;
}

Status Profile::merge(const Profile& other, const std::string& file) {
  if (model.empty()) model = other.model;
  if (model != other.model)
    return badArgument("{}: the profile is of another model: its fingerprint is {}, expected {}",
                       file, other.model.substr(0, 16), model.substr(0, 16));
  samples += other.samples;
  for (const auto& [name, value] : other.values) values[name].merge(value);
  return Status::ok();
}

} // namespace candela::quantize
