#include "core/compiler/program/report/problem_file.h"

#include <array>
#include <map>
#include <optional>

#include "core/support/text/scan.h"
#include "core/support/text/shown.h"

namespace candela::program::report {

namespace {

enum Column : size_t { kId, kLower, kUpper, kSize, kAlignment, kGaps, kOffset, kColumns };

constexpr std::array<const char*, kColumns> kNames = {"id",        "lower", "upper", "size",
                                                      "alignment", "gaps",  "offset"};

std::optional<Column> columnOf(std::string_view name) {
  if (name == "buffer" || name == "buffer_id") return kId;
  if (name == "start" || name == "begin") return kLower;
  if (name == "end") return kUpper;
  for (size_t c = 0; c < kColumns; ++c)
    if (name == kNames[c]) return static_cast<Column>(c);
  return std::nullopt;
}

/// Without blanks and the carriage return around it.
std::string_view trimmed(std::string_view text) {
  const size_t from = text.find_first_not_of(" \t\r");
  return from == text.npos ? std::string_view()
                           : text.substr(from, text.find_last_not_of(" \t\r") - from + 1);
}

struct Field {
  std::string_view text;
  int column = 1; ///< of its first character, from 1
};

std::vector<Field> fieldsOf(std::string_view line) {
  std::vector<Field> fields;
  for (size_t from = 0; from <= line.size();) {
    const size_t comma = std::min(line.find(',', from), line.size());
    fields.push_back({trimmed(line.substr(from, comma - from)), static_cast<int>(from) + 1});
    from = comma + 1;
  }
  return fields;
}

class Reader {
public:
  Reader(const std::string& file, Diagnostics& diagnostics)
      : file_(file), diagnostics_(diagnostics) {}

  Result<NamedProblem> read(std::string_view text) {
    bool hasHeader = false;
    for (size_t from = 0; from < text.size(); ++line_) {
      const size_t end = std::min(text.find('\n', from), text.size());
      const std::string_view line = text.substr(from, end - from);
      from = end + 1;
      if (trimmed(line).empty()) continue;
      const std::vector<Field> fields = fieldsOf(line);
      if (hasHeader) {
        row(fields);
        continue;
      }
      if (!header(fields)) return diagnostics_.status();
      hasHeader = true;
    }
    if (!hasHeader)
      error({{}, 1}, "the file is empty; a line of column names is needed: id,lower,upper,size");
    CDL_TRY(diagnostics_.status());
    return std::move(named_);
  }

private:
  template <typename... Args>
  void error(const Field& at, fmt::format_string<Args...> format, Args&&... args) {
    diagnostics_.error({file_, line_, at.column}, fmt::format(format, std::forward<Args>(args)...));
  }

  bool header(const std::vector<Field>& fields) {
    for (size_t i = 0; i < fields.size(); ++i) {
      const auto column = columnOf(fields[i].text);
      if (!column)
        error(fields[i],
              "no column is named '{}'; there are id, lower, upper, size, alignment, gaps, offset",
              fields[i].text);
      else if (places_[*column])
        error(fields[i], "column '{}' stands there twice", kNames[*column]);
      else
        places_[*column] = i;
      endsInclusively_ |= fields[i].text == "end";
    }
    for (const Column column : {kId, kLower, kUpper, kSize})
      if (!places_[column] && diagnostics_.empty())
        error(fields[0], "column '{}' is missing", kNames[column]);
    width_ = fields.size();
    return diagnostics_.empty();
  }

  template <typename T> std::optional<T> number(const std::vector<Field>& fields, Column column) {
    const Field& field = fields[*places_[column]];
    const auto value = text::parseNumber<T>(field.text);
    if (!value)
      error(field, "{} '{}' is no integer{}", kNames[column], field.text,
            std::is_unsigned_v<T> ? " of 0 to 18446744073709551615" : " of 64 bits");
    return value;
  }

