#include "tools/candela/simulate/host_rates.h"

#include <algorithm>
#include <cmath>

#include "core/support/file.h"
#include "core/support/json.h"

namespace candela::tool {
namespace {

constexpr const char* kHostRatesSchema = "candela.host_rates/1";

std::string_view withoutType(std::string_view op) { return op.substr(0, op.find(' ')); }

double rateNumber(const std::string& path, const Json& rate, const char* key) {
  const Json value = rate.contains(key) ? rate[key] : Json();
  const double number = value.is_number() ? value.get<double>() : -1;
  if (!std::isfinite(number) || number < 0)
    fail(kBadInput, "{}: rate of '{}': '{}' is no number from 0 on", path,
         rate["op"].get<std::string>(), key);
  return number;
}

} // namespace

const HostRate& HostRates::of(const std::string& op) const {
  const HostRate* best = nullptr;
  for (const HostRate& rate : rates) {
    if (rate.op == op) return rate;
    const bool isSameOp = withoutType(rate.op) == withoutType(op);
    const bool isOther = rate.op == kOtherOps;
    if (isSameOp && (!best || best->op == kOtherOps)) best = &rate;
    if (isOther && !best) best = &rate;
  }
  CDL_CHECK(best);
  return *best;
}

HostRates readHostRates(const std::string& path) {
  const Bytes bytes = check(mapFile(path));
  const Json json = parseJson<Json>({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  if (!json.is_object() || json.value("schema", Json()) != kHostRatesSchema)
    fail(kBadInput, "{}: it is no file of 'candela calibrate-host'", path);
  HostRates read;
  read.file = path;
  const Json list = json.value("rates", Json());
  if (!list.is_array()) fail(kBadInput, "{}: no list 'rates'", path);
  if (const Json machine = json.value("machine", Json()); machine.is_string())
    read.machine = machine.get<std::string>();
  if (const Json threads = json.value("threads", Json()); threads.is_number_unsigned())
    read.threads = threads.get<uint32_t>();
  for (const Json& rate : list) {
    if (!rate.is_object() || !rate.contains("op") || !rate["op"].is_string())
      fail(kBadInput, "{}: a rate without 'op'", path);
    read.rates.push_back({rate["op"].get<std::string>(), rateNumber(path, rate, "start_ns"),
                          rateNumber(path, rate, "ns_per_byte"),
                          rateNumber(path, rate, "ns_per_mac")});
  }
  if (std::ranges::none_of(read.rates, [](const HostRate& r) { return r.op == kOtherOps; }))
    fail(kBadInput, "{}: no rate of '{}', which is for ops that were not measured", path,
         kOtherOps);
  return read;
}

Json hostRatesJson(const HostRates& rates) {
  Json list = Json::array();
  for (const HostRate& rate : rates.rates)
    list.push_back({{"op", rate.op},
                    {"start_ns", rate.startNs},
                    {"ns_per_byte", rate.nsPerByte},
                    {"ns_per_mac", rate.nsPerMac}});
  return {{"schema", kHostRatesSchema},
          {"machine", rates.machine},
          {"threads", rates.threads},
          {"tag", "fitted"},
          {"rates", std::move(list)}};
}

double addHostTimes(const HostRates& rates, Json& nodes) {
  double sum = 0;
  for (Json& node : nodes) {
    const HostRate& rate = rates.of(node.value("op", ""));
    const auto bytes = static_cast<double>(node.value("bytes_in", uint64_t{0}) +
                                           node.value("bytes_out", uint64_t{0}));
    const auto macs = static_cast<double>(node.value("macs", uint64_t{0}));
    const double ms = (rate.startNs + bytes * rate.nsPerByte + macs * rate.nsPerMac) / 1e6;
    node["time_ms"] = ms;
    node["time_tag"] = "fitted";
    node["time_by"] = rate.op;
    sum += ms;
  }
  return sum;
}

} // namespace candela::tool
