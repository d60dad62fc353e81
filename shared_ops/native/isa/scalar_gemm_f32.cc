#define RILLET_ISA scalar
#include "gemm_tiles_f32.h"

namespace rillet {
namespace scalar {

static constexpr Table<4, 4, false> kNn;
static constexpr Table<4, 4, true> kTn;
static constexpr GemmKernels kNarrow = {4, 4, V::kWidth, kNn.f, kTn.f};
const GemmFamily kGemmF32 = {&kNarrow};

}  // namespace scalar
}  // namespace rillet
