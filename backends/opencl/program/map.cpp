// What goes element by element: a work-item walks some rows of the result, 16 neighbours at a time,
// and what is left over one by one.
#include "text.hpp"

namespace program {

namespace {

/// The dims of all views at once, y first: dims of 1 are gone, the result's densest dim is the
/// innermost, and dims that lie alike in all are one.
struct Nest {
  std::vector<int64_t> dims;
  std::vector<std::vector<int64_t>> strides; // of each dim, of each view
};

Nest nestOf(const std::vector<const cdl_view_t*>& views) {
  const cdl_view_t& y = *views[0];
  std::vector<int> order;
  for (int d = 0; d < y.rank; ++d)
    if (y.dims[d] != 1) order.push_back(d);
  // Elements are independent: any order of the dims is right.
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return std::abs(y.strides[a]) > std::abs(y.strides[b]); });
  Nest nest;
  for (const int d : order) {
    std::vector<int64_t> strides;
    for (const cdl_view_t* view : views) strides.push_back(view->strides[d]);
    bool joins = !nest.dims.empty();
    for (size_t v = 0; joins && v < strides.size(); ++v)
      joins = nest.strides.back()[v] == strides[v] * y.dims[d];
    if (joins) {
      nest.dims.back() *= y.dims[d];
      nest.strides.back() = strides;
    } else {
      nest.dims.push_back(y.dims[d]);
      nest.strides.push_back(strides);
    }
  }
  if (nest.dims.empty()) {
    nest.dims.push_back(1);
    nest.strides.emplace_back(views.size(), 1);
  }
  return nest;
}

class MapWriter {
public:
  /// `first`: the first input that the steps read.
  MapWriter(const Instruction& instr, const std::vector<cdl_step_t>& steps, uint32_t first = 0)
      : instr_(instr), steps_(steps), first_(first) {
    views_.push_back(&instr.y());
    for (uint32_t i = first; i < instr->inputs; ++i) views_.push_back(&instr.input(i));
    nest_ = nestOf(views_);
  }

  /// For a CPU: a work-item walks rows.
  KernelText writeRows() {
    const size_t last = nest_.dims.size() - 1;
    const int64_t inner = nest_.dims[last];
    int64_t rows = 1;
    for (size_t d = 0; d < last; ++d) rows *= nest_.dims[d];
    const int64_t chunk = inner > 2 * kElementsOfItem ? kElementsOfItem : inner;
    const int64_t chunks = (inner + chunk - 1) / chunk;
    const int64_t rowsOfItem =
        std::min(rows, std::max<int64_t>(1, kElementsOfItem / std::max<int64_t>(1, inner)));
    for (const cdl_view_t* view : views_) pointers_.push_back(w_.pointer(*view));
    w_.line("const long first = get_global_id(0) / ", chunks, " * ", rowsOfItem, ";");
    w_.line("const int from = get_global_id(0) % ", chunks, " * ", chunk, ";");
    w_.line("const int to = min(from + ", chunk, ", ", inner, ");");
    w_.line("for (long row = first; row < min(first + ", rowsOfItem, ", (long)", rows,
            "); ++row) {");
    writeRow(last, inner);
    w_.line("}");
    return w_.finish((rows + rowsOfItem - 1) / rowsOfItem * chunks);
  }

  /// For a GPU: a work-item computes one element, and its neighbour the next.
  KernelText writeElement() {
    const size_t last = nest_.dims.size() - 1;
    int64_t elements = 1;
    for (const int64_t dim : nest_.dims) elements *= dim;
    w_.beginItems(elements);
    for (const cdl_view_t* view : views_) pointers_.push_back(w_.pointer(*view));
    w_.line("const long row = id / ", nest_.dims[last], ";");
    w_.line("const int i = id % ", nest_.dims[last], ";");
    writePointers(last);
    writeElements(1, nest_.strides[last]);
    return w_.finishItems(elements);
  }

private:
  /// Names q<v>, where `row` begins in view v.
  void writePointers(size_t last) {
    std::string rest = "row";
    std::vector<std::string> offsets(views_.size(), "0");
    for (size_t d = last; d-- > 0;) {
      w_.line("const long i", d, " = ", rest, d ? cdl::text(" % ", nest_.dims[d]) : "", ";");
      w_.line("const long r", d, " = ", rest, " / ", nest_.dims[d], ";");
      rest = cdl::text("r", d);
      for (size_t v = 0; v < views_.size(); ++v)
        offsets[v] += cdl::text(" + i", d, " * ", nest_.strides[d][v]);
    }
    for (size_t v = 0; v < views_.size(); ++v)
      w_.line("global ", memoryType(views_[v]->elem), "* q", v, " = ", pointers_[v], " + ",
              offsets[v], ";");
  }

  void writeRow(size_t last, int64_t inner) {
    writePointers(last);
    w_.line("int i = from;");
    if (inner >= kLanes) {
      w_.line("for (; i + ", kLanes, " <= to; i += ", kLanes, ") {");
      writeElements(kLanes, nest_.strides[last]);
      w_.line("}");
    }
    w_.line("for (; i < to; ++i) {");
    writeElements(1, nest_.strides[last]);
    w_.line("}");
  }

