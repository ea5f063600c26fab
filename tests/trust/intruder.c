/* A library that leaves a mark where the program that loads it was started: what must not run has
 * not run while there is none. With INTRUDER_IS_PLUGIN it looks like a plugin. */
#include <fcntl.h>
#include <unistd.h>

__attribute__((constructor)) static void leaveMark(void) {
  const int file = open("intruder_was_here", O_WRONLY | O_CREAT, 0600);
  if (file >= 0) close(file);
}

#ifdef INTRUDER_IS_PLUGIN
__attribute__((visibility("default"))) int cdl_backend_query(const void* host, void* plugin,
                                                             void* error) {
  (void)host, (void)plugin, (void)error;
  return 11;
}
#endif
