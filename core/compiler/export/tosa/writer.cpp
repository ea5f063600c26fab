#include "core/compiler/export/tosa/writer.h"

#include <algorithm>

#include "core/compiler/export/tosa/ops.h"
#include "core/support/text/literal.h"

namespace candela::exporter::tosa {
namespace {

/// Constants of up to this many elements are lists, larger ones bytes.
constexpr int64_t kLongestList = 16;

std::string elemText(Elem elem) {
  switch (elem) {
  case Elem::bool_: return "i1";
  case Elem::f32_:
  case Elem::f16_:
  case Elem::bf16_:
  case Elem::i8_:
  case Elem::i16_:
  case Elem::i32_:
  case Elem::i64_: return std::string(elemName(elem));
  default: refuse("TOSA has no {}", elemName(elem));
  }
}

bool isFinite(Elem elem, const std::string& text) {
  return !isFloat(elem) || (text.find("nan") == std::string::npos &&
                            text.find("inf") == std::string::npos && !text.starts_with("0x"));
}

/// One element as MLIR reads it.
std::string literalOf(Elem elem, uint64_t bits) {
  std::string text = text::elementText(elem, bits);
  const size_t exponent = isFloat(elem) ? text.find('e') : std::string::npos;
  const bool isShort = exponent != std::string::npos && text.find('.') == std::string::npos;
  if (isFinite(elem, text)) return isShort ? text.insert(exponent, ".0") : text;
  return fmt::format("0x{:0{}X}", bits, elemBits(elem) / 4);
}

/// Lists in lists, one for each dim.
std::string listOf(const Tensor& tensor, size_t dim, int64_t& at) {
  if (dim == tensor.dims.size())
    return literalOf(tensor.elem, loadElement(tensor.elem, tensor.bytes.data(), at++));
  std::string text = "[";
  for (int64_t i = 0; i < tensor.dims[dim]; ++i)
    text += (i == 0 ? "" : ", ") + listOf(tensor, dim + 1, at);
  return text + "]";
}

std::string bytesOf(const Tensor& tensor) {
  std::string text = "\"0x";
  for (uint64_t i = 0; i < tensor.sizeBytes(); ++i)
    text += fmt::format("{:02X}", static_cast<unsigned>(tensor.bytes.data()[i]));
  return text + "\"";
}

bool isSplat(const Tensor& tensor) {
  const uint64_t first = loadElement(tensor.elem, tensor.bytes.data(), 0);
  for (int64_t i = 1; i < tensor.count(); ++i)
    if (loadElement(tensor.elem, tensor.bytes.data(), i) != first) return false;
  return true;
}

std::string contentOf(const Tensor& tensor) {
  if (isSplat(tensor))
    return literalOf(tensor.elem, loadElement(tensor.elem, tensor.bytes.data(), 0));
  int64_t at = 0;
  if (tensor.count() <= kLongestList || tensor.elem == Elem::bool_) return listOf(tensor, 0, at);
  return bytesOf(tensor);
}

Shape broadcastDims(const Values& values) {
  Shape dims;
  for (const Value& value : values) {
    const auto both = graph::broadcastShapes(dims, value.dims);
    CDL_CHECK(both, "operands of a formula broadcast");
    dims = *both;
  }
  return dims;
}

} // namespace

std::string typeOf(Elem elem, const Shape& dims) {
  std::string text = "tensor<";
  if (std::ranges::find(dims, 0) != dims.end()) refuse("TOSA has no tensors without elements");
  for (const int64_t dim : dims) text += fmt::format("{}x", dim);
  return text + elemText(elem) + ">";
}

std::string arrayText(const std::vector<int64_t>& values) {
  return values.empty() ? "array<i64>" : fmt::format("array<i64: {}>", fmt::join(values, ", "));
}

Value FunctionWriter::of(const graph::Value* value) {
  if (!value) return {};
  const auto known = values_.find(value);
  if (known == values_.end()) refuse("'{}', which it reads, was refused", value->name);
  return known->second;
}

Values FunctionWriter::operandsOf(const graph::Node& node) {
  Values values;
  for (const graph::Value* operand : node.operands()) values.push_back(of(operand));
  return values;
}

void FunctionWriter::bind(const graph::Value* value, const Value& written) {
  CDL_CHECK(written.elem == value->type.elem && written.dims == value->type.dims,
            "a node is written with the type of its result");
  values_[value] = written;
}

void FunctionWriter::addArgument(const graph::Value* value) {
  const size_t index = values_.size();
  values_[value] = {fmt::format("%arg{}", index), value->type.elem, value->type.dims};
}

Value FunctionWriter::make(const std::string& op, const Values& operands, Elem elem, Shape dims,
                           const std::string& attributes) {
  std::vector<std::string> names, types;
  for (const Value& operand : operands) {
    names.push_back(operand.name);
    types.push_back(typeOf(operand.elem, operand.dims));
  }
  const Value result{fmt::format("%{}", next_++), elem, std::move(dims)};
  const std::string braces = attributes.empty() ? "" : fmt::format(" {{{}}}", attributes);
  text_ += fmt::format("    {} = \"tosa.{}\"({}){} : ({}) -> {}\n", result.name, op,
                       fmt::join(names, ", "), braces, fmt::join(types, ", "),
                       typeOf(elem, result.dims));
  return result;
}

Value FunctionWriter::op(const std::string& op, Values operands, const std::string& attributes) {
  const Shape dims = broadcastDims(operands);
  for (Value& operand : operands) {
    Shape longer(dims.size() - operand.dims.size(), 1);
    longer.insert(longer.end(), operand.dims.begin(), operand.dims.end());
    operand = reshape(operand, longer);
  }
  return make(op, operands, operands.back().elem, dims, attributes);
}

Value FunctionWriter::test(const std::string& op, const Value& a, const Value& b) {
  Values operands = {a, b};
  const Shape dims = broadcastDims(operands);
  for (Value& operand : operands) {
    Shape longer(dims.size() - operand.dims.size(), 1);
    longer.insert(longer.end(), operand.dims.begin(), operand.dims.end());
    operand = reshape(operand, longer);
  }
  return make(op, operands, Elem::bool_, dims);
}

Value FunctionWriter::constant(const Tensor& tensor) {
  const std::string type = typeOf(tensor.elem, tensor.dims);
  return make("const", {}, tensor.elem, tensor.dims,
              fmt::format("value = dense<{}> : {}", contentOf(tensor), type));
}

Value FunctionWriter::number(double value, Elem elem) {
  Value& known = constants_[fmt::format("{} {}", elemName(elem), text::realText(value))];
  if (!known.isAbsent()) return known;
  Tensor tensor = need(Tensor::zeros(elem, {}));
  const bool isWhole = isInteger(elem) || elem == Elem::bool_;
  const uint64_t bits = isWhole
                            ? static_cast<uint64_t>(static_cast<int64_t>(value)) & elemMask(elem)
                            : need(text::parseElement(elem, text::realText(value)));
  storeElement(elem, tensor.bytes.mutableData(), 0, bits);
  return known = constant(tensor);
}

Value FunctionWriter::ints(const std::vector<int64_t>& values, Shape dims) {
  const std::vector<int32_t> narrow(values.begin(), values.end());
  return constant(Tensor::of(Elem::i32_, std::move(dims), narrow));
}

Value FunctionWriter::cast(const Value& x, Elem to) {
  return x.elem == to ? x : make("cast", {x}, to, x.dims);
}

Value FunctionWriter::widened(const Value& x) {
  const bool isHalf = x.elem == Elem::f16_ || x.elem == Elem::bf16_;
  return isHalf ? cast(x, Elem::f32_) : x;
}

Value FunctionWriter::reshape(const Value& x, const Shape& dims) {
  if (x.dims == dims) return x;
  return make("reshape", {x}, x.elem, dims, "new_shape = " + arrayText(dims));
}

Value FunctionWriter::transpose(const Value& x, const std::vector<int64_t>& perm) {
  if (std::ranges::is_sorted(perm)) return x;
  Shape dims;
  for (const int64_t from : perm) dims.push_back(x.dim(from));
  return make("transpose", {x, ints(perm, {x.rank()})}, x.elem, dims);
}

Value FunctionWriter::expand(const Value& x, const Shape& dims) {
  if (x.dims == dims) return x;
  Shape longer(dims.size() - x.dims.size(), 1);
  longer.insert(longer.end(), x.dims.begin(), x.dims.end());
  const Value ranked = reshape(x, longer);
  if (longer == dims) return ranked;
  std::vector<int64_t> multiples;
  for (size_t d = 0; d < dims.size(); ++d) multiples.push_back(longer[d] == dims[d] ? 1 : dims[d]);
  return make("tile", {ranked}, x.elem, dims, "multiples = " + arrayText(multiples));
}

Value FunctionWriter::slice(const Value& x, const std::vector<int64_t>& start, const Shape& size) {
  if (x.dims == size) return x;
  return make("slice", {x}, x.elem, size,
              fmt::format("size = {}, start = {}", arrayText(size), arrayText(start)));
}

Value FunctionWriter::pad(const Value& x, const std::vector<int64_t>& lo,
                          const std::vector<int64_t>& hi, const Value& value) {
  std::vector<int64_t> widths;
  Shape dims = x.dims;
  for (size_t d = 0; d < dims.size(); ++d) {
    widths.push_back(lo[d]);
    widths.push_back(hi[d]);
    dims[d] += lo[d] + hi[d];
  }
  if (dims == x.dims) return x;
  Values operands = {x, ints(widths, {x.rank(), 2})};
  if (!value.isAbsent()) operands.push_back(value);
  return make("pad", operands, x.elem, dims);
}

Value FunctionWriter::concat(const Values& pieces, int64_t axis) {
  Shape dims = pieces[0].dims;
  dims[static_cast<size_t>(axis)] = 0;
  for (const Value& piece : pieces) dims[static_cast<size_t>(axis)] += piece.dim(axis);
  return make("concat", pieces, pieces[0].elem, dims, fmt::format("axis = {} : i32", axis));
}

Value FunctionWriter::takeAlong(const Value& x, int64_t axis, const Value& index) {
  Shape dims(x.dims.begin(), x.dims.begin() + axis);
  const int64_t outer = elementCount(dims).value_or(0);
  const Shape rest(x.dims.begin() + axis + 1, x.dims.end());
  const int64_t inner = elementCount(rest).value_or(0);
  const int64_t count = elementCount(index.dims).value_or(0);
  dims.insert(dims.end(), index.dims.begin(), index.dims.end());
  dims.insert(dims.end(), rest.begin(), rest.end());
  if (elementCount(dims) == 0 || x.dim(axis) == 0) refuse("TOSA gathers no empty tensors");
  const Value places = expand(reshape(cast(index, Elem::i32_), {1, count}), {outer, count});
  const Value taken = make("gather", {reshape(x, {outer, x.dim(axis), inner}), places}, x.elem,
                           {outer, count, inner});
  return reshape(taken, dims);
}

Value FunctionWriter::mul(const Value& a, const Value& b) {
  return op("mul", {a, b}, "shift = 0 : i8");
}

Value FunctionWriter::over(const Value& a, const Value& b) {
  return mul(a, make("reciprocal", {b}, b.elem, b.dims));
}

Value FunctionWriter::reduce(const std::string& op, const Value& x, int64_t axis) {
  Shape dims = x.dims;
  dims[static_cast<size_t>(axis)] = 1;
  return make(op, {x}, x.elem, dims, fmt::format("axis = {} : i32", axis));
}

void FunctionWriter::write(const graph::Graph& graph, Refusals& refusals) {
  for (const auto& node : graph.nodes()) {
    try {
      if (node->kind == graph::OpKind::Constant)
        bind(node->result(), constant(need(node->result()->tensor())));
      else
        writeOp(*this, *node);
    } catch (const Refusal& refusal) {
      refusals.add(*node, refusal.why);
    }
  }
}

} // namespace candela::exporter::tosa
