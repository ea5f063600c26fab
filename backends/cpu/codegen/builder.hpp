// What the emitters write kernels with: a small typed layer over LLVM's IR that shows no type of
// LLVM, so that an emitter compiles in a second and reads as the loop nest that it makes. Nothing
// here knows an instruction of the Program.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace cpu {

struct Isa;

enum class Ty : uint8_t { I1, I8, I16, I32, I64, F32, F64, Ptr };

/// Bytes of one element in memory.
int sizeOf(Ty ty);
inline bool isFloat(Ty ty) { return ty == Ty::F32 || ty == Ty::F64; }

/// A scalar (lanes = 1) or a vector of the kernel being written. Integers have no sign: the
/// operations do.
struct Value {
  void* raw = nullptr;
  Ty ty = Ty::I64;
  int lanes = 1;
};

enum class Cmp : uint8_t { EQ, NE, LT, LE, GT, GE, ULT, UGT, UNORDERED };
enum class Round : uint8_t { FLOOR, CEIL, TRUNC, EVEN };

using Values = std::vector<Value>;

/// Writes one kernel: void kernel(void* const* args, int64_t begin, int64_t end). `args` are
/// addresses, begin .. end the units of work to do. Operands of one operation must have the same
/// element type; a scalar meets a vector by splat. Float operations are single IEEE operations:
/// nothing is reassociated and nothing is contracted but by fma.
class Builder {
public:
  struct Impl;
  explicit Builder(Impl& impl) : impl_(impl) {}

  const Isa& isa() const;
  Value begin();
  Value end();
  /// Address `index` of the kernel's arguments.
  Value arg(int index);
  /// Parameter `index` of a function that is no kernel.
  Value parameter(int index);

  // Constants.
  Value i64(int64_t value) { return integer(Ty::I64, value); }
  Value i32(int32_t value) { return integer(Ty::I32, value); }
  Value integer(Ty ty, int64_t value);
  Value real(Ty ty, double value);
  Value f32(float value) { return real(Ty::F32, value); }
  /// The value whose bits these are, in the low bytes.
  Value bits(Ty ty, uint64_t bits);
  Value zero(Ty ty, int lanes = 1);
  /// The vector of these numbers.
  Value vector(const std::vector<float>& numbers);
  /// The vector first, first + 1, ...
  Value iota(Ty ty, int lanes);
  Value splat(Value scalar, int lanes);

  // Memory. Offsets are bytes; elements are aligned to their size unless `align` says more.
  Value at(Value pointer, Value bytes);
  Value at(Value pointer, int64_t bytes);
  /// Element `index` of those that lie `step` bytes apart.
  Value at(Value pointer, Value index, int64_t step) {
    return step ? at(pointer, mul(index, i64(step))) : pointer;
  }
  Value load(Ty ty, int lanes, Value pointer, int64_t bytes = 0, int align = 0);
  void store(Value value, Value pointer, int64_t bytes = 0, int align = 0);
  /// The first `count` lanes (a scalar i64); the others are zero and their memory is not touched.
  Value loadFirst(Ty ty, int lanes, Value pointer, Value count);
  void storeFirst(Value value, Value pointer, Value count);
  /// Lane k comes from pointer + k * stride bytes.
  Value loadStrided(Ty ty, int lanes, Value pointer, int64_t stride);
  void storeStrided(Value value, Value pointer, int64_t stride);
  void prefetch(Value pointer, int64_t bytes);
  /// Memory of the kernel itself, 64-byte aligned, undefined at first.
  Value local(int64_t bytes);
  /// The same pointer, of which the optimizer knows nothing: keeps address arithmetic of a tile
  /// where it was written.
  Value launder(Value pointer);

  // Arithmetic, by element type. Integers wrap.
  Value add(Value a, Value b);
  Value sub(Value a, Value b);
  Value mul(Value a, Value b);
  /// Integers: b must not be 0, nor -1 where a is the lowest.
  Value div(Value a, Value b, bool isSigned = true);
  Value rem(Value a, Value b, bool isSigned = true);
  /// An index by a number of places, both from 0 on.
  Value quotient(Value index, int64_t count);
  Value remainder(Value index, int64_t count);
  Value neg(Value a);
  Value abs(Value a);
  /// a * b + c, rounded once; on WebAssembly twice, which a scale of integers must not be.
  Value fma(Value a, Value b, Value c);
  Value sqrt(Value a);
  Value round(Value a, Round how);
  Value bitAnd(Value a, Value b);
  Value bitOr(Value a, Value b);
  Value bitXor(Value a, Value b);
  Value bitNot(Value a);
  /// The shift must be below the width.
  Value shl(Value a, Value by);
  Value shr(Value a, Value by, bool isSigned);
  /// Floats: NaN wins over any number.
  Value min(Value a, Value b, bool isSigned = true);
  Value max(Value a, Value b, bool isSigned = true);
  Value compare(Cmp how, Value a, Value b); // of I1
  Value select(Value condition, Value a, Value b);
  /// acc[k] + sum over four bytes of u8 a[k] * s8 b[k]; all three are vectors of I32. Exact.
  Value dot4(Value acc, Value a, Value b);
  /// The same as dot4, but s8 a where Isa::hasSignedDot4.
  Value dotBytes(Value acc, Value a, Value b);
  /// Lanes of i16: the sum over two bytes of u8 a[k] * s8 b[k]; vectors of I32, of 8 or 16 lanes.
  /// Each sum must fit i16.
  Value dotPairs(Value a, Value b);
  /// Sum over two s16 a[k] * s16 b[k]; vectors of I32, of as many lanes as a register has.
  Value dot2(Value a, Value b);
  /// acc[k] + a[2k] * b[2k] + a[2k + 1] * b[2k + 1] in f32, of bf16 by two in each I32 of a and b.
  /// In no order that is promised; an isa that has it takes numbers below 2^-126 as 0.
  Value dotBF16(Value acc, Value a, Value b);

