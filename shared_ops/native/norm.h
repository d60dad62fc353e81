// What LayerNorm, RMSNorm and their gradients prepare alike.
#pragma once
#include "nn_f32.h"

namespace rillet {

struct NormState {
  const NnF32* loops;
  int64_t rows, n;  // the input, as rows of the n elements that are normalised together
  float epsilon;
  bool centre;  // LayerNorm takes the mean off, RMSNorm does not
};

// Reads the attributes and checks x (input 0) against scale (input 1).
Status PrepareNorm(Prepare& ctx, bool centre, NormState* s);

}  // namespace rillet
