// The product that Conv2DBackpropInput and Conv2DTranspose share: an image from a convolution's result and filter.
//
// Element (h, w, c) sums over filter rows r, columns s and result channels: dy[(h + before - r * dilation) / stride,
// ...] times w[r, s, c, :], for the taps where the division is exact and the quotient inside. Pixels whose h and w
// leave the same remainders by the strides (a phase) have the same taps, so each phase is one implicit GEMM over a
// padded strip of dy.
#pragma once
#include "gemm_f32.h"

namespace rillet {

struct InputGradientPhase {
  int64_t row, column;    // the first pixel
  int64_t rows, columns;  // pixels, strides apart
  int64_t top, left;      // of dy, under the first pixel's outermost tap
  int64_t strip_rows, strips, strip_height, strip_columns;
  const int64_t* row_offset;
  Gemm gemm;
};

struct InputGradient {
  WindowAxis rows, columns;  // of the convolution: input is the image made here, output is dy
  int64_t images = 0, channels = 0, filters = 0, groups = 1;
  Gemm gemm;  // of a group; its plan has k alone
  InputGradientPhase* phases = nullptr;
  int64_t phase_count = 0, strips = 0;  // of all phases
  int64_t strip_floats = 0, result_floats = 0, thread_floats = 0, packed_floats = 0;
  const float* packed = nullptr;  // of a constant filter

  int64_t group_packed() const { return (gemm.packed_size() + 15) / 16 * 16; }
  int64_t image_size() const { return rows.input * columns.input * channels; }
  int64_t result_size() const { return rows.output * columns.output * filters; }
  bool direct() const {
    return rows.stride == 1 && columns.stride == 1;
  }  // written where it belongs, not through a buffer
};

// Geometry, images, channels, filters, groups are set; lays out phases, packs a constant filter, asks for workspace.
Status PrepareInputGradient(Prepare& ctx, const Tensor& w, const ActivationBounds& bounds, InputGradient* g);
void RunInputGradient(const Run& run, const InputGradient& g, const float* w, const float* dy, const float* bias,
                      float* dx);

}  // namespace rillet
