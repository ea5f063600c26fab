#pragma once

#include "tools/candela/package/model.h"

namespace candela::tool {

/// The files of a package, by their names.
using PackageFiles = std::map<std::string, Bytes>;

/// NAME.o, NAME_weights.o, NAME.weights, NAME.h, NAME_test_data.h, main.c, CMakeLists.txt, NAME.mk.
PackageFiles packageFiles(const PackageRequest& request, const PackagedModel& model,
                          const PackageSample& sample);

} // namespace candela::tool
