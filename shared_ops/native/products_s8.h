// What the int8 kernels of products share: packed weights, padded strips of images, and the loop over rows of a matrix.
#pragma once
#include "conv_geometry.h"
#include "isa/gemm_s8.h"
#include "requantize.h"

namespace rillet {

// Constant weights w[k][n] of one product; k runs over taps and, within a tap, over `depth` values.
struct WeightsS8 {
  const int8_t* data;
  int64_t tap_count, depth, n;
  int64_t k_stride, n_stride;  // in elements
  const int32_t* bias;         // null: none
  const float* scale;          // of the weights, `scale_count` of them: one, or one for `n / scale_count` channels
  int64_t scale_count;
};

struct PackedS8 {
  const int8_t* b;
  const int32_t* bias;
  const float* scale;
  Epilogue epilogue;
  int64_t tap_count, depth, n, panels;
};

// Checks weights (symmetric, no -128, sums that fit int32, scales of which the epilogue is exact) and packs them.
Status PackGemm(Prepare& ctx, const GemmS8& isa, const WeightsS8& w, const TensorQuant& x, const OutputQuant& y,
                PackedS8* packed);
Status PackDepthwise(Prepare& ctx, const DepthwiseS8& isa, const WeightsS8& w, const TensorQuant& x,
                     const OutputQuant& y, PackedS8* packed);

// Input `i`, constant int8 weights with one scale or one along `axis`; input `i + 1`, if present: constant i32 bias[n].
struct ConstantsS8 {
  const int8_t* weights;
  const float* scale;
  int64_t scale_count;
  const int32_t* bias;
};
Status ReadConstants(Prepare& ctx, int i, int axis, int64_t n, ConstantsS8* constants);

const GemmS8& CurrentGemmS8();
const DepthwiseS8& CurrentDepthwiseS8();

// Rows of an image in an ISA's form, padded with the zero point: output rows are computed strip by strip, so that no
// whole padded image is ever written and what is read again is still in the cache.
struct StripS8 {
  WindowAxis rows, cols;
  int64_t channels, copies;  // copies: of each channel, side by side (depthwise with a multiplier)
  void (*form)(uint8_t* to, const int8_t* from, int64_t n);
  int form_bytes;
  int32_t padding;  // the zero point in this form
  int64_t width;    // padded columns
  int64_t pixel_bytes, row_bytes;
  int64_t step;  // output rows a strip
  int64_t pointer_bytes, bytes;

  // Fills `buffer` (of `bytes`) for output rows [begin, end); returns one pointer an output pixel, to its first tap.
  const uint8_t* const* Fill(const int8_t* image, int64_t begin, int64_t end, void* buffer) const;
};
Status PlanStrip(Prepare& ctx, StripS8* strip);

// out[m][n] = requantize(a[m][k] * w): rows of `a` are contiguous. Takes WorkspaceOfRows bytes a thread.
int64_t WorkspaceOfRows(const GemmS8& isa, const PackedS8& packed);
void RunRows(const Run& ctx, const GemmS8& isa, const PackedS8& packed, const int8_t* a, int64_t m, int8_t* out);

}  // namespace rillet
