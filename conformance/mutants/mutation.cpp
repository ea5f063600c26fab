#include "conformance/mutants/mutation.h"

#include <algorithm>
#include <cstring>

#include "core/runtime/host_executor/soft.h"
#include "core/support/tensor.h"

namespace candela::conformance::mutants {
namespace {

constexpr uint64_t kSpill = 64;   ///< bytes around a buffer that a fault may damage
constexpr std::byte kNoise{0x41}; ///< what lies around the copies: a number in most types

uint64_t elementsOf(const cdl_view_t& view) {
  uint64_t count = 1;
  for (uint32_t d = 0; d < view.rank; ++d)
    count *= static_cast<uint64_t>(std::max<int64_t>(view.dims[d], 1));
  return count;
}

} // namespace

Mutation::Mutation(const cdl_image_t* image, uint32_t instr, const int64_t* loops,
                   const std::vector<Room>& rooms, FaultMemory& memory)
    : instr_(*cdl_get_instr(image, instr)), index_(instr), rooms_(rooms), memory_(memory),
      image_((image->size + 7) / 8), operands_(cdl_operand_count(image, &instr_)) {
  std::memcpy(image_.data(), image, image->size);
  if (loops) std::copy_n(loops, CDL_MAX_LOOP_NESTING, given_.begin());
  loops_ = given_;
  uint64_t most = 0;
  for (uint32_t v = 0; v < uint32_t(instr_.inputs) + instr_.outputs; ++v) {
    views_.push_back(*cdl_get_view(image, instr_.first_view + v));
    most = std::max({most, 8 * elementsOf(views_.back()), rooms[views_.back().buffer].bytes});
  }
  stage((most + 1024 + 63) / 64 * 64);
  key_.assign(reinterpret_cast<const char*>(image->hash), sizeof image->hash);
  key_ += std::to_string(instr);
}

void Mutation::stage(uint64_t margin) {
  for (const cdl_view_t& view : views_) {
    const Room& room = rooms_[view.buffer];
    const auto place = [&](std::vector<std::byte>& bytes) {
      std::vector<std::byte> wider(room.bytes + 2 * margin, kNoise);
      if (bytes.size() > room.bytes)
        std::memcpy(wider.data() + (margin - margin_), bytes.data(), bytes.size());
      else if (room.bytes)
        std::memcpy(wider.data() + margin, room.address, room.bytes);
      bytes = std::move(wider);
    };
    if (staged_.contains(view.buffer) && staged_[view.buffer].size() == room.bytes + 2 * margin)
      continue;
    place(staged_[view.buffer]);
    place(pristine_[view.buffer]);
  }
  margin_ = margin;
}

int64_t Mutation::attr(uint16_t id, int64_t otherwise) const {
  const cdl_attr_t* found = cdl_find_attr(copy(), &instr_, id);
  return found ? found->values[0] : otherwise;
}

void Mutation::setAttr(uint16_t id, int64_t value) {
  if (const cdl_attr_t* found = cdl_find_attr(copy(), &instr_, id))
    const_cast<cdl_attr_t*>(found)->values[0] = value;
}

int64_t Mutation::element(uint32_t v, const Index& at) const {
  const cdl_view_t& view = views_[v];
  int64_t element = view.offset;
  for (uint32_t d = 0; d < view.rank; ++d) element += at[d] * view.strides[d];
  for (size_t l = 0; l < given_.size(); ++l) element += view.iv_strides[l] * given_[l];
  return element;
}

uint64_t Mutation::get(uint32_t v, const Index& at) const {
  return loadElement(elem(v), base(views_[v].buffer), element(v, at));
}

void Mutation::set(uint32_t v, const Index& at, uint64_t bits) {
  storeElement(elem(v), base(views_[v].buffer), element(v, at), bits & elemMask(elem(v)));
}

void Mutation::pretend(uint32_t v, const Index& at, uint64_t bits) {
  set(v, at, bits);
  const uint32_t buffer = views_[v].buffer;
  storeElement(elem(v), pristine_.at(buffer).data() + margin_, element(v, at),
               bits & elemMask(elem(v)));
}

void Mutation::dropLastStep() {
  const cdl_expr_t* expr = cdl_get_expr(copy(), instr_.expr);
  cdl_step_t& last =
      *const_cast<cdl_step_t*>(cdl_get_step(copy(), expr->first_step + expr->steps - 1));
  for (uint32_t i = 0; i < last.operands; ++i) {
    const cdl_operand_t kept = last.in[i];
    if ((kept.source != CDL_FROM_ACC && kept.source != CDL_FROM_STEP) || kept.elem != last.elem)
      continue;
    const auto isUnread = [&](const cdl_operand_t& o) {
      return o.source == CDL_FROM_VIEW && o.elem == last.elem;
    };
    const cdl_operand_t* unread = std::find_if(last.in, last.in + last.operands, isUnread);
    if (unread == last.in + last.operands) {
      last = {CDL_KIND_BINARY, CDL_BINARY_MAX, last.elem, 2, 0, {kept, kept, {}, {}}, 0};
    } else { // a view that no step names would be an operand of the sum
      const cdl_operand_t always{CDL_FROM_CONST, CDL_BOOL, 0}, other = *unread;
      last = {CDL_KIND_SELECT, 0, last.elem, 3, 0, {always, kept, other, {}}, 1};
    }
    return;
  }
}

cdl_code_t Mutation::run() {
  uint64_t needed = margin_;
  for (uint32_t v = 0; v < views_.size(); ++v) {
    const cdl_view_t& view = altered(v);
    int64_t low = view.offset, high = view.offset;
    for (uint32_t d = 0; d < view.rank; ++d)
      (view.strides[d] < 0 ? low : high) +=
          view.strides[d] * std::max<int64_t>(view.dims[d] - 1, 0);
    for (size_t l = 0; l < loops_.size(); ++l) {
      low += view.iv_strides[l] * loops_[l];
      high += view.iv_strides[l] * loops_[l];
    }
    const auto width = static_cast<int64_t>(elemBits(static_cast<Elem>(view.elem)) + 7) / 8;
    const auto end = static_cast<int64_t>(rooms_[view.buffer].bytes);
    needed = std::max({needed, static_cast<uint64_t>(std::max<int64_t>(-low * width, 0)),
                       static_cast<uint64_t>(std::max<int64_t>((high + 1) * width - end, 0))});
  }
  if (needed > margin_) stage((needed + 63) / 64 * 64);
  return runOn(copy(), {});
}

cdl_code_t Mutation::runIn(const Bytes& image, const std::vector<void*>& more) {
  return runOn(reinterpret_cast<const cdl_image_t*>(image.data()), more);
}

cdl_code_t Mutation::runOn(const cdl_image_t* image, const std::vector<void*>& more) {
  std::vector<void*> addresses(rooms_.size(), nullptr);
  for (auto& [buffer, staged] : staged_) addresses[buffer] = base(buffer);
  char text[512] = "";
  cdl_error_t error{text, sizeof text, 0};
  addresses.insert(addresses.end(), more.begin(), more.end());
  const cdl_code_t code =
      runtime::host_executor::run(image, index_, loops_.data(), addresses.data(), nullptr, &error);
  message = text;
  return code;
}

void Mutation::commit() {
  if (dropped_) return;
  for (const auto& [buffer, staged] : staged_) {
    const Room& room = rooms_[buffer];
    const std::vector<std::byte>& was = pristine_.at(buffer);
    const auto first = static_cast<int64_t>(margin_ - std::min({room.before, kSpill, margin_}));
    const auto last =
        static_cast<int64_t>(margin_ + room.bytes + std::min({room.behind, kSpill, margin_}));
    std::byte* address = static_cast<std::byte*>(room.address);
    for (int64_t i = first; i < last; ++i)
      if (staged[i] != was[i]) address[i - static_cast<int64_t>(margin_)] = staged[i];
  }
}

} // namespace candela::conformance::mutants
