// The device of little memory, through the primitive API.
#include "tests/devices/limited/memory.hpp"

class Limited : public limited::Device<Template> {};
CDL_BACKEND(Limited)
