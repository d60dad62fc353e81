// From int32 accumulators to int8 outputs, 16 channels a row, for the AVX2 kernels.
#pragma once
#include <immintrin.h>

#include <cstring>

#include "gemm_s8.h"
#include "repeat.h"

namespace rillet {
namespace avx2 {
namespace {

// The first n of 16 bytes.
inline void StorePart(int8_t* to, __m128i v, int64_t n) {
  if (n >= 16) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), v);
    return;
  }
  if (n & 8) {
    _mm_storel_epi64(reinterpret_cast<__m128i*>(to), v);
    v = _mm_srli_si128(v, 8);
    to += 8;
  }
  if (n & 4) {
    const int x = _mm_cvtsi128_si32(v);
    std::memcpy(to, &x, 4);
    v = _mm_srli_si128(v, 4);
    to += 4;
  }
  int x = _mm_cvtsi128_si32(v);
  for (int i = 0; i < (n & 3); ++i, x >>= 8) to[i] = static_cast<int8_t>(x);
}

template <bool kClamp>
RILLET_INLINE inline __m256i Scale(__m256i acc, __m256 scale, __m256 high) {
  __m256 f = _mm256_mul_ps(_mm256_cvtepi32_ps(acc), scale);
  // Only the upper side: what is below int32 converts to INT_MIN, which saturates as it should.
  if (kClamp) f = _mm256_min_ps(f, high);
  return _mm256_cvtps_epi32(f);
}

// acc: 2 vectors of 8 channels a row. kNatural: channels 0-7 and 8-15; otherwise in the order that the packs undo.
template <int R, bool kClamp, bool kNatural>
inline void Finish(const __m256i (&acc)[R][2], const Epilogue& e, const float* scale, int8_t* out, int64_t stride,
                   int64_t n) {
  const __m256 s0 = _mm256_load_ps(scale), s1 = _mm256_load_ps(scale + 8);
  const __m256 top = _mm256_set1_ps(static_cast<float>(e.high - e.zero_point));
  const __m256i zp = _mm256_set1_epi16(static_cast<short>(e.zero_point));
  const __m256i low = _mm256_set1_epi8(static_cast<char>(e.low)), high = _mm256_set1_epi8(static_cast<char>(e.high));
  __m256i h[R + 1];
  Repeat<R>([&](auto m) RILLET_INLINE {
    h[m] =
        _mm256_adds_epi16(_mm256_packs_epi32(Scale<kClamp>(acc[m][0], s0, top), Scale<kClamp>(acc[m][1], s1, top)), zp);
  });
  h[R] = h[R - 1];
  Repeat<(R + 1) / 2>([&](auto j) RILLET_INLINE {
    const __m256i bytes = _mm256_min_epi8(_mm256_max_epi8(_mm256_packs_epi16(h[2 * j], h[2 * j + 1]), low), high);
    __m256i rows = _mm256_permute4x64_epi64(bytes, 0xd8);
    if (kNatural) rows = _mm256_shuffle_epi32(rows, 0xd8);
    StorePart(out + 2 * j * stride, _mm256_castsi256_si128(rows), n);
    if constexpr (2 * j + 1 < R) StorePart(out + (2 * j + 1) * stride, _mm256_extracti128_si256(rows, 1), n);
  });
}

}  // namespace
}  // namespace avx2
}  // namespace rillet
