// sin, cos and pow of floats, computed in double and rounded once: vectors of half as many doubles. The same rules as
// in vmath.h, so the same bits on every instruction set.
#pragma once
#include "vec.h"

namespace rillet {
namespace RILLET_ISA {

#if RILLET_ISA_IS(SCALAR)
constexpr int kWideLanes = 1;
using D = double;
using U = uint64_t;
RILLET_INLINE U WideBits(D x) {
  U u;
  std::memcpy(&u, &x, 8);
  return u;
}
RILLET_INLINE D WideReal(U u) {
  D x;
  std::memcpy(&x, &u, 8);
  return x;
}
RILLET_INLINE D WideFma(D a, D b, D c) { return __builtin_fma(a, b, c); }
RILLET_INLINE D WideLoad(const float* p) { return *p; }
RILLET_INLINE void WideStore(float* p, D x) { *p = static_cast<float>(x); }
#else
constexpr int kWideLanes = kLanes / 2;
typedef double D __attribute__((vector_size(kWideLanes * 8)));
typedef uint64_t U __attribute__((vector_size(kWideLanes * 8)));
RILLET_INLINE U WideBits(D x) { return (U)x; }
RILLET_INLINE D WideReal(U u) { return (D)u; }
#if RILLET_ISA_IS(AVX512)
RILLET_INLINE D WideFma(D a, D b, D c) { return (D)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c); }
RILLET_INLINE D WideLoad(const float* p) { return (D)_mm512_cvtps_pd(_mm256_loadu_ps(p)); }
RILLET_INLINE void WideStore(float* p, D x) { _mm256_storeu_ps(p, _mm512_cvtpd_ps((__m512d)x)); }
#elif RILLET_ISA_IS(AVX2)
RILLET_INLINE D WideFma(D a, D b, D c) { return (D)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c); }
RILLET_INLINE D WideLoad(const float* p) { return (D)_mm256_cvtps_pd(_mm_loadu_ps(p)); }
RILLET_INLINE void WideStore(float* p, D x) { _mm_storeu_ps(p, _mm256_cvtpd_ps((__m256d)x)); }
#else
RILLET_INLINE D WideFma(D a, D b, D c) { return (D)vfmaq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b); }
RILLET_INLINE D WideLoad(const float* p) { return (D)vcvt_f64_f32(vld1_f32(p)); }
RILLET_INLINE void WideStore(float* p, D x) { vst1_f32(p, vcvt_f32_f64((float64x2_t)x)); }
#endif
#endif

RILLET_INLINE D WideSet(double x) { return x - D{}; }
RILLET_INLINE U WideSetBits(uint64_t x) { return x | U{}; }
RILLET_INLINE D WideAbs(D x) { return WideReal(WideBits(x) & WideSetBits(INT64_MAX)); }

constexpr double kWideMagic = 6755399441055744.0;  // 1.5 * 2^52: adding it rounds to a whole number in the low bits

template <int N>
RILLET_INLINE D WideHorner(D x, const double (&k)[N]) {
  D p = WideSet(k[N - 1]);
#pragma GCC unroll 16
  for (int i = N - 2; i >= 0; --i) p = WideFma(p, x, WideSet(k[i]));
  return p;
}

// -- sin and cos ----------------------------------------------------------------------------------------------------

// The sine of r + quarter * pi/2, where |r| <= pi/4 and a little more. Taylor series: the first term left out is 2^-37.
RILLET_INLINE D SinOfQuarter(D r, U quarter) {
  static constexpr double ks[] = {-1.0 / 6, 1.0 / 120, -1.0 / 5040, 1.0 / 362880, -1.0 / 39916800};
  static constexpr double kc[] = {-1.0 / 2, 1.0 / 24, -1.0 / 720, 1.0 / 40320, -1.0 / 3628800, 1.0 / 479001600};
  const D z = r * r;
  const D s = r * WideFma(z, WideHorner(z, ks), WideSet(1.0)), c = WideFma(z, WideHorner(z, kc), WideSet(1.0));
  const D v = (quarter & WideSetBits(1)) == WideSetBits(0) ? s : c;
  return WideReal(WideBits(v) ^ (quarter & WideSetBits(2)) << 62);  // two quarters turn the sign
}

constexpr double kReducible =
    1073741824.0;  // 2^30: up to here a multiple of pi/2 in two doubles is subtracted exactly enough

// sin(x + quarter * pi/2) for |x| < 2^30.
RILLET_INLINE D SinReduced(D x, U quarter) {
  const D t = WideFma(x, WideSet(0x1.45f306dc9c883p-1), WideSet(kWideMagic)), k = t - WideSet(kWideMagic);
  D r = WideFma(-k, WideSet(0x1.921fb54442d18p+0), x);
  r = WideFma(-k, WideSet(0x1.1a62633145c07p-54), r);
  return SinOfQuarter(r, WideBits(t) + quarter);
}

