#include "tools/candela/debug/tape.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <set>

#include "tools/candela/support/console.h"

namespace candela::tool {
namespace {

constexpr uint64_t kMost = uint64_t(4) << 30; ///< of the file
constexpr uint64_t kAlignment = 64;

uint64_t aligned(uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

std::shared_ptr<std::byte> sharedFile(uint64_t bytes) {
  std::FILE* file = std::tmpfile();
  if (!file)
    fail(kWorkFailed, "no temporary file for {} of intermediate values: {}", bytesText(bytes),
         std::strerror(errno));
  // All of it now: a disk that fills up later would be a signal.
  const int error = posix_fallocate(fileno(file), 0, static_cast<off_t>(bytes));
  void* memory = error ? MAP_FAILED
                       : mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0);
  std::fclose(file);
  if (memory == MAP_FAILED)
    fail(kWorkFailed, "the temporary folder has no {} for intermediate values: {}",
         bytesText(bytes), std::strerror(error ? error : errno));
  return {static_cast<std::byte*>(memory), [bytes](std::byte* p) { munmap(p, bytes); }};
}

} // namespace

Tape::Tape(const program::Program& program, const cdl_image_t* image) {
  int64_t loops[CDL_MAX_LOOP_NESTING] = {};
  for (uint32_t i = 1; i < image->instrs.count; i = cdl_next_instr(image, i, loops)) {
    Execution& execution = executions_.emplace_back();
    execution.instr = i - 1;
    std::copy_n(loops, CDL_MAX_LOOP_NESTING, execution.loops);
  }
  uint64_t end = 0;
  for (const program::Buffer& buffer : program.buffers) {
    const uint64_t bytes = buffer.role == program::Role::constant ? 0 : buffer.bytes;
    buffers_.push_back({bytes, end, {}});
    end += aligned(bytes);
  }
  const uint64_t onlyInitial = end;
  for (size_t e = 0; e < executions_.size(); ++e) {
    std::set<uint32_t> written;
    for (const program::View& view : program.instrs[executions_[e].instr].outputs)
      written.insert(view.buffer);
    for (const uint32_t b : written) {
      buffers_[b].writes.emplace_back(e, end);
      end += aligned(buffers_[b].bytes);
    }
  }
  if (end > kMost) {
    keepsAll_ = false;
    end = onlyInitial;
    for (Buffer& buffer : buffers_) buffer.writes.clear();
  }
  memory_ = sharedFile(std::max(end, kAlignment));
  for (uint32_t b = 0; b < buffers_.size(); ++b)
    std::memset(initial(b).data(), program.buffers[b].role == program::Role::state ? 0 : 0xff,
                initial(b).size());
}

std::span<std::byte> Tape::before(size_t e, uint32_t buffer) const {
  const auto& writes = buffers_[buffer].writes;
  const auto later =
      std::lower_bound(writes.begin(), writes.end(), e,
                       [](const auto& write, size_t execution) { return write.first < execution; });
  return at(buffer, later == writes.begin() ? buffers_[buffer].initial : std::prev(later)->second);
}

} // namespace candela::tool
