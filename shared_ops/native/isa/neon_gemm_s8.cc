// int8 products on NEON without dot products: smull + smlal2 + sadalp, 3 instructions for 16 products. Two products fit
// int16 because weights lie in [-127, 127]. Tile 2 rows x 8 channels, 16 values of k a step.
#include "neon_epilogue_s8.h"

namespace rillet {
namespace neon {
namespace {

constexpr int kRows = 2, kWidth = 8, kGroup = 16;

template <int R>
void Tile(const GemmS8Args& g, const uint8_t* const* rows, const int8_t* b, int64_t channel, int8_t* out) {
  int32x4_t acc[R][kWidth];
  Repeat<R>([&](auto m) RILLET_INLINE { Repeat<kWidth>([&](auto n) RILLET_INLINE { acc[m][n] = vdupq_n_s32(0); }); });
  const int64_t depth = g.depth, taps = g.tap_count;
  for (int64_t t = 0; t < taps; ++t) {
    const int8_t* a[R];
    Repeat<R>([&](auto m) RILLET_INLINE { a[m] = reinterpret_cast<const int8_t*>(rows[m] + g.taps[t]); });
    for (int64_t k = 0; k < depth; k += kGroup) {
      int8x16_t x[R];
      Repeat<R>([&](auto m) RILLET_INLINE { x[m] = vld1q_s8(a[m] + k); });
      Repeat<2>([&](auto half) RILLET_INLINE {
        const int8x16x4_t w = vld1q_s8_x4(b);
        b += 64;
        Repeat<4>([&](auto n) RILLET_INLINE {
          Repeat<R>([&](auto m) RILLET_INLINE {
            const int16x8_t low = vmull_s8(vget_low_s8(x[m]), vget_low_s8(w.val[n]));
            acc[m][4 * half + n] = vpadalq_s16(acc[m][4 * half + n], vmlal_high_s8(low, x[m], w.val[n]));
          });
        });
      });
    }
  }
  const NeonEpilogue e = Broadcast(g.epilogue);
  const int32x4_t bias0 = vld1q_s32(g.bias + channel), bias1 = vld1q_s32(g.bias + channel + 4);
  Repeat<R>([&](auto m) RILLET_INLINE {
    const int32x4_t x = vpaddq_s32(vpaddq_s32(acc[m][0], acc[m][1]), vpaddq_s32(acc[m][2], acc[m][3]));
    const int32x4_t y = vpaddq_s32(vpaddq_s32(acc[m][4], acc[m][5]), vpaddq_s32(acc[m][6], acc[m][7]));
    const int8x8_t q = Finish(vaddq_s32(x, bias0), vaddq_s32(y, bias1), g.scale + channel, e);
    Store(out + m * g.out_stride, q, g.n - channel);
  });
}

void Run(const GemmS8Args& g) {
  const int64_t panel_bytes = g.tap_count * ((g.depth + kGroup - 1) / kGroup) * kGroup * kWidth;
  for (int64_t p = g.panel_begin; p < g.panel_end; ++p) {
    const int8_t* b = g.b + p * panel_bytes;
    int8_t* out = g.out + kWidth * p;
    int64_t m = 0;
    for (; m + kRows <= g.m; m += kRows) Tile<kRows>(g, g.rows + m, b, kWidth * p, out + m * g.out_stride);
    if (m < g.m) Tile<1>(g, g.rows + m, b, kWidth * p, out + m * g.out_stride);
  }
}

}  // namespace

const GemmS8 kGemmS8 = {kWidth, kWidth, kGroup, 1, 0, NaturalChannel, nullptr, Run};

}  // namespace neon
}  // namespace rillet
