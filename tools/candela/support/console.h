#pragma once

#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "core/support/status.h"
#include "core/support/text/shell.h"
#include "core/support/text/shown.h"

/// What every sub-command says to people and scripts, and how it ends.
namespace candela::tool {

using Json = nlohmann::ordered_json;

inline constexpr int kSuccess = 0;
/// a mismatch, a failed case, a file that could not be written
inline constexpr int kWorkFailed = 1;
inline constexpr int kBadInput = 2; ///< bad usage, or a model or tensor that cannot be used

/// Ends the command with one message on stderr: "error: <message>".
class Failure : public std::runtime_error {
public:
  Failure(int exitCode, const std::string& message)
      : std::runtime_error(message), exitCode_(exitCode) {}
  int exitCode() const { return exitCode_; }

private:
  int exitCode_;
};
template <typename... Args>
[[noreturn]] void fail(int exitCode, fmt::format_string<Args...> format, Args&&... args) {
  throw Failure(exitCode, fmt::format(format, std::forward<Args>(args)...));
}
inline void check(const Status& status, int exitCode = kBadInput) {
  if (!status) throw Failure(exitCode, status.message());
}
template <typename T> T check(Result<T> result, int exitCode = kBadInput) {
  check(result.status(), exitCode);
  return std::move(result).value();
}

/// Writes to stderr what it can take: there is nobody to tell where it is full or closed.
void tell(const std::string& text) noexcept;

/// A text of one line, as a terminal may have it; the styles of Console stay.
std::string shownCell(std::string_view text);

/// What is formatted of an argument: texts as shownCell has them, anything else as it is.
template <typename T>
using Shown = std::conditional_t<std::is_convertible_v<T, std::string_view>, std::string,
                                 std::remove_cvref_t<T>>;
template <typename T> Shown<const T&> shownArgument(const T& argument) {
  if constexpr (std::is_convertible_v<const T&, std::string_view>)
    return shownCell(argument);
  else
    return argument;
}
template <typename... Args> std::string shownFormat(fmt::string_view format, const Args&... args) {
  return fmt::vformat(format, fmt::make_format_args(shownArgument(args)...));
}

/// stdout, stderr and the JSON report: the one place where text leaves for the terminal. With
/// --json - the report is all that stdout gets. One thread.
class Console {
public:
  explicit Console(std::string commandLine) : commandLine_(std::move(commandLine)) {}

  std::string jsonPath; ///< empty: no report; "-": stdout

  bool wantsJson() const { return !jsonPath.empty(); }
  /// Texts among the arguments are names and messages of a line each: what a terminal would obey is
  /// escaped in them.
  template <typename... Args>
  void print(fmt::format_string<Shown<Args>...> format, Args&&... args) {
    if (jsonPath != "-") write(shownFormat(format, args...));
  }
  /// Text that is made of lines already.
  void printText(const std::string& text) {
    if (jsonPath != "-") write(text);
  }
  /// A line on stderr that is no error.
  template <typename... Args> void note(fmt::format_string<Shown<Args>...> format, Args&&... args) {
    writeError("note: " + shownFormat(format, args...));
  }
  /// Lines on stderr, and the end of the last one. What a terminal would obey is escaped; lines
  /// behind the first one are set in.
  static void writeError(std::string_view text);

  /// Bold on a terminal, unless NO_COLOR is set.
  std::string bold(std::string_view text) const { return styled('b', text); }
  std::string red(std::string_view text) const { return styled('r', text); }
  std::string green(std::string_view text) const { return styled('g', text); }

  /// {schema: "candela.<name>/1", candela_version, command}
  Json report(std::string_view name) const;
  /// Writes the report where --json says. Throws Failure when that is impossible; an old file
  /// survives.
  void writeJson(const Json& report);
  /// Throws Failure when stdout could not take everything.
  void finish();

  const std::string& commandLine() const { return commandLine_; }

private:
  /// Escapes what is left to escape, and makes the styles.
  void write(const std::string& text);
  std::string styled(char style, std::string_view text) const;
  std::string commandLine_;
  int writeError_ = 0;
};

/// Columns as wide as their widest cell; the last one is free. Cells are shownCell.
class Table {
public:
  explicit Table(std::vector<std::string> columns) : columns_(std::move(columns)) {}
  void add(std::vector<std::string> row);
  bool empty() const { return rows_.empty(); }
  /// One line each, after `indent` blanks, with the columns' names first.
  std::string text(size_t indent = 2) const;

private:
  std::vector<std::string> columns_;
  std::vector<std::vector<std::string>> rows_;
};

/// Shows on stderr how far something is, once it took two seconds: a bar on a terminal, else now
/// and then a line.
class Progress {
public:
  explicit Progress(std::string_view what);
  ~Progress();
  void update(std::string_view stage, double fraction);
  /// Takes the bar off the screen, so that a line can be written; the next update draws it again.
  void clear();
  /// The form of the embedding API; context is a Progress.
  static void callback(void* context, const char* stage, double fraction);

private:
  std::string what_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now(), shown_ = start_;
  bool drawn_ = false, isTerminal_;
};

std::string bytesText(uint64_t bytes);    ///< "1.2 MB"
std::string countText(uint64_t count);    ///< "35 k"
std::string groupedText(uint64_t number); ///< "35,123"
/// "35,123.40" with so many decimals; of what is no number, as C++ writes it.
std::string groupedText(double number, int decimals);
std::string timeText(double milliseconds); ///< "7.2 us", "0.31 ms", "4.2 s"
double millisecondsSince(std::chrono::steady_clock::time_point start);
using text::shellQuoted;
/// "1x3x8x8" as text of a JSON list or of anything that fmt joins.
std::string typeText(std::string_view elem, const std::vector<int64_t>& dims);

} // namespace candela::tool
