// What a described device says through the plugin interface: the rows of its profiles as far as it
// takes their kinds, convolutions and pools in its layout, its memories and engines, and the cost
// of instructions and whole programs by its rates.
#include "tools/candela/estimate/described_device.h"

#include <mutex>

#include "core/runtime/plugin/plugin.h"
#include "core/support/kinds.h"
#include "tools/candela/estimate/schedule.h"

namespace candela::tool {
namespace {

/// The file was read before the device is opened: an option holds its path.
class Described final : public cdl::ProgramBackend {
  using Kind = cdl::Kind;

public:
  Described() : ProgramBackend(kDescribedBackend, "0.1.0") {
    describe("a device that a file describes: it plans and estimates, and computes nothing");
    option("file", "the description", "string", "");
    option("clock_mhz", "cycles in a microsecond", "int", "0");
  }

  cdl::Status open(uint32_t) override {
    try {
      device_ = readDescription(options().get("file"));
    } catch (const std::exception& failure) {
      return cdl::error(CDL_INVALID_ARGUMENT, failure.what());
    }
    rates_ = ratesOf(device_);
    nameDevice(device_.name);
    for (const cdl::Profile profile : device_.profiles) claim(profile);
    declareMemories();
    declareEngines();
    claimKinds();
    claimCopies();
    capabilities().byColumns();
    claimImages();
    claimRows();
    return cdl::ok();
  }

  cdl::Status compile(const cdl_image_t*, const void* const*,
                      std::unique_ptr<cdl::Executable>& executable) override {
    executable = std::make_unique<Nothing>();
    return cdl::ok();
  }

  cdl::Status cost(const cdl_image_t* image, uint32_t instr, cdl_cost_t& cost) override {
    if (instr != 0) {
      const InstrCost one = costOf(image, instr, rates_);
      cost.busy_cycles[cdl_get_instr(image, instr)->engine] = one.cycles;
      cost.latency_cycles = one.cycles;
      cost.bytes[0] = one.bytes;
      return cdl::ok();
    }
    std::vector<InstrCost> costs(1);
    for (uint32_t i = 1; i < image->instrs.count; ++i) costs.push_back(costOf(image, i, rates_));
    const std::optional<Schedule> schedule = scheduleOf(image, costs);
    if (!schedule) return cdl::error(CDL_UNSUPPORTED, "loops of millions of instructions");
    cost.latency_cycles = schedule->cycles;
    return cdl::ok();
  }

private:
  class Nothing : public cdl::Executable {
    cdl::Status execute(const cdl::Addresses&) override {
      return cdl::error(CDL_UNSUPPORTED, "a described device computes nothing");
    }
  };

  bool takes(Kind kind) const { return device_.takes.contains(static_cast<uint16_t>(kind)); }

  void declareMemories() {
    for (const DescribedMemory& memory : device_.memories) {
      uint32_t flags = memory.isLocal ? CDL_SPACE_LOCAL : CDL_SPACE_HOST_MAPPED;
      if (memory.holdsSums) flags |= CDL_SPACE_SUMS;
      space(memory.name.c_str(), flags, memory.capacityBytes, memory.alignment);
    }
  }

  void declareEngines() {
    cdl_tiling_t tiles{};
    if (device_.hasLocalMemory()) {
      engines(device_.hasOneDma ? 2 : 3);
      tiles.load_engine = 1;
      tiles.store_engine = device_.hasOneDma ? 1 : 2;
    }
    const bool isArray = device_.matrix.rows * device_.matrix.columns > 1;
    const double macs = device_.matrix.macsPerCycle.others;
    tiles.rows = isArray ? device_.matrix.rows : 1;
    tiles.columns =
        isArray ? device_.matrix.columns : static_cast<uint32_t>(std::clamp(macs, 1.0, 65536.0));
    tiles.lanes =
        static_cast<uint32_t>(std::clamp(device_.vector.elementsPerCycle.others, 1.0, 65536.0));
    tiles.bytes_per_kilocycle =
        static_cast<uint32_t>(std::clamp(1000 * rates_.bytesPerCycle, 1.0, 4e9));
    tiles.copy_cycles = std::max(1u, rates_.copyStartCycles);
    tiles.instr_cycles = std::max(1u, device_.matrix.startCycles);
    tiling(tiles);
  }