// x, |x| >= 2^30, as r + q * pi/2 by integers: 62 bits of x * 2/pi modulo 4. NaN for inf and NaN.
inline double ReduceLarge(float x, uint64_t* q) {
  static constexpr uint32_t kTwoOverPi[8] = {0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0,
                                             0xdb629599, 0x3c439041, 0xfe5163ab, 0xdebbc561};
  uint32_t bits;
  std::memcpy(&bits, &x, 4);
  const int biased = static_cast<int>(bits >> 23 & 255);
  if (biased == 255) return x - x;
  // |x| = m * 2^e. The bits of 2/pi before bit e - 1 only add multiples of 4 quarter turns.
  const uint64_t m = (bits & 0x7fffff) | 0x800000;
  const int skip = biased - 150 - 2, word = skip / 32, shift = skip % 32;
  const auto window = [&](int i) -> uint64_t {
    const uint64_t pair = static_cast<uint64_t>(kTwoOverPi[word + i]) << 32 | kTwoOverPi[word + i + 1];
    return pair >> (32 - shift) & 0xffffffff;
  };
  const uint64_t high = window(0) << 32 | window(1), low = m * window(2) + (m * window(3) >> 32);
  const uint64_t turns = m * high + (low >> 32);  // in quarter turns, times 2^62, modulo 2^64
  const uint64_t whole = (turns + (uint64_t{1} << 61)) >> 62;
  const double r = static_cast<double>(static_cast<int64_t>(turns - (whole << 62))) * 0x1p-62 * 0x1.921fb54442d18p+0;
  *q = bits >> 31 ? 0 - whole : whole;
  return bits >> 31 ? -r : r;
}

// sin(x + quarter * pi/2) of kWideLanes floats: quarter 0 is the sine, 1 the cosine.
RILLET_INLINE void SinLanes(const float* x, float* y, uint64_t quarter) {
  const D wide = WideLoad(x);
  int large = 0;
  for (int i = 0; i < kWideLanes; ++i) large |= !((x[i] < 0 ? -x[i] : x[i]) < static_cast<float>(kReducible));
  if (!large) return WideStore(y, SinReduced(wide, WideSetBits(quarter)));
  for (int i = 0; i < kWideLanes; ++i) {
    float lane[kWideLanes] = {x[i]};
    const bool fits = (lane[0] < 0 ? -lane[0] : lane[0]) < static_cast<float>(kReducible);
    uint64_t q = 0;
    const double r = fits ? 0.0 : ReduceLarge(lane[0], &q);
    const D result =
        fits ? SinReduced(WideLoad(lane), WideSetBits(quarter)) : SinOfQuarter(WideSet(r), WideSetBits(q + quarter));
    WideStore(lane, result);
    y[i] = lane[0];
  }
}

// -- pow ------------------------------------------------------------------------------------------------------------

// The logarithm of a finite positive float: 2 atanh((m - 1) / (m + 1)) + e ln2, m in [sqrt(1/2), sqrt(2)).
RILLET_INLINE D WideLog(D x) {
  static constexpr double k[] = {1.0 / 3, 1.0 / 5, 1.0 / 7, 1.0 / 9, 1.0 / 11, 1.0 / 13, 1.0 / 15, 1.0 / 17};
  constexpr uint64_t kSqrtHalf = 0x3fe6a09e667f3bcd, kMantissa = (uint64_t{1} << 52) - 1, kTwoTo52 = 0x4330000000000000;
  // Exponents counted from -1024: not negative, so that whole-number bits of 2^52 + exponent are a double.
  const U offset = WideBits(x) - WideSetBits(kSqrtHalf - (uint64_t{1024} << 52));
  const D m = WideReal((offset & WideSetBits(kMantissa)) + WideSetBits(kSqrtHalf));
  const D e = WideReal(WideSetBits(kTwoTo52) | offset >> 52) - WideSet(0x1p52 + 1024.0);
  const D s = (m - WideSet(1.0)) / (m + WideSet(1.0)), z = s * s;
  return WideFma(e, WideSet(0x1.62e42fefa39efp-1), WideSet(2.0) * WideFma(s * z, WideHorner(z, k), s));
}

// e^t for t in [-110, 90] or NaN.
RILLET_INLINE D WideExp(D t) {
  static constexpr double k[] = {1.0,       1.0,       1.0 / 2,    1.0 / 6,     1.0 / 24,
                                 1.0 / 120, 1.0 / 720, 1.0 / 5040, 1.0 / 40320, 1.0 / 362880};
  const D magic = WideFma(t, WideSet(0x1.71547652b82fep+0), WideSet(kWideMagic)), n = magic - WideSet(kWideMagic);
  const D p = WideHorner(WideFma(-n, WideSet(0x1.62e42fefa39efp-1), t), k);
  return p * WideReal((WideBits(magic) << 52) + (WideSetBits(1023) << 52));
}

RILLET_INLINE auto IsWhole(D b) -> decltype(b == b) {  // of 0 <= b < 2^52
  return (b + WideSet(0x1p52)) - WideSet(0x1p52) == b;
}

// x to the power y, with the special values of IEEE 754. Both are floats.
RILLET_INLINE D WidePow(D x, D y) {
  const D zero = WideSet(0.0), one = WideSet(1.0), inf = WideSet(__builtin_inf());
  const D a = WideAbs(x), b = WideAbs(y);
  D log = WideLog(a);
  log = a < inf ? log : a;  // inf and NaN
  log = a == zero ? -inf : log;
  D t = y * log;
  t = t < WideSet(-110.0) ? WideSet(-110.0) : t;
  t = t > WideSet(90.0) ? WideSet(90.0) : t;
  D power = WideExp(t);
  power = a == one ? (y == y ? one : y) : power;

  // Whole exponents decide the sign; a float of 2^24 or more is whole and even, as 0 is.
  const D reduced = b < WideSet(0x1p24) ? b : zero;
  const auto whole = IsWhole(reduced), even = IsWhole(reduced * WideSet(0.5));
  const U odd = whole ? (even ? WideSetBits(0) : WideSetBits(uint64_t{1} << 63)) : WideSetBits(0);
  power = WideReal(WideBits(power) ^ (WideBits(x) & odd));
  const D root = whole ? power : WideSet(__builtin_nan(""));
  power = x < zero ? (a < inf ? root : power) : power;
  power = y == zero ? one : power;
  return x == one ? one : power;
}

}  // namespace RILLET_ISA
}  // namespace rillet
