#include "tools/candela/support/expect.h"

#include <charconv>

namespace candela::tool {
namespace {

std::vector<std::string> linesOf(const std::string& text) {
  std::vector<std::string> lines;
  size_t from = 0;
  while (from <= text.size()) {
    const size_t to = std::min(text.find('\n', from), text.size());
    lines.push_back(text.substr(from, to - from));
    from = to + 1;
  }
  return lines;
}

} // namespace

std::vector<std::string> splitParts(const std::string& text) {
  std::vector<std::string> parts(1);
  const std::vector<std::string> lines = linesOf(text);
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].starts_with("// -----"))
      parts.push_back(std::string(i + 1, '\n'));
    else
      parts.back() += lines[i] + "\n";
  }
  return parts;
}

ExpectedErrors::ExpectedErrors(const std::string& text, std::string file) : file_(std::move(file)) {
  constexpr std::string_view kMark = "expected-error";
  const std::vector<std::string> lines = linesOf(text);
  for (size_t i = 0; i < lines.size(); ++i) {
    const int here = static_cast<int>(i) + 1;
    const size_t comment = lines[i].find("//");
    if (comment == std::string::npos) continue;
    for (size_t at = lines[i].find(kMark, comment); at != std::string::npos;
         at = lines[i].find(kMark, at)) {
      at += kMark.size();
      int line = here;
      if (lines[i].compare(at, 2, "@*") == 0) {
        line = -1;
      } else if (lines[i].compare(at, 1, "@") == 0) {
        const char* number = lines[i].c_str() + at + 1;
        int offset = 0;
        std::from_chars(*number == '+' ? number + 1 : number, lines[i].c_str() + lines[i].size(),
                        offset);
        line = here + offset;
      }
      // Anything else that contains the word is a comment like another.
      const size_t open = lines[i].find_first_not_of("@*+-0123456789 ", at),
                   close = lines[i].find("}}", at);
      if (open == std::string::npos || close == std::string::npos ||
          lines[i].compare(open, 2, "{{") != 0)
        continue;
      entries_.push_back({here, line, lines[i].substr(open + 2, close - open - 2)});
      at = close;
    }
  }
}

void ExpectedErrors::match(int line, const std::string& message) {
  for (Entry& entry : entries_)
    if (!entry.seen && (line == 0 || entry.line == -1 || entry.line == line) &&
        message.find(entry.text) != std::string::npos) {
      entry.seen = true;
      return;
    }
  problems_ += fmt::format("\n{}:{}: unexpected error: {}", file_, line, message);
}

Status ExpectedErrors::finish() const {
  std::string problems = problems_;
  for (const Entry& entry : entries_)
    if (!entry.seen)
      problems += fmt::format("\n{}:{}: expected error did not happen: {}", file_,
                              entry.announcedAt, entry.text);
  if (entries_.empty() && problems.empty())
    problems = fmt::format("\n{}: announces no error", file_);
  if (problems.empty()) return Status::ok();
  return Status(Code::mismatch, problems.substr(1));
}

} // namespace candela::tool
