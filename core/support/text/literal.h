#pragma once

#include "core/support/payload.h"
#include "core/support/text/lexer.h"

namespace candela::text {

/// The shortest decimal that reads back to the same double, always with a '.' or an exponent; nan,
/// inf and -inf by name, any other NaN as 0x and its bits.
std::string realText(double value);
/// The number that realText wrote; plain integers too. Nullopt when malformed or out of range.
std::optional<double> parseReal(std::string_view text);

/// One element as a literal: 1.5, nan, 0x7fc00001 (other NaNs, by bits), -3, true. Reads back to
/// the same bits.
std::string elementText(Elem elem, uint64_t bits);
/// The bits of one element, zero-extended. 0x... gives the bits directly, for every type. Failure:
/// "300 does not fit u8".
Result<uint64_t> parseElement(Elem elem, std::string_view literal);
/// The same of the next token; throws Malformed.
uint64_t expectElement(TokenStream& in, Elem elem);

/// The content of a constant before its type is known:
///   [1.0, 2.0] | splat(0.5) | iota(0, 1) | random(7) | resource("name", sha256 "<64 hex digits>")
struct PayloadSyntax {
  enum class Form : uint8_t { list, splat, iota, random, resource };
  Form form = Form::list;
  Token start;
  std::vector<Token> values; ///< literals
  std::string name, hash;    ///< of a resource
};
/// Throws Malformed.
PayloadSyntax parsePayload(TokenStream& in);
/// A resource is read from <directory>/<name>.bin and checked against its hash; `value` is the name
/// that failures give.
Result<Payload> resolvePayload(const PayloadSyntax& syntax, Elem elem, int64_t count,
                               const std::string& directory, std::string_view value);

/// The text of a payload: in line up to 64 elements, else a resource, which is written to
/// <directory>/<file>.bin unless the directory is empty. The resource's name is `name` with
/// whatever no file name should have replaced by '_'; where another value's file took that name for
/// other bytes, the hash is appended.
Result<std::string> payloadText(const Payload& payload, std::string_view name,
                                const std::string& directory);

} // namespace candela::text
