#include "executable.hpp"

#include <candela/backend/stored.hpp>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>

namespace npu_sim {

namespace {

constexpr uint32_t kFormat = 1; ///< of what save writes

template <typename Bytes>
bool writeTo(const std::string& path, const char* mode, const Bytes& bytes) {
  std::FILE* file = std::fopen(path.c_str(), mode);
  const bool isWritten = file && std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  return file && std::fclose(file) == 0 && isWritten;
}
bool append(const std::string& path, const std::string& text) { return writeTo(path, "a", text); }

} // namespace

cdl::Status NpuExecutable::borrow(std::unique_ptr<npu::Device>& device) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!idle_.empty()) {
      device = std::move(idle_.back());
      idle_.pop_back();
      return cdl::ok();
    }
  }
  return make({.functional = options_.functional, .fidelity = options_.fidelity}, device);
}

cdl::Status NpuExecutable::make(npu::TimedOptions options,
                                std::unique_ptr<npu::Device>& device) const {
#ifdef NPU_SIM_WITH_SYSTEMC
  if (options_.isSystemc) device = npu::makeSystemcDevice(configuration_, std::move(options));
#endif
  options.isLockstep = options_.isLockstep;
  options.waves = options_.waves;
  if (options_.isRtl) device = npu::makeRtlDevice(configuration_, std::move(options));
  if (!device) device = npu::makeFunctionalDevice(configuration_, std::move(options.functional));
  if (npu::Outcome bad = device->load(compiled_.binary))
    return cdl::error(CDL_INTERNAL, bad->message);
  return cdl::ok();
}

void NpuExecutable::observe(npu::FunctionalOptions& options, std::vector<uint64_t>& spent) const {
  std::vector<uint32_t> instrs(compiled_.binary.code.size(), 0);
  for (size_t s = 0; s < compiled_.binary.symbols.size(); ++s) {
    const npu::Symbol& symbol = compiled_.binary.symbols[s];
    std::fill_n(instrs.begin() + symbol.first, symbol.count, compiled_.instrOfSymbol[s]);
  }
  spent.assign(image_->instrs.count, 0);
  uint64_t last = cdl::Timings::now();
  options.onRetire = [&spent, last,
                      instrs = std::move(instrs)](const npu::RetireRecord& record) mutable {
    const uint64_t now = cdl::Timings::now();
    spent[instrs[record[npu::trace::kInstruction]]] += now - last;
    last = now;
  };
}

cdl::Status NpuExecutable::count(npu::TimedOptions& options,
                                 std::unique_ptr<LayerReport>& layers) const {
  layers = std::make_unique<LayerReport>(compiled_, configuration_,
                                         cdl_get_string(image_, image_->name), !options_.isRtl);
  LayerReport* const report = layers.get();
  options.functional.onCounted = [report](uint32_t instruction, const npu::Counters& counters) {
    report->count(instruction, counters);
  };
  if (!options_.hasTime) return cdl::ok();
  const auto add = [report, isListed = !options_.timeline.empty()](
                       const npu::InstructionTime& time) { report->add(time, isListed); };
  if (options_.isJoint()) {
    options.onTime = add;
    return cdl::ok();
  }
  npu::ScheduleOptions schedule;
  schedule.counts = !options_.hasData;
  if (schedule.counts) schedule.onCounted = options.functional.onCounted;
  schedule.fidelity = options_.fidelity;
  schedule.onRetire = add;
  npu::Result<npu::TimeReport> time = npu::timeOf(configuration_, compiled_.binary, schedule);
  if (!time) return cdl::error(CDL_INTERNAL, "time of the program: " + time.message());
  layers->finish(*time);
  return cdl::ok();
}

