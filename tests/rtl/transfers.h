#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "tests/rtl/bench.h"
#include "tests/rtl/model.h"

namespace candela::rtl {

/// The region of transfers lies behind one of 5,000 bytes, which take two pages.
inline constexpr uint32_t kRegion = 1;
inline constexpr int64_t kBase = 8192;
inline std::vector<npu::Region> regionsOf(uint64_t bytes) {
  return {{"before", npu::RegionClass::kInput, 5000},
          {"far", npu::RegionClass::kActivations, bytes}};
}

/// A burst on its way, of a port whose beats are of `beat` bytes.
struct Burst {
  int64_t at, bytes, due; ///< offset in the region; the cycle at the end of which it is answered
  int beat;
  int64_t moved = 0; ///< bytes that crossed the port
  int64_t nextBeat() const { return std::min(bytes - moved, beat - (at + moved) % beat); }
  int64_t beatsLeft() const {
    return bytes == moved ? 0 : (at + bytes - 1) / beat - (at + moved) / beat + 1;
  }
};
/// The next beat of a read: its bytes in their lanes, random bits elsewhere.
template <typename Data>
void getBeat(const Burst& burst, std::span<const uint8_t> far, Dice& dice, Data& data) {
  for (int i = 0; i < burst.beat; ++i)
    setBits(data, 8 * i, 8, static_cast<uint64_t>(dice.of(0, 255)));
  for (int64_t i = 0, at = burst.at + burst.moved; i < burst.nextBeat(); ++i, ++at)
    setBits(data, static_cast<int>(8 * (at % burst.beat)), 8, far[static_cast<size_t>(at)]);
}
/// The next beat of a write. False where lanes or end are not those of the burst.
template <typename Lanes, typename Data>
bool putBeat(Burst& burst, std::span<uint8_t> far, const Lanes& lanes, const Data& data,
             bool isLast) {
  const int64_t bytes = burst.nextBeat(), first = burst.at + burst.moved, lane = first % burst.beat;
  for (int i = 0; i < burst.beat; ++i)
    if (getBits(lanes, i, 1) != (i >= lane && i < lane + bytes)) return false;
  for (int64_t i = 0; i < bytes; ++i)
    far[static_cast<size_t>(first + i)] =
        static_cast<uint8_t>(getBits(data, static_cast<int>(8 * (lane + i)), 8));
  burst.moved += bytes;
  return isLast == (burst.moved == burst.bytes);
}

struct Box {
  int64_t run;
  std::array<int64_t, 3> lengths, strides{};
  /// The bytes before its start that it reaches, and all that it spans.
  std::pair<int64_t, int64_t> extent() const {
    int64_t before = 0, bytes = run;
    for (size_t i = 0; i < 3; ++i) {
      const int64_t reach = (lengths[i] - 1) * strides[i];
      before -= std::min<int64_t>(reach, 0);
      bytes += std::abs(reach);
    }
    return {before, bytes};
  }
};

/// Strides with which no byte is met twice, the dimensions in any order, often without a gap.
inline void setDisjoint(Dice& dice, Box& box, bool canBeNegative) {
  std::array<size_t, 3> order{0, 1, 2};
  if (dice.chance(30)) std::shuffle(order.begin(), order.end(), dice.engine);
  const bool isDense = dice.chance(40);
  int64_t extent = box.run;
  for (const size_t i : order) {
    const int64_t stride = extent + (isDense || dice.chance(50) ? 0 : dice.of(0, 40));
    extent += stride * (box.lengths[i] - 1);
    box.strides[i] = canBeNegative && dice.chance(25) ? -stride : stride;
  }
}
/// Any strides: some repeat what was there.
inline void setFree(Dice& dice, Box& box, bool canBeNegative) {
  setDisjoint(dice, box, canBeNegative);
  for (int64_t& stride : box.strides)
    if (dice.chance(15)) stride = dice.chance(30) ? 0 : dice.of(canBeNegative ? -200 : 0, 200);
}

struct Case {
  Sent sent;
  std::string text;
};
inline Case caseOf(const char* op, Fields fields, const Box& far, const Box& near, Fields pads) {
  Fields d{{"run", far.run},
           {"len1", far.lengths[0]},
           {"len2", far.lengths[1]},
           {"len3", far.lengths[2]},
           {"far_stride1", far.strides[0]},
           {"far_stride2", far.strides[1]},
           {"far_stride3", far.strides[2]},
           {"near_stride1", near.strides[0]},
           {"near_stride2", near.strides[1]},
           {"near_stride3", near.strides[2]}};
  d.insert(d.end(), pads.begin(), pads.end());
  if (op == std::string_view("load") || op == std::string_view("store"))
    fields.push_back({"region", kRegion});
  return {sent(op, fields, descriptorOf(npu::DescriptorKind::kTransfer, d)), textOf(op, fields, d)};
}

/// So many bytes of the scratchpad, and of the region, that a transfer may use.
struct Area {
  int64_t near, far, bytes;
};
/// A transfer within an area; a copy reads the lower half of its scratchpad and writes the upper
/// one.
inline Case randomTransfer(Dice& dice, const char* op, const Area& area) {
  const std::string_view name = op;
  while (true) {
    Box far{
        dice.chance(20)   ? dice.of(1, 3)
        : dice.chance(60) ? dice.of(1, 64)
                          : dice.of(1, 1500),
        {dice.of(1, 12), dice.chance(60) ? dice.of(1, 8) : 1, dice.chance(40) ? dice.of(1, 4) : 1}};
    if (dice.chance(10)) far.lengths[0] = dice.of(1, 400);
    if (far.run * far.lengths[0] * far.lengths[1] * far.lengths[2] > 10000) continue;
    Box near = far;
    Fields pads;
    if (name != "store" && dice.chance(40)) {
      const int64_t left = dice.of(0, 3), right = dice.of(0, 3), top = dice.of(0, 2),
                    bottom = dice.of(0, 2);
      pads = {{"pad_left", left}, {"pad_right", right}, {"pad_top", top}, {"pad_bottom", bottom}};
      near.lengths[0] += left + right, near.lengths[1] += top + bottom;
    }
    if (name == "store") {
      setDisjoint(dice, far, true);
      setFree(dice, near, false);
    } else {
      setFree(dice, far, true);
      setDisjoint(dice, near, false);
    }
    const auto [before, farBytes] = far.extent();
    const int64_t nearBytes = near.extent().second, half = area.bytes / 2;
    if (farBytes > half || nearBytes > half) continue;
    const auto placed = [&](int64_t from, int64_t size, int64_t bytes) {
      const int64_t at = from + dice.of(0, size - bytes);
      return dice.chance(50) ? std::max(from, at / 64 * 64) : at;
    };
    const int64_t flip = dice.of(0, 1), fill = dice.of(0, 255);
    if (name == "fill")
      return caseOf(op, {{"dst", placed(area.near, area.bytes, nearBytes)}, {"fill", fill}}, far,
                    near, pads);
    if (name == "copy")
      return caseOf(op,
                    {{"src", before + placed(area.near, half, farBytes)},
                     {"dst", placed(area.near + half, half, nearBytes)},
                     {"fill", fill},
                     {"flip", flip}},
                    far, near, pads);
    Fields fields{{"far", before + placed(area.far, area.bytes, farBytes)}, {"flip", flip}};
    fields.push_back({name == "load" ? "dst" : "src", placed(area.near, area.bytes, nearBytes)});
    if (name == "load") fields.push_back({"fill", fill});
    return caseOf(op, fields, far, near, pads);
  }
}

} // namespace candela::rtl
