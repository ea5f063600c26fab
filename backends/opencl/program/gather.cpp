// GATHER: a work-item of a CPU walks some o of y[o,k,i] = x[o,index[k],i] and copies what lies side
// by side 16 elements at a time; one of a GPU copies one element.
#include "text.hpp"

namespace program {

namespace {

class GatherWriter {
public:
  explicit GatherWriter(const Instruction& instr)
      : x_(instr.input(0)), index_(instr.input(1)), y_(instr.y()),
        givesZero_(instr->fn == CDL_GATHER_ZERO) {}

  KernelText writeRows() {
    const int64_t outer = y_.dims[0];
    const int64_t count = y_.dims[1];
    const int64_t inner = y_.dims[2];
    const int64_t chunk = std::min(count, std::max<int64_t>(1, kElementsOfItem / inner));
    const int64_t chunks = (count + chunk - 1) / chunk;
    const int64_t rows =
        chunks > 1 ? 1 : std::min(outer, std::max<int64_t>(1, kElementsOfItem / (count * inner)));
    w_.line("const long first = get_global_id(0) / ", chunks, " * ", rows, ";");
    w_.line("const int from = get_global_id(0) % ", chunks, " * ", chunk, ";");
    name();
    w_.line("for (long o = first; o < min(first + ", rows, ", (long)", outer, "); ++o) {");
    w_.line("for (int k = from; k < min(from + ", chunk, ", ", count, "); ++k) {");
    locate();
    w_.line("int i = 0;");
    const bool isDense = x_.strides[2] == 1 && y_.strides[2] == 1;
    if (isDense && inner >= kLanes) {
      const std::string type = cdl::text(memoryType(y_.elem), kLanes);
      w_.line("for (; i + 16 <= ", inner, "; i += 16) vstore16(",
              zeroed("vload16(0, from_ + i)", "(" + type + ")(0)"), ", 0, to_ + i);");
    }
    w_.line("for (; i < ", inner, "; ++i) ", copied());
    w_.line("} }");
    return w_.finish((outer + rows - 1) / rows * chunks);
  }

  KernelText writeElement() {
    const int64_t elements = elementsOf(y_);
    w_.beginItems(elements);
    name();
    w_.line("const long i = id % ", y_.dims[2], ", o = id / ", y_.dims[2] * y_.dims[1], ";");
    w_.line("const int k = id / ", y_.dims[2], " % ", y_.dims[1], ";");
    locate();
    w_.line(copied());
    return w_.finishItems(elements);
  }

private:
  void name() {
    xName_ = w_.pointer(x_);
    indexName_ = w_.pointer(index_);
    yName_ = w_.pointer(y_);
  }

  /// Names from_ and to_, where the elements of o and k begin.
  void locate() {
    w_.line("const int wanted = ", indexName_, "[(long)k * ", index_.strides[0], "];");
    w_.line("const int at = clamp(wanted, 0, ", x_.dims[1] - 1, ");");
    const char* type = memoryType(y_.elem);
    w_.line("global const ", type, "* from_ = ", xName_, " + o * ", x_.strides[0], " + (long)at * ",
            x_.strides[1], ";");
    w_.line("global ", type, "* to_ = ", yName_, " + o * ", y_.strides[0], " + (long)k * ",
            y_.strides[1], ";");
  }

  std::string zeroed(const std::string& value, const std::string& zero) const {
    return givesZero_ ? "at == wanted ? " + value + " : " + zero : value;
  }
  std::string copied() const {
    const std::string from = cdl::text("from_[i * ", x_.strides[2], "]");
    return cdl::text("to_[i * ", y_.strides[2], "] = ", zeroed(from, "0"), ";");
  }

  const cdl_view_t &x_, &index_, &y_;
  const bool givesZero_; // outside of x; else indices are clamped
  Writer w_;
  std::string xName_, indexName_, yName_;
};

} // namespace

bool writeGather(const Instruction& instr, const Profile& profile, KernelText& text) {
  const bool isKnown = isKnownElem(instr.y().elem) && instr.input(1).elem == CDL_I32;
  if (!isKnown || elementsOf(instr.y()) == 0 || elementsOf(instr.input(0)) == 0) return false;
  GatherWriter writer(instr);
  text = profile.isGpu() ? writer.writeElement() : writer.writeRows();
  return true;
}

} // namespace program
