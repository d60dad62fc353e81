// One vector of floats for each instruction set, for the product kernels. Every operation is a single IEEE operation,
// so bits cannot differ between sets. RILLET_ISA names the set whose namespace the including file compiles for.
#pragma once
#include <stdint.h>

#ifndef RILLET_ISA
#error "define RILLET_ISA (scalar, avx2, avx512, neon) before including this file"
#endif
#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif

#define RILLET_FORCE_INLINE inline __attribute__((always_inline))
#define RILLET_UNROLL _Pragma("GCC unroll 64")

namespace rillet {
namespace RILLET_ISA {
namespace lanes {

// max(lo, x) is `lo > x ? lo : x`, min(hi, x) is `hi < x ? hi : x`: NaN passes and -0 stays, as the contract says.
#if defined(__AVX512F__)

struct V {
  static constexpr int kWidth = 16;
  static constexpr bool kByLane = false;
  using R = __m512;
  static RILLET_FORCE_INLINE __mmask16 Mask(int64_t n) {
    return n <= 0 ? 0 : n >= 16 ? 0xffff : static_cast<__mmask16>((1u << n) - 1);
  }
  static RILLET_FORCE_INLINE R Zero() { return _mm512_setzero_ps(); }
  static RILLET_FORCE_INLINE R Load(const float* p) { return _mm512_loadu_ps(p); }
  static RILLET_FORCE_INLINE R LoadN(const float* p, int64_t n) { return _mm512_maskz_loadu_ps(Mask(n), p); }
  static RILLET_FORCE_INLINE void Store(float* p, R x) { _mm512_storeu_ps(p, x); }
  static RILLET_FORCE_INLINE void StoreN(float* p, int64_t n, R x) { _mm512_mask_storeu_ps(p, Mask(n), x); }
  static RILLET_FORCE_INLINE R Set(float x) { return _mm512_set1_ps(x); }
  // Inline assembly: GCC 12 otherwise picks the 132 and 213 forms, copies accumulators and spills them.
  static RILLET_FORCE_INLINE R Fma(R a, R b, R c) {
    asm("vfmadd231ps %2, %1, %0" : "+v"(c) : "v"(a), "v"(b));
    return c;
  }
  static RILLET_FORCE_INLINE R Add(R a, R b) { return _mm512_add_ps(a, b); }
  static RILLET_FORCE_INLINE R Max(R lo, R x) { return _mm512_max_ps(lo, x); }
  static RILLET_FORCE_INLINE R Min(R hi, R x) { return _mm512_min_ps(hi, x); }
};

#elif defined(__AVX2__)

alignas(64) constexpr int32_t kMask[16] = {-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0};
struct V {
  static constexpr int kWidth = 8;
  static constexpr bool kByLane = false;
  using R = __m256;
  static RILLET_FORCE_INLINE __m256i Mask(int64_t n) {
    n = n < 0 ? 0 : n > 8 ? 8 : n;
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(kMask + 8 - n));
  }
  static RILLET_FORCE_INLINE R Zero() { return _mm256_setzero_ps(); }
  static RILLET_FORCE_INLINE R Load(const float* p) { return _mm256_loadu_ps(p); }
  static RILLET_FORCE_INLINE R LoadN(const float* p, int64_t n) { return _mm256_maskload_ps(p, Mask(n)); }
  static RILLET_FORCE_INLINE void Store(float* p, R x) { _mm256_storeu_ps(p, x); }
  static RILLET_FORCE_INLINE void StoreN(float* p, int64_t n, R x) { _mm256_maskstore_ps(p, Mask(n), x); }
  static RILLET_FORCE_INLINE R Set(float x) { return _mm256_set1_ps(x); }
  static RILLET_FORCE_INLINE R Fma(R a, R b, R c) {  // assembly: as for AVX-512 above
    asm("vfmadd231ps %2, %1, %0" : "+x"(c) : "x"(a), "x"(b));
    return c;
  }
  static RILLET_FORCE_INLINE R Add(R a, R b) { return _mm256_add_ps(a, b); }
  static RILLET_FORCE_INLINE R Max(R lo, R x) { return _mm256_max_ps(lo, x); }
  static RILLET_FORCE_INLINE R Min(R hi, R x) { return _mm256_min_ps(hi, x); }
};

#elif defined(__ARM_NEON) && defined(__aarch64__)

struct V {
  static constexpr int kWidth = 4;
  static constexpr bool kByLane = true;  // fmla takes its multiplier from a lane
  using R = float32x4_t;
  static RILLET_FORCE_INLINE R Zero() { return vdupq_n_f32(0.0f); }
  static RILLET_FORCE_INLINE R Load(const float* p) { return vld1q_f32(p); }
  static RILLET_FORCE_INLINE R LoadN(const float* p, int64_t n) {
    if (n >= 4) return vld1q_f32(p);
    float t[4] = {};
    for (int64_t i = 0; i < n; ++i) t[i] = p[i];
    return vld1q_f32(t);
  }
  static RILLET_FORCE_INLINE void Store(float* p, R x) { vst1q_f32(p, x); }
  static RILLET_FORCE_INLINE void StoreN(float* p, int64_t n, R x) {
    if (n >= 4) return vst1q_f32(p, x);
    float t[4];
    vst1q_f32(t, x);
    for (int64_t i = 0; i < n; ++i) p[i] = t[i];
  }
  static RILLET_FORCE_INLINE R Set(float x) { return vdupq_n_f32(x); }
  static RILLET_FORCE_INLINE R Fma(R a, R b, R c) { return vfmaq_f32(c, a, b); }
  template <int L>
  static RILLET_FORCE_INLINE R FmaLane(R a, R b, R c) {
    return vfmaq_laneq_f32(c, b, a, L);
  }
  static RILLET_FORCE_INLINE R Add(R a, R b) { return vaddq_f32(a, b); }
  static RILLET_FORCE_INLINE R Max(R lo, R x) { return vbslq_f32(vcgtq_f32(lo, x), lo, x); }
  static RILLET_FORCE_INLINE R Min(R hi, R x) { return vbslq_f32(vcltq_f32(hi, x), hi, x); }
};

#else

struct V {
  static constexpr int kWidth = 1;
  static constexpr bool kByLane = false;
  using R = float;
  static RILLET_FORCE_INLINE R Zero() { return 0.0f; }
  static RILLET_FORCE_INLINE R Load(const float* p) { return *p; }
  static RILLET_FORCE_INLINE R LoadN(const float* p, int64_t n) { return n > 0 ? *p : 0.0f; }
  static RILLET_FORCE_INLINE void Store(float* p, R x) { *p = x; }
  static RILLET_FORCE_INLINE void StoreN(float* p, int64_t n, R x) {
    if (n > 0) *p = x;
  }
  static RILLET_FORCE_INLINE R Set(float x) { return x; }
  static RILLET_FORCE_INLINE R Fma(R a, R b, R c) { return __builtin_fmaf(a, b, c); }
  static RILLET_FORCE_INLINE R Add(R a, R b) { return a + b; }
  static RILLET_FORCE_INLINE R Max(R lo, R x) { return lo > x ? lo : x; }
  static RILLET_FORCE_INLINE R Min(R hi, R x) { return hi < x ? hi : x; }
};

#endif

}  // namespace lanes
}  // namespace RILLET_ISA
}  // namespace rillet
