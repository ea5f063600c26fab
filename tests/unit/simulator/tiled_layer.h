#pragma once

#include "tests/unit/simulator/program_builder.h"

namespace candela::npu {

/// A matrix product of `pixels` x cin by cin x cout, int8, tile by tile: tp pixels and tn channels
/// at a time.
struct TiledLayer {
  int64_t pixels = 256, cin = 64, cout = 64, tp = 64, tn = 32;
  int64_t buffers = 2; ///< of activations, accumulators and outputs
  /// weights of tn channels are loaded once, activations for each; else the other way round
  bool weightsStay = true;
  int64_t actStride = 0; ///< bytes from pixel to pixel in DRAM; 0: cin

  int64_t stride() const { return actStride ? actStride : cin; }
  int64_t macs() const { return pixels * cin * cout; }
  /// What it moves between DRAM and scratchpad.
  int64_t bytes() const {
    const int64_t rows = pixels / tp, columns = cout / tn;
    return 8 * cout + pixels * cout +
           (weightsStay ? cin * cout + columns * pixels * cin : rows * cin * cout + pixels * cin);
  }
  int64_t scratchpad() const {
    return 8 * cout + buffers * tp * (cin + tn) + (buffers + 1) * cin * tn +
           (weightsStay ? 0 : tp * cin);
  }
  bool fits(const Configuration& c) const {
    const int64_t rows = buffers * tp * ((tn + c.columns() - 1) / c.columns());
    return pixels % tp == 0 && cout % tn == 0 && scratchpad() <= c.scratchpadBytes() &&
           rows <= c.accumulatorRows() && tp <= 4096;
  }

  /// Regions: constants (records, then weights), input, output.
  Binary program(const Configuration& c) const {
    enum { kLoaded = 0, kConsumed, kSummed, kDrained, kWritten, kStored };
    ProgramBuilder p(c);
    const int64_t records = 8 * cout;
    p.binary.regions = {
        {"constants", RegionClass::kConstants, static_cast<uint64_t>(records + cin * cout)},
        {"input", RegionClass::kInput, static_cast<uint64_t>(pixels * stride())},
        {"output", RegionClass::kOutput, static_cast<uint64_t>(pixels * cout)}};
    p.binary.constants.assign(p.binary.regions[0].bytes, std::byte{1});
    const int64_t actBuffers = weightsStay ? buffers : buffers + 1, wgtBuffers = buffers + 1;
    const int64_t actAt = records, wgtAt = actAt + actBuffers * tp * cin,
                  outAt = wgtAt + wgtBuffers * cin * tn;
    const int64_t blocks = (tn + c.columns() - 1) / c.columns(), rows = pixels / tp,
                  columns = cout / tn;
    p.descriptor(0, DescriptorKind::kTransfer, {{"run", records}});
    p.descriptor(1, DescriptorKind::kTransfer,
                 {{"run", cin}, {"len1", tp}, {"far_stride1", stride()}, {"near_stride1", cin}});
    p.descriptor(2, DescriptorKind::kTransfer,
                 {{"run", tn}, {"len1", cin}, {"far_stride1", cout}, {"near_stride1", tn}});
    p.descriptor(3, DescriptorKind::kTransfer,
                 {{"run", tn}, {"len1", tp}, {"far_stride1", cout}, {"near_stride1", tn}});
    p.descriptor(4, DescriptorKind::kWindow,
                 {{"in_w", tp},
                  {"out_w", tp},
                  {"cin", cin},
                  {"cout", tn},
                  {"pixel_stride", cin},
                  {"weight_pitch", tn},
                  {"acc_pitch", tp}});
    p.op("load", {{"d", 0}}, {}, {kLoaded, 1});
    int64_t tile = 0;
    const int64_t outer = weightsStay ? columns : rows, inner = weightsStay ? rows : columns;
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t i = 0; i < inner; ++i, ++tile) {
        const int64_t column = weightsStay ? o : i, row = weightsStay ? i : o;
        const int64_t act = actAt + (weightsStay ? tile : o) % actBuffers * tp * cin;
        const int64_t wgt = wgtAt + (weightsStay ? o : tile) % wgtBuffers * cin * tn;
        const int64_t out = outAt + tile % buffers * tp * tn, acc = tile % buffers * tp * blocks;
        const bool isFirst = tile < buffers;
        const Tokens free = isFirst ? Tokens{} : Tokens{kConsumed, 1}, none{};
        const auto loadActs = [&](Tokens wait) {
          p.op("load", {{"region", 1}, {"far", row * tp * stride()}, {"dst", act}, {"d", 1}}, wait,
               {kLoaded, 1});
        };
        const auto loadWeights = [&](Tokens wait) {
          p.op("load", {{"region", 0}, {"far", records + column * tn}, {"dst", wgt}, {"d", 2}},
               wait, {kLoaded, 1});
        };
        int loads = 1;
        if (weightsStay) {
          loadActs(free);
          if (i == 0) loadWeights(none), ++loads;
        } else {
          loadWeights(free);
          if (i == 0) loadActs(none), ++loads;
        }
        if (tile == 0) ++loads; // the records
        if (!isFirst) p.op("nop", {}, {kDrained, 1}, {}, static_cast<int>(Engine::kMatrix));
        p.op("nop", {}, {kLoaded, loads}, {}, static_cast<int>(Engine::kMatrix));
        p.op("conv", {{"acc", acc}, {"act", act}, {"wgt", wgt}, {"d", 4}}, {}, {kSummed, 1});
        p.op("nop", {}, {}, {kConsumed, 1}, static_cast<int>(Engine::kMatrix));
        p.descriptor(5, DescriptorKind::kEpilogue,
                     {{"out_w", tp},
                      {"in_w", tp},
                      {"channels", tn},
                      {"acc_pitch", tp},
                      {"pixel_stride", tn},
                      {"params", 8 * column * tn},
                      {"low", -128},
                      {"high", 127}});
        if (!isFirst) p.op("nop", {}, {kStored, 1}, {}, static_cast<int>(Engine::kRequant));
        p.op("requant", {{"acc", acc}, {"dst", out}, {"d", 5}}, {kSummed, 1}, {kWritten, 1});
        p.op("nop", {}, {}, {kDrained, 1}, static_cast<int>(Engine::kRequant));
        p.op("store",
             {{"region", 2}, {"far", row * tp * cout + column * tn}, {"src", out}, {"d", 3}},
             {kWritten, 1}, {kStored, 1});
      }
    p.op("halt", {});
    return p.binary;
  }
};

} // namespace candela::npu
