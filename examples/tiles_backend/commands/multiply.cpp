// MULTIPLY: one tile of a matrix product or of a convolution, which is a product of its windows by
// its weights.
#include "../compiler.hpp"
#include "../engine.hpp"

namespace tiles {

namespace {

constexpr int kRows = 4; // of the array that sum at the same time

/// Constant weights in the order in which the array reads them: [panel][term][column].
template <class T> void pack(const cdl_view_t& view, const char* data, Product& p, char* to) {
  const T* from = reinterpret_cast<const T*>(data) + view.offset;
  T* next = reinterpret_cast<T*>(to);
  const Tensor& w = p.w;
  for (int64_t panel = 0; panel < p.panels(); ++panel)
    for (int64_t c = 0; c < p.channels; ++c)
      for (int64_t r = 0; r < p.kernel[0]; ++r)
        for (int64_t s = 0; s < p.kernel[1]; ++s)
          for (int64_t n = panel * kSide; n < (panel + 1) * kSide; ++n)
            *next++ = n < p.columns ? from[n * w.strides[2] + c * w.strides[3] + r * w.strides[4] +
                                           s * w.strides[5]]
                                    : T(0);
}

/// The weights lie where they are, unless they are constant: then they are packed into the
/// executable.
void placeWeights(Compiler& c, const cdl_view_t& view, Product& p) {
  const char* data = c.constant(view);
  if (!data || p.w.strides[0] != 0) return c.place(view, p.w);
  const int64_t size = elemBytes(view.elem), taps = p.kernel[0] * p.kernel[1],
                panel = p.channels * taps * kSide;
  const int64_t at = c.reserve(p.panels() * panel * size);
  (size == 4 ? pack<float> : pack<int8_t>)(view, data, p, c.own(at));
  p.w = {kOwn, view.elem, at / size, {}, {0, panel, 1, taps * kSide, p.kernel[1] * kSide, kSide}};
}

int64_t zeroOf(Compiler& c) {
  if (cdl_operand_count(c.image(), &c.instr()) < 3) return 0;
  const char* data = c.constant(c.input(2));
  if (!data || elemBytes(c.input(2).elem) != 1)
    c.refuse(CDL_REASON_NOT_CONSTANT, "its zero point is no constant of 8 bits");
  const char byte = data[c.input(2).offset];
  return c.input(2).elem == CDL_I8 ? int8_t(byte) : uint8_t(byte);
}

} // namespace

void compileProduct(Compiler& c) {
  const bool isConv = c.instr().kind == CDL_KIND_CONV2D;
  const cdl_view_t &x = c.input(0), &w = c.input(1);
  if (c.attr(CDL_ATTR_ACCUMULATE, 0) || c.attr(CDL_ATTR_TRANSPOSED, 0) ||
      c.attr(CDL_ATTR_GROUP, 1) != 1 || cdl_operand_count(c.image(), &c.instr()) > 3 ||
      (w.elem != CDL_I8 && w.elem != CDL_F32))
    c.refuse(CDL_REASON_ATTRIBUTE, "no row claims this form of it");
  // The result's dims as batch, row of pixels, pixel, column.
  const std::vector<int> order = isConv ? std::vector{0, 2, 3, 1} : std::vector{0, 1, -1, 2};
  Product p{};
  p.x = c.walk(x, isConv ? std::vector{0, 1, 2, 3} : std::vector{0, 2, 1, -1});
  c.place(x, p.x);
  p.w = c.walk(w, isConv ? std::vector{-1, 0, 0, 1, 2, 3} : std::vector{0, 2, 2, 1, -1, -1});
  p.w.strides[1] *= kSide;
  if (c.output().dims[0] == 1) p.w.strides[0] = 0;
  p.channels = x.dims[isConv ? 1 : 2];
  p.columns = c.output().dims[order[3]];
  p.zero = zeroOf(c);
  for (int d = 0; d < 2; ++d) {
    p.kernel[d] = isConv ? w.dims[2 + d] : 1;
    p.extent[d] = isConv ? x.dims[2 + d] : 1;
    p.stride[d] = c.attr(CDL_ATTR_STRIDES, 1, d);
    p.dilation[d] = c.attr(CDL_ATTR_DILATIONS, 1, d);
    p.pad[d] = c.attr(CDL_ATTR_PADS, 0, d);
  }
  if (!isConv) p.extent[0] = x.dims[1]; // the rows of the matrix
  placeWeights(c, w, p);
  const int64_t pixels = c.output().dims[order[1]] * (isConv ? c.output().dims[3] : 1);
  c.begin(order, kSide, p.w.strides[0] ? std::max<int64_t>(1, pixels) : INT64_MAX);
  c.store(c.output(), c.expression(c.emit({.op = Opcode::MULTIPLY, .index = c.add(p)})));
}

// ---- The engine's side

namespace {

/// Panel a: terms from .. from + count - 1 of the windows of the tile's rows.
template <class X>
void gatherWindows(const Tile& tile, const Product& p, int64_t from, int64_t count, float* a) {
  const auto zero = std::conditional_t<std::is_same_v<X, float>, float, int>(p.zero);
  for (int64_t i = 0; i < tile.rows; ++i, a += kDepth) {
    const int64_t* at = tile.index[i];
    const X* x = tile.at<const X>(p.x) + at[0] * p.x.strides[0];
    const int64_t top = at[1] * p.stride[0] - p.pad[0], left = at[2] * p.stride[1] - p.pad[1];
    int64_t s = from % p.kernel[1], r = from / p.kernel[1] % p.kernel[0],
            c = from / p.kernel[1] / p.kernel[0];
    for (int64_t k = 0; k < count; ++k) {
      const int64_t h = top + r * p.dilation[0], w = left + s * p.dilation[1];
      const bool isInside = h >= 0 && h < p.extent[0] && w >= 0 && w < p.extent[1];
      a[k] = isInside
                 ? float(x[c * p.x.strides[1] + h * p.x.strides[2] + w * p.x.strides[3]] - zero)
                 : 0.0f;
      if (++s < p.kernel[1]) continue;
      s = 0;
      if (++r < p.kernel[0]) continue;
      r = 0, ++c;
    }
  }
}

/// Panel b: the same terms of the weights of the tile's columns.
template <class W>
void loadWeights(const Tile& tile, const Product& p, int64_t from, int64_t count, float* b) {
  const int64_t* strides = p.w.strides;
  const W* w =
      tile.at<const W>(p.w) + tile.index[0][0] * strides[0] + tile.column / kSide * strides[1];
  for (int64_t k = from; k < from + count; ++k, b += kSide) {
    const int64_t s = k % p.kernel[1], r = k / p.kernel[1] % p.kernel[0],
                  c = k / p.kernel[1] / p.kernel[0];
    const W* row = w + c * strides[3] + r * strides[4] + s * strides[5];
    for (int64_t j = 0; j < tile.columns; ++j) b[j] = float(row[j * strides[2]]);
  }
}

/// What the array does: sum[i][j] = a[i][k] * b[k][j] over k.
template <int ROWS>
void multiply(const float* a, const float* b, int64_t count, float (*out)[kSide]) {
  float sum[ROWS][kSide] = {};
  for (int64_t k = 0; k < count; ++k, b += kSide)
    for (int i = 0; i < ROWS; ++i)
      for (int j = 0; j < kSide; ++j) sum[i][j] += a[i * kDepth + k] * b[j];
  std::memcpy(out, sum, sizeof sum);
}

} // namespace

void runMultiply(const Tile& tile, const Command& command) {
  const Product& p = tile.stream.products[command.index];
  const int64_t depth = p.channels * p.kernel[0] * p.kernel[1];
  float* a = reinterpret_cast<float*>(tile.local);
  float* b = a + kSide * kDepth;
  float* sums = tile.lanes<float>(command.to);
  int32_t* integers = tile.lanes<int32_t>(command.to);
  std::fill_n(integers, kLanes, 0);
  for (int64_t from = 0; from < depth; from += kDepth) {
    const int64_t count = std::min<int64_t>(kDepth, depth - from);
    // The windows of a short sum stay for the next columns.
    if (tile.column == 0 || depth > kDepth) {
      auto gather = gatherWindows<float>;
      if (p.x.elem != CDL_F32)
        gather = p.x.elem == CDL_I8 ? gatherWindows<int8_t> : gatherWindows<uint8_t>;
      gather(tile, p, from, count, a);
    }
    (p.w.elem == CDL_F32 ? loadWeights<float> : loadWeights<int8_t>)(tile, p, from, count, b);
    float out[kSide][kSide];
    for (int64_t i = 0; i < tile.rows; i += kRows)
      multiply<kRows>(a + i * kDepth, b, count, out + i);
    for (int64_t i = 0; i < tile.rows; ++i)
      for (int j = 0; j < kSide; ++j) {
        const int64_t lane = i * kSide + j;
        if (p.x.elem == CDL_F32)
          sums[lane] += out[i][j];
        else
          integers[lane] = cdl_add_i32(integers[lane], int32_t(out[i][j]));
      }
  }
}

} // namespace tiles