  /// The rows that profiles ask for: those of a kind that it does not take are the host's.
  void claimKinds() {
    for (uint16_t kind = 1; kind < CDL_KIND_CUSTOM; ++kind) {
      if (!isPrimitive(kind) && kind != CDL_KIND_SCALED_MATMUL) continue;
      const Kind each = static_cast<Kind>(kind);
      support(each, takes(each) ? cdl::Support::NATIVE : cdl::Support::EMULATED);
      capabilities().operandClass(each,
                                  each == Kind::MatMul ? CDL_CLASS_ROW_STRIDED : CDL_CLASS_AFFINE);
    }
    for (const Kind kind :
         {Kind::Conv2d, Kind::MatMul, Kind::Pool2d, Kind::Reduce, Kind::Elementwise})
      for (const uint16_t step : device_.epilogue) epilogue(kind, {static_cast<Kind>(step)});
    if (takes(Kind::Elementwise)) capabilities().native(Kind::Elementwise, 0, {}, CDL_CLASS_AFFINE);
  }

  /// Weights and scales go to local memory as they are stored, and sums come from there, whatever
  /// else is computed with them.
  void claimCopies() {
    const auto claim = [this](uint8_t elem) {
      capabilities().native(Kind::Copy, 0, {elem, elem}, CDL_CLASS_AFFINE);
    };
    if (has(cdl::Profile::INT16))
      for (const uint8_t elem : {CDL_I8, CDL_I64}) claim(elem);
    if (has(cdl::Profile::INT4W))
      for (const uint8_t elem : {CDL_I4, CDL_U4}) claim(elem);
    if (has(cdl::Profile::MX))
      for (const uint8_t elem : {CDL_F4E2M1, CDL_F8E8M0, CDL_F8E4M3, CDL_F8E5M2}) claim(elem);
  }

  bool has(cdl::Profile profile) const {
    return std::ranges::find(device_.profiles, profile) != device_.profiles.end();
  }
  std::vector<uint8_t> floats() const {
    std::vector<uint8_t> elems;
    for (const auto& [profile, elem] : {std::pair{cdl::Profile::FP32, CDL_F32},
                                        {cdl::Profile::FP16, CDL_F16},
                                        {cdl::Profile::BF16, CDL_BF16}})
      if (has(profile)) elems.push_back(static_cast<uint8_t>(elem));
    return elems;
  }

  /// Convolutions and pools, and integer products that end in bytes.
  void claimImages() {
    const uint16_t image = device_.hasChannelsLast ? layout("nchw", "n,h,w,c") : uint16_t{0};
    const uint16_t weights = device_.hasChannelsLast ? layout("oikl", "k,l,i,o") : uint16_t{0};
    cdl::Capabilities& c = capabilities();
    for (const uint8_t elem : floats()) {
      if (takes(Kind::Conv2d))
        c.native(Kind::Conv2d, 0, {elem, elem, elem}, {image, weights, image});
      if (!takes(Kind::Pool2d)) continue;
      for (const uint16_t fn : {CDL_POOL2D_MAX, CDL_POOL2D_AVERAGE})
        c.native(Kind::Pool2d, fn, {elem, elem}, {image, image});
    }
    if (has(cdl::Profile::INT16))
      for (const uint8_t y : {CDL_I64, CDL_I16, CDL_I8, CDL_U8})
        claimIntegers(CDL_I16, y, image, weights);
    if (!has(cdl::Profile::INT8)) return;
    for (const uint8_t x : {CDL_I8, CDL_U8}) {
      for (const uint8_t y : {CDL_I32, CDL_I8, CDL_U8}) claimIntegers(x, y, image, weights);
      if (takes(Kind::Pool2d)) c.native(Kind::Pool2d, CDL_POOL2D_MAX, {x, x}, {image, image});
    }
  }

