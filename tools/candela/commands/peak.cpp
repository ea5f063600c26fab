// Loops that do nothing but multiply and add in registers, one for each width of vectors and one
// for tiles, chosen at run time.
#include "tools/candela/commands/peak.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <system_error>
#include <thread>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace candela::tool {
namespace {

/// Runs `rounds` rounds; the result keeps the compiler from leaving them out.
using Loop = float (*)(int64_t rounds);

/// So many independent sums hide the latency of their additions, and fit into the registers. They
/// begin at different values that only the run knows, so that the compiler cannot share them.
constexpr int kPairs = 6, kFew = 12, kMany = 24;

struct Kernel {
  Loop loop;
  double flopsPerRound;
  const char* name;
};

#if defined(__x86_64__)

__attribute__((target("avx512f"))) float fma512(int64_t rounds) {
  const __m512 x = _mm512_set1_ps(0.5f), y = _mm512_set1_ps(1e-3f);
  __m512 sums[kMany];
#pragma GCC unroll 24
  for (int k = 0; k < kMany; ++k) sums[k] = _mm512_set1_ps(static_cast<float>(rounds + k));
  for (int64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 24
    for (__m512& sum : sums) sum = _mm512_fmadd_ps(x, y, sum);
  }
#pragma GCC unroll 24
  for (const __m512& sum : sums) sums[0] = _mm512_add_ps(sums[0], sum);
  return _mm512_cvtss_f32(sums[0]);
}

__attribute__((target("avx512f,avx512vnni"))) float dot512(int64_t rounds) {
  const __m512i x = _mm512_set1_epi8(1), y = _mm512_set1_epi8(2);
  __m512i sums[kMany];
#pragma GCC unroll 24
  for (int k = 0; k < kMany; ++k) sums[k] = _mm512_set1_epi32(static_cast<int>(rounds + k));
  for (int64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 24
    for (__m512i& sum : sums) sum = _mm512_dpbusd_epi32(sum, x, y);
  }
#pragma GCC unroll 24
  for (const __m512i& sum : sums) sums[0] = _mm512_add_epi32(sums[0], sum);
  return static_cast<float>(_mm512_cvtsi512_si32(sums[0]));
}

__attribute__((target("avx2,fma"))) float fma256(int64_t rounds) {
  const __m256 x = _mm256_set1_ps(0.5f), y = _mm256_set1_ps(1e-3f);
  __m256 sums[kFew];
#pragma GCC unroll 12
  for (int k = 0; k < kFew; ++k) sums[k] = _mm256_set1_ps(static_cast<float>(rounds + k));
  for (int64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 12
    for (__m256& sum : sums) sum = _mm256_fmadd_ps(x, y, sum);
  }
#pragma GCC unroll 12
  for (const __m256& sum : sums) sums[0] = _mm256_add_ps(sums[0], sum);
  return _mm256_cvtss_f32(sums[0]);
}

__attribute__((target("avx2,avxvnni"))) float dotVnni256(int64_t rounds) {
  const __m256i x = _mm256_set1_epi8(1), y = _mm256_set1_epi8(2);
  __m256i sums[kFew];
#pragma GCC unroll 12
  for (int k = 0; k < kFew; ++k) sums[k] = _mm256_set1_epi32(static_cast<int>(rounds + k));
  for (int64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 12
    for (__m256i& sum : sums) sum = _mm256_dpbusd_avx_epi32(sum, x, y);
  }
#pragma GCC unroll 12
  for (const __m256i& sum : sums) sums[0] = _mm256_add_epi32(sums[0], sum);
  return static_cast<float>(_mm256_cvtsi256_si32(sums[0]));
}

/// Without an instruction for it: pairs of 16 bits, and an addition, which is short.
__attribute__((target("avx2"))) float dot256(int64_t rounds) {
  __m256i x = _mm256_set1_epi16(1);
  const __m256i y = _mm256_set1_epi16(2);
  __m256i sums[kPairs];
#pragma GCC unroll 6
  for (int k = 0; k < kPairs; ++k) sums[k] = _mm256_set1_epi32(static_cast<int>(rounds + k));
  for (int64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 6
    for (__m256i& sum : sums) {
      asm volatile("" : "+x"(x)); // x may be another one: a product for each sum
      sum = _mm256_add_epi32(sum, _mm256_madd_epi16(x, y));
    }
  }
#pragma GCC unroll 6
  for (const __m256i& sum : sums) sums[0] = _mm256_add_epi32(sums[0], sum);
  return static_cast<float>(_mm256_cvtsi256_si32(sums[0]));
}

/// How many tiles sum, beside the two that are multiplied.
constexpr int kTiles = 6;

__attribute__((target("amx-tile,amx-int8"))) float tiles(int64_t rounds) {
  struct alignas(64) {
    uint8_t palette = 1, startRow = 0, reserved[14] = {};
    uint16_t bytesPerRow[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
  } config;
  alignas(64) int32_t sums[16][16] = {};
  _tile_loadconfig(&config);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_zero(4);
  _tile_zero(5);
  _tile_zero(6);
  _tile_zero(7);
  for (int64_t r = 0; r < rounds; ++r) {
    _tile_dpbusd(0, 6, 7);
    _tile_dpbusd(1, 6, 7);
    _tile_dpbusd(2, 6, 7);
    _tile_dpbusd(3, 6, 7);
    _tile_dpbusd(4, 6, 7);
    _tile_dpbusd(5, 6, 7);
  }
  _tile_stored(0, sums, 64);
  _tile_release();
  return static_cast<float>(sums[0][0]);
}

/// Whether the machine has tiles, and the system lets this process use them.
bool hasTiles() {
  constexpr long kRequest = 0x1023, kTileData = 18; // ARCH_REQ_XCOMP_PERM
  return __builtin_cpu_supports("amx-int8") && syscall(SYS_arch_prctl, kRequest, kTileData) == 0;
}

Kernel floatKernel() {
  if (__builtin_cpu_supports("avx512f")) return {fma512, kMany * 16 * 2.0, "avx512 fma"};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return {fma256, kFew * 8 * 2.0, "avx2 fma"};
  return {nullptr, 0, ""};
}

Kernel integerKernel() {
  if (hasTiles()) return {tiles, kTiles * 16 * 16 * 64 * 2.0, "amx tdpbusd"};
  if (__builtin_cpu_supports("avx512vnni")) return {dot512, kMany * 64 * 2.0, "avx512 vpdpbusd"};
  if (__builtin_cpu_supports("avxvnni")) return {dotVnni256, kFew * 32 * 2.0, "avx vpdpbusd"};
  if (__builtin_cpu_supports("avx2")) return {dot256, kPairs * 16 * 2.0, "avx2 vpmaddwd"};
  return {nullptr, 0, ""};
}

#else
Kernel floatKernel() { return {nullptr, 0, ""}; }
Kernel integerKernel() { return {nullptr, 0, ""}; }
#endif

/// What a compiler makes of vectors of 16 bytes, where no kernel is written for the machine.
float portable(int64_t rounds) {
  using Vector = float __attribute__((vector_size(16)));
  const Vector x = {0.5f, 0.5f, 0.5f, 0.5f};
  Vector sums[kFew];
#pragma GCC unroll 12
  for (int k = 0; k < kFew; ++k) sums[k] = x * static_cast<float>(rounds + k);
  for (int64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 12
    for (Vector& sum : sums) sum = sum * x + x;
  }
#pragma GCC unroll 12
  for (const Vector& sum : sums) sums[0] += sum;
  return sums[0][0];
}

std::atomic<float> sink; ///< of results that nobody reads

/// The best of some trials, all threads at the same time: no more than there are processors, which
/// add nothing, and fewer where the system does not give so many.
double measure(const Kernel& kernel, int threads) {
  threads = std::min(threads, static_cast<int>(std::max(1u, std::thread::hardware_concurrency())));
  constexpr int kTrials = 16;
  int64_t rounds = 1000;
  double best = 0;
  for (int trial = 0; trial < kTrials;) {
    const auto start = std::chrono::steady_clock::now();
    std::vector<std::jthread> others;
    try {
      for (int t = 1; t < threads; ++t) others.emplace_back([&] { sink = kernel.loop(rounds); });
    } catch (const std::system_error&) {
      threads = static_cast<int>(others.size()) + 1;
    }
    sink = kernel.loop(rounds);
    for (std::jthread& other : others) other.join();
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (seconds < 4e-3) { // too short against the start of the threads
      rounds *= 4;
      continue;
    }
    best = std::max(best,
                    kernel.flopsPerRound * static_cast<double>(rounds) * threads / seconds / 1e9);
    ++trial;
  }
  return best;
}

} // namespace

Peak measurePeak(int threads) {
  Kernel floats = floatKernel(), integers = integerKernel();
  if (!floats.loop) floats = {portable, kFew * 4 * 2.0, "128-bit vectors"};
  if (!integers.loop) integers = floats;
  return {measure(floats, threads), measure(integers, threads), floats.name, integers.name};
}

} // namespace candela::tool
