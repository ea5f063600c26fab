// Instructions as structs: one per kind, with named operands, functions and attributes.
#pragma once

#include "candela/backend/view.hpp"

#include <chrono>
#include <limits>
#include <vector>

namespace cdl {

/// Every kind: X(Struct, function, NAME), the struct below, the function of PrimitiveBackend and
/// CDL_KIND_NAME.
#define CDL_OPS(X)                                                                                 \
  X(Copy, copy, COPY)                                                                              \
  X(Fill, fill, FILL)                                                                              \
  X(Convert, convert, CONVERT)                                                                     \
  X(Binary, binary, BINARY)                                                                        \
  X(Compare, compare, COMPARE)                                                                     \
  X(Select, select, SELECT)                                                                        \
  X(Gather, gather, GATHER)                                                                        \
  X(Scatter, scatter, SCATTER)                                                                     \
  X(Reduce, reduce, REDUCE)                                                                        \
  X(MatMul, matMul, MATMUL)                                                                        \
  X(Unary, unary, UNARY)                                                                           \
  X(Rescale, rescale, RESCALE)                                                                     \
  X(Table, table, TABLE)                                                                           \
  X(Conv2d, conv2d, CONV2D)                                                                        \
  X(Pool2d, pool2d, POOL2D)                                                                        \
  X(Elementwise, elementwise, ELEMENTWISE)                                                         \
  X(Softmax, softmax, SOFTMAX)                                                                     \
  X(Norm, norm, NORM)                                                                              \
  X(Attention, attention, ATTENTION)                                                               \
  X(ArgReduce, argReduce, ARG_REDUCE)                                                              \
  X(Sort, sort, SORT)                                                                              \
  X(ScaledMatMul, scaledMatMul, SCALED_MATMUL)                                                     \
  X(Custom, custom, CUSTOM)

enum class Kind : uint16_t {
#define CDL_X(Struct, function, NAME) Struct = CDL_KIND_##NAME,
  CDL_OPS(CDL_X)
#undef CDL_X
};

/// How long the instructions of executions took. One thread at a time. Records that a backend adds
/// itself are by one clock, all of them.
class Timings {
public:
  /// Nanoseconds of the host's steady clock. A device may have a clock of its own.
  static uint64_t now() {
    const auto time = std::chrono::steady_clock::now().time_since_epoch();
    return static_cast<uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(time).count());
  }
  void add(uint32_t instr, uint64_t startNs, uint64_t endNs, uint32_t engine = 0) {
    records_.push_back({instr, engine, startNs, endNs});
  }
  const std::vector<cdl_profile_record_t>& records() const { return records_; }

private:
  std::vector<cdl_profile_record_t> records_;
};

class Queue;

/// Where the buffers of one execution lie: per buffer of the image its first byte.
class Addresses {
public:
  virtual void* address(uint32_t buffer, uint64_t bytes) const = 0;
  /// Not null when the host asks how long the instructions of this execution take.
  virtual Timings* timings() const { return nullptr; }
  /// The queue of this execution; null where there is none.
  virtual Queue* queue() const { return nullptr; }

protected:
  ~Addresses() = default;
};

/// One instruction of a checked image. Cheap to copy; valid during the call that it was given to.
class Op {
public:
  Op(const cdl_image_t* image, uint32_t index, const int64_t* loops, const Addresses* addresses)
      : image_(image), instr_(cdl_get_instr(image, index)), loops_(loops), addresses_(addresses),
        index_(index) {}

  const cdl_image_t* image() const { return image_; }
  const cdl_instr_t& instr() const { return *instr_; }
  uint32_t index() const { return index_; }
  Kind kind() const { return static_cast<Kind>(instr_->kind); }
  uint16_t fn() const { return instr_->fn; }
  uint32_t inputs() const { return instr_->inputs; }
  /// Inputs that are operands of the kind; the others are read by the epilogue alone.
  uint32_t operands() const { return cdl_operand_count(image_, instr_); }
  /// The first ONNX node that it came from, or "".
  const char* node() const {
    return cdl_get_string(image_, cdl_get_provenance(image_, instr_->provenance)->node);
  }

