// Everything that goes element by element, as steps over views: one work-item computes up to 16 neighbours of a row.
//
// p[]: 0 rank, 1 parts of a row, 2 rows, 3 steps, 4 first step, 5 a's left shift, 6 b's, 7 clamp from, 8 to, 9.. dims;
// from 17 on the views, y first, ten each: byte offset, element type, strides in elements;
// from p[4] on the steps, twelve each: kind, function, type of the operands, of the value, saturate, six sources, bits.
#define STEP_WORDS 12
#define VIEW_WORDS 10
#define FIRST_VIEW 17
// Sources: below 32 an earlier step, from 64 on a view.
#define FROM_VIEW 64
#define FROM_BITS 128

// Kinds, as cdl_enums.h counts them.
#define COPY 1
#define CONVERT 3
#define BINARY 4
#define COMPARE 5
#define SELECT 6
#define UNARY 11
#define RESCALE 12
#define TABLE 13

#define N 16
#define EACH for (int e = 0; e < N; ++e)
#define FLOAT(x) as_float(x)

typedef struct {
  long at[8]; // coordinates of the row, and of its first element
  int rank, count;
} Place;

long elementOf(constant const long* view, const Place* place) {
  long at = 0;
  for (int d = 0; d < place->rank; ++d) at += place->at[d] * view[2 + d];
  return at;
}

void loadRow(global const uchar* base, constant const long* view, const Place* place, int* to) {
  const long elem = view[1], stride = view[1 + place->rank];
  global const uchar* from = base + view[0] + elementOf(view, place) * bytesOf(elem);
  if (stride == 0) {
    const int value = load(from, elem);
    EACH to[e] = value;
  } else if (stride == 1 && place->count == N) {
    if (elem == F32 || elem == I32) EACH to[e] = ((global const int*)from)[e];
    else if (elem == I8) EACH to[e] = ((global const char*)from)[e];
    else EACH to[e] = from[e];
  } else {
    const long step = stride * bytesOf(elem);
    for (int e = 0; e < place->count; ++e) to[e] = load(from + e * step, elem);
    for (int e = place->count; e < N; ++e) to[e] = 0;
  }
}

void storeRow(global uchar* base, constant const long* view, const Place* place, const int* from) {
  const long elem = view[1], step = view[1 + place->rank] * bytesOf(elem);
  global uchar* to = base + view[0] + elementOf(view, place) * bytesOf(elem);
  if (step == 4 && place->count == N) EACH ((global int*)to)[e] = from[e];
  else for (int e = 0; e < place->count; ++e) store(to + e * step, elem, from[e]);
}

// The low bits of an integer in its type.
int wrapped(int x, long elem) { return elem == I8 ? (int)(char)x : elem == I32 ? x : (int)(uchar)x; }

int divide(int a, int b) { return b == 0 ? 0 : b == -1 ? (int)(0u - (uint)a) : a / b; }
int remainder_(int a, int b) { return b == 0 ? a : b == -1 ? 0 : a % b; }

void binary(long fn, long elem, const int* a, const int* b, int* y) {
  if (elem == F32) {
    switch (fn) {
    case 0: EACH y[e] = as_int(FLOAT(a[e]) + FLOAT(b[e])); break;
    case 1: EACH y[e] = as_int(FLOAT(a[e]) - FLOAT(b[e])); break;
    case 2: EACH y[e] = as_int(FLOAT(a[e]) * FLOAT(b[e])); break;
    case 3: EACH y[e] = as_int(FLOAT(a[e]) / FLOAT(b[e])); break;
    case 4: EACH y[e] = as_int(minFloat(FLOAT(a[e]), FLOAT(b[e]))); break;
    case 5: EACH y[e] = as_int(maxFloat(FLOAT(a[e]), FLOAT(b[e]))); break;
    }
    return;
  }
  const uint width = elem == I32 ? 32 : 8;
  switch (fn) {
  case 0: EACH y[e] = (int)((uint)a[e] + (uint)b[e]); break;
  case 1: EACH y[e] = (int)((uint)a[e] - (uint)b[e]); break;
  case 2: EACH y[e] = (int)((uint)a[e] * (uint)b[e]); break;
  case 3: EACH y[e] = divide(a[e], b[e]); break;
  case 4: EACH y[e] = min(a[e], b[e]); break;
  case 5: EACH y[e] = max(a[e], b[e]); break;
  case 6: EACH y[e] = a[e] & b[e]; break;
  case 7: EACH y[e] = a[e] | b[e]; break;
  case 8: EACH y[e] = a[e] ^ b[e]; break;
  case 9: EACH y[e] = (uint)b[e] < width ? (int)((uint)a[e] << (b[e] & 31)) : 0; break;
  case 10: EACH y[e] = (uint)b[e] < width ? a[e] >> (b[e] & 31) : a[e] >> 31; break;
  case 12: EACH y[e] = remainder_(a[e], b[e]); break;
  }
  if (elem != I32) EACH y[e] = wrapped(y[e], elem);
}

