// The one file that writes LLVM IR, and with codegen.cpp one of two that include LLVM.
#include "impl.hpp"

#include "../isa.hpp"

#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/IntrinsicsAArch64.h>
#include <llvm/IR/IntrinsicsARM.h>
#include <llvm/IR/IntrinsicsWebAssembly.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <cmath>

namespace cpu {

using llvm::Intrinsic::ID;

int sizeOf(Ty ty) {
  switch (ty) {
  case Ty::I1:
  case Ty::I8: return 1;
  case Ty::I16: return 2;
  case Ty::I32:
  case Ty::F32: return 4;
  case Ty::I64:
  case Ty::F64:
  case Ty::Ptr: return 8;
  }
  return 0;
}

llvm::Type* Builder::Impl::type(Ty ty, int lanes) {
  llvm::Type* scalar = nullptr;
  switch (ty) {
  case Ty::I1: scalar = ir.getInt1Ty(); break;
  case Ty::I8: scalar = ir.getInt8Ty(); break;
  case Ty::I16: scalar = ir.getInt16Ty(); break;
  case Ty::I32: scalar = ir.getInt32Ty(); break;
  case Ty::I64: scalar = ir.getInt64Ty(); break;
  case Ty::F32: scalar = ir.getFloatTy(); break;
  case Ty::F64: scalar = ir.getDoubleTy(); break;
  case Ty::Ptr: scalar = ir.getPtrTy(); break;
  }
  return lanes == 1 ? scalar : llvm::FixedVectorType::get(scalar, lanes);
}

namespace {

llvm::Value* raw(Value v) { return static_cast<llvm::Value*>(v.raw); }
Value made(llvm::Value* value, Ty ty, int lanes) { return {value, ty, lanes}; }

llvm::Type* halfType(llvm::IRBuilder<>& ir, int lanes) {
  llvm::Type* half = ir.getHalfTy();
  return lanes == 1 ? half : llvm::FixedVectorType::get(half, lanes);
}

/// Makes both as wide as the wider one.
void meet(Builder& b, Value& x, Value& y) {
  if (x.lanes < y.lanes) x = b.splat(x, y.lanes);
  if (y.lanes < x.lanes) y = b.splat(y, x.lanes);
}

} // namespace

const Isa& Builder::isa() const { return impl_.isa; }
Value Builder::begin() { return made(impl_.function->getArg(1), Ty::I64, 1); }
Value Builder::end() { return made(impl_.function->getArg(2), Ty::I64, 1); }

Value Builder::parameter(int index) {
  llvm::Argument* argument = impl_.function->getArg(static_cast<unsigned>(index));
  if (argument->getType()->isPointerTy()) return made(argument, Ty::Ptr, 1);
  return made(impl_.ir.CreateZExt(argument, impl_.ir.getInt64Ty()), Ty::I64, 1);
}

Value Builder::arg(int index) {
  // In the entry block, once: every loop sees the same pointer.
  const auto known = impl_.args.find(index);
  if (known != impl_.args.end()) return known->second;
  llvm::IRBuilder<>::InsertPointGuard guard(impl_.ir);
  llvm::BasicBlock& entry = impl_.function->getEntryBlock();
  impl_.ir.SetInsertPoint(&entry, entry.begin());
  llvm::Value* slot = impl_.ir.CreateConstInBoundsGEP1_64(
      impl_.ir.getPtrTy(), impl_.function->getArg(0), static_cast<uint64_t>(index));
  return impl_.args[index] = made(impl_.ir.CreateLoad(impl_.ir.getPtrTy(), slot), Ty::Ptr, 1);
}

Value Builder::integer(Ty ty, int64_t value) {
  return made(llvm::ConstantInt::get(impl_.type(ty, 1), static_cast<uint64_t>(value), true), ty, 1);
}
Value Builder::real(Ty ty, double value) {
  return made(llvm::ConstantFP::get(impl_.type(ty, 1), value), ty, 1);
}
Value Builder::bits(Ty ty, uint64_t bits) {
  if (!isFloat(ty)) return integer(ty, static_cast<int64_t>(bits));
  return bitcast(integer(ty == Ty::F32 ? Ty::I32 : Ty::I64, static_cast<int64_t>(bits)), ty);
}
Value Builder::zero(Ty ty, int lanes) {
  return made(llvm::Constant::getNullValue(impl_.type(ty, lanes)), ty, lanes);
}

Value Builder::vector(const std::vector<float>& numbers) {
  return made(llvm::ConstantDataVector::get(impl_.ir.getContext(), numbers), Ty::F32,
              static_cast<int>(numbers.size()));
}
Value Builder::iota(Ty ty, int lanes) {
  std::vector<llvm::Constant*> all;
  for (int k = 0; k < lanes; ++k)
    all.push_back(llvm::ConstantInt::get(impl_.type(ty, 1), static_cast<uint64_t>(k)));
  return lanes == 1 ? made(all[0], ty, 1) : made(llvm::ConstantVector::get(all), ty, lanes);
}

Value Builder::splat(Value scalar, int lanes) {
  if (lanes == scalar.lanes) return scalar;
  return made(impl_.ir.CreateVectorSplat(static_cast<unsigned>(lanes), raw(scalar)), scalar.ty,
              lanes);
}

// ---- Memory

Value Builder::at(Value pointer, Value bytes) {
  return made(impl_.ir.CreateInBoundsGEP(impl_.ir.getInt8Ty(), raw(pointer), raw(bytes)), Ty::Ptr,
              1);
}
Value Builder::at(Value pointer, int64_t bytes) {
  return bytes ? at(pointer, i64(bytes)) : pointer;
}

Value Builder::load(Ty ty, int lanes, Value pointer, int64_t bytes, int align) {
  const int own = ty == Ty::Ptr ? isa().pointer() : sizeOf(ty);
  const llvm::Align alignment(static_cast<uint64_t>(align ? align : own));
  return made(impl_.ir.CreateAlignedLoad(impl_.type(ty, lanes), raw(at(pointer, bytes)), alignment),
              ty, lanes);
}
void Builder::store(Value value, Value pointer, int64_t bytes, int align) {
  const int own = value.ty == Ty::Ptr ? isa().pointer() : sizeOf(value.ty);
  impl_.ir.CreateAlignedStore(raw(value), raw(at(pointer, bytes)),
                              llvm::Align(static_cast<uint64_t>(align ? align : own)));
}

Value Builder::loadFirst(Ty ty, int lanes, Value pointer, Value count) {
  if (lanes == 1) return load(ty, 1, pointer);
  const Value mask = compare(Cmp::LT, iota(Ty::I64, lanes), count);
  return made(impl_.ir.CreateMaskedLoad(impl_.type(ty, lanes), raw(pointer),
                                        llvm::Align(sizeOf(ty)), raw(mask), raw(zero(ty, lanes))),
              ty, lanes);
}
void Builder::storeFirst(Value value, Value pointer, Value count) {
  if (value.lanes == 1) return store(value, pointer);
  const Value mask = compare(Cmp::LT, iota(Ty::I64, value.lanes), count);
  impl_.ir.CreateMaskedStore(raw(value), raw(pointer), llvm::Align(sizeOf(value.ty)), raw(mask));
}

Value Builder::loadStrided(Ty ty, int lanes, Value pointer, int64_t stride) {
  if (stride == 0 || lanes == 1) return splat(load(ty, 1, pointer), lanes);
  if (stride == sizeOf(ty)) return load(ty, lanes, pointer);
  Value all = zero(ty, lanes);
  for (int k = 0; k < lanes; ++k)
    all.raw = impl_.ir.CreateInsertElement(raw(all), raw(load(ty, 1, pointer, k * stride)),
                                           static_cast<uint64_t>(k));
  return all;
}
void Builder::storeStrided(Value value, Value pointer, int64_t stride) {
  if (value.lanes == 1 || stride == sizeOf(value.ty)) return store(value, pointer);
  for (int k = 0; k < value.lanes; ++k) store(extract(value, k), pointer, k * stride);
}

void Builder::prefetch(Value pointer, int64_t bytes) {
  impl_.ir.CreateIntrinsic(
      llvm::Intrinsic::prefetch, {impl_.ir.getPtrTy()},
      {raw(at(pointer, bytes)), impl_.ir.getInt32(0), impl_.ir.getInt32(2), impl_.ir.getInt32(1)});
}

Value Builder::local(int64_t bytes) {
  llvm::IRBuilder<>::InsertPointGuard guard(impl_.ir);
  llvm::BasicBlock& entry = impl_.function->getEntryBlock();
  impl_.ir.SetInsertPoint(&entry, entry.begin());
  auto* slot = impl_.ir.CreateAlloca(
      llvm::ArrayType::get(impl_.ir.getInt8Ty(), static_cast<uint64_t>(bytes)));
  slot->setAlignment(llvm::Align(64));
  return made(slot, Ty::Ptr, 1);
}

Value Builder::launder(Value pointer) {
  llvm::Type* type = impl_.ir.getPtrTy();
  auto* same =
      llvm::InlineAsm::get(llvm::FunctionType::get(type, {type}, false), "", "=r,0", false);
  return made(impl_.ir.CreateCall(same, {raw(pointer)}), Ty::Ptr, 1);
}

// ---- Arithmetic

#define CPU_BINARY(name, ifFloat, ifInteger)                                                       \
  Value Builder::name(Value a, Value b) {                                                          \
    meet(*this, a, b);                                                                             \
    return made(isFloat(a.ty) ? impl_.ir.ifFloat(raw(a), raw(b))                                   \
                              : impl_.ir.ifInteger(raw(a), raw(b)),                                \
                a.ty, a.lanes);                                                                    \
  }
CPU_BINARY(add, CreateFAdd, CreateAdd)
CPU_BINARY(sub, CreateFSub, CreateSub)
CPU_BINARY(mul, CreateFMul, CreateMul)
CPU_BINARY(bitAnd, CreateAnd, CreateAnd)
CPU_BINARY(bitOr, CreateOr, CreateOr)
CPU_BINARY(bitXor, CreateXor, CreateXor)
CPU_BINARY(shl, CreateShl, CreateShl)
#undef CPU_BINARY

Value Builder::div(Value a, Value b, bool isSigned) {
  meet(*this, a, b);
  const auto quotient = [&] {
    if (isFloat(a.ty)) return impl_.ir.CreateFDiv(raw(a), raw(b));
    return isSigned ? impl_.ir.CreateSDiv(raw(a), raw(b)) : impl_.ir.CreateUDiv(raw(a), raw(b));
  };
  return made(quotient(), a.ty, a.lanes);
}
Value Builder::rem(Value a, Value b, bool isSigned) {
  meet(*this, a, b);
  return made(isSigned ? impl_.ir.CreateSRem(raw(a), raw(b)) : impl_.ir.CreateURem(raw(a), raw(b)),
              a.ty, a.lanes);
}
namespace {

/// Whether indexes are counted in 32 bits: wider ones take two registers, and functions to divide.
bool countsInWords(const Isa& isa) { return isa.pointer() == 4; }

} // namespace

Value Builder::quotient(Value index, int64_t count) {
  if (!countsInWords(isa())) return div(index, i64(count), false);
  const Value word = div(cast(index, Ty::I32, false), i32(static_cast<int32_t>(count)), false);
  return cast(word, Ty::I64, false);
}
Value Builder::remainder(Value index, int64_t count) {
  if (!countsInWords(isa())) return rem(index, i64(count), false);
  const Value word = rem(cast(index, Ty::I32, false), i32(static_cast<int32_t>(count)), false);
  return cast(word, Ty::I64, false);
}
Value Builder::shr(Value a, Value by, bool isSigned) {
  meet(*this, a, by);
  return made(isSigned ? impl_.ir.CreateAShr(raw(a), raw(by))
                       : impl_.ir.CreateLShr(raw(a), raw(by)),
              a.ty, a.lanes);
}
Value Builder::neg(Value a) {
  return made(isFloat(a.ty) ? impl_.ir.CreateFNeg(raw(a)) : impl_.ir.CreateNeg(raw(a)), a.ty,
              a.lanes);
}
Value Builder::abs(Value a) {
  if (!isFloat(a.ty)) return select(compare(Cmp::LT, a, zero(a.ty, a.lanes)), neg(a), a);
  return made(impl_.ir.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, raw(a)), a.ty, a.lanes);
}
Value Builder::fma(Value a, Value b, Value c) {
  meet(*this, a, b);
  meet(*this, a, c);
  meet(*this, b, c);
  // WebAssembly has none, but for one that may round once or twice.
  if (isa().arch == Arch::WASM32) return add(mul(a, b), c);
  return made(impl_.ir.CreateIntrinsic(llvm::Intrinsic::fma, {impl_.type(a.ty, a.lanes)},
                                       {raw(a), raw(b), raw(c)}),
              a.ty, a.lanes);
}
Value Builder::sqrt(Value a) {
  return made(impl_.ir.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, raw(a)), a.ty, a.lanes);
}

