// What a StridedSlice takes of a tensor: shared by the op and its gradient.
#pragma once
#include "kernel.h"

namespace rillet {

struct SliceGeometry {
  int64_t begin[kMaxRank], stride[kMaxRank], count[kMaxRank];  // for each dimension of the input
  int64_t dims[kMaxRank];                                      // of the result
  int32_t rank = 0;
};

// Reads the attributes of StridedSlice and applies them to a tensor of these dimensions.
Status ResolveSlice(Prepare& p, int rank, const int64_t* dims, SliceGeometry* g);

}  // namespace rillet
