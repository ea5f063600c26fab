// The table and the options that it declares.
#include <cstring>

#include "conformance/tiers/abi/abi.h"
#include "core/support/text/scan.h"

namespace candela::conformance::tiers::abi {
namespace {

Outcome requiredSlots(Port& port) {
  CDL_ASSIGN(const cdl_plugin_t t, tableOf(port)); // the host checks, and names the slot
#define CDL_X(slot)                                                                                \
  if (!t.slot) return wrong("required slot " #slot " is null");
  CDL_REQUIRED_SLOTS(CDL_X)
#undef CDL_X
  return CaseResult::passed();
}

Outcome doors(Port& port) {
  CDL_ASSIGN(const cdl_plugin_t t, tableOf(port));
  if (!t.run && !t.compile) return wrong("there is no interface: run and compile are null");
  const std::pair<const char*, std::vector<bool>> together[] = {
      {"compile, executable_destroy, execute", {!t.compile, !t.executable_destroy, !t.execute}},
      {"executable_save, executable_load", {!t.executable_save, !t.executable_load}},
      {"profile_begin, profile_end", {!t.profile_begin, !t.profile_end}}};
  for (const auto& [names, null] : together)
    for (bool one : null)
      if (one != null[0]) return wrong("of {} some are null, some are not", names);
  if (!t.compile && (t.executable_scratch || t.executable_support || t.executable_save || t.emit))
    return wrong("there are slots of executables, but compile is null");
  return CaseResult::passed();
}

Outcome texts(Port& port) {
  CDL_ASSIGN(const cdl_plugin_t t, tableOf(port));
  if (!t.version || !*t.version) return wrong("there is no version");
  for (const char* text : {t.version, t.description ? t.description : ""})
    if (std::strpbrk(text, "\n\r\t")) return wrong("'{}' has more than one line", text);
  if (t.device_count == 0) return wrong("device_count is 0: there is nothing to test");
  return CaseResult::passed();
}

bool fits(const std::string& value, const std::string& values) {
  if (values == "string") return true;
  if (values == "int") return text::parseNumber<int64_t>(value).has_value();
  if (values == "float") return text::parseNumber<double>(value).has_value();
  return text::isOneOf(value, values);
}
std::string rule(const cdl_option_schema_t& option) {
  return option.values ? option.values : "string";
}

Outcome schema(Port& port) {
  CDL_ASSIGN(const auto plugin, port.plugin());
  if (plugin->options().empty()) return CaseResult::unsupported("it has no options");
  for (const cdl_option_schema_t& option : plugin->options()) {
    for (const std::string& value : text::split(rule(option), '|'))
      if (value.empty())
        return wrong("option {}: '{}' has an empty value", option.name, rule(option));
    if (option.default_value && !fits(option.default_value, rule(option)))
      return wrong("option {}: the default '{}' is not one of {}", option.name,
                   option.default_value, rule(option));
  }
  return CaseResult::passed();
}

Outcome unknownName(Port& port) {
  CDL_ASSIGN(const auto plugin, port.plugin());
  const Status status = plugin->open(0, {{"no_such_option_of_any_plugin", "1"}}).status();
  if (status.code() != Code::invalid_argument)
    return wrong("an unknown option: {}", codeName(status.code()));
  return CaseResult::passed();
}

Outcome unknownValues(Port& port) {
  CDL_ASSIGN(const auto plugin, port.plugin());
  bool any = false;
  for (const cdl_option_schema_t& option : plugin->options()) {
    if (rule(option) == "string") continue;
    any = true;
    const Status status = plugin->open(0, {{option.name, "no such value"}}).status();
    if (status.code() != Code::invalid_argument)
      return wrong("option {}=no such value: {}", option.name, codeName(status.code()));
  }
  return any ? CaseResult::passed() : CaseResult::unsupported("every option is a string");
}

/// Each opens, or says what the machine lacks.
Outcome eachValue(Port& port) {
  CDL_TRY(port.opens());
  CDL_ASSIGN(const auto plugin, port.plugin());
  bool any = false;
  for (const cdl_option_schema_t& option : plugin->options()) {
    if (rule(option).find('|') == std::string::npos) continue;
    any = true;
    for (const std::string& value : text::split(rule(option), '|')) {
      const Status status = plugin->open(0, {{option.name, value}}).status();
      if (!status && status.code() != Code::unsupported && status.code() != Code::out_of_memory)
        return status.context(fmt::format("option {}={}", option.name, value));
    }
  }
  return any ? CaseResult::passed() : CaseResult::unsupported("no option is a choice");
}

Outcome defaults(Port& port) {
  CDL_TRY(port.opens());
  CDL_ASSIGN(const auto plugin, port.plugin());
  runtime::plugin::Options options;
  for (const cdl_option_schema_t& option : plugin->options())
    if (option.default_value) options[option.name] = option.default_value;
  if (options.empty()) return CaseResult::unsupported("no option has a default");
  const auto device = plugin->open(0, options);
  return CaseResult::of(device.status());
}

/// The texts of options are valid during device_open alone.
Outcome valuesAreCopied(Port& port) {
  CDL_TRY(port.opens());
  CDL_ASSIGN(const auto plugin, port.plugin());
  for (const cdl_option_schema_t& option : plugin->options()) {
    if (!option.default_value || !*option.default_value) continue;
    CDL_ASSIGN(PageEnd name, PageEnd::of(option.name, std::strlen(option.name) + 1));
    CDL_ASSIGN(PageEnd value,
               PageEnd::of(option.default_value, std::strlen(option.default_value) + 1));
    const cdl_option_t given{name.as<char>(), value.as<char>()};
    CDL_ASSIGN(PageEnd list, PageEnd::of(&given, sizeof given));
    const cdl_host_t host = plainHost();
    cdl_device_t* handle = nullptr;
    Said said;
    const cdl_code_t code =
        plugin->table().device_open(&host, 0, list.as<cdl_option_t>(), 1, &handle, said.error());
    CDL_TRY(succeeded(fmt::format("option {}={}", option.name, option.default_value), code, said));
    name.release(), value.release(), list.release();
    RawDevice device(plugin->table(), handle);
    CDL_TRY(device.queue().status());
    return CaseResult::passed();
  }
  return CaseResult::unsupported("no option has a default");
}

} // namespace

std::vector<Named> tableChecks() {
  return {
      {"table/required_slots", requiredSlots},
      {"table/doors", doors},
      {"table/texts", texts},
      {"options/schema", schema},
      {"options/unknown_name", unknownName},
      {"options/unknown_values", unknownValues},
      {"options/each_value", eachValue},
      {"options/defaults", defaults},
      {"options/values_are_copied", valuesAreCopied},
  };
}

} // namespace candela::conformance::tiers::abi
