#include "core/support/text/literal.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <filesystem>

#include "core/support/file.h"
#include "core/support/float_bits.h"
#include "core/support/text/scan.h"

namespace candela::text {
namespace {

constexpr int64_t kInlineElements = 64;

/// A decimal that a reader takes for a real number: "1" becomes "1.0".
std::string asReal(std::string text) {
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

template <typename T> std::string shortest(T value) {
  char buffer[64];
  const auto result = std::to_chars(buffer, buffer + sizeof buffer, value);
  return asReal(std::string(buffer, result.ptr));
}

/// The shortest decimal that rounds to the same bits of a small float type; integers stay exact:
/// 448, not 450.
std::string shortestOf(Elem elem, uint64_t bits) {
  bits = fromReal(elem, toReal(elem, bits)); // without the bits that 6-bit elements do not use
  const double value = toReal(elem, bits);
  if (value == std::trunc(value) && std::fabs(value) < 1e6) return shortest(value);
  char buffer[64];
  for (int digits = 1;; ++digits) {
    const auto result = std::to_chars(buffer, buffer + sizeof buffer, value,
                                      std::chars_format::scientific, digits - 1);
    const double candidate = *parseReal(std::string_view(buffer, result.ptr - buffer));
    if (fromReal(elem, candidate) == bits) return shortest(candidate);
  }
}

uint64_t canonicalNan(Elem elem) {
  return fromReal(elem, std::bit_cast<double>(uint64_t(0x7ff8) << 48));
}

Result<uint64_t> parseFloatElement(Elem elem, std::string_view literal) {
  const bool hasNan = std::isnan(toReal(elem, canonicalNan(elem)));
  if (literal == "nan" && hasNan) return canonicalNan(elem);
  if (literal == "-nan" && hasNan) return canonicalNan(elem) | uint64_t(1) << (elemBits(elem) - 1);
  if (elem == Elem::f32_) { // directly, so that the decimal is rounded once
    float value = 0;
    const auto [stop, error] =
        std::from_chars(literal.data(), literal.data() + literal.size(), value);
    if (error == std::errc::result_out_of_range) return badModel("{} does not fit f32", literal);
    if (error != std::errc() || stop != literal.data() + literal.size())
      return badModel("'{}' is no number", literal);
    return std::bit_cast<uint32_t>(value);
  }
  const auto value = parseReal(literal);
  if (!value) return badModel("'{}' is no number of type {}", literal, elemName(elem));
  const uint64_t bits = fromReal(elem, *value);
  const bool saturates = !hasNan && std::fabs(*value) > largestReal(elem);
  if (saturates || (std::isfinite(*value) && !std::isfinite(toReal(elem, bits))))
    return badModel("{} does not fit {}", literal, elemName(elem));
  return bits;
}

Result<uint64_t> parseIntegerElement(Elem elem, std::string_view literal) {
  if (elem == Elem::bool_ && literal == "true") return uint64_t(1);
  if (elem == Elem::bool_ && literal == "false") return uint64_t(0);
  const bool negative = literal.starts_with('-');
  const std::string_view digits = literal.substr(negative ? 1 : 0);
  uint64_t magnitude = 0;
  const auto [stop, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), magnitude);
  const bool whole = stop == digits.data() + digits.size() && !digits.empty();
  if (!whole || error == std::errc::invalid_argument)
    return badModel("'{}' is no number of type {}", literal, elemName(elem));
  const __int128 value = negative ? -__int128(magnitude) : __int128(magnitude);
  const IntegerRange range = integerRange(elem);
  if (error != std::errc() || value < range.lowest || value > range.highest)
    return badModel("{} does not fit {}", literal, elemName(elem));
  return static_cast<uint64_t>(value) & elemMask(elem);
}

/// A file name that means the same everywhere and never leaves its directory.
std::string fileName(std::string_view name) {
  std::string out;
  for (const char c : name.substr(0, 100)) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' ||
                       (c == '.' && !out.empty());
    out += plain ? c : '_';
  }
  return out.empty() ? "constant" : out;
}

Result<std::string> resourceText(const Payload& payload, std::string_view name,
                                 const std::string& directory) {
  const std::string hash = hashText(payload.hash());
  std::string file = fileName(name);
  if (!directory.empty()) {
    std::error_code error;
    std::filesystem::create_directories(directory, error);
    if (error)
      return failure(Code::io, "{}: cannot create directory: {}", directory, error.message());
    CDL_ASSIGN(const Tensor tensor, payload.materialize({payload.count()}));
    const auto taken = mapFile(directory + "/" + file + ".bin");
    const bool same = taken && hashText(sha256(taken->data(), taken->size())) == hash;
    if (taken && !same) file += "-" + hash.substr(0, 16);
    if (!same)
      CDL_TRY(writeFile(directory + "/" + file + ".bin", tensor.bytes.data(), tensor.sizeBytes()));
  }
  return fmt::format("resource({}, sha256 \"{}\")", quoteText(file), hash);
}

Result<Payload> loadResource(const PayloadSyntax& syntax, Elem elem, int64_t count,
                             const std::string& directory, std::string_view value) {
  if (syntax.name.empty() || fileName(syntax.name) != syntax.name)
    return badModel("value '{}': {} is no resource name", value, quoteText(syntax.name));
  const std::string path = (directory.empty() ? "" : directory + "/") + syntax.name + ".bin";
  CDL_ASSIGN(Bytes bytes, mapFile(path).context(fmt::format("value '{}'", value)));
  if (bytes.size() != elemBytes(elem, count))
    return badModel("value '{}': {} holds {} bytes, expected {}", value, path, bytes.size(),
                    elemBytes(elem, count));
  const std::string hash = hashText(sha256(bytes.data(), bytes.size()));
  if (hash != syntax.hash)
    return badModel("value '{}': {} has sha256 {}, expected {}", value, path, hash, syntax.hash);
  return Payload::data(Tensor{elem, {count}, std::move(bytes)});
}

Result<Payload> listPayload(const PayloadSyntax& syntax, Elem elem, int64_t count) {
  if (static_cast<int64_t>(syntax.values.size()) != count)
    return badModel("{} values for {} elements", syntax.values.size(), count);
  CDL_ASSIGN(Tensor tensor, Tensor::zeros(elem, {count}));
  for (int64_t i = 0; i < count; ++i) {
    CDL_ASSIGN(const uint64_t bits, parseElement(elem, syntax.values[i].text));
    storeElement(elem, tensor.bytes.mutableData(), i, bits);
  }
  return Payload::data(std::move(tensor));
}

Result<int64_t> wordOf(const Token& token) {
  auto bits = parseElement(Elem::i64_, token.text);
  if (!bits) bits = parseElement(Elem::u64_, token.text);
  if (!bits) return bits.status();
  return static_cast<int64_t>(*bits);
}

} // namespace

