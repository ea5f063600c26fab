#include "core/compiler/program/bands.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace candela::program {

namespace {

bool isWindow(const Instr& instr) {
  return instr.kind == CDL_KIND_CONV2D || instr.kind == CDL_KIND_POOL2D;
}

/// The dim of a view that is all of one dim of the value; kNone where there is none or where blocks
/// cut it.
uint32_t physicalDim(const View& view, uint32_t logical) {
  if (view.layout.opaque) return kNone;
  if (view.layout.isRowMajor()) return logical < view.dims.size() ? logical : kNone;
  uint32_t found = kNone;
  for (uint32_t i = 0; i < view.layout.steps.size(); ++i) {
    if (view.layout.steps[i].dim != logical) continue;
    if (found != kNone) return kNone;
    found = i;
  }
  return found;
}

int64_t attrAt(const Instr& instr, uint16_t id, size_t index, int64_t otherwise) {
  const Attr* found = instr.attr(id);
  return found && index < found->values.size() ? found->values[index] : otherwise;
}

/// Rows as they lie in a buffer: so many, `step` bytes apart.
struct RowsInMemory {
  int64_t rows = 0, step = 0;
  uint32_t writer = kNone;
};

int64_t stepOf(const View& view, const RowAxis& axis) {
  return view.strides[axis.dim] * axis.inner * elemBits(view.elem) / 8;
}

/// The dim of a view that these rows lie along, joined with others or not.
RowAxis axisAlong(const View& view, const RowsInMemory& memory) {
  const int64_t bits = elemBits(view.elem);
  for (uint32_t d = 0; d < view.dims.size(); ++d) {
    const int64_t stride = view.strides[d] * bits / 8;
    if (stride == 0 || stride * 8 != view.strides[d] * bits || memory.step % stride ||
        memory.step / stride < 1)
      continue;
    const int64_t inner = memory.step / stride;
    if (view.dims[d] && view.dims[d] % (inner * memory.rows) == 0) return {d, memory.rows, inner};
  }
  return {};
}

class Reading {
public:
  Reading(const Program& program, std::span<const uint32_t> instrs, uint32_t bandDim)
      : program_(program), instrs_(instrs), bandDim_(bandDim) {}

  Result<std::vector<BandMember>> run() {
    std::vector<BandMember> members;
    for (const uint32_t i : instrs_) {
      BandMember member;
      member.instr = i;
      CDL_TRY(read(member).context(program_.instrName(i)));
      const View& out = program_.instrs[i].outputs[0];
      memory_[out.buffer] = {member.output.rows, stepOf(out, member.output), i};
      members.push_back(std::move(member));
    }
    return members;
  }

private:
  Status read(BandMember& member) {
    const Instr& instr = program_.instrs[member.instr];
    if (!isBandable(instr))
      return badModel("it does not compute row by row, which a group in bands does");
    member.inputs.resize(instr.inputs.size());
    CDL_TRY(isWindow(instr) ? readWindow(instr, member) : readElements(instr, member));
    const View& out = instr.outputs[0];
    if (member.output.rows < 1 || stepOf(out, member.output) == 0)
      return badModel("%{} has {} rows, {} bytes apart", program_.buffers[out.buffer].name,
                      member.output.rows, stepOf(out, member.output));
    for (size_t v = 0; v < instr.inputs.size(); ++v) CDL_TRY(checkRows(instr, member, v));
    return Status::ok();
  }