static ID roundingOf(Round how) {
  switch (how) {
  case Round::FLOOR: return llvm::Intrinsic::floor;
  case Round::CEIL: return llvm::Intrinsic::ceil;
  case Round::TRUNC: return llvm::Intrinsic::trunc;
  case Round::EVEN: break;
  }
  return llvm::Intrinsic::roundeven;
}

/// The same of an f32 by integers: what is 2^23 or more has no places behind the point.
Value Builder::roundedByInteger(Value a, Round how) {
  const Value size = abs(a);
  const Value whole =
      cast(made(impl_.ir.CreateFPToSI(raw(select(compare(Cmp::LT, size, f32(0x1p23F)), a, f32(0))),
                                      impl_.type(Ty::I32, a.lanes)),
                Ty::I32, a.lanes),
           Ty::F32, true);
  Value result = whole;
  if (how == Round::FLOOR) result = sub(whole, select(compare(Cmp::GT, whole, a), f32(1), f32(0)));
  if (how == Round::CEIL) result = add(whole, select(compare(Cmp::LT, whole, a), f32(1), f32(0)));
  // Beside 2^23 the sum has no places either, and is rounded as sums are.
  if (how == Round::EVEN) result = sub(add(size, f32(0x1p23F)), f32(0x1p23F));
  const Value sign = bitAnd(bitcast(a, Ty::I32), i32(INT32_MIN));
  const Value signedResult = bitcast(bitOr(bitcast(abs(result), Ty::I32), sign), Ty::F32);
  return select(compare(Cmp::LT, size, f32(0x1p23F)), signedResult, a);
}