  Operand input(uint32_t i) const {
    if (i >= instr_->inputs)
      throw BadAccess(text(kindName(instr_->kind), " has ", instr_->inputs, " inputs, input ", i,
                           " was asked for"));
    return resolve(*cdl_get_input(image_, instr_, i));
  }
  Operand output(uint32_t i = 0) const {
    if (i >= instr_->outputs)
      throw BadAccess(text(kindName(instr_->kind), " has ", instr_->outputs, " results, result ", i,
                           " was asked for"));
    return resolve(*cdl_get_output(image_, instr_, i));
  }
  Operand y() const { return output(0); }
  /// The name of the opaque layout of an operand, whose `data` Backend::packConstant wrote; ""
  /// where it lies otherwise.
  const char* layoutName(const Operand& operand) const {
    if (!operand.layout) return "";
    return cdl_get_string(image_, cdl_get_layout(image_, operand.layout)->name);
  }
  /// Where a device with a clock of its own adds the time of this instruction; null while nobody
  /// asks.
  Timings* timings() const { return addresses_ ? addresses_->timings() : nullptr; }
  /// The queue that it was submitted to, as Backend::queueCreate made it.
  template <class Q> Q& queue() const { return static_cast<Q&>(*addresses_->queue()); }
  template <class T> View<T> y() const { return output(0).as<T>(); }

  /// Value `i` of an attribute, or `missing`.
  int64_t attr(uint16_t id, int64_t missing, uint32_t i = 0) const {
    const cdl_attr_t* a = cdl_find_attr(image_, instr_, id);
    return a && i < a->count ? a->values[i] : missing;
  }
  double floatAttr(uint16_t id, double missing) const {
    const cdl_attr_t* a = cdl_find_attr(image_, instr_, id);
    if (!a) return missing;
    double value;
    std::memcpy(&value, a->values, sizeof value);
    return value;
  }

  /// The steps of the epilogue, behind those of a prologue, or of ELEMENTWISE; or null. Step k is
  /// steps()[k] by cdl_get_step(image, first_step + k).
  const cdl_expr_t* expr() const {
    return instr_->expr ? cdl_get_expr(image_, instr_->expr) : nullptr;
  }

private:
  Operand resolve(const cdl_view_t& view) const {
    Operand o;
    o.rank = view.rank;
    for (int d = 0; d < view.rank; ++d) {
      o.dims[d] = view.dims[d];
      o.strides[d] = view.strides[d];
    }
    const cdl_buffer_t* buffer = cdl_get_buffer(image_, view.buffer);
    o.elem = view.elem;
    o.role = buffer->role;
    o.layout = view.layout;
    o.buffer = view.buffer;
    int64_t at = view.offset;
    for (int l = 0; l < CDL_MAX_LOOP_NESTING; ++l)
      at += view.iv_strides[l] * (loops_ ? loops_[l] : 0);
    const int64_t bits = cdl_elem_bits(view.elem);
    o.data = static_cast<char*>(addresses_->address(view.buffer, buffer->bytes)) +
             (bits < 8 ? at * bits / 8 : at * (bits / 8));
    return o;
  }

  const cdl_image_t* image_;
  const cdl_instr_t* instr_;
  const int64_t* loops_;
  const Addresses* addresses_;
  uint32_t index_;
};

// Each operand by name: untyped, or as a View<T>, which throws BadAccess when T cannot hold its
// element type.
#define CDL_OPERAND(name, i)                                                                       \
  Operand name() const { return input(i); }                                                        \
  template <class T> View<T> name() const { return input(i).as<T>(); }

struct Copy : Op {
  CDL_OPERAND(x, 0)
};

