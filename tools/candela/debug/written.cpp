#include "tools/candela/debug/written.h"

#include <filesystem>

#include "core/support/file.h"
#include "tools/candela/run/run.h"
#include "tools/candela/support/ir_file.h"
#include "tools/candela/support/model.h"

namespace candela::tool {

/// More than that, the reference takes minutes.
constexpr uint64_t kReferenceBytes = 1 << 18;

using program::Role;
using Kind = Finding::Kind;

Written writeTrial(const std::string& folder, const Suspect& suspect, const Question& question) {
  const Trial& trial = suspect.trial;
  Written written;
  TensorFolder files(folder);
  const bool isLone = trial.program.instrs.size() == 1;
  written.file =
      (std::filesystem::path(folder) / (isLone ? "instruction.cdl" : "program.cdl")).string();
  const std::string text = printProgram(trial.program, folder);
  check(writeFile(written.file, text.data(), text.size()), kWorkFailed);
  std::string inputs;
  Trial readBack;
  Diagnostics diagnostics;
  auto ir = check(parseIr(text, written.file, diagnostics), kWorkFailed);
  readBack.program = std::move(std::get<program::Program>(ir));
  size_t next = 0;
  for (uint32_t b = 0; b < trial.program.buffers.size(); ++b) {
    const program::Buffer& buffer = trial.program.buffers[b];
    if (buffer.role != Role::input && buffer.role != Role::inout) continue;
    Tensor tensor = trial.inputs[next++];
    std::tie(tensor.elem, tensor.dims) = trial.program.contentType(b);
    const std::string file = files.write("in_" + buffer.name, tensor);
    inputs += " --input " + shellQuoted(fmt::format("{}={}", buffer.name, file));
    readBack.inputs.push_back(asStored(readTensorFile(file), tensor.elem));
  }
  Question last = question;
  uint64_t bytes = 0;
  for (const program::Buffer& buffer : trial.program.buffers) bytes += buffer.bytes;
  last.byReference |= bytes < kReferenceBytes;
  written.again = ask(readBack, last);

  std::string backend = fmt::format(" --backend {}", shellQuoted(question.backend.name));
  for (const std::string& option : question.backend.options)
    backend += " --option " + shellQuoted(option);
  written.command =
      fmt::format("candela debug {}{}{} --no-reduce", shellQuoted(written.file), backend, inputs);
  if (question.times > 1) written.command += fmt::format(" --twice {}", question.times);
  if (question.against) {
    written.command += " --against " + shellQuoted(question.against->name);
    for (const std::string& option : question.against->options)
      written.command += " --against-option " + shellQuoted(option);
    if (question.exact) written.command += " --exact";
  }
  if (suspect.finding.kind == Kind::late)
    written.command += fmt::format(" --timeout {}", question.limitSeconds);
  const bool ends = suspect.finding.kind == Kind::died || suspect.finding.kind == Kind::late;
  if (ends && question.backend.name != "soft")
    written.underDebugger =
        fmt::format("gdb --args candela run {}{}{}", shellQuoted(written.file), backend, inputs);
  return written;
}

} // namespace candela::tool
