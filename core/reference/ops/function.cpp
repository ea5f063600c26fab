#include <cmath>

#include "core/reference/kinds.h"

namespace candela::reference {

#define CANDELA_FUNCTION(Kind, function)                                                           \
  void reference##Kind(const graph::Node&, Operands in, Results out) {                             \
    for (size_t i = 0; i < out[0].real.size(); ++i)                                                \
      out[0].real[i] = std::function(in[0]->real[i]);                                              \
  }
CANDELA_FUNCTION(Asin, asin)
CANDELA_FUNCTION(Acos, acos)
CANDELA_FUNCTION(Atan, atan)
CANDELA_FUNCTION(Sinh, sinh)
CANDELA_FUNCTION(Cosh, cosh)
CANDELA_FUNCTION(Asinh, asinh)
CANDELA_FUNCTION(Acosh, acosh)
CANDELA_FUNCTION(Atanh, atanh)
#undef CANDELA_FUNCTION

} // namespace candela::reference
