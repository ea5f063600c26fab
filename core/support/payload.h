#pragma once

#include "core/support/hash.h"
#include "core/support/tensor.h"

namespace candela {

/// The content of a constant, kept in its shortest form so that a splat of a gigabyte costs
/// nothing.
class Payload {
public:
  enum class Form : uint8_t { data, splat, iota, random };

  Payload() = default;
  static Payload data(const Tensor& tensor) {
    Payload payload(Form::data, tensor.elem, tensor.count(), 0, 0);
    payload.bytes_ = tensor.bytes;
    return payload;
  }
  /// `bits`: one element, zero-extended.
  static Payload splat(Elem elem, int64_t count, uint64_t bits) {
    return {Form::splat, elem, count, bits, 0};
  }
  /// start + i * step, integers only.
  static Payload iota(Elem elem, int64_t count, int64_t start, int64_t step) {
    return {Form::iota, elem, count, static_cast<uint64_t>(start), step};
  }
  static Payload random(Elem elem, int64_t count, uint64_t seed) {
    return {Form::random, elem, count, seed, 0};
  }

  Form form() const { return form_; }
  Elem elem() const { return elem_; }
  int64_t count() const { return count_; }
  uint64_t sizeBytes() const { return elemBytes(elem_, count_); }
  uint64_t splatBits() const { return a_; }
  int64_t iotaStart() const { return static_cast<int64_t>(a_); }
  int64_t iotaStep() const { return b_; }
  uint64_t seed() const { return a_; }
  /// Only for Form::data.
  const Bytes& bytes() const { return bytes_; }

  /// The elements, dense, with these dims (their product is count()).
  Result<Tensor> materialize(Shape dims) const;
  /// What is counted or drawn at random as the bytes it stands for; splats stay.
  Result<Payload> stored() const;
  /// Of the materialized bytes.
  Hash hash() const;
  /// The same bits; different forms of the same content may compare unequal.
  friend bool operator==(const Payload& a, const Payload& b);

private:
  Payload(Form form, Elem elem, int64_t count, uint64_t a, int64_t b)
      : form_(form), elem_(elem), count_(count), a_(a), b_(b) {}

  Form form_ = Form::data;
  Elem elem_ = Elem::none;
  int64_t count_ = 0;
  uint64_t a_ = 0; ///< bits, start or seed
  int64_t b_ = 0;  ///< step
  Bytes bytes_;
};

} // namespace candela
