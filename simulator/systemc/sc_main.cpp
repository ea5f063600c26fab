// libsystemc.so leaves sc_main undefined: who drives the kernel without it, a plugin above all, has
// to define one.
extern "C" __attribute__((visibility("default"))) int sc_main(int, char*[]) { return 0; }
