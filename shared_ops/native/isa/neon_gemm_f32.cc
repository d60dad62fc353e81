#define RILLET_ISA neon
#include "gemm_tiles_f32.h"

namespace rillet {
namespace neon {

static constexpr Table<8, 2, false> kNn;
static constexpr Table<8, 2, true> kTn;
static constexpr GemmKernels kNarrow = {8, 2, V::kWidth, kNn.f, kTn.f};
const GemmFamily kGemmF32 = {&kNarrow};

}  // namespace neon
}  // namespace rillet
