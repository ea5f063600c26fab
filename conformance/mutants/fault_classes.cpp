// The matrix: its rows, its columns, and the rule of each column that says where it applies. The
// rules read the facts of the primitives (spec/primitives.toml), so that a new primitive or row has
// faults to be found at once.
#include <algorithm>
#include <cctype>

#include "candela/cdl_rows.inc"
#include "conformance/mutants/fault.h"
#include "core/support/kinds.h"
#include "core/support/text/scan.h"

namespace candela::conformance::mutants {
namespace {

// ---- What the rules ask

/// The words of the operands, and last the result's.
std::vector<std::string> words(const char* text) {
  std::vector<std::string> all = text::split(text, ' ');
  std::erase_if(all, [](const std::string& word) { return word.empty() || word == ">"; });
  return all;
}
const cdl_kind_facts_t& facts(const Subject& s) { return *cdl_kind_facts(s.kind); }
std::vector<std::string> shapes(const Subject& s) { return words(facts(s).shape); }
std::vector<std::string> elems(const Subject& s) { return words(facts(s).elems); }
/// An operand may be of these types: the word, whatever its case.
bool hasWord(const std::vector<std::string>& all, std::string_view word) {
  return std::ranges::find(all, word) != all.end();
}

/// Some required row of the kind is so.
template <typename Test> bool someRow(const Subject& s, Test test) {
#define CDL_X(profile, rowKind, fn, count, e0, e1, e2, e3, e4, cls, tenths)                        \
  if (rowKind == s.kind && test(std::initializer_list<int>{e0, e1, e2, e3, e4}, tenths))           \
    return true;
  CDL_REQUIRED_ROWS(CDL_X)
#undef CDL_X
  return false;
}
bool takes(const Subject& s, int elem) {
  return someRow(s, [&](auto all, int) { return std::ranges::find(all, elem) != all.end(); });
}
bool roundsOnce(const Subject& s) {
  return someRow(s, [](auto, int tenths) { return tenths == 5; });
}
bool hasFn(const Subject& s, std::string_view name) {
  return parseFn(s.kind, std::string(name)).has_value();
}

bool isKind(const Subject& s) { return s.kind != 0; }
bool hasInput(const Subject& s) { return isKind(s) && facts(s).max_inputs > 0; }
/// Element by element, on any rank.
bool isFree(const Subject& s) { return isKind(s) && (shapes(s)[0] == "=" || !hasInput(s)); }
/// What comes out is what went in, or an attribute.
bool moves(const Subject& s) {
  if (!isKind(s) || roundsOnce(s) || someRow(s, [](auto, int tenths) { return tenths > 0; }))
    return false;
  const std::vector<std::string> all = elems(s);
  const bool same = std::isupper(static_cast<unsigned char>(all.back()[0])) && all.back() != "B" &&
                    std::find(all.begin(), all.end() - 1, all.back()) != all.end() - 1;
  return same || !hasInput(s);
}
bool movesFloats(const Subject& s) { return moves(s) && takes(s, CDL_F32); }
bool computesFloats(const Subject& s) { return isKind(s) && !moves(s) && takes(s, CDL_F32); }
bool givesBools(const Subject& s) { return isKind(s) && !moves(s) && takes(s, CDL_BOOL); }
bool accumulates(const Subject& s) { return isKind(s) && facts(s).epilogue; }
bool rescales(const Subject& s) { return isKind(s) && hasWord(elems(s), "r"); }
bool looksUp(const Subject& s) { return isKind(s) && hasWord(shapes(s), "T"); }
bool hasIndex(const Subject& s) { return isKind(s) && hasWord(elems(s), "I"); }
bool converts(const Subject& s) {
  return isKind(s) && cdl_kind_has_attr(s.kind, CDL_ATTR_SATURATE);
}
bool hasZeroPoint(const Subject& s) {
  return isKind(s) && (hasWord(shapes(s), "1") || rescales(s));
}

bool isScaled(const Subject& s) { return s.name == "scaled_matmul"; }

// ---- The rules

bool anyKind(const Subject& s) { return isKind(s); }
bool takesZeroPoint(const Subject& s) { return hasZeroPoint(s) || isScaled(s); }
bool accumulatesFloats(const Subject& s) { return accumulates(s) || isScaled(s); }
bool hasNamedDims(const Subject& s) {
  return isKind(s) &&
         std::ranges::any_of(shapes(s), [](const std::string& word) { return word.size() == 3; });
}
bool hasTolerance(const Subject& s) {
  return accumulates(s) || (isKind(s) && someRow(s, [](auto, int tenths) { return tenths > 5; }));
}
/// Two operands of one shape and type.
bool hasTwins(const Subject& s) {
  if (!isKind(s)) return false;
  const std::vector<std::string> all = elems(s), shape = shapes(s);
  for (size_t i = 0; i + 1 < all.size(); ++i)
    for (size_t k = i + 1; k + 1 < all.size(); ++k)
      if (all[i] == all[k] && shape[0] == "=") return true;
  return false;
}
bool hasFunctions(const Subject& s) {
  return isScaled(s) || (isKind(s) && cdl_fn_known(s.kind, 1));
}
bool hasAttr(const Subject& s) {
  for (uint16_t attr = 1; cdl_attr_facts(attr); ++attr)
    if (isKind(s) && cdl_kind_has_attr(s.kind, attr)) return true;
  return false;
}
bool indexComesFirst(const Subject& s) { return isKind(s) && elems(s)[0] == "I"; }
bool hasFloats(const Subject& s) { return isKind(s) && takes(s, CDL_F32); }
bool readsFloats(const Subject& s) { return hasFloats(s) && hasInput(s); }
bool givesFloats(const Subject& s) { return hasFloats(s) && elems(s).back() != "B"; }
/// The sign of a zero is said by what is computed: elements are moved, or rounded one by one.
bool givesSignedZeros(const Subject& s) { return givesFloats(s) && (isFree(s) || moves(s)); }
bool rounds(const Subject& s) {
  return isKind(s) && (roundsOnce(s) || rescales(s) || (looksUp(s) && takes(s, CDL_I16)));
}
bool isExpression(const Subject& s) { return s.name == "expression"; }
bool tiesToEven(const Subject& s) {
  return isExpression(s) || (isKind(s) && (roundsOnce(s) || rescales(s) || hasFn(s, "round_even")));
}
bool roundsWide(const Subject& s) { return converts(s) || rescales(s); }
bool wraps(const Subject& s) {
  return isKind(s) && takes(s, CDL_I32) && !moves(s) &&
         (hasFn(s, "add") || hasFn(s, "sum") || accumulates(s) || converts(s));
}
bool saturates(const Subject& s) { return converts(s) || rescales(s); }
bool shifts(const Subject& s) { return isKind(s) && hasFn(s, "shl"); }
bool divides(const Subject& s) { return isKind(s) && hasFn(s, "div"); }
bool takesUnsigned(const Subject& s) {
  return isKind(s) && takes(s, CDL_U8) && (!moves(s) || looksUp(s));
}
/// Between two entries, to nearest, and ties up.
bool interpolates(const Subject& s) { return looksUp(s) && takes(s, CDL_I16); }
bool isAll(const Subject& s) { return s.name == "primitives"; }
bool isCapability(const Subject& s) { return s.name == "capability"; }
bool isExecutable(const Subject& s) { return s.name == "executable"; }
bool isMemory(const Subject& s) { return s.name == "memory"; }
bool isQueue(const Subject& s) { return s.name == "queue"; }
bool isError(const Subject& s) { return s.name == "error"; }
bool isDevice(const Subject& s) { return s.name == "device"; }
bool isSpace(const Subject& s) { return s.name == "space"; }
bool isExecution(const Subject& s) { return s.name == "execution"; }
bool isCancel(const Subject& s) { return s.name == "cancel"; }
bool isTransfer(const Subject& s) { return isMemory(s) || isSpace(s); }
/// What several hold must not be one thing.
bool hasOwnBytes(const Subject& s) { return isMemory(s) || isDevice(s); }
bool hasOwnTimeline(const Subject& s) { return isQueue(s) || isDevice(s); }
bool waits(const Subject& s) { return isQueue(s) || isExecution(s); }
/// Things with a place and a length.
bool hasOffsets(const Subject& s) { return isKind(s) || isTransfer(s); }
bool hasBounds(const Subject& s) { return isKind(s) || isMemory(s) || isExecutable(s); }
bool writesBack(const Subject& s) { return isAll(s) || isMemory(s) || isDevice(s); }
bool hasSides(const Subject& s) { return hasTwins(s) || isTransfer(s); }
/// Slots that give a code.
bool canFail(const Subject& s) { return isMemory(s) || isQueue(s) || isExecutable(s); }
bool outlivesErrors(const Subject& s) { return isMemory(s) || isQueue(s); }
bool isClaimed(const Subject& s) { return isCapability(s) || isExecutable(s); }
bool isBusy(const Subject& s) { return isAll(s) || isExecutable(s) || isCancel(s); }

constexpr FaultClass kFaultClasses[] = {
    {"stride_off_by_one", "rows of an operand lie one element farther apart than they should",
     anyKind},
    {"strides_ignored", "views are taken for row-major and contiguous", anyKind},
    {"broadcast_ignored", "a stride of 0 is taken for the row-major one", hasInput},
    {"negative_stride", "a negative stride loses its sign", anyKind},
    {"offset_ignored", "views and transfers begin at the start of their buffer", hasOffsets},
    {"wrong_axis", "works along another dim", hasNamedDims},
    {"loop_variable_ignored", "views in loops lie where they lie in the first round", anyKind},
    {"wrong_tail",
     "what is left over after blocks of 16 elements along the innermost dim is not written",
     anyKind},
    {"first_batch_only", "of the outermost dim only the first index is written", anyKind},
    {"high_rank", "of dims before the last four only the first index is written", isFree},
    {"scalar_lost", "a result of rank 0 is not written", isFree},
    {"one_too_many", "writes one element or byte behind its result or its scratch", hasBounds},
    {"writes_input", "an operand is scratch space", hasInput},
    {"stale_result", "gives the result of the run before", hasInput},
    {"nondeterministic", "the last bit differs from run to run, declared deterministic",
     hasTolerance},
    {"swapped_operands", "two operands change places", hasSides},
    {"function_ignored", "every function is the kind's first one", hasFunctions},
    {"attribute_ignored", "an attribute counts as its default", hasAttr},
    {"epilogue_dropped", "the epilogue's last step is left out", accumulates},
    {"index_unclamped", "an index outside reaches the neighbours", hasIndex},
    {"index_wraps", "a negative index counts from the end", hasIndex},
    {"duplicates_lost", "of several updates for one place only the last counts", indexComesFirst},
    {"nan_dropped", "NaN becomes a number", computesFloats},
    {"nan_payload", "all NaN are the quiet one", movesFloats},
    {"minus_zero", "-0 becomes 0", givesSignedZeros},
    {"denormals_flushed", "subnormal results are 0, undeclared", givesFloats},
    {"denormal_operands", "subnormal operands count as 0, undeclared", readsFloats},
    {"infinity_lost", "an infinity becomes the largest number", givesFloats},
    {"half_accumulator", "sums of floats are rounded to f16 on the way", accumulatesFloats},
    {"float_accumulator", "integers accumulate in f32", accumulates},
    {"truncated", "rounds toward zero or down instead of to nearest", rounds},
    {"half_up", "ties go up instead of to even", tiesToEven, true},
    {"half_away", "ties go away from zero instead of to even", tiesToEven, true},
    {"half_even", "ties go to even instead of up", interpolates, true},
    {"rounded_twice", "rounds to something else before it rounds", roundsWide},
    {"overflow_saturates", "integers saturate instead of wrapping", wraps},
    {"no_saturation", "integers wrap instead of saturating", saturates},
    {"wide_shift", "a shift counts modulo the width", shifts},
    {"divide_by_zero", "x / 0 is all ones", divides},
    {"lowest_by_minus_one", "lowest / -1 is the highest", divides},
    {"unsigned_as_signed", "u8 is taken for i8", takesUnsigned},
    {"loose_bools", "true is written as 255", givesBools},
    {"zero_point", "a zero point is left out", takesZeroPoint},
    {"per_channel", "the first channel's zero point or scale counts for all", takesZeroPoint},
    {"per_block", "the first block's zero point or scale counts for all", isScaled},
    {"scale_ignored", "a scale is taken for 1", isScaled},
    {"halves_swapped", "neighbours of packed elements change places", isScaled},
    {"block_cut", "a last block that is not full is left out", isScaled},
    {"format_mistaken", "an operand is taken for another format of as many bits", isScaled},
    {"alignment_lost", "operands are not aligned before they are added", rescales},
    {"clamp_before_zero", "clamps before it adds the zero point", rescales},
    {"narrow_product", "products wrap at 32 bits", rescales},
    {"table_off_by_one", "takes the next entry", looksUp},
    {"no_interpolation", "takes the entry below instead of a value between two", interpolates},
    {"gives_zeros", "answers zeros", isAll},
    {"gives_inputs", "answers its first operand", isAll},
    {"does_nothing", "does nothing, and says that it is done", isBusy},
    {"answers_from_cache", "answers what it answered to the same program before", isAll},
    {"only_powers_of_two", "does what has a power of two in every dim, and nothing else", isAll},
    {"only_first_run", "is right in the first run only", isAll},
    {"only_second_run", "is right in the second run only", isAll},
    {"only_three_runs", "is right in the first three runs on a queue only", isAll},
    {"only_fresh_queue", "is right on a queue from which nothing was read yet", isAll},
    {"never_writes_back", "works on a copy", writesBack},
    {"falls_back", "claims NATIVE, compiles, and calls it EMULATED", isExecutable},
    {"claims_and_refuses", "claims NATIVE, and refuses", isClaimed},
    {"error_lost", "an error becomes a success", canFail},
    {"stays_broken", "after one error nothing works any more", outlivesErrors},
    {"wrong_code", "all errors have one code", isError},
    {"unknown_code", "errors have a code that is none", isError},
    {"no_message", "errors say nothing", isError},
    {"message_overrun", "messages are longer than their room", isError},
    {"one_too_few", "the last byte of a transfer is left out", isTransfer},
    {"misaligned", "buffers lie beside what was asked for", isMemory},
    {"aliased", "buffers share their bytes", hasOwnBytes},
    {"import_kept", "what was imported once stands for its first bytes for ever", isMemory},
    {"leak", "what is destroyed is kept", isMemory},
    {"one_way", "bytes go into the other memory space, and none come back", isSpace},
    {"nothing_is_all", "a transfer of 0 bytes moves all that there are", isSpace},
    {"not_there", "a device that is counted cannot be opened", isDevice},
    {"options_kept", "an option of one opening counts for those after it", isDevice},
    {"wait_ignored", "waits for nothing", waits},
    {"timeout_ignored", "waits for ever", waits},
    {"gives_up", "waits for no time at all", isQueue},
    {"signal_lost", "the timeline stands still", isQueue},
    {"signal_too_low", "the timeline stays one behind", isQueue},
    {"shared_timeline", "all queues have one timeline", hasOwnTimeline},
    {"any_value", "waits for the first value of a timeline, whichever was asked for", isExecution},
    {"signal_early", "the timeline moves before the work is done", isExecution},
    {"bindings_kept", "what is in flight uses the bindings of what came last", isExecution},
    {"outlives_queue", "work goes on when its queue is gone", isExecution},
    {"stray_records", "a profile has records of other queues", isExecution},
    {"waits_for_work", "returns when the work that is given up is done", isCancel},
    {"lies", "what was given up counts as done", isCancel},
    {"takes_idle", "a queue without work is given up too", isCancel},
    {"takes_others", "gives up the work of all queues", isCancel},
    {"said_once", "of what was given up the first wait alone learns", isCancel},
    {"rows_missing", "there are no rows where some are counted", isCapability},
    {"rows_short", "rows are shorter than rows are", isCapability},
    {"atoms_outside", "a row names atoms that are not there", isCapability},
    {"unknown_numbers", "a row names an element type that is none", isCapability},
    {"no_spaces", "there is no memory space", isCapability},
    {"profile_alone", "claims BASE and nothing else", isCapability},
};

} // namespace

std::span<const Subject> subjects() {
  static const std::vector<Subject> all = [] {
    std::vector<Subject> rows;
    for (uint16_t kind = 1; const cdl_kind_facts_t* known = cdl_kind_facts(kind); ++kind)
      if (known->primitive) rows.push_back({known->name, kind});
    for (const auto& [name, tier] : {std::pair{"primitives", "primitives"},
                                     {"expression", "ops"},
                                     {"scaled_matmul", "ops"},
                                     {"capability", "abi"},
                                     {"memory", "memory"},
                                     {"queue", "queue"},
                                     {"device", "devices"},
                                     {"space", "devices"},
                                     {"execution", "async"},
                                     {"cancel", "async"},
                                     {"executable", "primitives"},
                                     {"error", "memory"}})
      rows.push_back({name, 0, tier});
    return rows;
  }();
  return all;
}

std::span<const FaultClass> faultClasses() { return kFaultClasses; }

} // namespace candela::conformance::mutants
