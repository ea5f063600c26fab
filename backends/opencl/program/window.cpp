// POOL2D and depthwise CONV2D. A work-item of a CPU computes 16 channels of some neighbouring
// results of a row; each tap of the window reads 16 channels of x at once where they lie side by
// side. A work-item of a GPU computes one result.
#include "image.hpp"

namespace program {

namespace {

constexpr int64_t kPoints = 4;

/// What a window makes of x.
enum class Fold { maximum, average, product };

struct Window {
  Fold fold = Fold::maximum;
  Image x, y;
  const cdl_view_t* weights = nullptr; // of a product: [O/16, KH, KW, 1, 16]
  const cdl_view_t* zero = nullptr;    // of x, in a product of integers
  int64_t kernel[2] = {1, 1}, stride[2] = {1, 1}, dilation[2] = {1, 1};
  int64_t pad[2] = {0, 0}, padEnd[2] = {0, 0};
  bool countsPads = false;
};

class WindowWriter {
public:
  WindowWriter(const Instruction& instr, const Window& window)
      : instr_(instr), v_(window), elem_(instr.input(0).elem),
        points_(std::min(kPoints, window.y.w)), tiles_((window.y.w + points_ - 1) / points_) {}

  /// For a CPU.
  KernelText writeRow() {
    const int64_t panels = (v_.y.c + kLanes - 1) / kLanes;
    w_.line("const long id = get_global_id(0);");
    w_.line("const int first = id % ", tiles_, " * ", points_, ", oh = id / ", tiles_, " % ",
            v_.y.h, ";");
    w_.line("const long panel = id / ", tiles_ * v_.y.h, " % ", panels, ", n = id / ",
            tiles_ * v_.y.h * panels, ";");
    writeOperands();
    w_.line("for (int ow = first; ow < min(first + ", points_, ", ", v_.y.w, "); ++ow) {");
    const bool hasTail = v_.y.c % kLanes != 0;
    if (hasTail) w_.line("const int live = min(16, ", v_.y.c, " - (int)panel * 16);");
    if (hasTail) w_.line("if (live == 16) {");
    writeResult(kLanes);
    if (hasTail) {
      w_.line("} else { for (int e = 0; e < live; ++e) {");
      writeResult(1);
      w_.line("} }");
    }
    w_.line("}");
    return w_.finish(v_.y.n * panels * v_.y.h * tiles_);
  }

  /// For a GPU. Neighbours compute what lies side by side.
  KernelText writeOne() {
    const Image& y = v_.y;
    const int64_t items = y.n * y.c * y.h * y.w;
    w_.beginItems(items);
    w_.line("long rest = id;");
    const auto take = [&](const char* name, int64_t count) {
      w_.line("const int ", name, " = rest % ", count, ";");
      w_.line("rest /= ", count, ";");
    };
    const int64_t dense = y.isBlocked() ? kLanes : y.c; // channels, where they are innermost
    const int64_t inner = y.lane == 1 ? dense : 1;
    take("nearChannel", inner);
    take("ow", y.w);
    take("oh", y.h);
    take("farChannel", y.c / inner);
    w_.line("const int channel = farChannel * ", inner, " + nearChannel;");
    w_.line("const int panel = channel / ", kLanes, ", e = channel % ", kLanes, ";");
    w_.line("const long n = rest;");
    writeOperands();
    writeResult(1);
    return w_.finishItems(items);
  }

private:
  void writeOperands() {
    x_ = w_.pointer(instr_.input(0));
    if (v_.weights) weights_ = w_.pointer(*v_.weights);
    if (v_.zero) w_.line("const int zero = *", w_.pointer(*v_.zero), ";");
    pointers_.resize(instr_->inputs);
    for (uint32_t i = instr_.operands(); i < instr_->inputs; ++i)
      pointers_[i] = w_.pointer(instr_.input(i));
    y_ = w_.pointer(instr_.y());
  }

  static std::string at(const std::string& pointer, const Image& image, int lanes,
                        const std::string& row, const std::string& column) {
    return cdl::text(pointer, " + n * ", image.batch, " + panel * ", image.block, " + (long)", row,
                     " * ", image.row, " + (long)", column, " * ", image.column,
                     lanes == 1 ? cdl::text(" + (long)e * ", image.lane) : "");
  }

