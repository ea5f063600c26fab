#include "core/target/rows.h"

#include <algorithm>

#include "candela/cdl_facts.h"
#include "candela/cdl_rows.inc"

namespace candela::target {
namespace {

struct FnName {
  uint16_t kind, fn;
  bool optional;
  const char* name;
};
constexpr FnName kFns[] = {
#define CANDELA_FN(kind, name, id, optional) {cdl_kind_id_##kind, id, optional != 0, #name},
    CDL_FNS(CANDELA_FN)
#undef CANDELA_FN
};

constexpr RequiredRow kRequired[] = {
#define CANDELA_ROW(profile, kind, fn, count, e0, e1, e2, e3, e4, cls, ulp)                                            \
  {profile, kind, fn, count, {e0, e1, e2, e3, e4}, cls},
    CDL_REQUIRED_ROWS(CANDELA_ROW)
#undef CANDELA_ROW
};

struct ProfileInfo {
  const char* name;
  uint32_t elems;
};
constexpr ProfileInfo kProfiles[] = {
#define CANDELA_PROFILE(name, id, mask) {#name, mask},
    CDL_PROFILES(CANDELA_PROFILE)
#undef CANDELA_PROFILE
};
static_assert(std::size(kProfiles) == kProfileCount);

const FnName* findFn(uint16_t kind, uint16_t fn) {
  const auto found = std::ranges::find_if(kFns, [&](const FnName& f) { return f.kind == kind && f.fn == fn; });
  return found == std::end(kFns) ? nullptr : found;
}

} // namespace

std::string instrText(uint16_t kind, uint16_t fn) {
  const cdl_kind_facts_t* facts = cdl_kind_facts(kind);
  const std::string name = facts ? facts->name : fmt::format("kind {}", kind);
  if (const FnName* entry = findFn(kind, fn)) return name + "." + entry->name;
  return fn == 0 ? name : fmt::format("{}.{}", name, fn);
}

uint16_t fnOf(uint16_t kind, std::string_view name) {
  const auto found = std::ranges::find_if(kFns, [&](const FnName& f) { return f.kind == kind && f.name == name; });
  CDL_CHECK(found != std::end(kFns), "{} has no function '{}'", instrText(kind, 0), name);
  return found->fn;
}

std::string attrText(uint16_t attr) {
#define CANDELA_ATTR(name, id, ...)                                                                                   \
  if (attr == id) return #name;
  CDL_ATTRS(CANDELA_ATTR)
#undef CANDELA_ATTR
  return fmt::format("attribute {}", attr);
}

const char* classText(unsigned cls) {
#define CANDELA_CLASS(name, id, text)                                                                                  \
  if (cls == id) return #name;
  CDL_OPERAND_CLASSES(CANDELA_CLASS)
#undef CANDELA_CLASS
  return "unknown";
}

bool isRequiredFn(uint16_t kind, uint16_t fn) {
  bool isPrimitive = false;
#define CANDELA_KIND(name, id, primitive, ...) isPrimitive |= kind == id && primitive;
  CDL_KINDS(CANDELA_KIND)
#undef CANDELA_KIND
  const FnName* function = findFn(kind, fn);
  return isPrimitive && (function ? !function->optional : cdl_fn_known(kind, fn));
}

std::span<const int64_t> attrDefault(uint16_t attr) {
#define CANDELA_DEFAULT(name, count, ...)                                                                              \
  static constexpr int64_t of_##name[] = {__VA_ARGS__};                                                                \
  if (attr == cdl_attr_id_##name) return {of_##name, count};
  CDL_ATTR_DEFAULTS(CANDELA_DEFAULT)
#undef CANDELA_DEFAULT
  return {};
}

std::string RequiredRow::text() const {
  std::string types;
  for (int i = 0; i < elemCount; ++i) types += fmt::format("{}{}", i ? "," : "", elemName(static_cast<Elem>(elems[i])));
  return instrText(kind, fn) + " " + types;
}

std::span<const RequiredRow> requiredRows() { return kRequired; }

const char* profileText(unsigned profile) { return profile < kProfileCount ? kProfiles[profile].name : "unknown"; }

bool profilesCover(uint32_t profiles, Elem elem) {
  for (unsigned p = 0; p < kProfileCount; ++p)
    if ((profiles >> p & 1) && (kProfiles[p].elems >> static_cast<unsigned>(elem) & 1)) return true;
  return false;
}

} // namespace candela::target
