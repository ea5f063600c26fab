#include "tools/candela/debug/shrink.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "core/compiler/program/dependences.h"

namespace candela::tool {
namespace {

using program::Program;
using program::Role;
using program::View;

/// Inputs with the types that the views give their buffers.
void retype(Trial& trial) {
  for (uint32_t b = 0, next = 0; b < trial.program.buffers.size() && next < trial.inputs.size();
       ++b)
    if (const Role role = trial.program.buffers[b].role;
        role == Role::input || role == Role::inout) {
      Tensor& tensor = trial.inputs[next++];
      std::tie(tensor.elem, tensor.dims) = trial.program.contentType(b);
    }
}

/// Takes the candidate as it is when it shows the same fault.
bool takeAsIs(Suspect& suspect, Trial candidate, Search& search) {
  if (search.isOver() || !isSound(candidate)) return false;
  Finding finding = search.ask(candidate);
  ++suspect.tries;
  if (!finding.isLike(suspect.finding)) return false;
  suspect.trial = std::move(candidate);
  suspect.finding = std::move(finding);
  return true;
}

/// Takes the candidate, whose answer and types are out of date, when it shows the same fault.
bool take(Suspect& suspect, Trial candidate, Search& search) {
  candidate.want.reset();
  retype(candidate);
  return takeAsIs(suspect, std::move(candidate), search);
}

// ---- Instructions and steps

/// Temps that instruction i is the first to use, with some bytes instead: without it nothing would
/// write them.
void bindTemps(Trial& trial, uint32_t i) {
  Program& p = trial.program;
  const auto uses = [&](uint32_t instr, uint32_t buffer) {
    const auto is = [&](const View& view) { return view.buffer == buffer; };
    return std::ranges::any_of(p.instrs[instr].inputs, is) ||
           std::ranges::any_of(p.instrs[instr].outputs, is);
  };
  for (uint32_t b = 0, next = 0; b < p.buffers.size(); ++b) {
    program::Buffer& buffer = p.buffers[b];
    if (buffer.role == Role::temp) {
      uint32_t first = 0;
      while (first < i && !uses(first, b)) ++first;
      if (first < i || !uses(i, b)) continue;
      buffer.role = isWritten(p, b) ? Role::inout : Role::input;
      buffer.offset = 0;
      buffer.space = 0;                                                  // where bound buffers lie
      const std::vector<std::byte> bytes(buffer.bytes, std::byte{0x3f}); // 0.747 as f32
      trial.inputs.insert(trial.inputs.begin() + next,
                          {Elem::u8_, {}, Bytes::copyOf(bytes.data(), bytes.size())});
    }
    next += buffer.role == Role::input || buffer.role == Role::inout;
  }
}

bool dropInstrs(Suspect& suspect, Search& search) {
  bool any = false;
  for (uint32_t i = 0;
       i < suspect.trial.program.instrs.size() && suspect.trial.program.instrs.size() > 1;) {
    Trial candidate = suspect.trial;
    bindTemps(candidate, i);
    std::vector<bool> keeps(candidate.program.instrs.size(), true);
    keeps[i] = false;
    candidate.program = without(candidate.program, keeps);
    dropUnused(candidate);
    if (take(suspect, std::move(candidate), search))
      any = true;
    else
      ++i;
  }
  return any;
}

/// Views that an expression no longer names go with it.
void dropUnnamedViews(program::Instr& instr) {
  const cdl_kind_facts_t* facts = cdl_kind_facts(instr.kind);
  std::set<uint16_t> named;
  for (const program::Step& step : instr.expr)
    for (const program::Operand& operand : step.in)
      if (operand.source == program::Operand::Source::view) named.insert(operand.index);
  for (size_t v = instr.inputs.size(); v-- > (facts ? facts->min_inputs : 0u);) {
    if (named.contains(static_cast<uint16_t>(v))) continue;
    instr.inputs.erase(instr.inputs.begin() + static_cast<std::ptrdiff_t>(v));
    for (program::Step& step : instr.expr)
      for (program::Operand& operand : step.in)
        if (operand.source == program::Operand::Source::view && operand.index > v) --operand.index;
  }
}

bool dropSteps(Suspect& suspect, Search& search) {
  bool any = false;
  for (uint32_t i = 0; i < suspect.trial.program.instrs.size(); ++i)
    while (suspect.trial.program.instrs[i].expr.size() > suspect.trial.program.instrs[i].prologue) {
      Trial all = suspect.trial, last = suspect.trial;
      program::Instr& bare = all.program.instrs[i];
      bare.inputs.resize(bare.operandCount());
      bare.expr.resize(bare.prologue);
      dropUnused(all);
      program::Instr& shorter = last.program.instrs[i];
      shorter.expr.pop_back();
      if (shorter.expr.size() == shorter.prologue)
        shorter.inputs.resize(suspect.trial.program.instrs[i].operandCount());
      else if (shorter.expr.back().elem == shorter.outputs[0].elem)
        dropUnnamedViews(shorter);
      dropUnused(last);
      if (!take(suspect, std::move(all), search) && !take(suspect, std::move(last), search)) break;
      any = true;
    }
  return any;
}

// ---- Dims

bool trim(Trial& trial, uint32_t b, bool front);

/// One dim of one view.
struct Axis {
  uint32_t instr = 0;
  bool isOutput = false;
  uint32_t view = 0, dim = 0;
};
View& viewOf(Program& program, const Axis& axis) {
  program::Instr& instr = program.instrs[axis.instr];
  return (axis.isOutput ? instr.outputs : instr.inputs)[axis.view];
}

/// The axes become [first, first + extent) of what they are.
Trial cut(const Trial& trial, const std::vector<Axis>& axes, int64_t first, int64_t extent) {
  Trial candidate = trial;
  for (const Axis& axis : axes) {
    View& view = viewOf(candidate.program, axis);
    view.dims[axis.dim] = extent;
    view.offset += first * view.strides[axis.dim];
  }
  candidate.want.reset();
  program::rebuildWaits(candidate.program);
  return candidate;
}

/// Which axes of this extent may be cut alone: each set is one that verifies, and none holds
/// another one.
std::vector<std::vector<Axis>> cuttable(const Trial& trial, int64_t extent) {
  constexpr size_t kMostAxes = 10;
  std::vector<Axis> axes;
  Program& program = const_cast<Program&>(trial.program);
  for (uint32_t i = 0; i < program.instrs.size(); ++i)
    for (const bool isOutput : {false, true}) {
      const auto& views = isOutput ? program.instrs[i].outputs : program.instrs[i].inputs;
      for (uint32_t v = 0; v < views.size(); ++v)
        for (uint32_t d = 0; d < views[v].dims.size(); ++d)
          if (views[v].dims[d] == extent && views[v].layout.isRowMajor())
            axes.push_back({i, isOutput, v, d});
    }
  const auto verifies = [&](const std::vector<Axis>& some) {
    return bool(program::verify(cut(trial, some, 0, extent - 1).program));
  };
  std::vector<std::vector<Axis>> sets;
  if (axes.size() > kMostAxes) { // too many to try all: those of one place, then all of them
    std::map<uint32_t, std::vector<Axis>> byDim;
    for (const Axis& axis : axes) byDim[axis.dim].push_back(axis);
    for (const auto& [dim, some] : byDim)
      if (verifies(some)) sets.push_back(some);
    if (sets.empty() && verifies(axes)) sets.push_back(axes);
    return sets;
  }
  std::vector<uint32_t> masks(size_t(1) << axes.size());
  std::iota(masks.begin(), masks.end(), 0);
  std::ranges::stable_sort(masks, {}, [](uint32_t mask) { return std::popcount(mask); });
  std::vector<uint32_t> taken;
  for (const uint32_t mask : masks) {
    if (mask == 0 ||
        std::ranges::any_of(taken, [&](uint32_t other) { return (mask & other) == other; }))
      continue;
    std::vector<Axis> some;
    for (size_t a = 0; a < axes.size(); ++a)
      if (mask >> a & 1) some.push_back(axes[a]);
    if (!verifies(some)) continue;
    taken.push_back(mask);
    sets.push_back(std::move(some));
  }
  return sets;
}

/// Where the worst element lies along these axes.
int64_t worstAlong(const Suspect& suspect, const std::vector<Axis>& axes) {
  for (const Axis& axis : axes)
    if (suspect.trial.program.instrs.size() == 1 && axis.isOutput && axis.view == 0 &&
        axis.dim < suspect.finding.verdict.worst.size())
      return suspect.finding.verdict.worst[axis.dim];
  return 0;
}

bool cutAxes(Suspect& suspect, std::vector<Axis> axes, Search& search) {
  const auto extent = [&] { return viewOf(suspect.trial.program, axes[0]).dims[axes[0].dim]; };
  const auto tryCut = [&](int64_t first, int64_t count) {
    if (first < 0 || first + count > extent()) return false;
    Trial candidate = cut(suspect.trial, axes, first, count), trimmed = candidate;
    bool isTrimmed = false;
    for (uint32_t b = 0; b < trimmed.program.buffers.size(); ++b)
      isTrimmed |= trim(trimmed, b, true);
    return (isTrimmed && take(suspect, std::move(trimmed), search)) ||
           take(suspect, std::move(candidate), search);
  };
  bool any = false;
  if (const int64_t worst = worstAlong(suspect, axes);
      tryCut(worst, 1) || (worst != 0 && tryCut(0, 1)))
    return true;
  while (extent() > 1) { // halves, then the largest piece that may go
    const int64_t old = extent();
    for (int64_t piece = (old + 1) / 2; piece >= 1; piece /= 2)
      if (tryCut(0, old - piece) || tryCut(piece, old - piece)) break;
    if (extent() == old) break;
    any = true;
  }
  return any;
}

bool cutDims(Suspect& suspect, Search& search) {
  bool any = false;
  std::set<int64_t, std::greater<>> done;
  for (;;) {
    int64_t extent = 0; // the largest that was not tried
    for (const program::Instr& instr : suspect.trial.program.instrs)
      for (const auto* views : {&instr.inputs, &instr.outputs})
        for (const View& view : *views)
          for (const int64_t dim : view.dims)
            if (dim > extent && dim > 1 && !done.contains(dim)) extent = dim;
    if (extent == 0 || search.isOver()) return any;
    done.insert(extent);
    for (const std::vector<Axis>& axes : cuttable(suspect.trial, extent)) {
      const bool stillThere = std::ranges::all_of(axes, [&](const Axis& axis) {
        return viewOf(suspect.trial.program, axis).dims[axis.dim] == extent;
      });
      any |= stillThere && cutAxes(suspect, axes, search);
    }
  }
}

/// Windows: fewer places of the result along a spatial dim, and of the operand what they reach.
bool cutWindows(Suspect& suspect, Search& search) {
  bool any = false;
  for (uint32_t i = 0; i < suspect.trial.program.instrs.size(); ++i) {
    const program::Instr& instr = suspect.trial.program.instrs[i];
    if (instr.kind != CDL_KIND_CONV2D && instr.kind != CDL_KIND_POOL2D) continue;
    for (uint32_t dim = 2; dim < 4; ++dim)
      for (bool goesOn = true; goesOn;) {
        const View &x = suspect.trial.program.instrs[i].inputs[0],
                   &y = suspect.trial.program.instrs[i].outputs[0];
        if (x.dims.size() != 4 || y.dims.size() != 4 || !x.layout.isRowMajor() ||
            !y.layout.isRowMajor())
          break;
        goesOn = false;
        for (const int64_t rows : {int64_t(1), y.dims[dim] / 2, y.dims[dim] - 1}) {
          if (rows < 1 || rows >= y.dims[dim] || goesOn) continue;
          // which reach, verify knows
          for (int64_t columns = 1; columns <= x.dims[dim] && !goesOn; ++columns) {
            Trial candidate = suspect.trial;
            program::Instr& smaller = candidate.program.instrs[i];
            for (size_t v = 0; v < smaller.inputs.size(); ++v) {
              if (v == 0)
                smaller.inputs[v].dims[dim] = columns;
              else if (v >= smaller.operandCount() && dim < smaller.inputs[v].dims.size() &&
                       smaller.inputs[v].dims[dim] == y.dims[dim])
                smaller.inputs[v].dims[dim] = rows;
            }
            smaller.outputs[0].dims[dim] = rows;
            if (isSound(candidate)) goesOn = take(suspect, std::move(candidate), search);
          }
        }
        any |= goesOn;
      }
  }
  return any;
}

// ---- Buffers

/// Bytes of a buffer that views reach: [begin, end).
std::pair<uint64_t, uint64_t> reachOf(const Program& program, uint32_t buffer) {
  uint64_t begin = UINT64_MAX, end = 0;
  for (const program::Instr& instr : program.instrs)
    for (const auto* views : {&instr.inputs, &instr.outputs})
      for (const View& view : *views) {
        if (view.buffer != buffer) continue;
        const program::Access access = program::accessOf(program, instr, view, false);
        if (program.buffers[buffer].role == Role::temp) return {0, program.buffers[buffer].bytes};
        begin = std::min(begin, access.begin);
        end = std::max(end, access.end);
      }
  return begin < end ? std::pair(begin, end)
                     : std::pair(uint64_t(0), program.buffers[buffer].bytes);
}

/// The index of a buffer among the inputs of a trial.
size_t inputOf(const Program& program, uint32_t buffer) {
  size_t input = 0;
  for (uint32_t b = 0; b < buffer; ++b)
    input += program.buffers[b].role == Role::input || program.buffers[b].role == Role::inout;
  return input;
}

/// Gives a buffer these bytes in the place of its own.
void refill(Trial& trial, uint32_t b, Bytes bytes) {
  program::Buffer& buffer = trial.program.buffers[b];
  buffer.bytes = bytes.size();
  if (buffer.role != Role::constant) {
    const auto [elem, dims] = trial.program.contentType(b);
    trial.inputs[inputOf(trial.program, b)] = {elem, dims, bytes};
    return;
  }
  program::Constant& constant = trial.program.constants[buffer.constant];
  const Elem elem = constant.payload.elem();
  const auto count = static_cast<int64_t>(bytes.size() * 8 / static_cast<uint64_t>(elemBits(elem)));
  if (constant.payload.form() == Payload::Form::splat)
    constant.payload = Payload::splat(elem, count, constant.payload.splatBits());
  else
    constant.payload = Payload::data({elem, {count}, bytes});
}

std::optional<Bytes> contentOf(const Trial& trial, uint32_t b) {
  const program::Buffer& buffer = trial.program.buffers[b];
  if (buffer.role != Role::constant) return trial.inputs[inputOf(trial.program, b)].bytes;
  const Payload& payload = trial.program.constants[buffer.constant].payload;
  const auto tensor = payload.materialize({payload.count()});
  if (!tensor) return std::nullopt;
  return tensor->bytes;
}

/// A constant that several buffers share, or views of several widths, stay as they are.
bool canChange(const Trial& trial, uint32_t b) {
  const Program& p = trial.program;
  if (p.buffers[b].role == Role::temp || p.buffers[b].halo) return false;
  Elem elem = Elem::none;
  for (const program::Instr& instr : p.instrs)
    for (const auto* views : {&instr.inputs, &instr.outputs})
      for (const View& view : *views) {
        if (view.buffer != b) continue;
        if (view.layout.opaque || elemBits(view.elem) < 8 ||
            (elem != Elem::none && elem != view.elem))
          return false;
        elem = view.elem;
      }
  return std::ranges::count_if(p.buffers, [&](const program::Buffer& other) {
           return other.constant != program::kNone && other.constant == p.buffers[b].constant;
         }) <= 1;
}

/// Cuts off what no view reaches; in front only where `front` says so.
bool trim(Trial& trial, uint32_t b, bool front) {
  if (!canChange(trial, b)) return false;
  auto [begin, end] = reachOf(trial.program, b);
  if (!front) begin = 0;
  end = std::min(end, trial.program.buffers[b].bytes);
  if (end - begin >= trial.program.buffers[b].bytes) return false;
  const auto content = contentOf(trial, b);
  if (!content) return false;
  for (program::Instr& instr : trial.program.instrs)
    for (auto* views : {&instr.inputs, &instr.outputs})
      for (View& view : *views)
        if (view.buffer == b)
          view.offset -=
              static_cast<int64_t>(begin * 8 / static_cast<uint64_t>(elemBits(view.elem)));
  refill(trial, b, Bytes::copyOf(content->data() + begin, end - begin));
  return true;
}

/// Lays out a buffer that one view alone reads as the view has it, without gaps.
bool densify(Trial& trial, uint32_t b) {
  if (!canChange(trial, b)) return false;
  View* only = nullptr;
  for (program::Instr& instr : trial.program.instrs)
    for (auto* views : {&instr.inputs, &instr.outputs})
      for (View& view : *views)
        if (view.buffer == b) {
          if (only || instr.loop != program::kNone) return false;
          only = &view;
        }
  if (!only || only->isDense() || only->count() == 0) return false;
  const auto content = contentOf(trial, b);
  if (!content) return false;
  const auto size = static_cast<size_t>(elemBits(only->elem)) / 8;
  // it reads elements often
  if (static_cast<size_t>(only->count()) * size > content->size()) return false;
  std::vector<std::byte> dense(static_cast<size_t>(only->count()) * size);
  std::vector<int64_t> index(only->dims.size(), 0);
  for (int64_t i = 0, at = only->offset; i < only->count(); ++i) {
    std::copy_n(content->data() + static_cast<size_t>(at) * size, size,
                dense.data() + static_cast<size_t>(i) * size);
    for (size_t d = index.size(); d-- > 0;) {
      at += only->strides[d];
      if (++index[d] < only->dims[d]) break;
      at -= only->strides[d] * only->dims[d];
      index[d] = 0;
    }
  }
  only->offset = 0;
  only->strides = denseStrides(only->dims);
  refill(trial, b, Bytes::copyOf(dense.data(), dense.size()));
  return true;
}

bool shrinkBuffers(Suspect& suspect, Search& search) {
  bool any = false;
  const auto count = [&] { return static_cast<uint32_t>(suspect.trial.program.buffers.size()); };
  const auto all = [&](auto change) { // at once; then one by one
    Trial candidate = suspect.trial;
    bool changes = false;
    for (uint32_t b = 0; b < count(); ++b) changes |= change(candidate, b);
    if (!changes) return;
    if (take(suspect, std::move(candidate), search)) {
      any = true;
      return;
    }
    for (uint32_t b = 0; b < count(); ++b) {
      Trial one = suspect.trial;
      if (change(one, b)) any |= take(suspect, std::move(one), search);
    }
  };
  all([](Trial& trial, uint32_t b) { return trim(trial, b, true); });
  all([](Trial& trial, uint32_t b) { return trim(trial, b, false); });
  all(densify);
  return any;
}

/// The instructions of a Program that stand in no loop, each; loops as a whole.
std::vector<std::vector<uint32_t>> unitsOf(const Program& program) {
  std::vector<std::vector<uint32_t>> units;
  for (uint32_t i = 0; i < program.instrs.size();) {
    std::vector<uint32_t>& unit = units.emplace_back();
    uint32_t end = i + 1;
    for (const program::Loop& loop : program.loops)
      if (loop.parent == program::kNone && loop.first == i) end = i + loop.count;
    for (; i < end; ++i) unit.push_back(i);
  }
  return units;
}

} // namespace

Search::Search(Question question, double seconds, std::function<void(const std::string&)> progress)
    : question_(std::move(question)),
      end_(Clock::now() +
           std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds))),
      progress_(std::move(progress)) {}

