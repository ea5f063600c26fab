#include "tests/backends/npu_sim/random_chains.h"

#include "conformance/judge/sum_bounds.h"
#include "core/compiler/program/text.h"

namespace candela::conformance {
namespace {

/// Writes the Program as text, which says what a buffer is for by its name.
class Writer {
public:
  explicit Writer(random::Random& random) : random_(random) {}

  void constant(const std::string& name, Elem elem, int64_t count, const std::string& contents) {
    constants_ +=
        fmt::format("  constant @{} : {}[{}] = {}\n", name, elemName(elem), count, contents);
    buffer(name, "constant", elem, count, " = @" + name);
  }
  /// Numbers of low .. high.
  void numbers(const std::string& name, Elem elem, int64_t count, int64_t low, int64_t high) {
    std::string list;
    for (int64_t i = 0; i < count; ++i)
      list += fmt::format("{}{}", i ? ", " : "[", random_.between(low, high));
    constant(name, elem, count, list + "]");
  }
  void anything(const std::string& name, Elem elem, int64_t count) {
    constant(name, elem, count, fmt::format("random({})", random_.below(1000)));
  }
  void buffer(const std::string& name, const char* role, Elem elem, int64_t count,
              const std::string& behind = "") {
    buffers_ +=
        fmt::format("  buffer %{} {} @dram {}{}\n", name, role, count * elemBits(elem) / 8, behind);
  }
  void instr(const std::string& text) { instrs_ += "  " + text + "\n"; }
  std::string text() const {
    return "program @chain {\n  space @dram {host_mapped, align 64}\n" + constants_ + buffers_ +
           instrs_ + "}\n";
  }

private:
  random::Random& random_;
  std::string constants_, buffers_, instrs_;
};

std::string view(const std::string& name, const Shape& dims, Elem elem, const char* layout = "",
                 const std::string& strides = "") {
  return fmt::format("%{}[{}]:{}{}{}", name, fmt::join(dims, ","), elemName(elem), layout,
                     strides.empty() ? "" : " strides[" + strides + "]");
}

} // namespace

Result<Trial> chainOf(const std::string& name, Elem elem, const program::Space& space,
                      random::Random& random) {
  const bool isConv = name.find("conv2d") != std::string::npos,
             hasPool = name.find("pool2d") != std::string::npos;
  const bool hasSum = name.find("rescale") != std::string::npos, hasTable = name.ends_with("table");
  const bool isWide = elem == Elem::i16_;
  const Elem x = isWide            ? Elem::i16_
                 : random.oneIn(2) ? Elem::i8_
                                   : Elem::u8_,
             sum = isWide ? Elem::i64_ : Elem::i32_;
  const IntegerRange range = integerRange(elem);
  const auto low = static_cast<int64_t>(range.lowest), high = static_cast<int64_t>(range.highest);
  const char *image = isConv ? "{n,h,w,c}" : "", *weight = isConv ? "{h,w,c,n}" : "";
  Writer w(random);
  Shape in, weights, y;
  std::string head = "matmul";
  if (isConv) {
    Shape stride, pad, kernel, extent, out;
    for (int d = 0; d < 2; ++d) {
      kernel.push_back(random.between(1, 3)), stride.push_back(random.between(1, 2));
      pad.push_back(random.below(kernel.back())),
          extent.push_back(kernel.back() + random.below(16));
      out.push_back((extent.back() + 2 * pad.back() - kernel.back()) / stride.back() + 1);
    }
    const int64_t n = random.between(1, 2), c = random.between(1, 20), o = random.between(1, 40);
    in = {n, extent[0], extent[1], c}, weights = {kernel[0], kernel[1], c, o},
    y = {n, out[0], out[1], o};
    head = fmt::format(
        "conv2d{{strides = [{}, {}], pads = [{}, {}, {}, {}], dilations = [1, 1], group = 1}}",
        stride[0], stride[1], pad[0], pad[1], pad[0], pad[1]);
  } else {
    const int64_t b = random.between(1, 2), m = random.between(1, 30), k = random.between(1, 60),
                  n = random.between(1, 50);
    in = {b, m, k}, weights = {b, k, n}, y = {b, m, n};
  }
  const auto countOf = [](const Shape& dims) { return *elementCount(dims); };
  const int64_t channels = y.back();
  w.buffer("x", "input", x, countOf(in));
  w.anything("w", Elem::i8_, countOf(weights));
  int bits = elemBits(x) + 7 + 24 - elemBits(elem);
  for (int64_t terms = countOf(weights) / channels; terms > 1; terms /= 4) ++bits;
  w.numbers("bias", sum, channels, -40000, 40000);
  w.numbers("m", Elem::i32_, channels, 1 << 23, (1 << 24) - 1);
  w.numbers("s", Elem::i32_, channels, bits - 1, bits + 3);
  w.numbers("z", Elem::i32_, 1, hasSum && !random.oneIn(4) ? 0 : low / 2, hasSum ? 0 : high / 2);
  const std::string byChannel = isConv ? "0, 0, 0, 1" : "0, 0, 1",
                    none = isConv ? "0, 0, 0, 0" : "0, 0, 0";
  const auto last = [&](bool isEnd, const std::string& temp) {
    return isEnd ? std::string("y") : temp;
  };
  std::string at = last(!hasPool && !hasSum && !hasTable, "product");
  w.buffer(at, at == "y" ? "output" : "temp", elem, countOf(y));
  const std::string bounds =
      random.oneIn(3) ? fmt::format("max(s1, {})", random.between(low, high)) : "";
  w.instr(fmt::format(
      "{} @in {}, @in {}, @in {}, @in {}, @in {}, @in {}, @out {} expr(acc {}){{s0 = add(acc, v2); "
      "{}}}",
      head, view("x", in, x, image), view("w", weights, Elem::i8_, weight),
      view("bias", y, sum, image, byChannel), view("m", y, Elem::i32_, image, byChannel),
      view("s", y, Elem::i32_, image, byChannel), view("z", y, Elem::i32_, image, none),
      view(at, y, elem, image), elemName(sum),
      bounds.empty() ? fmt::format("rescale_{}(s0, v3, v4, v5)", elemName(elem))
                     : fmt::format("s1 = rescale_{}(s0, v3, v4, v5); {}", elemName(elem), bounds)));
  if (hasSum) {
    const Elem r = random.oneIn(2) ? Elem::i8_ : elem;
    w.buffer("r", "input", r, countOf(y));
    for (const char* each : {"ma", "mb"}) w.numbers(each, Elem::i32_, 1, 1 << 23, (1 << 24) - 1);
    w.numbers("s2", Elem::i32_, 1, 23, 26);
    w.numbers("z2", Elem::i32_, 1, low, high);
    const std::string to = last(!hasTable, "added");
    w.buffer(to, to == "y" ? "output" : "temp", elem, countOf(y));
    const std::string a = view(at, y, elem) + ", @in " + view("ma", y, Elem::i32_, "", none);
    const std::string b = view("r", y, r) + ", @in " + view("mb", y, Elem::i32_, "", none);
    const std::string middle = ", @in " + view("s2", y, Elem::i32_, "", none) + ", @in " +
                               view("z2", y, Elem::i32_, "", none) + ", @in ";
    const bool isFirst = random.oneIn(2);
    w.instr("rescale @in " + (isFirst ? a : b) + middle + (isFirst ? b : a) + ", @out " +
            view(to, y, elem));
    at = to;
  }
  if (hasPool) {
    Shape kernel, stride, pad, out = y;
    for (size_t d = 0; d < 2; ++d) {
      kernel.push_back(random.between(1, std::min<int64_t>(4, y[d + 1]))),
          stride.push_back(random.between(1, 4));
      pad.push_back(random.below(kernel.back()));
      out[d + 1] = (y[d + 1] + 2 * pad[d] - kernel[d]) / stride[d] + 1;
    }
    const std::string to = last(!hasTable, "most");
    w.buffer(to, to == "y" ? "output" : "temp", elem, countOf(out));
    w.instr(fmt::format("pool2d.max{{kernel = [{}, {}], strides = [{}, {}], pads = [{}, {}, {}, "
                        "{}], dilations = [1, "
                        "1]}} @in {}, @out {}",
                        kernel[0], kernel[1], stride[0], stride[1], pad[0], pad[1], pad[0], pad[1],
                        view(at, y, elem, image), view(to, out, elem, image)));
    y = out, at = to;
  }
  if (hasTable) {
    const int64_t entries = isWide ? 513 : 256;
    w.anything("entries", elem, entries);
    w.buffer("y", "output", elem, countOf(y));
    w.instr("table @in " + view(at, y, elem) + ", @in " + view("entries", {entries}, elem) +
            ", @out " + view("y", y, elem));
  }
  Diagnostics diagnostics;
  auto program = program::parse(w.text(), name, diagnostics);
  if (!program) return failure(Code::internal, "{}\n{}", program.status().message(), w.text());
  program->spaces = {space};
  for (program::Buffer& buffer : program->buffers) buffer.alignment = space.alignment;
  Trial trial{std::move(*program), {}, judge::exactBounds, true};
  const uint64_t seed = random.bits();
  std::vector<std::pair<Elem, int64_t>> fed;
  for (uint32_t b = 0; b < trial.program.buffers.size(); ++b)
    if (trial.program.buffers[b].role == program::Role::input) {
      const Elem of = trial.program.contentType(b).first;
      fed.emplace_back(of, static_cast<int64_t>(trial.program.buffers[b].bytes) * 8 / elemBits(of));
    }
  trial.inputs = [seed, fed](uint64_t salt) -> Result<std::vector<Tensor>> {
    std::vector<Tensor> tensors;
    for (size_t i = 0; i < fed.size(); ++i) {
      random::Random each(splitmix64(seed ^ salt << 32 ^ i << 8));
      tensors.push_back(
          random::randomData(fed[i].first, {fed[i].second}, random::Data::bits, each));
    }
    return tensors;
  };
  return trial;
}

} // namespace candela::conformance
