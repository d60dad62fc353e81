// Portable int8 products: plain loops over channels, which compilers vectorise for the baseline CPU.
#include "../requantize.h"
#include "gemm_s8.h"

namespace rillet {
namespace scalar {
namespace {

constexpr int kWidth = 16;

void Finish(const int32_t* acc, const Epilogue& e, const float* scale, int64_t n, int8_t* out) {
  for (int64_t i = 0; i < n; ++i) out[i] = Requantize(acc[i], scale[i], e.zero_point, e.low, e.high);
}

void Run(const GemmS8Args& g) {
  for (int64_t p = g.panel_begin; p < g.panel_end; ++p) {
    const int64_t channel = p * kWidth, n = g.n - channel < kWidth ? g.n - channel : kWidth;
    for (int64_t m = 0; m < g.m; ++m) {
      int32_t acc[kWidth];
      for (int i = 0; i < kWidth; ++i) acc[i] = g.bias[channel + i];
      const int8_t* b = g.b + channel * g.tap_count * g.depth;
      for (int64_t t = 0; t < g.tap_count; ++t) {
        const int8_t* a = reinterpret_cast<const int8_t*>(g.rows[m] + g.taps[t]);
        for (int64_t k = 0; k < g.depth; ++k, b += kWidth)
          for (int i = 0; i < kWidth; ++i) acc[i] += a[k] * b[i];
      }
      Finish(acc, g.epilogue, g.scale + channel, n, g.out + m * g.out_stride + channel);
    }
  }
}

void RunDepthwise(const DepthwiseS8Args& g) {
  for (int64_t channel = 0; channel < g.channels; channel += kWidth) {
    const int64_t n = g.channels - channel < kWidth ? g.channels - channel : kWidth;
    for (int64_t m = 0; m < g.m; ++m) {
      int32_t acc[kWidth];
      for (int i = 0; i < kWidth; ++i) acc[i] = g.bias[channel + i];
      const int8_t* w = g.w + channel * g.tap_count;
      for (int64_t t = 0; t < g.tap_count; ++t, w += kWidth) {
        const int8_t* a = reinterpret_cast<const int8_t*>(g.rows[m] + g.taps[t]) + channel;
        for (int64_t i = 0; i < n; ++i) acc[i] += a[i] * w[i];
      }
      Finish(acc, g.epilogue, g.scale + channel, n, g.out + m * g.out_stride + channel);
    }
  }
}

}  // namespace

const GemmS8 kGemmS8 = {kWidth, kWidth, 1, 1, 0, NaturalChannel, nullptr, Run};
const DepthwiseS8 kDepthwiseS8 = {kWidth, 1, 1, 0, NaturalChannel, nullptr, RunDepthwise, nullptr};

}  // namespace scalar
}  // namespace rillet
