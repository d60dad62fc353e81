// vpdpbusd, and the way from int32 accumulators to int8 outputs, for the AVX-512 VNNI kernels.
#pragma once
#include <immintrin.h>

#include <cstring>

#include "gemm_s8.h"
#include "repeat.h"

namespace rillet {
namespace avx512vnni {
namespace {

constexpr int kWidth = 64;

#ifdef RILLET_SIMDE
RILLET_INLINE inline __m512i Dot(__m512i acc, __m512i a, __m512i b) { return _mm512_dpbusd_epi32(acc, a, b); }
#else
// GCC 12 copies the accumulator around the intrinsic, and spills; the instruction itself needs neither.
RILLET_INLINE inline __m512i Dot(__m512i acc, __m512i a, __m512i b) {
  asm("vpdpbusd %2, %1, %0" : "+v"(acc) : "v"(a), "v"(b));
  return acc;
}
#endif

// Channels of a panel are permuted so that packssdw and packsswb, which work within 128-bit lanes, restore their order.
inline int Channel(int width, int position) {
  const int v = position / 16, i = position % 16;
  if (width == 64) return 16 * (i / 4) + 4 * v + i % 4;
  if (width >= 32 && v < 2) return 8 * (i / 4) + 4 * v + i % 4;
  return position;
}

template <bool kClamp>
RILLET_INLINE inline __m512i Scale(__m512i acc, __m512 scale, __m512 high) {
  __m512 f = _mm512_mul_ps(_mm512_cvtepi32_ps(acc), scale);
  // Only the upper side: what is below int32 converts to INT_MIN, which saturates as it should.
  if (kClamp) f = _mm512_min_ps(f, high);
  return _mm512_cvtps_epi32(f);
}

inline uint64_t FirstBits(int64_t n) { return n >= 64 ? ~uint64_t{0} : (uint64_t{1} << (n > 0 ? n : 0)) - 1; }

// One row of 16 * V channels, of which n are stored.
template <int V, bool kClamp>
inline void Finish(const __m512i (&acc)[V], const Epilogue& e, const float* scale, int8_t* out, int64_t n) {
  const __m512 top = _mm512_set1_ps(static_cast<float>(e.high - e.zero_point));
  const __m512i zp = _mm512_set1_epi16(static_cast<short>(e.zero_point));
  const __m512i low = _mm512_set1_epi8(static_cast<char>(e.low)), high = _mm512_set1_epi8(static_cast<char>(e.high));
  __m512i q[V];
  Repeat<V>([&](auto v) RILLET_INLINE { q[v] = Scale<kClamp>(acc[v], _mm512_load_ps(scale + 16 * v), top); });
  if constexpr (V == 4) {
    const __m512i x = _mm512_adds_epi16(_mm512_packs_epi32(q[0], q[1]), zp);
    const __m512i y = _mm512_adds_epi16(_mm512_packs_epi32(q[2], q[3]), zp);
    const __m512i r = _mm512_min_epi8(_mm512_max_epi8(_mm512_packs_epi16(x, y), low), high);
    if (n >= 64) _mm512_storeu_si512(out, r);
    else _mm512_mask_storeu_epi8(out, FirstBits(n), r);
  }
  if constexpr (V == 2 || V == 3) {
    const __m256i r = _mm512_cvtsepi16_epi8(_mm512_adds_epi16(_mm512_packs_epi32(q[0], q[1]), zp));
    const __m256i bounded =
        _mm256_min_epi8(_mm256_max_epi8(r, _mm512_castsi512_si256(low)), _mm512_castsi512_si256(high));
    _mm256_mask_storeu_epi8(out, static_cast<__mmask32>(FirstBits(n)), bounded);
  }
  if constexpr (V == 1 || V == 3) {
    const __m256i wide = _mm256_adds_epi16(_mm512_cvtsepi32_epi16(q[V - 1]), _mm512_castsi512_si256(zp));
    const __m128i r = _mm_min_epi8(_mm_max_epi8(_mm256_cvtsepi16_epi8(wide), _mm512_castsi512_si128(low)),
                                   _mm512_castsi512_si128(high));
    _mm_mask_storeu_epi8(out + 16 * (V - 1), static_cast<__mmask16>(FirstBits(n - 16 * (V - 1))), r);
  }
}

}  // namespace
}  // namespace avx512vnni
}  // namespace rillet
