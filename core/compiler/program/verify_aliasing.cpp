// What an instruction reads must not be what it writes, but for elements that take their own place:
// a kernel may write any part of its result before it has read the rest of its operands.
#include <algorithm>

#include "core/compiler/program/dependences.h"
#include "core/compiler/program/internal.h"

namespace candela::program {

namespace {

/// Kinds that compute one element of the result of one element of each operand, which may lie in
/// its place.
bool isElementwise(uint16_t kind) {
  switch (kind) {
  case CDL_KIND_COPY:
  case CDL_KIND_CONVERT:
  case CDL_KIND_BINARY:
  case CDL_KIND_COMPARE:
  case CDL_KIND_SELECT:
  case CDL_KIND_UNARY:
  case CDL_KIND_RESCALE:
  case CDL_KIND_TABLE:
  case CDL_KIND_ELEMENTWISE: return true;
  default: return false;
  }
}

/// Where a buffer begins, in bits of its region (see Access).
int64_t startOf(const Program& program, const View& view) {
  const Buffer& buffer = program.buffers[view.buffer];
  const bool isPlaced = buffer.role == Role::temp && buffer.offset != CDL_UNPLACED;
  return (isPlaced ? static_cast<int64_t>(buffer.offset) * 8 : 0) +
         view.offset * elemBits(view.elem);
}

/// Every element of one lies where the element of the same index of the other does.
bool isSamePlace(const Program& program, const View& x, const View& y) {
  if (startOf(program, x) != startOf(program, y) || elemBits(x.elem) != elemBits(y.elem) ||
      x.dims != y.dims)
    return false;
  for (size_t d = 0; d < x.dims.size(); ++d)
    if (x.dims[d] > 1 && x.strides[d] != y.strides[d]) return false;
  return true;
}

struct Run {
  int64_t begin, end; ///< bits
};

constexpr int64_t kMostRuns = int64_t(1) << 20;

/// The bits of a view, in runs without gaps, sorted; empty when there are too many.
std::vector<Run> runsOf(const Program& program, const View& view) {
  const int bits = elemBits(view.elem);
  int64_t run = 1, count = 1;
  std::vector<size_t> outer; // dims beyond the run
  for (size_t d = view.dims.size(); d-- > 0;) {
    if (view.dims[d] == 1 || view.strides[d] == 0) continue;
    if (view.strides[d] == run && outer.empty())
      run *= view.dims[d];
    else if (outer.push_back(d); (count *= view.dims[d]) > kMostRuns)
      return {};
  }
  std::vector<Run> runs;
  for (int64_t i = 0; i < count; ++i) {
    int64_t at = 0, rest = i;
    for (const size_t d : outer) {
      at += rest % view.dims[d] * view.strides[d];
      rest /= view.dims[d];
    }
    const int64_t begin = startOf(program, view) + at * bits;
    runs.push_back({begin, begin + run * bits});
  }
  std::ranges::sort(runs, {}, &Run::begin);
  return runs;
}

/// The first bit that both have.
std::optional<int64_t> meeting(const std::vector<Run>& a, const std::vector<Run>& b) {
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const int64_t begin = std::max(a[i].begin, b[j].begin);
    if (begin < std::min(a[i].end, b[j].end)) return begin;
    ++(a[i].end < b[j].end ? i : j);
  }
  return std::nullopt;
}

Status verifyPair(const Program& program, const Instr& instr, size_t i, const View& y) {
  const View& x = instr.inputs[i];
  if (x.layout.opaque || y.layout.opaque ||
      !std::equal(std::begin(x.ivStrides), std::end(x.ivStrides), y.ivStrides))
    // an opaque one is a constant; in a loop two places may meet in some other iteration alone
    return Status::ok();
  const Access read = accessOf(program, instr, x, false), write = accessOf(program, instr, y, true);
  if (!read.overlaps(write)) return Status::ok();
  const bool alongside = isElementwise(instr.kind)
                             ? instr.kind != CDL_KIND_TABLE || i == 0
                             : cdl_kind_facts(instr.kind)->epilogue && i >= instr.operandCount();
  if (alongside && isSamePlace(program, x, y)) return Status::ok();
  const auto bit = meeting(runsOf(program, x), runsOf(program, y));
  if (!bit) return Status::ok();
  const std::string &from = program.buffers[x.buffer].name, &to = program.buffers[y.buffer].name;
  return badModel("input {} (%{}): its element {} is overwritten through %{} before every result "
                  "that reads it is "
                  "computed{}",
                  i, from, (*bit - startOf(program, x)) / elemBits(x.elem) + x.offset, to,
                  alongside ? ": they are walked in different orders" : "");
}

} // namespace

Status verifyAliasing(const Program& program, const Instr& instr) {
  for (const View& y : instr.outputs)
    for (size_t i = 0; i < instr.inputs.size(); ++i) CDL_TRY(verifyPair(program, instr, i, y));
  return Status::ok();
}

} // namespace candela::program