/// A line of JSON: counters by name, time, layers.
cdl::Status NpuExecutable::write(const npu::RunReport& report) {
  std::string line = cdl::text("{\"program\":\"", jsonString(cdl_get_string(image_, image_->name)),
                               "\",\"words\":", compiled_.binary.code.size());
  const npu::Counters& counters = options_.hasData ? report.counters : layers_->counters();
  for (const npu::CounterInfo& counter : npu::kCounters)
    if (!counter.isTiming)
      line += cdl::text(",\"", std::string(counter.name),
                        "\":", counters[static_cast<size_t>(counter.id)]);
  line += layers_->text() + "}\n";
  if (!options_.report.empty() && !append(options_.report, line))
    return cdl::error(CDL_IO, "report=" + options_.report + ": it cannot be written");
  if (!options_.timeline.empty() && !append(options_.timeline, layers_->timeline()))
    return cdl::error(CDL_IO, "timeline=" + options_.timeline + ": it cannot be written");
  return cdl::ok();
}

cdl::Status NpuExecutable::prepare() {
  if (options_.hasData) {
    std::unique_ptr<npu::Device> device;
    if (cdl::Status status = borrow(device); !status.isOk()) return status;
    idle_.push_back(std::move(device));
  } else if (const npu::Outcome bad = npu::checkProgram(configuration_, compiled_.binary)) {
    return cdl::error(CDL_INTERNAL, bad->message);
  }
  if (options_.binary.empty()) return cdl::ok();
  std::string name = cdl_get_string(image_, image_->name);
  std::replace(name.begin(), name.end(), '/', '_');
  if (options_.number > 1) name += "." + std::to_string(options_.number);
  const std::string path = options_.binary + "/" + name + ".npubin";
  std::error_code ignored; // the file says it
  std::filesystem::create_directories(options_.binary, ignored);
  if (writeTo(path, "wb", npu::writeBinary(compiled_.binary))) return cdl::ok();
  return cdl::error(CDL_IO, "binary=" + options_.binary + ": " + path + " cannot be written");
}

cdl::Status NpuExecutable::execute(const cdl::Addresses& buffers) {
  std::unique_ptr<npu::Device> device;
  std::vector<uint64_t> spent; // nanoseconds that the model took, by instruction of the image
  cdl::Timings* const timings = buffers.timings();
  const bool isReported = !options_.report.empty() || !options_.timeline.empty();
  std::unique_lock<std::mutex> lock(mutex_);
  const bool counts = isReported && !layers_;
  lock.unlock();
  std::unique_ptr<LayerReport> layers;
  npu::TimedOptions options{.functional = options_.functional, .fidelity = options_.fidelity};
  cdl::Status status = counts ? count(options, layers) : cdl::ok();
  if (timings) observe(options.functional, spent);
  if (status.isOk() && options_.hasData)
    status = counts || timings ? make(std::move(options), device) : borrow(device);
  if (!status.isOk()) return status;
  const std::vector<npu::Region>& regions = compiled_.binary.regions;
  std::vector<std::vector<std::byte>> memory(regions.size());
  for (uint32_t r = 1; r < regions.size(); ++r) {
    memory[r].resize(regions[r].bytes);
    if (!device) continue;
    if (npu::Outcome bad = device->bind(r, memory[r]))
      return cdl::error(CDL_INTERNAL, bad->message);
  }
  const auto place = [&](const Layout::Part& part) {
    return memory[static_cast<size_t>(part.region)].data() + part.at;
  };
  for (const Layout::Part& part : compiled_.parts)
    if (part.in && part.bytes)
      std::memcpy(place(part), buffers.address(part.buffer, static_cast<uint64_t>(part.bytes)),
                  static_cast<size_t>(part.bytes));
  npu::Result<npu::RunReport> report = device ? device->run() : npu::RunReport{};
  if (!report) return cdl::error(CDL_INTERNAL, report.message());
  if (report->fault)
    return cdl::error(CDL_INTERNAL,
                      cdl::text("the NPU stopped at instruction ", report->fault->instruction, ": ",
                                std::string(npu::faultName(report->fault->kind)), ": ",
                                report->fault->message));
  if (counts && options_.isJoint()) layers->finish(*report->time);
  for (const Layout::Part& part : compiled_.parts)
    if (part.out && part.bytes)
      std::memcpy(buffers.address(part.buffer, static_cast<uint64_t>(part.bytes)), place(part),
                  static_cast<size_t>(part.bytes));
  if (timings) {
    uint64_t total = 0, at = cdl::Timings::now();
    for (const uint64_t each : spent) total += each;
    at -= total; // one after the other, until now
    for (uint32_t i = 1; i < spent.size(); ++i) {
      timings->add(i, at, at + spent[i]);
      at += spent[i];
    }
  }
  lock.lock();
  if (counts && !layers_) layers_ = std::move(layers);
  if (device && !timings && !counts) idle_.push_back(std::move(device));
  return isReported ? write(*report) : cdl::ok();
}