  // Tiles, of an isa that has them: eight of 16 rows by 64 bytes, numbered by the emitter.
  // `rowBytes` lies between rows in memory. From tileConfig(64 bytes: palette, rows and row sizes)
  // to tileRelease they are the emitter's own.
  void tileConfig(Value pointer);
  void tileRelease();
  void tileZero(int tile);
  void tileLoad(int tile, Value pointer, Value rowBytes, bool isStreamed = false);
  void tileStore(int tile, Value pointer, Value rowBytes);
  /// acc += a * b in i32: rows of a by four bytes, of either sign, times s8 columns of b,
  /// interleaved by four.
  void tileDot(int acc, int a, int b, bool aIsSigned);
  /// acc += a * b in f32: rows of a by two bf16 times columns of b, interleaved by two.
  void tileDotBF16(int acc, int a, int b);

  // Conversions; lanes stay.
  Value cast(Value a, Ty ty, bool isSigned); // integer to integer, float to float, integer to float
  /// Toward zero, NaN gives 0, out of range the nearest limit.
  Value toInteger(Value a, Ty ty, bool isSigned);
  /// Toward zero; a must be within the limits of the signed integer.
  Value truncated(Value a, Ty ty);
  /// The numbers that these bits are in f16 (I16), as F32.
  Value fromF16(Value bits);
  /// The bits of the nearest f16, ties to even; beyond the largest it is infinite.
  Value toF16(Value a);
  /// The bits of the nearest bf16, ties to even, of an isa that has it; numbers below 2^-126 become
  /// 0.
  Value toBF16(Value a);
  Value bitcast(Value a, Ty ty);
  /// The same bits as lanes of another size.
  Value reinterpret(Value a, Ty ty, int lanes);

  // Lanes.
  Value extract(Value vector, int lane);
  /// Lane k is lane index[k] of a followed by b.
  Value shuffle(Value a, Value b, const std::vector<int>& index);
  /// Lane k is lane index[k] of the table, both of as many lanes as a register has of 32 bits; of
  /// an index the low bits count.
  Value permute(Value table, Value index);
  /// All lanes into one, pairwise halves: the same order for any vector length that is a power of
  /// two.
  Value reduce(Value vector, const std::function<Value(Value, Value)>& fn);

  // Control.
  /// body(i) for i = from, from + step, ... below `to`. May be empty.
  void loop(Value from, Value to, int64_t step, const std::function<void(Value)>& body);
  /// body(i, carried) for i = 0 .. count - 1, count at least 1; returns what was carried last.
  Values loop(int64_t count, Values carried,
              const std::function<Values(Value, const Values&)>& body);
  /// The same with a count at run time, which may be 0.
  Values loop(Value from, Value to, int64_t step, Values carried,
              const std::function<Values(Value, const Values&)>& body);
  void when(Value condition, const std::function<void()>& body);
  /// Leaves a function that is no kernel with this result where the condition holds.
  void leaveWhen(Value condition, int32_t result);
  /// Calls a kernel of the same object.
  void callKernel(const std::string& name, Value args, Value begin, Value end);

  // What only functions that are no kernels need.
  /// The address as I64.
  Value addressOf(Value pointer);
  /// A register of 64-bit ARM that says what the processor has.
  Value systemRegister(const std::string& name);
  /// EAX, EBX, ECX and EDX of CPUID, for x86.
  Values cpuid(uint32_t leaf, uint32_t subleaf);
  /// The low half of XCR0, where the processor has OSXSAVE.
  Value savedRegisters();

  /// Whether what is written now may take numbers below 2^-126 as 0 where that is faster: the end
  /// of sums of bf16, whose instructions do so themselves.
  bool flushes = false;

private:
  Value roundedByInteger(Value a, Round how);
  Value dotLanes(Value acc, Value a, Value b,
                 const std::function<Values(Value, bool isSigned)>& pairs);
  Value dotParts(Value acc, Value a, Value b, int bits, bool aIsSigned);
  Value dotQuads(Value acc, Value a, Value b, bool aIsSigned);

  Impl& impl_;
};

} // namespace cpu
