#include "costs.hpp"

#include <algorithm>

namespace cpu {

namespace {

/// One thread's work in a nanosecond.
struct Rates {
  Tier tier;
  double conv, depthwise, product;             // multiply-accumulates of f32
  double convInt8, depthwiseInt8, productInt8; // of 8-bit integers
  double elements, curves; // elements of sums, maxima and the like; of exp, tanh and the like
  double bytes;            // read and written
};

// Made by benchmarks/cpu/costs.py.
constexpr Rates kRates[] = {
#include "cost_rates.inc"
};
constexpr double kStartNanoseconds = 200; ///< of one instruction
// How many times as fast as products of f32 those of bf16 are: by tiles, by vectors, by f32
// (docs/reference/precision.md).
constexpr double kTilesOfBF16 = 4;
constexpr double kVectorsOfBF16 = 1;
constexpr double kWithoutBF16 = 0.6;
constexpr double kShared = 0.93; ///< of a thread's work, where several share a product

const Rates& ratesOf(Tier tier) {
  return *std::find_if(std::begin(kRates), std::end(kRates),
                       [&](const Rates& rates) { return rates.tier == tier; });
}

double paceOfBF16(const Isa& isa) {
  if (isa.hasTiles) return kTilesOfBF16;
  return isa.hasBF16 ? kVectorsOfBF16 : kWithoutBF16;
}

double elementsOf(const cdl_view_t& view) {
  double count = 1;
  for (uint32_t d = 0; d < view.rank; ++d) count *= static_cast<double>(view.dims[d]);
  return count;
}

/// What lies in memory of it: what repeats by a stride of 0 lies there once.
double bytesOf(const cdl_view_t& view) {
  double count = 1;
  for (uint32_t d = 0; d < view.rank; ++d)
    if (view.strides[d] != 0) count *= static_cast<double>(view.dims[d]);
  return count * cdl_elem_bits(view.elem) / 8;
}

/// A logical dim, rounded up to whole blocks.
double extentOf(const cdl_image_t* image, const cdl_view_t& view, uint32_t dim) {
  if (!view.layout) return static_cast<double>(view.dims[dim]);
  const cdl_layout_t* layout = cdl_get_layout(image, view.layout);
  double extent = 1;
  for (uint32_t i = 0; i < layout->count; ++i)
    if (layout->dim[i] == dim) extent *= static_cast<double>(view.dims[i]);
  return extent;
}

bool isInt8(const cdl_view_t& view) { return view.elem == CDL_I8 || view.elem == CDL_U8; }

double convolutionTime(const cdl_image_t* image, const cdl_instr_t* instr, const Rates& rates) {
  const cdl_view_t &x = *cdl_get_input(image, instr, 0), &w = *cdl_get_input(image, instr, 1);
  const cdl_attr_t* transposed = cdl_find_attr(image, instr, CDL_ATTR_TRANSPOSED);
  const bool scatters = transposed && transposed->values[0] != 0;
  // Each element of this one meets all weights of its channel.
  const cdl_view_t& walked = scatters ? x : *cdl_get_output(image, instr, 0);
  const double products = elementsOf(walked) * elementsOf(w) / extentOf(image, walked, 1);
  const bool isDepthwise = extentOf(image, w, 1) == 1 && extentOf(image, x, 1) > 1;
  if (isDepthwise) return products / (isInt8(x) ? rates.depthwiseInt8 : rates.depthwise);
  return products / (isInt8(x) ? rates.convInt8 : rates.conv);
}

/// Nanoseconds of products, where the kind has some.
double productTime(const cdl_image_t* image, const cdl_instr_t* instr, const Rates& given,
                   const Isa& isa) {
  Rates rates = given;
  if (instr->inputs > 0 && cdl_get_input(image, instr, 0)->elem == CDL_BF16) {
    rates.conv *= paceOfBF16(isa);
    rates.product *= paceOfBF16(isa);
  }
  if (instr->kind == CDL_KIND_CONV2D) return convolutionTime(image, instr, rates);
  if (instr->kind == CDL_KIND_SCALED_MATMUL)
    return elementsOf(*cdl_get_output(image, instr, 0)) *
           static_cast<double>(cdl_get_input(image, instr, 0)->dims[1]) /
           (instr->fn == CDL_SCALED_MATMUL_DYNAMIC ? rates.productInt8 : rates.product);
  if (instr->kind != CDL_KIND_MATMUL && instr->kind != CDL_KIND_ATTENTION) return 0;
  const cdl_view_t &a = *cdl_get_input(image, instr, 0), &b = *cdl_get_input(image, instr, 1);
  const double rate = isInt8(a) ? rates.productInt8 : rates.product;
  // Of queries and keys, and of what comes of that and values.
  if (instr->kind == CDL_KIND_ATTENTION)
    return 2 * elementsOf(a) * static_cast<double>(b.dims[b.rank - 2]) / rate;
  return elementsOf(*cdl_get_output(image, instr, 0)) * extentOf(image, a, 2) / rate;
}

bool isCurve(uint16_t kind, uint16_t fn) {
  if (kind == CDL_KIND_UNARY)
    return fn >= CDL_UNARY_EXP && fn != CDL_UNARY_CEIL && fn != CDL_UNARY_TRUNC &&
           fn != CDL_UNARY_ROUND_EVEN && fn != CDL_UNARY_RSQRT;
  return kind == CDL_KIND_SOFTMAX || kind == CDL_KIND_ATTENTION ||
         (kind == CDL_KIND_BINARY && fn == CDL_BINARY_POW);
}

/// Nanoseconds of what is done to each element, one step behind the other.
double elementTime(const cdl_image_t* image, const cdl_instr_t* instr, const Rates& rates) {
  double elements = elementsOf(*cdl_get_output(image, instr, 0));
  if (instr->inputs > 0) elements = std::max(elements, elementsOf(*cdl_get_input(image, instr, 0)));
  const bool isProduct = instr->kind == CDL_KIND_MATMUL || instr->kind == CDL_KIND_CONV2D ||
                         instr->kind == CDL_KIND_SCALED_MATMUL;
  double perElement = 0;
  if (!isProduct)
    perElement = 1 / (isCurve(instr->kind, instr->fn) ? rates.curves : rates.elements);
  const cdl_expr_t* expr = instr->expr ? cdl_get_expr(image, instr->expr) : nullptr;
  for (uint32_t s = 0; expr && s < expr->steps; ++s) {
    const cdl_step_t* step = cdl_get_step(image, expr->first_step + s);
    if (isCurve(step->kind, step->fn)) perElement += 1 / rates.curves;
  }
  return elements * perElement;
}

double moveTime(const cdl_image_t* image, const cdl_instr_t* instr, const Rates& rates) {
  double bytes = 0;
  for (uint32_t i = 0; i < instr->inputs; ++i) bytes += bytesOf(*cdl_get_input(image, instr, i));
  for (uint32_t i = 0; i < instr->outputs; ++i) bytes += bytesOf(*cdl_get_output(image, instr, i));
  return bytes / rates.bytes;
}

/// How often the body of a loop runs; 0: no loop.
double runsOf(const cdl_image_t* image, uint32_t loop) {
  double runs = 1;
  for (; loop; loop = cdl_get_loop(image, loop)->parent)
    runs *= static_cast<double>(cdl_get_loop(image, loop)->trip);
  return runs;
}

} // namespace

double Costs::nanoseconds(const cdl_image_t* image, uint32_t index) const {
  const cdl_instr_t* instr = cdl_get_instr(image, index);
  const Rates& rates = ratesOf(isa_.tier);
  const double computed = elementTime(image, instr, rates) + productTime(image, instr, rates, isa_);
  const double share = threads_ > 1 ? 1 / (threads_ * kShared) : 1;
  return kStartNanoseconds + std::max(computed, moveTime(image, instr, rates)) * share;
}

double Costs::nanoseconds(const cdl_image_t* image) const {
  double sum = 0;
  for (uint32_t i = 1; i < image->instrs.count; ++i)
    sum += nanoseconds(image, i) * runsOf(image, cdl_get_instr(image, i)->loop);
  return sum;
}

} // namespace cpu
