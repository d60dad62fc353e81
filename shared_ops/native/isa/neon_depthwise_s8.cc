// Depthwise int8 on NEON: one tap of 8 channels is widened to int16 and multiplied into two int32 vectors.
#include "neon_epilogue_s8.h"

namespace rillet {
namespace neon {
namespace {

constexpr int kWidth = 8;

template <int R>
RILLET_INLINE inline void Pixels(const DepthwiseS8Args& g, int64_t m, int64_t channel, const NeonEpilogue& e) {
  int32x4_t low[R], high[R];
  Repeat<R>([&](auto r) RILLET_INLINE {
    low[r] = vld1q_s32(g.bias + channel);
    high[r] = vld1q_s32(g.bias + channel + 4);
  });
  const int16_t* w = reinterpret_cast<const int16_t*>(g.w) + channel * g.tap_count;
  for (int64_t t = 0; t < g.tap_count; ++t) {
    const int16x8_t v = vld1q_s16(w + kWidth * t);
    const int64_t at = channel + g.taps[t];
    Repeat<R>([&](auto r) RILLET_INLINE {
      const int16x8_t x = vmovl_s8(vld1_s8(reinterpret_cast<const int8_t*>(g.rows[m + r] + at)));
      low[r] = vmlal_s16(low[r], vget_low_s16(x), vget_low_s16(v));
      high[r] = vmlal_high_s16(high[r], x, v);
    });
  }
  Repeat<R>([&](auto r) RILLET_INLINE {
    const int8x8_t q = Finish(low[r], high[r], g.scale + channel, e);
    Store(g.out + (m + r) * g.out_stride + channel, q, g.channels - channel);
  });
}

void Run(const DepthwiseS8Args& given) {
  const DepthwiseS8Args g = given;  // a copy: int8 stores may alias anything else
  const NeonEpilogue e = Broadcast(g.epilogue);
  for (int64_t channel = 0; channel < g.channels; channel += kWidth) {
    int64_t m = 0;
    for (; m + 4 <= g.m; m += 4) Pixels<4>(g, m, channel, e);
    for (; m < g.m; ++m) Pixels<1>(g, m, channel, e);
  }
}

}  // namespace

const DepthwiseS8 kDepthwiseS8 = {kWidth, 1, 2, 0, NaturalChannel, nullptr, Run, nullptr};

}  // namespace neon
}  // namespace rillet
