#include "core/plan/tile/chain.h"

#include <algorithm>
#include <set>
#include <span>

#include "core/program/dependences.h"

namespace candela::plan {

using namespace program;

namespace {

using Dims = std::vector<int64_t>;

/// Products of the innermost dims above 1, each once.
std::set<int64_t> cuts(const Dims& dims) {
  std::set<int64_t> products;
  int64_t product = 1;
  for (size_t d = dims.size(); d-- > 0;) products.insert(product *= dims[d]);
  products.erase(1);
  return products;
}

/// The fewest dims that both are products of neighbours of; nullopt where there are none.
std::optional<Dims> refined(const Dims& a, const Dims& b) {
  std::set<int64_t> products = cuts(a);
  products.merge(cuts(b));
  Dims dims;
  int64_t before = 1;
  for (const int64_t product : products) {
    if (product % before) return std::nullopt;
    dims.insert(dims.begin(), product / before);
    before = product;
  }
  if (dims.empty()) dims = {1};
  return dims.size() <= CDL_MAX_RANK ? std::optional(dims) : std::nullopt;
}

/// The same elements in the same order over dims that split those of the view; nullopt where they do not.
std::optional<View> over(const View& view, const Dims& dims) {
  if (view.dims == dims) return view;
  View result = view;
  result.layout = {};
  result.dims = dims;
  result.strides.assign(dims.size(), 0);
  size_t d = dims.size();
  for (size_t old = view.dims.size(); old-- > 0;) {
    int64_t inside = 1;
    while (inside < view.dims[old]) {
      if (d == 0) return std::nullopt;
      --d;
      result.strides[d] = view.strides[old] * inside;
      inside *= dims[d];
    }
    if (inside != view.dims[old]) return std::nullopt;
  }
  while (d-- > 0)
    if (dims[d] != 1) return std::nullopt;
  return result;
}

bool walksAlike(const View& a, const View& b) {
  if (a.buffer != b.buffer || a.offset != b.offset || a.dims != b.dims || a.elem != b.elem) return false;
  for (size_t d = 0; d < a.dims.size(); ++d)
    if (a.dims[d] > 1 && a.strides[d] != b.strides[d]) return false;
  return true;
}

/// Who touches each buffer, in order.
struct Touch {
  uint32_t instr = 0;
  Access access;
};

class Collector {
public:
  Collector(const Program& program, const std::vector<bool>& isDone)
      : program_(program), isDone_(isDone), touches_(program.buffers.size()), isIn_(program.instrs.size(), false) {
    for (uint32_t i = 0; i < program.instrs.size(); ++i) {
      const Instr& instr = program.instrs[i];
      for (const View& view : instr.inputs) add(i, view, false);
      for (const View& view : instr.outputs) {
        if (instr.inout) add(i, view, false);
        add(i, view, true);
      }
    }
  }