  void writeElements(int lanes, const std::vector<int64_t>& strides) {
    const auto at = [&](size_t v) { return cdl::text("q", v, " + (long)i * ", strides[v]); };
    const std::string value = w_.compute(steps_, 0, steps_.size(), lanes, "", [&](uint32_t i) {
      const size_t v = i - first_ + 1;
      return Writer::load(views_[v]->elem, lanes, at(v), strides[v]);
    });
    w_.store(views_[0]->elem, lanes, at(0), strides[0], value);
  }

  const Instruction& instr_;
  const std::vector<cdl_step_t>& steps_;
  const uint32_t first_;
  std::vector<const cdl_view_t*> views_; // y, then the inputs
  Nest nest_;
  std::vector<std::string> pointers_;
  Writer w_;
};

/// The instruction itself as a step on its inputs; none where it is no such one.
std::vector<cdl_step_t> ownStep(const Instruction& instr) {
  cdl_step_t step{};
  step.kind = instr->kind;
  step.fn = instr->fn;
  step.elem = instr.y().elem;
  step.operands = instr->inputs;
  step.flags = instr.attr(CDL_ATTR_SATURATE, 0) != 0;
  if (instr->kind == CDL_KIND_FILL) {
    step.kind = CDL_KIND_COPY;
    step.operands = 1;
    step.imm = static_cast<uint64_t>(instr.attr(CDL_ATTR_VALUE, 0));
    step.in[0] = {CDL_FROM_CONST, step.elem, 0};
    return {step};
  }
  if (instr->inputs > 4 || instr->kind == CDL_KIND_TABLE || instr->kind == CDL_KIND_RESCALE)
    return {};
  for (uint16_t i = 0; i < step.operands; ++i) step.in[i] = {CDL_FROM_VIEW, instr.input(i).elem, i};
  return {step};
}

} // namespace

bool writeMap(const Instruction& instr, const Profile& profile, KernelText& text) {
  const std::vector<cdl_step_t> steps =
      instr->kind == CDL_KIND_ELEMENTWISE ? instr.steps() : ownStep(instr);
  if (steps.empty() || !canCompute(steps) || elementsOf(instr.y()) == 0) return false;
  for (uint32_t i = 0; i < instr->inputs; ++i)
    if (instr.input(i).rank != instr.y().rank) return false;
  MapWriter writer(instr, steps);
  text = profile.isGpu() ? writer.writeElement() : writer.writeRows();
  return true;
}

namespace {

/// What a sum of nothing is, as the bits of its type.
uint64_t nothingOf(const Instruction& instr, uint8_t elem) {
  if (instr->kind != CDL_KIND_REDUCE || instr->fn == CDL_REDUCE_SUM) return 0;
  const bool isFloat = elem == CDL_F32;
  if (instr->fn == CDL_REDUCE_PROD) return isFloat ? 0x3f800000 : 1; // the bits of 1
  const bool isMax = instr->fn == CDL_REDUCE_MAX;
  if (isFloat) return isMax ? 0xff800000 : 0x7f800000;
  const uint32_t bits = cdl_elem_bits(elem);
  const bool isSigned = elem == CDL_I8 || elem == CDL_I16 || elem == CDL_I32;
  const uint64_t top = uint64_t(1) << (bits - 1);
  if (isSigned) return isMax ? top : top - 1;
  return isMax ? 0 : (top << 1) - 1;
}

/// The epilogue's steps behind a first one, which gives the accumulator.
std::vector<cdl_step_t> stepsBehind(const Instruction& instr) {
  const std::vector<cdl_step_t> all = instr.steps();
  std::vector<cdl_step_t> steps(1);
  for (size_t s = instr->prologue; s < all.size(); ++s) {
    cdl_step_t step = all[s];
    for (uint16_t k = 0; k < step.operands; ++k) {
      cdl_operand_t& in = step.in[k];
      if (in.source == CDL_FROM_ACC) {
        steps[0].elem = in.elem;
        in = {CDL_FROM_STEP, in.elem, 0};
      } else if (in.source == CDL_FROM_STEP) {
        in.index = static_cast<uint16_t>(in.index - instr->prologue + 1);
      }
    }
    steps.push_back(step);
  }
  cdl_step_t& first = steps[0];
  if (first.elem == 0) first.elem = instr.y().elem; // nobody reads it
  first.kind = CDL_KIND_COPY;
  first.operands = 1;
  first.in[0] = {CDL_FROM_CONST, first.elem, 0};
  first.imm = nothingOf(instr, first.elem);
  return steps;
}

} // namespace

bool writeEmptySums(const Instruction& instr, const Profile& profile, KernelText& text) {
  const bool isSum = instr->kind == CDL_KIND_MATMUL || instr->kind == CDL_KIND_REDUCE;
  if (!isSum || elementsOf(instr.input(0)) != 0 || elementsOf(instr.y()) == 0) return false;
  if (!instr->expr || instr.attr(CDL_ATTR_ACCUMULATE, 0)) return false;
  const std::vector<cdl_step_t> steps = stepsBehind(instr);
  const uint32_t first = instr->prologue ? instr->inputs : instr.operands();
  for (uint32_t i = first; i < instr->inputs; ++i)
    if (instr.input(i).rank != instr.y().rank) return false;
  if (!canCompute(steps)) return false;
  MapWriter writer(instr, steps, first);
  text = profile.isGpu() ? writer.writeElement() : writer.writeRows();
  return true;
}

} // namespace program
