#include "entry.hpp"

#include <algorithm>
#include <cstring>

namespace cpu {

namespace {

/// What NAME_open fills.
struct ModelRecord {
  static constexpr int64_t kMark = 0;
  static constexpr int64_t kWeights = 8;
  static constexpr int64_t kArena = 16;
};
static_assert(CDL_OBJECT_MODEL_BYTES >= ModelRecord::kArena + 8);

/// Tells a model that this code opened from other memory.
int64_t markOf(const cdl_object_weights_t& weights) {
  uint64_t mark = 0;
  std::memcpy(&mark, weights.image, sizeof mark);
  return static_cast<int64_t>((mark ^ weights.code ^ weights.digest) | 1);
}

/// A buffer that the caller binds.
struct Port {
  uint32_t buffer = 0;
  int64_t alignment = 1;
};

std::vector<Port> portsOf(const cdl_image_t* image, uint8_t role) {
  std::vector<Port> ports;
  for (uint32_t b = 1; b < image->buffers.count; ++b) {
    const cdl_buffer_t& buffer = *cdl_get_buffer(image, b);
    if (buffer.role == role || buffer.role == CDL_ROLE_INOUT)
      ports.push_back({b, cdl_object_alignment(image, b)});
  }
  return ports;
}

/// The instruction at which the calls of `instr` run: the first one of a group in bands.
uint32_t placeOf(const cdl_image_t* image, uint32_t instr) {
  const uint32_t group = cdl_get_instr(image, instr)->group;
  const bool isInBands = group && cdl_get_group(image, group)->bands > 1;
  return isInBands ? cdl_get_group(image, group)->first : instr;
}

/// Writes the steps of a run: the calls of each instruction, in the loops of the Program.
class Steps {
public:
  Steps(Builder& b, const cdl_image_t* image, const Binary& binary, const ArenaPlan& arena,
        std::vector<Value> bases, const std::function<std::string(uint32_t)>& nameOf)
      : b_(b), image_(image), binary_(binary), arena_(arena), bases_(std::move(bases)),
        nameOf_(nameOf), callsAt_(image->instrs.count) {
    uint32_t most = 1;
    for (const Call& call : binary.calls) {
      callsAt_[placeOf(image, call.instr)].push_back(&call);
      most = std::max(most, call.args);
    }
    args_ = b.local(int64_t{8} * most);
  }

  void write() { writeBlock(1, image_->instrs.count, 0, {}); }

private:
  /// The loop that stands in `parent` and holds the instruction's own.
  uint32_t outermostBelow(uint32_t loop, uint32_t parent) const {
    while (cdl_get_loop(image_, loop)->parent != parent) loop = cdl_get_loop(image_, loop)->parent;
    return loop;
  }

  void writeBlock(uint32_t first, uint32_t end, uint32_t loop, const Values& turns) {
    for (uint32_t i = first; i < end;) {
      if (cdl_get_instr(image_, i)->loop == loop) {
        for (const Call* call : callsAt_[i]) writeCall(*call, turns);
        ++i;
        continue;
      }
      const uint32_t inner = outermostBelow(cdl_get_instr(image_, i)->loop, loop);
      const cdl_loop_t& record = *cdl_get_loop(image_, inner);
      b_.loop(b_.i64(0), b_.i64(static_cast<int64_t>(record.trip)), 1, [&](Value turn) {
        Values all = turns;
        all.push_back(turn);
        writeBlock(record.first, record.first + record.count, inner, all);
      });
      i = record.first + record.count;
    }
  }

  /// Where an argument of a call of this instruction lies.
  Value addressOf(const Arg& arg, uint32_t instr, const Values& turns) {
    size_t base = arg.buffer;
    int64_t offset = arg.offset;
    if (arg.buffer == Arg::kScratch) {
      base = bases_.size() - 2;
      offset += static_cast<int64_t>(arena_.scratch[instr]);
    }
    if (arg.buffer == Arg::kOwn) base = bases_.size() - 1;
    Value at = b_.at(bases_[base], offset);
    for (size_t l = 0; l < turns.size(); ++l)
      if (arg.perLoop[l]) at = b_.at(at, b_.mul(turns[l], b_.i64(arg.perLoop[l])));
    return at;
  }

