#include "bands.hpp"

#include "instructions.hpp"

namespace cpu {

namespace {

/// A call of a run that goes band by band, with what its instruction and those that it does too
/// read and write.
struct BandedCall {
  Call call;
  UnitRows rows;
  struct Read {
    uint32_t buffer;
    bool isWindow;
  };
  std::vector<Read> reads;
  std::vector<uint32_t> writes;
  int64_t stride = 1, pad = 0, extent = 1; // of its window
  std::vector<int64_t> done;               // tiles at the end of each band

  /// How many rows of what it reads, from the first one on, its first tiles need.
  int64_t needs(const Read& read, int64_t tiles) const {
    const int64_t own = rows.touched(tiles);
    return read.isWindow && own ? (own - 1) * stride - pad + extent : own;
  }
};

class BandedGroup {
public:
  BandedGroup(Lowering& lowering, const cdl_group_t& group)
      : lowering_(lowering), image_(lowering.image), group_(group) {}

  /// The calls first .. end - 1 of the group, cut into bands.
  std::vector<Call> cut(size_t first, size_t end) {
    for (size_t c = first; c < end; ++c) {
      const Call& call = lowering_.calls()[c];
      const UnitRows& rows = lowering_.rowsOfCalls()[c];
      // What else an instruction does before or behind is done as a whole, and so it is the border
      // of a run.
      if (rows.tiles == 0 || (!run_.empty() && run_.back().call.instr == call.instr)) endRun();
      if (rows.tiles == 0)
        calls_.push_back(call);
      else
        run_.push_back(stepOf(call, rows));
    }
    endRun();
    return std::move(calls_);
  }

private:
  BandedCall stepOf(const Call& call, const UnitRows& rows) const {
    BandedCall step;
    step.call = call;
    step.rows = rows;
    std::vector<uint32_t> instrs = lowering_.doneBy(call.instr);
    instrs.insert(instrs.begin(), call.instr);
    for (const uint32_t i : instrs) {
      const cdl_instr_t& instr = *cdl_get_instr(image_, i);
      const bool isWindow = instr.kind == CDL_KIND_CONV2D || instr.kind == CDL_KIND_POOL2D;
      for (uint32_t v = 0; v < instr.inputs; ++v)
        step.reads.push_back({cdl_get_input(image_, &instr, v)->buffer, isWindow && v == 0});
      for (uint32_t v = 0; v < instr.outputs; ++v)
        step.writes.push_back(cdl_get_output(image_, &instr, v)->buffer);
      if (!isWindow) continue;
      step.stride = attrOf(lowering_, instr, CDL_ATTR_STRIDES, 1, 0);
      step.pad = attrOf(lowering_, instr, CDL_ATTR_PADS, 0, 0);
      const int64_t taps = instr.kind == CDL_KIND_POOL2D
                               ? attrOf(lowering_, instr, CDL_ATTR_KERNEL, 1, 0)
                               : tapsOf(*cdl_get_input(image_, &instr, 1));
      step.extent = (taps - 1) * attrOf(lowering_, instr, CDL_ATTR_DILATIONS, 1, 0) + 1;
    }
    return step;
  }

  /// How many rows of taps weights have, wherever their layout has them.
  int64_t tapsOf(const cdl_view_t& weights) const {
    const cdl_layout_t& layout = *cdl_get_layout(image_, weights.layout);
    for (int i = 0; weights.layout && i < layout.count; ++i)
      if (layout.dim[i] == 2) return weights.dims[i];
    return weights.dims[2];
  }

