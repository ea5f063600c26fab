#include <algorithm>
#include <map>
#include <set>

#include "core/compiler/import/term.h"

/// Einsum as diagonals, sums, transposes and batched products, two operands at a time.
namespace candela::import {
namespace {

/// One character for each dim: a letter, or for dims of an ellipsis their number from the end, from
/// 1.
using Labels = std::string;
constexpr size_t kMostOperands = 64, kMostEllipsis = 32; // below 'A'

struct Operand {
  Term value;
  Labels labels;
  bool has(char label) const { return labels.find(label) != Labels::npos; }
  int64_t extent(char label) const { return value.dim(static_cast<int64_t>(labels.find(label))); }
};

struct Equation {
  std::vector<std::string> terms; ///< without spaces
  std::optional<std::string> result;
};

Equation parse(const std::string& text) {
  Equation equation;
  std::string side;
  for (const char c : text)
    if (c != ' ') side += c;
  if (const size_t arrow = side.find("->"); arrow != std::string::npos) {
    equation.result = side.substr(arrow + 2);
    side.resize(arrow);
  }
  size_t from = 0;
  for (size_t comma; (comma = side.find(',', from)) != std::string::npos; from = comma + 1)
    equation.terms.push_back(side.substr(from, comma - from));
  equation.terms.push_back(side.substr(from));
  return equation;
}

bool isLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/// A term with its ellipsis written out as `dims` labels; nullopt: it has none.
Labels expand(const std::string& term, std::optional<size_t> dims) {
  Labels labels;
  for (size_t i = 0; i < term.size(); ++i) {
    if (isLetter(term[i])) {
      labels += term[i];
      continue;
    }
    if (term.compare(i, 3, "...") != 0 || !dims)
      need(badModel("equation has '{}' in term '{}'", term.substr(i, 3), term));
    for (size_t left = *dims; left > 0; --left) labels += static_cast<char>(left);
    dims.reset();
    i += 2;
  }
  return labels;
}

/// Each label once: where it was there twice, the diagonal.
Operand diagonal(const Term& x, const Labels& labels) {
  Labels once;
  Shape dims;
  std::vector<int64_t> strides;
  int64_t stride = 1;
  for (size_t i = labels.size(); i-- > 0;
       stride *= std::max<int64_t>(1, x.dim(static_cast<int64_t>(i)))) {
    const int64_t extent = x.dim(static_cast<int64_t>(i));
    const size_t found = once.find(labels[i]);
    if (found == Labels::npos) {
      once += labels[i];
      dims.push_back(extent);
      strides.push_back(stride);
      continue;
    }
    if (dims[found] != extent)
      need(
          badModel("'{}' names dims of {} and {} of {}", labels[i], extent, dims[found], x.text()));
    strides[found] += stride;
  }
  if (once.size() == labels.size()) return {x, labels};
  for (auto* list : {&dims, &strides}) std::ranges::reverse(*list);
  std::ranges::reverse(once);
  return {make(OpKind::Affine, {x}, {{"offset", int64_t(0)}, {"dims", dims}, {"strides", strides}}),
          once};
}

/// Summed over the dims whose labels are not kept.
Operand sumOut(const Operand& x, const std::set<char>& kept) {
  std::vector<int64_t> axes;
  Labels labels;
  for (size_t i = 0; i < x.labels.size(); ++i)
    if (kept.count(x.labels[i]))
      labels += x.labels[i];
    else
      axes.push_back(static_cast<int64_t>(i));
  if (axes.empty()) return x;
  return {reduce(OpKind::ReduceSum, x.value, axes, false), labels};
}

Term ordered(const Operand& x, const Labels& order) {
  std::vector<int64_t> perm;
  for (const char label : order) perm.push_back(static_cast<int64_t>(x.labels.find(label)));
  return x.value.transpose(perm);
}

/// What two operands share and keep is a batch, what they share and do not keep is summed over.
struct Pairing {
  Labels batch, summed, left, right;
  Pairing(const Operand& a, const Operand& b, const std::set<char>& kept) {
    for (const char label : a.labels) {
      Labels& shared = kept.count(label) ? batch : summed;
      (b.has(label) ? shared : left) += label;
    }
    for (const char label : b.labels)
      if (!a.has(label)) right += label;
  }
};

/// Elements of their product, as far as that is a number.
double sizeOf(const Operand& a, const Operand& b, const std::set<char>& kept) {
  double size = 1;
  for (const Operand* x : {&a, &b})
    for (const char label : x->labels)
      if (kept.count(label) && (x == &a || !a.has(label)))
        size *= static_cast<double>(x->extent(label));
  return size;
}

Operand contract(Operand a, Operand b, const std::set<char>& kept) {
  const auto keptWith = [&](const Operand& other) {
    std::set<char> all = kept;
    all.insert(other.labels.begin(), other.labels.end());
    return all;
  };
  a = sumOut(a, keptWith(b));
  b = sumOut(b, keptWith(a));
  const Pairing pairing(a, b, kept);
  Shape shape;
  const auto countOf = [&](const Operand& x, const Labels& labels, bool isResult) {
    Shape dims;
    for (const char label : labels) dims.push_back(x.extent(label));
    if (isResult) shape.insert(shape.end(), dims.begin(), dims.end());
    const auto count = elementCount(dims);
    if (!count)
      need(badModel("a product of {} and {} is impossibly large", a.value.text(), b.value.text()));
    return *count;
  };
  const int64_t batch = countOf(a, pairing.batch, true), rows = countOf(a, pairing.left, true);
  const int64_t columns = countOf(b, pairing.right, true),
                depth = countOf(a, pairing.summed, false);
  const Term left =
      ordered(a, pairing.batch + pairing.left + pairing.summed).reshape({batch, rows, depth});
  const Term right =
      ordered(b, pairing.batch + pairing.summed + pairing.right).reshape({batch, depth, columns});
  const Term product = pairing.summed.empty() ? left * right : matmul(left, right);
  return {product.reshape(shape), pairing.batch + pairing.left + pairing.right};
}

std::vector<Operand> readOperands(const NodeContext& context, const Equation& equation,
                                  size_t& ellipsis) {
  if (equation.terms.size() != context.inputs().size())
    need(badModel("equation has {} terms but {} operands", equation.terms.size(),
                  context.inputs().size()));
  if (context.inputs().size() > kMostOperands)
    need(failure(Code::unsupported, "{} operands, at most {}", context.inputs().size(),
                 kMostOperands));
  std::vector<Operand> operands;
  std::map<char, int64_t> extents;
  for (size_t i = 0; i < equation.terms.size(); ++i) {
    if (!context.input(i)) need(badModel("input {} is missing", i));
    const Term x = termOf(context, i);
    const std::string& term = equation.terms[i];
    const auto letters = static_cast<int64_t>(std::ranges::count_if(term, isLetter));
    const bool isOpen = term.find('.') != std::string::npos;
    if (isOpen ? x.rank() < letters : x.rank() != letters)
      need(badModel("term '{}' names {} dims of {}", term, letters, x.text()));
    const auto dims = static_cast<size_t>(x.rank() - letters);
    if (dims > kMostEllipsis) need(failure(Code::unsupported, "an ellipsis of {} dims", dims));
    ellipsis = std::max(ellipsis, dims);
    operands.push_back(diagonal(x, expand(term, isOpen ? std::optional(dims) : std::nullopt)));
    for (const char label : operands.back().labels) {
      const int64_t extent = operands.back().extent(label);
      const auto [at, isNew] = extents.emplace(label, extent);
      if (isNew || at->second == 1)
        at->second = extent;
      else if (extent != 1 && extent != at->second)
        need(badModel("term '{}': dim of {}, another term says {}", term, extent, at->second));
    }
  }
  // A dim of 1 that meets a longer one broadcasts: it is as if it were not there.
  for (Operand& x : operands) {
    Labels labels;
    Shape dims;
    for (const char label : x.labels)
      if (x.extent(label) == extents[label]) {
        labels += label;
        dims.push_back(x.extent(label));
      }
    x = {x.value.reshape(dims), labels};
  }
  return operands;
}

Status importEinsum(NodeContext& context) {
  const Equation equation = parse(attrOf<std::string>(context, "equation", ""));
  size_t ellipsis = 0;
  std::vector<Operand> operands = readOperands(context, equation, ellipsis);
  Labels result;
  if (equation.result) {
    const bool isOpen = equation.result->find('.') != std::string::npos;
    if (!isOpen && ellipsis > 0)
      return badModel("the result leaves out the ellipsis of {} dims", ellipsis);
    result = expand(*equation.result, isOpen ? std::optional(ellipsis) : std::nullopt);
  } else {
    std::map<char, int> times;
    for (const std::string& term : equation.terms)
      for (const char c : term)
        if (isLetter(c)) ++times[c];
    result = expand("...", ellipsis);
    for (const auto& [letter, count] : times)
      if (count == 1) result += letter;
  }
  const std::set<char> wanted(result.begin(), result.end());
  if (wanted.size() != result.size())
    return badModel("result '{}' names a dim twice", *equation.result);
  for (const char label : result)
    if (std::ranges::none_of(operands, [&](const Operand& x) { return x.has(label); }))
      return badModel("'{}' of the result is in no term", label);

  while (operands.size() > 1) {
    // Of all pairs the one whose product is smallest.
    size_t first = 0, second = 1;
    double least = -1;
    const auto keptBeside = [&](size_t i, size_t j) {
      std::set<char> kept = wanted;
      for (size_t k = 0; k < operands.size(); ++k)
        if (k != i && k != j) kept.insert(operands[k].labels.begin(), operands[k].labels.end());
      return kept;
    };
    for (size_t i = 0; i < operands.size() && operands.size() > 2; ++i)
      for (size_t j = i + 1; j < operands.size(); ++j)
        if (const double size = sizeOf(operands[i], operands[j], keptBeside(i, j));
            least < 0 || size < least) {
          least = size;
          first = i;
          second = j;
        }
    operands[first] = contract(operands[first], operands[second], keptBeside(first, second));
    operands.erase(operands.begin() + static_cast<ptrdiff_t>(second));
  }
  return context.set(ordered(sumOut(operands.front(), wanted), result));
}

constexpr Operator kEinsumOperators[] = {
    {"Einsum", 1, -1, 1, importEinsum},
};

} // namespace

std::span<const Operator> einsumOperators() { return kEinsumOperators; }

} // namespace candela::import
