/* LD_PRELOAD: memory that runs out. STARVE_AT=N: the Nth allocation fails; with STARVE_ON=1 all
 * behind it too. STARVE_TOTAL=FILE: how many there were is written there, and the most KiB of
 * addresses. Counted from the first statement of main on, in the process that was started and not
 * in those that it makes. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* glibc's own, under the names that it keeps for replacements. */
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* old, size_t size);
void* __libc_memalign(size_t alignment, size_t size);

static atomic_ulong allocations;
static unsigned long failing_at;
static int fails_on;
static pid_t counted_process;

static int fails(void) {
  if (counted_process == 0 || getpid() != counted_process) return 0;
  const unsigned long number = atomic_fetch_add(&allocations, 1) + 1;
  const int is_failing = failing_at && (fails_on ? number >= failing_at : number == failing_at);
  if (is_failing) errno = ENOMEM;
  return is_failing;
}

void* malloc(size_t size) { return fails() ? NULL : __libc_malloc(size); }
void* calloc(size_t count, size_t size) { return fails() ? NULL : __libc_calloc(count, size); }
void* realloc(void* old, size_t size) { return size && fails() ? NULL : __libc_realloc(old, size); }
void* memalign(size_t alignment, size_t size) {
  return fails() ? NULL : __libc_memalign(alignment, size);
}
void* aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }
int posix_memalign(void** out, size_t alignment, size_t size) {
  void* const memory = memalign(alignment, size);
  if (!memory) return ENOMEM;
  *out = memory;
  return 0;
}

/* What the system says of this process. */
static unsigned long most_kibibytes(void) {
  unsigned long most = 0;
  char line[256];
  FILE* const status = fopen("/proc/self/status", "r");
  while (status && fgets(line, sizeof line, status))
    if (sscanf(line, "VmPeak: %lu", &most) == 1) break;
  if (status) fclose(status);
  return most;
}

static void tell_total(void) {
  const char* const file = getenv("STARVE_TOTAL");
  const unsigned long total = atomic_load(&allocations);
  if (!file || getpid() != counted_process) return;
  counted_process = 0;
  FILE* const out = fopen(file, "w");
  if (!out) return;
  fprintf(out, "%lu %lu\n", total, most_kibibytes());
  fclose(out);
}

static int (*real_main)(int, char**, char**);

static int counted_main(int argc, char** argv, char** environment) {
  atexit(tell_total);
  const char* const at = getenv("STARVE_AT");
  failing_at = at ? strtoul(at, NULL, 10) : 0;
  fails_on = getenv("STARVE_ON") != NULL;
  counted_process = getpid();
  return real_main(argc, argv, environment);
}

/* What starts a program calls main by way of this. */
int __libc_start_main(int (*main)(int, char**, char**), int argc, char** argv, void (*init)(void),
                      void (*fini)(void), void (*rtld_fini)(void), void* stack_end) {
  typedef int start_t(int (*)(int, char**, char**), int, char**, void (*)(void), void (*)(void),
                      void (*)(void), void*);
  start_t* const start = (start_t*)dlsym(RTLD_NEXT, "__libc_start_main");
  real_main = main;
  return start(counted_main, argc, argv, init, fini, rtld_fini, stack_end);
}
