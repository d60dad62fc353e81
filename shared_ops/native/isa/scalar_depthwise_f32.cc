#define RILLET_ISA scalar
#include "depthwise_rows_f32.h"

namespace rillet {
namespace scalar {

const DepthwiseKernels kDepthwiseF32 = kKernels;

}  // namespace scalar
}  // namespace rillet
