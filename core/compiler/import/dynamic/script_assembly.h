#pragma once

#include "core/compiler/import/import_context.h"

namespace candela::import {

/// What importers left in frames as a script: Graphs, sections and the flow between them, without
/// what nobody needs. `names`: of the outputs.
Script assembleScript(ImportContext& context, const std::vector<Slot>& outputs,
                      std::vector<std::string> names);

} // namespace candela::import
