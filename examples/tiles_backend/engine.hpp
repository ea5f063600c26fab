// The imaginary hardware: runs a stream on main memory, one tile in local memory at a time.
#pragma once

#include "stream.hpp"

namespace tiles {

/// The tile that commands run on.
struct Tile {
  const Stream& stream;
  const Job& job;
  // of each buffer of the image; the last one: the executable's own
  const std::vector<char*>& memory;
  const int64_t* loops;
  char* local;
  int64_t row = 0, column = 0;           // its first ones
  int64_t rows = 0, columns = 0;         // how many it has
  int64_t index[kLanes][CDL_MAX_RANK]{}; // of each row: where it stands in the dims but the last

  template <class T> T* lanes(uint8_t reg) const {
    return reinterpret_cast<T*>(local + 2 * kPanelBytes + reg * kRegisterBytes);
  }
  /// Lanes in use, with those at the end of short rows.
  int64_t size() const { return rows * job.width; }
  template <class T> T* at(const Tensor& tensor) const {
    char* base = memory[tensor.buffer == kOwn ? memory.size() - 1 : tensor.buffer];
    return reinterpret_cast<T*>(base) + tensor.offset + loops[0] * tensor.loops[0] +
           loops[1] * tensor.loops[1];
  }
};

// One for each opcode, in the file of its kind in commands/.
void runLoad(const Tile& tile, const Command& command);
void runStore(const Tile& tile, const Command& command);
void runSplat(const Tile& tile, const Command& command);
void runMultiply(const Tile& tile, const Command& command);
void runArithmetic(const Tile& tile, const Command& command);
void runRescale(const Tile& tile, const Command& command);

/// A stream and the image that it was made of.
class Engine : public cdl::Executable {
public:
  Engine(const cdl_image_t* image, Stream stream) : image_(image), stream_(std::move(stream)) {}
  cdl::Status execute(const cdl::Addresses& buffers) override;
  /// Executions may overlap, so each has a local memory of its own.
  uint64_t scratchBytes() const override { return stream_.localBytes(); }
  cdl::Status save(const cdl::Writer& to) const override;

private:
  const cdl_image_t* image_;
  Stream stream_;
};

/// What Engine::save wrote, for this image and `localBytes` of local memory.
cdl::Status loadStream(const cdl_image_t* image, const void* blob, uint64_t size,
                       uint64_t localBytes, Stream& stream);

} // namespace tiles
