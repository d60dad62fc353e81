#define RILLET_ISA avx2
#include "gemm_tiles_f32.h"

namespace rillet {
namespace avx2 {

static constexpr Table<6, 2, false> kNn;
static constexpr Table<6, 2, true> kTn;
static constexpr GemmKernels kNarrow = {6, 2, V::kWidth, kNn.f, kTn.f};
const GemmFamily kGemmF32 = {&kNarrow};

}  // namespace avx2
}  // namespace rillet
