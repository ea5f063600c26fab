#include "engine.hpp"

namespace tiles {

namespace {

constexpr void (*kRun[])(const Tile&, const Command&) = {runLoad,     runStore,      runSplat,
                                                         runMultiply, runArithmetic, runRescale};
static_assert(std::size(kRun) == size_t(Opcode::COUNT));

void runTile(Tile& tile) {
  const Job& job = tile.job;
  for (int64_t i = 0; i < tile.rows; ++i) {
    int64_t rest = tile.row + i;
    for (int64_t d = int64_t(job.rank) - 2; d >= 0; rest /= job.dims[d--])
      tile.index[i][d] = rest % job.dims[d];
  }
  for (tile.column = 0; tile.column < job.dims[job.rank - 1]; tile.column += job.width) {
    tile.columns = std::min(job.width, job.dims[job.rank - 1] - tile.column);
    for (uint32_t c = job.first; c < job.first + job.count; ++c) {
      const Command& command = tile.stream.commands[c];
      kRun[size_t(command.op)](tile, command);
    }
  }
}

} // namespace

cdl::Status Engine::execute(const cdl::Addresses& buffers) {
  std::vector<char*> memory(image_->buffers.count + 1);
  for (uint32_t b = 1; b < image_->buffers.count; ++b)
    if (const cdl_buffer_t& buffer = *cdl_get_buffer(image_, b); buffer.role != CDL_ROLE_CONSTANT)
      memory[b] = static_cast<char*>(buffers.address(b, buffer.bytes));
  memory.back() = stream_.own.data();
  char* local = static_cast<char*>(buffers.address(image_->buffers.count, scratchBytes()));
  size_t next = 0;
  return cdl::forEachInstr(image_, [&](uint32_t instr, const int64_t* loops) {
    // A loop plays its instructions again: back to the first job that is not before this one.
    while (next > 0 && stream_.jobs[next - 1].instr >= instr) --next;
    const uint64_t start = cdl::Timings::now();
    for (; next < stream_.jobs.size() && stream_.jobs[next].instr <= instr; ++next) {
      const Job& job = stream_.jobs[next];
      Tile tile{stream_, job, memory, loops, local};
      int64_t rows = 1;
      for (uint32_t d = 0; d + 1 < job.rank; ++d) rows *= job.dims[d];
      for (; tile.row < rows; tile.row += tile.rows) {
        tile.rows = std::min({kLanes / job.width, rows - tile.row, job.span - tile.row % job.span});
        runTile(tile);
      }
    }
    if (buffers.timings()) buffers.timings()->add(instr, start, cdl::Timings::now());
    return cdl::ok();
  });
}

} // namespace tiles
