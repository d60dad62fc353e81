// A vector of floats for each instruction set, in that set's own namespace. A file of isa/ says which one it is:
//
//   #define RILLET_ISA avx2
//   #include "vec.h"
//
// F is the vector of floats, I that of as many uint32 (which wrap), kLanes their number (1 for scalar). The operators
// + - * / < (F), + - & | << >> (I) and `condition ? a : b` work on either. Every operation is one IEEE operation or
// integer bit work, so the same source gives the same bits in every namespace.
#pragma once
#include <cstdint>
#include <cstring>

#ifndef RILLET_ISA
#error "define RILLET_ISA (scalar, avx2, avx512 or neon) before including this file"
#endif

#define RILLET_ISA_SCALAR_IS_scalar 1
#define RILLET_ISA_AVX2_IS_avx2 1
#define RILLET_ISA_AVX512_IS_avx512 1
#define RILLET_ISA_NEON_IS_neon 1
#define RILLET_ISA_PASTE(set, name) RILLET_ISA_##set##_IS_##name
#define RILLET_ISA_TEST(set, name) RILLET_ISA_PASTE(set, name)
#define RILLET_ISA_IS(set) RILLET_ISA_TEST(set, RILLET_ISA)

#if RILLET_ISA_IS(AVX2) || RILLET_ISA_IS(AVX512)
#include <immintrin.h>
#elif RILLET_ISA_IS(NEON)
#include <arm_neon.h>
#endif

#define RILLET_INLINE inline __attribute__((always_inline))

namespace rillet {
namespace RILLET_ISA {

#if RILLET_ISA_IS(SCALAR)

constexpr int kLanes = 1;
using F = float;
using I = uint32_t;

RILLET_INLINE F Set(float x) { return x; }
RILLET_INLINE I SetI(uint32_t x) { return x; }
RILLET_INLINE F Fma(F a, F b, F c) { return __builtin_fmaf(a, b, c); }
RILLET_INLINE F Sqrt(F x) { return __builtin_sqrtf(x); }
RILLET_INLINE F ToFloat(I i) { return static_cast<float>(static_cast<int32_t>(i)); }
RILLET_INLINE I ShiftSigned(I i, int n) { return static_cast<I>(static_cast<int32_t>(i) >> n); }
RILLET_INLINE I Bits(F x) {
  I i;
  std::memcpy(&i, &x, 4);
  return i;
}
RILLET_INLINE F Real(I i) {
  F x;
  std::memcpy(&x, &i, 4);
  return x;
}

#else

#if RILLET_ISA_IS(AVX512)
constexpr int kLanes = 16;
#elif RILLET_ISA_IS(AVX2)
constexpr int kLanes = 8;
#else
constexpr int kLanes = 4;
#endif
typedef float F __attribute__((vector_size(kLanes * 4)));
typedef uint32_t I __attribute__((vector_size(kLanes * 4)));
typedef int32_t Signed __attribute__((vector_size(kLanes * 4)));

RILLET_INLINE F Set(float x) { return x - F{}; }  // keeps -0
RILLET_INLINE I SetI(uint32_t x) { return x | I{}; }
RILLET_INLINE I Bits(F x) { return (I)x; }
RILLET_INLINE F Real(I i) { return (F)i; }
RILLET_INLINE F ToFloat(I i) { return __builtin_convertvector((Signed)i, F); }
RILLET_INLINE I ShiftSigned(I i, int n) { return (I)((Signed)i >> n); }

#if RILLET_ISA_IS(AVX512)
RILLET_INLINE F Fma(F a, F b, F c) { return (F)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c); }
RILLET_INLINE F Sqrt(F x) { return (F)_mm512_sqrt_ps((__m512)x); }
#elif RILLET_ISA_IS(AVX2)
RILLET_INLINE F Fma(F a, F b, F c) { return (F)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c); }
RILLET_INLINE F Sqrt(F x) { return (F)_mm256_sqrt_ps((__m256)x); }
#else
RILLET_INLINE F Fma(F a, F b, F c) { return (F)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b); }
RILLET_INLINE F Sqrt(F x) { return (F)vsqrtq_f32((float32x4_t)x); }
#endif