  void writeCall(const Call& call, const Values& turns) {
    for (uint32_t a = 0; a < call.args; ++a)
      b_.store(addressOf(binary_.args[call.firstArg + a], call.instr, turns), args_,
               int64_t{b_.isa().pointer()} * a);
    const auto run = [&](Value first) {
      b_.callKernel(nameOf_(call.kernel), args_, first,
                    b_.add(first, b_.i64(static_cast<int64_t>(call.units))));
    };
    const Value first = b_.i64(static_cast<int64_t>(call.first));
    if (call.turns == 1) return run(first);
    b_.loop(b_.i64(0), b_.i64(static_cast<int64_t>(call.turns)), 1, [&](Value turn) {
      run(b_.add(first, b_.mul(turn, b_.i64(static_cast<int64_t>(call.stride)))));
    });
  }

  Builder& b_;
  const cdl_image_t* image_;
  const Binary& binary_;
  const ArenaPlan& arena_;
  const std::vector<Value> bases_; // by buffer, then of the arena and the executable's constants
  const std::function<std::string(uint32_t)>& nameOf_;
  std::vector<std::vector<const Call*>> callsAt_; // by instruction
  Value args_;
};

Value isNull(Builder& b, Value pointer) { return b.compare(Cmp::EQ, pointer, b.zero(Ty::Ptr)); }

Value isMisaligned(Builder& b, Value pointer, int64_t alignment) {
  return b.compare(Cmp::NE, b.bitAnd(b.addressOf(pointer), b.i64(alignment - 1)), b.i64(0));
}

/// Leaves with CDL_OBJECT_PROCESSOR where a tier of x86 lacks something.
void checkProcessor(Builder& b, Tier tier) {
  const auto leaveWithout = [&](Value word, uint32_t bits) {
    const Value wanted = b.i32(static_cast<int32_t>(bits));
    b.leaveWhen(b.compare(Cmp::NE, b.bitAnd(word, wanted), wanted), CDL_OBJECT_PROCESSOR);
  };
  uint32_t needed[kCpuWords] = {};
  for (const Feature& feature : featuresOf(tier))
    needed[static_cast<size_t>(feature.word)] |= feature.bits;
  const auto bitsOf = [&](CpuWord word) { return needed[static_cast<size_t>(word)]; };
  constexpr int kB = 1;
  constexpr int kC = 2;
  constexpr int kD = 3;
  constexpr uint32_t kExtended = 0x80000000;
  constexpr uint32_t kSavesRegisters = uint32_t(1) << 27;
  b.leaveWhen(b.compare(Cmp::ULT, b.cpuid(0, 0)[0], b.i32(7)), CDL_OBJECT_PROCESSOR);
  leaveWithout(b.cpuid(1, 0)[kC], bitsOf(CpuWord::ONE) | kSavesRegisters);
  const Values seven = b.cpuid(7, 0);
  leaveWithout(seven[kB], bitsOf(CpuWord::SEVEN_B));
  if (bitsOf(CpuWord::SEVEN_C)) leaveWithout(seven[kC], bitsOf(CpuWord::SEVEN_C));
  if (bitsOf(CpuWord::SEVEN_D)) leaveWithout(seven[kD], bitsOf(CpuWord::SEVEN_D));
  if (bitsOf(CpuWord::SEVEN_ONE_A)) {
    b.leaveWhen(b.compare(Cmp::EQ, seven[0], b.i32(0)), CDL_OBJECT_PROCESSOR);
    leaveWithout(b.cpuid(7, 1)[0], bitsOf(CpuWord::SEVEN_ONE_A));
  }
  b.leaveWhen(
      b.compare(Cmp::ULT, b.cpuid(kExtended, 0)[0], b.i32(static_cast<int32_t>(kExtended + 1))),
      CDL_OBJECT_PROCESSOR);
  leaveWithout(b.cpuid(kExtended + 1, 0)[kC], bitsOf(CpuWord::EXTENDED));
  leaveWithout(b.savedRegisters(), bitsOf(CpuWord::SAVED));
}

/// Leaves with CDL_OBJECT_PROCESSOR where 64-bit ARM lacks products of bytes. Linux answers for the
/// registers from 4.11 on.
void checkArm(Builder& b, const Isa& isa) {
  constexpr int kDotProduct = 44; // Arm ARM, D19.2.61
  constexpr int kMatrices = 52;   // D19.2.62
  const auto leaveWithout = [&](const char* name, int field) {
    const Value level = b.bitAnd(b.shr(b.systemRegister(name), b.i64(field), false), b.i64(15));
    b.leaveWhen(b.compare(Cmp::EQ, level, b.i64(0)), CDL_OBJECT_PROCESSOR);
  };
  if (isa.hasSignedDot4 || isa.hasDot4) leaveWithout("ID_AA64ISAR0_EL1", kDotProduct);
  if (isa.hasDot4) leaveWithout("ID_AA64ISAR1_EL1", kMatrices);
}

/// Leaves where these are not the weights of this model, by their header.
void checkWeights(Builder& b, Value weights, Value bytes, const cdl_object_weights_t& known) {
  b.leaveWhen(isNull(b, weights), CDL_OBJECT_NULL);
  b.leaveWhen(isMisaligned(b, weights, 64), CDL_OBJECT_MISALIGNED);
  b.leaveWhen(b.compare(Cmp::ULT, bytes, b.i64(static_cast<int64_t>(known.bytes))),
              CDL_OBJECT_WRONG_WEIGHTS);
  int64_t words[sizeof known / 8];
  static_assert(sizeof words == sizeof known);
  std::memcpy(words, &known, sizeof words);
  Value differs = b.i64(0);
  for (size_t w = 0; w < std::size(words); ++w)
    differs = b.bitOr(differs, b.bitXor(b.load(Ty::I64, 1, weights, static_cast<int64_t>(8 * w)),
                                        b.i64(words[w])));
  b.leaveWhen(b.compare(Cmp::NE, differs, b.i64(0)), CDL_OBJECT_WRONG_WEIGHTS);
}

/// The digest (runtime/digest.hpp) of bytes whose number is a multiple of 64.
Value digestOf(Builder& b, Value data, int64_t bytes) {
  const auto step = [&](Value state, Value word) {
    const Value mixed =
        b.mul(b.bitXor(state, word), b.i64(static_cast<int64_t>(0x9e3779b97f4a7c15)));
    return b.bitOr(b.shl(mixed, b.i64(29)), b.shr(mixed, b.i64(35), false));
  };
  Values lanes;
  for (int64_t lane = 1; lane <= 4; ++lane) lanes.push_back(b.i64(lane));
  lanes = b.loop(b.i64(0), b.i64(bytes), 32, lanes, [&](Value at, const Values& carried) {
    Values next;
    for (size_t lane = 0; lane < carried.size(); ++lane)
      next.push_back(
          step(carried[lane], b.load(Ty::I64, 1, b.at(data, at), static_cast<int64_t>(8 * lane))));
    return next;
  });
  Value whole = b.i64(bytes);
  for (const Value& lane : lanes) whole = step(whole, lane);
  return whole;
}

/// What the functions of one model share.
struct Entries {
  const cdl_image_t* image;
  const Binary& binary;
  const Isa& isa;
  const cdl_object_weights_t& weights;
  const std::function<std::string(uint32_t)>& nameOf;
  const ArenaPlan& arena;

