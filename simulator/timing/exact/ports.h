#pragma once

#include <cstdint>
#include <vector>

#include "simulator/config/configuration.h"

namespace candela::npu::exact {

/// What a stream asks of the scratchpad in a cycle: bytes `from`..`to` behind `address`, which may
/// lie before 0. As rtl/scratchpad has it.
struct PortRequest {
  bool isValid = false;
  int64_t address = 0;
  int64_t from = 0, to = 0;
  bool isGranted = false;

  void ask(int64_t at, int64_t first, int64_t behind) {
    isValid = true;
    address = at;
    from = first;
    to = behind;
  }
};

/// The banks, and who goes first.
class Scratchpad {
public:
  explicit Scratchpad(const Configuration& configuration);
  /// Grants requests, of which each port has one, valid or not.
  void arbitrate(const std::vector<PortRequest*>& ports);

private:
  uint64_t banksOf(const PortRequest& request) const;
  int widthLog2_;
  int64_t banks_;
  size_t first_ = 0;
};

/// The accumulators' banks in a cycle: the matrix engine reads a row to add to it, and writes one.
struct AccumulatorPorts {
  int64_t bankRows = 1;
  bool isRead = false, isWritten = false;
  int64_t readRow = 0, writtenRow = 0;

  bool mayRead(int64_t row) const { return !isRead || readRow / bankRows != row / bankRows; }
  bool mayWrite(int64_t row) const { return !isWritten || writtenRow / bankRows != row / bankRows; }
};

} // namespace candela::npu::exact
