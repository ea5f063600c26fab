// The port: memory of its own, and the primitives that the vector unit is good at. The host
// emulates the others, with copies by memoryRead and memoryWrite.
#include "acme.hpp"

#include <candela/backend.hpp>
#include <candela/numerics.h>

#include <cmath>

using acme::kLanes, acme::lanewise, acme::Vector;
using cdl::Memory, cdl::Operand, cdl::Status, cdl::View;

class Acme : public cdl::PrimitiveBackend {
public:
  Acme() : PrimitiveBackend("acme", "0.1.0") {
    describe("an imaginary accelerator with a memory of its own and 16 lanes");
    space("dram", 0, acme::kBytes, 64); // not CDL_SPACE_HOST_MAPPED
    claim(cdl::Profile::FP32);          // BASE comes with it
    claim(cdl::Profile::INT8);
    // Each function below is claimed NATIVE. Most take any strides, more than a row requires.
    for (cdl::Kind kind : {cdl::Kind::Copy, cdl::Kind::Fill, cdl::Kind::Binary, cdl::Kind::Unary,
                           cdl::Kind::Rescale})
      operandClass(kind, CDL_CLASS_AFFINE);
  }

  // ---- B0: memory. Memory::data holds an address of the device, which nobody follows here.
  Status open(uint32_t) override {
    device_ = std::make_unique<acme::Device>();
    return cdl::ok();
  }
  bool memoryMappable() const override { return false; }
  Status memoryCreate(uint64_t alignment, Memory& memory) override {
    memory.data = reinterpret_cast<void*>(device_->allocate(memory.bytes, alignment));
    if (memory.data) return cdl::ok();
    return cdl::error(CDL_OUT_OF_MEMORY,
                      cdl::text("no ", memory.bytes, " bytes of ", acme::kBytes));
  }
  void memoryDestroy(Memory& memory) override { device_->release(at(memory.data)); }
  Status memoryWrite(Memory& to, uint64_t offset, const void* from, uint64_t bytes) override {
    if (bytes) device_->upload(at(to.data) + offset, from, bytes);
    return cdl::ok();
  }
  Status memoryRead(Memory& from, uint64_t offset, void* to, uint64_t bytes) override {
    if (bytes) device_->download(to, at(from.data) + offset, bytes);
    return cdl::ok();
  }
  Status memoryCopy(Memory& to, uint64_t toOffset, Memory& from, uint64_t fromOffset,
                    uint64_t bytes) override {
    if (bytes) device_->copy(at(to.data) + toOffset, at(from.data) + fromOffset, bytes);
    return cdl::ok();
  }

  // ---- B1: primitives. Views carry device addresses, dims and strides.
  Status copy(const cdl::Copy& op) override {
    switch (cdl_elem_bits(op.y().elem)) {
    case 8: return copyBits<uint8_t>(op);
    case 32: return copyBits<uint32_t>(op);
    default: return unknown(op);
    }
  }
  Status fill(const cdl::Fill& op) override {
    switch (cdl_elem_bits(op.y().elem)) {
    case 8: return map([value = uint8_t(op.bits())] { return value; }, bits<uint8_t>(op.y()));
    case 32: return map([value = uint32_t(op.bits())] { return value; }, bits<uint32_t>(op.y()));
    default: return unknown(op);
    }
  }

  Status binary(const cdl::Binary& op) override {
    switch (op.y().elem) {
    case CDL_F32: return binaryF32(op);
    case CDL_I32: return binaryI32(op);
    default: return binaryBool(op);
    }
  }
  Status unary(const cdl::Unary& op) override {
    const auto apply = [&](auto f) { return map(f, op.y<float>(), op.x<const float>()); };
    switch (op.fn()) {
    case CDL_UNARY_NEG: return apply([](float x) { return -x; });
    case CDL_UNARY_ABS: return apply([](float x) { return std::fabs(x); });
    case CDL_UNARY_FLOOR: return apply([](float x) { return std::floor(x); });
    case CDL_UNARY_SQRT: return apply([](float x) { return std::sqrt(x); });
    case CDL_UNARY_RCP: return apply([](float x) { return 1 / x; });
    case CDL_UNARY_EXP: return apply([](float x) { return std::exp(x); });
    case CDL_UNARY_LOG: return apply([](float x) { return std::log(x); });
    default: return unknown(op);
    }
  }

