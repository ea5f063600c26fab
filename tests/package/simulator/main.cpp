// A program of the NPU on the engines of the installed simulator, without SystemC. Prints what each
// said.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "simulator/isa/assembler.h"
#include "simulator/npu_device.h"

using namespace candela::npu;

namespace {

/// 16 bytes from the input to the output, over the scratchpad.
constexpr const char* kText = R"(
.region in input 16
.region out output 16
desc d0 transfer run=16
load region=0 far=0 dst=0 d=d0 signal=s0:1
store region=1 far=0 src=0 d=d0 wait=s0:1
halt
)";

using Bytes = std::array<std::byte, 16>;

[[noreturn]] void fail(const std::string& message) {
  std::fprintf(stderr, "%s\n", message.c_str());
  std::exit(1);
}

template <typename T> T valueOf(Result<T> result) {
  if (!result) fail(result.message());
  return *std::move(result);
}

void expectNone(const Outcome& outcome) {
  if (outcome) fail(outcome->message);
}

/// The report of the program; fails where the output is not the input.
Result<RunReport> run(Device& device, const Binary& binary) {
  Bytes in;
  Bytes out{};
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<std::byte>(7 * i + 1);
  expectNone(device.load(binary));
  expectNone(device.bind(0, in));
  expectNone(device.bind(1, out));
  Result<RunReport> report = device.run();
  if (report && report->fault) fail(report->fault->message);
  if (report && out != in) fail("the output is not the input");
  return report;
}

} // namespace

int main() {
  const Configuration configuration = valueOf(findConfiguration("tiny"));
  const Binary written = valueOf(assemble(kText, "text", configuration));
  const Binary binary = valueOf(readBinary(writeBinary(written)));
  if (binary != written) fail("a binary is not what was written");

  const RunReport functional = valueOf(run(*makeFunctionalDevice(configuration), binary));
  std::printf("functional: %llu bytes written\n",
              static_cast<unsigned long long>(
                  functional.counters[static_cast<size_t>(Counter::kDramWrittenOutput)]));
  for (const Fidelity fidelity : {Fidelity::kFast, Fidelity::kAccurate, Fidelity::kExact}) {
    TimedOptions options;
    options.fidelity = fidelity;
    const RunReport timed = valueOf(run(*makeTimedDevice(configuration, options), binary));
    std::printf("%s: %lld cycles\n", std::string(fidelityName(fidelity)).c_str(),
                static_cast<long long>(timed.time->cycles));
  }
  const Result<RunReport> rtl = run(*makeRtlDevice(configuration), binary);
  std::printf("rtl: %s\n", rtl ? "it runs" : rtl.message().c_str());
}
