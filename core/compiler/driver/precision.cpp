#include "core/compiler/driver/precision.h"

#include <algorithm>
#include <array>

#include "core/compiler/graph/passes/passes.h"

namespace candela::driver {

namespace {

using Devices = std::span<const capabilities::Target* const>;

struct Half {
  Elem elem;
  unsigned profile;
  const char* name; ///< in the names of passes
};
constexpr std::array<Half, 2> kHalves = {
    {{Elem::f16_, CDL_PROFILE_FP16, "f16"}, {Elem::bf16_, CDL_PROFILE_BF16, "bf16"}}};

bool converts(const capabilities::Target& device, Elem from, Elem to) {
  capabilities::InstrDesc convert;
  convert.kind = CDL_KIND_CONVERT;
  convert.operands = {{from, {1}}, {to, {1}}};
  return device.query(convert).support != capabilities::Support::none;
}

/// What devices do with a half, from least to most.
enum class Use : uint8_t { moved, multiplied, computed };

/// What it says of a device that has rows of this kind.
Use useOf(uint16_t kind) {
  switch (kind) {
  case CDL_KIND_COPY:
  case CDL_KIND_FILL:
  case CDL_KIND_SELECT:
  case CDL_KIND_CONVERT:
  case CDL_KIND_GATHER:
  case CDL_KIND_SCATTER:
  case CDL_KIND_POOL2D: return Use::moved;
  case CDL_KIND_MATMUL:
  case CDL_KIND_CONV2D: return Use::multiplied;
  default: return Use::computed;
  }
}

bool hasRowOf(Devices devices, uint16_t kind, Elem elem) {
  const auto isIt = [&](const capabilities::Target::Row& each) {
    return each.row.kind == kind && each.row.elem_count > 0 &&
           each.row.elems[0] == static_cast<uint8_t>(elem);
  };
  return std::ranges::any_of(
      devices, [&](const auto* device) { return std::ranges::any_of(device->rows(), isIt); });
}

/// The most that a device does with the half: by its profile, or by rows of its own.
Use useBy(Devices devices, const Half& half) {
  Use most = Use::moved;
  for (const capabilities::Target* device : devices) {
    if (device->claims(half.profile)) return Use::computed;
    for (const capabilities::Target::Row& each : device->rows())
      if (each.row.elem_count > 0 && each.row.elems[0] == static_cast<uint8_t>(half.elem))
        most = std::max(most, useOf(each.row.kind));
  }
  return most;
}

/// Whether a device computes in f32 what comes and goes as this half.
bool isWidened(Devices devices, const Half& half) {
  return std::ranges::any_of(devices, [&](const auto* device) {
    return device->claims(CDL_PROFILE_FP32) && converts(*device, half.elem, Elem::f32_) &&
           converts(*device, Elem::f32_, half.elem);
  });
}

Status runPass(graph::Graph& graph, const char* name, const Half& half) {
  const std::string pass = fmt::format("{}-{}", name, half.name);
  return graph::passes::runPasses(graph, {&pass, 1});
}

/// Narrows what the devices have rows of, after the passes that change weights.
Status narrowProducts(graph::Graph& graph, Devices devices, const Half& half) {
  const std::vector<std::string> first = {"canonicalize", "fold-constants", "fold-batch-norm"};
  CDL_TRY(graph::passes::runPasses(graph, first));
  // Pools between convolutions are narrowed with them.
  if (hasRowOf(devices, CDL_KIND_CONV2D, half.elem) &&
      hasRowOf(devices, CDL_KIND_POOL2D, half.elem)) {
    // Without convolutions of f32 what is not narrowed is the host's.
    const bool hasWide = hasRowOf(devices, CDL_KIND_CONV2D, Elem::f32_);
    CDL_TRY(runPass(graph, hasWide ? "convolutions" : "all-convolutions", half));
  }
  return hasRowOf(devices, CDL_KIND_MATMUL, half.elem) ? runPass(graph, "matmuls", half)
                                                       : Status::ok();
}

} // namespace

Result<Precision> parsePrecision(std::string_view text) {
  if (text.empty() || text == "f32") return Precision::model;
  if (text == "f16") return Precision::f16;
  if (text == "bf16") return Precision::bf16;
  return badArgument("precision '{}', expected f32, f16 or bf16", text);
}

Status setPrecision(graph::Graph& graph, Devices devices, Precision precision) {
  for (const Half& half : kHalves) {
    const Use use = useBy(devices, half);
    if (use == Use::computed || !isWidened(devices, half)) continue;
    CDL_TRY(runPass(graph, use == Use::multiplied ? "widen-beside-products" : "widen", half));
  }
  if (precision == Precision::model) return Status::ok();
  const Half& half = kHalves[precision == Precision::f16 ? 0 : 1];
  switch (useBy(devices, half)) {
  case Use::computed: return runPass(graph, "products", half);
  case Use::multiplied: return narrowProducts(graph, devices, half);
  default: return runPass(graph, "weights", half);
  }
}

} // namespace candela::driver
