#pragma once

#include <cstddef>

namespace candela::tool {

/// Gives the heap that much memory to begin with, in large pages where the system has them, and
/// keeps what is freed: a process that compiles touches some hundred megabytes once, and to get
/// them page by page is a fifth of its time. Nothing of it is used before it is asked for. Before
/// other threads; again it does nothing. Where there is no room, or another allocator, nothing
/// happens.
void useLargePages(size_t bytes);

} // namespace candela::tool
