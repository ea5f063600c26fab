#include "core/compiler/driver/packing.h"

#include <algorithm>

#include "core/runtime/plugin/collector.h"

namespace candela::driver {

namespace {

cdl_view_t recordOf(const program::View& view) {
  cdl_view_t record{};
  record.elem = static_cast<uint8_t>(view.elem);
  record.rank = static_cast<uint8_t>(view.dims.size());
  record.offset = view.offset;
  std::ranges::copy(view.dims, record.dims);
  std::ranges::copy(view.strides, record.strides);
  return record;
}

} // namespace

Result<Bytes> pack(const runtime::plugin::Device& device, const std::string& layout,
                   const Bytes& content, const program::View& view, uint64_t most) {
  const cdl_view_t record = recordOf(view);
  const runtime::plugin::Collector packed(most);
  CDL_TRY(runtime::plugin::callSlot(device.plugin().name(), CDL_SLOT(device.table(), pack_constant),
                                    device.handle(), layout.c_str(), content.data(), &record,
                                    packed.writer()));
  if (packed.text().empty())
    return failure(Code::internal, "{}: pack_constant wrote nothing", device.plugin().name());
  return packed.bytes();
}

program::passes::pack::Packer packerOf(const std::shared_ptr<runtime::plugin::Device>& device) {
  if (!device->table().pack_constant) return nullptr;
  return [device](const std::string& layout, const Bytes& content, const program::View& view) {
    return pack(*device, layout, content, view);
  };
}

} // namespace candela::driver
