// From int32 accumulators to int8 outputs on NEON. fcvtns rounds half to even and saturates: no clamp in float is
// needed.
#pragma once
#include <arm_neon.h>

#include <cstring>

#include "gemm_s8.h"
#include "repeat.h"

namespace rillet {
namespace {

struct NeonEpilogue {
  int16x8_t zero_point;
  int8x16_t low, high;
};

inline NeonEpilogue Broadcast(const Epilogue& e) {
  return {vdupq_n_s16(static_cast<int16_t>(e.zero_point)), vdupq_n_s8(static_cast<int8_t>(e.low)),
          vdupq_n_s8(static_cast<int8_t>(e.high))};
}

RILLET_INLINE inline int32x4_t Scale(int32x4_t acc, float32x4_t scale) {
  return vcvtnq_s32_f32(vmulq_f32(vcvtq_f32_s32(acc), scale));
}

RILLET_INLINE inline int16x8_t Narrow(int32x4_t a, int32x4_t b, const float* scale, int16x8_t zero_point) {
  const int32x4_t x = Scale(a, vld1q_f32(scale)), y = Scale(b, vld1q_f32(scale + 4));
  return vqaddq_s16(vqmovn_high_s32(vqmovn_s32(x), y), zero_point);
}

RILLET_INLINE inline int8x16_t Finish(const int32x4_t (&acc)[4], const float* scale, const NeonEpilogue& e) {
  const int16x8_t x = Narrow(acc[0], acc[1], scale, e.zero_point);
  const int16x8_t y = Narrow(acc[2], acc[3], scale + 8, e.zero_point);
  return vminq_s8(vmaxq_s8(vqmovn_high_s16(vqmovn_s16(x), y), e.low), e.high);
}

RILLET_INLINE inline int8x8_t Finish(int32x4_t a, int32x4_t b, const float* scale, const NeonEpilogue& e) {
  const int8x8_t q = vqmovn_s16(Narrow(a, b, scale, e.zero_point));
  return vmin_s8(vmax_s8(q, vget_low_s8(e.low)), vget_low_s8(e.high));
}

RILLET_INLINE inline void Store(int8_t* to, int8x16_t v, int64_t n) {
  if (n >= 16) {
    vst1q_s8(to, v);
  } else {
    int8_t bytes[16];
    vst1q_s8(bytes, v);
    std::memcpy(to, bytes, static_cast<size_t>(n));
  }
}

RILLET_INLINE inline void Store(int8_t* to, int8x8_t v, int64_t n) {
  if (n >= 8) {
    vst1_s8(to, v);
  } else {
    int8_t bytes[8];
    vst1_s8(bytes, v);
    std::memcpy(to, bytes, static_cast<size_t>(n));
  }
}

}  // namespace
}  // namespace rillet
