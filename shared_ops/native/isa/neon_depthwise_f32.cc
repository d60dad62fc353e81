#define RILLET_ISA neon
#include "depthwise_rows_f32.h"

namespace rillet {
namespace neon {

const DepthwiseKernels kDepthwiseF32 = kKernels;

}  // namespace neon
}  // namespace rillet
