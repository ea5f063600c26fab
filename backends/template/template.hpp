// The backend to copy. Memory is the host's, one function per primitive, each in a file of its own
// under primitives/.
#pragma once

#include <candela/backend.hpp>
#include <candela/numerics.h>

class Template : public cdl::PrimitiveBackend {
public:
  Template();
  cdl::Status copy(const cdl::Copy& op) override;
  cdl::Status fill(const cdl::Fill& op) override;
  cdl::Status convert(const cdl::Convert& op) override;
  cdl::Status binary(const cdl::Binary& op) override;
  cdl::Status compare(const cdl::Compare& op) override;
  cdl::Status select(const cdl::Select& op) override;
  cdl::Status gather(const cdl::Gather& op) override;
  cdl::Status scatter(const cdl::Scatter& op) override;
  cdl::Status reduce(const cdl::Reduce& op) override;
  cdl::Status matMul(const cdl::MatMul& op) override;
  cdl::Status unary(const cdl::Unary& op) override;
  cdl::Status rescale(const cdl::Rescale& op) override;
  cdl::Status table(const cdl::Table& op) override;
};

/// An element type as a C++ type: bool is a byte too, but not a number.
template <class T, bool IsBool = false> struct Type {
  using Value = T;
  static constexpr bool isBool = IsBool;
};

/// Calls body(Type<T>()) for the element types of this backend's profiles.
template <class F> cdl::Status withElem(const cdl::Op& op, uint8_t elem, F&& body) {
  switch (elem) {
  case CDL_F32: return body(Type<float>());
  case CDL_I32: return body(Type<int32_t>());
  case CDL_I8: return body(Type<int8_t>());
  case CDL_U8: return body(Type<uint8_t>());
  case CDL_BOOL: return body(Type<uint8_t, true>());
  default: return cdl::unsupported(cdl::kindName(op.instr().kind) + " on " + cdl::elemName(elem));
  }
}

inline cdl::Status unknownFunction(const cdl::Op& op, uint8_t elem) {
  return cdl::unsupported(cdl::text(cdl::kindName(op.instr().kind), " function ", op.fn(), " on ",
                                    cdl::elemName(elem)));
}

/// y[i] = f(x[i]...) for every element.
template <class F, class Y, class... X>
void map(F f, const cdl::View<Y>& y, const cdl::View<X>&... x) {
  cdl::forEachRow(
      [f](int64_t n, cdl::Row<Y> to, cdl::Row<X>... from) {
        // the common case, which compilers vectorise
        if (to.stride == 1 && ((from.stride == 1) && ...)) {
          for (int64_t i = 0; i < n; ++i) to.data[i] = f(from.data[i]...);
        } else {
          for (int64_t i = 0; i < n; ++i) to[i] = f(from[i]...);
        }
      },
      y, x...);
}

// Arithmetic that REDUCE and SCATTER share. Integers wrap.
template <class T> using Wrapping = std::conditional_t<std::is_floating_point_v<T>, T, uint32_t>;
struct Add {
  template <class T> T operator()(T a, T b) const {
    return static_cast<T>(Wrapping<T>(a) + Wrapping<T>(b));
  }
};
struct Mul {
  template <class T> T operator()(T a, T b) const {
    return static_cast<T>(Wrapping<T>(a) * Wrapping<T>(b));
  }
};
struct Min { // NaN propagates
  template <class T> T operator()(T a, T b) const { return a < b || a != a ? a : b; }
};
struct Max {
  template <class T> T operator()(T a, T b) const { return a > b || a != a ? a : b; }
};
