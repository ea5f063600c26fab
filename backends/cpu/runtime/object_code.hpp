// What a build ahead of time is made of (candela/cdl_object.h). Knows no LLVM.
#pragma once

#include "aligned.hpp"

#include <candela/backend.hpp>
#include <candela/cdl_object.h>

#include <vector>

namespace cpu {

struct ObjectCode {
  cdl_object_facts_t facts{};
  cdl_object_weights_t header{}; // of the weights, before `weights`
  AlignedBytes weights;
  std::vector<char> code, weightsObject; // ELF
};

/// As the slot `emit` writes it.
cdl::Status toArchive(const ObjectCode& object, const cdl::Writer& to);

/// What a device makes for another machine or build: it is written out and not run.
class AheadExecutable final : public cdl::Executable {
public:
  explicit AheadExecutable(ObjectCode object) : object_(std::move(object)) {}
  cdl::Status execute(const cdl::Addresses& buffers) override;
  cdl::Status emit(const cdl::Writer& to) const override { return toArchive(object_, to); }

private:
  ObjectCode object_;
};

} // namespace cpu
