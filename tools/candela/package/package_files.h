#pragma once

#include <string_view>

namespace candela::tool {

/// Texts of the files beside this one, with @NAME@ to be filled in.
extern const std::string_view kPackageHeader, kPackageMain, kPackageTestData, kPackageCMake,
    kPackageMake;
/// Of packages for pages and node.
extern const std::string_view kPackageWebHost, kPackageWebMain, kPackageWebTestData,
    kPackageWebCMake, kPackageWebMake;

} // namespace candela::tool
