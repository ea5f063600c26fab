#pragma once

#include <optional>

#include "core/compiler/program/program.h"
#include "core/runtime/session/session.h"
#include "tools/candela/debug/child.h"
#include "tools/candela/debug/verdict.h"

/// A Program on a backend under test, and what is wrong with that.
namespace candela::tool {

/// A backend as --backend and --option say it.
struct BackendSpec {
  std::string name;                 ///< "cpu", "./libacme.so"
  std::vector<std::string> options; ///< KEY=VALUE or PLUGIN.KEY=VALUE
  /// The host's own executor, which is no plugin; with options `soft` is one.
  bool isHost() const { return name == "soft" && options.empty(); }
  /// Only in a process that may die of it. `planOnly`: it compiles nothing, and says that it did.
  /// Throws Failure.
  std::shared_ptr<runtime::plugin::Device> open(bool planOnly = false) const;
};

/// What is to be found out about a Program.
struct Question {
  BackendSpec backend;
  std::optional<BackendSpec> against; ///< to be compared with, instead of the oracle
  bool exact = false;                 ///< against: to the bit
  /// the oracle judges all, not only what soft finds or cannot run
  bool byReference = false;
  int times = 1;            ///< runs on the same bytes
  double limitSeconds = 60; ///< of one step
};

/// A Program with what its INPUT and INOUT buffers hold, in order. Its TEMP buffers are placed;
/// there are no STATEs.
struct Trial {
  program::Program program;
  std::vector<Tensor> inputs;
  /// What its INOUT buffers must hold, where that is known without running it.
  std::optional<std::vector<Tensor>> want;
};

struct Finding {
  enum class Kind : uint8_t {
    none,
    wrong,    ///< a result outside of its bound
    stray,    ///< something changed that is no result
    unstable, ///< other bytes in another run
    stale,    ///< the bytes of an earlier run, though the inputs were others
    differs,  ///< from the other backend
    failed,   ///< an error
    died,
    late,
  } kind = Kind::none;
  std::string text = {}; ///< of an error or a death; of what is unstable, which run
  Pulse::Phase phase = Pulse::judging;
  Verdict verdict = {}; ///< of wrong, stray, unstable, stale and differs; also of none

  bool isFault() const { return kind != Kind::none; }
  /// The same kind of fault: of the same signal, or of any error.
  bool isLike(const Finding& other) const;
  /// "SIGSEGV while it runs", "no answer after 20 s while it is compiled", or the numbers that
  /// differ.
  std::string summary() const;
};
std::string_view kindName(Finding::Kind kind);
/// How a process ended that did not answer.
Finding endOf(const Answer& answer);

/// A finding as text, and back.
std::string toWire(const Finding& finding);
Finding fromWire(const std::string& text);

/// Runs a trial and says what it found first. In a process that may die. `results`: what the INOUT
/// buffers hold after the first run, when it came so far.
Finding examine(const Trial& trial, const Question& question,
                const std::shared_ptr<runtime::plugin::Device>& device,
                const std::shared_ptr<runtime::plugin::Device>& against,
                std::vector<Tensor>* results = nullptr);

/// The same in a process of its own, with devices of its own.
Finding ask(const Trial& trial, const Question& question);

/// Whether it can be asked at all: it verifies, and the inputs fit.
bool isSound(const Trial& trial);

} // namespace candela::tool
