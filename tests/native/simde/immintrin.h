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
