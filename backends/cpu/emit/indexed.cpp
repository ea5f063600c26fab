// GATHER, SCATTER and TABLE: positions that only the data knows.
#include "arithmetic.hpp"
#include "instructions.hpp"
#include "map.hpp"

namespace cpu {

namespace {

Ty tyOf(uint8_t elem) {
  Ty ty = Ty::I64;
  typeOf(elem, ty);
  return ty;
}

bool emitTable(Lowering& lowering, const std::vector<Operand>& in, std::string& why) {
  const Operand &x = in[0], &table = in[1], &y = in[2];
  const bool isWide = x.elem == CDL_I16;
  if (!isWide && x.elem != CDL_I8 && x.elem != CDL_U8) return why = "its element type", false;
  if (x.elements() == 0) return true;
  if (!table.isDense() || !x.isDense() || !y.isDense()) return why = "strides", false;
  const int64_t count = x.elements(), chunk = 4096, units = (count + chunk - 1) / chunk;
  Key key("table");
  key << x.elem << count;
  lowering.call(key.text(), static_cast<uint64_t>(units), {x.at, table.at, y.at}, [&](Builder& b) {
    const Value from = b.mul(b.begin(), b.i64(chunk)),
                to = b.min(b.mul(b.end(), b.i64(chunk)), b.i64(count));
    b.loop(from, to, 1, [&](Value i) {
      const int64_t size = isWide ? 2 : 1;
      const Value position = b.mul(i, b.i64(size));
      const Value v = b.load(tyOf(x.elem), 1, b.at(b.arg(0), position));
      if (!isWide) {
        Value index = b.cast(v, Ty::I64, x.elem == CDL_I8);
        if (x.elem == CDL_I8) index = b.add(index, b.i64(128));
        return b.store(b.load(Ty::I8, 1, b.at(b.arg(1), index)), b.at(b.arg(2), position));
      }
      // 513 entries, 128 apart: to nearest between neighbours, halves up.
      const Value from0 = b.add(b.cast(v, Ty::I32, true), b.i32(32768));
      const Value entry =
          b.at(b.arg(1), b.shl(b.cast(b.shr(from0, b.i32(7), false), Ty::I64, false), b.i64(1)));
      const Value base = b.cast(b.load(Ty::I16, 1, entry), Ty::I32, true);
      const Value next = b.cast(b.load(Ty::I16, 1, entry, 2), Ty::I32, true);
      const Value part = b.mul(b.sub(next, base), b.bitAnd(from0, b.i32(127)));
      const Value value = b.add(base, b.shr(b.add(part, b.i32(64)), b.i32(7), true));
      b.store(b.cast(value, Ty::I16, true), b.at(b.arg(2), position));
    });
  });
  return true;
}

} // namespace

bool emitIndexed(Lowering& lowering, const cdl_instr_t& instr, std::string& why) {
  const std::vector<Operand> in = operandsOf(lowering, instr);
  if (instr.kind == CDL_KIND_TABLE) return emitTable(lowering, in, why);
  const bool isGather = instr.kind == CDL_KIND_GATHER;
  const Operand& index = isGather ? in[1] : in[0];
  const Operand& source = isGather ? in[0] : in[1]; // x[O,N,I], or updates[O,K,I]
  const Operand& y = in[2];
  Ty ty;
  if (!typeOf(y.elem, ty) || (index.elem != CDL_I32 && index.elem != CDL_I64))
    return why = "its element types", false;
  const Operand& table = isGather ? source : y; // what is addressed by index
  const int64_t outer = y.dims[0], size = table.dims[1], count = index.dims[0], inner = y.dims[2];
  if (outer * inner == 0) return true;
  const uint16_t fn = instr.fn;
  if (isGather && fn == CDL_GATHER_CLAMP && size == 0 && count > 0)
    return why = "an index into an axis of nothing", false;
  Key key(isGather ? "gather" : "scatter");
  key << fn << index.elem << index.strides[0] << count;
  for (const Operand* o : {&source, &y}) {
    key << o->elem;
    for (int d = 0; d < 3; ++d) key << o->dims[d] << o->strides[d];
  }
  const int lanes = lowering.isa.lanes(sizeOf(ty));
  const bool isDense = source.strides[2] == 1 && y.strides[2] == 1;

  // Gather: a unit is one row of y. Scatter: updates of one place keep their order within a unit.
  const int64_t units = isGather ? outer * count : outer;
  lowering.call(
      key.text(), static_cast<uint64_t>(units), {in[0].at, in[1].at, y.at}, [&](Builder& b) {
        const Value sourceBase = b.arg(isGather ? 0 : 1), indexBase = b.arg(isGather ? 1 : 0),
                    yBase = b.arg(2);
        const auto rowOf = [&](const Operand& o, Value base, Value first, Value second) {
          return b.at(b.at(base, b.mul(first, b.i64(o.bytes(o.strides[0])))),
                      b.mul(second, b.i64(o.bytes(o.strides[1]))));
        };
        const auto positionOf = [&](Value k) {
          const Value at = b.at(indexBase, b.mul(k, b.i64(index.bytes(index.strides[0]))));
          return b.cast(b.load(tyOf(index.elem), 1, at), Ty::I64, true);
        };
        const auto isInside = [&](Value position) {
          return b.bitAnd(b.compare(Cmp::GE, position, b.i64(0)),
                          b.compare(Cmp::LT, position, b.i64(size)));
        };
        const auto each = [&](const std::function<void(Value, int)>& body) {
          const int width = isDense ? lanes : 1;
          const int64_t whole = inner / width * width;
          if (whole) b.loop(b.i64(0), b.i64(whole), width, [&](Value i) { body(i, width); });
          if (whole < inner) b.loop(b.i64(whole), b.i64(inner), 1, [&](Value i) { body(i, 1); });
        };
        const auto at = [&](const Operand& o, Value row, Value i) {
          return b.at(row, b.mul(i, b.i64(o.bytes(o.strides[2]))));
        };

        if (isGather) {
          b.loop(b.begin(), b.end(), 1, [&](Value unit) {
            const Value o = b.div(unit, b.i64(count), false), k = b.rem(unit, b.i64(count), false);
            const Value position = positionOf(k), to = rowOf(y, yBase, o, k);
            const auto move = [&](Value which) {
              const Value from = rowOf(source, sourceBase, o, which);
              each([&](Value i, int width) {
                b.storeStrided(
                    b.loadStrided(ty, width, at(source, from, i), source.bytes(source.strides[2])),
                    at(y, to, i), y.bytes(y.strides[2]));
              });
            };
            if (fn == CDL_GATHER_CLAMP)
              return move(b.max(b.min(position, b.i64(size - 1)), b.i64(0)));
            const Value inside = isInside(position);
            b.when(inside, [&] { move(position); });
            b.when(b.bitNot(inside), [&] {
              each([&](Value i, int width) {
                b.storeStrided(b.zero(ty, width), at(y, to, i), y.bytes(y.strides[2]));
              });
            });
          });
          return;
        }
        b.loop(b.begin(), b.end(), 1, [&](Value o) {
          b.loop(b.i64(0), b.i64(count), 1, [&](Value k) {
            const Value position = positionOf(k);
            b.when(isInside(position), [&] {
              const Value from = rowOf(source, sourceBase, o, k), to = rowOf(y, yBase, o, position);
              each([&](Value i, int width) {
                Value v =
                    b.loadStrided(ty, width, at(source, from, i), source.bytes(source.strides[2]));
                const Value there = at(y, to, i);
                if (fn != CDL_SCATTER_SET) {
                  const Value old = b.loadStrided(ty, width, there, y.bytes(y.strides[2]));
                  // true + true is true
                  const bool isSigned = isSignedElem(y.elem), isBool = y.elem == CDL_BOOL;
                  v = fn == CDL_SCATTER_ADD   ? (isBool ? b.bitOr(old, v) : b.add(old, v))
                      : fn == CDL_SCATTER_MUL ? b.mul(old, v)
                      : fn == CDL_SCATTER_MIN ? b.min(old, v, isSigned)
                                              : b.max(old, v, isSigned);
                }
                b.storeStrided(v, there, y.bytes(y.strides[2]));
              });
            });
          });
        });
      });
  return true;
}

} // namespace cpu
