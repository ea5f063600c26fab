#include "core/compiler/program/passes/tile/chain.h"

#include <algorithm>
#include <span>

#include "core/compiler/program/dependences.h"
#include "core/compiler/program/passes/tile/follow.h"

namespace candela::program::passes::tile {

namespace {

using Dims = std::vector<int64_t>;

/// An access of an instruction to a buffer.
struct Touch {
  uint32_t instr = 0;
  Access access;
};

class Collector {
public:
  Collector(const Program& program, const std::vector<bool>& isDone, const ChainOptions& options)
      : program_(program), isDone_(isDone), options_(options), touches_(program.buffers.size()),
        isIn_(program.instrs.size(), false) {
    for (uint32_t i = 0; i < program.instrs.size(); ++i) {
      const Instr& instr = program.instrs[i];
      for (const View& view : instr.inputs) add(i, view, false);
      for (const View& view : instr.outputs) {
        if (instr.inout) add(i, view, false);
        add(i, view, true);
      }
    }
  }

  std::vector<Chain> collect() {
    std::vector<Chain> chains;
    for (uint32_t i = 0; i < program_.instrs.size(); ++i) {
      const Instr& instr = program_.instrs[i];
      if (isIn_[i] || isDone_[i] || instr.outputs[0].count() == 0) continue;
      isIn_[i] = true;
      Chain chain = begin(i);
      if (options_.fuse && !instr.inout && instr.outputs.size() == 1 &&
          instr.kind != CDL_KIND_CUSTOM)
        while (join(chain)) {}
      chains.push_back(std::move(chain));
    }
    std::ranges::stable_sort(chains, {}, &Chain::place);
    return chains;
  }

private:
  void add(uint32_t i, const View& view, bool write) {
    // Ranges within the buffer, placed or not.
    Access access = accessOf(program_, program_.instrs[i], view, write);
    const Buffer& buffer = program_.buffers[view.buffer];
    if (buffer.role == Role::temp && buffer.offset != CDL_UNPLACED) {
      access.begin -= buffer.offset;
      access.end -= buffer.offset;
    }
    if (access.begin < access.end) touches_[view.buffer].push_back({i, access});
  }

  std::span<const Touch> touchesAfter(uint32_t buffer, uint32_t instr) const {
    const auto& all = touches_[buffer];
    return {std::ranges::upper_bound(all, instr, {}, &Touch::instr), all.end()};
  }

  Chain begin(uint32_t i) const {
    Chain chain;
    Link link{i, program_.instrs[i], {}, {}, {}};
    skipPixels(link.work);
    if (isElementwise(link.work.kind) || link.work.kind == CDL_KIND_COPY ||
        link.work.kind == CDL_KIND_FILL)
      for (auto* views : {&link.work.inputs, &link.work.outputs})
        for (View& view : *views) view.layout = {};
    chain.work = workOf(link.work);
    link.inputs = chain.work.inputs;
    link.outputs = chain.work.outputs;
    chain.links.push_back(std::move(link));
    return chain;
  }

  /// The instructions that read what `writer` wrote there before others write over it, in order;
  /// none where others write into it first.
  std::vector<uint32_t> readersOf(uint32_t writer, const View& view) const {
    const Access written = accessOf(program_, program_.instrs[writer], view, true);
    const Buffer& buffer = program_.buffers[view.buffer];
    const uint64_t shift = buffer.offset == CDL_UNPLACED ? 0 : buffer.offset;
    uint64_t begin = written.begin - shift, end = written.end - shift;
    std::vector<uint32_t> readers;
    for (const Touch& touch : touchesAfter(view.buffer, writer)) {
      if (begin >= end) break;
      if (touch.access.begin >= end || touch.access.end <= begin) continue;
      if (!touch.access.write) {
        if (readers.empty() || readers.back() != touch.instr) readers.push_back(touch.instr);
        continue;
      }
      if (readers.empty()) return {};
      if (touch.access.begin <= begin) begin = std::max(begin, touch.access.end);
      if (touch.access.end >= end) end = std::min(end, touch.access.begin);
    }
    return readers;
  }

  /// Whether the links may wait until `to`: nothing in between reads or writes what they write, or
  /// writes what they read.
  bool canWait(const Chain& chain, uint32_t to) const {
    for (const Link& link : chain.links) {
      const Instr& instr = program_.instrs[link.instr];
      const auto meets = [&](const View& view, bool write) {
        for (const Touch& touch : touchesAfter(view.buffer, link.instr)) {
          if (touch.instr >= to) break;
          if ((write || touch.access.write) &&
              std::ranges::none_of(chain.links,
                                   [&](const Link& own) { return own.instr == touch.instr; }))
            return true;
        }
        return false;
      };
      for (const View& view : instr.inputs)
        if (meets(view, false)) return false;
      for (const View& view : instr.outputs)
        if (meets(view, true)) return false;
    }
    return true;
  }

