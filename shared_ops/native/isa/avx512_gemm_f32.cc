#define RILLET_ISA avx512
#include "gemm_tiles_f32.h"

namespace rillet {
namespace avx512 {

// 8x48 and 6x64 are a few percent faster than 12x32 where the width fits them; A^T B exists once.
static constexpr Table<12, 2, false> kNn32;
static constexpr Table<12, 2, true> kTn32;
static constexpr Table<8, 3, false> kNn48;
static constexpr Table<6, 4, false> kNn64;
static constexpr GemmKernels kNarrow = {12, 2, V::kWidth, kNn32.f, kTn32.f};
static constexpr GemmKernels kBy48 = {8, 3, V::kWidth, kNn48.f, nullptr};
static constexpr GemmKernels kBy64 = {6, 4, V::kWidth, kNn64.f, nullptr};
const GemmFamily kGemmF32 = {&kNarrow, &kBy48, &kBy64};

}  // namespace avx512
}  // namespace rillet
