// REDUCE with a prologue and an epilogue. Where results lie side by side, 16 of them are collected
// at once; where each is collected from a row, 16 parts of the row are, and then these.
#include "text.hpp"

namespace program {

namespace {

constexpr int64_t kGroup = 64; // work-items of a GPU that share a row

class ReductionWriter {
public:
  ReductionWriter(const Instruction& instr, const std::vector<cdl_step_t>& steps)
      : instr_(instr), steps_(steps), prologue_(instr->prologue),
        elem_(prologue_ ? steps[prologue_ - 1].elem : instr.input(0).elem) {
    const cdl_view_t& x = instr.input(0);
    outer_ = x.dims[0];
    count_ = x.dims[1];
    inner_ = x.dims[2];
  }

  KernelText write(const Profile& profile) {
    for (uint32_t i = 0; i < instr_->inputs; ++i) pointers_.push_back(w_.pointer(instr_.input(i)));
    y_ = w_.pointer(instr_.y());
    if (profile.isGpu()) return inner_ == 1 ? writeGroups() : writeItems();
    return inner_ == 1 ? writeRows() : writeColumns();
  }

private:
  /// For a GPU: a group collects each result of a row of x, every work-item a part.
  KernelText writeGroups() {
    const std::string type = valueType(elem_, 1);
    w_.line("const long o = get_group_id(0), i = 0;");
    w_.line("const int item = get_local_id(0);");
    w_.line("local ", type, " parts[", kGroup, "];");
    w_.line(type, " sum = ", neutral(), ";");
    w_.line("for (int r = item; r < ", count_, "; r += ", kGroup, ") {");
    w_.line("sum = ", combined("sum", taken(1, 1)), ";");
    w_.line("}");
    w_.line("parts[item] = sum;");
    w_.line("for (int step = ", kGroup / 2, "; step > 0; step /= 2) {");
    w_.line("barrier(CLK_LOCAL_MEM_FENCE);");
    w_.line("if (item < step) parts[item] = ", combined("parts[item]", "parts[item + step]"), ";");
    w_.line("}");
    w_.line("if (item == 0) {");
    finish(1, "parts[0]");
    w_.line("}");
    return w_.finish(outer_, kGroup);
  }

  /// For a GPU: a work-item collects one result of a column.
  KernelText writeItems() {
    w_.beginItems(outer_ * inner_);
    w_.line("const long o = id / ", inner_, ", i = id % ", inner_, ";");
    writeColumn(1);
    return w_.finishItems(outer_ * inner_);
  }

  /// Each result of a row of x.
  KernelText writeRows() {
    const int64_t rows =
        std::min(outer_, std::max<int64_t>(1, kElementsOfItem / std::max<int64_t>(1, count_)));
    w_.line("const long first = get_global_id(0) * ", rows, ", i = 0;");
    w_.line("for (long o = first; o < min(first + ", rows, ", (long)", outer_, "); ++o) {");
    w_.line(valueType(elem_, 1), " sum = ", neutral(), ";");
    w_.line("int r = 0;");
    if (count_ >= kLanes) {
      const std::string type = valueType(elem_, kLanes);
      w_.line(type, " sums = (", type, ")(", neutral(), ");");
      w_.line("for (; r + 16 <= ", count_, "; r += 16) {");
      w_.line("sums = ", combined("sums", taken(kLanes, 1)), ";");
      w_.line("}");
      w_.line(valueType(elem_, 1), " parts[16];");
      w_.line("vstore16(sums, 0, parts);");
      w_.line("for (int step = 8; step > 0; step /= 2) for (int e = 0; e < step; ++e) parts[e] = ",
              combined("parts[e]", "parts[e + step]"), ";");
      w_.line("sum = parts[0];");
    }
    w_.line("for (; r < ", count_, "; ++r) {");
    w_.line("sum = ", combined("sum", taken(1, 1)), ";");
    w_.line("}");
    finish(1, "sum");
    w_.line("}");
    return w_.finish((outer_ + rows - 1) / rows);
  }

  /// 16 results side by side.
  KernelText writeColumns() {
    const int64_t tiles = (inner_ + kLanes - 1) / kLanes;
    w_.line("const long o = get_global_id(0) / ", tiles, ";");
    w_.line("int i = get_global_id(0) % ", tiles, " * 16;");
    const bool hasTail = inner_ % kLanes != 0;
    if (hasTail) w_.line("if (i + 16 <= ", inner_, ") {");
    writeColumn(kLanes);
    if (hasTail) {
      w_.line("} else { for (; i < ", inner_, "; ++i) {");
      writeColumn(1);
      w_.line("} }");
    }
    return w_.finish(outer_ * tiles);
  }