  void open(Builder& b) const {
    const Value model = b.parameter(0), weightsAt = b.parameter(1), arenaAt = b.parameter(3);
    b.leaveWhen(isNull(b, model), CDL_OBJECT_NULL);
    if (isa.arch == Arch::X86) checkProcessor(b, isa.tier);
    if (isa.arch == Arch::ARM64) checkArm(b, isa);
    checkWeights(b, weightsAt, b.parameter(2), weights);
    if (arena.bytes) {
      b.leaveWhen(isNull(b, arenaAt), CDL_OBJECT_NULL);
      b.leaveWhen(isMisaligned(b, arenaAt, arena.alignment), CDL_OBJECT_MISALIGNED);
      b.leaveWhen(b.compare(Cmp::ULT, b.parameter(4), b.i64(static_cast<int64_t>(arena.bytes))),
                  CDL_OBJECT_ARENA_TOO_SMALL);
    }
    b.store(b.at(weightsAt, int64_t{sizeof weights}), model, ModelRecord::kWeights);
    b.store(arenaAt, model, ModelRecord::kArena);
    b.store(b.i64(markOf(weights)), model, ModelRecord::kMark);
  }

  void verify(Builder& b) const {
    const Value weightsAt = b.parameter(0);
    checkWeights(b, weightsAt, b.parameter(1), weights);
    const Value digest = digestOf(b, b.at(weightsAt, int64_t{sizeof weights}),
                                  static_cast<int64_t>(weights.bytes - sizeof weights));
    b.leaveWhen(b.compare(Cmp::NE, digest, b.i64(static_cast<int64_t>(weights.digest))),
                CDL_OBJECT_DAMAGED_WEIGHTS);
  }

