#include "layer_report.hpp"

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <string_view>
#include <utility>

#include "core/support/text/utf8.h"

namespace npu_sim {

namespace {

/// The objects of compileProgram's JSON, each without its end, and the names in them as they are
/// written there.
std::vector<std::pair<std::string, std::string>> objectsOf(const std::string& costs) {
  static const std::string kHead = "{\"node\":\"";
  std::vector<std::pair<std::string, std::string>> objects;
  for (size_t at = costs.find(kHead); at != std::string::npos; at = costs.find(kHead, at)) {
    size_t end = at + kHead.size();
    while (costs[end] != '"') end += costs[end] == '\\' ? 2 : 1;
    // Behind the name there are numbers, lists of them, and at the end an object of those.
    const size_t next = costs.find(kHead, end);
    const size_t close = costs.rfind('}', next);
    objects.push_back(
        {costs.substr(at + kHead.size(), end - at - kHead.size()), costs.substr(at, close - at)});
    at = close;
  }
  return objects;
}

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4f", value);
  return text;
}

std::string stallsText(const npu::StallCycles& stalls) {
  std::string text;
  for (const npu::Stall stall :
       {npu::Stall::kSemaphore, npu::Stall::kQueue, npu::Stall::kBank, npu::Stall::kDram})
    text += cdl::text(text.empty() ? "{\"" : ",\"", std::string(npu::stallName(stall)),
                      "\":", stalls[static_cast<size_t>(stall)]);
  // Where there is one core, nobody waits for another.
  if (const int64_t core = stalls[static_cast<size_t>(npu::Stall::kCore)])
    text += cdl::text(",\"core\":", core);
  return text + "}";
}

/// Those that there are, the most cycles first.
std::string causesText(const CauseCycles& causes) {
  std::array<size_t, kCauses> order{};
  for (size_t c = 0; c < order.size(); ++c) order[c] = c;
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return causes[a] > causes[b]; });
  std::string text = "{";
  for (const size_t c : order)
    if (causes[c] > 0)
      text += cdl::text(text.size() > 1 ? ",\"" : "\"", causeName(static_cast<Cause>(c)),
                        "\":", causes[c]);
  return text + "}";
}

/// Setting descriptors and registers: nothing that waits, and too many to list.
bool isListed(const npu::InstructionTime& time) {
  switch (time.op) {
  case npu::Op::kSetd:
  case npu::Op::kMovi:
  case npu::Op::kAddi:
  case npu::Op::kLoop:
  case npu::Op::kConfig: return false;
  default: return true;
  }
}

} // namespace

std::string jsonString(const std::string& name) {
  std::string text;
  for (std::string_view rest = name; !rest.empty();) {
    const size_t bytes = candela::text::characterAt(rest).bytes;
    const char first = rest[0];
    if (bytes == 0) {
      text += "\\ufffd"; // as the tool's JSON has it
    } else if (static_cast<unsigned char>(first) < ' ') {
      char code[8] = "";
      std::snprintf(code, sizeof code, "\\u%04x", static_cast<unsigned>(first));
      text += code;
    } else {
      if (first == '"' || first == '\\') text += '\\';
      text += rest.substr(0, bytes);
    }
    rest.remove_prefix(std::max<size_t>(bytes, 1));
  }
  return text;
}

LayerReport::LayerReport(const Compiled& compiled, const npu::Configuration& configuration,
                         const std::string& program, bool hasCauses)
    : binary_(compiled.binary), configuration_(configuration), program_(program),
      symbolOf_(binary_.code.size(), static_cast<uint32_t>(binary_.symbols.size())),
      hasCauses_(hasCauses) {
  std::map<std::string, uint32_t> byName;
  for (auto& [name, text] : objectsOf(compiled.costs)) {
    byName.emplace(name, static_cast<uint32_t>(layers_.size()));
    layers_.emplace_back().fixed = std::move(text);
  }
  layers_.emplace_back();
  for (uint32_t s = 0; s < binary_.symbols.size(); ++s) {
    const npu::Symbol& symbol = binary_.symbols[s];
    const auto known = byName.find(jsonString(symbol.node));
    layerOf_.push_back(known == byName.end() ? static_cast<uint32_t>(layers_.size() - 1)
                                             : known->second);
    std::fill_n(symbolOf_.begin() + symbol.first, symbol.count, s);
  }
  layerOf_.push_back(static_cast<uint32_t>(layers_.size() - 1));
  for (const uint32_t symbol : symbolOf_) ++layers_[layerOf_[symbol]].words;
  // What belongs to none, as the end of the program, is the last layer's.
  if (layers_.size() > 1)
    layers_[layers_.size() - 2].words += std::exchange(layers_.back().words, 0);
}