  void writeColumn(int lanes) {
    const std::string type = valueType(elem_, lanes), sum = cdl::text("sum", lanes);
    w_.line(type, " ", sum, " = (", type, ")(", neutral(), ");");
    w_.line("for (int r = 0; r < ", count_, "; ++r) {");
    w_.line(sum, " = ", combined(sum, taken(lanes, 2)), ";");
    w_.line("}");
    finish(lanes, sum);
  }

  /// `lanes` elements of x, side by side in this dim.
  std::string taken(int lanes, int dim) {
    const auto load = [&](uint32_t i) {
      const cdl_view_t& view = instr_.input(i);
      const std::string at = cdl::text(pointers_[i], " + o * ", view.strides[0], " + (long)r * ",
                                       view.strides[1], " + (long)i * ", view.strides[2]);
      return Writer::load(view.elem, lanes, at, view.strides[dim]);
    };
    const std::string name = cdl::text("taken", lanes);
    const std::string value =
        prologue_ ? w_.compute(steps_, 0, prologue_, lanes, "", load) : load(0);
    w_.line("const ", valueType(elem_, lanes), " ", name, " = ", value, ";");
    return name;
  }

  /// Of bools the sum is the maximum, the product the minimum.
  uint16_t function() const {
    if (elem_ != CDL_BOOL || instr_->fn == CDL_REDUCE_MAX || instr_->fn == CDL_REDUCE_MIN)
      return instr_->fn;
    return instr_->fn == CDL_REDUCE_SUM ? CDL_REDUCE_MAX : CDL_REDUCE_MIN;
  }

  std::string neutral() const {
    const bool isFloat = elem_ == CDL_F32;
    switch (function()) {
    case CDL_REDUCE_SUM: return "0";
    case CDL_REDUCE_PROD: return "1";
    case CDL_REDUCE_MAX: return isFloat ? "-INFINITY" : "INT_MIN";
    default: return isFloat ? "INFINITY" : "INT_MAX";
    }
  }

  std::string combined(const std::string& a, const std::string& b) const {
    const bool isFloat = elem_ == CDL_F32;
    switch (function()) {
    case CDL_REDUCE_SUM: return a + " + " + b;
    case CDL_REDUCE_PROD: return a + " * " + b;
    case CDL_REDUCE_MAX: return (isFloat ? "LARGER(" : "max(") + a + ", " + b + ")";
    default: return (isFloat ? "SMALLER(" : "min(") + a + ", " + b + ")";
    }
  }

  void finish(int lanes, const std::string& sum) {
    const auto place = [](const std::string& pointer, const cdl_view_t& view) {
      return cdl::text(pointer, " + o * ", view.strides[0], " + (long)i * ", view.strides[1]);
    };
    const std::string value =
        w_.compute(steps_, prologue_, steps_.size(), lanes, wrapped(elem_, sum), [&](uint32_t i) {
          const cdl_view_t& view = instr_.input(i);
          return Writer::load(view.elem, lanes, place(pointers_[i], view), view.strides[1]);
        });
    w_.store(instr_.y().elem, lanes, place(y_, instr_.y()), instr_.y().strides[1], value);
  }

  const Instruction& instr_;
  const std::vector<cdl_step_t>& steps_;
  const size_t prologue_; // how many steps compute x
  const uint8_t elem_;    // of what is collected
  int64_t outer_ = 0, count_ = 0, inner_ = 0;
  std::vector<std::string> pointers_;
  std::string y_;
  Writer w_;
};

} // namespace

bool writeReduction(const Instruction& instr, const Profile& profile, KernelText& text) {
  const std::vector<cdl_step_t> steps = instr.steps();
  if (!canCompute(steps) || elementsOf(instr.y()) == 0) return false;
  for (uint32_t i = 0; i < instr->inputs; ++i)
    if (instr.input(i).rank != (i < instr.operands() ? 3 : 2)) return false;
  const uint8_t elem = instr->prologue ? steps[instr->prologue - 1].elem : instr.input(0).elem;
  if (!isKnownElem(elem)) return false;
  if (elementsOf(instr.input(0)) == 0) return false;
  text = ReductionWriter(instr, steps).write(profile);
  return true;
}

} // namespace program
