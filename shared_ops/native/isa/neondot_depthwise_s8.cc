// Depthwise int8 with sdot: four taps of 16 channels are interleaved byte by byte, so that one sdot does all four of 4.
#include "neon_epilogue_s8.h"

namespace rillet {
namespace neondot {
namespace {

constexpr int kWidth = 16;

template <int R>
RILLET_INLINE inline void Pixels(const DepthwiseS8Args& g, int64_t m, int64_t channel, const NeonEpilogue& e) {
  int32x4_t acc[R][4];
  Repeat<4>([&](auto v) RILLET_INLINE {
    const int32x4_t bias = vld1q_s32(g.bias + channel + 4 * v);
    Repeat<R>([&](auto r) RILLET_INLINE { acc[r][v] = bias; });
  });
  const int64_t quads = (g.tap_count + 3) / 4;
  const int8_t* w = g.w + channel * quads * 4;
  for (int64_t t = 0; t < quads; ++t, w += 64) {
    int64_t at[4];  // weight 0 where a quad has fewer taps
    for (int i = 0; i < 4; ++i) at[i] = channel + g.taps[4 * t + i < g.tap_count ? 4 * t + i : 4 * t];
    const int8x16x4_t v = vld1q_s8_x4(w);
    Repeat<R>([&](auto r) RILLET_INLINE {
      const int8_t* row = reinterpret_cast<const int8_t*>(g.rows[m + r]);
      const int8x16_t a = vld1q_s8(row + at[0]), b = vld1q_s8(row + at[1]);
      const int8x16_t c = vld1q_s8(row + at[2]), d = vld1q_s8(row + at[3]);
      const int16x8_t ab = vreinterpretq_s16_s8(vzip1q_s8(a, b)), ab2 = vreinterpretq_s16_s8(vzip2q_s8(a, b));
      const int16x8_t cd = vreinterpretq_s16_s8(vzip1q_s8(c, d)), cd2 = vreinterpretq_s16_s8(vzip2q_s8(c, d));
      acc[r][0] = vdotq_s32(acc[r][0], vreinterpretq_s8_s16(vzip1q_s16(ab, cd)), v.val[0]);
      acc[r][1] = vdotq_s32(acc[r][1], vreinterpretq_s8_s16(vzip2q_s16(ab, cd)), v.val[1]);
      acc[r][2] = vdotq_s32(acc[r][2], vreinterpretq_s8_s16(vzip1q_s16(ab2, cd2)), v.val[2]);
      acc[r][3] = vdotq_s32(acc[r][3], vreinterpretq_s8_s16(vzip2q_s16(ab2, cd2)), v.val[3]);
    });
  }
  Repeat<R>([&](auto r) RILLET_INLINE {
    Store(g.out + (m + r) * g.out_stride + channel, Finish(acc[r], g.scale + channel, e), g.channels - channel);
  });
}

void Run(const DepthwiseS8Args& given) {
  const DepthwiseS8Args g = given;  // a copy: int8 stores may alias anything else
  const NeonEpilogue e = Broadcast(g.epilogue);
  for (int64_t channel = 0; channel < g.channels; channel += kWidth) {
    int64_t m = 0;
    for (; m + 2 <= g.m; m += 2) Pixels<2>(g, m, channel, e);
    if (m < g.m) Pixels<1>(g, m, channel, e);
  }
}

}  // namespace

const DepthwiseS8 kDepthwiseS8 = {kWidth, 4, 1, 0, NaturalChannel, nullptr, Run, nullptr};

}  // namespace neondot
}  // namespace rillet