struct Fill : Op {
  /// The bits of one element of y, zero-extended.
  uint64_t bits() const { return static_cast<uint64_t>(attr(CDL_ATTR_VALUE, 0)); }
  template <class T> T value() const {
    const uint64_t all = bits();
    T value;
    std::memcpy(&value, &all, sizeof value); // little-endian: the low bytes come first
    return value;
  }
};

struct Convert : Op { // fn: CDL_CONVERT_*
  CDL_OPERAND(x, 0)
  bool saturate() const { return attr(CDL_ATTR_SATURATE, 0) != 0; }
};

struct Binary : Op { // fn: CDL_BINARY_*
  CDL_OPERAND(a, 0)
  CDL_OPERAND(b, 1)
};

struct Compare : Op { // fn: CDL_COMPARE_*; y is bool
  CDL_OPERAND(a, 0)
  CDL_OPERAND(b, 1)
};

struct Select : Op { // y = cond ? a : b
  CDL_OPERAND(cond, 0)
  CDL_OPERAND(a, 1)
  CDL_OPERAND(b, 2)
};

struct Gather : Op { // fn: CDL_GATHER_*; x[O,N,I], index[K], y[O,K,I]
  CDL_OPERAND(x, 0)
  CDL_OPERAND(indices, 1)
};

struct Scatter : Op { // fn: CDL_SCATTER_*; index[K], updates[O,K,I], y[O,N,I]; y is read too
  CDL_OPERAND(indices, 0)
  CDL_OPERAND(updates, 1)
};

struct Reduce : Op { // fn: CDL_REDUCE_*; x[O,R,I], y[O,I]
  CDL_OPERAND(x, 0)
  /// How many steps of expr() compute x of the operands, where the rows take a prologue: x() is
  /// then only the first one.
  uint32_t prologue() const { return instr().prologue; }
};

struct MatMul : Op { // a[B,M,K], b[B,K,N], y[B,M,N]
  CDL_OPERAND(a, 0)
  CDL_OPERAND(b, 1)
  bool hasAZero() const { return operands() > 2; }
  bool hasBZero() const { return operands() > 3; }
  CDL_OPERAND(aZero, 2) // one element
  CDL_OPERAND(bZero, 3) // one element or N
  bool accumulate() const { return attr(CDL_ATTR_ACCUMULATE, 0) != 0; }
  int64_t batch() const { return cdl_get_input(image(), &instr(), 0)->dims[0]; }
  int64_t m() const { return cdl_get_input(image(), &instr(), 0)->dims[1]; }
  int64_t k() const { return cdl_get_input(image(), &instr(), 0)->dims[2]; }
  int64_t n() const { return cdl_get_input(image(), &instr(), 1)->dims[2]; }
};

struct Unary : Op { // fn: CDL_UNARY_*
  CDL_OPERAND(x, 0)
};

struct Rescale : Op { // y = clamp(rne((a*Ma*2^ka + b*Mb*2^kb) / 2^s) + zp)
  CDL_OPERAND(a, 0)
  CDL_OPERAND(aMultiplier, 1)
  CDL_OPERAND(shift, 2)
  CDL_OPERAND(zero, 3)
  bool hasB() const { return inputs() > 5; }
  CDL_OPERAND(b, 4)
  CDL_OPERAND(bMultiplier, 5)
  int aLeftShift() const { return static_cast<int>(attr(CDL_ATTR_A_LEFT_SHIFT, 0)); }
  int bLeftShift() const { return static_cast<int>(attr(CDL_ATTR_B_LEFT_SHIFT, 0)); }
  /// Defaults: the range of y's element type.
  int64_t clampMin(int64_t missing) const { return attr(CDL_ATTR_CLAMP_MIN, missing); }
  int64_t clampMax(int64_t missing) const { return attr(CDL_ATTR_CLAMP_MAX, missing); }
};

struct Table : Op { // table[256] or table[513]
  CDL_OPERAND(x, 0)
  CDL_OPERAND(table, 1)
};

