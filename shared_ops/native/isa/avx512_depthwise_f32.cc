#define RILLET_ISA avx512
#include "depthwise_rows_f32.h"

namespace rillet {
namespace avx512 {

const DepthwiseKernels kDepthwiseF32 = kKernels;

}  // namespace avx512
}  // namespace rillet