  Status matMul(const cdl::MatMul& op) override {
    switch (op.a().elem) {
    case CDL_F32: return multiply<float, float, float, float>(op);
    // uint32_t: integer sums wrap
    case CDL_I8: return multiply<int8_t, int8_t, int32_t, uint32_t>(op);
    case CDL_U8: return multiply<uint8_t, int8_t, int32_t, uint32_t>(op);
    default: return unknown(op);
    }
  }

  Status rescale(const cdl::Rescale& op) override {
    const auto from = [&](auto x) -> Status {
      using X = decltype(x);
      return op.y().elem == CDL_I8 ? rescaleTo<X, int8_t>(op) : rescaleTo<X, uint8_t>(op);
    };
    switch (op.a().elem) {
    case CDL_I32: return from(int32_t());
    case CDL_I8: return from(int8_t());
    case CDL_U8: return from(uint8_t());
    default: return unknown(op);
    }
  }

private:
  template <class T> static uint64_t at(T* address) { return reinterpret_cast<uint64_t>(address); }
  static Status unknown(const cdl::Op& op) {
    return cdl::unsupported(cdl::text("function ", op.fn(), " on ", cdl::elemName(op.y().elem)));
  }

  /// y[i] = f(x[i]...) for every element, a vector at a time.
  template <class F, class Y, class... X> Status map(F f, const View<Y>& y, const View<X>&... x) {
    cdl::forEachRow(
        [&](int64_t n, cdl::Row<Y> to, cdl::Row<X>... from) {
          for (int64_t i = 0; i < n; i += kLanes) {
            const int64_t lanes = std::min<int64_t>(kLanes, n - i);
            device_->store(at(&to[i]), to.stride, lanes,
                           lanewise(f, device_->load<std::remove_const_t<X>>(
                                           at(&from[i]), from.stride, lanes)...));
          }
        },
        y, x...);
    return cdl::ok();
  }

  /// An operand as elements without a meaning.
  template <class T> static View<T> bits(const Operand& operand) {
    return View<T>(static_cast<T*>(operand.data), operand);
  }
  template <class T> Status copyBits(const cdl::Copy& op) {
    return map([](T x) { return x; }, bits<T>(op.y()), bits<const T>(op.x()));
  }

  Status binaryF32(const cdl::Binary& op) {
    const auto apply = [&](auto f) {
      return map(f, op.y<float>(), op.a<const float>(), op.b<const float>());
    };
    switch (op.fn()) {
    case CDL_BINARY_ADD: return apply([](float a, float b) { return a + b; });
    case CDL_BINARY_SUB: return apply([](float a, float b) { return a - b; });
    case CDL_BINARY_MUL: return apply([](float a, float b) { return a * b; });
    case CDL_BINARY_DIV: return apply([](float a, float b) { return a / b; });
    // NaN propagates
    case CDL_BINARY_MIN: return apply([](float a, float b) { return a < b || a != a ? a : b; });
    case CDL_BINARY_MAX: return apply([](float a, float b) { return a > b || a != a ? a : b; });
    default: return unknown(op);
    }
  }
  Status binaryI32(const cdl::Binary& op) { // integer semantics: numerics.h
    const auto apply = [&](auto f) {
      return map(f, op.y<int32_t>(), op.a<const int32_t>(), op.b<const int32_t>());
    };
    switch (op.fn()) {
    case CDL_BINARY_ADD: return apply(cdl_add_i32);
    case CDL_BINARY_SUB: return apply(cdl_sub_i32);
    case CDL_BINARY_MUL: return apply(cdl_mul_i32);
    case CDL_BINARY_DIV: return apply(cdl_div_i32);
    case CDL_BINARY_MIN: return apply(cdl_min_i32);
    case CDL_BINARY_MAX: return apply(cdl_max_i32);
    case CDL_BINARY_AND: return apply([](int32_t a, int32_t b) { return a & b; });
    case CDL_BINARY_OR: return apply([](int32_t a, int32_t b) { return a | b; });
    case CDL_BINARY_XOR: return apply([](int32_t a, int32_t b) { return a ^ b; });
    case CDL_BINARY_SHL: return apply(cdl_shl_i32);
    case CDL_BINARY_SHR: return apply(cdl_shr_i32);
    default: return unknown(op);
    }
  }
  Status binaryBool(const cdl::Binary& op) {
    const auto apply = [&](auto f) {
      return map(f, op.y<uint8_t>(), op.a<const uint8_t>(), op.b<const uint8_t>());
    };
    switch (op.fn()) {
    case CDL_BINARY_AND: return apply([](uint8_t a, uint8_t b) { return uint8_t(a & b); });
    case CDL_BINARY_OR: return apply([](uint8_t a, uint8_t b) { return uint8_t(a | b); });
    case CDL_BINARY_XOR: return apply([](uint8_t a, uint8_t b) { return uint8_t(a ^ b); });
    default: return unknown(op);
    }
  }