  /// The result of `lanes` channels.
  void writeResult(int lanes) {
    const std::string type = valueType(elem_, lanes);
    w_.line(type, " sum", lanes, " = ", lowest(), ";");
    if (v_.fold == Fold::average) w_.line("int count", lanes, " = 0;");
    w_.line("for (int kh = 0; kh < ", v_.kernel[0], "; ++kh) for (int kw = 0; kw < ", v_.kernel[1],
            "; ++kw) {");
    w_.line("const int ih = oh * ", v_.stride[0], " + kh * ", v_.dilation[0], " - ", v_.pad[0],
            ", iw = ow * ", v_.stride[1], " + kw * ", v_.dilation[1], " - ", v_.pad[1], ";");
    // What lies behind the padding counts for nothing.
    if (v_.fold == Fold::average && v_.countsPads)
      w_.line("if (ih < ", v_.x.h + v_.padEnd[0], " && iw < ", v_.x.w + v_.padEnd[1], ") ++count",
              lanes, ";");
    w_.line("if (ih < 0 || ih >= ", v_.x.h, " || iw < 0 || iw >= ", v_.x.w, ") continue;");
    if (v_.fold == Fold::average && !v_.countsPads) w_.line("++count", lanes, ";");
    const std::string from = at(x_, v_.x, lanes, "ih", "iw");
    w_.line("const ", type, " tap = ", Writer::load(elem_, lanes, from, v_.x.lane), ";");
    fold(lanes);
    w_.line("}");
    std::string acc = cdl::text("sum", lanes);
    if (v_.fold == Fold::average)
      w_.line(acc, " = count", lanes, " ? ", acc, " / (", type, ")(count", lanes, ") : (", type,
              ")(0);");
    const std::vector<cdl_step_t> steps = instr_.steps();
    const std::string value = w_.compute(steps, 0, steps.size(), lanes, acc, [&](uint32_t i) {
      Image image;
      imageOf(instr_, instr_.input(i), image);
      return Writer::load(instr_.input(i).elem, lanes, at(pointers_[i], image, lanes, "oh", "ow"),
                          image.lane);
    });
    w_.store(instr_.y().elem, lanes, at(y_, v_.y, lanes, "oh", "ow"), v_.y.lane, value);
  }

  std::string lowest() const {
    if (v_.fold != Fold::maximum) return "0";
    if (elem_ == CDL_F32) return "-INFINITY";
    return elem_ == CDL_I8 ? "-128" : "0";
  }

  void fold(int lanes) {
    switch (v_.fold) {
    case Fold::maximum:
      w_.line("sum", lanes, " = ", elem_ == CDL_F32 ? "LARGER" : "max", "(sum", lanes, ", tap);");
      break;
    case Fold::average: w_.line("sum", lanes, " += tap;"); break;
    case Fold::product: {
      const cdl_view_t& w = *v_.weights;
      const std::string from =
          cdl::text(weights_, " + panel * ", w.strides[0], " + kh * ", w.strides[1], " + kw * ",
                    w.strides[2], lanes == 1 ? " + e" : "");
      const std::string weight = Writer::load(w.elem, lanes, from, w.strides[4]);
      if (elem_ == CDL_F32)
        w_.line("sum", lanes, " = fma(tap, ", weight, ", sum", lanes, ");");
      else
        w_.line("sum", lanes, " += (tap", v_.zero ? " - zero" : "", ") * ", weight, ";");
    }
    }
  }

  const Instruction& instr_;
  const Window& v_;
  const uint8_t elem_;
  const int64_t points_, tiles_;
  Writer w_;
  std::string x_, weights_, y_;
  std::vector<std::string> pointers_;
};

bool isDepthwise(const Instruction& instr, const Window& window) {
  const cdl_view_t& w = instr.input(1);
  const uint8_t elem = instr.input(0).elem;
  const bool isFloat = elem == CDL_F32 && w.elem == CDL_F32 && instr.operands() == 2;
  const bool isInteger =
      (elem == CDL_I8 || elem == CDL_U8) && w.elem == CDL_I8 && instr.operands() <= 3;
  return (isFloat || isInteger) && w.rank == 5 && instr.attr(CDL_ATTR_GROUP, 1) == window.y.c &&
         window.x.c == window.y.c && !instr.attr(CDL_ATTR_TRANSPOSED, 0) &&
         !instr.attr(CDL_ATTR_ACCUMULATE, 0) && w.dims[3] == 1 && w.strides[4] == 1;
}

} // namespace

bool writeWindow(const Instruction& instr, const Profile& profile, KernelText& text) {
  Window window;
  if (!imageOf(instr, instr.input(0), window.x) || !imageOf(instr, instr.y(), window.y))
    return false;
  if (!isKnownElem(instr.input(0).elem) || !canCompute(instr.steps())) return false;
  if (elementsOf(instr.y()) == 0) return false;
  const bool isPool = instr->kind == CDL_KIND_POOL2D;
  if (!isPool && !isDepthwise(instr, window)) return false;
  if (isPool)
    window.fold = instr->fn == CDL_POOL2D_AVERAGE ? Fold::average : Fold::maximum;
  else
    window.fold = Fold::product;
  if (!isPool) window.weights = &instr.input(1);
  if (!isPool && instr.operands() > 2) window.zero = &instr.input(2);
  for (uint32_t d = 0; d < 2; ++d) {
    window.kernel[d] = isPool ? instr.attr(CDL_ATTR_KERNEL, 1, d) : instr.input(1).dims[d + 1];
    window.stride[d] = instr.attr(CDL_ATTR_STRIDES, 1, d);
    window.dilation[d] = instr.attr(CDL_ATTR_DILATIONS, 1, d);
    window.pad[d] = instr.attr(CDL_ATTR_PADS, 0, d);
    window.padEnd[d] = instr.attr(CDL_ATTR_PADS, 0, d + 2);
  }
  window.countsPads = instr.attr(CDL_ATTR_COUNT_INCLUDE_PAD, 0) != 0;
  for (uint32_t i = instr.operands(); i < instr->inputs; ++i) {
    Image view;
    if (!imageOf(instr, instr.input(i), view)) return false;
  }
  WindowWriter writer(instr, window);
  text = profile.isGpu() ? writer.writeOne() : writer.writeRow();
  return true;
}

} // namespace program