  std::vector<Chain> collect(bool fuse) {
    std::vector<Chain> chains;
    for (uint32_t i = 0; i < program_.instrs.size(); ++i) {
      const Instr& instr = program_.instrs[i];
      if (isIn_[i] || isDone_[i] || instr.outputs[0].count() == 0) continue;
      isIn_[i] = true;
      Chain chain = begin(i);
      if (fuse && !instr.inout && instr.outputs.size() == 1 && instr.kind != CDL_KIND_CUSTOM)
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
    if (buffer.role == Role::temp && buffer.offset != CDL_UNPLACED)
      access.begin -= buffer.offset, access.end -= buffer.offset;
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
    if (isElementwise(link.work.kind) || link.work.kind == CDL_KIND_COPY || link.work.kind == CDL_KIND_FILL)
      for (auto* views : {&link.work.inputs, &link.work.outputs})
        for (View& view : *views) view.layout = {};
    chain.work = workOf(link.work);
    link.inputs = chain.work.inputs;
    link.outputs = chain.work.outputs;
    chain.links.push_back(std::move(link));
    return chain;
  }

  /// The only instruction that reads what `writer` wrote there before others write over it; kNone where there is none,
  /// or several.
  uint32_t readerOf(uint32_t writer, const View& view) const {
    const Access written = accessOf(program_, program_.instrs[writer], view, true);
    const Buffer& buffer = program_.buffers[view.buffer];
    const uint64_t shift = buffer.offset == CDL_UNPLACED ? 0 : buffer.offset;
    uint64_t begin = written.begin - shift, end = written.end - shift;
    uint32_t reader = kNone;
    for (const Touch& touch : touchesAfter(view.buffer, writer)) {
      if (begin >= end) break;
      if (begin >= end || touch.access.begin >= end || touch.access.end <= begin) continue;
      if (!touch.access.write) {
        if (reader != kNone && reader != touch.instr) return kNone;
        reader = touch.instr;
        continue;
      }
      if (reader == kNone) return kNone; // something is written into it first
      if (touch.access.begin <= begin) begin = std::max(begin, touch.access.end);
      if (touch.access.end >= end) end = std::min(end, touch.access.begin);
    }
    return reader;
  }

  /// Links may wait until `to`: nothing between reads or writes what they write, or writes what they read.
  bool canWait(const Chain& chain, uint32_t to) const {
    for (const Link& link : chain.links) {
      const Instr& instr = program_.instrs[link.instr];
      const auto meets = [&](const View& view, bool write) {
        for (const Touch& touch : touchesAfter(view.buffer, link.instr)) {
          if (touch.instr >= to) break;
          if ((write || touch.access.write) &&
              std::ranges::none_of(chain.links, [&](const Link& own) { return own.instr == touch.instr; }))
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

  /// Every view of the link over these dims, its maps those of the first result.
  static bool recast(Link& link, const Dims& dims, const ViewMap& map) {
    for (auto* views : {&link.work.inputs, &link.work.outputs})
      for (View& view : *views) {
        if (link.work.kind == CDL_KIND_TABLE && views == &link.work.inputs && &view == &(*views)[1]) continue;
        auto recast = over(view, dims);
        if (!recast) return false;
        view = std::move(*recast);
      }
    link.inputs.assign(link.work.inputs.size(), map);
    if (link.work.kind == CDL_KIND_TABLE) link.inputs[1] = ViewMap(1, DimMap{});
    link.outputs = {map};
    return true;
  }

  /// Takes in the one who reads the last result, when that one goes element by element.
  bool join(Chain& chain) {
    const Link& last = chain.last();
    const View& out = program_.instrs[last.instr].outputs[0];
    const Buffer& between = program_.buffers[out.buffer];
    if (between.role != Role::temp || between.halo || last.work.kind == CDL_KIND_COPY) return false;
    const uint32_t reader = readerOf(last.instr, out);
    if (reader == kNone || isIn_[reader] || isDone_[reader]) return false;
    const Instr& instr = program_.instrs[reader];
    if ((!isElementwise(instr.kind) && instr.kind != CDL_KIND_COPY) || instr.outputs[0].buffer == out.buffer)
      return false;
    Chain longer = chain;
    Link link{reader, instr, {}, {}, {}};
    for (auto* views : {&link.work.inputs, &link.work.outputs})
      for (View& view : *views) {
        if (view.elem != Elem::none && isPacked(view.elem)) return false;
        if (view.layout.opaque) return false;
        view.layout = {};
      }
    const bool isFree =
        std::ranges::all_of(chain.links, [](const Link& each) { return isElementwise(each.work.kind); });
    const Dims head = chain.links[0].work.outputs[0].dims;
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
    if (!recast(link, *dims, longer.work.outputs[0])) return false;
    View written = longer.links.back().work.outputs[0];
    for (size_t i = 0; i < link.work.inputs.size(); ++i) {
      if (link.work.inputs[i].buffer != out.buffer) continue;
      if (!walksAlike(link.work.inputs[i], written) || (instr.kind == CDL_KIND_TABLE && i == 1)) return false;
      link.fromBefore.push_back(i);
    }
    longer.links.push_back(std::move(link));
    if (!canWait(longer, reader)) return false;
    isIn_[reader] = true;
    chain = std::move(longer);
    return true;
  }

  const Program& program_;
  const std::vector<bool>& isDone_;
  std::vector<std::vector<Touch>> touches_; ///< by buffer
  std::vector<bool> isIn_;
};

} // namespace

std::vector<Chain> chainsOf(const Program& program, const std::vector<bool>& isDone, bool fuse) {
  return Collector(program, isDone).collect(fuse);
}

} // namespace candela::plan