void LayerReport::count(uint32_t instruction, const npu::Counters& counters) {
  npu::Counters& sums = layers_[layerOf_[symbolOf_[instruction]]].counters;
  for (size_t i = 0; i < sums.size(); ++i) sums[i] += counters[i];
}

void LayerReport::add(const npu::InstructionTime& time, bool wanted) {
  const uint32_t symbol = symbolOf_[time.instruction];
  Layer& layer = layers_[layerOf_[symbol]];
  layer.busy[time.engine] += time.done - time.start;
  if (time.memory == static_cast<uint8_t>(npu::MemoryId::kSecond))
    (npu::isLoad(time.engine) ? layer.secondLoaded : layer.secondStored) +=
        static_cast<uint64_t>(time.memoryBytes);
  if (time.expandedBytes) {
    layer.expanded += static_cast<uint64_t>(time.expandedBytes);
    layer.compressed += static_cast<uint64_t>(time.memoryBytes);
  }
  if (time.engine) {
    for (size_t i = 0; i < time.stalls.size(); ++i) layer.stalls[i] += time.stalls[i];
    layer.start = layer.start < 0 ? time.start : std::min(layer.start, time.start);
    layer.done = std::max(layer.done, time.done);
    causes_.add(time);
    if (!npu::isLoad(time.engine) && !layer.fixed.empty()) advance(time, layerOf_[symbol]);
  }
  if (!wanted || !isListed(time)) return;
  const auto stall = [&](npu::Stall by) { return time.stalls[static_cast<size_t>(by)]; };
  timeline_ += cdl::text(
      "{\"seq\":", time.sequence, ",\"engine\":\"",
      configuration_.cores() > 1 ? cdl::text("core ", int{time.core}, " ") : std::string(),
      std::string(npu::engineName(time.engine)), "\",\"instruction\":", time.instruction,
      ",\"op\":\"", std::string(npu::opInfo(static_cast<uint64_t>(time.op))->name),
      "\",\"start\":", time.start, ",\"done\":", time.done,
      ",\"waited\":{\"queue\":", stall(npu::Stall::kQueue),
      ",\"semaphore\":", stall(npu::Stall::kSemaphore),
      configuration_.cores() > 1 ? cdl::text(",\"core\":", stall(npu::Stall::kCore))
                                 : std::string(),
      "},\"stall\":\"", std::string(npu::stallName(time.stall())),
      "\",\"within\":{\"bank\":", stall(npu::Stall::kBank), ",\"dram\":", stall(npu::Stall::kDram),
      "}");
  if (time.waitCount) {
    timeline_ += cdl::text(",\"wait\":[", int{time.waitSemaphore}, ",", int{time.waitCount},
                           "],\"after\":[");
    for (int i = 0; i < time.waitCount; ++i)
      timeline_ += cdl::text(i ? "," : "", time.after[static_cast<size_t>(i)]);
    timeline_ += "]";
  }
  if (time.awaited >= 0) timeline_ += cdl::text(",\"awaited\":", time.awaited);
  if (time.signalCount)
    timeline_ +=
        cdl::text(",\"signal\":[", int{time.signalSemaphore}, ",", int{time.signalCount}, "]");
  if (symbol < binary_.symbols.size())
    timeline_ += cdl::text(",\"node\":\"", jsonString(binary_.symbols[symbol].node),
                           "\",\"tile\":", binary_.symbols[symbol].tile);
  if (time.bytes) timeline_ += cdl::text(",\"bytes\":", time.bytes);
  timeline_ += "}\n";
}

/// Loads run ahead for others: who waited for them has those cycles. While the array multiplies,
/// they are its layer's.
void LayerReport::advance(const npu::InstructionTime& time, uint32_t layer) {
  if (static_cast<npu::Engine>(time.engine) == npu::Engine::kMatrix)
    causes_.takeOver(layer, time.start);
  if (time.done <= frontier_) return;
  causes_.own(layer, time.done);
  frontier_ = time.done;
  last_ = layer;
}

