/* Prints "struct field offset size" for every field of cdl.h as this compiler lays it out, and
 * "struct . 0 size" for the struct itself. A new field is added to slots.inc; the size of its
 * struct is what tells when that was forgotten. */
#include <stddef.h>
#include <stdio.h>

#include "candela/cdl.h"

void cdl_test_print_slots(FILE* to);

void cdl_test_print_slots(FILE* to) {
#define STRUCT(type) fprintf(to, "%s . 0 %zu\n", #type, sizeof(type));
#define FIELD(type, field)                                                                                             \
  fprintf(to, "%s %s %zu %zu\n", #type, #field, offsetof(type, field), sizeof(((type*)0)->field));
#include "slots.inc"
#undef STRUCT
#undef FIELD
}

/* cdl.h alone is C11, its check included. */
cdl_code_t cdl_test_check_from_c(const void* data, uint64_t size, cdl_error_t* error);

cdl_code_t cdl_test_check_from_c(const void* data, uint64_t size, cdl_error_t* error) {
  return cdl_image_check(data, size, error);
}
