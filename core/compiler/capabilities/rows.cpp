#include "core/compiler/capabilities/rows.h"

#include "candela/cdl_rows.inc"

namespace candela::capabilities {
namespace {

constexpr RequiredRow kRequired[] = {
#define CANDELA_ROW(profile, kind, fn, count, e0, e1, e2, e3, e4, cls, ulp)                        \
  {profile, profile, kind, fn, count, {e0, e1, e2, e3, e4}, cls},
    CDL_REQUIRED_ROWS(CANDELA_ROW)
#undef CANDELA_ROW
#define CANDELA_ROW(profile, beside, kind, fn, count, e0, e1, e2, e3, e4, e5, cls, ulp)            \
  {profile, beside, kind, fn, count, {e0, e1, e2, e3, e4, e5}, cls},
        CDL_REQUIRED_ROWS_BESIDE(CANDELA_ROW)
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

} // namespace

uint16_t fnOf(uint16_t kind, std::string_view name) {
  const auto fn = parseFn(kind, name);
  CDL_CHECK(fn, "{} has no function '{}'", kindName(kind), name);
  return *fn;
}

std::string attrText(uint16_t attr) {
  const std::string_view name = attrName(attr);
  return name.empty() ? fmt::format("attribute {}", attr) : std::string(name);
}

const char* classText(unsigned cls) {
#define CANDELA_CLASS(name, id, text)                                                              \
  if (cls == id) return #name;
  CDL_OPERAND_CLASSES(CANDELA_CLASS)
#undef CANDELA_CLASS
  return "unknown";
}

bool isRequiredFn(uint16_t kind, uint16_t fn) {
#define CANDELA_FN(kindName, name, id, optional)                                                   \
  if (optional && kind == cdl_kind_id_##kindName && fn == id) return false;
  CDL_FNS(CANDELA_FN)
#undef CANDELA_FN
  return isPrimitive(kind) && cdl_fn_known(kind, fn);
}

std::span<const int64_t> attrDefault(uint16_t attr) {
#define CANDELA_DEFAULT(name, count, ...)                                                          \
  static constexpr int64_t of_##name[] = {__VA_ARGS__};                                            \
  if (attr == cdl_attr_id_##name) return {of_##name, count};
  CDL_ATTR_DEFAULTS(CANDELA_DEFAULT)
#undef CANDELA_DEFAULT
  return {};
}

std::string RequiredRow::text() const {
  std::string types;
  for (int i = 0; i < elemCount; ++i)
    types += fmt::format("{}{}", i ? "," : "", elemName(static_cast<Elem>(elems[i])));
  return instrText(kind, fn) + " " + types;
}

std::span<const RequiredRow> requiredRows() { return kRequired; }

const char* profileText(unsigned profile) {
  return profile < kProfileCount ? kProfiles[profile].name : "unknown";
}

uint32_t profilesBeside(unsigned profile) {
#define CANDELA_BESIDE(name, id, mask)                                                             \
  if (profile == (id)) return mask;
  CDL_PROFILES_BESIDE(CANDELA_BESIDE)
#undef CANDELA_BESIDE
  return 0;
}

bool profilesCover(uint32_t profiles, Elem elem) {
  for (unsigned p = 0; p < kProfileCount; ++p)
    if ((profiles >> p & 1) && (kProfiles[p].elems >> static_cast<unsigned>(elem) & 1)) return true;
  return false;
}

} // namespace candela::capabilities
