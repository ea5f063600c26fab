// The entry: the one symbol of the plugin.
#include "template.hpp"

CDL_BACKEND(Template)
