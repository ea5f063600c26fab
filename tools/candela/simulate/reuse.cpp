#include "tools/candela/simulate/reuse.h"

namespace candela::tool {
namespace {

thread_local int reuses = 0; ///< that live

} // namespace

Reuse::Reuse() { ++reuses; }
Reuse::~Reuse() { --reuses; }
bool Reuse::isOn() { return reuses > 0; }

} // namespace candela::tool
