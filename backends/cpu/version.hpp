#pragma once

namespace cpu {

/// Of the backend; stored executables say which one made them.
inline constexpr const char* kVersion = "0.1.0";

} // namespace cpu
