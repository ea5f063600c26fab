#include "split.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "simulator/timing/schedule.h"

namespace npu_sim {

namespace {

/// What a value takes to come to another core beside its bytes: two transfers and a post.
constexpr double kHandingCycles = 300;

/// Whether no byte is of both views, as far as that shows: runs that lie in other parts of one
/// period, such as other channels of the same pixels.
bool areApart(const DeviceView& a, const DeviceView& b) {
  const Access first = a.access(false);
  const Access second = b.access(false);
  if (first.end <= second.begin || second.end <= first.begin) return true;
  int64_t period = 0, runs[2] = {a.bytes, b.bytes};
  const DeviceView* const views[2] = {&a, &b};
  // The smallest step above the innermost run of each is the period, of which all others are
  // multiples.
  for (int v = 0; v < 2; ++v) {
    const DeviceView& view = *views[v];
    std::vector<std::pair<int64_t, int64_t>> steps; // bytes, extent
    for (int d = 0; d < view.rank; ++d)
      if (const auto at = static_cast<size_t>(d); view.dims[at] > 1)
        steps.push_back({view.strides[at] * view.bytes, view.dims[at]});
    std::ranges::sort(steps);
    for (const auto& [step, extent] : steps) {
      if (step <= 0) return false;
      if (step == runs[v]) {
        runs[v] *= extent;
        continue;
      }
      if (period == 0) period = step;
      if (step % period != 0 && period % step != 0) return false;
      period = std::min(period, step);
    }
  }
  if (period == 0) return false;
  const int64_t low = std::min(first.begin, second.begin);
  const int64_t at[2] = {(first.begin - low) % period, (second.begin - low) % period};
  if (at[0] + runs[0] > period || at[1] + runs[1] > period) return false;
  return at[0] + runs[0] <= at[1] || at[1] + runs[1] <= at[0];
}

class Splitter {
public:
  Splitter(const ProgramImage& image, const npu::Configuration& configuration,
           const std::vector<bool>& isLeftOut, size_t used)
      : image_(image), configuration_(configuration), isLeftOut_(isLeftOut), used_(used),
        count_(image.instrs()), bytesPerCycle_(npu::Dram(configuration).bytesPerCycle()),
        parent_(count_), isCopied_(count_, false), copies_(count_), from_(count_),
        cycles_(count_, 0), written_(image.raw()->buffers.count),
        out_{std::vector<uint32_t>(count_, 0), std::vector<std::vector<uint32_t>>(count_),
             std::vector<bool>(count_, false), std::vector<uint32_t>(count_, 0)} {
    std::iota(parent_.begin(), parent_.end(), 0u);
  }