std::string realText(double value) {
  if (std::isnan(value)) return elementText(Elem::f64_, std::bit_cast<uint64_t>(value));
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  return shortest(value);
}

std::optional<double> parseReal(std::string_view text) {
  if (text == "nan") return std::bit_cast<double>(canonicalNan(Elem::f64_));
  if (text.starts_with("0x")) {
    const auto bits = parseNumber<uint64_t>(text.substr(2), 16);
    if (!bits) return std::nullopt;
    return std::bit_cast<double>(*bits);
  }
  return parseNumber<double>(text);
}

std::string elementText(Elem elem, uint64_t bits) {
  bits &= elemMask(elem);
  if (elem == Elem::bool_ && bits <= 1) return bits ? "true" : "false";
  if (elem == Elem::bool_) return fmt::format("0x{:x}", bits);
  if (!isFloat(elem)) return fmt::format("{}", integerOf(elem, bits));
  const double value = toReal(elem, bits);
  if (std::isnan(value)) return bits == canonicalNan(elem) ? "nan" : fmt::format("0x{:x}", bits);
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  if (elem == Elem::f32_) return shortest(static_cast<float>(value));
  if (elem == Elem::f64_) return shortest(value);
  // Six bits in a byte leave two that a text of the value would lose.
  return fromReal(elem, value) == bits ? shortestOf(elem, bits) : fmt::format("0x{:x}", bits);
}