// exp of the negative magnitude only, so that neither tail overflows on the way.
float sigmoid(float x) {
  const float t = exp(-fabs(x));
  return x < 0 ? t / (1 + t) : 1 / (1 + t);
}

void unary(long fn, long elem, const int* x, int* y) {
  if (elem != F32) { // neg and abs
    EACH y[e] = wrapped(fn == 0 || x[e] < 0 ? (int)(0u - (uint)x[e]) : x[e], elem);
    return;
  }
  switch (fn) {
  case 0: EACH y[e] = x[e] ^ (int)0x80000000; break;
  case 1: EACH y[e] = x[e] & 0x7fffffff; break;
  case 2: EACH y[e] = as_int(floor(FLOAT(x[e]))); break;
  case 3: EACH y[e] = as_int(sqrt(FLOAT(x[e]))); break;
  case 4: EACH y[e] = as_int(1.0f / FLOAT(x[e])); break;
  case 5: EACH y[e] = as_int(exp(FLOAT(x[e]))); break;
  case 6: EACH y[e] = as_int(log(FLOAT(x[e]))); break;
  case 7: EACH y[e] = as_int(ceil(FLOAT(x[e]))); break;
  case 8: EACH y[e] = as_int(trunc(FLOAT(x[e]))); break;
  case 9: EACH y[e] = as_int(rint(FLOAT(x[e]))); break;
  case 10: EACH y[e] = as_int(1.0f / sqrt(FLOAT(x[e]))); break;
  case 16: EACH y[e] = as_int(tanh(FLOAT(x[e]))); break;
  case 17: EACH y[e] = as_int(erf(FLOAT(x[e]))); break;
  case 18: EACH y[e] = as_int(sigmoid(FLOAT(x[e]))); break;
  }
}

// x, rounded by now, in 64 bits: clamped to -2^63 .. 2^64 - 1, of which wrapping keeps the low ones; NaN gives 0.
ulong wide(float x) {
  if (x != x) return 0;
  if (x >= 0x1p64f) return 0xffffffffffffffffUL;
  if (x >= 0x1p63f) return (ulong)x;
  return x <= -0x1p63f ? 0x8000000000000000UL : (ulong)(long)x;
}

int toInteger(float x, long rounding, int saturate, int lowest, int highest) {
  x = rounding == 0 ? trunc(x) : rounding == 1 ? rint(x) : floor(x);
  if (!saturate) return (int)wide(x);
  if (x != x) return 0;
  // 2^31 - 1 is no float: compared as 2^31.
  return x >= (float)highest ? highest : x < (float)lowest ? lowest : (int)x;
}

void convert(long fn, long from, long to, int saturate, const int* x, int* y) {
  if (to == BOOL) {
    if (from == F32) EACH y[e] = FLOAT(x[e]) != 0.0f;
    else EACH y[e] = x[e] != 0;
    return;
  }
  if (to == F32) {
    if (from != F32) EACH y[e] = as_int((float)x[e]);
    else if (saturate) EACH y[e] = isinf(FLOAT(x[e])) ? x[e] - 1 : x[e];
    else EACH y[e] = x[e];
    return;
  }
  const int lowest = to == I32 ? INT_MIN : to == I8 ? -128 : 0;
  const int highest = to == I32 ? INT_MAX : to == I8 ? 127 : 255;
  if (from == F32) EACH y[e] = wrapped(toInteger(FLOAT(x[e]), fn, saturate, lowest, highest), to);
  else if (saturate) EACH y[e] = clamp(x[e], lowest, highest);
  else EACH y[e] = wrapped(x[e], to);
}

