// What each float pointwise op computes, on one vector; named by the stem in pointwise.inc. params: the op's
// attributes.
#pragma once
#include "vmath.h"
#include "vmath_wide.h"

namespace rillet {
namespace RILLET_ISA {
namespace pointwise {

RILLET_INLINE F abs(F x, const float*) { return Abs(x); }
RILLET_INLINE F neg(F x, const float*) { return -x; }
RILLET_INLINE F sign(F x, const float*) {
  const F zero = Set(0.0f);
  return x > zero ? Set(1.0f) : x < zero ? Set(-1.0f) : x;  // 0, -0 and NaN stay
}
RILLET_INLINE F square(F x, const float*) { return x * x; }
RILLET_INLINE F sqrt(F x, const float*) { return Sqrt(x); }
RILLET_INLINE F rsqrt(F x, const float*) { return Set(1.0f) / Sqrt(x); }
RILLET_INLINE F reciprocal(F x, const float*) { return Set(1.0f) / x; }
RILLET_INLINE F exp(F x, const float*) { return Exp(x); }
RILLET_INLINE F log(F x, const float*) { return Log(x); }
RILLET_INLINE F erf(F x, const float*) { return Erf(x); }
RILLET_INLINE F floor(F x, const float*) { return Floor(x); }
RILLET_INLINE F ceil(F x, const float*) { return Ceil(x); }
RILLET_INLINE F round(F x, const float*) { return Round(x); }
RILLET_INLINE F relu(F x, const float*) { return AtLeast(x, Set(0.0f)); }
RILLET_INLINE F relu6(F x, const float*) { return AtMost(AtLeast(x, Set(0.0f)), Set(6.0f)); }
RILLET_INLINE F sigmoid(F x, const float*) { return Sigmoid(x); }
RILLET_INLINE F tanh(F x, const float*) { return Tanh(x); }
RILLET_INLINE F silu(F x, const float*) { return x * Sigmoid(x); }
RILLET_INLINE F softplus(F x, const float*) { return Softplus(x); }
RILLET_INLINE F clip_by_value(F x, const float* p) { return AtMost(AtLeast(x, Set(p[0])), Set(p[1])); }

// x / 2 * (1 + erf(x / sqrt(2))), or with tanh(sqrt(2/pi) * (x + 0.044715 x^3)).
RILLET_INLINE F gelu(F x, const float* p) {
  const F t =
      p[0] != 0.0f ? Tanh(Set(0x1.988454p-1f) * Fma(Set(0.044715f) * x * x, x, x)) : Erf(x * Set(0x1.6a09e6p-1f));
  return Set(0.5f) * x * (Set(1.0f) + t);
}

RILLET_INLINE F Gate(F x, F slope, F offset) { return AtMost(AtLeast(slope * x + offset, Set(0.0f)), Set(1.0f)); }
RILLET_INLINE F hard_sigmoid(F x, const float* p) { return Gate(x, Set(p[0]), Set(p[1])); }
RILLET_INLINE F hard_swish(F x, const float*) { return x * Gate(x, Set(1.0f / 6.0f), Set(0.5f)); }
RILLET_INLINE F leaky_relu(F x, const float* p) { return x > Set(0.0f) ? x : Set(p[0]) * x; }
RILLET_INLINE F elu(F x, const float* p) {
  const F zero = Set(0.0f);
  return x > zero ? x : Set(p[0]) * Expm1OfNegative(zero < x ? zero : x);
}

RILLET_INLINE F add(F a, F b, const float*) { return a + b; }
RILLET_INLINE F sub(F a, F b, const float*) { return a - b; }
RILLET_INLINE F mul(F a, F b, const float*) { return a * b; }
RILLET_INLINE F add_clamped(F a, F b, const float* p) { return AtMost(AtLeast(a + b, Set(p[0])), Set(p[1])); }
RILLET_INLINE F mul_clamped(F a, F b, const float* p) { return AtMost(AtLeast(a * b, Set(p[0])), Set(p[1])); }
RILLET_INLINE F mul_no_nan(F a, F b, const float*) { return b == Set(0.0f) ? Set(0.0f) : a * b; }
RILLET_INLINE F real_div(F a, F b, const float*) { return a / b; }
RILLET_INLINE F floor_div(F a, F b, const float*) { return Floor(a / b); }
RILLET_INLINE F maximum(F a, F b, const float*) { return a >= b ? a : a == a ? b : a; }
RILLET_INLINE F minimum(F a, F b, const float*) { return a <= b ? a : a == a ? b : a; }
RILLET_INLINE F squared_difference(F a, F b, const float*) { return (a - b) * (a - b); }
RILLET_INLINE F prelu(F x, F alpha, const float*) { return x > Set(0.0f) ? x : alpha * x; }

RILLET_INLINE F relu_grad(F dy, F y, const float*) { return y > Set(0.0f) ? dy : Set(0.0f); }
RILLET_INLINE F relu6_grad(F dy, F y, const float*) {
  const F zero = Set(0.0f);
  return y > zero ? (y < Set(6.0f) ? dy : zero) : zero;
}
RILLET_INLINE F sigmoid_grad(F dy, F y, const float*) { return dy * (y * (Set(1.0f) - y)); }
RILLET_INLINE F tanh_grad(F dy, F y, const float*) { return dy * (Set(1.0f) - y * y); }

// Those that work in doubles, half a vector at a time, or lane by lane.
template <class Body>
RILLET_INLINE F ByParts(F a, F b, const Body& body) {
  float as[kLanes], bs[kLanes], ys[kLanes];
  Store(as, a);
  Store(bs, b);
  for (int i = 0; i < kLanes; i += kWideLanes) body(as + i, bs + i, ys + i);
  return Load(ys);
}
RILLET_INLINE F sin(F x, const float*) {
  return ByParts(x, x, [](const float* a, const float*, float* y) { SinLanes(a, y, 0); });
}
RILLET_INLINE F cos(F x, const float*) {
  return ByParts(x, x, [](const float* a, const float*, float* y) { SinLanes(a, y, 1); });
}
RILLET_INLINE F pow(F a, F b, const float*) {
  return ByParts(a, b,
                 [](const float* x, const float* y, float* z) { WideStore(z, WidePow(WideLoad(x), WideLoad(y))); });
}
// fmod is exact, so any library's will do. The result has the sign of b, a zero too.
RILLET_INLINE F floor_mod(F a, F b, const float*) {
  return ByParts(a, b, [](const float* x, const float* y, float* z) {
    for (int i = 0; i < kWideLanes; ++i) {
      const float rest = __builtin_fmodf(x[i], y[i]);
      z[i] = rest == 0 ? __builtin_copysignf(0.0f, y[i]) : (rest < 0) != (y[i] < 0) ? rest + y[i] : rest;
    }
  });
}

}  // namespace pointwise
}  // namespace RILLET_ISA
}  // namespace rillet
