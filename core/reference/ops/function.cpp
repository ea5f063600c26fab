#include <cmath>

#include "core/reference/kinds.h"

namespace candela::reference {

#define CANDELA_ONE_INSTRUCTION(Kind)                                                                                  \
  void reference##Kind(const graph::Node& node, Operands in, Results out) {                                            \
    mapElements({node.info().instrKind, node.info().instrFn, out[0].elem, out[0].elem}, in, out[0]);                   \
  }
CANDELA_ONE_INSTRUCTION(Rem)
CANDELA_ONE_INSTRUCTION(BitAnd)
CANDELA_ONE_INSTRUCTION(BitOr)
CANDELA_ONE_INSTRUCTION(BitXor)
CANDELA_ONE_INSTRUCTION(ShiftLeft)
CANDELA_ONE_INSTRUCTION(ShiftRight)
CANDELA_ONE_INSTRUCTION(Trunc)
CANDELA_ONE_INSTRUCTION(RoundEven)
CANDELA_ONE_INSTRUCTION(Log1p)
CANDELA_ONE_INSTRUCTION(Expm1)
CANDELA_ONE_INSTRUCTION(Sin)
CANDELA_ONE_INSTRUCTION(Cos)
CANDELA_ONE_INSTRUCTION(Tan)
#undef CANDELA_ONE_INSTRUCTION

#define CANDELA_FUNCTION(Kind, function)                                                                               \
  void reference##Kind(const graph::Node&, Operands in, Results out) {                                                 \
    for (size_t i = 0; i < out[0].real.size(); ++i) out[0].real[i] = std::function(in[0]->real[i]);                    \
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
