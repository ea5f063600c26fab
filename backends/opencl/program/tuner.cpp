#include "tuner.hpp"

#include "timeline.hpp"

#include <set>

namespace program {

namespace {

constexpr int kRuns = 4;
constexpr uint64_t kFailed = UINT64_MAX;

} // namespace

std::vector<Profile> Tuner::candidates() const {
  std::vector<Profile> all;
  Profile next = profile_;
  if (!profile_.isGpu()) {
    for (next.points = 4; next.points <= 8; next.points += 2)
      for (next.unroll = 2; next.unroll <= 4; next.unroll *= 2) all.push_back(next);
    return all;
  }
  for (next.groupItems = 64; next.groupItems <= 256; next.groupItems *= 4)
    for (next.tileResults = 32; next.tileResults <= 128; next.tileResults *= 2)
      for (next.tileDepth = 8; next.tileDepth <= 32; next.tileDepth *= 2)
        if (profile_.canRun(next)) all.push_back(next);
  return all;
}

uint64_t Tuner::timeOf(const Instruction& instr, const KernelText& text) {
  Program program;
  if (!device_.buildProgram("a trial", programText({&text}), "", program, false).isOk())
    return kFailed;
  cl_int code = CL_SUCCESS;
  const Kernel kernel(clCreateKernel(program.get(), "k1", &code));
  std::map<uint32_t, Buffer> buffers;
  cl_uint arg = 0;
  for (const Place& place : text.places) {
    Buffer& buffer = buffers[place.buffer];
    const uint64_t bytes =
        place.buffer ? cdl_get_buffer(instr.image(), place.buffer)->bytes : kZeros * sizeof(float);
    if (!buffer.get()) {
      std::vector<char> zeros(bytes); // what lay there may be slow to compute with
      buffer = Buffer(clCreateBuffer(device_.context(), CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
                                     bytes, zeros.data(), &code));
    }
    if (code != CL_SUCCESS) return kFailed;
    const cl_mem memory = buffer.get();
    const auto offset = static_cast<cl_ulong>(place.offset);
    code = clSetKernelArg(kernel.get(), arg++, sizeof memory, &memory);
    code = code ? code : clSetKernelArg(kernel.get(), arg++, sizeof offset, &offset);
  }
  uint64_t least = kFailed;
  for (int run = 0; run < kRuns && code == CL_SUCCESS; ++run) {
    cdl::Timings timings;
    Timeline timeline(device_, &timings);
    timeline.begin(0);
    {
      const std::lock_guard<std::mutex> lock(device_.mutex());
      const size_t items = text.groups * text.groupItems;
      if (!device_.enqueue(kernel.get(), items, text.groupItems, "a trial").isOk()) return kFailed;
    }
    if (!timeline.finish().isOk() || timings.records().empty()) return kFailed;
    const cdl_profile_record_t& record = timings.records().front();
    least = std::min(least, record.end_ns - record.start_ns);
  }
  return least;
}

cdl::Status Tuner::choose(const Instruction& instr, KernelText& text) {
  const std::string what = cdl::text("tuned ", hashOf(text.body.data(), text.body.size()));
  const std::vector<Profile> all = candidates();
  const std::string known = device_.cached(what);
  size_t best = all.size(); // the profile itself
  if (known.size() == sizeof best) {
    std::memcpy(&best, known.data(), sizeof best);
  } else {
    uint64_t least = timeOf(instr, text);
    std::set<std::string> tried = {text.body};
    for (size_t i = 0; i < all.size(); ++i) {
      KernelText other;
      if (!writeKernel(instr, all[i], other) || !tried.insert(other.body).second) continue;
      const uint64_t time = timeOf(instr, other);
      if (time >= least) continue;
      least = time;
      best = i;
    }
    if (cdl::Status status = device_.alive(); !status.isOk()) return status;
    device_.putIntoCache(what, std::string(reinterpret_cast<const char*>(&best), sizeof best));
  }
  if (best < all.size()) writeKernel(instr, all[best], text);
  return cdl::ok();
}

} // namespace program
