#pragma once

#include "core/compiler/program/program.h"

/// Which part of each operand a part of the result needs: one function for each kind of
/// instruction.
namespace candela::program::passes::tile {

/// Indices begin .. end - 1.
struct Range {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
  friend bool operator==(const Range&, const Range&) = default;
};

/// An index that an instruction runs over.
struct Axis {
  int64_t extent = 1;
  int64_t unit = 1; ///< cuts lie at multiples of it
  bool cut = true;  ///< false: a tile has all of it
  bool sum = false; ///< products are summed along it
  friend bool operator==(const Axis&, const Axis&) = default;
};

/// What a box of axes asks of one physical dim of a view.
struct DimMap {
  enum class How : uint8_t {
    whole,   ///< all of it
    axis,    ///< the same indices, `unit` of them in one of the dim's
    window,  ///< what windows at these places reach, within the dim
    channels ///< the input channels of the groups that these output channels belong to
  };
  How how = How::whole;
  size_t axis = 0;
  int64_t unit = 1;                                      ///< axis
  int64_t stride = 1, dilation = 1, kernel = 1, pad = 0; ///< window
  int64_t outputs = 1, inputs = 1;                       ///< channels: of one group
  friend bool operator==(const DimMap&, const DimMap&) = default;
};
using ViewMap = std::vector<DimMap>; ///< by physical dim

using Box = std::vector<Range>; ///< by axis

/// The indices of a dim of `extent` that the box needs.
Range rangeOf(const DimMap& map, const Box& box, const std::vector<Axis>& axes, int64_t extent);
std::vector<Range> regionOf(const ViewMap& map, const Box& box, const std::vector<Axis>& axes,
                            const View& view);

/// How an instruction can be cut.
struct Work {
  std::vector<Axis> axes;
  /// The axes but sums, in groups: within one, an axis is cut where those before it are down to
  /// their unit.
  std::vector<std::vector<size_t>> families;
  std::vector<ViewMap> inputs, outputs;
};
/// Every axis and map of the instruction. What cannot be cut has no axis that can be.
Work workOf(const Instr& instr);

/// The instruction as it is for the box: pads, groups and accumulation. Views stay as they are.
Instr partOf(const Instr& instr, const Work& work, const Box& box);

/// Convolutions that step over pixels with a kernel of one read only the pixels that they use.
void skipPixels(Instr& instr);

/// Element by element, all views alike (TABLE: but for the table): may follow another instruction
/// tile by tile.
bool isElementwise(uint16_t kind);

} // namespace candela::program::passes::tile