/// What CONV2D and POOL2D share. d: 0 is height, 1 is width.
struct Window : Op {
  CDL_OPERAND(x, 0) // [N,C,H,W]
  int64_t stride(int d) const { return attr(CDL_ATTR_STRIDES, 1, static_cast<uint32_t>(d)); }
  int64_t dilation(int d) const { return attr(CDL_ATTR_DILATIONS, 1, static_cast<uint32_t>(d)); }
  int64_t padBegin(int d) const { return attr(CDL_ATTR_PADS, 0, static_cast<uint32_t>(d)); }
  int64_t padEnd(int d) const { return attr(CDL_ATTR_PADS, 0, static_cast<uint32_t>(d) + 2); }
};

struct Conv2d : Window { // x[N,C,H,W], w[O,C/group,KH,KW], y[N,O,OH,OW]
  CDL_OPERAND(w, 1)
  bool hasXZero() const { return operands() > 2; }
  bool hasWZero() const { return operands() > 3; }
  CDL_OPERAND(xZero, 2)
  CDL_OPERAND(wZero, 3)
  int64_t group() const { return attr(CDL_ATTR_GROUP, 1); }
  bool transposed() const { return attr(CDL_ATTR_TRANSPOSED, 0) != 0; }
  bool accumulate() const { return attr(CDL_ATTR_ACCUMULATE, 0) != 0; }
};

struct Pool2d : Window { // fn: CDL_POOL2D_*
  int64_t kernel(int d) const { return attr(CDL_ATTR_KERNEL, 1, static_cast<uint32_t>(d)); }
  bool countIncludePad() const { return attr(CDL_ATTR_COUNT_INCLUDE_PAD, 0) != 0; }
};

struct Elementwise : Op {}; // input(i), expr()

struct Softmax : Op { // fn: CDL_SOFTMAX_*; x[O,R,I], y like x
  CDL_OPERAND(x, 0)
};

struct Norm : Op { // fn: CDL_NORM_*; x[O,R], y like x
  CDL_OPERAND(x, 0)
  bool hasScale() const { return inputs() > 1; }
  bool hasBias() const { return inputs() > 2; }
  CDL_OPERAND(scale, 1)
  CDL_OPERAND(bias, 2)
  double epsilon() const { return floatAttr(CDL_ATTR_EPSILON, 1e-5); }
};

struct Attention : Op { // q[B,S,D], k[B,T,D], v[B,T,E], mask[B,S,T], y[B,S,E]
  CDL_OPERAND(q, 0)
  CDL_OPERAND(k, 1)
  CDL_OPERAND(v, 2)
  bool hasMask() const { return inputs() > 3; }
  CDL_OPERAND(mask, 3)
  double scale(double missing) const { return floatAttr(CDL_ATTR_SCALE, missing); }
};

struct ArgReduce : Op { // fn: CDL_ARG_REDUCE_*; x[O,R,I], y[O,I] of i32 or i64
  CDL_OPERAND(x, 0)
  bool selectLast() const { return attr(CDL_ATTR_SELECT_LAST, 0) != 0; }
};

struct Sort : Op { // fn: CDL_SORT_*; x[O,N,I], y[O,K,I], index[O,K,I] of i32
  CDL_OPERAND(x, 0)
};

/// fn: CDL_SCALED_MATMUL_*; a[M,K], w[N,G,S], wScale[N,G], wZero[N,G], aScale[M,G], y[M,N].
struct ScaledMatMul : Op {
  CDL_OPERAND(a, 0)
  CDL_OPERAND(w, 1)
  CDL_OPERAND(wScale, 2)
  bool hasWZero() const { return operands() > 3; }
  bool hasAScale() const { return operands() > 4; }
  CDL_OPERAND(wZero, 3)
  CDL_OPERAND(aScale, 4)
};

struct Custom : Op {};

#undef CDL_OPERAND

} // namespace cdl
