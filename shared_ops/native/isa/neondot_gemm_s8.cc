// int8 products on NEON with sdot by lane: tile 4 rows x 16 channels, 16 values of k a step, then 4 at a time.
#include "neon_epilogue_s8.h"

namespace rillet {
namespace neondot {
namespace {

constexpr int kRows = 4, kWidth = 16, kGroup = 4;

template <int R>
void Tile(const GemmS8Args& g, const uint8_t* const* rows, const int8_t* b, int64_t channel, int8_t* out) {
  int32x4_t acc[R][4];
  Repeat<4>([&](auto v) RILLET_INLINE {
    const int32x4_t bias = vld1q_s32(g.bias + channel + 4 * v);
    Repeat<R>([&](auto m) RILLET_INLINE { acc[m][v] = bias; });
  });
  const int64_t depth = g.depth, taps = g.tap_count;
  for (int64_t t = 0; t < taps; ++t) {
    const int8_t* a[R];
    Repeat<R>([&](auto m) RILLET_INLINE { a[m] = reinterpret_cast<const int8_t*>(rows[m] + g.taps[t]); });
    int64_t k = 0;
    for (; k + 12 < depth; k += 16) {
      int8x16_t x[R];
      Repeat<R>([&](auto m) RILLET_INLINE { x[m] = vld1q_s8(a[m] + k); });
      Repeat<4>([&](auto lane) RILLET_INLINE {
        const int8x16x4_t w = vld1q_s8_x4(b);
        b += 64;
        Repeat<4>([&](auto v) RILLET_INLINE {
          Repeat<R>([&](auto m) RILLET_INLINE { acc[m][v] = vdotq_laneq_s32(acc[m][v], w.val[v], x[m], lane); });
        });
      });
    }
    for (; k < depth; k += kGroup, b += 64)
      Repeat<R>([&](auto m) RILLET_INLINE {
        int quad;
        std::memcpy(&quad, a[m] + k, 4);
        const int8x16_t x = vreinterpretq_s8_s32(vdupq_n_s32(quad));
        Repeat<4>([&](auto v) RILLET_INLINE { acc[m][v] = vdotq_s32(acc[m][v], vld1q_s8(b + 16 * v), x); });
      });
  }
  const NeonEpilogue e = Broadcast(g.epilogue);
  Repeat<R>([&](auto m)
                RILLET_INLINE { Store(out + m * g.out_stride, Finish(acc[m], g.scale + channel, e), g.n - channel); });
}

void Run(const GemmS8Args& g) {
  const int64_t panel_bytes = g.tap_count * ((g.depth + kGroup - 1) / kGroup) * kGroup * kWidth;
  for (int64_t p = g.panel_begin; p < g.panel_end; ++p) {
    const int8_t* b = g.b + p * panel_bytes;
    int8_t* out = g.out + kWidth * p;
    int64_t m = 0;
    for (; m + kRows <= g.m; m += kRows) Tile<kRows>(g, g.rows + m, b, kWidth * p, out + m * g.out_stride);
    switch (g.m - m) {
      case 1: Tile<1>(g, g.rows + m, b, kWidth * p, out + m * g.out_stride); break;
      case 2: Tile<2>(g, g.rows + m, b, kWidth * p, out + m * g.out_stride); break;
      case 3: Tile<3>(g, g.rows + m, b, kWidth * p, out + m * g.out_stride); break;
      default: break;
    }
  }
}

}  // namespace

const GemmS8 kGemmS8 = {kWidth, kWidth, kGroup, 1, 0, NaturalChannel, nullptr, Run};

}  // namespace neondot
}  // namespace rillet
