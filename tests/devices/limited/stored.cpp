// Executables that can be stored, and so hold their constants in the device's memory.
#include "tests/devices/limited/program.hpp"

#include <candela/backend/stored.hpp>

namespace {

constexpr const char* kMadeBy = "limited_stored 0.1.0";

class Stored : public limited::Interpreted {
public:
  Stored(const cdl_image_t* image, limited::Budget& budget) : Interpreted(image), budget_(budget) {}
  ~Stored() override { budget_.give(taken_); }

  /// The bytes of all constants, one behind the other; those of splats too.
  cdl::Status hold(std::vector<char> bytes) {
    const cdl::Status status = budget_.take(bytes.size());
    if (!status.isOk()) return status;
    taken_ = bytes.size();
    bytes_ = std::move(bytes);
    return cdl::ok();
  }
  cdl::Status execute(const cdl::Addresses& buffers) override {
    return Interpreted::execute(WithConstants(*this, buffers));
  }
  cdl::Status save(const cdl::Writer& to) const override {
    cdl::StoredWriter writer(kMadeBy, 1, image_);
    writer.add(bytes_);
    return writer.write(to);
  }

private:
  class WithConstants final : public cdl::Addresses {
  public:
    WithConstants(const Stored& stored, const cdl::Addresses& bound)
        : stored_(stored), bound_(bound) {}
    void* address(uint32_t buffer, uint64_t bytes) const override {
      const uint32_t constant = cdl_get_buffer(stored_.image_, buffer)->constant;
      if (!constant) return bound_.address(buffer, bytes);
      uint64_t offset = 0;
      for (uint32_t c = 1; c < constant; ++c) offset += limited::room(stored_.image_, c);
      return const_cast<char*>(stored_.bytes_.data()) + offset; // which nobody writes
    }

    cdl::Timings* timings() const override { return bound_.timings(); }

  private:
    const Stored& stored_;
    const cdl::Addresses& bound_;
  };

  limited::Budget& budget_;
  std::vector<char> bytes_;
  uint64_t taken_ = 0;
};

} // namespace

class LimitedStored : public limited::Device<limited::Programs> {
public:
  LimitedStored() : Device("limited_stored") {}
  cdl::Status compile(const cdl_image_t* image, const void* const* constants,
                      std::unique_ptr<cdl::Executable>& executable) override {
    std::vector<char> bytes;
    for (uint32_t c = 1; c < image->constants.count; ++c) {
      const cdl_constant_t& constant = *cdl_get_constant(image, c);
      if (!constants[c]) return cdl::unsupported("a splat without its bytes");
      const size_t begin = bytes.size();
      bytes.resize(begin + limited::room(image, c));
      std::memcpy(bytes.data() + begin, constants[c], constant.bytes);
    }
    return hold(image, std::move(bytes), executable);
  }
  cdl::Status load(const cdl_image_t* image, const void* blob, uint64_t size,
                   std::unique_ptr<cdl::Executable>& executable) override {
    cdl::StoredReader reader;
    std::vector<char> bytes;
    cdl::Status status = reader.open(kMadeBy, 1, image, blob, size);
    if (status.isOk()) status = reader.read(bytes);
    return status.isOk() ? hold(image, std::move(bytes), executable) : status;
  }

private:
  cdl::Status hold(const cdl_image_t* image, std::vector<char> bytes,
                   std::unique_ptr<cdl::Executable>& executable) {
    auto made = std::make_unique<Stored>(image, budget());
    cdl::Status status = made->hold(std::move(bytes));
    if (status.isOk()) executable = std::move(made);
    return status;
  }
};
CDL_BACKEND(LimitedStored)
