// exp, log and their relatives out of add, mul, fma, correctly rounded division and square root, and integer bit work:
// the same bits on every instruction set, within 2 ulp of the truth (tests/ops/test_vmath.py measures it). Include
// after defining RILLET_ISA, as vec.h says; then Exp(F), Log(F), ... are in that namespace.
//
// Coefficients: minimax fits, weighted for relative error, rounded to float; lowest power first.
#pragma once
#include "vec.h"

namespace rillet {
namespace RILLET_ISA {

template <int N>
RILLET_INLINE F Horner(F x, const float (&k)[N]) {
  F p = Set(k[N - 1]);
#pragma GCC unroll 16
  for (int i = N - 2; i >= 0; --i) p = Fma(p, x, Set(k[i]));
  return p;
}

constexpr float kRoundMagic = 12582912.0f;  // 1.5 * 2^23: adding it rounds to a whole number in the low bits

// x = n * ln2 + r with |r| <= ln2 / 2, and tail = e^r - 1.
struct ExpParts {
  I n;  // in the low 9 bits at least
  F tail;
};

RILLET_INLINE ExpParts SplitExp(F x) {
  static constexpr float k[] = {0x1.fffffcp-2f, 0x1.55549p-3f, 0x1.5558f4p-5f, 0x1.123a6cp-7f, 0x1.6a234ep-10f};
  const F t = Fma(x, Set(0x1.715476p+0f), Set(kRoundMagic));
  const F n = t - Set(kRoundMagic);
  F r = Fma(n, Set(-0x1.62e42ep-1f), x);  // ln2 in two floats, the first rounded down
  r = Fma(n, Set(-0x1.efa39ep-25f), r);
  return {Bits(t), Fma(Horner(r, k), r * r, r)};
}

// 2^n for -126 <= n <= 127. The shift drops all but the low 9 bits of n: those of kRoundMagic above them do not matter.
RILLET_INLINE F PowerOfTwo(I n) { return Real((n + SetI(127)) << 23); }

// e^x; overflows to inf, goes through the denormals to 0, NaN stays.
RILLET_INLINE F Exp(F x) {
  const ExpParts s = SplitExp(AtMost(AtLeast(x, Set(-104.0f)), Set(89.0f)));
  // Two exact factors, so that only the last product rounds, for denormal results too.
  const I half = s.n >> 1;
  const F scale = PowerOfTwo(half);
  return Fma(scale, s.tail, scale) * PowerOfTwo(s.n - half);
}

// e^x where -87 <= x <= 88: one factor is enough.
RILLET_INLINE F ExpInRange(F x) {
  const ExpParts s = SplitExp(x);
  const F scale = PowerOfTwo(s.n);
  return Fma(scale, s.tail, scale);
}

// e^x - 1 for x <= 0, without cancellation near 0.
RILLET_INLINE F Expm1OfNegative(F x) {
  const ExpParts s = SplitExp(AtLeast(x, Set(-87.0f)));
  const F scale = PowerOfTwo(s.n);
  return Fma(scale, s.tail, scale - Set(1.0f));
}

// Natural logarithm: -inf at 0, NaN below.
RILLET_INLINE F Log(F x) {
  static constexpr float k[] = {0x1.555548p-2f,  -0x1.000006p-2f, 0x1.99a4bcp-3f,  -0x1.555c5ap-3f, 0x1.2336ep-3f,
                                -0x1.fc1f72p-4f, 0x1.e6f626p-4f,  -0x1.de4f84p-4f, 0x1.1462aep-4f};
  const float tiny = 0x1p-126f, inf = __builtin_inff();
  const auto denormal = x < Set(tiny);
  const F y = denormal ? x * Set(8388608.0f) : x;
  const F shift = denormal ? Set(-23.0f) : Set(0.0f);
  const I e = ShiftSigned(Bits(y) - SetI(0x3f3504f3), 23);  // y / 2^e lies in [sqrt(1/2), sqrt(2))
  const F f = Real(Bits(y) - (e << 23)) - Set(1.0f);
  const F n = ToFloat(e) + shift;
  const F s = f * f * Fma(Horner(f, k), f, Set(-0.5f));
  F r = Fma(n, Set(0x1.62e43p-1f), f + Fma(n, Set(-0x1.05c61p-29f), s));
  r = x < Set(inf) ? r : x;  // inf and NaN are their own logarithm
  const F not_positive = x < Set(0.0f) ? Set(__builtin_nanf("")) : Abs(x) < Set(tiny) ? Set(-inf) : x;
  return Set(0.0f) < x ? r : not_positive;
}

RILLET_INLINE F Tanh(F x) {
  static constexpr float k[] = {-0x1.555554p-2f, 0x1.11106cp-3f,  -0x1.b9ef7cp-5f,
                                0x1.6394d8p-6f,  -0x1.0c213ep-7f, 0x1.197b62p-9f};
  const F a = AtMost(Abs(x), Set(10.0f)), z = a * a;
  const F small = Fma(a * z, Horner(z, k), a);
  const F big = Set(1.0f) - Set(2.0f) / (ExpInRange(a + a) + Set(1.0f));
  return WithSign(a < Set(0.625f) ? small : big, x);
}

// With e = exp(-|x|): 1 / (1 + e), or e / (1 + e) below 0. The sum rounds; its error d is exact (e <= 1: fast two-sum)
// and is put back into the quotient.
RILLET_INLINE F Sigmoid(F x) {
  const F one = Set(1.0f), zero = Set(0.0f);
  const F e = Exp(zero - Abs(x)), sum = one + e, d = e - (sum - one);
  const F s = (x < zero ? e : one) / sum;
  const F inverse = x < zero ? one - s : s;  // 1 / sum, near enough for the correction
  return Fma(s * inverse, zero - d, s);
}

RILLET_INLINE F Erf(F x) {
  static constexpr float inner[] = {0x1.06eba8p-3f, -0x1.812746p-2f,  0x1.ce2f0ap-4f,  -0x1.b829d8p-6f,
                                    0x1.562b1ap-8f, -0x1.bcd7dep-11f, 0x1.d8b88cp-14f, -0x1.44cfbep-17f};
  static constexpr float outer[] = {-0x1.02da78p-13f, 0x1.2112dp+0f,   0x1.44b8c2p-1f,  0x1.b5f6c8p-4f,
                                    -0x1.860046p-6f,  0x1.b5ef26p-9f,  -0x1.8c428p-14f, -0x1.15368p-14f,
                                    0x1.a9ec52p-17f,  -0x1.acec5ap-21f};
  const F a = AtMost(Abs(x), Set(4.0f)), z = a * a;
  const F small = Fma(a, Horner(z, inner), a);
  const F big = Set(1.0f) - ExpInRange(Set(0.0f) - Horner(a, outer));
  return WithSign(a < Set(1.0f) ? small : big, x);
}

// log(1 + e^x) = max(x, 0) + log1p(e^-|x|), the error of the inner sum put back.
RILLET_INLINE F Softplus(F x) {
  const F one = Set(1.0f);
  const F e = Exp(Set(0.0f) - Abs(x)), sum = one + e;
  const F tail = Log(sum) + (e - (sum - one)) / sum;
  return AtLeast(x, Set(0.0f)) + tail;
}

// To the nearest whole number, halves to the even one; -0 and NaN stay.
RILLET_INLINE F Round(F x) {
  const F a = Abs(x), big = Set(8388608.0f);  // 2^23: from here on every float is whole
  return a < big ? WithSign((a + big) - big, x) : x;
}

RILLET_INLINE F Floor(F x) {
  const F r = Round(x);
  const F down = r > x ? r - Set(1.0f) : r;
  return Abs(x) < Set(8388608.0f) ? WithSign(Abs(down), x) : x;
}

RILLET_INLINE F Ceil(F x) {
  const F r = Round(x);
  const F up = r < x ? r + Set(1.0f) : r;
  return Abs(x) < Set(8388608.0f) ? WithSign(Abs(up), x) : x;
}

}  // namespace RILLET_ISA
}  // namespace rillet
