// Element by element, in dense blocks.
#pragma once

#include "core/runtime/host_executor/share.h"

namespace candela::runtime::host_executor {

/// body(const void* const* in, void* out, int64_t n) over dense blocks of n <= kBlock elements. A
/// copy is for another thread: it shares nothing that either of them writes.
template <class F> class BlockMapper {
public:
  /// Inputs have the dims of `out`; `out` may equal an input.
  BlockMapper(int64_t threads, const Scratch<Operand>& in, const Operand& out, F body)
      : out_(out), body_(std::move(body)) {
    Scratch<const Operand*> all{&out};
    for (const Operand& operand : in) {
      all.push_back(&operand);
      readers_.emplace_back(operand);
    }
    loop_ = makeLoop(all);
    for (size_t k = 0; k < readers_.size(); ++k) readers_[k].setStride(loop_.rowStride(k + 1));
    outStride_ = loop_.rowStride(0);
    width_ = kBlock;
    if (threads > 1 && loop_.isTurned)
      width_ = std::clamp<int64_t>(ceilDiv(loop_.row(), 4 * threads), 1, kBlock);
    isDirect_ = outStride_ == 1 && !isPackedElem(out.elem);
    outScratch_.resize(isDirect_ ? 0 : kBlock);
    pointers_.resize(in.size());
  }

  /// Blocks are numbered row after row; in a loop that is turned one behind the other of all rows,
  /// so that threads do not write to the same lines of the cache.
  int64_t blocks() const { return loop_.rows() * blocksOfRow(); }
  /// Elements of most of them.
  int64_t blockElements() const { return std::min(loop_.row(), width_); }

  void run(int64_t first, int64_t end) {
    if (first >= end) return;
    const int64_t rows = loop_.rows(), each = blocksOfRow();
    if (loop_.isTurned) {
      for (int64_t b = first / rows; b * rows < end; ++b)
        runBlocks(std::max(first - b * rows, int64_t{0}), std::min(end - b * rows, rows), b, b + 1);
      return;
    }
    // the rest of a row, whole rows, and the beginning of one
    const int64_t firstRow = first / each, endRow = end / each;
    if (firstRow == endRow) return runBlocks(firstRow, firstRow + 1, first % each, end % each);
    if (first % each) runBlocks(firstRow, firstRow + 1, first % each, each);
    runBlocks(ceilDiv(first, each), endRow, 0, each);
    if (end % each) runBlocks(endRow, endRow + 1, 0, end % each);
  }

private:
  int64_t blocksOfRow() const { return ceilDiv(loop_.row(), width_); }

  /// Blocks firstBlock .. endBlock - 1 of each of these rows.
  void runBlocks(int64_t firstRow, int64_t endRow, int64_t firstBlock, int64_t endBlock) {
    const int64_t width = width_, outStride = outStride_;
    const int64_t from = firstBlock * width, to = std::min(endBlock * width, loop_.row());
    const bool isDirect = isDirect_;
    forEachRow(loop_, firstRow, endRow, [&](const int64_t* position) {
      for (int64_t i = from; i < to; i += width) {
        const int64_t n = std::min(to - i, width);
        for (size_t k = 0; k < readers_.size(); ++k)
          pointers_[k] = readers_[k].read(position[k + 1] + i * loop_.rowStride(k + 1), n);
        const int64_t at = position[0] + i * outStride;
        void* target = isDirect ? out_.address(at) : static_cast<void*>(outScratch_.data());
        body_(pointers_.data(), target, n);
        if (!isDirect) scatterBlock(out_, at, outStride, n, target);
      }
    });
  }

  Operand out_;
  F body_;
  Loop loop_;
  Scratch<BlockReader> readers_;
  Scratch<const void*> pointers_;
  Scratch<uint64_t> outScratch_;
  int64_t outStride_ = 0, width_ = 0; // of a block
  bool isDirect_ = false;
};

/// Runs body(in, out, n), which is copied for other threads, over all blocks.
template <class F>
void mapBlocks(const Workers* workers, const Scratch<Operand>& in, const Operand& out, F body) {
  if (!hasOwnPlaces(out)) workers = nullptr;
  BlockMapper<F> mapper(threadsOf(workers), in, out, std::move(body));
  const int64_t blocks = mapper.blocks(), steps = mapper.blockElements();
  shareRange(
      workers, blocks, steps,
      [mapper = std::move(mapper)](int64_t first, int64_t end) mutable { mapper.run(first, end); });
  if (isPackedElem(out.elem)) out.clearTail();
}

} // namespace candela::runtime::host_executor
