#include <algorithm>
#include <bit>
#include <set>

#include "core/program/verify_internal.h"

namespace candela::program {

namespace {

constexpr int64_t kMaxDim = int64_t(1) << 40;
constexpr uint64_t kMaxBytes = uint64_t(1) << 62;

/// Text and image end strings with NUL or a quote; the image also wants them short.
Status verifyName(std::string_view what, const std::string& name) {
  if (name.empty()) return badModel("a {} has no name", what);
  if (name.find('\0') != std::string::npos) return badModel("{} '{}' has a NUL byte in its name", what, name.c_str());
  return Status::ok();
}

template <typename List> Status verifyNames(std::string_view what, const List& list) {
  std::set<std::string_view> seen;
  for (const auto& item : list) {
    CDL_TRY(verifyName(what, item.name));
    if (!seen.insert(item.name).second) return badModel("two {}s are named '{}'", what, item.name);
  }
  return Status::ok();
}

Status verifySpaces(const Program& program) {
  if (program.spaces.empty()) return badModel("no memory space is declared");
  CDL_TRY(verifyNames("space", program.spaces));
  for (const Space& space : program.spaces) {
    if (space.capacityBytes > kMaxBytes)
      return badModel("space '{}': {} bytes exceed {}", space.name, space.capacityBytes, kMaxBytes);
    if (!std::has_single_bit(space.alignment))
      return badModel("space '{}': alignment {} is no power of two", space.name, space.alignment);
  }
  return Status::ok();
}

Status verifyHalo(const Halo& halo) {
  if (!isValidElem(static_cast<unsigned>(halo.elem))) return badModel("halo without an element type");
  if (halo.lo.empty() || halo.lo.size() > CDL_MAX_RANK || halo.lo.size() != halo.hi.size())
    return badModel("halo has {} lower and {} upper widths, expected as many, 1 to {}", halo.lo.size(), halo.hi.size(),
                    CDL_MAX_RANK);
  if (!fitsElem(halo.fill, halo.elem))
    return badModel("halo's fill {:#x} has more bits than {}", halo.fill, elemName(halo.elem));
  return Status::ok();
}

Status verifyBuffer(const Program& program, const Buffer& buffer) {
  if (buffer.space >= program.spaces.size()) return badModel("space {} of {}", buffer.space, program.spaces.size());
  const Space& space = program.spaces[buffer.space];
  if (!std::has_single_bit(buffer.alignment)) return badModel("alignment {} is no power of two", buffer.alignment);
  if (buffer.bytes > kMaxBytes) return badModel("{} bytes exceed {}", buffer.bytes, kMaxBytes);
  if (buffer.role > Role::constant) return badModel("role {} is unknown", static_cast<int>(buffer.role));
  if (buffer.halo) CDL_TRY(verifyHalo(*buffer.halo));
  if ((buffer.role == Role::constant) != (buffer.constant != kNone))
    return badModel("{}",
                    buffer.constant == kNone ? "a constant buffer without a constant" : "a constant on another role");
  if (buffer.role == Role::constant) {
    if (buffer.constant >= program.constants.size())
      return badModel("constant {} of {}", buffer.constant, program.constants.size());
    if (const uint64_t bytes = program.constants[buffer.constant].payload.sizeBytes(); bytes != buffer.bytes)
      return badModel("{} bytes but its constant has {}", buffer.bytes, bytes);
  }
  if (buffer.role != Role::temp) {
    if (buffer.offset != 0) return badModel("offset {} on a buffer that is no temp", buffer.offset);
    if (buffer.space != 0)
      return badModel("lies in space '{}' but all that is no temp lies in '{}'", space.name, program.spaces[0].name);
    return Status::ok();
  }
  if (buffer.offset == CDL_UNPLACED) return Status::ok();
  if (buffer.offset > kMaxBytes || buffer.offset % buffer.alignment)
    return badModel("offset {} is not a multiple of alignment {}", buffer.offset, buffer.alignment);
  if (space.capacityBytes && buffer.offset + buffer.bytes > space.capacityBytes)
    return badModel("ends at {} but space '{}' has {} bytes", buffer.offset + buffer.bytes, space.name,
                    space.capacityBytes);
  return Status::ok();
}

Status verifyConstant(const Constant& constant) {
  const Payload& payload = constant.payload;
  if (payload.form() != Payload::Form::data && payload.form() != Payload::Form::splat)
    return badModel("constant '{}' is neither data nor a splat", constant.name);
  if (!isValidElem(static_cast<unsigned>(payload.elem())))
    return badModel("constant '{}' has no element type", constant.name);
  if (payload.form() == Payload::Form::splat && !fitsElem(payload.splatBits(), payload.elem()))
    return badModel("constant '{}': {:#x} has more bits than {}", constant.name, payload.splatBits(),
                    elemName(payload.elem()));
  return Status::ok();
}

Status verifyLayout(const View& view, Role role) {
  const Layout& layout = view.layout;
  if (layout.isRowMajor()) {
    if (layout == Layout{}) return Status::ok();
    return badModel("a row-major layout with logical rank, padding or name");
  }
  if (layout.logicalRank == 0 || layout.logicalRank > CDL_MAX_RANK || layout.steps.size() > CDL_MAX_RANK)
    return badModel("layout of logical rank {} with {} factors, at most {}", layout.logicalRank, layout.steps.size(),
                    CDL_MAX_RANK);
  if (layout.padContent > 2) return badModel("pad content {} exceeds 2", layout.padContent);
  if (layout.opaque ? layout.name.empty() || layout.name.find('\0') != std::string::npos : !layout.name.empty())
    return badModel("{}",
                    layout.opaque ? "an opaque layout without a proper name" : "a name on a layout that is not opaque");
  std::vector<uint64_t> product(layout.logicalRank, 0); // 0: not seen
  for (const Layout::Step& step : layout.steps) {
    if (step.dim >= layout.logicalRank)
      return badModel("layout names dim {} of logical rank {}", step.dim, layout.logicalRank);
    uint64_t& p = product[step.dim];
    if (step.factor == 0 && p) return badModel("layout's open factor of dim {} is not its outermost", step.dim);
    p = std::max<uint64_t>(p, 1);
    // By division: the product itself may leave 64 bits.
    if (step.factor > static_cast<uint64_t>(kMaxDim) / p)
      return badModel("layout's factors of dim {} exceed {}", step.dim, kMaxDim);
    p *= std::max<uint32_t>(step.factor, 1);
  }
  for (size_t d = 0; d < product.size() && !layout.steps.empty(); ++d)
    if (!product[d]) return badModel("layout has no factor of dim {}", d);
  if (layout.opaque && role != Role::constant) return badModel("an opaque layout on a buffer that is no constant");
  if (!layout.opaque && layout.steps.size() != view.dims.size())
    return badModel("rank {} but its layout has {} factors", view.dims.size(), layout.steps.size());
  if (layout.opaque && layout.logicalRank != view.dims.size())
    return badModel("rank {} but its layout has logical rank {}", view.dims.size(), layout.logicalRank);
  return Status::ok();
}

/// Two 4-bit elements share a byte, so rows begin and end on whole bytes.
Status verifyNibbles(const View& view) {
  if (view.dims.empty() || view.dims.back() % 2 || view.strides.back() != 1)
    return badModel("{} needs an even innermost extent of stride 1", elemName(view.elem));
  int64_t odd = view.offset | view.ivStrides[0] | view.ivStrides[1];
  for (size_t d = 0; d + 1 < view.strides.size(); ++d) odd |= view.strides[d];
  return odd & 1 ? badModel("an odd offset or stride of {}", elemName(view.elem)) : Status::ok();
}

struct Nest {
  uint64_t trips[CDL_MAX_LOOP_NESTING] = {0, 0}; ///< 0: no such loop
};

/// Every element, for every value of the loop variables, lies inside of the buffer.
Status verifyExtent(const View& view, const Buffer& buffer, const Nest& nest) {
  __int128 low = view.offset, high = view.offset;
  const auto reach = [&](int64_t last,
                         int64_t stride) { // |last * stride| < 2^104: sums of ten stay below 2^127
    const __int128 product = static_cast<__int128>(last) * stride;
    (product < 0 ? low : high) += product;
  };
  const bool empty = std::find(view.dims.begin(), view.dims.end(), 0) != view.dims.end();
  // A kernel may read the border of a view that has the dims of its buffer's halo.
  for (size_t d = 0; buffer.halo && buffer.halo->lo.size() == view.dims.size() && d < view.dims.size(); ++d) {
    reach(-int64_t(buffer.halo->lo[d]), view.strides[d]);
    reach(buffer.halo->hi[d], view.strides[d]);
  }
  for (size_t d = 0; d < view.dims.size() && !empty; ++d) reach(view.dims[d] - 1, view.strides[d]);
  for (int l = 0; l < CDL_MAX_LOOP_NESTING; ++l) {
    if (nest.trips[l])
      reach(static_cast<int64_t>(nest.trips[l]) - 1, view.ivStrides[l]);
    else if (view.ivStrides[l])
      return badModel("stride {} of loop {} which is not there", view.ivStrides[l], l);
  }
  const __int128 held = static_cast<__int128>(buffer.bytes) * 8 / elemBits(view.elem);
  if (low < 0) return badModel("element {} lies before buffer '{}'", static_cast<int64_t>(low), buffer.name);
  if (high + (empty ? 0 : 1) > held)
    return badModel("element {} lies beyond buffer '{}' of {} elements",
                    static_cast<int64_t>(std::min<__int128>(high, INT64_MAX)), buffer.name, static_cast<int64_t>(held));
  return Status::ok();
}

Status verifyView(const Program& program, const View& view, const Nest& nest) {
  if (view.buffer >= program.buffers.size()) return badModel("buffer {} of {}", view.buffer, program.buffers.size());
  const Buffer& buffer = program.buffers[view.buffer];
  if (!isValidElem(static_cast<unsigned>(view.elem))) return badModel("no element type");
  if (view.dims.size() > CDL_MAX_RANK) return badModel("rank {} exceeds {}", view.dims.size(), CDL_MAX_RANK);
  if (view.dims.size() != view.strides.size())
    return badModel("{} dims but {} strides", view.dims.size(), view.strides.size());
  for (int64_t dim : view.dims)
    if (dim < 0 || dim > kMaxDim) return badModel("dim {} is not within 0 .. {}", dim, kMaxDim);
  if (!elementCount(view.dims)) return badModel("shape {} has too many elements", shapeText(view.dims));
  if (buffer.alignment * 8 < static_cast<uint32_t>(elemBits(view.elem)))
    return badModel("buffer '{}' is aligned to {} bytes, {} has {} bits", buffer.name, buffer.alignment,
                    elemName(view.elem), elemBits(view.elem));
  CDL_TRY(verifyLayout(view, buffer.role));
  if (view.layout.opaque) return Status::ok(); // only its backend knows where elements lie
  if (elemBits(view.elem) == 4) CDL_TRY(verifyNibbles(view));
  return verifyExtent(view, buffer, nest);
}

/// Outputs are written once per element, and never to what others share.
Status verifyOutput(const Program& program, const View& view) {
  const Buffer& buffer = program.buffers[view.buffer];
  if (buffer.role == Role::input || buffer.role == Role::constant)
    return badModel("buffer '{}' is {} and cannot be written", buffer.name,
                    buffer.role == Role::input ? "an input" : "a constant");
  if (view.count() == 0) return Status::ok();
  for (size_t d = 0; d < view.dims.size(); ++d)
    if (view.dims[d] > 1 && view.strides[d] == 0)
      return badModel("dim {} of extent {} is written with stride 0", d, view.dims[d]);
  return Status::ok();
}

bool holds(uint32_t first, uint32_t count, size_t index) { return index >= first && index - first < count; }

Status verifyRange(uint32_t first, uint32_t count, size_t instrs) {
  if (count == 0) return badModel("holds no instruction");
  if (first >= instrs || count > instrs - first)
    return badModel("ends at instruction {} of {}", static_cast<uint64_t>(first) + count, instrs);
  return Status::ok();
}

Status verifyLoop(const Program& program, uint32_t index) {
  const Loop& loop = program.loops[index];
  CDL_TRY(verifyRange(loop.first, loop.count, program.instrs.size()));
  if (loop.trip == 0 || loop.trip > static_cast<uint64_t>(kMaxDim))
    return badModel("trip count {} is not within 1 .. {}", loop.trip, kMaxDim);
  if (index && program.loops[index - 1].first > loop.first)
    return badModel("starts at instruction {}, before the loop that stands before it", loop.first + 1);
  if (loop.parent != kNone) {
    if (loop.parent >= index) return badModel("parent {} does not stand before it", loop.parent + 1);
    const Loop& parent = program.loops[loop.parent];
    if (parent.parent != kNone) return badModel("nesting of 3 exceeds {}", CDL_MAX_LOOP_NESTING);
    if (loop.first < parent.first || loop.first + loop.count > parent.first + parent.count)
      return badModel("is not inside of loop {}", loop.parent + 1);
  }
  for (uint32_t i = loop.first; i < loop.first + loop.count; ++i) {
    const uint32_t own = program.instrs[i].loop;
    if (own != index && (own >= program.loops.size() || program.loops[own].parent != index))
      return badModel("{} lies in its range but names another loop", program.instrName(i));
  }
  return Status::ok();
}

Status verifyGroup(const Program& program, uint32_t index) {
  const Group& group = program.groups[index];
  CDL_TRY(verifyRange(group.first, group.count, program.instrs.size()));
  if (group.bandDim >= CDL_MAX_RANK || group.bands == 0)
    return badModel("band dim {} and {} bands, expected below {} and at least 1", group.bandDim, group.bands,
                    CDL_MAX_RANK);
  if (index) {
    const Group& before = program.groups[index - 1];
    if (group.first < before.first + before.count)
      return badModel("starts at instruction {}, inside of or before the group that stands before it", group.first + 1);
  }
  for (uint32_t i = group.first; i < group.first + group.count; ++i)
    if (program.instrs[i].group != index)
      return badModel("{} lies in its range but names another group", program.instrName(i));
  for (const Loop& loop : program.loops) {
    const uint64_t loopEnd = uint64_t(loop.first) + loop.count, end = uint64_t(group.first) + group.count;
    const bool apart = loopEnd <= group.first || end <= loop.first;
    const bool inside = group.first >= loop.first && end <= loopEnd;
    if (!apart && !inside && (loop.first < group.first || loopEnd > end))
      return badModel("it and the loop at instruction {} cut each other", loop.first + 1);
  }
  return Status::ok();
}

Status verifyRegions(const Program& program) {
  for (uint32_t i = 0; i < program.instrs.size(); ++i) {
    const Instr& instr = program.instrs[i];
    if (instr.loop != kNone && (instr.loop >= program.loops.size() ||
                                !holds(program.loops[instr.loop].first, program.loops[instr.loop].count, i)))
      return badModel("{}: its loop does not hold it", program.instrName(i));
    if (instr.group != kNone && (instr.group >= program.groups.size() ||
                                 !holds(program.groups[instr.group].first, program.groups[instr.group].count, i)))
      return badModel("{}: its group does not hold it", program.instrName(i));
  }
  for (uint32_t l = 0; l < program.loops.size(); ++l)
    CDL_TRY(verifyLoop(program, l).context(fmt::format("loop {}", l + 1)));
  for (uint32_t g = 0; g < program.groups.size(); ++g)
    CDL_TRY(verifyGroup(program, g).context(fmt::format("group {}", g + 1)));
  return Status::ok();
}

Status verifyArity(const Instr& instr, const KindInfo& info) {
  const size_t operands = instr.operandCount();
  if (operands < info.minInputs || (info.maxInputs != 255 && operands > info.maxInputs))
    return badModel("{} inputs, expected {}", operands,
                    info.maxInputs == 255              ? fmt::format("at least {}", info.minInputs)
                    : info.maxInputs == info.minInputs ? fmt::format("{}", info.minInputs)
                                                       : fmt::format("{} to {}", info.minInputs, info.maxInputs));
  if (instr.kind == CDL_KIND_CUSTOM ? instr.outputs.empty() : instr.outputs.size() != info.outputs)
    return badModel("{} outputs, expected {}", instr.outputs.size(), info.outputs);
  if (instr.inputs.size() > UINT8_MAX || instr.outputs.size() > UINT8_MAX)
    return badModel("{} inputs and {} outputs exceed {}", instr.inputs.size(), instr.outputs.size(), UINT8_MAX);
  return Status::ok();
}

Status verifyInstr(const Program& program, uint32_t index) {
  const Instr& instr = program.instrs[index];
  const KindInfo* info = kindInfo(instr.kind);
  if (!info) return failure(Code::incompatible, "the kind is unknown");
  if (instr.kind != CDL_KIND_CUSTOM && (hasFns(instr.kind) ? fnName(instr.kind, instr.fn).empty() : instr.fn != 0))
    return failure(Code::incompatible, "function {} is unknown", instr.fn);
  if (instr.engine >= program.engines) return badModel("engine {} of {}", instr.engine, program.engines);
  CDL_TRY(verifyArity(instr, *info));
  Nest nest;
  if (instr.loop != kNone) {
    const Loop& loop = program.loops[instr.loop];
    nest.trips[loop.parent == kNone ? 0 : 1] = loop.trip;
    if (loop.parent != kNone) nest.trips[0] = program.loops[loop.parent].trip;
  }
  for (size_t i = 0; i < instr.inputs.size(); ++i)
    CDL_TRY(verifyView(program, instr.inputs[i], nest).context(fmt::format("input {}", i)));
  for (size_t i = 0; i < instr.outputs.size(); ++i) {
    CDL_TRY(verifyView(program, instr.outputs[i], nest).context(fmt::format("output {}", i)));
    CDL_TRY(verifyOutput(program, instr.outputs[i]).context(fmt::format("output {}", i)));
  }
  for (uint32_t wait : instr.waits) {
    if (wait >= index) return badModel("waits for instruction {}, which is not earlier", uint64_t(wait) + 1);
    if (program.instrs[wait].loop != instr.loop)
      return badModel("waits for instruction {}, which stands in another block", wait + 1);
  }
  for (const Origin& origin : instr.provenance)
    if (origin.node.find('\0') != std::string::npos || origin.op.find('\0') != std::string::npos)
      return badModel("a NUL byte in its origin");
  CDL_TRY(verifyAttrs(instr));
  CDL_TRY(verifyExpr(instr));
  return verifyKind(instr);
}

/// The image counts layouts in 16 bits, everything else in 32.
Status verifyCounts(const Program& program) {
  if (program.engines == 0 || program.engines > UINT16_MAX)
    return badModel("{} engines are not within 1 .. {}", program.engines, UINT16_MAX);
  constexpr size_t kLimit = size_t(1) << 22; // instructions: 510 views each stay below 2^32
  if (program.instrs.size() > kLimit || program.buffers.size() > kLimit)
    return badModel("{} instructions on {} buffers exceed {}", program.instrs.size(), program.buffers.size(), kLimit);
  std::set<std::pair<std::vector<std::pair<uint8_t, uint32_t>>, std::string>> layouts;
  for (const Instr& instr : program.instrs)
    for (const auto* views : {&instr.inputs, &instr.outputs})
      for (const View& view : *views) {
        if (view.layout.isRowMajor()) continue;
        std::vector<std::pair<uint8_t, uint32_t>> key{{view.layout.logicalRank, view.layout.padContent}};
        for (const Layout::Step& step : view.layout.steps) key.emplace_back(step.dim, step.factor);
        layouts.emplace(std::move(key), view.layout.name);
      }
  if (layouts.size() >= UINT16_MAX) return badModel("{} layouts exceed {}", layouts.size(), UINT16_MAX - 1);
  return Status::ok();
}

} // namespace

bool fitsElem(uint64_t bits, Elem elem) { return elemBits(elem) == 64 || bits >> elemBits(elem) == 0; }

Status verify(const Program& program, Suspect& suspect) {
  CDL_TRY(verifyName("program", program.name));
  CDL_TRY(verifyCounts(program));
  CDL_TRY(verifySpaces(program));
  CDL_TRY(verifyNames("constant", program.constants));
  for (const Constant& constant : program.constants) CDL_TRY(verifyConstant(constant));
  CDL_TRY(verifyNames("buffer", program.buffers));
  for (suspect.buffer = 0; suspect.buffer < program.buffers.size(); ++suspect.buffer) {
    const Buffer& buffer = program.buffers[suspect.buffer];
    CDL_TRY(verifyBuffer(program, buffer).context(fmt::format("buffer '{}'", buffer.name)));
  }
  suspect.buffer = kNone;
  CDL_TRY(verifyRegions(program));
  for (suspect.instr = 0; suspect.instr < program.instrs.size(); ++suspect.instr)
    CDL_TRY(verifyInstr(program, suspect.instr).context(program.instrName(suspect.instr)));
  suspect.instr = kNone;
  return Status::ok();
}

Status verify(const Program& program) {
  Suspect suspect;
  return verify(program, suspect);
}

} // namespace candela::program