  /// Products by weights of 8 bits. Zero points are constants. Results narrower than sums: with an
  /// epilogue that ends there.
  void claimIntegers(uint8_t x, uint8_t y, uint16_t image, uint16_t weights) {
    constexpr uint8_t I8 = CDL_I8;
    const cdl::Atom xKnown = cdl::isConst(2);
    const cdl::Atom wKnown = cdl::isConst(3);
    cdl::Capabilities& c = capabilities();
    if (takes(Kind::Conv2d)) {
      c.native(Kind::Conv2d, 0, {x, I8, y}, {image, weights, image});
      c.native(Kind::Conv2d, 0, {x, I8, x, y}, {image, weights, 0, image}, {xKnown});
      c.native(Kind::Conv2d, 0, {x, I8, x, I8, y}, {image, weights, 0, 0, image}, {xKnown, wKnown});
    }
    if (!takes(Kind::MatMul)) return;
    c.native(Kind::MatMul, 0, {x, I8, y});
    c.native(Kind::MatMul, 0, {x, I8, x, y}, {0, 0, 0, 0}, {xKnown});
    c.native(Kind::MatMul, 0, {x, I8, x, I8, y}, {0, 0, 0, 0, 0}, {xKnown, wKnown});
  }

  /// What goes over rows, in floats; integer scales of two operands.
  void claimRows() {
    cdl::Capabilities& c = capabilities();
    for (const uint8_t elem : floats()) {
      if (takes(Kind::Softmax))
        for (const uint16_t fn : {CDL_SOFTMAX_SOFTMAX, CDL_SOFTMAX_LOG_SOFTMAX})
          c.native(Kind::Softmax, fn, {elem, elem});
      if (takes(Kind::Attention)) {
        c.native(Kind::Attention, 0, {elem, elem, elem, elem}, CDL_CLASS_ROW_STRIDED);
        c.native(Kind::Attention, 0, {elem, elem, elem, elem, elem}, CDL_CLASS_ROW_STRIDED);
      }
      if (!takes(Kind::Norm)) continue;
      for (const uint16_t fn : {CDL_NORM_LAYER, CDL_NORM_RMS}) {
        c.native(Kind::Norm, fn, {elem, elem});
        c.native(Kind::Norm, fn, {elem, elem, elem});
        c.native(Kind::Norm, fn, {elem, elem, elem, elem});
      }
    }
    if (!has(cdl::Profile::INT8) || !takes(Kind::Rescale)) return;
    constexpr uint8_t I32 = CDL_I32;
    for (const uint8_t a : {CDL_I8, CDL_U8, CDL_I32})
      for (const uint8_t y : {CDL_I8, CDL_U8}) {
        c.native(Kind::Rescale, 0, {a, I32, I32, I32, y}, CDL_CLASS_AFFINE);
        for (const uint8_t b : {CDL_I8, CDL_U8})
          c.native(Kind::Rescale, 0, {a, I32, I32, I32, b, I32, y}, CDL_CLASS_AFFINE);
      }
  }

  DeviceDescription device_;
  DeviceRates rates_;
};

} // namespace

void useDescribedDevice(ModelOptions& options, const std::string& file) {
  const DeviceDescription device = readDescription(file);
  static std::once_flag once;
  std::call_once(once, [] {
    runtime::plugin::registerStatic(kDescribedBackend, cdl::detail::Entry<Described>::query);
  });
  options.backends = kDescribedBackend;
  options.options.push_back(fmt::format("{}.file={}", kDescribedBackend, file));
  options.options.push_back(fmt::format("{}.clock_mhz={}", kDescribedBackend, device.clockMhz));
}

} // namespace candela::tool
