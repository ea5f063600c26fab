// A plugin that needs a newer host than there is.
#include <candela/backend.hpp>

class WrongAbi : public cdl::PrimitiveBackend {
public:
  WrongAbi() : PrimitiveBackend("wrong_abi", "0.1.0") {
    requireHost(9, 0);
    claim(cdl::Profile::FP32);
  }
};
CDL_BACKEND(WrongAbi)