  /// Whether no two buffers of the run share memory. Tiles end where it suits them, not where bands
  /// do: a call may be ahead of the rows that the core has judged.
  bool isApart() const {
    std::vector<uint32_t> buffers;
    for (const BandedCall& step : run_) {
      for (const BandedCall::Read& read : step.reads) buffers.push_back(read.buffer);
      buffers.insert(buffers.end(), step.writes.begin(), step.writes.end());
    }
    std::sort(buffers.begin(), buffers.end());
    buffers.erase(std::unique(buffers.begin(), buffers.end()), buffers.end());
    for (const uint32_t a : buffers)
      for (const uint32_t b : buffers) {
        const cdl_buffer_t &x = *cdl_get_buffer(image_, a), &y = *cdl_get_buffer(image_, b);
        if (a >= b || x.role != CDL_ROLE_TEMP || y.role != CDL_ROLE_TEMP || x.space != y.space)
          continue;
        if (x.offset == CDL_UNPLACED || y.offset == CDL_UNPLACED) return false;
        if (x.offset < y.offset + y.bytes && y.offset < x.offset + x.bytes) return false;
      }
    return true;
  }

  /// Sets how far each call gets in each band, from the last one to the first.
  void setFrontiers() {
    for (size_t s = run_.size(); s-- > 0;) {
      BandedCall& step = run_[s];
      bool isRead = false;
      step.done.assign(group_.bands, 0);
      for (size_t c = s + 1; c < run_.size(); ++c)
        for (const BandedCall::Read& read : run_[c].reads) {
          if (std::find(step.writes.begin(), step.writes.end(), read.buffer) == step.writes.end())
            continue;
          isRead = true;
          for (uint32_t k = 0; k < group_.bands; ++k) {
            const int64_t rows = std::max<int64_t>(run_[c].needs(read, run_[c].done[k]), 0);
            step.done[k] = std::max(step.done[k], step.rows.tilesFor(rows));
          }
        }
      for (uint32_t k = 0; k < group_.bands && !isRead; ++k)
        step.done[k] = step.rows.tilesFor(step.rows.rows * (int64_t(k) + 1) / group_.bands);
      step.done.back() = step.rows.tiles;
    }
  }

  void endRun() {
    if (run_.size() < 2 || !isApart()) {
      for (const BandedCall& step : run_) calls_.push_back(step.call);
    } else {
      setFrontiers();
      for (uint32_t k = 0; k < group_.bands; ++k)
        for (const BandedCall& step : run_) {
          const int64_t from = k ? step.done[k - 1] : 0, to = step.done[k];
          if (from >= to) continue;
          Call call = step.call;
          call.first = static_cast<uint64_t>(from * step.rows.inner);
          call.units = static_cast<uint64_t>((to - from) * step.rows.inner);
          call.turns = static_cast<uint64_t>(step.rows.outer);
          call.stride = static_cast<uint64_t>(step.rows.tiles * step.rows.inner);
          calls_.push_back(call);
        }
    }
    run_.clear();
  }

  Lowering& lowering_;
  const cdl_image_t* image_;
  const cdl_group_t& group_;
  std::vector<BandedCall> run_;
  std::vector<Call> calls_;
};

} // namespace

void runInBands(Lowering& lowering) {
  std::vector<Call>& calls = lowering.calls();
  std::vector<Call> arranged;
  const auto groupOf = [&](size_t c) {
    return cdl_get_instr(lowering.image, calls[c].instr)->group;
  };
  for (size_t c = 0; c < calls.size();) {
    const uint32_t g = groupOf(c);
    size_t end = c + 1;
    while (g && end < calls.size() && groupOf(end) == g) ++end;
    const cdl_group_t* group = g ? cdl_get_group(lowering.image, g) : nullptr;
    if (group && group->bands > 1 && group->band_dim == 2) {
      const std::vector<Call> banded = BandedGroup(lowering, *group).cut(c, end);
      arranged.insert(arranged.end(), banded.begin(), banded.end());
    } else {
      arranged.insert(arranged.end(), calls.begin() + static_cast<std::ptrdiff_t>(c),
                      calls.begin() + static_cast<std::ptrdiff_t>(end));
    }
    c = end;
  }
  calls = std::move(arranged);
}

} // namespace cpu
