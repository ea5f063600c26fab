// What `candela run` makes of a model's answer.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "core/support/file.h"
#include "core/support/hash.h"
#include "tools/candela/run/run.h"

namespace candela::tool {
namespace {

/// Elements of one row when the first dim counts rows.
int64_t rowLength(const Tensor& tensor) {
  const int64_t rows = tensor.dims.empty() ? 1 : tensor.dims[0];
  return rows ? tensor.count() / rows : 0;
}

struct Summary {
  double min = std::numeric_limits<double>::infinity(), max = -min, mean = 0;
  int64_t nans = 0;
};

Summary summarise(const Tensor& tensor) {
  Summary s;
  double sum = 0;
  const int64_t count = tensor.count();
  for (int64_t i = 0; i < count; ++i) {
    const double x = elementAsReal(tensor, i);
    s.nans += std::isnan(x);
    s.min = std::fmin(s.min, x);
    s.max = std::fmax(s.max, x);
    sum += x;
  }
  s.mean = count ? sum / static_cast<double>(count) : 0;
  return s;
}

} // namespace

Accuracy measureAccuracy(const Session& session, Tensor scores, const std::string& labelsFile) {
  const sdk::Port& port = session.outputPorts[0];
  const Tensor labels = readTensorFile(labelsFile);
  if (labels.count() > 0)
    scores = session.shaped(std::move(scores), {labels.count(), scores.count() / labels.count()});
  if (!isInteger(labels.elem))
    fail(kBadInput, "{}: labels are {}, not integers", labelsFile, labels.typeText());
  if (scores.dims.empty() || rowLength(scores) == 0)
    fail(kBadInput, "--labels: output '{}' is {}, which holds no scores", port.name,
         scores.typeText());
  if (labels.count() != scores.dims[0])
    fail(kBadInput, "{}: {} labels for output '{}' with {} rows ({})", labelsFile, labels.count(),
         port.name, scores.dims[0], scores.typeText());
  const std::vector<int64_t> wanted = labels.toInts();
  const int64_t length = rowLength(scores);
  Accuracy accuracy;
  accuracy.total = scores.dims[0];
  std::vector<int64_t> predictions;
  for (int64_t row = 0; row < accuracy.total; ++row) {
    int64_t best = 0;
    double bestScore = -std::numeric_limits<double>::infinity();
    for (int64_t i = 0; i < length; ++i) {
      const double score = elementAsReal(scores, row * length + i);
      if (score > bestScore) {
        best = i;
        bestScore = score;
      }
    }
    predictions.push_back(best);
    accuracy.correct += best == wanted[static_cast<size_t>(row)];
  }
  static_assert(std::endian::native == std::endian::little);
  accuracy.predictionsSha256 =
      hashText(sha256(predictions.data(), predictions.size() * sizeof(int64_t)));
  return accuracy;
}

std::vector<std::vector<std::pair<int64_t, double>>> topOf(const Tensor& scores, int k) {
  const int64_t length = rowLength(scores), rows = scores.dims.empty() ? 1 : scores.dims[0];
  std::vector<std::vector<std::pair<int64_t, double>>> top(static_cast<size_t>(rows));
  for (int64_t row = 0; row < rows; ++row) {
    auto& list = top[static_cast<size_t>(row)];
    for (int64_t i = 0; i < length; ++i)
      list.emplace_back(i, elementAsReal(scores, row * length + i));
    const auto key = [](double x) {
      return std::isnan(x) ? -std::numeric_limits<double>::infinity() : x;
    };
    std::stable_sort(list.begin(), list.end(),
                     [&](const auto& a, const auto& b) { return key(a.second) > key(b.second); });
    list.resize(std::min<size_t>(list.size(), static_cast<size_t>(k)));
  }
  return top;
}

std::string summaryText(const Tensor& tensor) {
  const int64_t count = tensor.count();
  if (count == 0) return "empty";
  if (count <= 8) {
    std::string text;
    for (int64_t i = 0; i < count; ++i) text += (i ? " " : "") + elementText(tensor, i);
    return text;
  }
  const Summary s = summarise(tensor);
  std::string text = fmt::format("min {:.6g}  max {:.6g}  mean {:.6g}", s.min, s.max, s.mean);
  if (s.nans) text += fmt::format("  NaN {}", s.nans);
  return text;
}

Json summaryJson(const sdk::Port& port, const Tensor& tensor) {
  Json json = {{"name", port.name}, {"dtype", elemName(tensor.elem)}, {"shape", tensor.dims}};
  if (tensor.count() > 0) {
    const Summary s = summarise(tensor);
    json.update({{"min", s.min}, {"max", s.max}, {"mean", s.mean}, {"nan", s.nans}});
  }
  return json;
}

} // namespace candela::tool
