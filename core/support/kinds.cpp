#include "core/support/kinds.h"

#include <fmt/format.h>

#include <span>

namespace candela {
namespace {

/// `kind` is 0 but for functions.
struct Name {
  uint16_t kind, id;
  std::string_view name;
};
constexpr Name kFns[] = {
#define CANDELA_FN(kind, name, id, optional) {cdl_kind_id_##kind, id, #name},
    CDL_FNS(CANDELA_FN)
#undef CANDELA_FN
};
constexpr Name kKinds[] = {
#define CANDELA_NAME(name, id, ...) {0, id, #name},
    CDL_KINDS(CANDELA_NAME)};
constexpr Name kAttrs[] = {CDL_ATTRS(CANDELA_NAME)
#undef CANDELA_NAME
};

std::string_view nameOf(std::span<const Name> names, uint16_t kind, uint16_t id) {
  for (const Name& name : names)
    if (name.kind == kind && name.id == id) return name.name;
  return {};
}

std::optional<uint16_t> idOf(std::span<const Name> names, uint16_t kind, std::string_view text) {
  for (const Name& name : names)
    if (name.kind == kind && name.name == text) return name.id;
  return std::nullopt;
}

} // namespace

std::string_view kindName(uint16_t kind) { return nameOf(kKinds, 0, kind); }
std::string_view fnName(uint16_t kind, uint16_t fn) { return nameOf(kFns, kind, fn); }
std::string_view attrName(uint16_t id) { return nameOf(kAttrs, 0, id); }
std::optional<uint16_t> parseKind(std::string_view name) { return idOf(kKinds, 0, name); }
std::optional<uint16_t> parseFn(uint16_t kind, std::string_view name) {
  return idOf(kFns, kind, name);
}
std::optional<uint16_t> parseAttr(std::string_view name) { return idOf(kAttrs, 0, name); }

bool isPrimitive(uint16_t kind) {
  const cdl_kind_facts_t* facts = cdl_kind_facts(kind);
  return facts && facts->primitive;
}

std::string instrText(uint16_t kind, uint16_t fn) {
  const std::string_view known = kindName(kind), function = fnName(kind, fn);
  const std::string name = known.empty() ? fmt::format("kind {}", kind) : std::string(known);
  if (!function.empty()) return fmt::format("{}.{}", name, function);
  return fn == 0 ? name : fmt::format("{}.{}", name, fn);
}

} // namespace candela