  Status readWindow(const Instr& instr, BandMember& member) {
    if (bandDim_ < 2 || bandDim_ > 3)
      return badModel("bands along dim {}, but its windows move along dims 2 and 3", bandDim_);
    if (instr.intAttr(CDL_ATTR_TRANSPOSED, 0))
      return badModel("a transposed window does not compute row by row");
    const View &x = instr.inputs[0], &y = instr.outputs[0];
    const uint32_t from = physicalDim(x, bandDim_), to = physicalDim(y, bandDim_), d = bandDim_ - 2;
    if (from == kNone || to == kNone)
      return badModel("blocks cut dim {} of %{}", bandDim_, nameOf(from == kNone ? x : y));
    member.isWindow = true;
    member.output = {to, y.dims[to], 1};
    member.inputs[0] = {from, x.dims[from], 1};
    member.stride = attrAt(instr, CDL_ATTR_STRIDES, d, 1);
    member.pad = attrAt(instr, CDL_ATTR_PADS, d, 0);
    int64_t taps = attrAt(instr, CDL_ATTR_KERNEL, d, 1);
    if (instr.kind == CDL_KIND_CONV2D) {
      const uint32_t w = physicalDim(instr.inputs[1], bandDim_);
      if (w == kNone)
        return badModel("blocks cut dim {} of %{}", bandDim_, nameOf(instr.inputs[1]));
      taps = instr.inputs[1].dims[w];
    }
    member.extent = (taps - 1) * attrAt(instr, CDL_ATTR_DILATIONS, d, 1) + 1;
    // What an epilogue reads has the dims of the result; operands before it belong to every row.
    for (size_t v = instr.operandCount(); v < instr.inputs.size(); ++v)
      member.inputs[v] = alike(instr.inputs[v], y, member.output);
    return Status::ok();
  }

  Status readElements(const Instr& instr, BandMember& member) {
    const View& y = instr.outputs[0];
    // TABLE reads its entries anywhere.
    const size_t count = instr.kind == CDL_KIND_TABLE ? 1 : instr.inputs.size();
    for (size_t v = 0; v < count && member.output.dim == kNone; ++v) {
      const auto known = memory_.find(instr.inputs[v].buffer);
      if (known == memory_.end()) continue;
      const RowAxis axis = axisAlong(instr.inputs[v], known->second);
      if (axis.dim == kNone || instr.inputs[v].dims != y.dims) continue;
      member.output = axis;
    }
    if (member.output.dim == kNone) {
      const uint32_t d = physicalDim(y, bandDim_);
      if (d == kNone)
        return badModel("%{} has no dim {} that bands could be cut along", nameOf(y), bandDim_);
      member.output = {d, y.dims[d], 1};
    }
    for (size_t v = 0; v < count; ++v) member.inputs[v] = alike(instr.inputs[v], y, member.output);
    return Status::ok();
  }

  /// The axis of an operand that is broadcast to the result.
  static RowAxis alike(const View& view, const View& result, const RowAxis& axis) {
    const size_t missing = result.dims.size() - std::min(view.dims.size(), result.dims.size());
    if (view.dims.size() > result.dims.size() || axis.dim < missing) return {};
    const auto d = static_cast<uint32_t>(axis.dim - missing);
    if (view.dims[d] != result.dims[axis.dim] || view.strides[d] == 0) return {};
    return {d, axis.rows, axis.inner};
  }

  /// What a member of the group wrote is read row by row, in the rows that were written.
  Status checkRows(const Instr& instr, const BandMember& member, size_t v) {
    const View& view = instr.inputs[v];
    const auto known = memory_.find(view.buffer);
    if (known == memory_.end()) return Status::ok();
    const RowsInMemory& written = known->second;
    const RowAxis& axis = member.inputs[v];
    if (axis.dim == kNone)
      return badModel("each of its rows reads all {} rows of %{}, which {} computes in bands",
                      written.rows, nameOf(view), program_.instrName(written.writer));
    if (axis.rows != written.rows || stepOf(view, axis) != written.step)
      return badModel(
          "it reads %{} as {} rows {} bytes apart, which {} writes as {} rows {} bytes apart",
          nameOf(view), axis.rows, stepOf(view, axis), program_.instrName(written.writer),
          written.rows, written.step);
    return Status::ok();
  }

  const std::string& nameOf(const View& view) const { return program_.buffers[view.buffer].name; }

  const Program& program_;
  const std::span<const uint32_t> instrs_;
  const uint32_t bandDim_;
  std::map<uint32_t, RowsInMemory> memory_; ///< of buffers that members have written
};

/// Sets how far each member gets in each band, from the last one to the first.
void setFrontiers(const Program& program, std::vector<BandMember>& members, uint32_t bands) {
  for (size_t m = members.size(); m-- > 0;) {
    BandMember& member = members[m];
    const uint32_t buffer = program.instrs[member.instr].outputs[0].buffer;
    member.done.assign(bands, 0);
    bool isRead = false;
    for (size_t c = m + 1; c < members.size(); ++c) {
      const Instr& reader = program.instrs[members[c].instr];
      for (size_t v = 0; v < reader.inputs.size(); ++v) {
        if (reader.inputs[v].buffer != buffer) continue;
        isRead = true;
        for (uint32_t k = 0; k < bands; ++k) {
          const Rows needed = members[c].rowsRead(v, {0, members[c].done[k]});
          member.done[k] =
              std::max(member.done[k], std::clamp<int64_t>(needed.last, 0, member.output.rows));
        }
      }
    }
    for (uint32_t k = 0; k < bands && !isRead; ++k)
      member.done[k] = member.output.rows * (k + 1) / bands;
    member.done.back() = member.output.rows;
  }
}

} // namespace

