// REDUCE: one work-item, one y[o,i] = fn over r of x[o,r,i]. p[]: 0 work-items, 1 R, 2 I, 3 function, 4 element type,
// 5 byte offset of x, 6.. its strides, 9 byte offset of y, 10.. its strides. Sums and products of floats are collected
// in f64 where the device has it.
#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
typedef double Wide;
#else
typedef float Wide;
#endif

kernel __attribute__((reqd_work_group_size(LOCAL, 1, 1))) void reduce(constant const long* p, global uchar* out,
                                                                       global const uchar* in) {
  const long id = get_global_id(0);
  if (id >= p[0]) return;
  const long o = id / p[2], i = id % p[2], fn = p[3], elem = p[4], step = p[7] * bytesOf(elem);
  global const uchar* x = in + p[5] + (o * p[6] + i * p[8]) * bytesOf(elem);
  global uchar* y = out + p[9] + (o * p[10] + i * p[11]) * bytesOf(elem);
  if (elem == F32 && (fn == 0 || fn == 3)) {
    Wide acc = fn == 3;
    for (long r = 0; r < p[1]; ++r) {
      const Wide value = *(global const float*)(x + r * step);
      acc = fn == 3 ? acc * value : acc + value;
    }
    *(global float*)y = (float)acc;
  } else if (elem == F32) {
    float acc = fn == 1 ? -INFINITY : INFINITY;
    for (long r = 0; r < p[1]; ++r) {
      const float value = *(global const float*)(x + r * step);
      acc = fn == 1 ? maxFloat(acc, value) : minFloat(acc, value);
    }
    *(global float*)y = acc;
  } else {
    // Of bools the sum is the maximum, the product the minimum.
    const long f = elem != BOOL ? fn : fn == 0 ? 1 : fn == 3 ? 2 : fn;
    const int lowest = elem == I32 ? INT_MIN : elem == I8 ? -128 : 0;
    const int highest = elem == I32 ? INT_MAX : elem == I8 ? 127 : elem == U8 ? 255 : 1;
    int acc = f == 0 ? 0 : f == 1 ? lowest : f == 2 ? highest : 1;
    for (long r = 0; r < p[1]; ++r) {
      const int value = load(x + r * step, elem);
      acc = f == 0   ? (int)((uint)acc + (uint)value)
            : f == 1 ? max(acc, value)
            : f == 2 ? min(acc, value)
                     : (int)((uint)acc * (uint)value);
    }
    store(y, elem, acc);
  }
}