  void row(const std::vector<Field>& fields) {
    if (fields.size() != width_)
      return error(fields.back(), "{} fields, but there are {} columns", fields.size(), width_);
    const Field& id = fields[*places_[kId]];
    const auto [known, isNew] = lines_.emplace(id.text, line_);
    if (!isNew)
      return error(id, "buffer '{}' is there already, in line {}", id.text, known->second);
    const auto lower = number<int64_t>(fields, kLower), upper = number<int64_t>(fields, kUpper);
    const auto size = number<uint64_t>(fields, kSize);
    const auto alignment =
        places_[kAlignment] ? number<uint64_t>(fields, kAlignment) : std::optional<uint64_t>(1);
    if (!lower || !upper || !size || !alignment) return;
    const Field& last = fields[*places_[kUpper]];
    if (endsInclusively_ && *upper == INT64_MAX)
      return error(last, "buffer '{}' never ends", id.text);
    const int64_t end = *upper + (endsInclusively_ ? 1 : 0);
    if (*lower >= end)
      return error(last, "buffer '{}' begins at {} but ends at {}", id.text, *lower, *upper);
    if (*alignment == 0 || (*alignment & (*alignment - 1)) != 0)
      return error(fields[*places_[kAlignment]], "buffer '{}' has alignment {}, not a power of two",
                   id.text, *alignment);
    solvers::memory::Interval buffer{*lower, end, *size, *alignment};
    if (places_[kGaps] && !gaps(fields[*places_[kGaps]], id.text, buffer)) return;
    named_.problem.buffers.push_back(std::move(buffer));
    named_.ids.emplace_back(id.text);
  }

  /// "2-4 7-9": others may have its bytes in [2, 4) and [7, 9).
  bool gaps(const Field& field, std::string_view id, solvers::memory::Interval& buffer) {
    for (const std::string& text : text::split(field.text, ' ')) {
      if (text.empty()) continue;
      const size_t dash = std::min(text.find('-', 1), text.size()); // a time may be negative
      const std::string_view from = std::string_view(text).substr(0, dash),
                             to = std::string_view(text).substr(dash);
      const auto begin = text::parseNumber<int64_t>(from);
      const auto end = text::parseNumber<int64_t>(to.substr(std::min<size_t>(1, to.size())));
      if (!begin || !end) {
        error(field, "gap '{}' of buffer '{}' is not two times as in 2-4", text, id);
        return false;
      }
      const int64_t first = buffer.gaps.empty() ? buffer.begin : buffer.gaps.back().end;
      if (const int64_t last = *end; *begin < first || *begin >= last || last > buffer.end) {
        error(field, "gap '{}' of buffer '{}' does not lie in what is left of its life, {} to {}",
              text, id, first, buffer.end);
        return false;
      }
      buffer.gaps.push_back({*begin, *end});
    }
    return true;
  }

  const std::string& file_;
  Diagnostics& diagnostics_;
  int line_ = 1;
  size_t width_ = 0;
  bool endsInclusively_ = false;
  std::array<std::optional<size_t>, kColumns> places_;
  std::map<std::string, int, std::less<>> lines_; ///< of ids
  NamedProblem named_;
};

} // namespace

Result<NamedProblem> parseProblem(std::string_view text, const std::string& file,
                                  Diagnostics& diagnostics) {
  return Reader(file, diagnostics).read(text);
}

std::string solutionText(const NamedProblem& named, const solvers::memory::MemoryPlan& plan) {
  bool isAligned = false, hasGaps = false;
  for (const solvers::memory::Interval& buffer : named.problem.buffers) {
    isAligned |= buffer.alignment != 1;
    hasGaps |= !buffer.gaps.empty();
  }
  std::string out = fmt::format("id,lower,upper,size{}{},offset\n", isAligned ? ",alignment" : "",
                                hasGaps ? ",gaps" : "");
  for (size_t i = 0; i < named.ids.size(); ++i) {
    const solvers::memory::Interval& buffer = named.problem.buffers[i];
    out += fmt::format("{},{},{},{}", text::plainCell(named.ids[i]), buffer.begin, buffer.end,
                       buffer.size);
    if (isAligned) out += fmt::format(",{}", buffer.alignment);
    if (hasGaps) {
      std::vector<std::string> gaps;
      for (const solvers::memory::TimeSpan& gap : buffer.gaps)
        gaps.push_back(fmt::format("{}-{}", gap.begin, gap.end));
      out += fmt::format(",{}", fmt::join(gaps, " "));
    }
    out += fmt::format(",{}\n", plan.offsets[i]);
  }
  return out;
}

} // namespace candela::program::report
