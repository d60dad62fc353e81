// The int8 arithmetic that all kernels share; shared_ops/quantize.py is the same in Python, bit for bit.
//
// Profile rq_f32: an int32 accumulator, ONE float32 multiply, clamp in float, round half to even, add the zero point.
#pragma once
#include "kernel.h"

namespace rillet {

constexpr int32_t kQMin = -128, kQMax = 127;

// Round half to even for |f| < 2^22. Adding 1.5 * 2^23 leaves no bits for the fraction, so the addition itself rounds,
// in the default mode; a plain loop over it vectorises on every ISA, which a call of nearbyintf does not.
inline int32_t RoundEven(float f) {
  const float shifted = f + 12582912.0f;
  int32_t bits;
  std::memcpy(&bits, &shifted, sizeof bits);
  return bits - 0x4B400000;
}

inline float Clamp(float f, float low, float high) {
  f = low > f ? low : f;
  return high < f ? high : f;
}

inline int8_t Requantize(int32_t acc, float scale, int32_t zero_point, int32_t low, int32_t high) {
  const float f = static_cast<float>(acc) * scale;
  return static_cast<int8_t>(
      RoundEven(Clamp(f, static_cast<float>(low - zero_point), static_cast<float>(high - zero_point))) + zero_point);
}

// The float32 multiplier of an output channel: two float32 roundings, in this order.
inline float RequantizeScale(float x, float w, float y) { return x * w / y; }

// Per-tensor parameters of an int8 tensor; fails where they are missing or impossible. `what`: "input 0", ...
struct TensorQuant {
  float scale = 0;
  int32_t zero_point = 0;
};
Status ReadQuant(Prepare& ctx, const Tensor& t, const char* what, TensorQuant* quant);

// The q range of the attribute `activation` of an op that has one: RELU6 ends at 6/scale, rounded half away from zero.
struct OutputQuant {
  float scale = 0;
  int32_t zero_point = 0;
  int32_t low = kQMin, high = kQMax;
};
Status ReadOutput(Prepare& ctx, const Tensor& y, bool has_activation, OutputQuant* out);

// Fails unless int8 tensors `a` and `b` have the same parameters.
Status CheckSameQuant(Prepare& ctx, const Tensor& a, const Tensor& b, const char* what);

// Softmax tables: entry k is exp(-k * scale), in double by additions, products and one division, rounded to float32.
void ExpTable(float scale, float table[256]);
// log(x) for x >= 1, by the same means.
double Log64(double x);

}  // namespace rillet
