#include "executable.hpp"

#include "blob.hpp"

#include <algorithm>
#include <climits>

namespace cpu {

CpuExecutable::CpuExecutable(const cdl_image_t* image, Binary binary, Threads& threads)
    : image_(image), binary_(std::move(binary)), threads_(threads) {}

cdl::Status CpuExecutable::place() {
  if (!code_.place(binary_.object, binary_.objectBytes)) return cdl::error(CDL_BAD_MODEL, code_.error());
  for (uint32_t k = 0; k < binary_.kernels; ++k) {
    kernels_.push_back(code_.find("k" + std::to_string(k)));
    if (!kernels_.back()) return cdl::error(CDL_BAD_MODEL, "object code: no kernel k" + std::to_string(k));
  }
  const uint32_t instrs = image_->instrs.count;
  firstCall_.assign(instrs + 1, 0);
  for (const Call& call : binary_.calls) ++firstCall_[call.instr + 1];
  for (uint32_t i = 0; i < instrs; ++i) firstCall_[i + 1] += firstCall_[i];
  for (const Call& call : binary_.calls) {
    mostArgs_ = std::max(mostArgs_, call.args);
    mostUnits_ = std::max(mostUnits_, static_cast<int>(std::min<uint64_t>(call.units, INT_MAX)));
  }
  return cdl::ok();
}

cdl::Status CpuExecutable::save(const cdl::Writer& to) const { return toBlob(image_, binary_, to); }

cdl::Status CpuExecutable::execute(const cdl::Addresses& buffers) {
  std::vector<char*> bases(image_->buffers.count, nullptr);
  for (uint32_t b = 1; b < image_->buffers.count; ++b) {
    const cdl_buffer_t& buffer = *cdl_get_buffer(image_, b);
    if (buffer.role != CDL_ROLE_CONSTANT) bases[b] = static_cast<char*>(buffers.address(b, buffer.bytes));
  }
  char* scratch =
      binary_.scratchBytes ? static_cast<char*>(buffers.address(image_->buffers.count, binary_.scratchBytes)) : nullptr;

  std::vector<void*> pointers; // of all arguments, as loops find them first
  pointers.reserve(binary_.args.size());
  for (const Arg& arg : binary_.args) {
    char* base = arg.buffer == Arg::kScratch ? scratch
                 : arg.buffer == Arg::kOwn   ? const_cast<char*>(binary_.own) // read only
                                             : bases[arg.buffer];
    pointers.push_back(base + arg.offset);
  }
  cdl::Timings* timings = buffers.timings();
  Barrier barrier(std::min(mostUnits_, threads_.count()));
  threads_.run(mostUnits_, [&](int t, int total) { work({t, total}, pointers, barrier, timings); });
  return cdl::ok();
}

void CpuExecutable::work(Share share, const std::vector<void*>& pointers, Barrier& barrier,
                         cdl::Timings* timings) const {
  const auto [t, total] = share;
  std::vector<void*> moved(mostArgs_);
  uint64_t start = timings ? cdl::Timings::now() : 0, before = 0;
  int64_t loops[CDL_MAX_LOOP_NESTING] = {};
  for (uint32_t i = 1; i < image_->instrs.count; i = cdl_next_instr(image_, i, loops)) {
    for (uint32_t c = firstCall_[i]; c < firstCall_[i + 1]; ++c) {
      const Call& call = binary_.calls[c];
      // What is not divided is always done by the same thread: between two such calls nobody waits.
      if (total > 1 && before && (before > 1 || call.units > 1 || timings)) barrier.arrive();
      before = call.units;
      const auto units = static_cast<int64_t>(call.units);
      const int64_t first = units * t / total, last = units * (t + 1) / total;
      if (first >= last) continue;
      void* const* arguments = pointers.data() + call.firstArg;
      if (cdl_get_instr(image_, i)->loop) {
        for (uint32_t a = 0; a < call.args; ++a) {
          const Arg& arg = binary_.args[call.firstArg + a];
          moved[a] = static_cast<char*>(arguments[a]) + arg.perLoop[0] * loops[0] + arg.perLoop[1] * loops[1];
        }
        arguments = moved.data();
      }
      kernels_[call.kernel](arguments, first, last);
    }
    if (!timings || firstCall_[i] == firstCall_[i + 1]) continue;
    if (total > 1) barrier.arrive();
    before = 0;
    const uint64_t end = cdl::Timings::now();
    if (t == 0) timings->add(i, start, end);
    start = end;
  }
}

} // namespace cpu
