// The entry, the options, and the device as data.
#include "executable.hpp"

namespace npu_sim {

void claimAll(cdl::Capabilities& c);

namespace {

constexpr const char* kVersion = "0.1.0";

class NpuSim final : public cdl::ProgramBackend {
public:
  NpuSim() : ProgramBackend("npu_sim", kVersion) {
    describe("the simulated NPU: programs of its instruction set on a model of the hardware");
    option("npu", "the configuration: tiny, nv_small, gem16, edge4t, edge8t, tpu1, or a .toml file", "string", "gem16");
    option("checks", "look for races and for bytes that nothing wrote", "on|off", "on");
    option("report", "file that takes a line of counts for each execution", "string", "");
    claimAll(capabilities());
  }

  cdl::Status open(uint32_t) override {
    npu::Result<npu::Configuration> configuration = npu::findConfiguration(options().get("npu"));
    if (!configuration) return cdl::error(CDL_INVALID_ARGUMENT, "npu=" + options().get("npu") + ": " + configuration.message());
    configuration_ = *configuration;
    const int64_t reserved = reservedBytes(configuration_);
    if (configuration_.scratchpadBytes() <= reserved + 64)
      return cdl::error(CDL_INVALID_ARGUMENT, cdl::text("npu=", options().get("npu"), ": a scratchpad of ",
                                                        configuration_.scratchpadBytes(), " bytes, of which ", reserved,
                                                        " are the compiler's"));
    nameDevice("NPU " + configuration_.name);
    space("dram", CDL_SPACE_HOST_MAPPED, static_cast<uint64_t>(configuration_[npu::key::kDramBytes]), 64);
    space("scratchpad", CDL_SPACE_LOCAL, static_cast<uint64_t>(configuration_.scratchpadBytes() - reserved), 64);
    engines(3); // computes, loads, stores
    run_.functional.checks = options().get("checks") == "on";
    run_.report = options().get("report");
    return cdl::ok();
  }

  cdl::Status compile(const cdl_image_t* image, const void* const* payloads,
                      std::unique_ptr<cdl::Executable>& executable) override {
    Compiled compiled;
    cdl::Status status = compileProgram(image, payloads, configuration_, compiled);
    return status.isOk() ? make(image, std::move(compiled), executable) : status;
  }

  cdl::Status load(const cdl_image_t* image, const void* blob, uint64_t size,
                   std::unique_ptr<cdl::Executable>& executable) override {
    Compiled compiled;
    cdl::Status status = loadCompiled(image, blob, size, madeBy(), configuration_, compiled);
    return status.isOk() ? make(image, std::move(compiled), executable) : status;
  }

private:
  std::string madeBy() const { return name() + " " + version(); }

  cdl::Status make(const cdl_image_t* image, Compiled compiled, std::unique_ptr<cdl::Executable>& executable) {
    auto made = std::make_unique<NpuExecutable>(image, std::move(compiled), configuration_, run_, madeBy());
    cdl::Status status = made->prepare();
    if (status.isOk()) executable = std::move(made);
    return status;
  }

  npu::Configuration configuration_;
  RunOptions run_;
};

} // namespace

} // namespace npu_sim

using npu_sim::NpuSim;
CDL_BACKEND(NpuSim)
