#include "core/target/rows.h"

#include "candela/cdl_rows.inc"

namespace candela::target {
namespace {

struct KindName {
  uint16_t kind;
  bool primitive;
  const char* name;
};
constexpr KindName kKinds[] = {
#define CANDELA_KIND(name, id, primitive, ...) {id, primitive != 0, #name},
    CDL_KINDS(CANDELA_KIND)
#undef CANDELA_KIND
};

// Functions name their kind by its word, not by its number.
enum KindId : uint16_t {
#define CANDELA_KIND(name, id, ...) id_##name = id,
  CDL_KINDS(CANDELA_KIND)
#undef CANDELA_KIND
};
struct FnName {
  uint16_t kind, fn;
  bool optional;
  const char* name;
};
constexpr FnName kFns[] = {
#define CANDELA_FN(kind, name, id, optional) {id_##kind, id, optional != 0, #name},
    CDL_FNS(CANDELA_FN)
#undef CANDELA_FN
};

struct AttrName {
  uint16_t id;
  const char* name;
};
constexpr AttrName kAttrs[] = {
#define CANDELA_ATTR(name, id, ...) {id, #name},
    CDL_ATTRS(CANDELA_ATTR)
#undef CANDELA_ATTR
};

enum AttrId : uint16_t {
#define CANDELA_ATTR(name, id, ...) attr_##name = id,
  CDL_ATTRS(CANDELA_ATTR)
#undef CANDELA_ATTR
};
struct AttrDefault {
  uint16_t id;
  size_t count;
  int64_t values[4];
};
constexpr AttrDefault kDefaults[] = {
#define CANDELA_DEFAULT(name, count, a, b, c, d) {attr_##name, count, {a, b, c, d}},
    CDL_ATTR_DEFAULTS(CANDELA_DEFAULT)
#undef CANDELA_DEFAULT
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

const KindName* findKind(uint16_t kind) {
  for (const KindName& entry : kKinds)
    if (entry.kind == kind) return &entry;
  return nullptr;
}
const FnName* findFn(uint16_t kind, uint16_t fn) {
  for (const FnName& entry : kFns)
    if (entry.kind == kind && entry.fn == fn) return &entry;
  return nullptr;
}
bool hasFns(uint16_t kind) {
  for (const FnName& entry : kFns)
    if (entry.kind == kind) return true;
  return false;
}

} // namespace

std::string kindText(uint16_t kind) {
  const KindName* entry = findKind(kind);
  return entry ? entry->name : fmt::format("kind {}", kind);
}

std::string instrText(uint16_t kind, uint16_t fn) {
  if (const FnName* entry = findFn(kind, fn)) return kindText(kind) + "." + entry->name;
  return fn == 0 ? kindText(kind) : fmt::format("{}.{}", kindText(kind), fn);
}

bool isKnownKind(uint16_t kind) { return findKind(kind) != nullptr; }

bool isKnownFn(uint16_t kind, uint16_t fn) { return hasFns(kind) ? findFn(kind, fn) != nullptr : fn == 0; }

bool isKnownAttr(uint16_t attr) {
  for (const AttrName& entry : kAttrs)
    if (entry.id == attr) return true;
  return false;
}

std::string attrText(uint16_t attr) {
  for (const AttrName& entry : kAttrs)
    if (entry.id == attr) return entry.name;
  return fmt::format("attribute {}", attr);
}

bool isRequiredFn(uint16_t kind, uint16_t fn) {
  const KindName* entry = findKind(kind);
  if (!entry || !entry->primitive) return false;
  const FnName* function = findFn(kind, fn);
  return function ? !function->optional : !hasFns(kind) && fn == 0;
}

std::span<const int64_t> attrDefault(uint16_t attr) {
  for (const AttrDefault& entry : kDefaults)
    if (entry.id == attr) return {entry.values, entry.count};
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
