// The two functions that ONNX Runtime looks for in a library of providers, and the factory that
// they make.
#include <memory>
#include <string>

#include "integrations/onnxruntime/provider.h"

#define CANDELA_ORT_EXPORT extern "C" __attribute__((visibility("default")))

namespace candela::ort {
namespace {

using namespace abi;

class Factory : public OrtEpFactory {
public:
  explicit Factory(const OrtApiBase& base) : OrtEpFactory{}, api_(base) {
    ort_version_supported = kApiVersion;
    setNames();
    setObjects();
    setMemory();
  }

  const Api& api() const { return api_; }

private:
  void setNames() {
    GetName = [](const OrtEpFactory*) -> const char* { return kProviderName; };
    GetVendor = [](const OrtEpFactory*) -> const char* { return "Candela"; };
    GetVendorId = [](const OrtEpFactory*) -> uint32_t { return 0; }; // of PCI; there is none
    GetVersion = [](const OrtEpFactory*) -> const char* { return candela_version(); };
    ValidateCompiledModelCompatibilityInfo = [](OrtEpFactory* factory,
                                                const OrtHardwareDevice* const*, size_t,
                                                const char* info, Compatibility* answer) {
      return guarded(static_cast<Factory*>(factory)->api_, [&] {
        *answer = info && isCompatible(info) ? Compatibility::Optimal : Compatibility::Unsupported;
      });
    };
  }

  void setObjects() {
    GetSupportedDevices = [](OrtEpFactory* factory, const OrtHardwareDevice* const* devices,
                             size_t count, OrtEpDevice** out, size_t room, size_t* made) {
      auto* const self = static_cast<Factory*>(factory);
      return guarded(self->api_, [&] { *made = self->offer(devices, count, out, room); });
    };
    CreateEp = [](OrtEpFactory* factory, const OrtHardwareDevice* const*,
                  const OrtKeyValuePairs* const*, size_t, const OrtSessionOptions* session,
                  const OrtLogger* logger, OrtEp** ep) {
      const Api& api = static_cast<Factory*>(factory)->api_;
      *ep = nullptr;
      return guarded(api, [&] {
        *ep = std::make_unique<Provider>(api, optionsOf(configurationOf(api, session)), logger)
                  .release();
      });
    };
    ReleaseEp = [](OrtEpFactory*, OrtEp* ep) { delete static_cast<Provider*>(ep); };
  }

  /// Values lie in the host's memory, and so there is nothing to allocate or to move elsewhere.
  void setMemory() {
    CreateAllocator = [](OrtEpFactory*, const OrtMemoryInfo*, const OrtKeyValuePairs*,
                         OrtAllocator** allocator) -> OrtStatus* {
      *allocator = nullptr;
      return nullptr;
    };
    ReleaseAllocator = [](OrtEpFactory*, OrtAllocator*) {};
    CreateDataTransfer = [](OrtEpFactory*, OrtDataTransferImpl** transfer) -> OrtStatus* {
      *transfer = nullptr;
      return nullptr;
    };
    IsStreamAware = [](const OrtEpFactory*) { return false; };
  }

  /// One device, the host: which accelerator there is behind it is an option of the session.
  size_t offer(const OrtHardwareDevice* const* devices, size_t count, OrtEpDevice** out,
               size_t room) {
    for (size_t i = 0; i < count && room > 0; ++i) {
      if (api_.call(HardwareDevice_Type, devices[i]) != HardwareType::Cpu) continue;
      OrtKeyValuePairs* created = nullptr;
      api_.call(CreateKeyValuePairs, &created);
      const auto metadata = owned(api_, created, ReleaseKeyValuePairs);
      api_.call(AddKeyValuePair, metadata.get(), "candela_version", candela_version());
      out[0] =
          api_.get<OrtEpDevice*>(CreateEpDevice, static_cast<OrtEpFactory*>(this), devices[i],
                                 static_cast<const OrtKeyValuePairs*>(metadata.get()), nullptr);
      return 1;
    }
    return 0;
  }

  Api api_;
};

} // namespace
} // namespace candela::ort

using namespace candela::ort;

CANDELA_ORT_EXPORT abi::OrtStatus* CreateEpFactories(const char*, const abi::OrtApiBase* base,
                                                     const abi::OrtLogger*,
                                                     abi::OrtEpFactory** factories, size_t room,
                                                     size_t* made) {
  // A status is made by ONNX Runtime, so of one that has not even the first API there is none.
  const abi::OrtApi* const first = base ? base->GetApi(abi::kFirstApiVersion) : nullptr;
  if (!first || !made) return nullptr;
  *made = 0;
  const auto refuse = [&](abi::ErrorCode code, const char* message) {
    return abi::function(first, abi::CreateStatus)(code, message);
  };
  if (!factories || room < 1)
    return refuse(abi::ErrorCode::InvalidArgument, "Candela has one factory, and there is no room");
  try {
    factories[0] = std::make_unique<Factory>(*base).release();
    *made = 1;
    return nullptr;
  } catch (const Failure& failure) {
    return refuse(failure.code(), failure.what());
  } catch (const std::exception& error) {
    return refuse(abi::ErrorCode::EpFail, error.what());
  } catch (...) {
    return refuse(abi::ErrorCode::EpFail, "Candela: an unknown failure");
  }
}

CANDELA_ORT_EXPORT abi::OrtStatus* ReleaseEpFactory(abi::OrtEpFactory* factory) {
  delete static_cast<Factory*>(factory);
  return nullptr;
}
