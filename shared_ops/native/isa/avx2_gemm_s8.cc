// int8 products with vpmaddwd on int16: exact for all values, where vpmaddubsw would saturate. Tile 6 rows x 16
// channels.
#include <immintrin.h>

#include <cstring>

#include "avx2_epilogue_s8.h"
#include "gemm_s8.h"
#include "repeat.h"

namespace rillet {
namespace avx2 {
namespace {

constexpr int kRows = 6, kWidth = 16;

// Channels of a panel are permuted so that packssdw and packsswb, which work within 128-bit lanes, restore their order.
int Channel(int, int position) {
  const int v = position / 8, i = position % 8;
  return 8 * (i / 4) + 4 * v + i % 4;
}

void Form(uint8_t* to, const int8_t* from, int64_t n) {
  int16_t* d = reinterpret_cast<int16_t*>(to);
  int64_t i = 0;
  for (; i + 16 <= n; i += 16)
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(d + i),
                        _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i))));
  for (; i < n; ++i) d[i] = from[i];
}

template <int R>
void Tile(const GemmS8Args& g, const uint8_t* const* rows, const int8_t* b, int64_t channel, int8_t* out) {
  __m256i acc[R][2];
  Repeat<2>([&](auto v) RILLET_INLINE {
    const __m256i bias = _mm256_load_si256(reinterpret_cast<const __m256i*>(g.bias + channel + 8 * v));
    Repeat<R>([&](auto m) RILLET_INLINE { acc[m][v] = bias; });
  });
  const int64_t pairs = (g.depth + 1) / 2;
  for (int64_t t = 0; t < g.tap_count; ++t) {
    const uint8_t* a[R];
    Repeat<R>([&](auto m) RILLET_INLINE { a[m] = rows[m] + g.taps[t]; });
    for (int64_t k = 0; k < pairs; ++k, b += 32) {
      const __m256i b0 = _mm256_cvtepi8_epi16(_mm_load_si128(reinterpret_cast<const __m128i*>(b)));
      const __m256i b1 = _mm256_cvtepi8_epi16(_mm_load_si128(reinterpret_cast<const __m128i*>(b + 16)));
      Repeat<R>([&](auto m) RILLET_INLINE {
        int pair;
        std::memcpy(&pair, a[m] + 4 * k, 4);
        const __m256i x = _mm256_set1_epi32(pair);
        acc[m][0] = _mm256_add_epi32(acc[m][0], _mm256_madd_epi16(x, b0));
        acc[m][1] = _mm256_add_epi32(acc[m][1], _mm256_madd_epi16(x, b1));
      });
    }
  }
  const Epilogue e = g.epilogue;
  const int64_t n = g.n - channel;
  if (e.clamp) Finish<R, true, false>(acc, e, g.scale + channel, out, g.out_stride, n);
  else Finish<R, false, false>(acc, e, g.scale + channel, out, g.out_stride, n);
}

void Run(const GemmS8Args& g) {
  const int64_t panel_bytes = g.tap_count * ((g.depth + 1) / 2) * 32;
  for (int64_t p = g.panel_begin; p < g.panel_end; ++p) {
    const int8_t* b = g.b + p * panel_bytes;
    for (int64_t m = 0; m < g.m;) {
      const int64_t left = g.m - m;
      // 7 to 11 rows are cut evenly: 6 + 1 would waste most of the second tile.
      const int64_t rows = left >= 2 * kRows || left == kRows ? kRows : left > kRows ? (left + 1) / 2 : left;
      int8_t* out = g.out + m * g.out_stride + kWidth * p;
      switch (rows) {
        case 1: Tile<1>(g, g.rows + m, b, kWidth * p, out); break;
        case 2: Tile<2>(g, g.rows + m, b, kWidth * p, out); break;
        case 3: Tile<3>(g, g.rows + m, b, kWidth * p, out); break;
        case 4: Tile<4>(g, g.rows + m, b, kWidth * p, out); break;
        case 5: Tile<5>(g, g.rows + m, b, kWidth * p, out); break;
        default: Tile<6>(g, g.rows + m, b, kWidth * p, out); break;
      }
      m += rows;
    }
  }
}

}  // namespace

const GemmS8 kGemmS8 = {kWidth, kWidth, 2, 2, 0, Channel, Form, Run};

}  // namespace avx2
}  // namespace rillet
