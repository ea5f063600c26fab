#include "core/compiler/import/stablehlo/region_meaning.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "core/support/float_bits.h"

namespace candela::import::stablehlo {
namespace {

struct NamedJoin {
  std::string_view operation;
  Join join;
};
constexpr NamedJoin kJoins[] = {
    {"stablehlo.add", Join::add},         {"stablehlo.multiply", Join::multiply},
    {"stablehlo.maximum", Join::maximum}, {"stablehlo.minimum", Join::minimum},
    {"stablehlo.and", Join::and_},        {"stablehlo.or", Join::or_},
    {"stablehlo.xor", Join::xor_},
};

constexpr size_t kMostTried = 100; // operations of a region that is tried out

/// A region tried out on numbers. Every operation that it knows is one on single elements.
class Trial {
public:
  explicit Trial(const Region& region) : region_(region) {}

  /// What it returns; nullopt where it has an operation that is not known here.
  std::optional<std::vector<double>> run(std::span<const double> arguments) {
    values_.clear();
    if (arguments.size() != region_.arguments.size() || region_.operations.size() > kMostTried)
      return {};
    for (size_t i = 0; i < arguments.size(); ++i) values_[region_.arguments[i].name] = arguments[i];
    for (const Operation& op : region_.operations) {
      const std::optional<std::vector<double>> x = operandsOf(op);
      if (!x) return {};
      if (op.name == "stablehlo.return") return x;
      const std::optional<double> y = apply(op, *x);
      if (!y || op.results.size() != 1) return {};
      values_[op.results[0]] = *y;
    }
    return {};
  }

private:
  std::optional<std::vector<double>> operandsOf(const Operation& op) const {
    std::vector<double> x;
    for (const std::string& name : op.operands) {
      const auto found = values_.find(name);
      if (found == values_.end()) return {};
      x.push_back(found->second);
    }
    return x;
  }

  static std::optional<double> constantOf(const Operation& op) {
    const auto found = op.attributes.find("value");
    if (found == op.attributes.end() || found->second.kind != Attribute::Kind::elements) return {};
    const Tensor& tensor = found->second.elements;
    if (tensor.count() != 1) return {};
    if (!isFloat(tensor.elem)) return static_cast<double>(tensor.toInts()[0]);
    return toReal(tensor.elem, loadElement(tensor.elem, tensor.bytes.data(), 0));
  }

  static std::optional<double> compared(const Operation& op, double a, double b) {
    const std::string direction = op.word("comparison_direction", 0);
    if (direction == "EQ") return a == b;
    if (direction == "NE") return a != b;
    if (direction == "LT") return a < b;
    if (direction == "LE") return a <= b;
    if (direction == "GT") return a > b;
    if (direction == "GE") return a >= b;
    return {};
  }

  static std::optional<double> apply(const Operation& op, const std::vector<double>& x) {
    if (op.name == "stablehlo.constant") return constantOf(op);
    if (op.name == "stablehlo.compare" && x.size() == 2) return compared(op, x[0], x[1]);
    if (op.name == "stablehlo.select" && x.size() == 3) return x[0] != 0 ? x[1] : x[2];
    if (op.name == "stablehlo.not" && x.size() == 1) return x[0] == 0;
    if (op.name == "stablehlo.convert" && x.size() == 1) return x[0];
    if (op.name == "stablehlo.negate" && x.size() == 1) return -x[0];
    const std::optional<Join> join = joinNamed(op.name);
    if (!join || x.size() != 2) return {};
    switch (*join) {
    case Join::and_: return x[0] != 0 && x[1] != 0;
    case Join::or_: return x[0] != 0 || x[1] != 0;
    case Join::xor_: return (x[0] != 0) != (x[1] != 0);
    case Join::maximum: return std::max(x[0], x[1]);
    case Join::minimum: return std::min(x[0], x[1]);
    default: return {};
    }
  }

