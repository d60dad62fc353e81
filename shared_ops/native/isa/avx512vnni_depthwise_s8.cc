// Depthwise int8: four taps of 64 channels are interleaved byte by byte, so that one vpdpbusd does all four of 16
// channels. Unpacking leaves channels in the order that the packs of the epilogue undo.
#include "avx512vnni_epilogue_s8.h"

namespace rillet {
namespace avx512vnni {
namespace {

void Form(uint8_t* to, const int8_t* from, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = static_cast<uint8_t>(from[i] ^ 0x80);
}

RILLET_INLINE inline __m512i Load(const uint8_t* row, int64_t offset, __mmask64 mask) {
  return _mm512_maskz_loadu_epi8(mask, row + offset);
}

template <bool kClamp>
void RunAll(const DepthwiseS8Args& g) {
  const int64_t quads = (g.tap_count + 3) / 4;
  for (int64_t channel = 0; channel < g.channels; channel += kWidth) {
    const int64_t n = g.channels - channel;
    const __mmask64 mask = FirstBits(n);
    for (int64_t m = 0; m < g.m; ++m) {
      __m512i acc[4];
      Repeat<4>([&](auto v) RILLET_INLINE { acc[v] = _mm512_load_si512(g.bias + channel + 16 * v); });
      const int8_t* w = g.w + channel * quads * 4;
      const uint8_t* row = g.rows[m] + channel;
      for (int64_t t = 0; t < quads; ++t, w += 256) {
        int64_t at[4];  // weight 0 where a quad has fewer taps
        for (int i = 0; i < 4; ++i) at[i] = g.taps[4 * t + i < g.tap_count ? 4 * t + i : 4 * t];
        const __m512i a = Load(row, at[0], mask), b = Load(row, at[1], mask);
        const __m512i c = Load(row, at[2], mask), d = Load(row, at[3], mask);
        const __m512i ab = _mm512_unpacklo_epi8(a, b), cd = _mm512_unpacklo_epi8(c, d);
        const __m512i ab2 = _mm512_unpackhi_epi8(a, b), cd2 = _mm512_unpackhi_epi8(c, d);
        acc[0] = Dot(acc[0], _mm512_unpacklo_epi16(ab, cd), _mm512_load_si512(w));
        acc[1] = Dot(acc[1], _mm512_unpackhi_epi16(ab, cd), _mm512_load_si512(w + 64));
        acc[2] = Dot(acc[2], _mm512_unpacklo_epi16(ab2, cd2), _mm512_load_si512(w + 128));
        acc[3] = Dot(acc[3], _mm512_unpackhi_epi16(ab2, cd2), _mm512_load_si512(w + 192));
      }
      Finish<4, kClamp>(acc, g.epilogue, g.scale + channel, g.out + m * g.out_stride + channel, n);
    }
  }
}

void Run(const DepthwiseS8Args& g) { g.epilogue.clamp ? RunAll<true>(g) : RunAll<false>(g); }

}  // namespace

const DepthwiseS8 kDepthwiseS8 = {kWidth, 4, 1, 128, Channel, Form, Run, nullptr};

}  // namespace avx512vnni
}  // namespace rillet
