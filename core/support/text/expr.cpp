#include "core/support/text/expr.h"

#include <algorithm>
#include <map>

#include "core/support/kinds.h"
#include "core/support/text/literal.h"
#include "core/support/text/scan.h"

namespace candela::text {
namespace {

/// The function that a name stands for, without operands.
std::optional<ExprStep> parseStep(std::string_view name) {
  ExprStep step;
  if (name == "select") {
    step.kind = CDL_KIND_SELECT;
    return step;
  }
  for (const uint16_t kind : {CDL_KIND_UNARY, CDL_KIND_BINARY, CDL_KIND_COMPARE}) {
    if (const auto fn = parseFn(kind, name)) {
      step.kind = kind;
      step.fn = *fn;
      return step;
    }
  }
  if (name.starts_with("rescale_")) {
    const auto elem = parseElem(name.substr(8));
    if (!elem || !isRescaleStep(*elem)) return std::nullopt;
    step.kind = CDL_KIND_RESCALE;
    step.to = *elem;
    step.low = static_cast<int32_t>(integerRange(*elem).lowest);
    step.high = static_cast<int32_t>(integerRange(*elem).highest);
    return step;
  }
  if (!name.starts_with("convert_")) return std::nullopt;
  name.remove_prefix(8);
  step.kind = CDL_KIND_CONVERT;
  if (name.ends_with("_saturate")) {
    step.saturate = true;
    name.remove_suffix(9);
  }
  if (const size_t mode = name.find('_'); mode != std::string_view::npos) {
    const auto fn = parseFn(CDL_KIND_CONVERT, name.substr(mode + 1));
    if (!fn) return std::nullopt;
    step.fn = *fn;
    name = name.substr(0, mode);
  }
  const auto elem = parseElem(name);
  if (!elem) return std::nullopt;
  step.to = *elem;
  return step;
}

/// v12 -> 12.
std::optional<uint16_t> parseView(std::string_view name) {
  return name.size() <= 5 && name.starts_with('v') ? parseNumber<uint16_t>(name.substr(1))
                                                   : std::nullopt;
}

class Parser {
public:
  explicit Parser(TokenStream& in) : in_(in) {}

  ExprSteps parse() {
    while (in_.at(TokenKind::identifier) && in_.peek(1).is(TokenKind::punct, "=")) {
      const Token name = in_.take();
      in_.take();
      if (named_.count(name.text) || name.text == "acc" || parseView(name.text))
        in_.fail(name, "'{}' is already something else", name.text);
      const uint16_t step = call(0).index;
      in_.expect(";");
      named_[name.text] = step;
    }
    call(0);
    return std::move(steps_);
  }

private:
  ExprArg argument(int depth) {
    const Token token = in_.peek();
    ExprArg arg;
    if (token.kind == TokenKind::integer || token.kind == TokenKind::real) {
      arg.source = ExprArg::Source::literal;
    } else if (token.kind != TokenKind::identifier) {
      in_.fail(token, "expected an operand but found {}", token.shown());
    } else if (in_.peek(1).is(TokenKind::punct, "(")) {
      return call(depth);
    } else if (token.text == "acc") {
      arg.source = ExprArg::Source::acc;
    } else if (const auto view = parseView(token.text)) {
      arg.index = *view;
    } else if (const auto step = named_.find(token.text); step != named_.end()) {
      arg.source = ExprArg::Source::step;
      arg.index = step->second;
    } else if (token.text == "inf" || token.text == "nan" || token.text == "true" ||
               token.text == "false") {
      arg.source = ExprArg::Source::literal;
    } else {
      in_.fail(token, "unknown operand '{}'", token.text);
    }
    in_.take();
    if (arg.source == ExprArg::Source::literal) arg.literal = token.text;
    return arg;
  }

  ExprArg call(int depth) {
    const Token name = in_.expect(TokenKind::identifier, "a function");
    auto step = parseStep(name.text);
    if (!step) in_.fail(name, "unknown function '{}'", name.text);
    // Every open call becomes a step, so the limit on steps bounds the recursion too.
    if (depth >= CDL_MAX_STEPS) in_.fail(name, "more than {} steps", CDL_MAX_STEPS);
    in_.list("(", ")", [&] { step->args.push_back(argument(depth + 1)); });
    if (step->kind == CDL_KIND_RESCALE) takeLimits(*step, name);
    if (const size_t count = cdl_kind_facts(step->kind)->min_inputs; step->args.size() != count)
      in_.fail(name, "{} takes {} operands, not {}", name.text, count, step->args.size());
    if (steps_.size() >= CDL_MAX_STEPS) in_.fail(name, "more than {} steps", CDL_MAX_STEPS);
    steps_.push_back(std::move(*step));
    return {ExprArg::Source::step, static_cast<uint16_t>(steps_.size() - 1), ""};
  }

