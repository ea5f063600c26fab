// The entry of the plugin that takes instructions one by one.
#include "../opencl.hpp"

CDL_BACKEND(OpenCl)