Value Builder::round(Value a, Round how) {
  if (isa().arch == Arch::THUMB && a.ty == Ty::F32) return roundedByInteger(a, how);
  return made(impl_.ir.CreateUnaryIntrinsic(roundingOf(how), raw(a)), a.ty, a.lanes);
}
Value Builder::bitNot(Value a) { return made(impl_.ir.CreateNot(raw(a)), a.ty, a.lanes); }

namespace {

/// NaN when it cannot be told otherwise: a number constant is worth one instruction less.
bool maybeNan(Value v) {
  auto* constant = llvm::dyn_cast<llvm::Constant>(raw(v));
  if (constant && v.lanes > 1) constant = constant->getSplatValue();
  const auto* number = llvm::dyn_cast_or_null<llvm::ConstantFP>(constant);
  return !number || number->isNaN();
}

Value extreme(Builder& b, Value x, Value y, Cmp keepsX) {
  meet(b, x, y);
  if (!maybeNan(y)) std::swap(x, y);
  // x > y ? x : y is y where either is NaN: right as soon as x is a number.
  const Value better = b.select(b.compare(keepsX, x, y), x, y);
  return isFloat(x.ty) && maybeNan(x) ? b.select(b.compare(Cmp::UNORDERED, x, x), x, better)
                                      : better;
}

} // namespace

