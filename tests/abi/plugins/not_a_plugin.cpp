// A library that loads well and is no plugin.
extern "C" __attribute__((visibility("default"))) int candela_not_a_plugin() { return 1; }
