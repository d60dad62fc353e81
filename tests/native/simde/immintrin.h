// Stands before the compiler's immintrin.h where AVX-512 is emulated: the same source, its AVX-512 intrinsics computed
// by SIMDe (Debian package libsimde-dev) with what this CPU has. It shows that the logic is right where no AVX-512 CPU
// is at hand. Intrinsics that SIMDe 0.7.4 lacks follow below, as plain loops.
#pragma once
#include_next <immintrin.h>
#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx512.h>

namespace avx512_by_simde {

template <class Vector, class Element, class Mask>
inline Vector LoadMasked(Mask mask, const void* from) {
  Element lanes[sizeof(Vector) / sizeof(Element)] = {};
  for (unsigned i = 0; i < sizeof(lanes) / sizeof(Element); ++i)
    if (mask >> i & 1) lanes[i] = static_cast<const Element*>(from)[i];
  Vector v;
  __builtin_memcpy(&v, lanes, sizeof(v));
  return v;
}

template <class Element, class Vector, class Mask>
inline void StoreMasked(void* to, Mask mask, Vector v) {
  Element lanes[sizeof(Vector) / sizeof(Element)];
  __builtin_memcpy(lanes, &v, sizeof(v));
  for (unsigned i = 0; i < sizeof(lanes) / sizeof(Element); ++i)
    if (mask >> i & 1) static_cast<Element*>(to)[i] = lanes[i];
}

template <class To, class From, class ToElement, class FromElement>
inline To Convert(From from) {
  constexpr unsigned kLanes = sizeof(To) / sizeof(ToElement);
  FromElement in[kLanes];
  ToElement out[kLanes];
  __builtin_memcpy(in, &from, sizeof(in));
  for (unsigned i = 0; i < kLanes; ++i) out[i] = static_cast<ToElement>(in[i]);
  To to;
  __builtin_memcpy(&to, out, sizeof(out));
  return to;
}

// Both halves by the 256-bit instruction: SIMDe would round between multiplication and addition, and where a float is
// out of an int's range.
template <class Wide, class Half, class Result, class Function, class... More>
inline Result InHalves(Function function, Wide first, More... more) {
  Half in[1 + sizeof...(More)][2];
  Wide all[] = {first, more...};
  __builtin_memcpy(in, all, sizeof(in));
  Result result;
  const auto low = [&](auto... i) { return function(in[i][0]...); };
  const auto high = [&](auto... i) { return function(in[i][1]...); };
  if constexpr (sizeof...(More) == 0) {
    const auto a = low(0), b = high(0);
    __builtin_memcpy(&result, &a, 32);
    __builtin_memcpy(reinterpret_cast<char*>(&result) + 32, &b, 32);
  } else {
    const auto a = low(0, 1, 2), b = high(0, 1, 2);
    __builtin_memcpy(&result, &a, 32);
    __builtin_memcpy(reinterpret_cast<char*>(&result) + 32, &b, 32);
  }
  return result;
}

inline __m512 FusedPs(__m512 a, __m512 b, __m512 c) {
  return InHalves<__m512, __m256, __m512>([](__m256 x, __m256 y, __m256 z) { return _mm256_fmadd_ps(x, y, z); }, a, b,
                                          c);
}
inline __m512d FusedPd(__m512d a, __m512d b, __m512d c) {
  return InHalves<__m512d, __m256d, __m512d>([](__m256d x, __m256d y, __m256d z) { return _mm256_fmadd_pd(x, y, z); },
                                             a, b, c);
}
inline __m512i ToInt(__m512 a) {
  return InHalves<__m512, __m256, __m512i>([](__m256 x) { return _mm256_cvtps_epi32(x); }, a);
}
inline __m512 ToFloat(__m512i a) {
  return InHalves<__m512i, __m256i, __m512>([](__m256i x) { return _mm256_cvtepi32_ps(x); }, a);
}

}  // namespace avx512_by_simde

#undef _mm512_fmadd_ps
#undef _mm512_fmadd_pd
#define _mm512_fmadd_ps(a, b, c) (avx512_by_simde::FusedPs(a, b, c))
#define _mm512_fmadd_pd(a, b, c) (avx512_by_simde::FusedPd(a, b, c))
#define _mm512_cvtps_epi32(a) (avx512_by_simde::ToInt(a))
#define _mm512_cvtepi32_ps(a) (avx512_by_simde::ToFloat(a))
#define _mm512_maskz_loadu_ps(m, p) (avx512_by_simde::LoadMasked<__m512, float>(m, p))
#define _mm512_mask_storeu_ps(p, m, v) (avx512_by_simde::StoreMasked<float>(p, m, v))
#define _mm512_maskz_loadu_epi8(m, p) (avx512_by_simde::LoadMasked<__m512i, signed char>(m, p))
#define _mm512_mask_storeu_epi8(p, m, v) (avx512_by_simde::StoreMasked<signed char>(p, m, v))
#define _mm_mask_storeu_epi8(p, m, v) (avx512_by_simde::StoreMasked<signed char>(p, m, v))
#define _mm256_mask_storeu_epi8(p, m, v) (avx512_by_simde::StoreMasked<signed char>(p, m, v))
#define _mm512_cvtps_pd(v) (avx512_by_simde::Convert<__m512d, __m256, double, float>(v))
#define _mm512_cvtpd_ps(v) (avx512_by_simde::Convert<__m256, __m512d, float, double>(v))