Value Builder::min(Value a, Value b, bool isSigned) {
  return extreme(*this, a, b, isSigned || isFloat(a.ty) ? Cmp::LT : Cmp::ULT);
}
Value Builder::max(Value a, Value b, bool isSigned) {
  return extreme(*this, a, b, isSigned || isFloat(a.ty) ? Cmp::GT : Cmp::UGT);
}

Value Builder::compare(Cmp how, Value a, Value b) {
  using P = llvm::CmpInst::Predicate;
  meet(*this, a, b);
  const bool real = isFloat(a.ty);
  P predicate = P::BAD_ICMP_PREDICATE;
  switch (how) {
  case Cmp::EQ: predicate = real ? P::FCMP_OEQ : P::ICMP_EQ; break;
  case Cmp::NE: predicate = real ? P::FCMP_UNE : P::ICMP_NE; break;
  case Cmp::LT: predicate = real ? P::FCMP_OLT : P::ICMP_SLT; break;
  case Cmp::LE: predicate = real ? P::FCMP_OLE : P::ICMP_SLE; break;
  case Cmp::GT: predicate = real ? P::FCMP_OGT : P::ICMP_SGT; break;
  case Cmp::GE: predicate = real ? P::FCMP_OGE : P::ICMP_SGE; break;
  case Cmp::ULT: predicate = P::ICMP_ULT; break;
  case Cmp::UGT: predicate = P::ICMP_UGT; break;
  case Cmp::UNORDERED: predicate = P::FCMP_UNO; break;
  }
  return made(impl_.ir.CreateCmp(predicate, raw(a), raw(b)), Ty::I1, a.lanes);
}

Value Builder::select(Value condition, Value a, Value b) {
  meet(*this, a, b), meet(*this, condition, a), meet(*this, a, b), meet(*this, b, condition),
      meet(*this, a, b);
  return made(impl_.ir.CreateSelect(raw(condition), raw(a), raw(b)), a.ty, a.lanes);
}

namespace {

/// Part k of `bits` bits of each lane, from the lowest one on, as a number.
Value partOf(Builder& b, Value v, int k, int bits, bool isSigned) {
  const int width = 8 * sizeOf(v.ty);
  const Value high = b.shl(v, b.integer(v.ty, width - bits * (k + 1)));
  return b.shr(high, b.integer(v.ty, width - bits), isSigned);
}

} // namespace

/// acc plus the products of the parts of a and b in each lane; those of b are signed.
Value Builder::dotParts(Value acc, Value a, Value b, int bits, bool aIsSigned) {
  for (int k = 0; k < 8 * sizeOf(a.ty) / bits; ++k)
    acc = add(acc, mul(partOf(*this, a, k, bits, aIsSigned), partOf(*this, b, k, bits, true)));
  return acc;
}

/// Sums of products in each lane, of 32 bits, by the pairs of i16 that `pairs` takes a lane apart
/// to.
Value Builder::dotLanes(Value acc, Value a, Value b,
                        const std::function<Values(Value, bool isSigned)>& pairs) {
  Value sums = acc;
  for (int k = 0; k < acc.lanes; ++k) {
    const Values x = pairs(extract(a, k), false), y = pairs(extract(b, k), true);
    llvm::Value* sum = raw(extract(acc, k));
    for (size_t p = 0; p < x.size(); ++p)
      sum = impl_.ir.CreateIntrinsic(llvm::Intrinsic::arm_smlad, {}, {raw(x[p]), raw(y[p]), sum});
    sums = acc.lanes == 1
               ? made(sum, Ty::I32, 1)
               : made(impl_.ir.CreateInsertElement(raw(sums), sum, static_cast<uint64_t>(k)),
                      Ty::I32, acc.lanes);
  }
  return sums;
}

/// Products of four with s8 by instructions of 64-bit ARM, which sum four lanes at a time.
Value Builder::dotQuads(Value acc, Value a, Value b, bool aIsSigned) {
  const auto quad = [&](Value v, int first) {
    return shuffle(v, v, {first, first + 1, first + 2, first + 3});
  };
  const auto dot = [&](ID id, Value sum, Value x, Value y) {
    const auto bytes = [&](Value v) { return raw(reinterpret(v, Ty::I8, 16)); };
    llvm::Type* types[] = {impl_.type(Ty::I32, 4), impl_.type(Ty::I8, 16)};
    return made(impl_.ir.CreateIntrinsic(id, types, {raw(sum), bytes(x), bytes(y)}), Ty::I32, 4);
  };
  Values sums;
  for (int first = 0; first < acc.lanes; first += 4) {
    const Value sum = quad(acc, first), x = quad(a, first), y = quad(b, first);
    if (isa().hasDot4) {
      sums.push_back(dot(llvm::Intrinsic::aarch64_neon_usdot, sum, x, y));
      continue;
    }
    if (aIsSigned) {
      sums.push_back(dot(llvm::Intrinsic::aarch64_neon_sdot, sum, x, y));
      continue;
    }
    // a = (a - 128) + 128: the second part is a sum of b, which stays the same for many a.
    const Value ones = splat(i32(0x01010101), 4), signs = splat(i32(INT32_MIN | 0x00808080), 4);
    const Value ofB =
        shl(dot(llvm::Intrinsic::aarch64_neon_sdot, zero(Ty::I32, 4), ones, y), splat(i32(7), 4));
    sums.push_back(dot(llvm::Intrinsic::aarch64_neon_sdot, add(sum, ofB), bitXor(x, signs), y));
  }
  if (sums.size() == 1) return sums[0];
  return shuffle(sums[0], sums[1], {0, 1, 2, 3, 4, 5, 6, 7});
}

