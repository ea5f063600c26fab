#pragma once

#include "conformance/report/report.h"

namespace candela::conformance::report {

/// What a run had when it was killed: a line for each finished case, written at once, each with a
/// checksum.
class Journal {
public:
  /// Opens a journal, or begins one where there is none, and reads what it has. A last line that
  /// was not written to its end is dropped. Failure: io; bad_model for a line that is damaged;
  /// invalid_argument for a journal of another run, naming what differs, or one that another
  /// process has open.
  static Result<Journal> open(const std::string& file, const Report& run,
                              const std::vector<std::string>& addresses);
  ~Journal();
  Journal(Journal&& other) noexcept;
  Journal& operator=(Journal&&) = delete;

  /// Results that it had when it was opened.
  const std::vector<CaseResult>& had() const { return had_; }
  /// Failure: io.
  Status add(const CaseResult& result);

private:
  Journal() = default;
  Status append(const std::string& record);
  std::string file_;
  int fd_ = -1;
  std::vector<CaseResult> had_;
};

} // namespace candela::conformance::report
