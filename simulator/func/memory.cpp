#include "simulator/func/memory.h"

#include <algorithm>
#include <cstring>

namespace candela::npu {
namespace {

/// CRC-32 of IEEE 802.3, reflected: start with 0, and go on with what came out.
uint32_t crc32(uint32_t crc, const uint8_t* bytes, size_t count) {
  static const std::array<uint32_t, 256> table = [] {
    std::array<uint32_t, 256> made{};
    for (uint32_t i = 0; i < 256; ++i) {
      made[i] = i;
      for (int bit = 0; bit < 8; ++bit)
        made[i] = made[i] & 1 ? made[i] >> 1 ^ 0xedb88320 : made[i] >> 1;
    }
    return made;
  }();
  crc = ~crc;
  for (size_t i = 0; i < count; ++i) crc = table[(crc ^ bytes[i]) & 0xff] ^ crc >> 8;
  return ~crc;
}

} // namespace

void DramRegions::reset(const Configuration& configuration) {
  std::vector<size_t> readers;
  for (size_t core = 0; core < configuration.cores(); ++core)
    for (int channel = 0; channel < configuration.loadChannels(); ++channel)
      readers.push_back(slotOf(core, static_cast<int>(Engine::kLoad0) + channel));
  for (size_t i = 0; i < regions.size(); ++i) {
    const RegionClass kind = regions[i].kind;
    const bool isWritten = kind == RegionClass::kInput || kind == RegionClass::kOutput;
    shadows[i] = kind == RegionClass::kConstants
                     ? nullptr
                     : std::make_unique<Shadow>(regions[i].bytes, readers, isWritten);
  }
}

Memory::Memory(const Configuration& configuration, bool checks, size_t core, DramRegions& dram)
    : dram_(dram), columns_(configuration.columns()), hasCores_(configuration.cores() > 1),
      checks_(checks), scratchpad_(configuration.scratchpadBytes()),
      accumulators_(static_cast<size_t>(configuration.accumulatorRows()) * configuration.columns()),
      above_(configuration.hasInt16() ? accumulators_.size() : 0),
      validColumns_(configuration.accumulatorRows()) {
  for (int engine = 0; engine < kEngineCount; ++engine)
    if (configuration.engines() >> engine & 1) readers_.push_back(slotOf(core, engine));
}

void Memory::reset() {
  written_.clear();
  std::fill(validColumns_.begin(), validColumns_.end(), 0);
  if (!checks_) return;
  shadow_ = std::make_unique<Shadow>(scratchpad_.size(), readers_, false);
  rowShadow_ = std::make_unique<Shadow>(validColumns_.size(), readers_, false);
}

void Memory::readFloats(int64_t row, int64_t columns, float* to) const {
  std::memcpy(to, accumulators_.data() + row * columns_,
              static_cast<size_t>(columns) * sizeof(float));
}

void Memory::writeFloats(int64_t row, int64_t columns, const float* from) {
  for (int64_t c = 0; c < columns; ++c)
    accumulators_[row * columns_ + c] = static_cast<int32_t>(bitsOf(from[c]));
  extend(row, 1, columns);
}

void Memory::extend(int64_t row, int64_t rows, int64_t columns) {
  if (above_.empty()) return;
  for (int64_t i = row * columns_; rows > 0; --rows, i += columns_)
    for (int64_t c = 0; c < columns; ++c)
      above_[i + c] = static_cast<int8_t>(accumulators_[i + c] >> 31);
}

void Memory::readWide(int64_t row, int64_t columns, int64_t* to) const {
  const int64_t at = row * columns_;
  for (int64_t c = 0; c < columns; ++c)
    to[c] =
        int64_t{above_[at + c]} * (int64_t{1} << 32) + static_cast<uint32_t>(accumulators_[at + c]);
}

void Memory::writeWide(int64_t row, int64_t columns, const int64_t* from, bool accumulate) {
  const int64_t at = row * columns_;
  for (int64_t c = 0; c < columns; ++c) {
    int64_t value = from[c];
    if (accumulate)
      value += int64_t{above_[at + c]} * (int64_t{1} << 32) +
               static_cast<uint32_t>(accumulators_[at + c]);
    accumulators_[at + c] = static_cast<int32_t>(value);
    above_[at + c] = static_cast<int8_t>(value >> 32);
  }
}

std::pair<uint64_t, uint32_t> Memory::takeWritten() {
  std::sort(written_.begin(), written_.end(),
            [](const Written& a, const Written& b) { return a.at < b.at; });
  uint64_t bytes = 0;
  uint32_t crc = 0;
  for (const Written& part : written_) {
    const auto count = static_cast<size_t>(part.bytes);
    if (part.memory == kRows) {
      for (int64_t c = part.at * columns_; c < part.at * columns_ + part.bytes; ++c) {
        const int64_t value = above_.empty() ? accumulators_[c]
                                             : int64_t{above_[c]} * (int64_t{1} << 32) +
                                                   static_cast<uint32_t>(accumulators_[c]);
        crc = crc32(crc, reinterpret_cast<const uint8_t*>(&value), sizeof value);
      }
      bytes += 8 * count;
    } else {
      const uint8_t* const from = part.memory == kScratchpad
                                      ? scratchpad_.data()
                                      : dram(static_cast<uint32_t>(part.memory));
      crc = crc32(crc, from + part.at, count);
      bytes += count;
    }
  }
  written_.clear();
  return {bytes, crc};
}

void Memory::range(std::string_view what, int64_t at, int64_t bytes) const {
  const auto size = static_cast<int64_t>(scratchpad_.size());
  if (at < 0 || bytes > size || at > size - bytes)
    raise(FaultKind::kRange, "{}: bytes {:#x}..{:#x} leave the scratchpad of {:#x}", what, at,
          at + bytes - 1, size);
}

void Memory::dramRange(uint32_t region, int64_t at, int64_t bytes, bool isWrite) const {
  if (region >= dram_.regions.size())
    raise(FaultKind::kRange, "region {} is not there, the program has {}", region,
          dram_.regions.size());
  const auto size = static_cast<int64_t>(dram_.regions[region].bytes);
  if (at < 0 || bytes > size || at > size - bytes)
    raise(FaultKind::kRange, "bytes {}..{} leave region {} '{}' of {}", at, at + bytes - 1, region,
          dram_.regions[region].name, size);
  if (isWrite && dram_.regions[region].kind == RegionClass::kConstants)
    raise(FaultKind::kPort, "region {} '{}' is read only", region, dram_.regions[region].name);
}

void Memory::rowRange(int64_t row, int64_t rows) const {
  const auto size = static_cast<int64_t>(validColumns_.size());
  if (row < 0 || rows > size || row > size - rows)
    raise(FaultKind::kRange, "accumulator rows {}..{} of {}", row, row + rows - 1, size);
}

void Memory::race(std::string place, bool isWrite, AccessId other, const Accessor& accessor) const {
  const Access& access = (*accessor.accesses)[other];
  const size_t core = access.slot / kEngineCount;
  raise(FaultKind::kRace, "{} {} without an order to what {}{} does there at instruction {}",
        isWrite ? "writes" : "reads", place, hasCores_ ? fmt::format("core {} ", core) : "",
        engineName(static_cast<int>(access.slot % kEngineCount)), access.instruction);
}

void Memory::reads(int64_t at, int64_t bytes, const Accessor& accessor) {
  if (!checks_) return;
  const auto from = static_cast<uint64_t>(at), count = static_cast<uint64_t>(bytes);
  if (const AccessId other = shadow_->read(from, count, accessor))
    race(fmt::format("scratchpad {:#x}..{:#x}", at, at + bytes - 1), false, other, accessor);
  if (const int64_t missing = shadow_->uninitialised(from, count); missing >= 0)
    raise(FaultKind::kUninitialised, "reads scratchpad {:#x}, which nothing wrote", missing);
}

void Memory::writes(int64_t at, int64_t bytes, const Accessor& accessor) {
  note(kScratchpad, at, bytes);
  if (!checks_) return;
  if (const AccessId other =
          shadow_->write(static_cast<uint64_t>(at), static_cast<uint64_t>(bytes), accessor))
    race(fmt::format("scratchpad {:#x}..{:#x}", at, at + bytes - 1), true, other, accessor);
}

void Memory::dramReads(uint32_t region, int64_t at, int64_t bytes, const Accessor& accessor) {
  Shadow* shadow = dram_.shadows[region].get();
  if (!shadow) return;
  const auto from = static_cast<uint64_t>(at), count = static_cast<uint64_t>(bytes);
  if (const AccessId other = shadow->read(from, count, accessor))
    race(fmt::format("region '{}' {}..{}", dram_.regions[region].name, at, at + bytes - 1), false,
         other, accessor);
  if (const int64_t missing = shadow->uninitialised(from, count); missing >= 0)
    raise(FaultKind::kUninitialised, "reads byte {} of region '{}', which nothing wrote", missing,
          dram_.regions[region].name);
}

void Memory::dramWrites(uint32_t region, int64_t at, int64_t bytes, const Accessor& accessor) {
  note(static_cast<int>(region), at, bytes);
  Shadow* shadow = dram_.shadows[region].get();
  if (!shadow) return;
  if (const AccessId other =
          shadow->write(static_cast<uint64_t>(at), static_cast<uint64_t>(bytes), accessor))
    race(fmt::format("region '{}' {}..{}", dram_.regions[region].name, at, at + bytes - 1), true,
         other, accessor);
}

void Memory::rowsRead(int64_t row, int64_t rows, int columns, const Accessor& accessor) {
  if (!checks_) return;
  if (const AccessId other =
          rowShadow_->read(static_cast<uint64_t>(row), static_cast<uint64_t>(rows), accessor))
    race(fmt::format("accumulator rows {}..{}", row, row + rows - 1), false, other, accessor);
  for (int64_t i = row; i < row + rows; ++i)
    if (validColumns_[i] < columns)
      raise(FaultKind::kUninitialised, "reads {} columns of accumulator row {}, which has {}",
            columns, i, validColumns_[i]);
}

void Memory::rowsWritten(int64_t row, int64_t rows, int columns, bool alsoRead,
                         const Accessor& accessor) {
  for (int64_t i = row; isRecording_ && i < row + rows; ++i) note(kRows, i, columns);
  if (!checks_) return;
  if (alsoRead) rowsRead(row, rows, columns, accessor);
  if (const AccessId other =
          rowShadow_->write(static_cast<uint64_t>(row), static_cast<uint64_t>(rows), accessor))
    race(fmt::format("accumulator rows {}..{}", row, row + rows - 1), true, other, accessor);
  if (!alsoRead) std::fill_n(validColumns_.begin() + row, rows, columns);
}

} // namespace candela::npu
