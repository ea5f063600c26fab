// GATHER and SCATTER. p[]: 0 work-items, 1 O, 2 K, 3 I, 4 N, 5 function, 6 element type, 7 type of the index, then for
// x (or updates), index and y from 8, 12 and 16 on: byte offset and strides in elements.
#define INDEX(k) (*(global const int*)(index + p[12] + (k) * p[13] * 4))

// One element of y[o,k,i] = x[o,index[k],i].
kernel __attribute__((reqd_work_group_size(LOCAL, 1, 1))) void gather(constant const long* p, global uchar* y,
                                                                       global const uchar* x,
                                                                       global const uchar* index) {
  const long id = get_global_id(0);
  if (id >= p[0]) return;
  const long i = id % p[3], k = id / p[3] % p[2], o = id / p[3] / p[2], size = bytesOf(p[6]), wanted = INDEX(k);
  const bool isOutside = wanted < 0 || wanted >= p[4];
  const long at = max(min(wanted, p[4] - 1), 0L);
  const int value =
      isOutside && p[5] == 1 ? 0 : load(x + p[8] + (o * p[9] + at * p[10] + i * p[11]) * size, p[6]);
  store(y + p[16] + (o * p[17] + k * p[18] + i * p[19]) * size, p[6], value);
}

int combined(long fn, long elem, int a, int b) {
  switch (fn) {
  case 0: return b;
  case 1: return elem == F32 ? as_int(as_float(a) + as_float(b)) : elem == BOOL ? a | b : (int)((uint)a + (uint)b);
  case 2: return elem == F32 ? as_int(minFloat(as_float(a), as_float(b))) : min(a, b);
  default: return elem == F32 ? as_int(maxFloat(as_float(a), as_float(b))) : max(a, b);
  }
}

// One column of y[o,index[k],i] = fn(itself, updates[o,k,i]), k in order: results do not depend on who comes first.
kernel __attribute__((reqd_work_group_size(LOCAL, 1, 1))) void scatter(constant const long* p, global uchar* y,
                                                                        global const uchar* updates,
                                                                        global const uchar* index) {
  const long id = get_global_id(0);
  if (id >= p[0]) return;
  const long i = id % p[3], o = id / p[3], size = bytesOf(p[6]);
  for (long k = 0; k < p[2]; ++k) {
    const long at = INDEX(k);
    if (at < 0 || at >= p[4]) continue;
    global uchar* place = y + p[16] + (o * p[17] + at * p[18] + i * p[19]) * size;
    const int update = load(updates + p[8] + (o * p[9] + k * p[10] + i * p[11]) * size, p[6]);
    store(place, p[6], combined(p[5], p[6], load(place, p[6]), update));
  }
}
