// LOAD, STORE and SPLAT: between main memory and registers.
#include "../compiler.hpp"
#include "../engine.hpp"

namespace tiles {

void compileMove(Compiler& c) {
  c.beginAll();
  if (c.instr().kind == CDL_KIND_COPY) return c.store(c.output(), c.load(c.input(0)));
  c.store(c.output(), c.splat(uint64_t(c.attr(CDL_ATTR_VALUE, 0)), c.output().elem));
}

uint8_t Compiler::splat(uint64_t bits, uint8_t elem) {
  // as LOAD would widen it
  return emit({.op = Opcode::SPLAT, .low = elem == CDL_I8 ? int8_t(bits) : int32_t(bits)});
}

namespace {

/// body(lane, element) for what the tile has of a tensor.
template <class T, class F> void forEachLane(const Tile& tile, const Tensor& tensor, F body) {
  const uint32_t last = tile.job.rank - 1;
  const int64_t step = tensor.strides[last];
  for (int64_t i = 0; i < tile.rows; ++i) {
    T* at = tile.at<T>(tensor) + tile.column * step;
    for (uint32_t d = 0; d < last; ++d) at += tile.index[i][d] * tensor.strides[d];
    for (int64_t j = 0; j < tile.columns; ++j) body(i * tile.job.width + j, at[j * step]);
  }
}

template <class T> void load(const Tile& tile, const Tensor& tensor, uint8_t to) {
  int32_t* lanes = tile.lanes<int32_t>(to);
  forEachLane<const T>(tile, tensor, [=](int64_t lane, const T& x) { lanes[lane] = int32_t(x); });
}

template <class T> void store(const Tile& tile, const Tensor& tensor, uint8_t from) {
  const int32_t* lanes = tile.lanes<int32_t>(from);
  forEachLane<T>(tile, tensor, [=](int64_t lane, T& y) { y = T(lanes[lane]); });
}

} // namespace

void runLoad(const Tile& tile, const Command& command) {
  const Tensor& x = tile.stream.tensors[command.index];
  if (elemBytes(x.elem) == 4) return load<int32_t>(tile, x, command.to); // f32 as it is
  return x.elem == CDL_I8 ? load<int8_t>(tile, x, command.to) : load<uint8_t>(tile, x, command.to);
}

void runStore(const Tile& tile, const Command& command) {
  const Tensor& y = tile.stream.tensors[command.index];
  return elemBytes(y.elem) == 4 ? store<int32_t>(tile, y, command.in[0])
                                : store<uint8_t>(tile, y, command.in[0]);
}

void runSplat(const Tile& tile, const Command& command) {
  std::fill_n(tile.lanes<int32_t>(command.to), tile.size(), command.low);
}

} // namespace tiles
