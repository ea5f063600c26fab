// A whole first port: one native matrix product, everything else emulated by the host.
#include <candela/backend.hpp>

// What the vendor's library would bring: y[m,n] = a[m,k] . b[k,n], row-major.
static void acmeGemm(const float* a, const float* b, float* y, int64_t m, int64_t n, int64_t k) {
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      float sum = 0;
      for (int64_t r = 0; r < k; ++r) sum += a[i * k + r] * b[r * n + j];
      y[i * n + j] = sum;
    }
}

class Acme : public cdl::PrimitiveBackend {
public:
  Acme() : PrimitiveBackend("acme", "0.1.0") {
    claim(cdl::Profile::FP32); // BASE comes with it; what is not overridden is EMULATED
    limit(cdl::Kind::MatMul, {cdl::attr(CDL_ATTR_ACCUMULATE) == 0}); // a row's conjunction: data, not code
  }
  cdl::Status matMul(const cdl::MatMul& op) override { // views are checked, typed, strided
    auto a = op.a<const float>(), b = op.b<const float>();
    auto y = op.y<float>();
    for (auto n : y.range(0)) acmeGemm(a[n].data(), b[n].data(), y[n].data(), op.m(), op.n(), op.k());
    return cdl::ok();
  }
};
CDL_BACKEND(Acme)
