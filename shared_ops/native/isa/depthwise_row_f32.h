// The inner loops of float32 depthwise convolutions and their gradients; all vectorise over channels.
#pragma once
#include <stdint.h>

namespace rillet {

constexpr int kMaxTaps = 1024;  // rows * columns (* multiplier) of a depthwise window

// Neighbouring pixels of a result: pixel p, channel c is the chain over t of tap[t][p * step + c] * w[index[t]][c],
// then the bias, then the clamp.
struct DepthwisePixels {
  const float* const* tap;
  const int32_t* index;  // of each tap in the packed filter; null: 0, 1, 2, ...
  int64_t taps;
  int64_t step;  // floats between the pixels' inputs
  int64_t pixels, channels;
  const float* w;  // packed: [channels / lanes][all_taps][lanes], zero behind the last channel
  int64_t all_taps;
  float* y;
  int64_t y_step;
  const float* bias;  // or null
  bool clamp;
  float low, high;
};

// The same for windows three columns wide: tap[r] is the leftmost input of kernel row r for the first pixel. Columns
// lie `step` floats apart, pixels once or twice that. `reversed`: w runs from the rightmost column to the left one.
// (index is not used; taps counts kernel rows, and all_taps = 3 * taps.)

// Filter gradient: acc[t][c] = chain over pixels p of fma(tap[t][p * step + c], dy[p * dy_step + c], acc).
struct DepthwiseFilter {
  const float* const* tap;
  int64_t taps, step;
  const float* dy;
  int64_t dy_step, pixels;
  float* acc;                    // [taps][acc_step]
  int64_t acc_step, begin, end;  // channels
  bool resume;                   // start from acc instead of +0
};

struct DepthwiseKernels {
  int lanes;
  void (*pixels)(const DepthwisePixels&);
  void (*three)(const DepthwisePixels&);  // pixels one column apart
  void (*three_reversed)(const DepthwisePixels&);
  void (*three_strided)(const DepthwisePixels&);  // two columns apart
  void (*filter)(const DepthwiseFilter&);
};

namespace scalar {
extern const DepthwiseKernels kDepthwiseF32;
}
namespace avx2 {
extern const DepthwiseKernels kDepthwiseF32;
}
namespace avx512 {
extern const DepthwiseKernels kDepthwiseF32;
}
namespace neon {
extern const DepthwiseKernels kDepthwiseF32;
}

}  // namespace rillet
