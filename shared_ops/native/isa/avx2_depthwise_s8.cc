// Depthwise int8: two taps of 16 channels are interleaved byte by byte and widened, so that one vpmaddwd does both.
#include "avx2_epilogue_s8.h"

namespace rillet {
namespace avx2 {
namespace {

constexpr int kWidth = 16;

template <int R, bool kClamp>
void Pixels(const DepthwiseS8Args& g, int64_t m, int64_t channel) {
  __m256i acc[R][2];
  Repeat<2>([&](auto v) RILLET_INLINE {
    const __m256i bias = _mm256_load_si256(reinterpret_cast<const __m256i*>(g.bias + channel + 8 * v));
    Repeat<R>([&](auto r) RILLET_INLINE { acc[r][v] = bias; });
  });
  const int64_t pairs = (g.tap_count + 1) / 2;
  const __m256i* w = reinterpret_cast<const __m256i*>(g.w + channel * pairs * 4);
  const uint8_t* a[R];
  Repeat<R>([&](auto r) RILLET_INLINE { a[r] = g.rows[m + r] + channel; });
  for (int64_t t = 0; t < pairs; ++t, w += 2) {
    const int64_t first = g.taps[2 * t];
    const int64_t second = g.taps[2 * t + 1 < g.tap_count ? 2 * t + 1 : 2 * t];  // weight 0 where there is none
    const __m256i w0 = _mm256_load_si256(w), w1 = _mm256_load_si256(w + 1);
    Repeat<R>([&](auto r) RILLET_INLINE {
      const __m128i x = _mm_loadu_si128(reinterpret_cast<const __m128i*>(a[r] + first));
      const __m128i y = _mm_loadu_si128(reinterpret_cast<const __m128i*>(a[r] + second));
      const __m256i lower = _mm256_cvtepi8_epi16(_mm_unpacklo_epi8(x, y));
      const __m256i upper = _mm256_cvtepi8_epi16(_mm_unpackhi_epi8(x, y));
      acc[r][0] = _mm256_add_epi32(acc[r][0], _mm256_madd_epi16(lower, w0));
      acc[r][1] = _mm256_add_epi32(acc[r][1], _mm256_madd_epi16(upper, w1));
    });
  }
  Finish<R, kClamp, true>(acc, g.epilogue, g.scale + channel, g.out + m * g.out_stride + channel, g.out_stride,
                          g.channels - channel);
}

template <bool kClamp>
void RunAll(const DepthwiseS8Args& g) {
  for (int64_t channel = 0; channel < g.channels; channel += kWidth) {
    int64_t m = 0;
    for (; m + 4 <= g.m; m += 4) Pixels<4, kClamp>(g, m, channel);
    for (; m < g.m; ++m) Pixels<1, kClamp>(g, m, channel);
  }
}

void Run(const DepthwiseS8Args& g) { g.epilogue.clamp ? RunAll<true>(g) : RunAll<false>(g); }

}  // namespace

const DepthwiseS8 kDepthwiseS8 = {kWidth, 2, 2, 0, NaturalChannel, nullptr, Run};

}  // namespace avx2
}  // namespace rillet
