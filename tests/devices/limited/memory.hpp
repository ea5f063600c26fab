// A device with little memory of its own, behind handles: what plugins of limited memory share.
#pragma once

#include "backends/template/template.hpp"

#include <atomic>
#include <cstdlib>

namespace limited {

/// The bytes that there are, and those that are taken.
class Budget {
public:
  void set(uint64_t bytes) { left_ = static_cast<int64_t>(bytes); }
  cdl::Status take(uint64_t bytes) {
    const auto wanted = static_cast<int64_t>(bytes);
    const int64_t left = left_.fetch_sub(wanted);
    if (left >= wanted) return cdl::ok();
    left_ += wanted;
    return cdl::error(CDL_OUT_OF_MEMORY,
                      cdl::text(bytes, " bytes of device memory, there are ", left, " left"));
  }
  void give(uint64_t bytes) { left_ += static_cast<int64_t>(bytes); }

private:
  std::atomic<int64_t> left_{0};
};

/// Options: `capacity`, the bytes that there are, and `declared`, those that it says to have.
/// `weights`: those of a memory for constants.
template <class Interface> class Device : public Interface {
public:
  template <class... Args> explicit Device(Args&&... args) : Interface(args...) {
    this->option("capacity", "bytes of device memory", "int", "8388608");
    this->option("declared", "bytes that the device declares; 0: no limit", "int", "8388608");
    this->option("spare", "bytes of a second memory; 0: there is none", "int", "0");
    this->option("weights", "bytes of a memory for constants; 0: there is none", "int", "0");
  }
  cdl::Status open(uint32_t index) override {
    budgets_[0].set(number("capacity"));
    this->space("dram", 0, number("declared"), 64);
    if (number("spare")) this->space("spare", 0, number("spare"), 64);
    if (number("weights")) this->space("flash", CDL_SPACE_CONSTANTS, number("weights"), 128);
    budgets_[1].set(number("spare") + number("weights"));
    return Interface::open(index);
  }
  cdl::Status memoryCreate(uint64_t alignment, cdl::Memory& memory) override {
    const cdl::Status taken = budgetOf(memory).take(memory.bytes);
    return taken.isOk() ? Interface::memoryCreate(alignment, memory) : taken;
  }
  void memoryDestroy(cdl::Memory& memory) override {
    budgetOf(memory).give(memory.bytes);
    Interface::memoryDestroy(memory);
  }
  bool memoryMappable() const override { return false; }
  Budget& budget() { return budgets_[0]; }

private:
  Budget& budgetOf(const cdl::Memory& memory) { return budgets_[memory.space == 0 ? 0 : 1]; }
  uint64_t number(const char* name) const {
    return std::strtoull(this->options().get(name).c_str(), nullptr, 10);
  }

  Budget budgets_[2]; ///< of the default memory, and of the other one
};

} // namespace limited