  /// Two literals behind the operands of a RESCALE.
  void takeLimits(ExprStep& step, const Token& name) {
    if (step.args.size() != 6) return;
    int32_t* const limits[] = {&step.low, &step.high};
    for (size_t i = 0; i < 2; ++i) {
      const ExprArg& arg = step.args[4 + i];
      const auto limit =
          arg.source == ExprArg::Source::literal ? parseNumber<int32_t>(arg.literal) : std::nullopt;
      if (!limit) in_.fail(name, "{}: limit {} is no number of 32 bits", name.text, i + 1);
      *limits[i] = *limit;
    }
    step.args.resize(4);
  }

  TokenStream& in_;
  ExprSteps steps_;
  std::map<std::string, uint16_t, std::less<>> named_;
};

/// Whether reading the nested form gives the steps in the same order: each step but the last is
/// used once, and operands stand right before their user.
bool isTree(std::span<const ExprStep> steps) {
  std::vector<size_t> stack;
  for (size_t i = 0; i < steps.size(); ++i) {
    const auto& args = steps[i].args;
    for (size_t a = args.size(); a-- > 0;) {
      if (args[a].source != ExprArg::Source::step) continue;
      if (stack.empty() || stack.back() != args[a].index) return false;
      stack.pop_back();
    }
    stack.push_back(i);
  }
  return stack.size() == 1;
}

std::string stepText(std::span<const ExprStep> steps, size_t index, bool nested) {
  std::string out = exprFnName(steps[index]) + "(";
  for (size_t a = 0; a < steps[index].args.size(); ++a) {
    const ExprArg& arg = steps[index].args[a];
    if (a) out += ", ";
    switch (arg.source) {
    case ExprArg::Source::view: out += fmt::format("v{}", arg.index); break;
    case ExprArg::Source::acc: out += "acc"; break;
    case ExprArg::Source::literal: out += arg.literal; break;
    case ExprArg::Source::step:
      out += nested ? stepText(steps, arg.index, true) : fmt::format("t{}", arg.index);
      break;
    }
  }
  const ExprStep& step = steps[index];
  const bool isLimited =
      step.kind == CDL_KIND_RESCALE &&
      (step.low != integerRange(step.to).lowest || step.high != integerRange(step.to).highest);
  return isLimited ? fmt::format("{}, {}, {})", out, step.low, step.high) : out + ")";
}

} // namespace

bool isRescaleStep(Elem to) {
  return isInteger(to) && elemBits(to) >= 8 && elemBits(to) <= (isSigned(to) ? 32 : 16);
}

ExprSteps parseExpr(TokenStream& in) { return Parser(in).parse(); }

Result<ExprSteps> parseExpr(std::string_view text) {
  Diagnostics diagnostics;
  TokenStream in(text, "", diagnostics);
  ExprSteps steps;
  if (in.parseAll("expression", [&] { steps = parseExpr(in); })) return steps;
  const Diagnostic& first = diagnostics.list().front();
  return badModel("{} at character {}", first.message, first.location.column);
}

std::string exprFnName(const ExprStep& step) {
  if (step.kind == CDL_KIND_SELECT) return "select";
  if (step.kind == CDL_KIND_RESCALE) return fmt::format("rescale_{}", elemName(step.to));
  if (step.kind != CDL_KIND_CONVERT) return std::string(fnName(step.kind, step.fn));
  std::string name = fmt::format("convert_{}", elemName(step.to));
  if (step.fn) name += fmt::format("_{}", fnName(step.kind, step.fn));
  if (step.saturate) name += "_saturate";
  return name;
}

std::string exprText(std::span<const ExprStep> steps) {
  CDL_CHECK(!steps.empty());
  if (isTree(steps)) return stepText(steps, steps.size() - 1, true);
  std::string out;
  for (size_t i = 0; i + 1 < steps.size(); ++i)
    out += fmt::format("t{} = {}; ", i, stepText(steps, i, false));
  return out + stepText(steps, steps.size() - 1, false);
}

bool hasMeaning(uint16_t kind, uint16_t fn, Elem elem) {
  const bool number = isFloat(elem) || isInteger(elem);
  switch (kind) {
  case CDL_KIND_UNARY:
    if (fn == CDL_UNARY_ABS) return number;
    if (fn == CDL_UNARY_NEG) return isFloat(elem) || isSigned(elem);
    return isFloat(elem);
  case CDL_KIND_BINARY:
    switch (fn) {
    case CDL_BINARY_AND:
    case CDL_BINARY_OR:
    case CDL_BINARY_XOR: return !isFloat(elem);
    case CDL_BINARY_SHL:
    case CDL_BINARY_SHR: return isInteger(elem);
    default: return number;
    }
  default: return true;
  }
}

namespace {

/// `args`: Elem::none for literals.
Status typeRescale(const ExprStep& step, std::span<const Elem> args) {
  const std::string name = exprFnName(step);
  if (std::ranges::count(args, Elem::none))
    return badModel("{} takes no literals but its limits", name);
  if (!isInteger(args[0]) || elemBits(args[0]) < 8 || args[0] == Elem::u64_)
    return badModel("{} of {}", name, elemName(args[0]));
  for (size_t a = 1; a < args.size(); ++a)
    if (args[a] != Elem::i32_)
      return badModel("operand {} of {} is {}, not i32", a, name, elemName(args[a]));
  const IntegerRange range = integerRange(step.to);
  if (step.low < range.lowest || step.high > range.highest || step.low > step.high)
    return badModel("{} of limits {} .. {}", name, step.low, step.high);
  return Status::ok();
}

/// The type of a step whose operands are of type `common`.
Elem resultOf(const ExprStep& step, Elem common) {
  if (step.kind == CDL_KIND_COMPARE) return Elem::bool_;
  return step.kind == CDL_KIND_CONVERT ? step.to : common;
}

} // namespace

Result<ExprTypes> typeExpr(std::span<const ExprStep> steps, std::span<const Elem> views, Elem acc) {
  ExprTypes types;
  for (const ExprStep& step : steps) {
    std::vector<Elem> args;
    for (const ExprArg& arg : step.args) {
      Elem elem = Elem::none;
      if (arg.source == ExprArg::Source::view) {
        if (arg.index >= views.size())
          return badModel("v{} but only {} operands", arg.index, views.size());
        elem = views[arg.index];
      } else if (arg.source == ExprArg::Source::acc) {
        if (acc == Elem::none) return badModel("no accumulator here");
        elem = acc;
      } else if (arg.source == ExprArg::Source::step) {
        if (arg.index >= types.steps.size())
          return badModel("step {} is used before it is computed", arg.index);
        elem = types.steps[arg.index];
      }
      args.push_back(elem);
    }
    const std::string name = exprFnName(step);
    if (step.kind == CDL_KIND_RESCALE) {
      CDL_TRY(typeRescale(step, args));
      types.steps.push_back(step.to);
      types.args.push_back(std::move(args));
      continue;
    }
    // The operands that must be of one type; a literal among them takes it.
    const size_t first = step.kind == CDL_KIND_SELECT ? 1 : 0;
    if (first && args[0] == Elem::none) args[0] = Elem::bool_;
    if (first && args[0] != Elem::bool_)
      return badModel("select's condition is {}, not bool", elemName(args[0]));
    Elem common = Elem::none;
    for (size_t a = first; a < args.size(); ++a)
      if (common == Elem::none) common = args[a];
    if (common == Elem::none) return badModel("{} has only literals", name);
    for (size_t a = first; a < args.size(); ++a) {
      if (args[a] == Elem::none) args[a] = common;
      if (args[a] != common)
        return badModel("{} of {} and {}", name, elemName(common), elemName(args[a]));
    }
    for (size_t a = 0; a < args.size(); ++a) {
      if (step.args[a].source != ExprArg::Source::literal) continue;
      if (const auto bits = parseElement(args[a], step.args[a].literal); !bits)
        return bits.status();
    }
    if (!hasMeaning(step.kind, step.fn, common))
      return badModel("{} has no meaning for {}", name, elemName(common));
    types.steps.push_back(resultOf(step, common));
    types.args.push_back(std::move(args));
  }
  return types;
}

} // namespace candela::text