void LayerReport::finish(const npu::TimeReport& time) {
  time_ = time;
  hasTime_ = true;
  causes_.own(last_, time.cycles);
  const std::vector<CauseCycles> causes = causes_.byLayer(layers_.size(), time.cycles);
  for (size_t l = 0; l < layers_.size(); ++l) layers_[l].causes = causes[l];
  timeline_ =
      cdl::text("{\"program\":\"", jsonString(program_), "\",\"npu\":\"",
                jsonString(configuration_.name), "\",\"fidelity\":\"",
                std::string(npu::fidelityName(time.fidelity)),
                "\",\"clock_mhz\":", configuration_[npu::key::kClockMhz],
                ",\"cycles\":", time.cycles, ",\"instructions\":", binary_.code.size(), "}\n") +
      timeline_;
}

std::string LayerReport::engines(const std::array<int64_t, npu::kEngineCount>& cycles) const {
  std::string text;
  for (int engine = 0; engine < npu::kEngineCount; ++engine)
    if (configuration_.engines() >> engine & 1)
      text += cdl::text(text.empty() ? "{\"" : ",\"", std::string(npu::engineName(engine)),
                        "\":", cycles[static_cast<size_t>(engine)]);
  return text + "}";
}

/// Counts may come behind the time: that of the array is parted when both are there.
CauseCycles LayerReport::causesOf(const Layer& layer) const {
  const auto counter = [&](npu::Counter which) {
    return static_cast<int64_t>(layer.counters[static_cast<size_t>(which)]);
  };
  CauseCycles causes = layer.causes;
  const int64_t peak = configuration_.rows() * configuration_.columns();
  partArray({.busy = layer.busy[static_cast<size_t>(npu::Engine::kMatrix)],
             .passes = counter(npu::Counter::kArrayPasses),
             .products = counter(npu::Counter::kMacs) / peak},
            causes);
  return causes;
}

/// Of each core its end and its engines, where there are several.
std::string LayerReport::coresText() const {
  std::string text;
  for (const npu::CoreTime& core : time_.cores) {
    std::array<int64_t, npu::kEngineCount> busy{};
    std::string stalls;
    for (int engine = 0; engine < npu::kEngineCount; ++engine) {
      const npu::EngineTime& each = core.engines[static_cast<size_t>(engine)];
      busy[static_cast<size_t>(engine)] = each.busy;
      if (configuration_.engines() >> engine & 1)
        stalls += cdl::text(stalls.empty() ? "{\"" : ",\"", std::string(npu::engineName(engine)),
                            "\":", stallsText(each.stalls));
    }
    text += cdl::text(text.empty() ? "" : ",", "{\"cycles\":", core.cycles,
                      ",\"busy\":", engines(busy), ",\"stall\":", stalls, "}}");
  }
  return text.empty() ? text : "\"cores\":[" + text + "],";
}