cdl::Status NpuExecutable::save(const cdl::Writer& to) const {
  cdl::StoredWriter writer(madeBy_, kFormat, image_);
  const std::vector<std::byte> binary = npu::writeBinary(compiled_.binary);
  writer.add(binary);
  writer.add(compiled_.parts);
  writer.add(compiled_.instrOfSymbol);
  const std::vector<char> costs(compiled_.costs.begin(), compiled_.costs.end());
  writer.add(costs);
  return writer.write(to);
}

cdl::Status loadCompiled(const cdl_image_t* image, const void* blob, uint64_t size,
                         const std::string& madeBy, const npu::Configuration& configuration,
                         Compiled& compiled) {
  cdl::StoredReader reader;
  cdl::Status status = reader.open(madeBy, kFormat, image, blob, size);
  std::vector<std::byte> bytes;
  if (status.isOk()) status = reader.read(bytes);
  if (status.isOk()) status = reader.read(compiled.parts);
  if (status.isOk()) status = reader.read(compiled.instrOfSymbol);
  std::vector<char> costs;
  if (status.isOk()) status = reader.read(costs);
  if (!status.isOk()) return status;
  compiled.costs.assign(costs.begin(), costs.end());
  npu::Result<npu::Binary> binary = npu::readBinary(bytes);
  if (!binary) return cdl::unfit("holds no program for this device: " + binary.message());
  if (binary->configurationHash != configuration.hash())
    return cdl::unfit("was made for configuration '" + binary->configurationName +
                      "', this is another: '" + configuration.name + "'");
  if (binary->symbols.size() != compiled.instrOfSymbol.size())
    return cdl::damaged(cdl::text(binary->symbols.size(), " symbols, ",
                                  compiled.instrOfSymbol.size(), " instructions"));
  for (const uint32_t instr : compiled.instrOfSymbol)
    if (instr >= image->instrs.count)
      return cdl::damaged(cdl::text("a symbol of instruction ", instr));
  compiled.binary = std::move(*binary);
  for (const Layout::Part& part : compiled.parts) {
    const bool isCopied = part.in || part.out;
    if (!isCopied) continue;
    const bool isRegion =
        part.region > 0 && static_cast<size_t>(part.region) < compiled.binary.regions.size();
    const bool isBuffer = part.buffer > 0 && part.buffer < image->buffers.count && part.in <= 1 &&
                          part.out <= 1 &&
                          cdl_get_buffer(image, part.buffer)->role != CDL_ROLE_CONSTANT &&
                          (!part.out || cdl_get_buffer(image, part.buffer)->role != CDL_ROLE_INPUT);
    if (!isRegion || !isBuffer || part.at < 0 || part.bytes < 0 ||
        static_cast<uint64_t>(part.bytes) > cdl_get_buffer(image, part.buffer)->bytes ||
        static_cast<uint64_t>(part.at) >
            compiled.binary.regions[static_cast<size_t>(part.region)].bytes ||
        static_cast<uint64_t>(part.bytes) >
            compiled.binary.regions[static_cast<size_t>(part.region)].bytes -
                static_cast<uint64_t>(part.at))
      return cdl::damaged("a buffer does not lie in its region");
  }
  return cdl::ok();
}

} // namespace npu_sim
