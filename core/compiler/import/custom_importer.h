#pragma once

#include "core/compiler/import/import_context.h"

namespace candela::import {

/// Imports a node of a domain that is not ONNX's own as what the one who claims it makes of it.
Status importCustomNode(const Place& place, const ClaimOp& claim, const onnx_io::Node& node,
                        const std::string& name, int64_t version, const std::vector<Slot>& inputs,
                        std::vector<Slot>& outputs);

} // namespace candela::import