Value Builder::dot2(Value a, Value b) {
  meet(*this, a, b);
  const auto words = [&](Value v) { return reinterpret(v, Ty::I16, v.lanes * 2); };
  if (isa().arch == Arch::THUMB)
    return dotLanes(zero(Ty::I32, a.lanes), a, b, [](Value lane, bool) { return Values{lane}; });
  if (isa().arch == Arch::WASM32 && a.lanes == 4)
    return made(
        impl_.ir.CreateIntrinsic(llvm::Intrinsic::wasm_dot, {}, {raw(words(a)), raw(words(b))}),
        Ty::I32, a.lanes);
  if (isa().arch != Arch::X86) return dotParts(zero(Ty::I32, a.lanes), a, b, 16, true);
  const ID id =
      a.lanes == 16 ? llvm::Intrinsic::x86_avx512_pmaddw_d_512 : llvm::Intrinsic::x86_avx2_pmadd_wd;
  return made(impl_.ir.CreateIntrinsic(id, {}, {raw(words(a)), raw(words(b))}), Ty::I32, a.lanes);
}

Value Builder::dotPairs(Value a, Value b) {
  meet(*this, a, b);
  const auto bytes = [&](Value v) { return reinterpret(v, Ty::I8, v.lanes * 4); };
  if (isa().arch != Arch::X86) { // within i16 the sum needs no saturation
    const auto halves = [&](Value v) { return reinterpret(v, Ty::I16, v.lanes * 2); };
    return dotParts(zero(Ty::I16, a.lanes * 2), halves(a), halves(b), 8, false);
  }
  const ID id = a.lanes == 16 ? llvm::Intrinsic::x86_avx512_pmaddubs_w_512
                              : llvm::Intrinsic::x86_avx2_pmadd_ub_sw;
  return made(impl_.ir.CreateIntrinsic(id, {}, {raw(bytes(a)), raw(bytes(b))}), Ty::I16,
              a.lanes * 2);
}

/// Named after AVX-512; LLVM writes AVX-VNNI's of them where that is what there is.
static ID dotOf(int lanes) {
  if (lanes == 16) return llvm::Intrinsic::x86_avx512_vpdpbusd_512;
  return lanes == 8 ? llvm::Intrinsic::x86_avx512_vpdpbusd_256
                    : llvm::Intrinsic::x86_avx512_vpdpbusd_128;
}

Value Builder::dot4(Value acc, Value a, Value b) {
  meet(*this, acc, a), meet(*this, acc, b), meet(*this, a, b);
  const bool hasQuads = isa().arch == Arch::ARM64 && (isa().hasDot4 || isa().hasSignedDot4);
  if (hasQuads && (acc.lanes == 4 || acc.lanes == 8)) return dotQuads(acc, a, b, false);
  if (isa().arch == Arch::THUMB)
    return dotLanes(acc, a, b, [&](Value lane, bool isSigned) {
      const ID widen = isSigned ? llvm::Intrinsic::arm_sxtb16 : llvm::Intrinsic::arm_uxtb16;
      const Value turned = bitOr(shr(lane, i32(8), false), shl(lane, i32(24)));
      const auto pair = [&](Value v) {
        return made(impl_.ir.CreateIntrinsic(widen, {}, {raw(v)}), Ty::I32, 1);
      };
      return Values{pair(lane), pair(turned)};
    });
  const bool isWeb = isa().arch == Arch::WASM32 && acc.lanes == 4;
  if (isa().arch != Arch::X86 && !isWeb) return dotParts(acc, a, b, 8, false);
  const bool isVector = acc.lanes == 16 || acc.lanes == 8 || acc.lanes == 4;
  if (isa().hasDot4 && isVector)
    return made(impl_.ir.CreateIntrinsic(dotOf(acc.lanes), {}, {raw(acc), raw(a), raw(b)}), Ty::I32,
                acc.lanes);
  // The even and the odd bytes as i16 (u8 * s8 needs 17 bits only in a sum of two, which pmaddwd
  // makes in 32): exact, unlike vpmaddubsw, which saturates.
  const int words = acc.lanes * 2;
  const Value a16 = reinterpret(a, Ty::I16, words), b16 = reinterpret(b, Ty::I16, words),
              eight = integer(Ty::I16, 8);
  const Value aEven = bitAnd(a16, integer(Ty::I16, 255)), aOdd = shr(a16, eight, false);
  const Value bEven = shr(shl(b16, eight), eight, true), bOdd = shr(b16, eight, true);
  const auto pairs = [&](Value x, Value y) {
    if (acc.lanes == 16 || acc.lanes == 8 || isWeb)
      return dot2(reinterpret(x, Ty::I32, acc.lanes), reinterpret(y, Ty::I32, acc.lanes));
    std::vector<int> even, odd;
    for (int k = 0; k < acc.lanes; ++k) even.push_back(2 * k), odd.push_back(2 * k + 1);
    const auto half = [&](Value v, const std::vector<int>& which) {
      return cast(shuffle(v, v, which), Ty::I32, true);
    };
    return add(mul(half(x, even), half(y, even)), mul(half(x, odd), half(y, odd)));
  };
  return add(acc, add(pairs(aEven, bEven), pairs(aOdd, bOdd)));
}

