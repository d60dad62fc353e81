// int8 products with vpdpbusd: activations as uint8 (sign bit flipped), weights int8. Panels of up to 64 channels.
#include "avx512vnni_epilogue_s8.h"

namespace rillet {
namespace avx512vnni {
namespace {

void Form(uint8_t* to, const int8_t* from, int64_t n) {
  const __m512i flip = _mm512_set1_epi8(-128);
  int64_t i = 0;
  for (; i + 64 <= n; i += 64) _mm512_storeu_si512(to + i, _mm512_xor_si512(_mm512_loadu_si512(from + i), flip));
  if (i < n) {
    const __mmask64 rest = (uint64_t{1} << (n - i)) - 1;
    _mm512_mask_storeu_epi8(to + i, rest, _mm512_xor_si512(_mm512_maskz_loadu_epi8(rest, from + i), flip));
  }
}

template <int R, int V>
void Tile(const GemmS8Args& g, const uint8_t* const* rows, const int8_t* b, int64_t channel, int8_t* out) {
  __m512i acc[R][V];
  Repeat<V>([&](auto v) RILLET_INLINE {
    const __m512i bias = _mm512_load_si512(g.bias + channel + 16 * v);
    Repeat<R>([&](auto m) RILLET_INLINE { acc[m][v] = bias; });
  });
  const int64_t quads = (g.depth + 3) / 4;
  for (int64_t t = 0; t < g.tap_count; ++t) {
    const uint8_t* a[R];
    Repeat<R>([&](auto m) RILLET_INLINE { a[m] = rows[m] + g.taps[t]; });
    for (int64_t k = 0; k < quads; ++k, b += 64 * V) {
      __m512i w[V];
      Repeat<V>([&](auto v) RILLET_INLINE { w[v] = _mm512_load_si512(b + 64 * v); });
      Repeat<R>([&](auto m) RILLET_INLINE {
        int quad;
        std::memcpy(&quad, a[m] + 4 * k, 4);
        const __m512i x = _mm512_set1_epi32(quad);
        Repeat<V>([&](auto v) RILLET_INLINE { acc[m][v] = Dot(acc[m][v], x, w[v]); });
      });
    }
  }
  const int64_t n = g.n - channel;
  Repeat<R>([&](auto m) RILLET_INLINE {
    if (g.epilogue.clamp) Finish<V, true>(acc[m], g.epilogue, g.scale + channel, out + m * g.out_stride, n);
    else Finish<V, false>(acc[m], g.epilogue, g.scale + channel, out + m * g.out_stride, n);
  });
}

// Rows a tile for V vectors of channels, so that accumulators, weights and one broadcast fit 32 registers.
constexpr int MaxRows(int vectors) { return vectors == 4 ? 6 : vectors == 3 ? 8 : vectors == 2 ? 12 : 10; }

template <int R, int V>
void Dispatch(int rows, const GemmS8Args& g, int64_t m, const int8_t* b, int64_t channel) {
  if constexpr (R > 0) {
    if (rows == R) Tile<R, V>(g, g.rows + m, b, channel, g.out + m * g.out_stride + channel);
    else Dispatch<R - 1, V>(rows, g, m, b, channel);
  }
}

template <int V>
void Panel(const GemmS8Args& g, const int8_t* b, int64_t channel) {
  const int64_t tiles = (g.m + MaxRows(V) - 1) / MaxRows(V);
  for (int64_t i = 0, m = 0; i < tiles; ++i) {
    const int rows = static_cast<int>((g.m - m + tiles - i - 1) / (tiles - i));  // balanced
    Dispatch<MaxRows(V), V>(rows, g, m, b, channel);
    m += rows;
  }
}

void Run(const GemmS8Args& g) {
  const int64_t panel_bytes = g.tap_count * ((g.depth + 3) / 4) * 4 * kWidth;
  for (int64_t p = g.panel_begin; p < g.panel_end; ++p) {
    const int64_t channel = p * kWidth, left = g.n - channel;
    const int8_t* b = g.b + p * panel_bytes;
    switch (left >= kWidth ? 4 : (left + 15) / 16) {
      case 1: Panel<1>(g, b, channel); break;
      case 2: Panel<2>(g, b, channel); break;
      case 3: Panel<3>(g, b, channel); break;
      default: Panel<4>(g, b, channel); break;
    }
  }
}

}  // namespace

const GemmS8 kGemmS8 = {kWidth, 16, 4, 1, 128, Channel, Form, Run};

}  // namespace avx512vnni
}  // namespace rillet
