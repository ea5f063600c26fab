// A device of narrow products: the profiles FP8, INT4W and MX, whose SCALED_MATMUL it computes
// itself; the host does all else. The option `beside` names the float profiles that it claims too;
// `extra` is a bit that is claimed besides.
#include <candela/backend.hpp>
#include <candela/numerics.h>

#include <algorithm>
#include <string>
#include <utility>

namespace {

/// An element of an operand of whatever type.
float numberAt(const cdl::Operand& from, int64_t at) {
  const auto* bytes = static_cast<const uint8_t*>(from.data);
  switch (from.elem) {
  case CDL_F32: return static_cast<const float*>(from.data)[at];
  case CDL_F16: return cdl_f16_to_f32(static_cast<const uint16_t*>(from.data)[at]);
  case CDL_BF16: return cdl_bf16_to_f32(static_cast<const uint16_t*>(from.data)[at]);
  case CDL_I8: return static_cast<float>(static_cast<const int8_t*>(from.data)[at]);
  case CDL_U8: return static_cast<float>(bytes[at]);
  case CDL_I4: return static_cast<float>(cdl_packed_get_signed(bytes, at, 4));
  case CDL_U4: return static_cast<float>(cdl_packed_get(bytes, at, 4));
  case CDL_F4E2M1: return cdl_storage_to_f32(CDL_F4E2M1, cdl_packed_get(bytes, at, 4));
  default: return cdl_storage_to_f32(from.elem, bytes[at]);
  }
}
float numberAt(const cdl::Operand& from, int64_t i, int64_t j) {
  return numberAt(from, i * from.strides[0] + j * from.strides[1]);
}

void store(const cdl::Operand& to, int64_t at, float value) {
  switch (to.elem) {
  case CDL_F32: static_cast<float*>(to.data)[at] = value; break;
  case CDL_F16: static_cast<uint16_t*>(to.data)[at] = cdl_f32_to_f16(value); break;
  default: static_cast<uint16_t*>(to.data)[at] = cdl_f32_to_bf16(value); break;
  }
}

class Narrow : public cdl::PrimitiveBackend {
public:
  Narrow() : PrimitiveBackend("narrow", "0.1.0") {
    describe("products of narrow types, and nothing else");
    option("beside", "the float profiles beside the narrow ones", "FP32|FP16|BF16|all|none",
           "FP32");
    option("extra", "the number of another profile; -1: none", "int", "-1");
  }

  cdl::Status open(uint32_t) override {
    const std::string beside = options().get("beside");
    for (const auto& [name, profile] :
         {std::pair{"FP32", cdl::Profile::FP32}, std::pair{"FP16", cdl::Profile::FP16},
          std::pair{"BF16", cdl::Profile::BF16}, std::pair{"none", cdl::Profile::BASE}})
      if (beside == name || (beside == "all" && profile != cdl::Profile::BASE)) claim(profile);
    for (const cdl::Profile profile : {cdl::Profile::FP8, cdl::Profile::INT4W, cdl::Profile::MX})
      claim(profile);
    const int extra = std::stoi(options().get("extra"));
    if (extra >= 0) claim(static_cast<cdl::Profile>(extra));
    return cdl::ok();
  }

  cdl::Status scaledMatMul(const cdl::ScaledMatMul& op) override {
    const cdl::Operand a = op.a();
    const cdl::Operand w = op.w();
    const cdl::Operand y = op.y();
    for (int64_t m = 0; m < y.dims[0]; ++m)
      for (int64_t n = 0; n < y.dims[1]; ++n) {
        float sum = 0;
        for (int64_t g = 0; g < w.dims[1]; ++g) {
          const float scale =
              numberAt(op.wScale(), n, g) * (op.hasAScale() ? numberAt(op.aScale(), m, g) : 1);
          const float zero = op.hasWZero() ? numberAt(op.wZero(), n, g) : 0;
          const int64_t first = g * w.dims[2];
          const int64_t count = std::min(w.dims[2], a.dims[1] - first);
          for (int64_t i = 0; i < count; ++i) {
            const int64_t at = n * w.strides[0] + g * w.strides[1] + i * w.strides[2];
            sum += numberAt(a, m, first + i) * ((numberAt(w, at) - zero) * scale);
          }
        }
        store(y, m * y.strides[0] + n * y.strides[1], sum);
      }
    return cdl::ok();
  }
};

} // namespace

CDL_BACKEND(Narrow)
