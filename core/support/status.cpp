#include "core/support/status.h"

#include <cstdio>
#include <cstdlib>

#include "core/support/text/shown.h"

namespace candela {

const char* codeName(Code code) {
  switch (code) {
#define CANDELA_CODE(name, id, text)                                                               \
  case Code::name: return #name;
    CDL_CODES(CANDELA_CODE)
#undef CANDELA_CODE
  }
  return "unknown";
}

Status Status::context(std::string_view prefix) const {
  if (isOk()) return *this;
  return {code_, fmt::format("{}: {}", prefix, message_)};
}

void checkFailed(const char* file, int line, const char* condition, const std::string& message) {
  std::fprintf(stderr, "%s:%d: check failed: %s%s%s\n", file, line, condition,
               message.empty() ? "" : ": ", text::shownText(message).c_str());
  std::abort();
}

} // namespace candela
