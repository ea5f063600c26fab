#include "core/soft/call.h"

#include <cstdarg>
#include <cstdio>

namespace candela::soft {

const char* kindName(uint16_t kind) {
  switch (kind) {
#define CDL_CASE(name, id, ...)                                                                                        \
  case id: return #name;
    CDL_KINDS(CDL_CASE)
#undef CDL_CASE
  default: return "unknown";
  }
}

Operand Call::resolve(const cdl_view_t& view) const {
  Operand operand;
  operand.elem = view.elem;
  operand.rank = view.rank;
  operand.start = view.offset;
  for (int d = 0; d < view.rank; ++d) {
    operand.dims[d] = view.dims[d];
    operand.strides[d] = view.strides[d];
  }
  if (loopValues)
    for (int l = 0; l < CDL_MAX_LOOP_NESTING; ++l) operand.start += view.iv_strides[l] * loopValues[l];
  if (buffers) operand.base = static_cast<char*>(buffers[view.buffer]);
  return operand;
}

Operand Call::view(uint32_t i) const {
  return i < instr->inputs ? resolve(*cdl_get_input(image, instr, i)) : Operand{};
}

Operand Call::output() const { return instr->outputs ? resolve(*cdl_get_output(image, instr, 0)) : Operand{}; }

int64_t Call::attr(uint16_t id, int64_t otherwise) const {
  const cdl_attr_t* found = cdl_find_attr(image, instr, id);
  return found ? found->values[0] : otherwise;
}

double Call::floatAttr(uint16_t id, double otherwise) const {
  const cdl_attr_t* found = cdl_find_attr(image, instr, id);
  return found ? cdl_f64_of_bits(static_cast<uint64_t>(found->values[0])) : otherwise;
}

cdl_code_t Call::fail(cdl_code_t code, const char* format, ...) const {
  if (!error || !error->text || error->capacity == 0) return code;
  int size = std::snprintf(error->text, error->capacity, "%s", kindName(instr->kind));
  if (instr->provenance && static_cast<uint32_t>(size) < error->capacity)
    size += std::snprintf(error->text + size, error->capacity - static_cast<uint32_t>(size), " '%s'",
                          cdl_get_string(image, cdl_get_provenance(image, instr->provenance)->node));
  if (static_cast<uint32_t>(size) < error->capacity)
    size += std::snprintf(error->text + size, error->capacity - static_cast<uint32_t>(size), ": ");
  if (static_cast<uint32_t>(size) < error->capacity) {
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(error->text + size, error->capacity - static_cast<uint32_t>(size), format, arguments);
    va_end(arguments);
  }
  return code;
}

cdl_code_t Call::failElems() const {
  char text[160] = "";
  size_t size = 0;
  for (uint32_t i = 0; i < operands() && size < sizeof text - 16; ++i)
    size += static_cast<size_t>(std::snprintf(text + size, sizeof text - size, "%s, ", elemName(input(i).elem)));
  std::snprintf(text + size, sizeof text - size, "result %s", elemName(output().elem));
  return fail(CDL_UNSUPPORTED, "no row for function %u on %s", instr->fn, text);
}

} // namespace candela::soft
