#include "core/compiler/import/stablehlo/step.h"

#include <algorithm>
#include <numeric>

namespace candela::import::stablehlo {
namespace {

int64_t integerOf(const Attribute& attribute, std::string_view key) {
  if (attribute.kind == Attribute::Kind::integer) return attribute.integer;
  if (attribute.kind == Attribute::Kind::elements && attribute.elements.count() == 1 &&
      !isFloat(attribute.type.elem))
    return attribute.elements.toInts()[0];
  reject("{} is no integer", key);
}

} // namespace

Value& Step::input(size_t i) {
  if (i >= op_.operands.size()) reject("operand {} is missing", i);
  Value& value = scope_.find(op_.operands[i]);
  if (!value.type.refusal.empty()) refuse("operand %{} is {}", op_.operands[i], value.type.refusal);
  return value;
}

std::vector<Value> Step::operands() {
  std::vector<Value> values;
  for (size_t i = 0; i < inputCount(); ++i) values.push_back(input(i));
  return values;
}

Name Step::kept(size_t i) { return scope_.nameOf(input(i), name_); }

Name Step::whole(size_t i) { return whole(input(i)); }

Name Step::whole(Value& value) {
  if (!value.whole.empty()) return value.whole;
  const Name name = scope_.nameOf(value, name_);
  value.whole = value.isWhole() ? name : add("Expand", {name, constant(value.type.dims)});
  return value.whole;
}

const Type& Step::output(size_t i) const {
  if (i >= op_.types.size()) reject("result {} is missing", i);
  const Type& type = op_.types[i];
  if (!type.refusal.empty()) refuse("its result is {}", type.refusal);
  return type;
}

void Step::expectDims(const Shape& dims, size_t output) const {
  const Type& type = this->output(output);
  if (type.dims != dims)
    reject("its result is {}, but has to be {}", type.text(), typeText(type.elem, dims));
}

void Step::expectElem(Elem elem, size_t output) const {
  const Type& type = this->output(output);
  if (type.elem != elem) reject("its result is {}, expected {}", type.text(), elemName(elem));
}

void Step::set(const Name& y, size_t output) { setKept(y, this->output(output).dims, output); }

void Step::setKept(const Name& y, Shape kept, size_t output) {
  Value value;
  value.type = this->output(output);
  value.name = y;
  value.kept = std::move(kept);
  setValue(std::move(value), output);
}

void Step::setConstant(Tensor tensor, size_t output) {
  Value value;
  value.type = this->output(output);
  value.kept = tensor.dims;
  value.constant = std::move(tensor);
  setValue(std::move(value), output);
}

void Step::setPart(const Part& y, size_t output) {
  expectDims(y.dims, output);
  set(y.name, output);
}

void Step::setValue(Value value, size_t output) {
  if (output >= op_.results.size()) return; // nobody can read it
  if (value.type != this->output(output))
    reject("result {} is {}, but gets {}", output, this->output(output).text(), value.type.text());
  scope_.define(op_.results[output], std::move(value));
  set_.insert(output);
}

void Step::defineRest() {
  for (size_t i = 0; i < op_.results.size(); ++i) {
    if (set_.count(i)) continue;
    Value value;
    if (i < op_.types.size()) value.type = op_.types[i];
    value.kept = value.type.dims;
    value.name = "%" + op_.results[i];
    try {
      scope_.define(op_.results[i], std::move(value));
    } catch (const Refusal&) {
      // Its first definition stays, and the second one has been reported.
    }
  }
}

const Attribute* Step::find(std::string_view key) const {
  const auto found = op_.attributes.find(key);
  return found == op_.attributes.end() ? nullptr : &found->second;
}

Ints Step::ints(std::string_view key) const {
  if (!find(key)) reject("attribute {} is missing", key);
  return ints(key, {});
}

Ints Step::ints(std::string_view key, const Ints& otherwise) const {
  const Attribute* found = find(key);
  if (!found) return otherwise;
  if (found->kind == Attribute::Kind::elements) {
    const Attribute& dense = *found;
    if (isFloat(dense.type.elem) || dense.type.rank() != 1) reject("{} are no integers", key);
    Ints all = dense.elements.toInts();
    const int64_t count = dense.type.dims[0];
    if (count > 4096) reject("{} of {} elements", key, count);
    if (dense.elements.dims.empty()) all.assign(static_cast<size_t>(count), all[0]);
    return all;
  }
  return integersOf(*found, key);
}

int64_t Step::integer(std::string_view key, int64_t otherwise) const {
  const Attribute* found = find(key);
  return found ? integerOf(*found, key) : otherwise;
}

int64_t Step::integer(std::string_view key) const {
  if (!find(key)) reject("attribute {} is missing", key);
  return integer(key, 0);
}

std::string Step::word(std::string_view key, size_t position) const {
  return op_.word(key, position);
}

std::vector<std::pair<int64_t, int64_t>> Step::pairs(std::string_view key, size_t count) const {
  std::vector<std::pair<int64_t, int64_t>> all(count, {0, 0});
  const Attribute* found = find(key);
  if (!found) return all;
  Ints flat;
  if (found->kind == Attribute::Kind::elements && !isFloat(found->type.elem)) {
    flat = found->elements.toInts();
    if (flat.size() == 1) flat.assign(2 * count, flat[0]);
  }
  if (found->kind == Attribute::Kind::list)
    for (const Attribute& row : found->list)
      for (const Attribute& one : row.list) flat.push_back(integerOf(one, key));
  if (flat.size() != 2 * count)
    reject("{} has {} integers, expected {} pairs", key, flat.size(), count);
  for (size_t i = 0; i < count; ++i) all[i] = {flat[2 * i], flat[2 * i + 1]};
  return all;
}

void Step::checkAxes(const Ints& axes, size_t rank, const char* what) const {
  std::set<int64_t> seen;
  for (const int64_t axis : axes) {
    if (axis < 0 || axis >= static_cast<int64_t>(rank))
      reject("{} {} is out of range for rank {}", what, axis, rank);
    if (!seen.insert(axis).second) reject("{} {} is there twice", what, axis);
  }
}

std::vector<Name> Step::addAll(const char* op, std::vector<Name> inputs, size_t outputs,
                               Attributes attributes, const char* domain) {
  onnx_io::Node node;
  node.name = name_;
  node.opType = op;
  node.domain = domain;
  node.inputs = std::move(inputs);
  for (size_t i = 0; i < outputs; ++i)
    node.outputs.push_back(scope_.model().unique(name_ + "/" + op));
  node.attributes = std::move(attributes);
  scope_.graph().nodes.push_back(std::move(node));
  return scope_.graph().nodes.back().outputs;
}

Name Step::add(const char* op, std::vector<Name> inputs, Attributes attributes) {
  return addAll(op, std::move(inputs), 1, std::move(attributes))[0];
}

Name Step::constant(Tensor tensor) {
  return scope_.initializer(name_ + "/constant", std::move(tensor));
}

Name Step::constant(const Ints& values) {
  return constant(Tensor::of<int64_t>(Elem::i64_, {static_cast<int64_t>(values.size())}, values));
}

Name Step::number(double value, Elem elem) {
  if (elem == Elem::f32_) return constant(Tensor::of<float>(elem, {}, {static_cast<float>(value)}));
  if (isInteger(elem)) {
    const auto whole = static_cast<int64_t>(value);
    return cast(constant(Tensor::of<int64_t>(Elem::i64_, {}, {whole})), elem);
  }
  return cast(constant(Tensor::of<double>(Elem::f64_, {}, {value})), elem);
}

Name Step::cast(const Name& x, Elem to) {
  return add("Cast", {x}, {{"to", static_cast<int64_t>(elemToOnnx(to))}});
}

Part Step::transpose(const Part& x, const Ints& perm) {
  if (std::ranges::is_sorted(perm)) return x;
  Shape dims;
  for (const int64_t axis : perm) dims.push_back(x.dims[static_cast<size_t>(axis)]);
  return {add("Transpose", {x.name}, {{"perm", perm}}), dims};
}

Part Step::reshape(const Part& x, const Shape& dims) {
  if (x.dims == dims) return x;
  return {add("Reshape", {x.name, constant(dims)}, {{"allowzero", int64_t(1)}}), dims};
}

Part Step::slice(const Part& x, const Ints& begins, const Ints& ends, const Ints& strides) {
  Ints axes, from, to, by;
  Shape dims = x.dims;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (begins[i] == 0 && ends[i] == x.dims[i] && strides[i] == 1) continue;
    axes.push_back(static_cast<int64_t>(i));
    from.push_back(begins[i]);
    to.push_back(ends[i]);
    by.push_back(strides[i]);
    dims[i] = std::max<int64_t>(0, (ends[i] - begins[i] + strides[i] - 1) / strides[i]);
  }
  if (axes.empty()) return x;
  return {add("Slice", {x.name, constant(from), constant(to), constant(axes), constant(by)}), dims};
}