#endif

RILLET_INLINE F Load(const float* p) {
  F x;
  std::memcpy(&x, p, sizeof(F));
  return x;
}
RILLET_INLINE void Store(float* p, F x) { std::memcpy(p, &x, sizeof(F)); }

// The first n <= kLanes elements; what lies behind them is neither read nor written. The other lanes are 0.
#if RILLET_ISA_IS(SCALAR)
RILLET_INLINE F LoadN(const float* p, int64_t n) { return n > 0 ? *p : 0.0f; }
RILLET_INLINE void StoreN(float* p, int64_t n, F x) {
  if (n > 0) *p = x;
}
#elif RILLET_ISA_IS(AVX512)
RILLET_INLINE __mmask16 FirstN(int64_t n) { return static_cast<__mmask16>((1u << n) - 1); }
RILLET_INLINE F LoadN(const float* p, int64_t n) { return (F)_mm512_maskz_loadu_ps(FirstN(n), p); }
RILLET_INLINE void StoreN(float* p, int64_t n, F x) { _mm512_mask_storeu_ps(p, FirstN(n), (__m512)x); }
#elif RILLET_ISA_IS(AVX2)
RILLET_INLINE __m256i FirstN(int64_t n) {
  return (__m256i)(Signed{0, 1, 2, 3, 4, 5, 6, 7} < (Signed)SetI(static_cast<uint32_t>(n)));
}
RILLET_INLINE F LoadN(const float* p, int64_t n) { return (F)_mm256_maskload_ps(p, FirstN(n)); }
RILLET_INLINE void StoreN(float* p, int64_t n, F x) { _mm256_maskstore_ps(p, FirstN(n), (__m256)x); }
#else
RILLET_INLINE F LoadN(const float* p, int64_t n) {
  float lanes[kLanes] = {};
  for (int64_t i = 0; i < n; ++i) lanes[i] = p[i];
  return Load(lanes);
}
RILLET_INLINE void StoreN(float* p, int64_t n, F x) {
  float lanes[kLanes];
  Store(lanes, x);
  for (int64_t i = 0; i < n; ++i) p[i] = lanes[i];
}
#endif

RILLET_INLINE F Abs(F x) { return Real(Bits(x) & SetI(0x7fffffff)); }
// The magnitude of `size` with the sign of `sign`; `size` must not be negative.
RILLET_INLINE F WithSign(F size, F sign) { return Real(Bits(size) | (Bits(sign) & SetI(0x80000000))); }
// The clamp of the numeric contract: lo > x ? lo : x, then hi < x ? hi : x. NaN passes, -0 stays. x86's max and min are
// this very comparison when the bound comes first; NEON's are not.
#if RILLET_ISA_IS(AVX512)
RILLET_INLINE F AtLeast(F x, F lo) { return (F)_mm512_max_ps((__m512)lo, (__m512)x); }
RILLET_INLINE F AtMost(F x, F hi) { return (F)_mm512_min_ps((__m512)hi, (__m512)x); }
#elif RILLET_ISA_IS(AVX2)
RILLET_INLINE F AtLeast(F x, F lo) { return (F)_mm256_max_ps((__m256)lo, (__m256)x); }
RILLET_INLINE F AtMost(F x, F hi) { return (F)_mm256_min_ps((__m256)hi, (__m256)x); }
#else
RILLET_INLINE F AtLeast(F x, F lo) { return lo > x ? lo : x; }
RILLET_INLINE F AtMost(F x, F hi) { return hi < x ? hi : x; }
#endif

}  // namespace RILLET_ISA
}  // namespace rillet