Value Builder::dotBytes(Value acc, Value a, Value b) {
  if (!isa().hasSignedDot4) return dot4(acc, a, b);
  meet(*this, acc, a), meet(*this, acc, b), meet(*this, a, b);
  return dotQuads(acc, a, b, true);
}

Value Builder::dotBF16(Value acc, Value a, Value b) {
  meet(*this, acc, a), meet(*this, acc, b), meet(*this, a, b);
  if (isa().hasBF16 && acc.lanes == 16) {
    llvm::Type* pairs = llvm::FixedVectorType::get(impl_.ir.getBFloatTy(), acc.lanes * 2);
    const auto asPairs = [&](Value v) { return impl_.ir.CreateBitCast(raw(v), pairs); };
    return made(impl_.ir.CreateIntrinsic(llvm::Intrinsic::x86_avx512bf16_dpbf16ps_512, {},
                                         {raw(acc), asPairs(a), asPairs(b)}),
                Ty::F32, acc.lanes);
  }
  // A bf16 is the upper half of the f32 that it is.
  const auto low = [&](Value v) { return bitcast(shl(v, i32(16)), Ty::F32); };
  const auto high = [&](Value v) {
    return bitcast(bitAnd(v, i32(static_cast<int32_t>(0xffff0000u))), Ty::F32);
  };
  return fma(high(a), high(b), fma(low(a), low(b), acc));
}

// ---- Tiles

void Builder::tileConfig(Value pointer) {
  impl_.ir.CreateIntrinsic(llvm::Intrinsic::x86_ldtilecfg, {}, {raw(pointer)});
}
void Builder::tileRelease() { impl_.ir.CreateIntrinsic(llvm::Intrinsic::x86_tilerelease, {}, {}); }
void Builder::tileZero(int tile) {
  impl_.ir.CreateIntrinsic(llvm::Intrinsic::x86_tilezero, {}, {raw(integer(Ty::I8, tile))});
}
void Builder::tileLoad(int tile, Value pointer, Value rowBytes, bool isStreamed) {
  const ID id = isStreamed ? llvm::Intrinsic::x86_tileloaddt164 : llvm::Intrinsic::x86_tileloadd64;
  impl_.ir.CreateIntrinsic(id, {}, {raw(integer(Ty::I8, tile)), raw(pointer), raw(rowBytes)});
}
void Builder::tileStore(int tile, Value pointer, Value rowBytes) {
  impl_.ir.CreateIntrinsic(llvm::Intrinsic::x86_tilestored64, {},
                           {raw(integer(Ty::I8, tile)), raw(pointer), raw(rowBytes)});
}
void Builder::tileDot(int acc, int a, int b, bool aIsSigned) {
  const ID id = aIsSigned ? llvm::Intrinsic::x86_tdpbssd : llvm::Intrinsic::x86_tdpbusd;
  impl_.ir.CreateIntrinsic(
      id, {}, {raw(integer(Ty::I8, acc)), raw(integer(Ty::I8, a)), raw(integer(Ty::I8, b))});
}
void Builder::tileDotBF16(int acc, int a, int b) {
  impl_.ir.CreateIntrinsic(
      llvm::Intrinsic::x86_tdpbf16ps, {},
      {raw(integer(Ty::I8, acc)), raw(integer(Ty::I8, a)), raw(integer(Ty::I8, b))});
}

// ---- Conversions

Value Builder::cast(Value a, Ty ty, bool isSigned) {
  if (a.ty == ty) return a;
  // LLVM 19 makes table look-ups of truncations to bytes in loops on AArch64, and crashes at some.
  const bool isTable = isa().arch == Arch::ARM64 && ty == Ty::I8 && !isFloat(a.ty);
  if (isTable && sizeOf(a.ty) > 2) a = cast(a, Ty::I16, isSigned);
  llvm::Type* to = impl_.type(ty, a.lanes);
  llvm::Value* value = nullptr;
  if (isFloat(a.ty))
    value = impl_.ir.CreateFPCast(raw(a), to);
  else if (isFloat(ty))
    value = isSigned ? impl_.ir.CreateSIToFP(raw(a), to) : impl_.ir.CreateUIToFP(raw(a), to);
  else
    value = impl_.ir.CreateIntCast(raw(a), to, isSigned);
  return made(value, ty, a.lanes);
}