std::string LayerReport::timeText() const {
  std::array<int64_t, npu::kEngineCount> busy{};
  std::string stalls, constants, provenance;
  for (int engine = 0; engine < npu::kEngineCount; ++engine) {
    const npu::EngineTime& each = time_.engines[static_cast<size_t>(engine)];
    busy[static_cast<size_t>(engine)] = each.busy;
    if (configuration_.engines() >> engine & 1)
      stalls += cdl::text(stalls.empty() ? "{\"" : ",\"", std::string(npu::engineName(engine)),
                          "\":", stallsText(each.stalls));
  }
  CauseCycles causes{};
  for (const Layer& layer : layers_) {
    const CauseCycles own = causesOf(layer);
    for (size_t c = 0; c < causes.size(); ++c) causes[c] += own[c];
  }
  int64_t all = 0;
  for (const int64_t cycles : time_.tagged) all += cycles;
  for (int tag = 0; tag < npu::kTags; ++tag)
    provenance +=
        cdl::text(tag ? ",\"" : "{\"", std::string(npu::tagName(static_cast<npu::Tag>(tag))), "\":",
                  number(all ? static_cast<double>(time_.tagged[static_cast<size_t>(tag)]) /
                                   static_cast<double>(all)
                             : 0));
  for (const npu::TimingConstant& c : npu::timingConstants())
    constants += cdl::text(constants.empty() ? "[" : ",", "{\"name\":\"", std::string(c.name),
                           "\",\"value\":", c.value, ",\"unit\":\"", std::string(c.unit),
                           "\",\"tag\":\"", std::string(npu::tagName(c.tag)), "\",\"source\":\"",
                           jsonString(std::string(c.source)), "\"}");
  return cdl::text("{\"fidelity\":\"", std::string(npu::fidelityName(time_.fidelity)),
                   "\",\"clock_mhz\":", configuration_[npu::key::kClockMhz],
                   ",\"cycles\":", time_.cycles, ",\"peak_macs_per_cycle\":",
                   static_cast<int64_t>(configuration_.cores()) * configuration_.rows() *
                       configuration_.columns(),
                   ",\"dram_bytes_per_cycle\":", number(time_.dramBytesPerCycle),
                   ",\"dram\":{\"bytes\":", time_.dramBytes, ",\"bursts\":", time_.dramBursts,
                   ",\"row_hits\":", time_.rowHits, ",\"row_misses\":", time_.rowMisses,
                   ",\"bus_busy\":", time_.dramBusy, ",\"refreshes\":", time_.refreshes, "},",
                   secondText(),
                   hasCauses_ ? cdl::text("\"causes\":", causesText(causes), ",") : "", coresText(),
                   "\"busy\":", engines(busy), ",\"stall\":", stalls,
                   "},\"provenance\":", provenance, "},\"constants\":", constants, "]}");
}

std::string LayerReport::secondText() const {
  if (!time_.second) return "";
  const npu::MemoryTime& second = *time_.second;
  return cdl::text("\"second_bytes_per_cycle\":", number(second.bytesPerCycle),
                   ",\"second\":{\"bytes\":", second.bytes, ",\"bursts\":", second.bursts,
                   ",\"row_hits\":", second.rowHits, ",\"row_misses\":", second.rowMisses,
                   ",\"bus_busy\":", second.busy, "},");
}

std::string LayerReport::text() const {
  std::string text =
      hasTime_
          ? cdl::text(",\"cycles\":", time_.counters[static_cast<size_t>(npu::Counter::kCycles)],
                      ",\"time\":", timeText())
          : std::string();
  std::string layers;
  for (const Layer& layer : layers_) {
    if (layer.fixed.empty()) continue;
    const auto counter = [&](npu::Counter which) {
      return layer.counters[static_cast<size_t>(which)];
    };
    layers += cdl::text(layers.empty() ? "" : ",", layer.fixed,
                        ",\"program_bytes\":", layer.words * sizeof(npu::Word),
                        ",\"passes\":", counter(npu::Counter::kArrayPasses),
                        configuration_.isOutputStationary()
                            ? cdl::text(",\"folds\":", counter(npu::Counter::kWeightTiles))
                            : "",
                        ",\"requant_values\":", counter(npu::Counter::kRequantValues),
                        ",\"vector_values\":", counter(npu::Counter::kVectorValues),
                        ",\"scratchpad_read\":", counter(npu::Counter::kScratchpadRead),
                        ",\"scratchpad_written\":", counter(npu::Counter::kScratchpadWritten));
    if (hasTime_)
      layers += cdl::text(
          ",\"cycles\":", std::accumulate(layer.causes.begin(), layer.causes.end(), int64_t{0}),
          ",\"start\":", std::max<int64_t>(0, layer.start), ",\"done\":", layer.done,
          ",\"busy\":", engines(layer.busy), ",\"stall\":", stallsText(layer.stalls));
    if (hasTime_ && configuration_.hasSecond())
      layers += cdl::text(",\"second_loaded\":", layer.secondLoaded,
                          ",\"second_stored\":", layer.secondStored);
    if (hasTime_ && configuration_.compressesConstants())
      layers += cdl::text(",\"expanded_bytes\":", layer.expanded,
                          ",\"compressed_bytes\":", layer.compressed);
    if (hasTime_ && hasCauses_) layers += cdl::text(",\"causes\":", causesText(causesOf(layer)));
    layers += "}";
  }
  return text + ",\"layers\":[" + layers + "]";
}

} // namespace npu_sim
