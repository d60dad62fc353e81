// What the three depthwise kernels share: checks, packed filters, rows of images with repeated channels.
#pragma once
#include "conv_geometry.h"
#include "isa/depthwise_row_f32.h"
#include "kernel.h"

namespace rillet {

// One depthwise convolution: image [images, rows.input, columns.input, channels], result channels channels *
// multiplier.
struct Depthwise {
  WindowAxis rows, columns;
  int64_t images = 0, channels = 0, multiplier = 1;
  const DepthwiseKernels* kernels = nullptr;
  const float* zeros = nullptr;  // a row of the image (of dy, for the input gradient), all +0

  int64_t wide() const { return channels * multiplier; }
  int64_t taps() const { return rows.kernel * columns.kernel; }
  int64_t image_size() const { return rows.input * columns.input * channels; }
  int64_t result_size() const { return rows.output * columns.output * wide(); }
};

// Reads the window attributes, checks image and filter shapes against each other, and resolves the windows.
Status PrepareDepthwise(Prepare& ctx, const int64_t image[4], const int64_t filter[4], Depthwise* d);
// Allocates `zeros`: `floats` of them.
Status AllocateZeros(Prepare& ctx, int64_t floats, Depthwise* d);
// A shape given as a constant vector of four i32 or i64.
Status ReadShape4(Prepare& ctx, int input, int64_t shape[4]);

// Floats of a packed filter of `taps` taps over `channels` channels.
int64_t PackedFilterSize(const Depthwise& d, int64_t taps, int64_t channels);
// packed[c / lanes][t][c % lanes] = w[t * tap_step + c * channel_step].
void PackDepthwiseFilter(const Depthwise& d, const float* w, int64_t taps, int64_t tap_step, int64_t channels,
                         int64_t channel_step, float* packed);
// [pixels][channels] -> [pixels][channels * multiplier], each channel repeated.
void RepeatChannels(const float* from, int64_t pixels, int64_t channels, int64_t multiplier, float* to);

}  // namespace rillet
