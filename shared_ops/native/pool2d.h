// What pools and their gradients prepare alike.
#pragma once
#include <algorithm>

#include "conv_geometry.h"
#include "nn_f32.h"

namespace rillet {

struct PoolState {
  const NnF32* loops;
  int64_t batch, channels;
  WindowAxis axis[2];  // rows, columns

  // The most elements of a window that lie inside the image.
  int64_t most_taps() const {
    return std::min(axis[0].kernel, axis[0].input) * std::min(axis[1].kernel, axis[1].input);
  }
};

// Reads the attributes and resolves the windows over an image of these dimensions (NHWC).
Status PreparePool(Prepare& ctx, const int64_t* input_dims, PoolState* s);

}  // namespace rillet
