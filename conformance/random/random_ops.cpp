#include "conformance/random/random_ops.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/support/float_bits.h"
#include "core/support/out_of_memory.h"
#include "core/support/scaled_product.h"

namespace candela::conformance::random {

using graph::AttrInfo, graph::AttrType, graph::OperandInfo, graph::OpInfo;

namespace {

using Ints = std::vector<int64_t>;

std::vector<Elem> elemsOf(uint32_t mask) {
  std::vector<Elem> elems;
  for (unsigned i = 1; i < kElemCount; ++i)
    if (mask >> i & 1) elems.push_back(static_cast<Elem>(i));
  return elems;
}

std::vector<std::string_view> split(std::string_view text, std::string_view separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    while (!parts.back().empty() && parts.back().front() == ' ') parts.back().remove_prefix(1);
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + separator.size());
  }
}
std::optional<int64_t> numberOf(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value)
                                                                  : std::nullopt;
}
bool endsWith(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

class Maker {
public:
  Maker(const OpInfo& info, Random& random) : info_(info), random_(random) {
    draft_.kind = info.kind;
  }

  std::optional<Draft> make(Elem elem, const Shape* first) {
    draft_.operands.resize(info_.operands.size());
    if (!info_.operands.empty()) {
      const OperandInfo& record = info_.operands[0];
      draft_.operands[0].elem = elem;
      if (first) {
        if (!record.shape.empty() && !match(record.shape, *first)) return std::nullopt;
        x() = *first;
      } else {
        x() = shapeBy(record, anyShape());
      }
    }
    chooseAttributes();
    if (info_.has(graph::kTraitBroadcast)) common_ = x();
    for (size_t i = 1; i < info_.operands.size(); ++i) addOperand(i);
    for (size_t i = 1; i < info_.results.size(); ++i)
      if (!info_.results[i].optional || random_.oneIn(2)) draft_.results = static_cast<int>(i + 1);
    if (!info_.operands.empty() && info_.operands.back().variadic) addMore();
    // Without a given first operand, the widest one may stand at any place.
    if (info_.has(graph::kTraitBroadcast) && !first && random_.oneIn(3)) x() = broadcasting(x());
    completeByKind(first != nullptr);
    while (draft_.operands.size() > 1 && draft_.operands.back().elem == Elem::none &&
           random_.oneIn(2))
      draft_.operands.pop_back();
    return std::move(draft_);
  }

private:
  Shape& x() { return draft_.operands[0].dims; }
  int64_t rank() { return static_cast<int64_t>(x().size()); }

  int64_t extent() {
    static constexpr int64_t kExtents[] = {0, 1, 1, 1, 2, 2,  3,  3,  4,
                                           5, 6, 7, 8, 9, 13, 17, 19, 33};
    if (random_.below(18) == 0) return kExtents[0];
    return kExtents[random_.between(1, random_.oneIn(3) ? 17 : 11)];
  }
  Shape shapeOf(int64_t rank) {
    Shape shape;
    for (int64_t i = 0; i < rank; ++i) {
      const int64_t room = 600 / std::max<int64_t>(1, *elementCount(shape));
      shape.push_back(std::min(extent(), std::max<int64_t>(1, room)));
    }
    return shape;
  }
  Shape anyShape() { return shapeOf(random_.oneIn(12) ? random_.between(5, 6) : random_.below(5)); }
  /// A shape that broadcasts to this one.
  Shape broadcasting(Shape shape) {
    if (random_.oneIn(2)) return shape;
    for (int64_t& dim : shape)
      if (random_.oneIn(3)) dim = 1;
    shape.erase(shape.begin(),
                shape.begin() + random_.below(static_cast<int64_t>(shape.size()) + 1));
    return shape;
  }

  // ---- Shape texts: "[batch.., m, k]", "like x", "broadcasts to [m, n]", "x's dims from the axis
  // on", "[1] or [n]"
  // ----

  const Shape* shapeNamed(std::string_view name) {
    for (size_t i = 0; i < info_.operands.size() && i < draft_.operands.size(); ++i)
      if (info_.operands[i].name == name) return &draft_.operands[i].dims;
    return nullptr;
  }
  /// The axis that an attribute names, 0 without one.
  size_t axis(std::string_view name, size_t rank) {
    const auto found = draft_.attrs.find(name);
    const AttrInfo* info = info_.attr(name);
    int64_t value = 0;
    if (found != draft_.attrs.end())
      value = std::get<int64_t>(found->second);
    else if (info && !info->defaultText.empty())
      value = numberOf(info->defaultText).value_or(0);
    if (value < 0) value += static_cast<int64_t>(rank);
    return static_cast<size_t>(
        std::clamp<int64_t>(value, 0, std::max<int64_t>(0, static_cast<int64_t>(rank) - 1)));
  }
  int64_t divisor(std::string_view name) {
    const auto found = draft_.attrs.find(name);
    return found == draft_.attrs.end() ? 1 : std::get<int64_t>(found->second);
  }

  Shape shapeBy(const OperandInfo& record, const Shape& otherwise) {
    const auto choices = split(record.shape, " or ");
    if (choices.size() > 1) { // one that an attribute asks for, when it is given; else any
      const bool named = info_.attr("axis") && !info_.attr("axis")->required &&
                         info_.attr("axis")->defaultText.empty();
      if (named && choices.back().find("axis") != std::string_view::npos)
        return shapeOfText(draft_.attrs.count("axis") ? choices.back() : choices[0], otherwise);
    }
    return shapeOfText(random_.of(choices), otherwise);
  }
  Shape shapeOfText(std::string_view text, const Shape& otherwise) {
    if (text.starts_with("broadcasts to "))
      return broadcasting(shapeOfText(text.substr(14), otherwise));
    if (text.starts_with("like ")) text.remove_prefix(5);
    if (const Shape* same = shapeNamed(text)) return *same;
    if (const size_t at = text.find("'s dims from the axis on"); at != std::string_view::npos)
      if (const Shape* of = shapeNamed(text.substr(0, at)))
        return Shape(of->begin() + static_cast<std::ptrdiff_t>(
                                       std::min(axis("axis", of->size()), of->size())),
                     of->end());
    if (text.empty() || text.front() != '[' || text.back() != ']') return otherwise;
    text = text.substr(1, text.size() - 2);
    Shape shape;
    if (text.empty()) return shape;
    for (const std::string_view word : split(text, ",")) {
      const Shape dims = dimsOf(word);
      shape.insert(shape.end(), dims.begin(), dims.end());
    }
    return shape;
  }
  Shape dimsOf(std::string_view word) {
    if (const auto number = numberOf(word)) return {*number};
    if (const size_t at = word.find("'s dim "); at != std::string_view::npos)
      if (const Shape* of = shapeNamed(word.substr(0, at)); of && !of->empty())
        return {(*of)[axis(word.substr(at + 7), of->size())]};
    if (const size_t slash = word.find('/'); slash != std::string_view::npos) {
      const Shape whole = dimsOf(word.substr(0, slash));
      return {whole[0] / std::max<int64_t>(1, divisor(word.substr(slash + 1)))};
    }
    const std::string name(word);
    const auto bound = bindings_.find(name);
    if (bound != bindings_.end())
      return endsWith(word, "..") && info_.has(graph::kTraitContraction) && random_.oneIn(4)
                 ? broadcasting(bound->second)
                 : bound->second;
    Shape made;
    if (endsWith(word, "..")) {
      const bool window = info_.has(graph::kTraitWindow);
      const auto spatial = bindings_.find("spatial..");
      if (window && spatial != bindings_.end())
        for (const int64_t dim : spatial->second)
          made.push_back(random_.between(1, std::clamp<int64_t>(dim, 1, 4)));
      else
        made = window || name == "spatial.." ? shapeOf(random_.between(1, 3))
                                             : shapeOf(random_.below(3));
    } else {
      made = {extent()};
      if (info_.attr("group") && random_.oneIn(2)) made[0] *= random_.between(1, 4);
    }
    return bindings_[name] = made;
  }
  /// Binds the names of a pattern to a shape that is given.
  bool match(std::string_view text, const Shape& shape) {
    if (text.front() != '[') return true;
    const auto words = split(text.substr(1, text.size() - 2), ",");
    size_t groups = 0;
    for (const std::string_view word : words) groups += endsWith(word, "..");
    if (shape.size() + groups < words.size() || (groups == 0 && shape.size() != words.size()))
      return false;
    size_t spare = shape.size() + groups - words.size(), at = 0;
    for (const std::string_view word : words) {
      size_t count = 1;
      if (endsWith(word, "..")) {
        count = --groups == 0 ? spare
                              : static_cast<size_t>(random_.below(static_cast<int64_t>(spare) + 1));
        spare -= count;
      }
      bindings_[std::string(word)] = Shape(shape.begin() + static_cast<std::ptrdiff_t>(at),
                                           shape.begin() + static_cast<std::ptrdiff_t>(at + count));
      at += count;
    }
    return true;
  }

  // ---- Attributes ----

  void chooseAttributes() {
    for (const AttrInfo& attr : info_.attrs) {
      const bool defaulted = !attr.required || !attr.defaultText.empty();
      if (defaulted && random_.oneIn(3)) continue;
      if (auto value = attribute(attr))
        draft_.attrs.emplace(std::string(attr.name), std::move(*value));
    }
  }
  int64_t numberIn(std::string_view range) {
    if (range == "> 0") return random_.oneIn(2) ? 1 : random_.between(1, 4);
    if (range == ">= 0") return random_.between(0, 3);
    if (range == "!= 0") return random_.oneIn(2) ? -random_.between(1, 2) : random_.between(1, 3);
    const size_t dots = range.find("..");
    if (dots == std::string_view::npos) return random_.between(-2, 3);
    const auto limit = [&](std::string_view text) {
      if (text == "-rank") return -rank();
      return text == "rank-1" ? rank() - 1 : numberOf(text).value_or(0);
    };
    const int64_t lo = limit(range.substr(0, dots)), hi = limit(range.substr(dots + 2));
    if (lo > hi) return 0;
    return random_.between(lo, std::min(hi, lo + 12));
  }
  std::optional<graph::Attr> attribute(const AttrInfo& attr) {
    switch (attr.type) {
    case AttrType::Bool: return graph::Attr(random_.below(2));
    case AttrType::Int: {
      if (attr.name == "group" && bindings_.count("c")) {
        Ints divisors;
        for (int64_t d = 1; d <= std::max<int64_t>(1, bindings_["c"][0]); ++d)
          if (bindings_["c"][0] % d == 0) divisors.push_back(d);
        return graph::Attr(random_.of(divisors));
      }
      return graph::Attr(numberIn(attr.range));
    }
    case AttrType::Float: {
      static constexpr double kReals[] = {1, 0.5, 2, 0.125, 1e-3, 0.9};
      static constexpr double kSigned[] = {-1, -0.5, 0};
      const bool positive = attr.name == "epsilon" || attr.name == "momentum" || random_.oneIn(2);
      return graph::Attr(positive ? random_.of(kReals) : random_.of(kSigned));
    }
    case AttrType::String: {
      const auto words = split(attr.range, "|");
      return graph::Attr(std::string(random_.of(words)));
    }
    case AttrType::Elem: {
      if (random_.oneIn(2)) return graph::Attr(draft_.operands[0].elem);
      const auto all = elemsOf((1u << kElemCount) - 2);
      return graph::Attr(random_.of(all));
    }
    case AttrType::Ints: return graph::Attr(list(attr));
    case AttrType::Floats: return std::nullopt;
    }
    return std::nullopt;
  }
  Ints list(const AttrInfo& attr) {
    if (attr.range.find("rank") != std::string_view::npos) return axes(attr);
    const auto spatial = bindings_.find("spatial..");
    int64_t count = rank();
    const bool window = info_.has(graph::kTraitWindow) && spatial != bindings_.end();
    if (window)
      count = static_cast<int64_t>(spatial->second.size()) * (attr.name == "pads" ? 2 : 1);
    Ints values;
    for (int64_t i = 0; i < count; ++i) {
      int64_t value = numberIn(attr.range);
      if (window && random_.oneIn(2)) value = attr.range == "> 0" ? 1 : 0;
      if (attr.name == "kernel_shape")
        value = random_.between(1, std::clamp<int64_t>(spatial->second[i], 1, 4));
      values.push_back(value);
    }
    return values;
  }
  /// Dims of x in any order: all of them for a permutation, else some.
  Ints axes(const AttrInfo& attr) {
    Ints all(static_cast<size_t>(rank()));
    std::iota(all.begin(), all.end(), 0);
    for (size_t i = all.size(); i > 1; --i)
      std::swap(all[i - 1], all[random_.below(static_cast<int64_t>(i))]);
    if (!attr.range.starts_with("-rank")) return all;
    all.resize(random_.below(rank() + 1));
    for (int64_t& axis : all)
      if (random_.oneIn(3)) axis -= rank();
    return all;
  }

  // ---- Operands ----

  void addOperand(size_t i) {
    const OperandInfo& record = info_.operands[i];
    if (record.optional && random_.oneIn(2)) return;
    Draft::Operand operand;
    operand.elem = elemOf(record);
    operand.dims = info_.has(graph::kTraitBroadcast) && record.shape.empty()
                       ? broadcasting(common_)
                       : shapeBy(record, anyShape());
    operand.constant = random_.oneIn(3);
    if (record.elems ==
        (1u << static_cast<unsigned>(Elem::i32_) | 1u << static_cast<unsigned>(Elem::i64_)))
      operand.extent = placeCount();
    if (record.elems && record.name == "scale") {
      operand.lo = 0.01;
      operand.hi = 2;
    }
    if (record.name == "zero" && operand.elem == Elem::i32_) operand.hi = 0.5; // ONNX: 0
    draft_.operands[i] = operand;
  }
  Elem elemOf(const OperandInfo& record) {
    for (size_t i = 0; i < info_.operands.size(); ++i)
      if (info_.operands[i].name == record.like) {
        // A draft without its model takes what the model may be.
        if (draft_.operands[i].elem != Elem::none) return draft_.operands[i].elem;
        return random_.of(
            elemsOf(info_.operands[i].elems ? info_.operands[i].elems : (1u << kElemCount) - 2));
      }
    const auto elems = elemsOf(record.elems);
    return random_.oneIn(2) && record.accepts(draft_.operands[0].elem) ? draft_.operands[0].elem
                                                                       : random_.of(elems);
  }
  /// Along which dim of x an operand of places points.
  int64_t placeCount() {
    if (info_.attr("axis") && rank()) return x()[axis("axis", x().size())];
    if (bindings_.count("n")) return bindings_["n"][0];
    return rank() ? x()[0] : 0;
  }
  void addMore() {
    const size_t more = static_cast<size_t>(random_.below(3));
    const OperandInfo& record = info_.operands.back();
    for (size_t i = 0; i < more; ++i) {
      Draft::Operand operand = draft_.operands[0];
      if (!record.shape.empty())
        operand.dims = shapeBy(record, anyShape());
      else if (info_.has(graph::kTraitBroadcast))
        operand.dims = broadcasting(x());
      else if (info_.attr("axis") && rank())
        operand.dims[axis("axis", x().size())] = extent();
      operand.constant = random_.oneIn(3);
      draft_.operands.push_back(operand);
    }
  }

  // ---- What no record says ----

  void set(const char* name, graph::Attr value) { draft_.attrs[name] = std::move(value); }
  void completeByKind(bool isGiven);
  void completeExpand();
  void completeSlice();
  void completeGemm();
  void completeAffine();
  void completePlace();
  void completeExpr();
  void completeIntegerRow();
  void completeRescale();
  void completeBatchMatmul();
  void completeScaledMatmul(bool isGiven);
  void drawScaledTypes();

  /// Another shape of as many elements.
  Shape refactored(int64_t count) {
    if (count == 0) {
      Shape shape = anyShape();
      if (shape.empty()) shape.push_back(0);
      shape[random_.below(static_cast<int64_t>(shape.size()))] = 0;
      return shape;
    }
    Shape shape;
    while (count > 1 || random_.oneIn(4)) {
      Ints divisors;
      for (int64_t d = 1; d <= count; ++d)
        if (count % d == 0) divisors.push_back(d);
      shape.push_back(shape.size() == 4 ? count : random_.of(divisors));
      count /= shape.back();
      if (shape.size() == 5) break;
    }
    return shape;
  }

  const OpInfo& info_;
  Random& random_;
  Draft draft_;
  Shape common_;
  std::map<std::string, Shape> bindings_;
};

/// `isGiven`: the first operand is to stay as it is.
void Maker::completeByKind(bool isGiven) {
  switch (info_.kind) {
  case graph::OpKind::Reshape: set("shape", refactored(*elementCount(x()))); break;
  case graph::OpKind::Expand: completeExpand(); break;
  case graph::OpKind::Slice: completeSlice(); break;
  case graph::OpKind::Gemm: completeGemm(); break;
  case graph::OpKind::Sort:
    set("k", random_.between(0, rank() ? x()[axis("axis", x().size())] : 0));
    break;
  case graph::OpKind::Affine: completeAffine(); break;
  case graph::OpKind::Place: completePlace(); break;
  case graph::OpKind::Expr: completeExpr(); break;
  case graph::OpKind::Rescale: completeRescale(); break;
  case graph::OpKind::BatchMatmul: completeBatchMatmul(); break;
  case graph::OpKind::ScaledMatmul: completeScaledMatmul(isGiven); break;
  case graph::OpKind::SoftmaxInteger:
  case graph::OpKind::LayerNormInteger:
  case graph::OpKind::RmsNormInteger: completeIntegerRow(); break;
  case graph::OpKind::Gather: {
    Draft::Operand& places = draft_.operands[1];
    if (places.constant) places.extent = -places.extent; // a constant place must be one
    break;
  }
  default: break;
  }
}

void Maker::completeExpand() {
  Shape shape = x();
  for (int64_t& dim : shape)
    if (dim == 1) dim = extent();
  if (random_.oneIn(3)) shape.insert(shape.begin(), extent());
  set("shape", broadcasting(shape));
}

void Maker::completeSlice() {
  // How many elements there are from `start` on, in steps of `step`.
  const auto reachable = [](int64_t dim, int64_t start, int64_t step) -> int64_t {
    if (dim == 0) return 0;
    return step > 0 ? (dim - 1 - start) / step + 1 : start / -step + 1;
  };
  Ints starts, counts, steps;
  for (const int64_t dim : x()) {
    steps.push_back(random_.oneIn(2) ? 1 : numberIn("!= 0"));
    starts.push_back(dim ? random_.below(dim) : 0);
    const int64_t most = reachable(dim, starts.back(), steps.back());
    const int64_t least = random_.oneIn(8) ? 0 : (most + 1) / 2;
    counts.push_back(random_.between(least, most));
  }
  set("starts", starts);
  set("counts", counts);
  set("steps", steps);
}

/// The record shows the operands as they are multiplied.
void Maker::completeGemm() {
  const auto transpose = [&](const char* flag, Shape& dims) {
    if (draft_.attrs.count(flag) && std::get<int64_t>(draft_.attrs[flag]))
      std::swap(dims[0], dims[1]);
  };
  transpose("transA", draft_.operands[0].dims);
  transpose("transB", draft_.operands[1].dims);
}

/// A view that stays within the elements of x: the places of its first and last element, relative
/// to its offset, are kept while dims are added.
void Maker::completeAffine() {
  Ints dims, strides;
  int64_t first = 0, last = 0;
  const int64_t count = *elementCount(x());
  for (int64_t i = random_.below(5); i > 0 && count > 0; --i) {
    const int64_t room = count - 1 - (last - first);
    const int64_t dim = random_.between(1, 5);
    const int64_t most = dim > 1 ? room / (dim - 1) : 4;
    dims.push_back(dim);
    strides.push_back(random_.between(-most, most));
    const int64_t reach = (dim - 1) * strides.back();
    (reach < 0 ? first : last) += reach;
  }
  if (count == 0) {
    dims.push_back(0);
    strides.push_back(1);
  }
  set("dims", dims);
  set("strides", strides);
  set("offset", count == 0 ? int64_t(0) : random_.between(-first, count - 1 - last));
}

/// Operands one after the other along the first dim, with room between them.
void Maker::completePlace() {
  auto& operands = draft_.operands;
  Ints offsets, steps;
  const auto span = [&](int64_t d) { return std::max<int64_t>(0, (x()[d] - 1) * steps[d] + 1); };
  Shape dims = x();
  for (int64_t d = 0; d < rank(); ++d) {
    steps.push_back(random_.oneIn(3) ? 2 : 1);
    dims[d] = span(d) + random_.below(3);
  }
  if (rank() == 0) operands.resize(1);
  for (size_t i = 0; i < operands.size(); ++i) {
    operands[i].dims = x();
    if (rank()) offsets.push_back(static_cast<int64_t>(i) * dims[0]);
    for (int64_t d = 1; d < rank(); ++d) offsets.push_back(random_.below(dims[d] - span(d) + 1));
  }
  if (rank()) dims[0] *= static_cast<int64_t>(operands.size());
  set("dims", dims);
  set("offsets", offsets);
  set("steps", steps);
  set("fill", int64_t(1));
  set("value", static_cast<int64_t>(random_.bits() & (elemMask(operands[0].elem) >> 1) &
                                    (operands[0].elem == Elem::bool_)));
}

void Maker::completeExpr() {
  static constexpr const char* kReals[] = {"max(add(v0, v0), 0.0)", "mul(sub(v0, 1.0), v0)",
                                           "neg(min(v0, 2.0))"};
  const Elem elem = draft_.operands[0].elem;
  set("to", elem);
  set("steps", std::string(isFloat(elem) ? random_.of(kReals) : "v0"));
  if (draft_.operands.size() > 1) set("steps", std::string("add(v0, v1)"));
  if (elem == Elem::bool_) set("steps", std::string("select(v0, v0, v0)"));
}

void Maker::completeRescale() {
  auto& operands = draft_.operands;
  const bool wide = elemBits(operands[0].elem) > 32;
  if (wide) { // products have 63 bits
    operands[0].lo = isSigned(operands[0].elem) ? -1e9 : 0;
    operands[0].hi = 1e9;
  }
  for (size_t i = 1; i < operands.size(); ++i) {
    const std::string_view name = info_.operands[i].name;
    if (endsWith(name, "multiplier")) {
      operands[i].lo = 1 << 23;
      operands[i].hi = (1 << 24) - 1;
    }
    if (name == "shift") {
      operands[i].lo = wide ? 30 : 10;
      operands[i].hi = 40;
    }
    if (name == "zero") {
      operands[i].lo = -100;
      operands[i].hi = 100;
    }
  }
  for (const char* name : {"left_shift", "b_left_shift"})
    set(name, wide ? int64_t(0) : random_.below(4));
  if (draft_.attrs.count("clamp_min")) set("clamp_min", random_.between(0, 3));
  if (draft_.attrs.count("clamp_max")) set("clamp_max", random_.between(4, 100));
}

/// Tables are not those of a softmax, only as small as to leave its sums and products 32 bits.
void Maker::completeIntegerRow() {
  const int64_t segments = random_.between(1, 3);
  for (size_t i = 1; i < draft_.operands.size(); ++i) {
    const std::string_view name = info_.operands[i].name;
    Draft::Operand& operand = draft_.operands[i];
    operand.constant = true;
    operand.hi = name == "tables" ? 10 : 1000;
    if (name == "scale" || name == "bias") operand.lo = -1000;
    if (name == "segments") {
      operand.lo = 1;
      operand.hi = 40;
    }
    if (name == "segments" || name == "tables") operand.dims[0] = segments;
  }
  set("to", random_.oneIn(2) ? Elem::i8_ : Elem::u8_);
  set("base", random_.between(0, 1000));
  set("multiplier", random_.between(1 << 23, (1 << 24) - 1));
  set("shift", random_.between(20, 45));
  set("zero", random_.between(-100, 100));
  if (info_.kind == graph::OpKind::SoftmaxInteger) return;
  set("fraction", random_.between(0, 7));
  set("epsilon", random_.between(0, 1000));
  set("normal_shift", random_.between(0, 20));
  const int64_t lowest = draft_.operands[0].elem == Elem::i8_ ? -128 : 0;
  if (info_.kind == graph::OpKind::RmsNormInteger)
    set("x_zero", random_.between(lowest, lowest + 255));
}

/// Only operands of 8 bits have zero points.
void Maker::completeBatchMatmul() {
  auto& operands = draft_.operands;
  const Elem a = operands[0].elem;
  const bool isByte = elemBits(a) == 8;
  if (elemBits(a) > 8) operands.resize(2);
  if (isByte && random_.oneIn(2)) operands[1].elem = random_.oneIn(2) ? Elem::i8_ : Elem::u8_;
  if (isByte) set("to", Elem::i32_);
  if (a == Elem::i16_) {
    operands[1].elem = Elem::i8_;
    set("to", Elem::i64_);
  }
  for (size_t i = 2; i < operands.size(); ++i)
    if (operands[i].elem != Elem::none) operands[i].elem = operands[i - 2].elem;
}

/// a ends in the last block of w, and the scales have one number for each block or broadcast.
void Maker::completeScaledMatmul(bool isGiven) {
  auto& operands = draft_.operands;
  Draft::Operand& a = operands[0];
  Shape& w = operands[1].dims;
  if (isGiven && w[2] > 0) w[1] = (a.dims[1] + w[2] - 1) / w[2];
  if (!isGiven) a.dims[1] = w[1] * w[2] - (w[1] > 0 && w[2] > 1 ? random_.below(w[2]) : 0);
  for (size_t i = 2; i < operands.size(); ++i) {
    const bool isOfA = info_.operands[i].name == "a_scale";
    const bool isZero = info_.operands[i].name == "w_zero";
    operands[i].dims = broadcasting({isOfA ? a.dims[0] : w[0], w[1]});
    if (isZero) continue;
    operands[i].lo = 0.01;
    operands[i].hi = 2;
  }
  drawScaledTypes();
}

/// Types that have a product together, drawn until they do.
void Maker::drawScaledTypes() {
  constexpr int kMostDraws = 100;
  auto& operands = draft_.operands;
  const auto drawn = [&](size_t i) {
    return operands[i].elem == Elem::none ? Elem::none
                                          : random_.of(elemsOf(info_.operands[i].elems));
  };
  static constexpr Elem kSums[] = {Elem::f32_, Elem::f16_, Elem::bf16_};
  ScaledProductTypes types;
  types.a = operands[0].elem;
  for (int draws = 0; draws == 0 || (draws < kMostDraws && !whyNoScaledProduct(types).empty());
       ++draws) {
    types.isDynamic = random_.oneIn(2);
    types.w = drawn(1);
    types.wScale = drawn(2);
    types.wZero = drawn(3);
    types.aScale = drawn(4);
    types.y = random_.of(kSums);
  }
  set("fn", std::string(types.isDynamic ? "dynamic" : "exact"));
  set("to", types.y);
  operands[1].elem = types.w;
  operands[2].elem = types.wScale;
  operands[3].elem = types.wZero;
  operands[4].elem = types.aScale;
}

std::vector<uint64_t> cornersOf(Elem elem) {
  if (elem == Elem::bool_) return {0, 1};
  std::vector<uint64_t> corners{
      0, 1, elemMask(elem), elemMask(elem) >> 1, (elemMask(elem) >> 1) + 1, 2};
  if (!isFloat(elem)) return corners;
  for (const double value : {1.0, -1.0, 0.5, 2.5, -1.5, std::numeric_limits<double>::infinity(),
                             -std::numeric_limits<double>::infinity(), std::nan("")})
    corners.push_back(fromReal(elem, value));
  const uint64_t infinity = fromReal(elem, std::numeric_limits<double>::infinity());
  corners.push_back(infinity - 1);                                 // the largest number
  corners.push_back((infinity - 1) | ((elemMask(elem) >> 1) + 1)); // and the lowest
  return corners;
}

uint64_t calm(Elem elem, Random& random) {
  if (isFloat(elem)) return fromReal(elem, random.unit() * 4 - 2);
  if (elem == Elem::bool_) return random.bits() & 1;
  return static_cast<uint64_t>(isSigned(elem) ? random.between(-8, 7) : random.between(0, 9)) &
         elemMask(elem);
}

uint64_t element(Elem elem, Data data, const std::vector<uint64_t>& corners, Random& random) {
  switch (data) {
  case Data::calm: break;
  case Data::steps:
    if (isFloat(elem)) {
      const int divisor = random.oneIn(4) ? 2 : 1;
      return fromReal(elem, static_cast<double>(random.between(-8, 8)) / divisor);
    }
    break;
  case Data::corners: return random.oneIn(4) ? random.of(corners) : calm(elem, random);
  case Data::wide:
    if (isFloat(elem)) {
      const auto exponent = static_cast<int>(random.between(-12, elemBits(elem) == 8 ? 6 : 12));
      return fromReal(elem, std::ldexp(random.unit() * 2 - 1, exponent));
    }
    [[fallthrough]];
  case Data::bits: return elem == Elem::bool_ ? random.bits() & 1 : random.bits() & elemMask(elem);
  case Data::extremes: return random.of(corners);
  }
  return calm(elem, random);
}

} // namespace

