#include "core/reference/reference.h"

namespace candela::reference {

void referenceBitcast(const graph::Node&, Operands in, Results out) {
  for (int64_t i = 0; i < out[0].count(); ++i)
    out[0].set(i, decode(out[0].elem, encode(in[0]->elem, in[0]->at(i))));
}

} // namespace candela::reference