  /// Up to 16 zero points from index `i` on, of the operand's type or i32; a single one serves all.
  template <class Sum> Vector<Sum> zeros(const Operand& zero, int64_t i, int64_t lanes) {
    const int64_t stride = zero.elements() > 1 ? zero.strides[0] : 0;
    const auto widened = [&](auto type) {
      const auto from = at(zero.data) + uint64_t(i * stride) * sizeof type;
      return lanewise([](auto x) { return static_cast<Sum>(x); },
                      device_->load<decltype(type)>(from, stride, lanes));
    };
    switch (zero.elem) {
    case CDL_I8: return widened(int8_t());
    case CDL_U8: return widened(uint8_t());
    default: return widened(int32_t());
    }
  }

  /// y[b] = a[b] . b[b], 16 columns at a time; rows are contiguous, batches lie anywhere.
  template <class A, class B, class Y, class Sum> Status multiply(const cdl::MatMul& op) {
    const auto a = op.a<const A>();
    const auto b = op.b<const B>();
    const auto y = op.y<Y>();
    const Sum aZero = op.hasAZero() ? zeros<Sum>(op.aZero(), 0, 1).lane[0] : Sum(0);
    for (auto batch : y.range(0))
      for (int64_t col = 0; col < op.n(); col += kLanes) {
        const int64_t lanes = std::min<int64_t>(kLanes, op.n() - col);
        const auto bZero = op.hasBZero() ? zeros<Sum>(op.bZero(), col, lanes) : Vector<Sum>();
        std::vector<Vector<Sum>> panel; // these columns of b, row by row
        for (auto k : b.range(1))
          panel.push_back(lanewise([](B x, Sum zero) { return static_cast<Sum>(x) - zero; },
                                   device_->load<B>(at(&b(batch, k, col)), 1, lanes), bZero));
        for (auto row : y.range(1)) {
          Vector<Sum> sum;
          for (int64_t k = 0; k < op.k(); k += kLanes) {
            const int64_t steps = std::min<int64_t>(kLanes, op.k() - k);
            const auto some = device_->load<A>(at(&a(batch, row, k)), 1, steps);
            for (int64_t i = 0; i < steps; ++i)
              sum = lanewise(
                  [x = static_cast<Sum>(some.lane[i]) - aZero](Sum s, Sum p) { return s + x * p; },
                  sum, panel[static_cast<size_t>(k + i)]);
          }
          const uint64_t to = at(&y(batch, row, col));
          const auto before = op.accumulate() ? device_->load<Y>(to, 1, lanes) : Vector<Y>();
          const auto add = [](Y old, Sum s) { return static_cast<Y>(static_cast<Sum>(old) + s); };
          device_->store(to, 1, lanes, lanewise(add, before, sum));
        }
      }
    return cdl::ok();
  }

  /// Exact, one rounding: numerics.h.
  template <class X, class Y> Status rescaleTo(const cdl::Rescale& op) {
    using Limits = std::numeric_limits<Y>;
    const auto m = op.aMultiplier<const int32_t>();
    const auto shift = op.shift<const int32_t>(), zero = op.zero<const int32_t>();
    const int64_t lo = op.clampMin(Limits::min()), hi = op.clampMax(Limits::max());
    const int ka = op.aLeftShift(), kb = op.bLeftShift();
    const int width = std::numeric_limits<X>::digits + 24 + op.hasB(); // of the sum of products
    if (width + std::max(ka, op.hasB() ? kb : 0) > 63)
      return cdl::error(CDL_BAD_MODEL,
                        cdl::text("shifts of ", ka, " and ", kb, " on ", width, " bits leave 63"));
    if (!op.hasB())
      return map([=](X a, int32_t ma, int32_t s,
                     int32_t z) { return Y(cdl_rescale1(a, ma, ka, s, z, lo, hi)); },
                 op.y<Y>(), op.a<const X>(), m, shift, zero);
    return map([=](X a, int32_t ma, int32_t s, int32_t z, X b,
                   int32_t mb) { return Y(cdl_rescale2(a, b, ma, mb, ka, kb, s, z, lo, hi)); },
               op.y<Y>(), op.a<const X>(), m, shift, zero, op.b<const X>(),
               op.bMultiplier<const int32_t>());
  }

  std::unique_ptr<acme::Device> device_;
};
CDL_BACKEND(Acme)