  Split run() {
    for (uint32_t i = 1; i < count_; ++i)
      if (!isLeftOut_[i]) follow(i);
    gather();
    place();
    for (uint32_t i = 1; i < count_; ++i)
      for (const uint32_t writer : out_.reads[i])
        if (out_.cores[writer] != out_.cores[i]) out_.isHanded[writer] = true;
    for (uint32_t i = 0; i < count_; ++i) out_.unitOf[i] = rootOf(i);
    return std::move(out_);
  }

private:
  /// The first instruction of a unit stands for it.
  uint32_t rootOf(uint32_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  void join(uint32_t a, uint32_t b) {
    a = rootOf(a);
    b = rootOf(b);
    parent_[std::max(a, b)] = std::min(a, b);
  }

  /// Copies out of DRAM and fills: each core that reads them makes them.
  bool isMadeByReaders(const cdl::Op& op) const {
    if (op.kind() == cdl::Kind::Fill) return true;
    return op.kind() == cdl::Kind::Copy && !image_.input(op, 0).isLocal() &&
           image_.output(op).isLocal();
  }

  /// Finds what an instruction reads, and joins it with those that have to be on its core.
  void follow(uint32_t i) {
    const cdl::Op op = image_.op(i);
    isCopied_[i] = isMadeByReaders(op);
    cycles_[i] = cyclesOf(op);
    for (uint32_t v = 0; v < op.inputs(); ++v) {
      const DeviceView view = image_.input(op, v);
      if (view.isLocal() && !image_.isImmediate(view.buffer)) read(op, view, false);
      if (!view.isLocal())
        for (const Written& each : written_[view.buffer])
          if (!areApart(each.view, view)) from_[i].push_back(each.instr);
    }
    for (uint32_t v = 0; v < op.instr().outputs; ++v) {
      const DeviceView view = image_.output(op, v);
      if (view.elements() == 0) continue;
      if (view.isLocal() && (op.instr().flags & CDL_INSTR_INOUT)) read(op, view, true);
      write(i, view);
    }
    for (std::vector<uint32_t>* list : {&copies_[i], &out_.reads[i]}) {
      std::ranges::sort(*list);
      list->erase(std::ranges::unique(*list).begin(), list->end());
    }
  }

  /// What stands in a buffer. `isOverwritten`: no longer all of it.
  struct Written {
    uint32_t instr = 0;
    DeviceView view;
    bool isOverwritten = false;
  };

  void read(const cdl::Op& op, const DeviceView& view, bool goesOn) {
    if (view.elements() == 0) return;
    const uint32_t i = op.index();
    for (const Written& each : written_[view.buffer]) {
      if (each.instr == i || areApart(each.view, view)) continue;
      if (isCopied_[each.instr]) {
        copies_[i].push_back(each.instr);
        continue;
      }
      const bool isProduct = op.kind() == cdl::Kind::Conv2d || op.kind() == cdl::Kind::MatMul;
      const bool isAlone = !isProduct && image_.readsAlone(each.instr, i, view.buffer);
      const bool isStored = op.kind() == cdl::Kind::Copy && !image_.output(op).isLocal();
      const bool cannotGo = each.isOverwritten || image_.op(each.instr).instr().outputs != 1;
      if (goesOn || isAlone || isStored || cannotGo)
        join(i, each.instr);
      else
        out_.reads[i].push_back(each.instr);
    }
  }

  void write(uint32_t i, const DeviceView& view) {
    const Access bytes = view.access(true);
    const bool isDense = bytes.end - bytes.begin == view.elements() * view.bytes;
    std::vector<Written>& known = written_[view.buffer];
    std::erase_if(known, [&](const Written& each) {
      const Access other = each.view.access(true);
      const bool isCovered = isDense && bytes.begin <= other.begin && other.end <= bytes.end;
      return isCovered || isSameView(each.view, view);
    });
    for (Written& each : known)
      if (!areApart(each.view, view)) each.isOverwritten = true;
    known.push_back({i, view, false});
  }

  double copyCycles(const DeviceView& view) const {
    return static_cast<double>(view.elements() * view.bytes) / bytesPerCycle_;
  }

  /// What an instruction takes, about.
  double cyclesOf(const cdl::Op& op) const {
    const DeviceView y = image_.output(op);
    const auto elements = static_cast<double>(y.elements());
    const double rows = configuration_.rows();
    const double columns = configuration_.columns();
    // places by channels of the result, summed over so many terms
    const auto products = [&](double terms, double channels) {
      const double places = elements / std::max(1.0, channels);
      return std::ceil(terms / rows) * std::ceil(channels / columns) * std::max(places, rows) +
             rows + columns;
    };
    switch (op.kind()) {
    case cdl::Kind::Copy:
    case cdl::Kind::Fill:
      return copyCycles(y) + static_cast<double>(npu::transferOverhead(configuration_)) / 4;
    case cdl::Kind::Conv2d: {
      const DeviceView w = image_.input(op, 1);
      const auto taps = static_cast<double>(w.dims[0] * w.dims[1]);
      const auto channels = static_cast<double>(y.dims[3]);
      if (w.dims[2] == 1 && op.attr(CDL_ATTR_GROUP, 1) > 1)
        return std::ceil(channels / columns) * taps * elements / std::max(1.0, channels) + rows;
      return products(taps * static_cast<double>(w.dims[2]), channels);
    }
    case cdl::Kind::MatMul:
      return products(static_cast<double>(image_.input(op, 0).dims[2]),
                      static_cast<double>(y.dims[2]));
    default: return elements / static_cast<double>(configuration_[npu::key::kVectorLanes]) + rows;
    }
  }

  struct Unit {
    std::vector<uint32_t> instrs; ///< its own
    std::vector<uint32_t> copies; ///< that it needs, each once
    std::vector<uint32_t> reads;  ///< instructions of other units
    double computing = 0;
    double storing = 0;
    double end = 0;
    uint32_t core = 0;
  };

  void gather() {
    unitOf_.assign(count_, 0);
    std::vector<uint32_t> unitOfRoot(count_, UINT32_MAX);
    for (uint32_t i = 1; i < count_; ++i) {
      if (isLeftOut_[i] || isCopied_[i]) continue;
      uint32_t& u = unitOfRoot[rootOf(i)];
      if (u == UINT32_MAX) {
        u = static_cast<uint32_t>(units_.size());
        units_.emplace_back();
      }
      Unit& unit = units_[u];
      unit.instrs.push_back(i);
      unit.copies.insert(unit.copies.end(), copies_[i].begin(), copies_[i].end());
      unit.reads.insert(unit.reads.end(), out_.reads[i].begin(), out_.reads[i].end());
      const bool isCopy = image_.op(i).kind() == cdl::Kind::Copy;
      (isCopy ? unit.storing : unit.computing) += cycles_[i];
      unitOf_[i] = u;
    }
    for (uint32_t u = 0; u < units_.size(); ++u)
      for (std::vector<uint32_t>* list : {&units_[u].copies, &units_[u].reads}) {
        std::ranges::sort(*list);
        list->erase(std::ranges::unique(*list).begin(), list->end());
        std::erase_if(*list, [&](uint32_t i) { return !isCopied_[i] && unitOf_[i] == u; });
      }
  }

  /// The units whose results in DRAM a unit reads.
  std::vector<uint32_t> producersOf(const Unit& unit) const {
    std::vector<uint32_t> found;
    for (const uint32_t copy : unit.copies)
      for (const uint32_t writer : from_[copy]) found.push_back(unitOf_[writer]);
    std::ranges::sort(found);
    found.erase(std::ranges::unique(found).begin(), found.end());
    return found;
  }

  /// When a unit would end on a core that has done what it has by `free`.
  double endOn(const Unit& unit, const std::vector<uint32_t>& producers, uint32_t core,
               double free) const {
    double ready = free;
    double loading = 0;
    for (const uint32_t p : producers)
      ready = std::max(ready, units_[p].end + (units_[p].core == core ? 0 : kHandingCycles));
    for (const uint32_t writer : unit.reads) {
      const Unit& other = units_[unitOf_[writer]];
      ready = std::max(ready, other.end);
      if (other.core == core || has(writer, core)) continue;
      loading += copyCycles(image_.output(image_.op(writer)));
      ready = std::max(ready, other.end + kHandingCycles);
    }
    for (const uint32_t copy : unit.copies)
      if (!has(copy, core)) loading += cycles_[copy];
    return ready + std::max(unit.computing, loading + unit.storing);
  }
  /// Whether a core has what an instruction wrote.
  bool has(uint32_t instr, uint32_t core) const { return onCores_[instr] >> core & 1; }

  void place() {
    const auto cores = static_cast<uint32_t>(used_);
    std::vector<double> free(cores, 0);
    onCores_.assign(count_, 0);
    for (uint32_t u = 0; u < units_.size(); ++u) {
      Unit& unit = units_[u];
      const std::vector<uint32_t> producers = producersOf(unit);
      unit.end = INFINITY;
      for (uint32_t core = 0; core < cores; ++core)
        if (const double end = endOn(unit, producers, core, free[core]); end < unit.end) {
          unit.end = end;
          unit.core = core;
        }
      free[unit.core] = unit.end;
      const uint32_t bit = 1u << unit.core;
      for (const auto* list : {&unit.instrs, &unit.copies, &unit.reads})
        for (const uint32_t i : *list) onCores_[i] |= bit;
      for (const auto* list : {&unit.instrs, &unit.copies})
        for (const uint32_t i : *list) out_.cores[i] |= bit;
    }
  }

  const ProgramImage& image_;
  const npu::Configuration& configuration_;
  const std::vector<bool>& isLeftOut_;
  const size_t used_;
  const uint32_t count_;
  const double bytesPerCycle_;
  std::vector<uint32_t> parent_;
  std::vector<bool> isCopied_;
  std::vector<std::vector<uint32_t>> copies_; ///< by instruction: that it reads of
  std::vector<std::vector<uint32_t>> from_;   ///< by copy out of DRAM: who stored what it reads
  std::vector<double> cycles_;
  std::vector<std::vector<Written>> written_; ///< by buffer
  std::vector<Unit> units_;
  std::vector<uint32_t> unitOf_;
  std::vector<uint32_t> onCores_; ///< by instruction: which cores have what it wrote
  Split out_;
};

} // namespace

Split splitOverCores(const ProgramImage& image, const npu::Configuration& configuration,
                     const std::vector<bool>& isLeftOut, size_t used) {
  if (used > 1) return Splitter(image, configuration, isLeftOut, used).run();
  const size_t count = image.instrs();
  return {std::vector<uint32_t>(count, 1), std::vector<std::vector<uint32_t>>(count),
          std::vector<bool>(count, false), std::vector<uint32_t>(count, 0)};
}

} // namespace npu_sim
