/* Prints cdl.h as this compiler lays it out, in the lines of backend_api/abi/: "struct field offset
 * size type", with "struct . 0 size" for the struct itself, and aliases, functions and constants.
 * slots.inc is made from cdl.h. */
#include <stddef.h>
#include <stdio.h>

#include "candela/cdl.h"

void cdl_test_print_slots(FILE* to);

void cdl_test_print_slots(FILE* to) {
#define ALIAS(name, type) fprintf(to, "%s (alias) 0 %zu %s\n", #name, sizeof(name), #type);
#define STRUCT(type) fprintf(to, "%s . 0 %zu\n", #type, sizeof(type));
#define FIELD(type, field, ...)                                                                    \
  fprintf(to, "%s %s %zu %zu %s\n", #type, #field, offsetof(type, field),                          \
          sizeof(((type*)0)->field), #__VA_ARGS__);
#define FUNCTION(name, ...)                                                                        \
  fprintf(to, "%s (function) 0 %zu %s\n", #name, sizeof(name), #__VA_ARGS__);
#define CONSTANT(name) fprintf(to, "%s (constant) %d 0\n", #name, (int)(name));
#include "slots.inc"
#undef ALIAS
#undef STRUCT
#undef FIELD
#undef FUNCTION
#undef CONSTANT
}

/* cdl.h alone is C11, its check included. */
cdl_code_t cdl_test_check_from_c(const void* data, uint64_t size, cdl_error_t* error);

cdl_code_t cdl_test_check_from_c(const void* data, uint64_t size, cdl_error_t* error) {
  return cdl_image_check(data, size, error);
}
