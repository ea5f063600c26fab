#pragma once

#include "core/support/compare.h"
#include "tools/candela/package/model.h"

namespace candela::tool {

/// The files of a package, by their names.
using PackageFiles = std::map<std::string, Bytes>;

/// How a test compares elements: s f32, d f64, h f16, f bf16, b bits.
char comparedAs(Elem elem);

/// Floats: what another order of sums may change. The absolute part follows the largest number, as
/// a small one may be the difference of large ones.
CompareBound boundOf(const Tensor& expected);

/// NAME.o, NAME_weights.o, NAME.weights, NAME.h, NAME_test_data.h, main.c, CMakeLists.txt, NAME.mk,
/// and what web.h adds for pages and node.
PackageFiles packageFiles(const PackageRequest& request, const PackagedModel& model,
                          const PackageSample& sample);

} // namespace candela::tool
