// The body of every <isa>_pointwise_s8.cc; RILLET_ISA_NAMESPACE says which.
#include "../requantize.h"
#include "pointwise_s8.h"

namespace rillet {
namespace RILLET_ISA_NAMESPACE {
namespace {

template <int kA, int kB>
void AddRow(const AddS8& given, const int8_t* a, const int8_t* b, int8_t* out, int64_t n) {
  const AddS8 p = given;  // a copy: int8 stores may alias anything else
  for (int64_t i = 0; i < n; ++i) {
    int32_t q = ((p.a * a[kA * i] + p.b * b[kB * i] + p.offset) >> p.shift) + p.zero_point;
    q = q < p.low ? p.low : q;
    out[i] = static_cast<int8_t>(q > p.high ? p.high : q);
  }
}

void Add(const AddS8& p, const int8_t* a, int a_step, const int8_t* b, int b_step, int8_t* out, int64_t n) {
  if (a_step && b_step) AddRow<1, 1>(p, a, b, out, n);
  else if (a_step) AddRow<1, 0>(p, a, b, out, n);
  else AddRow<0, 1>(p, a, b, out, n);
}

template <int kA, int kB>
void MulRow(const MulS8& given, const int8_t* a, const int8_t* b, int8_t* out, int64_t n) {
  const MulS8 p = given;
  const float low = static_cast<float>(p.low - p.zero_point), high = static_cast<float>(p.high - p.zero_point);
  for (int64_t i = 0; i < n; ++i) {
    const int32_t acc = (a[kA * i] - p.a_zero) * (b[kB * i] - p.b_zero);
    out[i] = static_cast<int8_t>(RoundEven(Clamp(static_cast<float>(acc) * p.scale, low, high)) + p.zero_point);
  }
}

void Mul(const MulS8& p, const int8_t* a, int a_step, const int8_t* b, int b_step, int8_t* out, int64_t n) {
  if (a_step && b_step) MulRow<1, 1>(p, a, b, out, n);
  else if (a_step) MulRow<1, 0>(p, a, b, out, n);
  else MulRow<0, 1>(p, a, b, out, n);
}

void Quantize(const float* x, float scale, int32_t zero_point, int8_t* out, int64_t n) {
  const float low = static_cast<float>(kQMin - zero_point), high = static_cast<float>(kQMax - zero_point);
  for (int64_t i = 0; i < n; ++i) {
    const float f = Clamp(x[i] / scale, low, high);
    out[i] = static_cast<int8_t>(RoundEven(f == f ? f : 0.0f) + zero_point);  // NaN stands for 0
  }
}

void Dequantize(const int8_t* x, float scale, int32_t zero_point, float* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = static_cast<float>(x[i] - zero_point) * scale;
}

void Max(const int8_t* x, int8_t* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = x[i] > out[i] ? x[i] : out[i];
}

void Accumulate(const int8_t* x, int32_t* acc, int64_t n) {
  for (int64_t i = 0; i < n; ++i) acc[i] += x[i];
}

}  // namespace

const PointwiseS8 kPointwiseS8 = {Add, Mul, Quantize, Dequantize, Max, Accumulate};

}  // namespace RILLET_ISA_NAMESPACE
}  // namespace rillet
