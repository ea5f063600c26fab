#include "core/runtime/api/options.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "core/runtime/api/arguments.h"
#include "core/runtime/api/objects.h"
#include "core/support/text/scan.h"

namespace candela::runtime::api {
namespace {

Result<int64_t> parseDim(std::string_view text, std::string_view whole) {
  const auto value = text::parseNumber<int64_t>(text);
  if (!value || *value < 0) return badArgument("'{}': '{}' is no dimension", whole, text);
  return *value;
}

Result<std::pair<std::string, std::string>> parseKeyValue(const char* text, const char* example) {
  const std::string_view view = text;
  const size_t equals = view.rfind('=');
  if (equals == 0 || equals == std::string_view::npos)
    return badArgument("'{}' is not of the form {}", text, example);
  return std::pair(std::string(view.substr(0, equals)), std::string(view.substr(equals + 1)));
}

/// "import.key=value" is for no backend, but for how a model is read.
Status takeImportOptions(CompileRequest& request) {
  const auto given = request.options.extract("import");
  if (given.empty()) return Status::ok();
  for (const auto& [key, value] : given.mapped()) {
    if (key != "random_seed")
      return badArgument("option 'import.{}': known is import.random_seed", key);
    request.import.randomSeed = text::parseNumber<uint64_t>(value);
    if (!request.import.randomSeed)
      return badArgument("option 'import.{}': '{}' is no number", key, value);
  }
  return Status::ok();
}

Status takeDevices(const candela_options_t& options, CompileRequest& request) {
  if (options.device_count == 0) return Status::ok();
  if (!options.devices) return badArgument("{} devices were given, and none", options.device_count);
  if (options.backends)
    return badArgument("backends '{}' and {} open devices: one of them", options.backends,
                       options.device_count);
  for (uint32_t d = 0; d < options.device_count; ++d) {
    if (!options.devices[d]) return badArgument("device {} of the options is NULL", d);
    request.devices.push_back(options.devices[d]->device);
  }
  return Status::ok();
}

} // namespace

Result<CompileRequest> parseOptions(const candela_options_t* given) {
  candela_options_t options = CANDELA_OPTIONS_INIT;
  if (given) std::memcpy(&options, given, std::min<size_t>(given->struct_size, sizeof(options)));
  CompileRequest request;
  request.flags = options.flags;
  CDL_TRY(takeDevices(options, request));
  request.backends =
      text::split(options.backends && *options.backends ? options.backends : "soft", ',');
  for (const std::string& name : request.backends)
    if (name.empty())
      return badArgument("an empty name in the list of backends '{}'", options.backends);
  for (const char* const* d = options.dims; d && *d; ++d) {
    CDL_ASSIGN(const auto pair, parseKeyValue(*d, "NAME=1"));
    CDL_ASSIGN(const int64_t value, parseDim(pair.second, *d));
    if (!request.import.dims.emplace(pair.first, value).second)
      return badArgument("dim '{}' is given twice", pair.first);
  }
  for (const char* const* s = options.shapes; s && *s; ++s) {
    CDL_ASSIGN(const auto pair, parseKeyValue(*s, "NAME=1x3x224x224"));
    Shape shape;
    if (!pair.second.empty() && pair.second != "scalar")
      for (const std::string& text : text::split(pair.second, 'x')) {
        CDL_ASSIGN(const int64_t dim, parseDim(text, *s));
        shape.push_back(dim);
      }
    if (!request.import.shapes.emplace(pair.first, shape).second)
      return badArgument("shape of '{}' is given twice", pair.first);
  }
  for (const char* const* o = options.options; o && *o; ++o) {
    CDL_ASSIGN(const auto option, splitOption(*o));
    const auto& [key, value] = option;
    const size_t name = key.find('.') + 1; // 0 where there is no dot
    request.options[key.substr(0, name ? name - 1 : 0)][key.substr(name)] = value;
  }
  CDL_TRY(takeImportOptions(request));
  for (const char* const* s = options.states; s && *s; ++s) request.states.emplace_back(*s);
  request.compile.states = request.states;
  request.import.bindAtRun = options.flags & CANDELA_FLAG_BIND_AT_RUN;
  request.compile.toPrimitives = options.flags & CANDELA_FLAG_TO_PRIMITIVES;
  request.compile.keepValues = options.flags & CANDELA_FLAG_KEEP_VALUES;
  request.compile.stack = !(options.flags & CANDELA_FLAG_UNSTACKED);
  request.compile.schedule.rematerialize = options.flags & CANDELA_FLAG_REMATERIALIZE;
  request.compile.groups = !(options.flags & CANDELA_FLAG_NO_GROUPS);
  if (options.partition) {
    CDL_ASSIGN(request.compile.policy, lowering::partition::parsePolicy(options.partition));
  }
  if (options.pin_file) request.compile.pinFile = options.pin_file;
  if (options.precision) {
    CDL_ASSIGN(request.compile.precision, driver::parsePrecision(options.precision));
  }
  if (const auto call = options.progress) {
    void* const context = options.progress_context;
    request.compile.progress = [call, context](const char* stage, double fraction) {
      call(context, stage, fraction);
    };
  }
  return request;
}

Result<std::vector<std::shared_ptr<runtime::plugin::Device>>>
openDevices(const CompileRequest& request) {
  std::vector<std::shared_ptr<runtime::plugin::Device>> devices = request.devices;
  std::set<std::string> served;
  for (const std::string& name : request.backends) {
    if (name == "soft" || name == "reference") continue;
    CDL_ASSIGN(const runtime::plugin::FoundDevice found, runtime::plugin::findDevice(name));
    runtime::plugin::Options options;
    for (const std::string& key : {std::string(), found.plugin->name(), found.id()}) {
      const auto at = request.options.find(key);
      if (at == request.options.end()) continue;
      served.insert(key);
      for (const auto& [option, value] : at->second) options[option] = value;
    }
    CDL_ASSIGN(std::shared_ptr<runtime::plugin::Device> device, found.open(options));
    devices.push_back(std::move(device));
  }
  for (const auto& [backend, options] : request.options)
    if (!served.count(backend) && !options.empty())
      return badArgument("option '{}{}{}' is for no backend in this run", backend,
                         backend.empty() ? "" : ".", options.begin()->first);
  return devices;
}

Status requireNative(const runtime::bundle::Bundle& bundle) {
  std::string list;
  size_t count = 0;
  for (const runtime::bundle::NodePlacement& node : bundle.placement) {
    if (node.cls == runtime::bundle::NodePlacement::Class::native) continue;
    list += fmt::format("\n  {} ({}) on {}: {}", node.node, node.op, node.on, node.why);
    ++count;
  }
  if (count == 0) return Status::ok();
  return failure(Code::refused, "{} of {} nodes are not native:{}", count, bundle.placement.size(),
                 list);
}

} // namespace candela::runtime::api
