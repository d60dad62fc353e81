// What pools and their gradients prepare alike.
#pragma once
#include "conv_geometry.h"
#include "nn_f32.h"

namespace rillet {

struct PoolState {
  const NnF32* loops;
  int64_t batch, channels;
  WindowAxis axis[2];  // rows, columns
};

// Reads the attributes and resolves the windows over an image of these dimensions (NHWC).
Status PreparePool(Prepare& ctx, const int64_t* input_dims, PoolState* s);

}  // namespace rillet
