#define RILLET_ISA avx2
#include "depthwise_rows_f32.h"

namespace rillet {
namespace avx2 {

const DepthwiseKernels kDepthwiseF32 = kKernels;

}  // namespace avx2
}  // namespace rillet