Value Builder::toInteger(Value a, Ty ty, bool isSigned) {
  llvm::Type* to = impl_.type(ty, a.lanes);
  if (a.lanes == 1)
    return made(impl_.ir.CreateIntrinsic(isSigned ? llvm::Intrinsic::fptosi_sat
                                                  : llvm::Intrinsic::fptoui_sat,
                                         {to, raw(a)->getType()}, {raw(a)}),
                ty, 1);
  // LLVM takes vectors apart for the saturating intrinsics.
  const int width = sizeOf(ty) * 8;
  const Value end = real(a.ty, std::ldexp(1.0, isSigned ? width - 1 : width)); // above the highest
  const Value below = isSigned ? neg(end) : real(a.ty, -1);
  const Value isHigh = compare(Cmp::GE, a, end),
              isLow = compare(isSigned ? Cmp::LT : Cmp::LE, a, below);
  const Value isInside =
      bitAnd(compare(isSigned ? Cmp::GE : Cmp::GT, a, below), compare(Cmp::LT, a, end));
  const Value safe = select(isInside, a, zero(a.ty, a.lanes));
  llvm::Value* whole =
      isSigned ? impl_.ir.CreateFPToSI(raw(safe), to) : impl_.ir.CreateFPToUI(raw(safe), to);
  const auto limit = [&](const llvm::APInt& bits) {
    return made(llvm::ConstantInt::get(to, bits), ty, a.lanes);
  };
  const auto bits = static_cast<unsigned>(width);
  Value value = select(
      isHigh,
      limit(isSigned ? llvm::APInt::getSignedMaxValue(bits) : llvm::APInt::getMaxValue(bits)),
      made(whole, ty, a.lanes));
  return select(
      isLow, limit(isSigned ? llvm::APInt::getSignedMinValue(bits) : llvm::APInt(bits, 0)), value);
}

Value Builder::truncated(Value a, Ty ty) {
  return made(impl_.ir.CreateFPToSI(raw(a), impl_.type(ty, a.lanes)), ty, a.lanes);
}
Value Builder::fromF16(Value bits) {
  llvm::Value* halves = impl_.ir.CreateBitCast(raw(bits), halfType(impl_.ir, bits.lanes));
  return made(impl_.ir.CreateFPExt(halves, impl_.type(Ty::F32, bits.lanes)), Ty::F32, bits.lanes);
}
Value Builder::toF16(Value a) {
  llvm::Value* halves = impl_.ir.CreateFPTrunc(raw(a), halfType(impl_.ir, a.lanes));
  return made(impl_.ir.CreateBitCast(halves, impl_.type(Ty::I16, a.lanes)), Ty::I16, a.lanes);
}
Value Builder::toBF16(Value a) {
  llvm::Value* halves =
      impl_.ir.CreateIntrinsic(llvm::Intrinsic::x86_avx512bf16_cvtneps2bf16_512, {}, {raw(a)});
  return made(impl_.ir.CreateBitCast(halves, impl_.type(Ty::I16, a.lanes)), Ty::I16, a.lanes);
}
Value Builder::bitcast(Value a, Ty ty) {
  return made(impl_.ir.CreateBitCast(raw(a), impl_.type(ty, a.lanes)), ty, a.lanes);
}
Value Builder::reinterpret(Value a, Ty ty, int lanes) {
  return made(impl_.ir.CreateBitCast(raw(a), impl_.type(ty, lanes)), ty, lanes);
}

// ---- Lanes

Value Builder::extract(Value vector, int lane) {
  if (vector.lanes == 1) return vector;
  return made(impl_.ir.CreateExtractElement(raw(vector), static_cast<uint64_t>(lane)), vector.ty,
              1);
}
Value Builder::shuffle(Value a, Value b, const std::vector<int>& index) {
  return made(impl_.ir.CreateShuffleVector(raw(a), raw(b), index), a.ty,
              static_cast<int>(index.size()));
}
Value Builder::permute(Value table, Value index) {
  if (isa().arch != Arch::X86) {
    Value all = zero(table.ty, table.lanes);
    const Value low = bitAnd(index, i32(table.lanes - 1));
    for (int k = 0; k < table.lanes; ++k)
      all.raw = impl_.ir.CreateInsertElement(
          raw(all), impl_.ir.CreateExtractElement(raw(table), raw(extract(low, k))),
          static_cast<uint64_t>(k));
    return all;
  }
  const ID id = table.lanes == 16 ? llvm::Intrinsic::x86_avx512_permvar_sf_512
                                  : llvm::Intrinsic::x86_avx2_permps;
  return made(impl_.ir.CreateIntrinsic(id, {}, {raw(table), raw(index)}), Ty::F32, table.lanes);
}
Value Builder::reduce(Value vector, const std::function<Value(Value, Value)>& fn) {
  while (vector.lanes > 1) {
    std::vector<int> low, high;
    for (int k = 0; k < vector.lanes / 2; ++k)
      low.push_back(k), high.push_back(vector.lanes / 2 + k);
    if (low.size() == 1)
      vector = fn(extract(vector, 0), extract(vector, 1));
    else
      vector = fn(shuffle(vector, vector, low), shuffle(vector, vector, high));
  }
  return vector;
}

// ---- Control

