#pragma once

#include "tools/candela/package/write.h"

namespace candela::tool {

/// Whether the package is for a page or node: its code is a module of WebAssembly.
bool isForWeb(const PackagedModel& model);

/// What its linker is told: what a host takes of the module.
std::string webLinkOptions(const std::string& name);

/// NAME.mjs, NAME_test_data.mjs and main.mjs, with CMakeLists.txt and NAME.mk that make NAME.wasm.
/// `header`: the values that NAME.h is filled with.
PackageFiles webFiles(const PackagedModel& model, const PackageSample& sample,
                      const std::map<std::string_view, std::string>& header);

} // namespace candela::tool