  /// Takes the addresses of ports from the caller's array, checked.
  void bind(Builder& b, Value array, uint8_t role, std::vector<Value>& bases) const {
    const std::vector<Port> ports = portsOf(image, role);
    if (!ports.empty()) b.leaveWhen(isNull(b, array), CDL_OBJECT_NULL);
    Value null = b.integer(Ty::I1, 0);
    Value misaligned = null;
    Value moved = null;
    for (size_t p = 0; p < ports.size(); ++p) {
      const Value at = b.load(Ty::Ptr, 1, array, static_cast<int64_t>(p) * isa.pointer());
      Value& base = bases[ports[p].buffer];
      null = b.bitOr(null, isNull(b, at));
      misaligned = b.bitOr(misaligned, isMisaligned(b, at, ports[p].alignment));
      if (base.raw) moved = b.bitOr(moved, b.compare(Cmp::NE, at, base));
      base = at;
    }
    b.leaveWhen(null, CDL_OBJECT_NULL);
    b.leaveWhen(misaligned, CDL_OBJECT_MISALIGNED);
    b.leaveWhen(moved, CDL_OBJECT_STATE);
  }

  void run(Builder& b) const {
    const Value model = b.parameter(0);
    b.leaveWhen(isNull(b, model), CDL_OBJECT_NULL);
    b.leaveWhen(
        b.compare(Cmp::NE, b.load(Ty::I64, 1, model, ModelRecord::kMark), b.i64(markOf(weights))),
        CDL_OBJECT_NOT_OPEN);
    const uint32_t buffers = image->buffers.count;
    std::vector<Value> bases(buffers);
    bind(b, b.parameter(1), CDL_ROLE_INPUT, bases);
    bind(b, b.parameter(2), CDL_ROLE_OUTPUT, bases);
    const Value arenaAt = b.load(Ty::Ptr, 1, model, ModelRecord::kArena);
    for (uint32_t i = 1; i < buffers; ++i) {
      const cdl_buffer_t& buffer = *cdl_get_buffer(image, i);
      if (buffer.role == CDL_ROLE_TEMP && buffer.offset != CDL_UNPLACED)
        bases[i] = b.at(arenaAt, static_cast<int64_t>(arena.spaces[buffer.space] + buffer.offset));
    }
    bases.push_back(arenaAt);
    bases.push_back(b.load(Ty::Ptr, 1, model, ModelRecord::kWeights));
    Steps(b, image, binary, arena, std::move(bases), nameOf).write();
  }
};

} // namespace

std::string whyNoEntry(const cdl_image_t* image) {
  for (uint32_t b = 1; b < image->buffers.count; ++b) {
    const cdl_buffer_t& buffer = *cdl_get_buffer(image, b);
    if (buffer.role == CDL_ROLE_STATE)
      return "buffer '" + std::string(cdl_get_string(image, buffer.name)) +
             "' keeps its content between runs, for which object code has no memory";
  }
  return "";
}

void writeEntries(Codegen& codegen, const cdl_image_t* image, const Binary& binary,
                  const ArenaPlan& arena, const std::string& name, const Isa& isa,
                  const cdl_object_weights_t& weights,
                  const std::function<std::string(uint32_t)>& nameOf) {
  const Entries entries{image, binary, isa, weights, nameOf, arena};
  codegen.entry(name + "_open", {Ty::Ptr, Ty::Ptr, Ty::I64, Ty::Ptr, Ty::I64},
                [&](Builder& b) { entries.open(b); });
  codegen.entry(name + "_run", {Ty::Ptr, Ty::Ptr, Ty::Ptr}, [&](Builder& b) { entries.run(b); });
  codegen.entry(name + "_verify", {Ty::Ptr, Ty::I64}, [&](Builder& b) { entries.verify(b); });
}

} // namespace cpu
