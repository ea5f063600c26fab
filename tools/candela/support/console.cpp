#include "tools/candela/support/console.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>

#include "candela/candela.h"
#include "core/support/file.h"

namespace candela::tool {

void tell(const std::string& text) noexcept { std::fwrite(text.data(), 1, text.size(), stderr); }

namespace {

/// Stands in front of a style's letter in text that is not written yet. Drawn for each process: no
/// file can hold it.
const std::string& styleMark() {
  static const std::string mark = [] {
    std::random_device draw;
    return fmt::format("\x0e{:08x}{:08x}", draw(), draw());
  }();
  return mark;
}

/// The text with what lies between its styles put through `shown`, and each style through `style`.
template <typename F, typename G>
std::string betweenStyles(std::string_view text, F&& shown, G&& style) {
  const std::string& mark = styleMark();
  std::string out;
  while (!text.empty()) {
    const size_t at = std::min(text.find(mark), text.size());
    out += shown(text.substr(0, at));
    text.remove_prefix(at);
    if (text.size() <= mark.size()) break;
    out += style(text.substr(0, mark.size() + 1));
    text.remove_prefix(mark.size() + 1);
  }
  return out;
}

std::string sequenceOf(char style) {
  switch (style) {
  case 'b': return "\033[1m";
  case 'r': return "\033[31m";
  case 'g': return "\033[32m";
  default: return "\033[0m";
  }
}

} // namespace

std::string shownCell(std::string_view text) {
  return betweenStyles(text, text::shownLine, [](std::string_view style) { return style; });
}

void Console::write(const std::string& unsafe) {
  const std::string text = betweenStyles(
      unsafe, text::shownText, [](std::string_view style) { return sequenceOf(style.back()); });
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() && !writeError_)
    writeError_ = errno ? errno : EIO;
}

void Console::finish() {
  errno = 0;
  if (std::fflush(stdout) != 0 && !writeError_) writeError_ = errno ? errno : EIO;
  if (writeError_) fail(kWorkFailed, "cannot write to stdout: {}", std::strerror(writeError_));
}

void Console::writeError(std::string_view text) {
  std::string out = text::shownText(text);
  for (size_t at = 0; (at = out.find('\n', at)) != out.npos; ++at)
    if (!out.substr(at + 1).starts_with(' ')) out.insert(at + 1, "  ");
  tell(out + "\n");
}

std::string Console::styled(char style, std::string_view text) const {
  static const bool on = isatty(STDOUT_FILENO) && !std::getenv("NO_COLOR");
  return on ? fmt::format("{0}{1}{2}{0}.", styleMark(), style, text) : std::string(text);
}

Json Console::report(std::string_view name) const {
  return {{"schema", fmt::format("candela.{}/1", name)},
          {"candela_version", candela_version()},
          {"command", commandLine_}};
}

void Console::writeJson(const Json& report) {
  if (!wantsJson()) return;
  const std::string text =
      text::shownJson(report.dump(2, ' ', false, Json::error_handler_t::replace)) + "\n";
  if (jsonPath == "-") return write(text);
  check(writeFile(jsonPath, text.data(), text.size()), kWorkFailed);
}

namespace {

/// Characters on the screen of UTF-8 text without control sequences.
size_t widthOf(std::string_view text) {
  size_t width = 0;
  for (const char c : text) width += (c & 0xc0) != 0x80;
  return width;
}

} // namespace

void Table::add(std::vector<std::string> row) {
  for (std::string& cell : row) cell = shownCell(cell);
  rows_.push_back(std::move(row));
}

std::string Table::text(size_t indent) const {
  std::vector<size_t> widths(columns_.size(), 0);
  const auto measure = [&](const std::vector<std::string>& row) {
    for (size_t i = 0; i < row.size() && i < widths.size(); ++i)
      widths[i] = std::max(widths[i], widthOf(row[i]));
  };
  measure(columns_);
  for (const auto& row : rows_) measure(row);
  std::string out;
  const auto line = [&](const std::vector<std::string>& row) {
    std::string text(indent, ' ');
    for (size_t i = 0; i < row.size(); ++i) {
      text += row[i];
      if (i + 1 < row.size()) text.append(widths[i] - widthOf(row[i]) + 2, ' ');
    }
    while (!text.empty() && text.back() == ' ') text.pop_back();
    out += text + "\n";
  };
  line(columns_);
  for (const auto& row : rows_) line(row);
  return out;
}

Progress::Progress(std::string_view what)
    : what_(text::shownLine(what)), isTerminal_(isatty(STDERR_FILENO)) {}

void Progress::update(std::string_view unsafe, double fraction) {
  const std::string stage = text::shownLine(unsafe);
  const auto now = std::chrono::steady_clock::now();
  const auto pause =
      isTerminal_ ? std::chrono::milliseconds(100) : std::chrono::milliseconds(10000);
  if (now - start_ < std::chrono::seconds(2) || (shown_ != start_ && now - shown_ < pause)) return;
  shown_ = now;
  const double part = std::min(std::max(fraction, 0.0), 1.0);
  if (!isTerminal_) {
    tell(fmt::format("{}: {} {:.0f} %\n", what_, stage, 100 * part));
    return;
  }
  constexpr int kWidth = 24;
  std::string bar;
  for (int i = 0; i < kWidth; ++i) bar += i < part * kWidth ? "█" : "░";
  tell(fmt::format("\r\033[K{} {} {:.0f} %  {}", what_, bar, 100 * part, stage));
  std::fflush(stderr);
  drawn_ = true;
}

Progress::~Progress() { clear(); }

void Progress::clear() {
  if (drawn_) std::fputs("\r\033[K", stderr);
  drawn_ = false;
}

void Progress::callback(void* context, const char* stage, double fraction) {
  static_cast<Progress*>(context)->update(stage ? stage : "", fraction);
}

std::string bytesText(uint64_t bytes) {
  if (bytes < 1000) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes);
  const char* unit = "B";
  for (const char* next : {"KB", "MB", "GB", "TB"}) {
    if (value < 999.95) break;
    value /= 1000;
    unit = next;
  }
  return fmt::format("{:.1f} {}", value, unit);
}

std::string countText(uint64_t count) {
  if (count < 10000) return fmt::format("{}", count);
  if (count < 10000000) return fmt::format("{:.0f} k", static_cast<double>(count) / 1e3);
  return fmt::format("{:.1f} M", static_cast<double>(count) / 1e6);
}

std::string groupedText(uint64_t number) {
  std::string text = std::to_string(number);
  for (size_t i = text.size(); i > 3; i -= 3) text.insert(i - 3, ",");
  return text;
}

std::string groupedText(double number, int decimals) {
  std::string text = fmt::format("{:.{}f}", number, decimals);
  const size_t first = text.starts_with('-') ? 1 : 0;
  const size_t end = std::min(text.find('.'), text.size());
  const bool isNumber = std::isfinite(number);
  for (size_t i = end; isNumber && i > first + 3; i -= 3) text.insert(i - 3, ",");
  return text;
}

std::string timeText(double milliseconds) {
  if (milliseconds < 0.1) return fmt::format("{:.1f} us", milliseconds * 1000);
  if (milliseconds >= 1000) return fmt::format("{:.2f} s", milliseconds / 1000);
  if (milliseconds < 10) return fmt::format("{:.2f} ms", milliseconds);
  return fmt::format("{:.{}f} ms", milliseconds, milliseconds < 100 ? 1 : 0);
}

double millisecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

std::string typeText(std::string_view elem, const std::vector<int64_t>& dims) {
  return fmt::format("{}[{}]", elem, fmt::join(dims, ","));
}

} // namespace candela::tool
