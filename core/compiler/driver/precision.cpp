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

/// Whether rows of this kind move elements or convert them, and compute nothing.
bool isMoved(uint16_t kind) {
  switch (kind) {
  case CDL_KIND_COPY:
  case CDL_KIND_FILL:
  case CDL_KIND_CONVERT:
  case CDL_KIND_GATHER: return true;
  default: return false;
  }
}

/// Whether a device computes in the half: by its profile, or by a row of its own.
bool isComputedIn(Devices devices, const Half& half) {
  return std::ranges::any_of(devices, [&](const auto* device) {
    const auto computes = [&](const capabilities::Target::Row& each) {
      return each.row.elem_count > 0 && each.row.elems[0] == static_cast<uint8_t>(half.elem) &&
             !isMoved(each.row.kind);
    };
    return device->claims(half.profile) || std::ranges::any_of(device->rows(), computes);
  });
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

} // namespace

Result<Precision> parsePrecision(std::string_view text) {
  if (text.empty() || text == "f32") return Precision::model;
  if (text == "f16") return Precision::f16;
  if (text == "bf16") return Precision::bf16;
  return badArgument("precision '{}', expected f32, f16 or bf16", text);
}

Status setPrecision(graph::Graph& graph, Devices devices, Precision precision) {
  for (const Half& half : kHalves)
    if (!isComputedIn(devices, half) && isWidened(devices, half)) {
      CDL_TRY(runPass(graph, "widen", half));
    }
  if (precision == Precision::model) return Status::ok();
  const Half& half = kHalves[precision == Precision::f16 ? 0 : 1];
  return runPass(graph, isComputedIn(devices, half) ? "products" : "weights", half);
}

} // namespace candela::driver