bool isBandable(const Instr& instr) {
  switch (instr.kind) {
  case CDL_KIND_COPY:
  case CDL_KIND_FILL:
  case CDL_KIND_CONVERT:
  case CDL_KIND_BINARY:
  case CDL_KIND_COMPARE:
  case CDL_KIND_SELECT:
  case CDL_KIND_UNARY:
  case CDL_KIND_RESCALE:
  case CDL_KIND_TABLE:
  case CDL_KIND_ELEMENTWISE:
  case CDL_KIND_POOL2D:
  case CDL_KIND_CONV2D: return instr.outputs.size() == 1;
  default: return false;
  }
}

std::vector<uint32_t> membersOf(const Group& group) {
  std::vector<uint32_t> members(group.count);
  std::iota(members.begin(), members.end(), group.first);
  return members;
}

Rows BandMember::rowsRead(size_t input, const Rows& result) const {
  if (result.first >= result.last) return {};
  if (!isWindow || input) return result;
  return {result.first * stride - pad, (result.last - 1) * stride - pad + extent};
}

Result<std::vector<BandMember>> bandsOf(const Program& program, std::span<const uint32_t> instrs,
                                        uint32_t bandDim, uint32_t bands) {
  CDL_ASSIGN(std::vector<BandMember> members, Reading(program, instrs, bandDim).run());
  if (members.empty()) return members;
  if (bands > members.back().output.rows)
    return badModel("{} bands of the {} rows of {}", bands, members.back().output.rows,
                    program.instrName(members.back().instr));
  setFrontiers(program, members, bands);
  return members;
}

uint64_t bytesHeld(const Program& program, std::span<const BandMember> members,
                   const std::vector<bool>& inside, std::span<const uint64_t> bytes) {
  struct Value {
    uint64_t rowBytes = 0;
    int64_t rows = 0;
    std::vector<size_t> writers;
    std::vector<std::pair<size_t, size_t>> readers; // member, input
  };
  std::map<uint32_t, Value> values;
  for (size_t m = 0; m < members.size(); ++m) {
    const Instr& instr = program.instrs[members[m].instr];
    const uint32_t out = instr.outputs[0].buffer;
    for (size_t v = 0; v < instr.inputs.size(); ++v)
      if (values.count(instr.inputs[v].buffer))
        values[instr.inputs[v].buffer].readers.emplace_back(m, v);
    if (!inside[out]) continue;
    Value& value = values[out];
    value.rows = members[m].output.rows;
    value.rowBytes =
        (bytes[out] + static_cast<uint64_t>(value.rows) - 1) / static_cast<uint64_t>(value.rows);
    value.writers.push_back(m);
  }
  uint64_t most = 0;
  const auto doneBefore = [&](size_t m, uint32_t k) { return k ? members[m].done[k - 1] : 0; };
  for (uint32_t k = 0; !members.empty() && k < members[0].done.size(); ++k)
    for (size_t m = 0; m < members.size(); ++m) {
      uint64_t held = 0;
      for (const auto& [buffer, value] : values) {
        int64_t high = 0,
                low = value.readers.empty() ? doneBefore(value.writers[0], k) : value.rows;
        for (const size_t w : value.writers)
          high = std::max(high, w <= m ? members[w].done[k] : doneBefore(w, k));
        for (const auto& [reader, input] : value.readers) {
          const Rows left{reader < m ? members[reader].done[k] : doneBefore(reader, k),
                          members[reader].output.rows};
          if (left.first < left.last)
            low = std::min(low, std::max<int64_t>(members[reader].rowsRead(input, left).first, 0));
        }
        if (high > low) held += static_cast<uint64_t>(high - low) * value.rowBytes;
      }
      most = std::max(most, held);
    }
  return most;
}

} // namespace candela::program