Values Builder::loop(Value from, Value to, int64_t step, Values carried,
                     const std::function<Values(Value, const Values&)>& body) {
  llvm::IRBuilder<>& ir = impl_.ir;
  llvm::BasicBlock* before = ir.GetInsertBlock();
  llvm::BasicBlock* inside = llvm::BasicBlock::Create(impl_.context, "loop", impl_.function);
  llvm::BasicBlock* after = llvm::BasicBlock::Create(impl_.context, "done", impl_.function);
  llvm::Type* counter = countsInWords(isa()) ? ir.getInt32Ty() : ir.getInt64Ty();
  llvm::Value* first = ir.CreateTrunc(raw(from), counter);
  llvm::Value* last = ir.CreateTrunc(raw(to), counter);
  const auto* firstKnown = llvm::dyn_cast<llvm::ConstantInt>(first);
  const auto* lastKnown = llvm::dyn_cast<llvm::ConstantInt>(last);
  const bool runs =
      firstKnown && lastKnown && firstKnown->getSExtValue() < lastKnown->getSExtValue();
  if (runs)
    ir.CreateBr(inside);
  else
    ir.CreateCondBr(ir.CreateICmpSLT(first, last), inside, after);

  ir.SetInsertPoint(inside);
  llvm::PHINode* index = ir.CreatePHI(counter, 2);
  index->addIncoming(first, before);
  std::vector<llvm::PHINode*> phis;
  Values inner;
  for (const Value& v : carried) {
    phis.push_back(ir.CreatePHI(raw(v)->getType(), 2));
    phis.back()->addIncoming(raw(v), before);
    inner.push_back(made(phis.back(), v.ty, v.lanes));
  }
  const Values out = body(made(ir.CreateSExt(index, ir.getInt64Ty()), Ty::I64, 1), inner);
  llvm::BasicBlock* latch = ir.GetInsertBlock();
  llvm::Value* next =
      ir.CreateNSWAdd(index, llvm::ConstantInt::get(counter, static_cast<uint64_t>(step)));
  index->addIncoming(next, latch);
  for (size_t i = 0; i < phis.size(); ++i) phis[i]->addIncoming(raw(out[i]), latch);
  ir.CreateCondBr(ir.CreateICmpSLT(next, last), inside, after);

  ir.SetInsertPoint(after);
  if (runs) return out;
  Values result;
  for (size_t i = 0; i < carried.size(); ++i) {
    llvm::PHINode* phi = ir.CreatePHI(raw(out[i])->getType(), 2);
    phi->addIncoming(raw(carried[i]), before);
    phi->addIncoming(raw(out[i]), latch);
    result.push_back(made(phi, out[i].ty, out[i].lanes));
  }
  return result;
}

Values Builder::loop(int64_t count, Values carried,
                     const std::function<Values(Value, const Values&)>& body) {
  if (count == 1) return body(i64(0), carried);
  return loop(i64(0), i64(count), 1, std::move(carried), body);
}

void Builder::loop(Value from, Value to, int64_t step, const std::function<void(Value)>& body) {
  loop(from, to, step, {}, [&](Value i, const Values&) {
    body(i);
    return Values{};
  });
}

void Builder::when(Value condition, const std::function<void()>& body) {
  llvm::BasicBlock* inside = llvm::BasicBlock::Create(impl_.context, "when", impl_.function);
  llvm::BasicBlock* after = llvm::BasicBlock::Create(impl_.context, "after", impl_.function);
  impl_.ir.CreateCondBr(raw(condition), inside, after);
  impl_.ir.SetInsertPoint(inside);
  body();
  impl_.ir.CreateBr(after);
  impl_.ir.SetInsertPoint(after);
}

void Builder::leaveWhen(Value condition, int32_t result) {
  llvm::BasicBlock* leaving = llvm::BasicBlock::Create(impl_.context, "leave", impl_.function);
  llvm::BasicBlock* after = llvm::BasicBlock::Create(impl_.context, "after", impl_.function);
  impl_.ir.CreateCondBr(raw(condition), leaving, after);
  impl_.ir.SetInsertPoint(leaving);
  impl_.ir.CreateRet(raw(i32(result)));
  impl_.ir.SetInsertPoint(after);
}

void Builder::callKernel(const std::string& name, Value args, Value begin, Value end) {
  impl_.ir.CreateCall(impl_.function->getParent()->getFunction(name),
                      {raw(args), raw(begin), raw(end)});
}

Value Builder::addressOf(Value pointer) {
  return made(impl_.ir.CreatePtrToInt(raw(pointer), impl_.ir.getInt64Ty()), Ty::I64, 1);
}

Value Builder::systemRegister(const std::string& name) {
  llvm::Type* word = impl_.ir.getInt64Ty();
  auto* instruction =
      llvm::InlineAsm::get(llvm::FunctionType::get(word, false), "mrs $0, " + name, "=r", true);
  return made(impl_.ir.CreateCall(instruction), Ty::I64, 1);
}

Values Builder::cpuid(uint32_t leaf, uint32_t subleaf) {
  llvm::Type* word = impl_.ir.getInt32Ty();
  auto* all = llvm::StructType::get(word, word, word, word);
  auto* instruction =
      llvm::InlineAsm::get(llvm::FunctionType::get(all, {word, word}, false), "cpuid",
                           "={ax},={bx},={cx},={dx},{ax},{cx},~{dirflag},~{fpsr},~{flags}", true);
  llvm::Value* words =
      impl_.ir.CreateCall(instruction, {impl_.ir.getInt32(leaf), impl_.ir.getInt32(subleaf)});
  Values found;
  for (unsigned w = 0; w < 4; ++w)
    found.push_back(made(impl_.ir.CreateExtractValue(words, w), Ty::I32, 1));
  return found;
}

Value Builder::savedRegisters() {
  llvm::Type* word = impl_.ir.getInt32Ty();
  auto* instruction = llvm::InlineAsm::get(
      llvm::FunctionType::get(llvm::StructType::get(word, word), {word}, false), "xgetbv",
      "={ax},={dx},{cx},~{dirflag},~{fpsr},~{flags}", true);
  llvm::Value* words = impl_.ir.CreateCall(instruction, {impl_.ir.getInt32(0)});
  return made(impl_.ir.CreateExtractValue(words, 0U), Ty::I32, 1);
}

} // namespace cpu