Finding Search::ask(const Trial& trial) {
  ++tries_;
  progress_(fmt::format("{} instruction{}, try {}", trial.program.instrs.size(),
                        trial.program.instrs.size() == 1 ? "" : "s", tries_));
  return tool::ask(trial, question_);
}

std::optional<Suspect> findFew(const Program& whole, const Tape& tape, std::optional<size_t> last,
                               Search& search) {
  auto units = unitsOf(whole);
  if (last) {
    const uint32_t instr = tape.executions()[*last].instr;
    std::erase_if(units, [&](const std::vector<uint32_t>& unit) { return unit.front() > instr; });
  }
  const auto part = [&](size_t begin, size_t end) {
    std::vector<uint32_t> instrs;
    for (size_t u = begin; u < end; ++u)
      instrs.insert(instrs.end(), units[u].begin(), units[u].end());
    return slice(whole, tape, instrs, !last);
  };
  Suspect suspect{part(0, units.size()), {}, 1};
  suspect.finding = search.ask(suspect.trial);
  if (!suspect.finding.isFault()) return std::nullopt;
  const auto shows = [&](size_t begin, size_t end) {
    return takeAsIs(suspect, part(begin, end), search);
  };
  size_t low = 0, end = units.size(); // [0, low) is right, [0, end) is not
  while (end - low > 1) {
    const size_t middle = low + (end - low) / 2;
    (shows(0, middle) ? end : low) = middle;
  }
  size_t begin = 0, high = end; // [begin, end) is wrong, [high, end) is right
  // Most faults take few of the last ones.
  for (size_t few = 1; few < end; few *= 2) {
    if (shows(end - few, end)) {
      begin = end - few;
      break;
    }
    high = end - few;
  }
  while (high - begin > 1) {
    const size_t middle = begin + (high - begin) / 2;
    (shows(middle, end) ? begin : high) = middle;
  }
  return suspect;
}

void shrink(Suspect& suspect, Search& search) {
  for (bool goesOn = true; goesOn && !search.isOver();) {
    goesOn = dropInstrs(suspect, search);
    goesOn |= cutDims(suspect, search); // first, that the others be fast
    goesOn |= cutWindows(suspect, search);
    goesOn |= shrinkBuffers(suspect, search);
    goesOn |= dropSteps(suspect, search);
  }
}

} // namespace candela::tool
