#include "tools/candela/estimate/instr_costs.h"

#include <algorithm>
#include <cmath>

#include "core/compiler/program/passes/tile/machine.h"

namespace candela::tool {
namespace {

constexpr double kMostCount = 0x1p62; ///< of elements, bytes and products: a number of 64 bits

uint64_t roundedUp(double count) {
  return static_cast<uint64_t>(std::ceil(std::min(count, kMostCount) - 1e-9));
}

double passes(double extent, uint32_t at) { return std::ceil(extent / at); }

/// Elements that a view reaches, those that a stride of 0 repeats once.
double elementsOf(const cdl_view_t& view) {
  double count = 1;
  for (uint32_t d = 0; d < view.rank; ++d)
    if (view.strides[d] != 0) count *= static_cast<double>(view.dims[d]);
  return count;
}

double countOf(const cdl_view_t& view) {
  double count = 1;
  for (uint32_t d = 0; d < view.rank; ++d) count *= static_cast<double>(view.dims[d]);
  return count;
}

double bytesOf(const cdl_view_t& view) { return elementsOf(view) * cdl_elem_bits(view.elem) / 8; }

/// The extent of a logical dim, whatever physical factors it lies in.
double logicalDim(const cdl_image_t* image, const cdl_view_t& view, int dim) {
  if (view.layout == 0) return static_cast<double>(view.dims[dim]);
  const cdl_layout_t* layout = cdl_get_layout(image, view.layout);
  double extent = 1;
  for (uint32_t step = 0; step < layout->count; ++step)
    if (layout->dim[step] == dim) extent *= static_cast<double>(view.dims[step]);
  return extent;
}

/// A product as passes of an array see it: `count` of them, of columns sums of `terms` terms for
/// each of `rows` rows.
struct ProductShape {
  double count = 1;
  double rows = 1;
  double columns = 1;
  double terms = 1;
  double macs() const { return count * rows * columns * terms; }
};

bool isProduct(uint16_t kind) {
  return kind == CDL_KIND_MATMUL || kind == CDL_KIND_CONV2D || kind == CDL_KIND_SCALED_MATMUL ||
         kind == CDL_KIND_ATTENTION;
}

int64_t attribute(const cdl_image_t* image, const cdl_instr_t* instr, uint16_t id,
                  int64_t otherwise) {
  const cdl_attr_t* attr = cdl_find_attr(image, instr, id);
  return attr ? attr->values[0] : otherwise;
}

/// x[N,C,H,W] and w[O,C/group,K,L], or transposed w[C,O/group,K,L]: of that each place of x makes
/// O/group x K x L products.
ProductShape convolution(const cdl_image_t* image, const cdl_instr_t* instr) {
  const cdl_view_t& x = *cdl_get_input(image, instr, 0);
  const cdl_view_t& w = *cdl_get_input(image, instr, 1);
  const cdl_view_t& y = *cdl_get_output(image, instr, 0);
  const auto group = static_cast<double>(attribute(image, instr, CDL_ATTR_GROUP, 1));
  const double outer = logicalDim(image, w, 0);
  const double inner = countOf(w) / outer;
  const bool isTransposed = attribute(image, instr, CDL_ATTR_TRANSPOSED, 0) != 0;
  if (isTransposed) return {group, countOf(x) / logicalDim(image, x, 1), inner, outer / group};
  return {group, countOf(y) / logicalDim(image, y, 1), outer / group, inner};
}

ProductShape productOf(const cdl_image_t* image, const cdl_instr_t* instr) {
  if (instr->kind == CDL_KIND_CONV2D) return convolution(image, instr);
  const cdl_view_t& a = *cdl_get_input(image, instr, 0);
  const cdl_view_t& y = *cdl_get_output(image, instr, 0);
  const auto dim = [](const cdl_view_t& view, int d) { return static_cast<double>(view.dims[d]); };
  if (instr->kind == CDL_KIND_MATMUL) return {dim(y, 0), dim(y, 1), dim(y, 2), dim(a, 2)};
  if (instr->kind == CDL_KIND_SCALED_MATMUL) return {1, dim(y, 0), dim(y, 1), dim(a, 1)};
  // Attention: q[B,S,D] by k[B,T,D], and the scores by v[B,T,E].
  const cdl_view_t& k = *cdl_get_input(image, instr, 1);
  return {dim(a, 0), dim(a, 1), dim(k, 1), dim(a, 2) + dim(y, 2)};
}

double matrixCycles(const cdl_image_t* image, const cdl_instr_t* instr,
                    const DescribedMatrix& matrix) {
  const ProductShape product = productOf(image, instr);
  const bool isDepthwise = instr->kind == CDL_KIND_CONV2D && product.columns == 1;
  if (isDepthwise && matrix.depthwiseMacsPerCycle > 0)
    return product.macs() / matrix.depthwiseMacsPerCycle;
  const auto elem = static_cast<Elem>(cdl_get_input(image, instr, 0)->elem);
  const double padded = product.count * product.rows * passes(product.columns, matrix.columns) *
                        matrix.columns * passes(product.terms, matrix.rows) * matrix.rows;
  return padded / matrix.macsPerCycle.of(elem);
}

bool isFunction(uint16_t kind, uint16_t fn) {
  if (kind == CDL_KIND_BINARY)
    return fn == CDL_BINARY_DIV || fn == CDL_BINARY_POW || fn == CDL_BINARY_REM;
  const bool isSimple = fn == CDL_UNARY_NEG || fn == CDL_UNARY_ABS || fn == CDL_UNARY_FLOOR ||
                        fn == CDL_UNARY_CEIL || fn == CDL_UNARY_TRUNC || fn == CDL_UNARY_ROUND_EVEN;
  return kind == CDL_KIND_UNARY && !isSimple;
}

/// How often each element passes the unit, and how often as an argument of a function.
struct ElementPasses {
  double plain = 0;
  double functions = 0;
};

ElementPasses passesOf(const cdl_image_t* image, const cdl_instr_t* instr) {
  ElementPasses result;
  if (instr->kind == CDL_KIND_SOFTMAX) return {3, 1}; // the maximum, the sum, the quotient; exp
  if (instr->kind == CDL_KIND_NORM) return {4, 0};    // two sums, and a scale with its bias
  if (instr->expr) {
    const cdl_expr_t* expr = cdl_get_expr(image, instr->expr);
    for (uint32_t s = 0; s < expr->steps; ++s) {
      const cdl_step_t* step = cdl_get_step(image, expr->first_step + s);
      (isFunction(step->kind, step->fn) ? result.functions : result.plain) += 1;
    }
  }
  if (isProduct(instr->kind) || instr->kind == CDL_KIND_ELEMENTWISE) return result;
  (isFunction(instr->kind, instr->fn) ? result.functions : result.plain) += 1;
  return result;
}

/// Elements that the unit sees once: of the operands where those are more than the results, but for
/// what is picked out of a larger one.
double elementsOf(const cdl_image_t* image, const cdl_instr_t* instr) {
  double most = countOf(*cdl_get_output(image, instr, 0));
  const bool picks = instr->kind == CDL_KIND_GATHER || isProduct(instr->kind);
  if (instr->kind == CDL_KIND_SCATTER) return countOf(*cdl_get_input(image, instr, 1));
  if (instr->kind == CDL_KIND_POOL2D) {
    const cdl_attr_t* kernel = cdl_find_attr(image, instr, CDL_ATTR_KERNEL);
    return most * static_cast<double>(kernel->values[0] * kernel->values[1]);
  }
  for (uint32_t i = 0; i < instr->inputs && !picks; ++i)
    most = std::max(most, elementsOf(*cdl_get_input(image, instr, i)));
  return most;
}

double vectorCycles(const cdl_image_t* image, const cdl_instr_t* instr,
                    const DescribedVector& vector) {
  const ElementPasses times = passesOf(image, instr);
  if (times.plain + times.functions == 0) return 0;
  const double elements = elementsOf(image, instr);
  const Elem elem = static_cast<Elem>(instr->inputs ? cdl_get_input(image, instr, 0)->elem
                                                    : cdl_get_output(image, instr, 0)->elem);
  const double rate = vector.elementsPerCycle.of(elem);
  const double functionRate = vector.functionsPerCycle > 0 ? vector.functionsPerCycle : rate;
  return elements * (times.plain / rate + times.functions / functionRate);
}

bool isLocal(const cdl_image_t* image, const cdl_view_t& view) {
  const uint32_t space = cdl_get_buffer(image, view.buffer)->space;
  return cdl_get_space(image, space)->flags & CDL_SPACE_LOCAL;
}

} // namespace

MemoryBytes memoryBytesOf(const cdl_image_t* image, uint32_t index) {
  const cdl_instr_t* instr = cdl_get_instr(image, index);
  const cdl_view_t& y = *cdl_get_output(image, instr, 0);
  MemoryBytes bytes;
  for (uint32_t i = 0; i < instr->inputs; ++i) {
    const cdl_view_t& x = *cdl_get_input(image, instr, i);
    if (isLocal(image, x)) continue;
    const bool isPickedFrom = instr->kind == CDL_KIND_GATHER && i == 0;
    const double count = isPickedFrom ? std::min(bytesOf(x), bytesOf(y)) : bytesOf(x);
    const bool isConstant = cdl_get_buffer(image, x.buffer)->role == CDL_ROLE_CONSTANT;
    (isConstant ? bytes.constants : bytes.read) += roundedUp(count);
  }
  for (uint32_t o = 0; o < instr->outputs; ++o) {
    const cdl_view_t& each = *cdl_get_output(image, instr, o);
    if (isLocal(image, each)) continue;
    bytes.written += roundedUp(bytesOf(each));
    if (instr->flags & CDL_INSTR_INOUT) bytes.read += roundedUp(bytesOf(each));
  }
  return bytes;
}

DeviceRates ratesOf(const DeviceDescription& device) {
  const DescribedMemory& memory = device.memories[0];
  return {device.matrix, device.vector, device.bytesPerCycle(memory), memory.startCycles};
}

std::optional<DeviceRates> declaredRates(const capabilities::Target& target) {
  if (!target.tiling()) return std::nullopt;
  const program::passes::tile::TileCosts costs = program::passes::tile::declaredCosts(target);
  DeviceRates rates;
  rates.matrix.macsPerCycle.others = static_cast<double>(costs.rows) * costs.columns;
  rates.matrix.rows = costs.rows;
  rates.matrix.columns = costs.columns;
  rates.matrix.startCycles = costs.instrCycles;
  rates.vector.elementsPerCycle.others = costs.lanes;
  rates.vector.startCycles = costs.instrCycles;
  rates.bytesPerCycle = costs.bytesPerCycle;
  rates.copyStartCycles = costs.copyCycles;
  return rates;
}

uint64_t usefulCycles(const cdl_image_t* image, uint32_t index, const DeviceRates& rates) {
  const uint64_t macs = macsOf(image, index);
  if (macs == 0 || rates.matrix.macsPerCycle.others <= 0) return 0;
  const auto elem = static_cast<Elem>(cdl_get_input(image, cdl_get_instr(image, index), 0)->elem);
  return roundedUp(static_cast<double>(macs) / rates.matrix.macsPerCycle.of(elem));
}

uint64_t macsOf(const cdl_image_t* image, uint32_t index) {
  const cdl_instr_t* instr = cdl_get_instr(image, index);
  if (!isProduct(instr->kind)) return 0;
  return roundedUp(productOf(image, instr).macs());
}

Unit unitOf(const cdl_image_t* image, uint32_t index) {
  const cdl_instr_t* instr = cdl_get_instr(image, index);
  if (isProduct(instr->kind)) return Unit::matrix;
  if (instr->kind != CDL_KIND_COPY) return Unit::vector;
  const bool fromLocal = isLocal(image, *cdl_get_input(image, instr, 0));
  const bool toLocal = isLocal(image, *cdl_get_output(image, instr, 0));
  if (fromLocal == toLocal) return Unit::vector;
  return toLocal ? Unit::load : Unit::store;
}

InstrCost costOf(const cdl_image_t* image, uint32_t index, const DeviceRates& rates) {
  const cdl_instr_t* instr = cdl_get_instr(image, index);
  InstrCost cost;
  cost.unit = unitOf(image, index);
  cost.macs = macsOf(image, index);
  double computed = 0;
  uint32_t start = 0;
  if (cost.unit == Unit::matrix) {
    // The epilogue goes on beside the product.
    computed = std::max(matrixCycles(image, instr, rates.matrix),
                        vectorCycles(image, instr, rates.vector));
    start = rates.matrix.startCycles;
  } else if (cost.unit == Unit::vector) {
    computed = vectorCycles(image, instr, rates.vector);
    start = rates.vector.startCycles;
  }
  cost.bytes = memoryBytesOf(image, index).all();
  if (cost.bytes > 0) {
    cost.busCycles = roundedUp(static_cast<double>(cost.bytes) / rates.bytesPerCycle);
    start = std::max(start, rates.copyStartCycles);
  }
  cost.cycles =
      std::min(start + std::max(roundedUp(computed), cost.busCycles), kMostInstrCycles + 1);
  cost.busCycles = std::min(cost.busCycles, cost.cycles);
  return cost;
}

} // namespace candela::tool
