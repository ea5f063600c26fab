#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "candela/cdl.h"

/// The names that spec/primitives.toml gives to kinds of instructions, their functions and their
/// attributes.
namespace candela {

std::string_view kindName(uint16_t kind); ///< "matmul"; empty when unknown
/// empty when unknown or when the kind has no functions
std::string_view fnName(uint16_t kind, uint16_t fn);
std::string_view attrName(uint16_t id);
std::optional<uint16_t> parseKind(std::string_view name);
std::optional<uint16_t> parseFn(uint16_t kind, std::string_view name);
std::optional<uint16_t> parseAttr(std::string_view name);
bool isPrimitive(uint16_t kind); ///< one of the 13
/// "binary.add", or just the kind where it has no functions; "kind 99" when unknown.
std::string instrText(uint16_t kind, uint16_t fn);

} // namespace candela
