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
  for (const Call& call : binary_.calls)
    mostUnits_ = std::max(mostUnits_, static_cast<int>(std::min<uint64_t>(call.units, INT_MAX)));
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

  std::vector<void*> pointers;
  std::vector<Job> jobs;
  cdl::Status status = cdl::forEachInstr(image_, [&](uint32_t instr, const int64_t* loops) {
    for (uint32_t c = firstCall_[instr]; c < firstCall_[instr + 1]; ++c) {
      const Call& call = binary_.calls[c];
      jobs.push_back({kernels_[call.kernel], call.units, pointers.size(), instr, c + 1 == firstCall_[instr + 1]});
      for (uint32_t a = call.firstArg; a < call.firstArg + call.args; ++a) {
        const Arg& arg = binary_.args[a];
        char* base = arg.buffer == Arg::kScratch ? scratch
                     : arg.buffer == Arg::kOwn   ? const_cast<char*>(binary_.own) // read only
                                                 : bases[arg.buffer];
        pointers.push_back(base + arg.offset + arg.perLoop[0] * loops[0] + arg.perLoop[1] * loops[1]);
      }
    }
    return cdl::ok();
  });
  if (!status.isOk()) return status;

  cdl::Timings* timings = buffers.timings();
  Barrier barrier(std::min(mostUnits_, threads_.count()));
  threads_.run(mostUnits_, [&](int t, int total) {
    uint64_t start = timings && t == 0 ? cdl::Timings::now() : 0;
    for (const Job& job : jobs) {
      const auto units = static_cast<int64_t>(job.units);
      const int64_t first = units * t / total, last = units * (t + 1) / total;
      if (first < last) job.kernel(pointers.data() + job.firstPointer, first, last);
      if (total > 1) barrier.arrive();
      if (!timings || t != 0 || !job.endsInstr) continue;
      const uint64_t end = cdl::Timings::now();
      timings->add(job.instr, start, end);
      start = end;
    }
  });
  return cdl::ok();
}

} // namespace cpu
