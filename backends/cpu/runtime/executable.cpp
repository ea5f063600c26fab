#include "executable.hpp"

#include "blob.hpp"
#include "objects.hpp"

#include <algorithm>
#include <climits>
#include <map>

namespace cpu {

namespace {

/// Products of a MATMUL or CONV2D; of others elements, which cost more than a product each.
double workOf(const cdl_image_t* image, const cdl_instr_t& instr) {
  const auto elements = [&](uint32_t v) {
    const cdl_view_t& view = *cdl_get_input(image, &instr, v);
    double count = 1;
    for (int d = 0; d < view.rank; ++d) count *= static_cast<double>(view.dims[d]);
    return count;
  };
  double most = 0;
  for (uint32_t v = 0; v < uint32_t(instr.inputs) + instr.outputs; ++v)
    most = std::max(most, elements(v));
  if (instr.kind == CDL_KIND_MATMUL) {
    const cdl_view_t& a = *cdl_get_input(image, &instr, 0);
    return elements(instr.inputs) * static_cast<double>(a.rank ? a.dims[a.rank - 1] : 1);
  }
  return instr.kind == CDL_KIND_CONV2D ? elements(instr.inputs) * elements(1) : 8 * most;
}

/// The units from .. to of all that the call does, as if they followed each other.
void runUnits(KernelFn kernel, void* const* arguments, const Call& call, int64_t from, int64_t to) {
  const auto units = static_cast<int64_t>(call.units), stride = static_cast<int64_t>(call.stride);
  while (from < to) {
    const int64_t turn = from / units, begin = from % units,
                  end = std::min(units, begin + to - from);
    const int64_t base = static_cast<int64_t>(call.first) + turn * stride;
    kernel(arguments, base + begin, base + end);
    from += end - begin;
  }
}

/// What a loop runs often is shared out only where the others are done before threads have found
/// each other.
constexpr double kLittleWork = 1 << 20;

} // namespace

CpuExecutable::CpuExecutable(const cdl_image_t* image, Binary binary, Threads& threads)
    : image_(image), binary_(std::move(binary)), threads_(threads) {}

cdl::Status CpuExecutable::place() {
  std::vector<std::pair<const char*, uint64_t>> objects;
  if (!unpack(binary_.code, binary_.codeBytes, objects))
    return cdl::error(CDL_BAD_MODEL, "object code: its table leaves it");
  for (const auto& [object, bytes] : objects)
    if (!code_.emplace_back().place(object, bytes))
      return cdl::error(CDL_BAD_MODEL, code_.back().error());
  for (uint32_t k = 0; k < binary_.kernels; ++k) {
    kernels_.push_back(find("k" + std::to_string(k)));
    if (!kernels_.back())
      return cdl::error(CDL_BAD_MODEL, "object code: no kernel k" + std::to_string(k));
  }
  const uint32_t instrs = image_->instrs.count;
  firstCall_.assign(instrs + 1, 0);
  for (const Call& call : binary_.calls) ++firstCall_[placeOf(call.instr) + 1];
  for (uint32_t i = 0; i < instrs; ++i) firstCall_[i + 1] += firstCall_[i];
  isLittle_.assign(instrs, false);
  for (uint32_t i = 1; i < instrs; ++i)
    isLittle_[i] =
        cdl_get_instr(image_, i)->loop && workOf(image_, *cdl_get_instr(image_, i)) <= kLittleWork;
  for (const Call& call : binary_.calls) {
    mostArgs_ = std::max(mostArgs_, call.args);
    if (isLittle_[call.instr]) continue;
    mostUnits_ =
        std::max(mostUnits_, static_cast<int>(std::min<uint64_t>(call.allUnits(), INT_MAX)));
  }
  return cdl::ok();
}

KernelFn CpuExecutable::find(const std::string& kernel) const {
  for (const Code& code : code_)
    if (const KernelFn found = code.find(kernel)) return found;
  return nullptr;
}

uint32_t CpuExecutable::placeOf(uint32_t instr) const {
  const uint32_t group = cdl_get_instr(image_, instr)->group;
  return group && cdl_get_group(image_, group)->bands > 1 ? cdl_get_group(image_, group)->first
                                                          : instr;
}

cdl::Status CpuExecutable::save(const cdl::Writer& to) const { return toBlob(image_, binary_, to); }

CpuExecutable::Tables CpuExecutable::tables() const {
  const auto behind = [](uint64_t at, uint64_t bytes) { return (at + bytes + 63) & ~uint64_t(63); };
  Tables tables{};
  tables.bases = behind(0, binary_.scratchBytes);
  tables.pointers = behind(tables.bases, image_->buffers.count * sizeof(char*));
  tables.moved = behind(tables.pointers, binary_.args.size() * sizeof(void*));
  tables.bytes =
      behind(tables.moved, static_cast<uint64_t>(threads_.count()) * mostArgs_ * sizeof(void*));
  return tables;
}

cdl::Status CpuExecutable::execute(const cdl::Addresses& buffers) {
  const Tables at = tables();
  char* scratch = static_cast<char*>(buffers.address(image_->buffers.count, at.bytes));
  char** bases = reinterpret_cast<char**>(scratch + at.bases);
  for (uint32_t b = 1; b < image_->buffers.count; ++b) {
    const cdl_buffer_t& buffer = *cdl_get_buffer(image_, b);
    if (buffer.role != CDL_ROLE_CONSTANT)
      bases[b] = static_cast<char*>(buffers.address(b, buffer.bytes));
  }
  void** pointers = reinterpret_cast<void**>(scratch + at.pointers); // as loops find them first
  for (size_t a = 0; a < binary_.args.size(); ++a) {
    const Arg& arg = binary_.args[a];
    switch (arg.buffer) {
    case Arg::kScratch: pointers[a] = scratch + arg.offset; break;
    case Arg::kOwn: pointers[a] = const_cast<char*>(binary_.own) + arg.offset; break; // read only
    default: pointers[a] = bases[arg.buffer] + arg.offset;
    }
  }
  void** moved = reinterpret_cast<void**>(scratch + at.moved);
  cdl::Timings* timings = buffers.timings();
  Barrier barrier(std::min(mostUnits_, threads_.count()));
  const auto body = [&](int t, int total) {
    work({t, total}, pointers, moved + static_cast<size_t>(t) * mostArgs_, barrier, timings);
  };
  threads_.run(mostUnits_, body);
  return cdl::ok();
}

void CpuExecutable::work(Share share, void* const* pointers, void** moved, Barrier& barrier,
                         cdl::Timings* timings) const {
  const auto [t, total] = share;
  uint64_t start = timings ? cdl::Timings::now() : 0;
  bool hasRun = false, wasAlone = false;
  int64_t loops[CDL_MAX_LOOP_NESTING] = {};
  for (uint32_t i = 1; i < image_->instrs.count; i = cdl_next_instr(image_, i, loops)) {
    std::map<uint32_t, uint64_t> spent; // by instruction, of what is timed
    uint64_t begin = start;
    for (uint32_t c = firstCall_[i]; c < firstCall_[i + 1]; ++c) {
      const Call& call = binary_.calls[c];
      // What is not divided is always done by the last thread: between two such calls nobody waits.
      const auto units = static_cast<int64_t>(call.allUnits());
      const bool alone = isLittle_[call.instr] || units == 1;
      if (total > 1 && hasRun && (!wasAlone || !alone || timings)) barrier.arrive();
      hasRun = true;
      wasAlone = alone;
      int64_t first = units * t / total, last = units * (t + 1) / total;
      if (alone) {
        first = t + 1 == total ? 0 : units;
        last = units;
      }
      if (first < last) {
        void* const* arguments = pointers + call.firstArg;
        if (cdl_get_instr(image_, i)->loop) {
          for (uint32_t a = 0; a < call.args; ++a) {
            const Arg& arg = binary_.args[call.firstArg + a];
            moved[a] = static_cast<char*>(arguments[a]) + arg.perLoop[0] * loops[0] +
                       arg.perLoop[1] * loops[1];
          }
          arguments = moved;
        }
        runUnits(kernels_[call.kernel], arguments, call, first, last);
      }
      if (!timings || (c + 1 < firstCall_[i + 1] && binary_.calls[c + 1].instr == call.instr))
        continue;
      if (total > 1) barrier.arrive();
      hasRun = false;
      const uint64_t end = cdl::Timings::now();
      spent[call.instr] += end - begin;
      begin = end;
    }
    // What bands did of an instruction is one record, and those of a group follow each other.
    for (const auto& [instr, time] : spent) {
      if (t == 0) timings->add(instr, start, start + time);
      start += time;
    }
  }
}

} // namespace cpu