Part Step::reverse(const Part& x, const Ints& axes) {
  Ints turned;
  for (const int64_t axis : axes)
    if (x.dims[static_cast<size_t>(axis)] > 1) turned.push_back(axis);
  if (turned.empty()) return x;
  const Ints begins(turned.size(), -1);
  const Ints ends(turned.size(), std::numeric_limits<int32_t>::min());
  const Ints strides(turned.size(), -1);
  const std::vector<Name> how = {constant(begins), constant(ends), constant(turned),
                                 constant(strides)};
  return {add("Slice", {x.name, how[0], how[1], how[2], how[3]}), x.dims};
}

Part Step::pad(Part x, const Name& value, const Ints& low, const Ints& high, const Ints& interior) {
  // Between the elements of a dim: behind each as many, without those behind the last one.
  for (size_t i = 0; i < x.dims.size(); ++i) {
    if (interior[i] == 0 || x.dims[i] < 2) continue;
    Shape split = x.dims;
    split.insert(split.begin() + static_cast<ptrdiff_t>(i) + 1, 1);
    const size_t rank = split.size();
    Ints pads(2 * rank, 0);
    pads[rank + i + 1] = interior[i];
    const Part apart = reshape(x, split);
    const Name padded = add("Pad", {apart.name, constant(pads), value});
    Shape dims = x.dims;
    dims[i] *= interior[i] + 1;
    split[i + 1] = interior[i] + 1;
    const Part joined = reshape({padded, split}, dims);
    Ints ends = dims;
    ends[i] -= interior[i];
    x = slice(joined, Ints(dims.size(), 0), ends, Ints(dims.size(), 1));
  }
  Ints begins(x.dims.size(), 0), ends = x.dims, pads(2 * x.dims.size(), 0);
  Shape dims;
  for (size_t i = 0; i < x.dims.size(); ++i) {
    begins[i] = std::min(x.dims[i], std::max<int64_t>(0, -low[i]));
    ends[i] = std::max(begins[i], x.dims[i] - std::max<int64_t>(0, -high[i]));
    pads[i] = std::max<int64_t>(0, low[i]);
    pads[x.dims.size() + i] = std::max<int64_t>(0, high[i]);
    dims.push_back(ends[i] - begins[i] + pads[i] + pads[x.dims.size() + i]);
  }
  x = slice(x, begins, ends, Ints(x.dims.size(), 1));
  if (std::ranges::count(pads, 0) == std::ssize(pads)) return x;
  return {add("Pad", {x.name, constant(pads), value}), dims};
}

Ints integersOf(const Attribute& list, std::string_view key) {
  if (list.kind != Attribute::Kind::list) reject("{} is no list of integers", key);
  Ints all;
  for (const Attribute& one : list.list) all.push_back(integerOf(one, key));
  return all;
}

Tensor countTo(Step& step, int64_t count) {
  step.scope().model().countConstant(static_cast<uint64_t>(count) * sizeof(int64_t));
  Ints all(static_cast<size_t>(count));
  std::iota(all.begin(), all.end(), 0);
  return Tensor::of<int64_t>(Elem::i64_, {count}, all);
}

} // namespace candela::import::stablehlo