  const Region& region_;
  std::map<std::string, double> values_;
};

constexpr double kTried[] = {-INFINITY, -2, 0, 1, 3, INFINITY};

const Operation* producerOf(const Region& region, const std::string& value) {
  for (const Operation& op : region.operations)
    if (std::ranges::count(op.results, value) > 0) return &op;
  return nullptr;
}

bool choosesExtreme(Trial& trial, bool isMaximum) {
  for (const double a : kTried)
    for (const double b : kTried)
      for (const double index : {4.0, 7.0}) {
        const double other = index == 4 ? 7 : 4;
        const double arguments[] = {a, index, b, other};
        const auto chosen = trial.run(arguments);
        if (!chosen || chosen->size() != 2) return false;
        if (a == b && index > other) continue; // which of equal ones comes first is not said
        const bool isFirst = isMaximum ? a >= b : a <= b;
        if ((*chosen)[0] != (isFirst ? a : b) || (*chosen)[1] != (isFirst ? index : other))
          return false;
      }
  return true;
}

/// Whether the comparator is that of the first `keys` pairs, in the order of a dictionary.
bool sortsBy(Trial& trial, size_t pairs, const Order& order) {
  constexpr double kFew[] = {-1, 0, 2};
  const size_t varied = std::min(pairs, order.keys + 1); // those behind must not count
  size_t combinations = 1;
  for (size_t i = 0; i < 2 * varied; ++i) combinations *= std::size(kFew);
  for (size_t combination = 0; combination < combinations; ++combination) {
    std::vector<double> arguments(2 * pairs, 0);
    size_t rest = combination;
    for (size_t i = 0; i < 2 * varied; ++i) {
      arguments[i] = kFew[rest % std::size(kFew)];
      rest /= std::size(kFew);
    }
    bool isBefore = false;
    for (size_t key = 0; key < order.keys; ++key) {
      const double a = arguments[2 * key], b = arguments[2 * key + 1];
      if (a == b) continue;
      isBefore = order.isRising ? a < b : a > b;
      break;
    }
    const auto said = trial.run(arguments);
    if (!said || said->size() != 1 || ((*said)[0] != 0) != isBefore) return false;
  }
  return true;
}

} // namespace

std::optional<Join> joinNamed(std::string_view operation) {
  const auto* found = std::ranges::find(kJoins, operation, &NamedJoin::operation);
  if (found == std::end(kJoins)) return {};
  return found->join;
}

std::optional<Join> joinOf(const Region& region, size_t index) {
  const size_t inputs = region.arguments.size() / 2;
  if (region.operations.empty() || index >= inputs) return {};
  const Operation& last = region.operations.back();
  if (last.operands.size() != inputs) return {};
  const std::string& a = region.arguments[index].name;
  const std::string& b = region.arguments[index + inputs].name;
  if (last.operands[index] == b) return Join::second;
  const Operation* made = producerOf(region, last.operands[index]);
  if (!made || made->operands.size() != 2) return {};
  const bool isStraight = made->operands[0] == a && made->operands[1] == b;
  const bool isSwapped = made->operands[0] == b && made->operands[1] == a;
  if (!isStraight && !isSwapped) return {};
  return joinNamed(made->name);
}

std::optional<Join> extremeOf(const Region& region) {
  if (region.arguments.size() != 4) return {};
  Trial trial(region);
  if (choosesExtreme(trial, true)) return Join::maximum;
  if (choosesExtreme(trial, false)) return Join::minimum;
  return {};
}

std::optional<Join> preferenceOf(const Region& region) {
  Trial trial(region);
  const auto prefers = [&](double a, double b) {
    const double arguments[] = {a, b};
    const auto said = trial.run(arguments);
    return said && said->size() == 1 && (*said)[0] != 0;
  };
  bool isMaximum = true, isMinimum = true;
  for (const double a : kTried)
    for (const double b : kTried) {
      isMaximum = isMaximum && prefers(a, b) == (a >= b);
      isMinimum = isMinimum && prefers(a, b) == (a <= b);
    }
  if (isMaximum) return Join::maximum;
  if (isMinimum) return Join::minimum;
  return {};
}

std::optional<Order> orderOf(const Region& region) {
  constexpr size_t kMostKeys = 3; // all combinations are tried
  const size_t pairs = region.arguments.size() / 2;
  if (pairs == 0 || region.arguments.size() % 2 != 0) return {};
  Trial trial(region);
  for (size_t keys = 1; keys <= std::min(pairs, kMostKeys); ++keys)
    for (const bool isRising : {true, false})
      if (sortsBy(trial, pairs, {keys, isRising})) return Order{keys, isRising};
  return {};
}

} // namespace candela::import::stablehlo