  /// Puts every view of the link over these dims, with the maps of the first result. False: a view
  /// does not split that way.
  static bool recast(Link& link, const Dims& dims, const ViewMap& map) {
    for (auto* views : {&link.work.inputs, &link.work.outputs})
      for (View& view : *views) {
        if (link.work.kind == CDL_KIND_TABLE && views == &link.work.inputs && &view == &(*views)[1])
          continue;
        auto recast = over(view, dims);
        if (!recast) return false;
        view = std::move(*recast);
      }
    link.inputs.assign(link.work.inputs.size(), map);
    if (link.work.kind == CDL_KIND_TABLE) link.inputs[1] = ViewMap(1, DimMap{});
    link.outputs = {map};
    return true;
  }

  /// Takes in the first instruction that reads the last result, when it can go tile by tile behind
  /// it.
  bool join(Chain& chain) {
    const Link& last = chain.last();
    const View& out = program_.instrs[last.instr].outputs[0];
    const Buffer& between = program_.buffers[out.buffer];
    if (between.role != Role::temp || between.halo || last.work.kind == CDL_KIND_COPY) return false;
    const std::vector<uint32_t> readers = readersOf(last.instr, out);
    if (readers.empty() || isIn_[readers[0]] || isDone_[readers[0]]) return false;
    const uint32_t reader = readers[0];
    const Instr& instr = program_.instrs[reader];
    if (instr.outputs[0].buffer == out.buffer || instr.inout) return false;
    if (!isElementwise(instr.kind) && instr.kind != CDL_KIND_COPY)
      return joinShape(chain, reader, readers.size() > 1);
    if (readers.size() > 1) return false;
    Chain longer = chain;
    Link link{reader, instr, {}, {}, {}};
    for (auto* views : {&link.work.inputs, &link.work.outputs})
      for (View& view : *views) {
        if (view.elem != Elem::none && isPacked(view.elem)) return false;
        if (view.layout.opaque) return false;
        view.layout = {};
      }
    const bool isFree = std::ranges::all_of(
        chain.links, [](const Link& each) { return isElementwise(each.work.kind); });
    const Dims head = last.work.outputs[0].dims;
    auto dims = refined(head, link.work.outputs[0].dims);
    if (!dims) return false;
    if (!isFree) { // the first one's dims stay
      if (cuts(*dims) != cuts(head)) return false;
      dims = head;
    } else if (*dims != head) {
      for (Link& each : longer.links)
        if (!recast(each, *dims, {})) return false;
      longer.work = workOf(longer.links[0].work);
      for (Link& each : longer.links) recast(each, *dims, longer.work.outputs[0]);
      longer.links[0].inputs = longer.work.inputs;
    }
    if (!recast(link, *dims, longer.last().outputs[0])) return false;
    View written = longer.links.back().work.outputs[0];
    for (size_t i = 0; i < link.work.inputs.size(); ++i) {
      if (link.work.inputs[i].buffer != out.buffer) continue;
      if (!walksAlike(link.work.inputs[i], written) || (instr.kind == CDL_KIND_TABLE && i == 1))
        return false;
      link.fromBefore.push_back(i);
    }
    longer.links.push_back(std::move(link));
    if (!canWait(longer, reader)) return false;
    isIn_[reader] = true;
    chain = std::move(longer);
    return true;
  }

  /// As `join`, for an instruction whose result has another shape, where the value between the two
  /// would hardly stay in local memory.
  bool joinShape(Chain& chain, uint32_t reader, bool leaves) {
    const View& out = program_.instrs[chain.last().instr].outputs[0];
    const Instr& instr = program_.instrs[reader];
    if (program_.buffers[out.buffer].bytes <= options_.largeBytes || instr.outputs.size() != 1 ||
        (!options_.mayNotShape.empty() && options_.mayNotShape[reader]))
      return false;
    Chain longer = chain;
    longer.links.back().leaves = leaves;
    Link link{reader, instr, {}, {}, {}, true};
    if (!follow(longer, link)) return false;
    longer.links.push_back(std::move(link));
    if (!canWait(longer, reader)) return false;
    isIn_[reader] = true;
    chain = std::move(longer);
    return true;
  }

  const Program& program_;
  const std::vector<bool>& isDone_;
  const ChainOptions& options_;
  std::vector<std::vector<Touch>> touches_; ///< by buffer, in the order of instructions
  std::vector<bool> isIn_;                  ///< by instruction: some chain has it
};

} // namespace

std::vector<Chain> chainsOf(const Program& program, const std::vector<bool>& isDone,
                            const ChainOptions& options) {
  return Collector(program, isDone, options).collect();
}

} // namespace candela::program::passes::tile
