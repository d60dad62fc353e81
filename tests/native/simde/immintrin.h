// Stands in for the compiler's header: AVX-512 code on any machine, through SIMDe, plus what SIMDe lacks.
#pragma once
#define SIMDE_ENABLE_NATIVE_ALIASES
#define SIMDE_NO_NATIVE
#include <simde/x86/avx512.h>

#include <cmath>
#include <cstdint>
#include <cstring>

using __mmask16 = simde__mmask16;
using __mmask32 = simde__mmask32;
using __mmask64 = simde__mmask64;

inline simde__m512 _mm512_cvtepi32_ps(simde__m512i v) {
  int32_t from[16];
  float to[16];
  std::memcpy(from, &v, sizeof from);
  for (int i = 0; i < 16; ++i) to[i] = static_cast<float>(from[i]);
  simde__m512 r;
  std::memcpy(&r, to, sizeof to);
  return r;
}

// As the instruction does: half to even, and INT_MIN for what does not fit.
inline simde__m512i _mm512_cvtps_epi32(simde__m512 v) {
  float from[16];
  int32_t to[16];
  std::memcpy(from, &v, sizeof from);
  for (int i = 0; i < 16; ++i)
    to[i] = from[i] >= -2147483648.0f && from[i] < 2147483648.0f ? static_cast<int32_t>(std::nearbyintf(from[i]))
                                                                 : INT32_MIN;
  simde__m512i r;
  std::memcpy(&r, to, sizeof to);
  return r;
}

template <class V>
void MaskStore(void* to, uint64_t mask, V v) {
  uint8_t bytes[sizeof(V)];
  std::memcpy(bytes, &v, sizeof v);
  for (size_t i = 0; i < sizeof v; ++i)
    if (mask >> i & 1) static_cast<uint8_t*>(to)[i] = bytes[i];
}
inline void _mm512_mask_storeu_epi8(void* to, __mmask64 mask, simde__m512i v) { MaskStore(to, mask, v); }
inline void _mm256_mask_storeu_epi8(void* to, __mmask32 mask, simde__m256i v) { MaskStore(to, mask, v); }
inline void _mm_mask_storeu_epi8(void* to, __mmask16 mask, simde__m128i v) { MaskStore(to, mask, v); }

inline simde__m512i _mm512_maskz_loadu_epi8(__mmask64 mask, const void* from) {
  uint8_t bytes[64] = {};
  for (int i = 0; i < 64; ++i)
    if (mask >> i & 1) bytes[i] = static_cast<const uint8_t*>(from)[i];
  simde__m512i r;
  std::memcpy(&r, bytes, sizeof bytes);
  return r;
}

inline simde__m512 _mm512_maskz_loadu_ps(__mmask16 mask, const void* from) {
  float lanes[16] = {};
  for (int i = 0; i < 16; ++i)
    if (mask >> i & 1) lanes[i] = static_cast<const float*>(from)[i];
  simde__m512 r;
  std::memcpy(&r, lanes, sizeof lanes);
  return r;
}
inline void _mm512_mask_storeu_ps(void* to, __mmask16 mask, simde__m512 v) {
  float lanes[16];
  std::memcpy(lanes, &v, sizeof lanes);
  for (int i = 0; i < 16; ++i)
    if (mask >> i & 1) static_cast<float*>(to)[i] = lanes[i];
}
inline simde__m512d _mm512_cvtps_pd(simde__m256 v) {
  float from[8];
  double to[8];
  std::memcpy(from, &v, sizeof from);
  for (int i = 0; i < 8; ++i) to[i] = from[i];
  simde__m512d r;
  std::memcpy(&r, to, sizeof to);
  return r;
}
inline simde__m256 _mm512_cvtpd_ps(simde__m512d v) {
  double from[8];
  float to[8];
  std::memcpy(from, &v, sizeof from);
  for (int i = 0; i < 8; ++i) to[i] = static_cast<float>(from[i]);
  simde__m256 r;
  std::memcpy(&r, to, sizeof to);
  return r;
}

// SIMDe's own are a product and a sum, rounded twice.
template <class V, class T>
V FusedLanes(V a, V b, V c, T (*fma)(T, T, T)) {
  constexpr int kCount = sizeof(V) / sizeof(T);
  T x[kCount], y[kCount], z[kCount];
  std::memcpy(x, &a, sizeof a);
  std::memcpy(y, &b, sizeof b);
  std::memcpy(z, &c, sizeof c);
  for (int i = 0; i < kCount; ++i) z[i] = fma(x[i], y[i], z[i]);
  std::memcpy(&c, z, sizeof c);
  return c;
}
inline float FusedFloat(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline double FusedDouble(double a, double b, double c) { return __builtin_fma(a, b, c); }
#undef _mm512_fmadd_ps
#undef _mm512_fmadd_pd
inline simde__m512 _mm512_fmadd_ps(simde__m512 a, simde__m512 b, simde__m512 c) {
  return FusedLanes(a, b, c, FusedFloat);
}
inline simde__m512d _mm512_fmadd_pd(simde__m512d a, simde__m512d b, simde__m512d c) {
  return FusedLanes(a, b, c, FusedDouble);
}
