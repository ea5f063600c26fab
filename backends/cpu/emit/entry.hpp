// The functions by which a program runs a model that was compiled ahead of time
// (candela/cdl_object.h): kernels called in order, on one thread.
#pragma once

#include "../codegen/codegen.hpp"
#include "arena.hpp"

#include <candela/cdl_object.h>

namespace cpu {

/// Why the Program cannot be run by these functions; empty: it can.
std::string whyNoEntry(const cdl_image_t* image);

/// Adds NAME_open, NAME_run and NAME_verify, behind the kernels. `nameOf` is the function of a
/// kernel by its number.
void writeEntries(Codegen& codegen, const cdl_image_t* image, const Binary& binary,
                  const ArenaPlan& arena, const std::string& name, const Isa& isa,
                  const cdl_object_weights_t& weights,
                  const std::function<std::string(uint32_t)>& nameOf);

} // namespace cpu