Result<uint64_t> parseElement(Elem elem, std::string_view literal) {
  if (literal.starts_with("0x")) {
    const auto bits = parseNumber<uint64_t>(literal.substr(2), 16);
    if (!bits || (*bits & ~elemMask(elem)))
      return badModel("{} does not fit {}", literal, elemName(elem));
    return *bits;
  }
  return isFloat(elem) ? parseFloatElement(elem, literal) : parseIntegerElement(elem, literal);
}

uint64_t expectElement(TokenStream& in, Elem elem) {
  const Token token = in.take();
  if (token.kind == TokenKind::string)
    in.fail(token, "expected a number but found {}", token.shown());
  const auto bits = parseElement(elem, token.text);
  if (!bits) in.fail(token, "{}", bits.status().message());
  return *bits;
}

PayloadSyntax parsePayload(TokenStream& in) {
  PayloadSyntax out;
  out.start = in.peek();
  const auto values = [&](std::string_view open, std::string_view close) {
    in.list(open, close, [&] {
      const Token token = out.values.emplace_back(in.take());
      if (token.kind != TokenKind::integer && token.kind != TokenKind::real &&
          token.kind != TokenKind::identifier)
        in.fail(token, "expected a number but found {}", token.shown());
    });
  };
  const auto arguments = [&](PayloadSyntax::Form form, size_t count) {
    out.form = form;
    values("(", ")");
    if (out.values.size() != count)
      in.fail(out.start, "{} takes {} values, not {}", out.start.text, count, out.values.size());
  };
  if (in.at("[")) {
    values("[", "]");
  } else if (in.accept("splat")) {
    arguments(PayloadSyntax::Form::splat, 1);
  } else if (in.accept("iota")) {
    arguments(PayloadSyntax::Form::iota, 2);
  } else if (in.accept("random")) {
    arguments(PayloadSyntax::Form::random, 1);
  } else if (in.accept("resource")) {
    out.form = PayloadSyntax::Form::resource;
    in.expect("(");
    out.name = in.expect(TokenKind::string, "the name of a resource").text;
    in.expect(",");
    in.expect("sha256");
    out.hash = in.expect(TokenKind::string, "64 hexadecimal digits").text;
    in.expect(")");
  } else {
    in.fail(out.start, "expected the content of a constant but found {}", out.start.shown());
  }
  return out;
}

Result<Payload> resolvePayload(const PayloadSyntax& syntax, Elem elem, int64_t count,
                               const std::string& directory, std::string_view value) {
  switch (syntax.form) {
  case PayloadSyntax::Form::list: return listPayload(syntax, elem, count);
  case PayloadSyntax::Form::resource: return loadResource(syntax, elem, count, directory, value);
  case PayloadSyntax::Form::splat: {
    CDL_ASSIGN(const uint64_t bits, parseElement(elem, syntax.values[0].text));
    return Payload::splat(elem, count, bits);
  }
  case PayloadSyntax::Form::iota: {
    if (!isInteger(elem)) return badModel("iota needs an integer type, not {}", elemName(elem));
    CDL_ASSIGN(const int64_t start, wordOf(syntax.values[0]));
    CDL_ASSIGN(const int64_t step, wordOf(syntax.values[1]));
    return Payload::iota(elem, count, start, step);
  }
  case PayloadSyntax::Form::random: {
    CDL_ASSIGN(const int64_t seed, wordOf(syntax.values[0]));
    return Payload::random(elem, count, static_cast<uint64_t>(seed));
  }
  }
  CDL_CHECK(false, "payload form {}", static_cast<int>(syntax.form));
}

Result<std::string> payloadText(const Payload& payload, std::string_view name,
                                const std::string& directory) {
  switch (payload.form()) {
  case Payload::Form::splat:
    return fmt::format("splat({})", elementText(payload.elem(), payload.splatBits()));
  case Payload::Form::iota:
    return fmt::format("iota({}, {})", payload.iotaStart(), payload.iotaStep());
  case Payload::Form::random: return fmt::format("random({})", payload.seed());
  case Payload::Form::data: break;
  }
  if (payload.count() > kInlineElements) return resourceText(payload, name, directory);
  std::string out = "[";
  for (int64_t i = 0; i < payload.count(); ++i) {
    if (i) out += ", ";
    out += elementText(payload.elem(), loadElement(payload.elem(), payload.bytes().data(), i));
  }
  return out + "]";
}

} // namespace candela::text
