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

// One input column of three rows, 16 channels: rows 0 and 1 interleaved (channels 0-7, 8-15), then row 2 alone. Widened
// to 32 bits, its sign fills the upper half, which meets weight 0.
RILLET_INLINE inline void Column(__m256i (&k)[4], const uint8_t* p, int64_t row_bytes) {
  const __m128i x = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  const __m128i y = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p + row_bytes));
  k[0] = _mm256_cvtepi8_epi16(_mm_unpacklo_epi8(x, y));
  k[1] = _mm256_cvtepi8_epi16(_mm_unpackhi_epi8(x, y));
  k[2] = _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p + 2 * row_bytes)));
  k[3] = _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p + 2 * row_bytes + 8)));
}

// What the pixels of a row share. The bytes of a block of 16 channels start at `in` and `out`.
struct Row {
  const uint8_t* in;
  int8_t* out;
  const __m256i* w;
  const __m256i* bias;
  const float* scale;
  int64_t row_bytes, pixel_bytes, out_step, n;
  Epilogue e;
};

RILLET_INLINE inline void MultiplyColumn(__m256i& low, __m256i& high, const __m256i (&k)[4], const __m256i* w) {
  low = _mm256_add_epi32(low, _mm256_madd_epi16(k[0], _mm256_load_si256(w)));
  high = _mm256_add_epi32(high, _mm256_madd_epi16(k[1], _mm256_load_si256(w + 1)));
  low = _mm256_add_epi32(low, _mm256_madd_epi16(k[2], _mm256_load_si256(w + 2)));
  high = _mm256_add_epi32(high, _mm256_madd_epi16(k[3], _mm256_load_si256(w + 3)));
}

// 16 outputs of one pixel as int16, zero point added.
template <bool kClamp>
RILLET_INLINE inline __m256i Pixel(const Row& r, const __m256i (&a)[4], const __m256i (&b)[4], const __m256i (&c)[4]) {
  __m256i low = _mm256_load_si256(r.bias), high = _mm256_load_si256(r.bias + 1);
  MultiplyColumn(low, high, a, r.w);
  MultiplyColumn(low, high, b, r.w + 4);
  MultiplyColumn(low, high, c, r.w + 8);
  const __m256 top = _mm256_set1_ps(static_cast<float>(r.e.high - r.e.zero_point));
  const __m256i q = _mm256_packs_epi32(Scale<kClamp>(low, _mm256_load_ps(r.scale), top),
                                       Scale<kClamp>(high, _mm256_load_ps(r.scale + 8), top));
  return _mm256_adds_epi16(q, _mm256_set1_epi16(static_cast<short>(r.e.zero_point)));
}

RILLET_INLINE inline void StorePair(const Row& r, int64_t x, __m256i first, __m256i second, bool both) {
  const __m256i low = _mm256_set1_epi8(static_cast<char>(r.e.low));
  const __m256i high = _mm256_set1_epi8(static_cast<char>(r.e.high));
  const __m256i bytes = _mm256_min_epi8(_mm256_max_epi8(_mm256_packs_epi16(first, second), low), high);
  const __m256i pixels = _mm256_shuffle_epi32(_mm256_permute4x64_epi64(bytes, 0xd8), 0xd8);
  StorePart(r.out + x * r.out_step, _mm256_castsi256_si128(pixels), r.n);
  if (both) StorePart(r.out + (x + 1) * r.out_step, _mm256_extracti128_si256(pixels, 1), r.n);
}

// Pixels [x, columns) one by one, without what their neighbours have read.
template <bool kClamp>
void Rest(const Row& r, int64_t x, int64_t columns, int64_t stride) {
  for (; x < columns; ++x) {
    __m256i k[3][4];
    Repeat<3>([&](auto i) RILLET_INLINE { Column(k[i], r.in + (x * stride + i) * r.pixel_bytes, r.row_bytes); });
    const __m256i q = Pixel<kClamp>(r, k[0], k[1], k[2]);
    StorePair(r, x, q, q, false);
  }
}

template <bool kClamp>
void RowOfStride1(const Row& r, int64_t columns) {
  __m256i a[4], b[4], c[4];
  const uint8_t* p = r.in;
  auto next = [&](__m256i(&k)[4]) RILLET_INLINE {
    Column(k, p, r.row_bytes);
    p += r.pixel_bytes;
  };
  next(a);
  next(b);
  int64_t x = 0;
  for (; x + 6 <= columns; x += 6) {  // after three pixels each column is back in its place
    next(c);
    const __m256i q0 = Pixel<kClamp>(r, a, b, c);
    next(a);
    StorePair(r, x, q0, Pixel<kClamp>(r, b, c, a), true);
    next(b);
    const __m256i q2 = Pixel<kClamp>(r, c, a, b);
    next(c);
    StorePair(r, x + 2, q2, Pixel<kClamp>(r, a, b, c), true);
    next(a);
    const __m256i q4 = Pixel<kClamp>(r, b, c, a);
    next(b);
    StorePair(r, x + 4, q4, Pixel<kClamp>(r, c, a, b), true);
  }
  Rest<kClamp>(r, x, columns, 1);
}

template <bool kClamp>
void RowOfStride2(const Row& r, int64_t columns) {
  __m256i a[4], b[4], c[4];
  const uint8_t* p = r.in;
  auto next = [&](__m256i(&k)[4]) RILLET_INLINE {
    Column(k, p, r.row_bytes);
    p += r.pixel_bytes;
  };
  next(a);
  int64_t x = 0;
  for (; x + 2 <= columns; x += 2) {
    next(b);
    next(c);
    const __m256i q0 = Pixel<kClamp>(r, a, b, c);
    next(b);
    next(a);
    StorePair(r, x, q0, Pixel<kClamp>(r, c, b, a), true);
  }
  Rest<kClamp>(r, x, columns, 2);
}

template <bool kClamp>
void Rows3x3(const Depthwise3x3Args& g) {
  for (int64_t channel = 0; channel < g.channels; channel += kWidth)
    for (int64_t y = 0; y < g.row_count; ++y) {
      const Row r = {g.rows[y] + channel,
                     g.out + y * g.columns * g.channels + channel,
                     reinterpret_cast<const __m256i*>(g.w + channel * 24),
                     reinterpret_cast<const __m256i*>(g.bias + channel),
                     g.scale + channel,
                     g.row_bytes,
                     g.pixel_bytes,
                     g.channels,
                     g.channels - channel,
                     g.epilogue};
      if (g.stride == 1) RowOfStride1<kClamp>(r, g.columns);
      else if (g.stride == 2) RowOfStride2<kClamp>(r, g.columns);
      else Rest<kClamp>(r, 0, g.columns, g.stride);
    }
}

void Run3x3(const Depthwise3x3Args& g) { g.epilogue.clamp ? Rows3x3<true>(g) : Rows3x3<false>(g); }

}  // namespace

const DepthwiseS8 kDepthwiseS8 = {kWidth, 2, 2, 0, NaturalChannel, nullptr, Run, Run3x3};

}  // namespace avx2
}  // namespace rillet