void compare(long fn, long elem, const int* a, const int* b, int* y) {
  if (elem == F32) {
    if (fn == 0) EACH y[e] = FLOAT(a[e]) == FLOAT(b[e]);
    else EACH y[e] = FLOAT(a[e]) < FLOAT(b[e]);
  } else {
    if (fn == 0) EACH y[e] = a[e] == b[e];
    else EACH y[e] = a[e] < b[e];
  }
}

// rne(sum / 2^s) + zero, within the clamp. Shifts of 64 and more round to 0, which is even.
int rescaled(long sum, int s, int zero, long lo, long hi) {
  long value = s >= 64 ? 0 : sum;
  if (s > 0 && s < 64) {
    value = sum >> s;
    const ulong rest = (ulong)sum - ((ulong)value << s), half_ = 1UL << (s - 1);
    value += rest > half_ || (rest == half_ && (value & 1));
  }
  return (int)clamp(add_sat(value, (long)zero), lo, hi);
}

#define PIECES                                                                                                        \
  global const uchar *b0, global const uchar *b1, global const uchar *b2, global const uchar *b3,                     \
      global const uchar *b4, global const uchar *b5, global const uchar *b6, global const uchar *b7,                 \
      global const uchar *b8, global const uchar *b9, global const uchar *b10, global const uchar *b11,               \
      global const uchar *b12, global const uchar *b13, global const uchar *b14, global const uchar *b15

kernel __attribute__((reqd_work_group_size(LOCAL, 1, 1))) void map(constant const long* p, global uchar* out, PIECES) {
  global const uchar* in[] = {b0, b1, b2, b3, b4, b5, b6, b7, b8, b9, b10, b11, b12, b13, b14, b15};
  long row = get_global_id(0) / p[1];
  if (row >= p[2]) return;
  Place place;
  place.rank = (int)p[0];
  const long first = get_global_id(0) % p[1] * N;
  place.count = (int)min((long)N, p[9 + place.rank - 1] - first);
  for (int d = place.rank - 2; d >= 0; --d) {
    place.at[d] = row % p[9 + d];
    row /= p[9 + d];
  }
  place.at[place.rank - 1] = first;

  int values[32][N], operands[6][N];
  const int steps = (int)p[3];
  for (int s = 0; s < steps; ++s) {
    constant const long* step = p + p[4] + s * STEP_WORDS;
    const long kind = step[0], fn = step[1], from = step[2], to = step[3];
    const int* x[6];
    // A table is looked up, not walked along.
    for (int k = 0; k < (kind == TABLE ? 1 : 6) && step[5 + k] >= 0; ++k) {
      const long source = step[5 + k];
      x[k] = operands[k];
      if (source == FROM_BITS) EACH operands[k][e] = (int)step[11];
      else if (source >= FROM_VIEW)
        loadRow(in[source - FROM_VIEW], p + FIRST_VIEW + (source - FROM_VIEW + 1) * VIEW_WORDS, &place, operands[k]);
      else x[k] = values[source];
    }
    int* y = values[s];
    switch (kind) {
    case COPY: EACH y[e] = x[0][e]; break;
    case CONVERT: convert(fn, from, to, (int)step[4], x[0], y); break;
    case BINARY: binary(fn, from, x[0], x[1], y); break;
    case COMPARE: compare(fn, from, x[0], x[1], y); break;
    case SELECT: EACH y[e] = x[0][e] ? x[1][e] : x[2][e]; break;
    case UNARY: unary(fn, from, x[0], y); break;
    case RESCALE:
      EACH {
        ulong sum = (ulong)((long)x[0][e] * x[1][e]) << p[5];
        if (step[9] >= 0) sum += (ulong)((long)x[4][e] * x[5][e]) << p[6];
        y[e] = rescaled((long)sum, x[2][e], x[3][e], p[7], p[8]);
      }
      break;
    case TABLE: {
      constant const long* table = p + FIRST_VIEW + (step[6] - FROM_VIEW + 1) * VIEW_WORDS;
      global const uchar* entries = in[step[6] - FROM_VIEW] + table[0];
      const int lowest = from == I8 ? -128 : 0;
      EACH y[e] = load(entries + (x[0][e] - lowest) * table[2] * bytesOf(to), to);
      break;
    }
    }
  }
  storeRow(out, p + FIRST_VIEW, &place, values[steps - 1]);
}