std::optional<Draft> draftOf(const OpInfo& info, Elem elem, const Shape* first, Random& random) {
  return Maker(info, random).make(elem, first);
}

bool isDrafted(const graph::OpInfo& info) { return info.kind != graph::OpKind::Custom; }

std::vector<Elem> firstElems(const OpInfo& info) {
  if (info.operands.empty()) return {Elem::none};
  return elemsOf(info.operands[0].elems);
}

Tensor randomData(Elem elem, const Shape& dims, Data data, Random& random) {
  Tensor tensor = orThrow(Tensor::zeros(elem, dims));
  const std::vector<uint64_t> corners = cornersOf(elem);
  for (int64_t i = 0; i < tensor.count(); ++i)
    storeElement(elem, tensor.bytes.mutableData(), i, element(elem, data, corners, random));
  return tensor;
}

Tensor dataOf(const Draft::Operand& operand, Data data, Random& random) {
  const bool places = operand.extent != 0;
  if (!places && operand.lo == operand.hi)
    return randomData(operand.elem, operand.dims, data, random);
  Tensor tensor = orThrow(Tensor::zeros(operand.elem, operand.dims));
  for (int64_t i = 0; i < tensor.count(); ++i) {
    const int64_t extent = std::abs(operand.extent), beyond = operand.extent > 0 && random.oneIn(4);
    uint64_t bits = 0;
    if (places)
      bits = static_cast<uint64_t>(random.between(-extent - beyond, extent - 1 + beyond));
    else if (isFloat(operand.elem))
      bits = fromReal(operand.elem, operand.lo + random.unit() * (operand.hi - operand.lo));
    else
      bits = static_cast<uint64_t>(
          random.between(static_cast<int64_t>(operand.lo), static_cast<int64_t>(operand.hi)));
    storeElement(operand.elem, tensor.bytes.mutableData(), i, bits & elemMask(operand.elem));
  }
  return tensor;
}

Result<Recipe> recipeOf(const Draft& draft, Data data, Random& random) {
  constexpr int64_t kLargest = 3000;
  Recipe recipe;
  Recipe::Step step{draft.kind, {}, draft.attrs, {}};
  for (const Draft::Operand& operand : draft.operands) {
    if (operand.elem == Elem::none) {
      step.operands.push_back(Recipe::kAbsent);
      continue;
    }
    if (elementCount(operand.dims).value_or(kLargest + 1) > kLargest)
      return badModel("a large operand");
    step.operands.push_back(recipe.addLeaf(dataOf(operand, data, random), operand.constant));
  }
  if (std::ranges::all_of(recipe.leaves, &Recipe::Leaf::constant) && !recipe.leaves.empty())
    recipe.leaves[0].constant = false;
  for (int i = 0; i < draft.results; ++i) step.results.push_back(recipe.nextId++);
  recipe.outputs = step.results;
  recipe.steps.push_back(std::move(step));
  CDL_ASSIGN(const graph::Graph graph, recipe.build());
  for (const graph::Value* output : graph.outputs())
    if (output->type.count() > kLargest) return badModel("a large result");
  return recipe;
}

} // namespace candela::conformance::random
