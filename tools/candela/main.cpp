// candela: the one command-line tool. Each subcommand is a file in commands/.
#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <exception>
#include <memory>
#include <new>

#include "core/support/mapped_file.h"
#include "tools/candela/command_line.h"
#include "tools/candela/support/console.h"

namespace {

using namespace candela::tool;

// Memory that is set aside for the way out: destructors of JSON take some.
std::unique_ptr<char[]> reserve;

void noMemory() {
  reserve.reset();
  throw std::bad_alloc();
}

/// Where even that was not enough, within a function that cannot throw: the end is the same.
void endWithoutMemory() noexcept {
  try {
    if (std::current_exception()) throw;
  } catch (const std::bad_alloc&) {
    reportError(kWorkFailed, "out of memory");
    std::_Exit(kWorkFailed);
  } catch (...) {}
  std::abort();
}

/// Errors of the machine come back from the calls that meet them, and not as signals.
void expectErrors() {
  // A file that we open must not become stdin, stdout or stderr where these are closed: it cannot
  // be written so.
  for (int file = open("/dev/null", O_RDONLY); file >= 0; file = open("/dev/null", O_RDONLY)) {
    if (file <= STDERR_FILENO) continue;
    close(file);
    break;
  }
  std::signal(SIGXFSZ, SIG_IGN); // beyond `ulimit -f`
  std::signal(SIGPIPE, SIG_IGN); // of a reader that ended
  reserve = std::make_unique<char[]>(size_t(1) << 20);
  std::set_new_handler(noMemory);
  std::set_terminate(endWithoutMemory);
}

} // namespace

int main(int argc, char** argv) {
  candela::endOnCutFiles(kWorkFailed);
  try {
    expectErrors();
  } catch (const std::bad_alloc&) {
    return reportError(kWorkFailed, "out of memory");
  }
  return runCommandLine(argc, argv);
}
