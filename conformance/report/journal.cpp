#include "conformance/report/journal.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "conformance/report/report_json.h"
#include "core/support/file.h"
#include "core/support/hash.h"
#include "core/support/json.h"

namespace candela::conformance::report {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kDigits = 16; ///< of a line's checksum

std::string checksum(std::string_view record) {
  return hashText(sha256(record.data(), record.size())).substr(0, kDigits);
}

/// What must be the same for a run to go on.
Json identityOf(const Report& run, const std::vector<std::string>& addresses) {
  std::string all;
  for (const std::string& address : addresses) all += address + "\n";
  return {{"schema", "candela.conform-journal/1"},
          {"suite version", run.suiteVersion},
          {"corpus", run.corpusHash},
          {"size", sizeName(run.setting.size)},
          {"seed", run.setting.seed},
          {"to_primitives", run.setting.toPrimitives},
          {"cases", hashText(sha256(all.data(), all.size()))},
          {"backend", run.candidate.name},
          {"backend version", run.candidate.version},
          {"backend file", run.candidate.sha256},
          {"device", run.candidate.device},
          {"options", run.candidate.options}};
}

Status systemFailure(const std::string& file, const char* what) {
  return failure(Code::io, "{}: cannot {}: {}", file, what, std::strerror(errno));
}

/// Of two runs on one journal each would drop the line that the other one is writing. The system
/// frees the lock with the process, and the workers that it forks do not have it.
Status takeAlone(const std::string& file, int fd) {
  struct stat info{};
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode))
    return badArgument("{}: is no journal: not a regular file", file);
  struct flock lock{};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  if (fcntl(fd, F_SETLK, &lock) == 0) return Status::ok();
  if (errno != EACCES && errno != EAGAIN) return systemFailure(file, "lock");
  const bool isKnown = fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
  return badArgument(
      "{}: another run{} writes this journal; let it end, or give this one a journal of its own",
      file, isKnown ? fmt::format(", process {},", lock.l_pid) : "");
}

} // namespace

Journal::Journal(Journal&& other) noexcept
    : file_(std::move(other.file_)), fd_(std::exchange(other.fd_, -1)),
      had_(std::move(other.had_)) {}

Journal::~Journal() {
  if (fd_ >= 0) close(fd_);
}

Status Journal::append(const std::string& record) {
  const std::string line = checksum(record) + " " + record + "\n";
  for (size_t done = 0; done < line.size();) {
    const ssize_t n = write(fd_, line.data() + done, line.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return systemFailure(file_, "write");
    done += static_cast<size_t>(n);
  }
  return Status::ok();
}

Status Journal::add(const CaseResult& result) {
  return append(caseJson(result).dump(-1, ' ', false, Json::error_handler_t::replace));
}

Result<Journal> Journal::open(const std::string& file, const Report& run,
                              const std::vector<std::string>& addresses) {
  Journal journal;
  journal.file_ = file;
  journal.fd_ = ::open(file.c_str(), O_RDWR | O_CREAT | O_APPEND | O_NONBLOCK | O_CLOEXEC, 0666);
  if (journal.fd_ < 0) return systemFailure(file, "open");
  CDL_TRY(takeAlone(file, journal.fd_));
  std::string text;
  char buffer[1 << 16];
  for (ssize_t n; (n = read(journal.fd_, buffer, sizeof buffer)) != 0;) {
    if (n < 0) return systemFailure(file, "read");
    text.append(buffer, static_cast<size_t>(n));
  }

  const Json identity = identityOf(run, addresses);
  const std::string first = identity.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::set<std::string, std::less<>> known(addresses.begin(), addresses.end());
  size_t start = 0, line = 0;
  for (size_t end; (end = text.find('\n', start)) != text.npos; start = end + 1) {
    const std::string_view whole = std::string_view(text).substr(start, end - start);
    const std::string_view record = whole.substr(std::min(kDigits + 1, whole.size()));
    ++line;
    if (whole.substr(0, kDigits) != checksum(record)) {
      // the last line, of a file system that lost a part of it
      if (end + 1 == text.size() && line > 1) break;
      return badModel("{}:{}: no line of a journal, or damaged", file, line);
    }
    const Json json = parseJson<Json>(record);
    if (line == 1) {
      for (const auto& [key, value] : identity.items())
        if (!json.contains(key) || json[key] != value)
          return badArgument("{}: is the journal of another run: its {} is {}, not {}", file, key,
                             json.contains(key) ? json[key].dump() : "unknown", value.dump());
      continue;
    }
    CDL_ASSIGN(CaseResult result, parseCase(json).context(fmt::format("{}:{}", file, line)));
    if (known.erase(result.name) == 0)
      return badModel("{}:{}: {} for the second time", file, line, result.name);
    journal.had_.push_back(std::move(result));
  }
  if (line == 0 && !(checksum(first) + " " + first).starts_with(text))
    return badModel("{}: is no journal", file);
  if (start < text.size() && ftruncate(journal.fd_, static_cast<off_t>(start)) != 0)
    return systemFailure(file, "truncate");
  if (line == 0) CDL_TRY(journal.append(first));
  return journal;
}

} // namespace candela::conformance::report
