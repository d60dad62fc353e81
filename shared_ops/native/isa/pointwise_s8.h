// Loops over int8 elements: plain code that the compiler vectorises for each ISA's flags.
#pragma once
#include <cstdint>

#include "isa.h"

namespace rillet {

// q = clamp(((a*qa + b*qb + offset) >> shift) + zero_point), all in int32.
struct AddS8 {
  int32_t a, b, offset, shift, zero_point, low, high;
};
// q = requantize((qa - a_zero) * (qb - b_zero)).
struct MulS8 {
  int32_t a_zero, b_zero, zero_point, low, high;
  float scale;
};

struct PointwiseS8 {
  // `a_step` and `b_step` are 1, or 0 where one value is used for the whole row.
  void (*Add)(const AddS8& p, const int8_t* a, int a_step, const int8_t* b, int b_step, int8_t* out, int64_t n);
  void (*Mul)(const MulS8& p, const int8_t* a, int a_step, const int8_t* b, int b_step, int8_t* out, int64_t n);
  void (*Quantize)(const float* x, float scale, int32_t zero_point, int8_t* out, int64_t n);
  void (*Dequantize)(const int8_t* x, float scale, int32_t zero_point, float* out, int64_t n);
  void (*Max)(const int8_t* x, int8_t* out, int64_t n);          // out = max(out, x)
  void (*Accumulate)(const int8_t* x, int32_t* acc, int64_t n);  // acc += x
};

namespace scalar {
extern const PointwiseS8 kPointwiseS8;
}
namespace avx2 {
extern const PointwiseS8 kPointwiseS8;
}

inline const PointwiseS8& CurrentPointwiseS8() {
  static constexpr IsaTable<PointwiseS8> table = {&scalar::kPointwiseS8, RILLET_AVX2(&avx2::kPointwiseS8)};
  return table.Current();
}

}  // namespace rillet
