// The one symbol: older and newer hosts, in length and in number.
#include <algorithm>
#include <cctype>
#include <cstring>
#include <thread>

#include "conformance/tiers/abi/abi.h"
#include "core/support/threads.h"

namespace candela::conformance::tiers::abi {
namespace {

using Version = std::pair<uint16_t, uint16_t>;
constexpr Version kHere{CDL_ABI_MAJOR, CDL_ABI_MINOR};

/// What the plugin answers a host of some version, whose table and host struct have these lengths.
struct Answer {
  cdl_code_t code = CDL_OK;
  std::string text;
  bool untouched = true; ///< no byte of the table was written
  Status inside;         ///< nothing was written behind struct_size
  cdl_plugin_t table{};  ///< as far as it was filled
};

/// The table stands before a page that nobody may touch; its struct_size may be smaller than it is.
Result<Answer> ask(Port& port, Version version, size_t tableBytes,
                   size_t hostBytes = sizeof(cdl_host_t)) {
  CDL_ASSIGN(const cdl_backend_query_fn query, port.query());
  cdl_host_t plain = plainHost();
  plain.header = {static_cast<uint16_t>(hostBytes), version.first, version.second, 0};
  std::string host(std::max(hostBytes, sizeof(cdl_header_t)), '\0');
  std::memcpy(host.data(), &plain, std::min(host.size(), sizeof plain));
  // A host that knows more has non-null services where this header has none.
  for (size_t i = sizeof plain; i < host.size(); ++i) host[i] = '\xEE';
  CDL_ASSIGN(const PageEnd hostEnd, PageEnd::of(host.data(), host.size()));

  const size_t room = std::max(tableBytes, sizeof(cdl_header_t));
  std::string before(room, '\xAB');
  const cdl_header_t header = {static_cast<uint16_t>(tableBytes), version.first, version.second, 0};
  std::memcpy(before.data(), &header, sizeof header);
  CDL_ASSIGN(const PageEnd table, PageEnd::of(before.data(), room));
  Said said;
  Answer answer;
  answer.code = query(hostEnd.as<cdl_host_t>(), table.as<cdl_plugin_t>(), said.error());
  answer.text = said.text();
  CDL_TRY(said.whole());
  const std::string after(table.as<char>(), room);
  answer.untouched = after == before;
  if (answer.code != CDL_OK) return answer;
  uint16_t filled = 0;
  std::memcpy(&filled, after.data(), sizeof filled);
  if (filled > tableBytes)
    answer.inside =
        wrong("struct_size {} of a table that the host knows {} bytes of", filled, tableBytes);
  for (size_t i = filled; i < room && answer.inside; ++i)
    if (after[i] != '\xAB')
      answer.inside = wrong("byte {} was written, behind struct_size {}", i, filled);
  std::memcpy(&answer.table, after.data(), std::min<size_t>(filled, sizeof answer.table));
  return answer;
}

/// An answer that does not take the host: the code, both numbers, and no byte of the table.
Status declined(const Answer& answer, std::initializer_list<cdl_code_t> codes, bool namesNumbers) {
  if (std::ranges::find(codes, answer.code) == codes.end())
    return wrong("{}, expected {}: {}", nameOf(answer.code), nameOf(*codes.begin()), answer.text);
  if (!answer.untouched)
    return wrong("the table was written before the answer {}", nameOf(answer.code));
  size_t numbers = 0;
  for (size_t i = 0; i < answer.text.size(); ++i)
    numbers += std::isdigit(answer.text[i]) && (i == 0 || !std::isdigit(answer.text[i - 1]));
  if (namesNumbers && numbers < 2)
    return wrong("the message does not name both numbers: '{}'", answer.text);
  return Status::ok();
}

Outcome loads(Port& port) {
  CDL_ASSIGN(const Answer answer, ask(port, kHere, sizeof(cdl_plugin_t)));
  if (answer.code != CDL_OK) return wrong("{}: {}", nameOf(answer.code), answer.text);
  CDL_TRY(answer.inside);
  return CaseResult::passed();
}

Outcome sameAgain(Port& port) {
  CDL_ASSIGN(const Answer first, ask(port, kHere, sizeof(cdl_plugin_t)));
  CDL_ASSIGN(const Answer second, ask(port, kHere, sizeof(cdl_plugin_t)));
  if (std::memcmp(&first.table, &second.table, sizeof first.table) != 0)
    return wrong("the second table is another");
  return CaseResult::passed();
}

Outcome anyThread(Port& port) {
  CDL_ASSIGN(const Answer first, ask(port, kHere, sizeof(cdl_plugin_t)));
  std::vector<Status> said(8, Status::ok());
  atTheSameTime(said.size(), [&](size_t i) {
    for (int turn = 0; turn < 32 && said[i]; ++turn) {
      const auto again = ask(port, kHere, sizeof(cdl_plugin_t));
      said[i] = again.status();
      if (again && std::memcmp(&first.table, &again.value().table, sizeof first.table) != 0)
        said[i] = wrong("a table asked for on another thread is another");
    }
  });
  for (const Status& status : said) CDL_TRY(status);
  return CaseResult::passed();
}

Outcome nullHost(Port& port) {
  CDL_ASSIGN(const cdl_backend_query_fn query, port.query());
  cdl_plugin_t table{};
  table.header = CDL_HEADER(cdl_plugin_t);
  Said said;
  return CaseResult::of(
      refusedBy("a null host", query(nullptr, &table, said.error()), said, {CDL_INVALID_ARGUMENT}));
}

Outcome nullTable(Port& port) {
  CDL_ASSIGN(const cdl_backend_query_fn query, port.query());
  const cdl_host_t host = plainHost();
  Said said;
  return CaseResult::of(
      refusedBy("a null table", query(&host, nullptr, said.error()), said, {CDL_INVALID_ARGUMENT}));
}

Outcome nullError(Port& port) {
  CDL_ASSIGN(const cdl_backend_query_fn query, port.query());
  if (const cdl_code_t code = query(nullptr, nullptr, nullptr); code != CDL_INVALID_ARGUMENT)
    return wrong("{}, expected invalid_argument", nameOf(code));
  cdl_plugin_t table{};
  table.header = CDL_HEADER(cdl_plugin_t);
  const cdl_host_t host = plainHost();
  return CaseResult::of(
      succeeded("a query without an error buffer", query(&host, &table, nullptr), Said()));
}

/// A table or a host shorter than its own header.
Check shorterThanHeader(bool table) {
  return [=](Port& port) -> Outcome {
    for (size_t bytes = 0; bytes < sizeof(cdl_header_t); ++bytes) {
      CDL_ASSIGN(const Answer answer, ask(port, kHere, table ? bytes : sizeof(cdl_plugin_t),
                                          table ? sizeof(cdl_host_t) : bytes));
      CDL_TRY(
          declined(answer, {CDL_INVALID_ARGUMENT}, false).context(fmt::format("{} bytes", bytes)));
    }
    return CaseResult::passed();
  };
}

/// A host that knows the table as far as `bytes`: it gets no more, or is told how much is needed.
Check olderTable(size_t bytes) {
  return [=](Port& port) -> Outcome {
    CDL_ASSIGN(const Answer answer, ask(port, kHere, bytes));
    if (answer.code != CDL_OK) return CaseResult::of(declined(answer, {CDL_INCOMPATIBLE}, true));
    CDL_TRY(answer.inside);
    return CaseResult::passed();
  };
}

/// A host that knows more than this header.
Check newerHost(uint16_t minor, size_t more) {
  return [=](Port& port) -> Outcome {
    CDL_ASSIGN(const Answer answer, ask(port, {CDL_ABI_MAJOR, minor}, sizeof(cdl_plugin_t) + more,
                                        sizeof(cdl_host_t) + more));
    if (answer.code != CDL_OK) return wrong("{}: {}", nameOf(answer.code), answer.text);
    CDL_TRY(answer.inside);
    return CaseResult::passed();
  };
}

Check otherMajor(uint16_t major) {
  return [=](Port& port) -> Outcome {
    CDL_ASSIGN(const Answer answer, ask(port, {major, CDL_ABI_MINOR}, sizeof(cdl_plugin_t)));
    CDL_TRY(declined(answer, {CDL_INCOMPATIBLE}, true));
    return CaseResult::passed();
  };
}

Outcome oldestHost(Port& port) {
  CDL_ASSIGN(const cdl_plugin_t table, tableOf(port));
  const Version oldest{table.min_host_major, table.min_host_minor};
  CDL_ASSIGN(const Answer fits, ask(port, oldest, sizeof(cdl_plugin_t)));
  if (fits.code != CDL_OK)
    return wrong("needs host ABI {}.{}, which is refused: {}", oldest.first, oldest.second,
                 fits.text);
  if (oldest.second == 0) return CaseResult::passed();
  CDL_ASSIGN(const Answer older, ask(port, {oldest.first, static_cast<uint16_t>(oldest.second - 1)},
                                     sizeof(cdl_plugin_t)));
  CDL_TRY(declined(older, {CDL_INCOMPATIBLE}, true).context("one minor version below the oldest"));
  return CaseResult::passed();
}

Outcome hostOfAnyLength(Port& port) {
  for (size_t bytes = sizeof(cdl_header_t); bytes <= sizeof(cdl_host_t); ++bytes) {
    CDL_ASSIGN(const Answer answer, ask(port, kHere, sizeof(cdl_plugin_t), bytes));
    if (answer.code != CDL_OK) CDL_TRY(declined(answer, {CDL_INCOMPATIBLE}, true));
  }
  return CaseResult::passed();
}

} // namespace

std::vector<Named> queryChecks() {
  std::vector<Named> checks = {
      {"query/loads", loads},
      {"query/same_again", sameAgain},
      {"query/any_thread", anyThread},
      {"query/null_host", nullHost},
      {"query/null_table", nullTable},
      {"query/null_error", nullError},
      {"query/table_shorter_than_header", shorterThanHeader(true)},
      {"query/host_shorter_than_header", shorterThanHeader(false)},
      {"query/host_of_any_length", hostOfAnyLength},
      {"query/oldest_host", oldestHost},
      {"query/other_major:major=1", otherMajor(CDL_ABI_MAJOR + 1)},
      {"query/other_major:major=65535", otherMajor(UINT16_MAX)},
  };
  for (const auto& [minor, more] : std::initializer_list<std::pair<uint16_t, size_t>>{
           {CDL_ABI_MINOR, 0}, {CDL_ABI_MINOR + 1, 8}, {CDL_ABI_MINOR + 3, 64}, {999, 4096}})
    checks.push_back(
        {fmt::format("query/newer_host:minor={};more={}", minor, more), newerHost(minor, more)});
#define CDL_X(slot)                                                                                \
  checks.push_back(                                                                                \
      {"query/table_ends_before:slot=" #slot, olderTable(offsetof(cdl_plugin_t, slot))});          \
  checks.push_back(                                                                                \
      {"query/table_ends_inside:slot=" #slot, olderTable(offsetof(cdl_plugin_t, slot) + 4)});
  CDL_X(device_count)
  CDL_X(name)
  CDL_X(device_open)
  CDL_X(memory_map)
  CDL_X(queue_wait)
  CDL_X(run)
  CDL_X(compile)
  CDL_X(execute)
  CDL_X(executable_scratch)
  CDL_X(executable_load)
  CDL_X(pack_constant)
  CDL_X(emit)
  CDL_X(profile_begin)
  CDL_X(cancel)
#undef CDL_X
  return checks;
}

} // namespace candela::conformance::tiers::abi
